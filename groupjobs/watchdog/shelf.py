"""A shelf: a folder of small JSON records, each written in one piece, so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any


class Shelf:
    """Records by name, shared by the processes of a worker. Names are file names without a leading dot."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, tuple[tuple[int, int], Any]] = {}

    def put(self, name: str, record: Any) -> None:
        """Write or replace a record. Raises OSError when the disk does not take it."""
        draft = self.folder / f".{name}-{os.getpid()}-{threading.get_ident()}"
        draft.write_text(json.dumps(record))
        draft.replace(self.folder / name)

    def get(self, name: str) -> Any:
        """The record, or None."""
        try:
            return json.loads((self.folder / name).read_text())
        except FileNotFoundError:
            return None

    def take(self, name: str) -> None:
        """Remove a record; nothing happens when there is none."""
        with contextlib.suppress(FileNotFoundError):
            (self.folder / name).unlink()

    def all(self) -> dict[str, Any]:
        """Every record by its name. Only what has changed since the last call is read."""
        found = {}
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    with contextlib.suppress(FileNotFoundError):
                        found[entry.name] = self._read(entry)
        self._known = found
        return {name: record for name, (_, record) in found.items()}

    def _read(self, entry: os.DirEntry[str]) -> tuple[tuple[int, int], Any]:
        status = entry.stat()
        version = (status.st_ino, status.st_mtime_ns)
        known = self._known.get(entry.name)
        return known if known and known[0] == version else (version, json.loads(Path(entry.path).read_text()))
