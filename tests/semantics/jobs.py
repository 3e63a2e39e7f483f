"""Jobs with the semantics that these tests are about. What they do is said in the journal, label first."""

from __future__ import annotations

from typing import Any

from groupjobs import job
from tests.jobsapp.journal import say, wait_at

# --- dedup


@job(dedup="{key}", group="{group}")
def once(key: str, label: str = "", gate: str = "", group: str = "g") -> str:
    say("begins", label)
    if gate:
        wait_at(gate)
    return label


@job(dedup="{key}")
def other_once(key: str) -> None:
    say("other", key)


@job(dedup="{key}", on_duplicate="replace", group="{key}")
def newest(key: str, label: str = "", gate: str = "") -> str:
    say("begins", label)
    if gate:
        wait_at(gate)
    return label


@job(dedup="{key}", on_duplicate="coalesce")
def coalesced(key: str, label: str = "", gate: str = "") -> str:
    say("begins", label)
    if gate:
        wait_at(gate)
    say("ends", label)
    return label


@job(dedup=lambda key, **_: key)
def sometimes_once(key: str | None, label: str = "") -> Any:
    say("begins", label)
    return label
