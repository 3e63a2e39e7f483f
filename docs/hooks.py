"""Hooks of MkDocs."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Every decision in docs/adr is a page below "Decisions", in order."""
    folder = Path(config["docs_dir"])
    pages = [str(path.relative_to(folder)) for path in sorted(folder.glob("adr/0*.md"))]
    for section in config["nav"]:
        if isinstance(section, dict) and "Decisions" in section:
            section["Decisions"] = ["adr/index.md", *(page for page in pages if "0000" not in page)]
    return config
