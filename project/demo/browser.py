"""A person's part of the demo: open the page, upload the file, look at its progress. All over HTTP."""

from __future__ import annotations

import html
import json
import re
import secrets
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

from project.demo.failure import DemoFailed

TIMEOUT = 30.0  # seconds for one answer


class Browser:
    """Keeps cookies, as the CSRF check needs."""

    def __init__(self, base: str) -> None:
        """`base` is the address of the web server, without a slash at its end."""
        self.base = base
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar())
        )

    def answers(self) -> bool:
        """Whether the web server serves its first page."""
        try:
            with self._opener.open(f"{self.base}/", timeout=TIMEOUT) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def upload(self, path: Path) -> int:
        """Send the form with the file; answer the upload's number."""
        token = _found(r'name="csrfmiddlewaretoken" value="([^"]+)"', self._get("/"), "the form has no CSRF token")
        boundary = secrets.token_hex(16)
        request = urllib.request.Request(f"{self.base}/", data=_form(boundary, token, path))  # noqa: S310
        request.add_header("Content-Type", f"multipart/form-data; boundary={boundary}")
        request.add_header("Referer", f"{self.base}/")
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                return int(_found(r"/uploads/(\d+)/$", answer.url, "the upload led to no page of its own"))
        except urllib.error.HTTPError as error:
            raise DemoFailed(f"the upload was refused: {_reasons(error)}") from None

    def progress(self, upload: int) -> dict[str, Any]:
        """What the upload's page polls."""
        answer: dict[str, Any] = json.loads(self._get(f"/uploads/{upload}/progress.json"))
        return answer

    def _get(self, path: str) -> str:
        try:
            with self._opener.open(f"{self.base}{path}", timeout=TIMEOUT) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            raise DemoFailed(f"{path} answered {error.code}: {_reasons(error)}") from None
        except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
            raise DemoFailed(f"{path} did not answer: {error}") from None


def _form(boundary: str, token: str, path: Path) -> bytes:
    name = re.sub(r'["\\\r\n]', "_", path.name)
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="csrfmiddlewaretoken"\r\n\r\n{token}\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: text/csv\r\n\r\n"
    )
    return head.encode() + path.read_bytes() + f"\r\n--{boundary}--\r\n".encode()


def _reasons(error: urllib.error.HTTPError) -> str:
    """The messages of the form's error list, else the title of an error page."""
    page = error.read().decode(errors="replace")
    lists = re.findall(r'<ul class="errorlist"[^>]*>(.*?)</ul>', page, re.DOTALL)
    items = re.findall(r"<li>(.*?)</li>", " ".join(lists), re.DOTALL) or re.findall(
        r"<title>(.*?)</title>", page, re.DOTALL
    )
    return " ".join(html.unescape(" ".join(item.split())) for item in items) or f"status {error.code}"


def _found(pattern: str, text: str, complaint: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise DemoFailed(complaint)
    return match.group(1)
