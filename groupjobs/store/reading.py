"""Turns replies of the scripts into Python values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from groupjobs.store.replies import (
    ConsumerState,
    Entry,
    GroupState,
    Overview,
    Reservation,
    Snapshot,
    StepReply,
    WorkerState,
)


def text(value: Any) -> str:
    """A reply as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def rows(flat: Sequence[Any], width: int) -> Iterator[tuple[Any, ...]]:
    """A flat reply as rows of `width` values."""
    return zip(*[iter(flat)] * width, strict=True)


def optional(value: Any) -> int | None:
    """A number, or None for ''."""
    return None if value in (b"", "") else int(value)


def pairs(flat: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Runs with their fences."""
    return tuple((int(run), int(fence)) for run, fence in rows(flat, 2))


def kills(flat: Sequence[Any]) -> tuple[tuple[str, int], ...]:
    """Consumers, each with a run that is cancelled by force."""
    return tuple(sorted((text(nonce), int(run)) for nonce, run in rows(flat, 2)))


def runs(values: Sequence[Any]) -> tuple[int, ...]:
    """Run ids, sorted."""
    return tuple(sorted(int(value) for value in values))


def reservation(row: tuple[Any, ...]) -> Reservation:
    """One reservation of a `step`."""
    run, fence, life, alone, group, healed, interrupted, overdue = row
    return Reservation(
        int(run), int(fence), int(life), int(alone) > 0, group.decode(), int(healed), interrupted == 1, overdue == 1
    )


def step_reply(reply: Sequence[Any]) -> StepReply:
    """The answer of `step`."""
    state, bells, ended, stale, reserved = reply
    reservations = tuple(map(reservation, rows(reserved, 8)))
    return StepReply(text(state), reservations, pairs(stale), bells, ended == 1)


def overview(reply: Sequence[Any]) -> Overview:
    """The answer of `overview`."""
    state, epoch, age, paused, ready, later, scheduled, dead, held, workers, consumers, stats, ages = reply
    return Overview(
        text(state), text(epoch), paused == 1, ready, later, scheduled, held, dead,
        tuple(map(worker_state, workers)),
        tuple(map(consumer_state, consumers)),
        {text(name): int(number) for name, number in rows(stats, 2)},
        age,
        optional(ages[0]),
        ages[1],
        optional(ages[2]),
    )  # fmt: skip


def worker_state(row: Sequence[Any]) -> WorkerState:
    """One worker of an `overview`."""
    worker, beat_age, slots, leaving, served_age = row
    return WorkerState(text(worker), beat_age, slots, leaving == 1, optional(served_age))


def consumer_state(row: Sequence[Any]) -> ConsumerState:
    """One consumer of an `overview`."""
    nonce, worker, pid, seen_age, leases = row
    return ConsumerState(text(nonce), text(worker), int(pid), seen_age, leases)


def snapshot(replies: Sequence[Sequence[Any]]) -> Snapshot:
    """The answers of `snapshot`, as one; of a queue that lost its memory between two of them it says so."""
    state, epoch, age, _, _ = next((reply for reply in replies if text(reply[0]) == "rebuild"), replies[-1])
    return Snapshot(
        text(state),
        text(epoch),
        age,
        {int(e[0]): entry(e) for reply in replies for e in reply[3]},
        {text(g[0]): group_state(g) for reply in replies for g in reply[4]},
    )


def entry(row: Sequence[Any]) -> Entry:
    """One entry of a `snapshot`."""
    _, place, life, fence, alone, again, consumer, worker, ghost, silent, healed, wait, interrupted, overdue = row
    return Entry(
        text(place), int(life), int(fence), int(alone), int(again), text(consumer), text(worker),
        ghost == 1, silent == 1, int(healed), int(wait), interrupted == 1, overdue == 1,
    )  # fmt: skip


def group_state(row: Sequence[Any]) -> GroupState:
    """One group of a `snapshot`."""
    _, ready, later, waiting, held, flag, version, strays = row
    return GroupState(ready == 1, optional(later), waiting, runs(held), flag == 1, int(version), runs(strays))
