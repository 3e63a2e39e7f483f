"""What is left in Redis when all runs have ended: a constant set of keys."""

from __future__ import annotations

import re
from typing import Final

from tests.chaos.chaos import Chaos

CONSTANT: Final = re.compile(
    r"\{groupjobs:default\}:(epoch|clock|fence|stats|workers|slots|bells|ended|consumers|groups|turn:.*)"
)


def settled_keys(chaos: Chaos, seconds: float) -> list[str]:
    """Keys beyond the constant ones, after up to so many seconds for the fleet to clear up."""
    waited = 0.0
    while (left := keys_left(chaos)) and waited < seconds:
        chaos.work(0.5)
        waited += 0.5
    return left


def keys_left(chaos: Chaos) -> list[str]:
    """Keys that belong to runs, groups or consumers."""
    with chaos.valkey.client() as client:
        names = sorted(key.decode(errors="replace") for key in client.scan_iter(count=1000))
    return [name for name in names if not CONSTANT.fullmatch(name)]
