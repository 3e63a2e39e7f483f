"""A folder by which the pages ask for damage, and by which they are told what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DAMAGE = ("kill", "flush")


class Desk:
    """Orders are files of their name, so an order that is given twice before it is taken is one order."""

    def __init__(self, folder: Path) -> None:
        """`folder`: of the program that carries the orders out, which only it and the web server may enter."""
        self._folder = folder

    def ask(self, damage: str) -> None:
        """Order one of DAMAGE."""
        (self._folder / f"{damage}.order").touch()

    def orders(self) -> list[str]:
        """Take what was ordered."""
        taken = [damage for damage in DAMAGE if (self._folder / f"{damage}.order").exists()]
        for damage in taken:
            (self._folder / f"{damage}.order").unlink()
        return taken

    def tell(self, story: dict[str, Any]) -> None:
        """Put the story in the place of the one before."""
        written = self._folder / "story.json.new"
        written.write_text(json.dumps(story))
        written.replace(self._folder / "story.json")

    def story(self) -> dict[str, Any]:
        """What was told last; empty before the first word."""
        try:
            told: dict[str, Any] = json.loads((self._folder / "story.json").read_text())
        except FileNotFoundError:
            return {}
        return told
