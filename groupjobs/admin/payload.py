"""What a run carries, as text for people: sensitive values masked, and a corrupt value shown as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from groupjobs import conf, registry

MASK: Final = "•••••"
MOST: Final = 20_000  # characters of one value that a page shows


@dataclass(frozen=True, slots=True)
class Shown:
    """Text of a value; `corrupt` when it is no JSON, `cut` when it is longer than a page shows."""

    text: str
    corrupt: bool = False
    cut: bool = False


def shown(raw: str | None, names: Sequence[str] = ()) -> Shown | None:
    """A JSON column's own text, indented and masked; None for NULL and for empty lists and objects.

    `names` are the names of the items when the value is a list of positional arguments.
    """
    if raw is None:
        return None
    masked = frozenset(name.lower() for name in conf.current().masked)
    try:
        value = json.loads(raw)
    except ValueError:
        return _cut(masked_text(raw, masked), corrupt=True)
    if value in (None, [], {}):
        return None
    return _cut(json.dumps(masked_value(value, masked, names), indent=2, ensure_ascii=False), corrupt=False)


def argument_names(job: str) -> tuple[str, ...] | None:
    """Names of a job's parameters in order; None when this process does not know the job."""
    handler = registry.resolve(job)
    return None if handler is None else tuple(handler.signature.parameters)


def shown_arguments(raw: str | None, job: str) -> Shown | None:
    """Positional arguments. Those of an unknown job have no names, so all are masked if any name is sensitive."""
    names = argument_names(job)
    if names is None and conf.current().masked and raw not in (None, "[]"):
        return Shown(MASK)
    return shown(raw, names or ())


def masked_value(value: Any, masked: frozenset[str], names: Sequence[str] = ()) -> Any:
    """A copy of a JSON value in which what has a sensitive name is replaced, at any depth."""
    if isinstance(value, dict):
        return {key: MASK if str(key).lower() in masked else masked_value(item, masked) for key, item in value.items()}
    if isinstance(value, list):
        named = [*names[: len(value)], *[""] * (len(value) - len(names))]
        return [
            MASK if name.lower() in masked else masked_value(item, masked)
            for name, item in zip(named, value, strict=True)
        ]
    return value


def masked_text(text: str, masked: frozenset[str]) -> str:
    """Text that was meant to be JSON, with what follows a sensitive key replaced as far as it can be told."""
    for name in masked:
        key = re.compile(rf'("{re.escape(name)}"\s*:\s*)("(?:[^"\\]|\\.)*"?|[^,}}\]]*)', re.IGNORECASE)
        text = key.sub(rf'\1"{MASK}"', text)
    return text


def _cut(text: str, *, corrupt: bool) -> Shown:
    return Shown(text[:MOST], corrupt, len(text) > MOST)
