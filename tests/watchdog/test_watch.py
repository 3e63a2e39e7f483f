from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from groupjobs.store import Outcome, Publication
from groupjobs.watchdog.home import Execution, incarnation
from groupjobs.watchdog.processes import Process, look
from groupjobs.watchdog.pulse import Pulse
from groupjobs.watchdog.roll import Roll
from project.embedded import EmbeddedValkey
from tests.servers.waiting import wait_until
from tests.watchdog.conftest import QUEUE, TTL, Watched, holds

Child = Callable[[], "subprocess.Popen[bytes]"]


def test_it_beats_more_often_than_the_ttl_allows(watched: Watched) -> None:
    holds(lambda: (record := watched.record()) and record.beat_age_ms < 1000 * TTL / 2, 3 * TTL)


def test_a_dead_child_is_reaped_at_once_and_its_brother_is_kept(watched: Watched, child: Child) -> None:
    one, other = child(), child()
    watched.serves("one", one.pid, 1)
    watched.serves("other", other.pid, 2)
    one.kill()
    wait_until(lambda: set(watched.consumers()) == {"other"}, 0.5, "the consumer of the dead child is reaped")
    entries = watched.store.snapshot([(1, "group 1"), (2, "group 2")]).entries
    assert (entries[1].place, entries[2].place) == ("line", "leased")
    wait_until(lambda: not watched.home.executions.get("one"), what="its record is gone")


def test_a_child_that_died_before_the_watchdog_looked_is_reaped(watched: Watched, child: Child) -> None:
    process = child()
    os.kill(watched.keeper.pid, signal.SIGSTOP)
    watched.serves("one", process.pid, 1)
    process.kill()
    os.kill(watched.keeper.pid, signal.SIGCONT)
    wait_until(lambda: not watched.consumers(), what="its consumer is reaped")


def test_a_consumer_that_signed_off_without_telling_redis_is_reaped(
    watched: Watched, child: Child, valkey: EmbeddedValkey
) -> None:
    watched.serves("one", child().pid, 1)
    valkey.flush()
    wait_until(lambda: "one" in watched.consumers(), what="the watchdog has seen it")
    watched.executions.sign_off("one")
    wait_until(lambda: not watched.consumers(), what="its consumer is reaped")


def test_a_consumer_that_redis_has_struck_off_is_not_brought_back(watched: Watched, child: Child) -> None:
    process = child()
    consumer = watched.serves("one", process.pid, 1)
    watched.store.goodbye(consumer)
    wait_until(lambda: not watched.home.executions.get("one"), what="the watchdog lists it no longer")
    watched.executions.deadline("one", 1, 1, 0.0)
    assert not watched.home.executions.get("one")


def test_its_list_survives_a_flush(watched: Watched, child: Child, valkey: EmbeddedValkey) -> None:
    watched.serves("one", child().pid, 1)
    valkey.flush()
    wait_until(lambda: "one" in watched.consumers(), TTL, "the watchdog lists it again")


def test_a_stopped_child_is_reaped_after_the_ttl_and_its_brother_is_kept(watched: Watched, child: Child) -> None:
    one, other = child(), child()
    watched.serves("one", one.pid, 1)
    watched.serves("other", other.pid, 2)
    one.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    wait_until(lambda: "one" not in watched.consumers(), 10, "it is reaped")
    assert time.monotonic() - began >= TTL
    assert "other" in watched.consumers()


def test_a_child_that_is_stopped_for_a_moment_is_kept(watched: Watched, child: Child) -> None:
    process = child()
    watched.serves("one", process.pid, 1)
    process.send_signal(signal.SIGSTOP)
    holds(lambda: "one" in watched.consumers(), TTL / 2)
    process.send_signal(signal.SIGCONT)
    holds(lambda: "one" in watched.consumers(), 2 * TTL)


def test_a_hard_time_limit_kills_the_child_and_reaps_it(watched: Watched, child: Child) -> None:
    process = child()
    watched.serves("one", process.pid, 1)
    watched.executions.deadline("one", 1, 1, 0.3)
    began = time.monotonic()
    assert process.wait(5) == -signal.SIGKILL
    assert time.monotonic() - began >= 0.25
    wait_until(lambda: not watched.consumers(), 1, "its consumer is reaped")


def test_a_child_is_killed_by_force_and_what_it_has_then_pays_nothing(watched: Watched, child: Child) -> None:
    """The order names run 1. Its consumer may have gone on to run 2 in the moment of the kill."""
    process = child()
    consumer = watched.serves("one", process.pid, 1)
    watched.store.enqueue([Publication(2, "group 2")])
    (first,) = watched.store.step(consumer, 1, 1).reservations
    assert watched.store.step(consumer, 2, 1, [Outcome(1, first.fence, "hold")]).reservations[0].run == 2
    assert watched.store.withdraw([(1, "group 1", 1)], force=True) == ("held",)
    assert process.wait(5) == -signal.SIGKILL
    assert watched.home.killed.get("one") == {
        "queue": QUEUE, "pid": process.pid, "start": watched.home.killed.get("one")["start"],
        "run": 0, "fence": 0, "over": False,
    }  # fmt: skip
    wait_until(lambda: not watched.consumers(), 1, "its consumer is reaped")
    entries = watched.store.snapshot([(1, "group 1"), (2, "group 2")]).entries
    assert [entries[run].interrupted for run in (1, 2)] == [True, True]


