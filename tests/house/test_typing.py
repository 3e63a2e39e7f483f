"""A user's project under `mypy --strict`: argument types flow from the function through `enqueue`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

api = pytest.importorskip("mypy.api")

# Each comment `E: code` is an error that mypy must report on this line; every other line must be free of errors.
PROGRAM = """
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, assert_type

import groupjobs
from groupjobs import Retry, atomic_hook, job


@job
def plain(number: int) -> str:
    return str(number)


@job(group="order:{order}", max_attempts=3, backoff=[1, timedelta(minutes=1)], on_retry="yield")
def ship(order: int, step: str = "pay") -> float:
    if order < 0:
        raise Retry(after=30)
    return 1.0


@job(takes_context=True, atomic=True)
def post(context: Any, statement: int) -> None:
    for line in context.track([1, 2, 3]):
        context.progress(message=str(line))


@job(group=lambda order: f"order:{order}", dedup="{order}", on_duplicate="coalesce")
async def mail(order: int) -> bytes:
    return b""


@atomic_hook
def told(run: Any, reason: str) -> None: ...


@job(on_abandoned=told, priority=3)
def reported() -> None: ...


def calls() -> None:
    plain.enqueue(1)
    plain.enqueue("1")  # E: arg-type
    plain.enqueue()  # E: call-arg
    plain.enqueue(1, 2)  # E: call-arg
    ship.enqueue(1)
    ship.enqueue(order=1, step="pack")
    ship.enqueue(1, 2)  # E: arg-type
    ship.enqueue(order=1, stpe="pack")  # E: call-arg
    ship.using(group="fleet", priority=2).enqueue(1, 2)  # E: arg-type
    ship.using(grup="fleet")  # E: call-arg
    ship.using(on_retry="never")  # E: typeddict-item,arg-type
    ship.using(max_attempts=2).enqueue_many([{"order": 1}, ((2,), {})])
    post.enqueue(7)
    post.enqueue(None, 7)  # E: call-arg,arg-type
    reported.enqueue()


async def asynchronous() -> None:
    result = await mail.aenqueue(1)
    await mail.aenqueue("1")  # E: arg-type
    assert_type(result.return_value, bytes)


def results() -> None:
    result = ship.enqueue(1)
    assert_type(result.return_value, float)
    assert_type(groupjobs.wait(result, timeout=1).return_value, float)
    assert_type(ship.call(1), float)
    shown: Sequence[str] = [found.id for found in plain.enqueue_many([{"number": 1}])]
    print(shown)


@job(grop="x")  # E: call-overload
def misspelt() -> None: ...


@job(max_attempts="3")  # E: call-overload
def wrong() -> None: ...
"""


def test_a_users_project_is_checked(tmp_path: Path) -> None:
    program = tmp_path / "jobs.py"
    program.write_text(PROGRAM)
    options = ("--strict", "--config-file=", "--cache-dir", str(tmp_path / "cache"), "--no-error-summary")
    shown, trouble, _ = api.run([*options, str(program)])
    assert trouble == ""
    found: dict[int, set[str]] = {}
    for line, code in re.findall(r"jobs\.py:(\d+): error: .*\[([\w-]+)\]", shown):
        found.setdefault(int(line), set()).add(code)
    wanted = {
        number: set(codes[1].split(","))
        for number, line in enumerate(PROGRAM.splitlines(), start=1)
        if (codes := re.search(r"# E: ([\w,-]+)", line))
    }
    wrong = {number for number in {*found, *wanted} if not found.get(number, set()) & wanted.get(number, set())}
    assert wrong == set(), f"lines {sorted(wrong)}:\n{shown}"
