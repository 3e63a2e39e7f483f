"""Composes the scripts: a shebang line, the includes of lua/lib, then the verb."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

LIBRARY = ("args", "epoch", "ready", "lease", "consumers", "heal", "promote", "bells", "reserve")
VERBS = (
    "enqueue", "step", "keep", "beat", "tick", "reap", "withdraw", "hold", "snapshot",
    "entries", "drop", "restore", "open", "overview", "ping",
)  # fmt: skip


@cache
def source(verb: str) -> str:
    """The whole text of one verb. All but `enqueue` may run at maxmemory: a refused beat kills the living."""
    folder = files(__package__) / "lua"
    parts = [(folder / "lib" / f"{name}.lua").read_text("utf-8") for name in LIBRARY]
    shebang = "#!lua" if verb == "enqueue" else "#!lua flags=allow-oom"
    return "\n".join([shebang, *parts, (folder / f"{verb}.lua").read_text("utf-8")])
