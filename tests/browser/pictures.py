"""Pictures of pages, written where GROUPJOBS_SCREENSHOTS says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def picture(page: Any, name: str, *, whole: bool = True) -> None:
    """The page, or only what is in sight of it, as NAME.png; nothing where nobody asked for pictures."""
    folder = os.environ.get("GROUPJOBS_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)
