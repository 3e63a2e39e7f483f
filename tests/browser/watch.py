"""What a page must never do, whatever the test is about."""

from __future__ import annotations

from typing import Any


def watch(page: Any, complaints: list[str]) -> None:
    """Collect errors of the console (a violated CSP is one), of scripts, and answers of 500 and above."""

    def said(message: Any) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"{page.url}: {message.text}")

    def answered(response: Any) -> None:
        if response.status >= 500:
            complaints.append(f"{response.url}: {response.status}")

    page.on("console", said)
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    page.on("response", answered)