def test_an_order_to_kill_for_a_run_is_not_carried_out_on_another(watched: Watched, child: Child) -> None:
    process = child()
    watched.serves("one", process.pid, 1)
    watched.executions.deadline("one", 2, 7, 60.0)
    watched.store.withdraw([(1, "group 1", 1)], force=True)
    holds(lambda: process.poll() is None, 2 * TTL / 5)
    watched.executions.deadline("one", 1, 1, 60.0)
    assert process.wait(5) == -signal.SIGKILL


def test_a_kill_that_comes_too_late_for_its_run_costs_the_next_one_nothing(watched: Watched, child: Child) -> None:
    """Its limit was over, and it ended all the same before the signal came."""
    roll = Roll(watched.home, Process(os.getpid()), TTL)
    os.kill(watched.keeper.pid, signal.SIGSTOP)
    process = child()
    watched.serves("one", process.pid, 2)
    watched.executions.deadline("one", 1, 1, 0.0)
    roll.call()
    assert [known["run"] for known in roll.kill_overdue()] == [1]
    watched.executions.deadline("one", 2, 2, 60.0)
    process.wait(5)
    roll.call()
    assert (roll.dead["one"]["over"], roll.dead["one"]["struck"], roll.dead["one"]["run"]) == (False, True, 2)
    os.kill(watched.keeper.pid, signal.SIGCONT)


def test_the_end_of_a_worker_still_tells_which_run_was_overdue(watched: Watched, child: Child) -> None:
    watched.serves("one", child().pid, 1)
    fence = watched.store.snapshot([(1, "group 1")]).entries[1].fence
    pulse = Pulse(QUEUE, watched.store, watched.home, os.getpid(), 2, TTL)
    known = Execution(queue=QUEUE, worker=watched.worker, pid=1, run=1, fence=fence, over=True)
    pulse.end(False, {"one": known})
    assert watched.store.snapshot([(1, "group 1")]).entries[1].overdue


def test_a_run_that_ends_within_its_limit_is_left_alone(watched: Watched, child: Child) -> None:
    process = child()
    watched.serves("one", process.pid, 1)
    watched.executions.deadline("one", 1, 1, 0.3)
    watched.executions.clear("one")
    holds(lambda: process.poll() is None and "one" in watched.consumers(), 0.6)


def test_a_limit_never_kills_the_main_process(watched: Watched) -> None:
    watched.serves("one", os.getpid(), 1)
    watched.executions.deadline("one", 1, 1, 0.0)
    holds(lambda: "one" in watched.consumers(), 0.3)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_watchdog_that_died_or_stands_still_is_replaced(watched: Watched, child: Child, how: signal.Signals) -> None:
    process = child()
    watched.serves("one", process.pid, 1)
    watched.executions.deadline("one", 1, 1, 4.0)
    old = watched.keeper.pid
    os.kill(old, how)
    wait_until(lambda: watched.keeper.pid != old, what="a new watchdog")
    holds(lambda: watched.record() and "one" in watched.consumers(), 2 * TTL)
    assert process.wait(5) == -signal.SIGKILL  # the new one knows of the limit
    wait_until(lambda: not watched.consumers(), 1, "its consumer is reaped")


def test_an_incarnation_judged_dead_stays_dead_and_the_worker_goes_on_as_another(watched: Watched) -> None:
    watched.store.reap(worker=watched.worker)
    wait_until(lambda: watched.home.worker_of(QUEUE) != watched.worker)
    new = watched.home.worker_of(QUEUE) or ""
    wait_until(lambda: [state.worker for state in watched.store.overview().workers] == [new], what="it beats")
    assert new.startswith(watched.worker.rpartition(":")[0] + ":")


def test_b8_an_outage_of_redis_longer_than_the_ttl_robs_nobody(
    watched: Watched, child: Child, valkey: EmbeddedValkey
) -> None:
    watched.serves("one", child().pid, 1)
    valkey.pause()
    holds(lambda: watched.home.executions.get("one"), 3 * TTL)
    valkey.resume()
    holds(lambda: watched.store.tick("another", 0).state and "one" in watched.consumers(), 2 * TTL)


def test_leaving_is_announced_at_once(watched: Watched) -> None:
    watched.home.leave()
    wait_until(lambda: (found := watched.record()) and found.leaving, 0.3, "the shutdown is announced")


def test_children_that_die_in_a_shutdown_are_interruptions(watched: Watched, child: Child) -> None:
    process = child()
    watched.serves("one", process.pid, 1)
    watched.home.leave()
    process.kill()
    wait_until(lambda: not watched.consumers(), 1)
    assert watched.store.snapshot([(1, "group 1")]).entries[1].interrupted


def test_after_an_end_in_order_nothing_is_left(watched: Watched) -> None:
    watched.store.enqueue([Publication(1, "g")])
    pid = watched.keeper.pid
    watched.home.finish()
    assert watched.keeper.finish(2)
    assert look(pid) is None
    assert watched.store.overview().workers == ()
    assert not watched.home.folder.exists()


def test_its_command_line_tells_no_secret_and_terminals_do_not_reach_it(watched: Watched) -> None:
    pid = watched.keeper.pid
    assert Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:] == [b"-m", b"groupjobs.watchdog", b""]
    assert os.getsid(pid) == pid
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(pid, number)
    holds(lambda: watched.keeper.pid == pid and not Process(pid).ended(), 0.3)


def test_identities_differ() -> None:
    assert incarnation(1) != incarnation(1)
