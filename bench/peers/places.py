"""Where the systems' environments lie (ignored by git), and how they are made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "bench" / ".peers"


class NotInstalled(Exception):
    """An environment could not be made."""


def environment(name: str) -> Path:
    """The folder of a system's environment."""
    return FOLDER / name


def install(name: str, requires: tuple[str, ...], *, node: bool) -> None:
    """Make the environment of a system once, by name from PyPI or npm; NotInstalled when that fails."""
    folder = environment(name)
    if not requires or (folder / ".made").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if node:
        (folder / "package.json").write_text('{"private": true}')
        _run("npm", "install", "--no-audit", "--no-fund", "--silent", *requires, folder=folder)
    else:
        _run(sys.executable, "-m", "venv", str(folder), folder=folder)
        pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _run(*pip, *requires, folder=folder)
    (folder / ".made").touch()


def _run(*command: str, folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NotInstalled(str(error)) from error
    if done.returncode:
        raise NotInstalled(f"{command[0]} ended with status {done.returncode}: {done.stderr[-500:]}")
