from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import groupjobs
from groupjobs import control, recovery
from groupjobs.errors import Refused
from groupjobs.models import JobGroup, JobProgress, JobRun
from groupjobs.store import Store, store_for
from groupjobs.store.keys import line_name
from project.embedded import EmbeddedValkey
from tests.core.rows import QUEUE, again, attempts, change, new, race
from tests.core.serving import drain, known, pk_of, serving, statuses
from tests.jobsapp.jobs import counts, fails, note, obeys, waits
from tests.semantics.jobs import fails_at_the_gate
from tests.servers.waiting import wait_until

Said = Callable[[], list[list[Any]]]


def failed(label: str = "a", **options: Any) -> JobRun:
    result = fails.using(**options).enqueue(label)
    drain(lambda: statuses([result]) == ["FAILED"])
    return again(pk_of(result))


# --- retry


def test_i2_retry_begins_a_new_life_in_the_same_row(store: Store, journal: Said) -> None:
    run = failed()
    assert control.retry([run.pk], by="Ada").changed == [run.pk]
    assert (again(run).status, again(run).life, again(run).reason) == ("READY", 2, "retried by Ada")
    drain()
    assert (again(run).status, again(run).life, again(run).failures) == ("FAILED", 2, 1)
    assert [outcome for _, outcome in attempts(run)] == ["failed", "failed"], "history is kept"
    assert again(run).fence > run.fence


def test_i2_a_second_click_changes_nothing(store: Store, journal: Said) -> None:
    run = failed()
    control.retry([run.pk])
    assert str(control.retry([run.pk])) == "0 changed, 1 skipped: already READY"
    reports = race(*[lambda: control.cancel([run.pk])] * 3)
    assert sorted(len(report.changed) for report in reports) == [0, 0, 1]


def test_i2_two_people_retry_at_once(store: Store) -> None:
    run = failed()
    reports = race(*[lambda: control.retry([run.pk])] * 4)
    assert sum(len(report.changed) for report in reports) == 1
    assert again(run).life == 2


def test_retry_as_new_is_a_new_run_at_the_end_of_its_line(store: Store, journal: Said) -> None:
    run = failed(group="g", max_attempts=1, priority=7, labels={"tenant": "t"})
    control.hold(QUEUE, "g")
    behind = note.enqueue("behind")
    [made] = control.retry([run.pk], as_new=True).changed
    copy, old = again(made), again(run)
    assert (copy.args, copy.group, copy.priority, copy.life, copy.labels) == (["a"], "g", 7, 1, {"tenant": "t"})
    assert (old.status, old.life, old.labels) == ("FAILED", 1, {"tenant": "t", "retried_as": made})
    assert str(control.retry([run.pk], as_new=True)) == "0 changed, 1 skipped: retried already"
    control.resume(QUEUE, "g")
    drain()
    assert journal() == [["a"], ["behind"], ["a"]]
    assert statuses([behind, made]) == ["SUCCEEDED", "FAILED"]


def test_retry_as_new_once_also_when_two_ask_at_once(store: Store) -> None:
    run = failed()
    reports = race(*[lambda: control.retry([run.pk], as_new=True)] * 3)
    assert sorted(len(report.changed) for report in reports) == [0, 0, 1]
    assert JobRun.objects.count() == 2


def test_a_live_run_is_not_retried(store: Store) -> None:
    result = note.enqueue("a")
    assert str(control.retry([pk_of(result)], as_new=True)) == "0 changed, 1 skipped: is READY"
    assert str(control.retry([pk_of(result), 10**9])) == "0 changed, 2 skipped: already READY; no such run"


def test_progress_starts_anew_with_a_new_life(store: Store) -> None:
    result = counts.enqueue(3)
    drain()
    progress = JobProgress.objects.get(run_id=pk_of(result))
    assert (progress.done, progress.total, progress.phase) == (3, 3, "counting")
    control.hold(QUEUE, "")
    control.retry([pk_of(result)])
    progress.refresh_from_db()
    assert (progress.done, progress.total, progress.message, progress.phase) == (0, None, "", "")
    assert progress.updated_at is None


# --- cancel


def test_i1_cancel_a_run_that_waits(store: Store, journal: Said) -> None:
    first, second = note.enqueue("a"), note.enqueue("b")
    assert control.cancel([pk_of(first)], by="Ada").changed == [pk_of(first)]
    assert known(store, [first, second]) == {pk_of(second)}
    drain()
    assert (journal(), again(pk_of(first)).reason) == ([["b"]], "requested by Ada")


def test_cancel_a_run_whose_handler_listens(store: Store, journal: Said, gate: Path) -> None:
    result = obeys.enqueue("a", str(gate))
    with serving():
        wait_until(journal)
        assert control.cancel([pk_of(result)]).changed
        wait_until(lambda: statuses([result]) == ["CANCELLED"])
    assert not gate.exists()


def test_a_run_that_does_not_listen_and_succeeds_has_succeeded(store: Store, journal: Said, gate: Path) -> None:
    result = waits.enqueue("a", str(gate))
    with serving():
        wait_until(journal)
        assert control.cancel([pk_of(result)]).changed
        gate.touch()
        wait_until(lambda: statuses([result]) == ["SUCCEEDED"])


def test_i1_a_failure_after_a_cancel_is_not_tried_again(store: Store, journal: Said, gate: Path) -> None:
    result = fails_at_the_gate.enqueue("a", str(gate))
    with serving():
        wait_until(journal)
        control.cancel([pk_of(result)])
        gate.touch()
        wait_until(lambda: statuses([result]) == ["CANCELLED"])
    assert journal() == [["begins", "a"]]


def test_i1b_cancel_then_retry_then_a_late_withdraw(store: Store, journal: Said) -> None:
    """Redis hears of the cancel last: the life decides, and the retried run is not stranded."""
    [run] = new()
    assert control.cancel([run.pk]).changed
    assert control.retry([run.pk]).changed
    store.withdraw([(run.pk, line_name(run.group, run.pk), 1)])
    drain()
    assert again(run).status == "SUCCEEDED"


def test_skip_the_head_of_a_line(store: Store, journal: Said) -> None:
    first, second = note.enqueue("a"), note.enqueue("b")
    assert control.skip_head(QUEUE, "g").changed == [pk_of(first)]
    drain()
    assert journal() == [["b"]]
    assert str(control.skip_head(QUEUE, "g")) == "0 changed, 0 skipped"
    assert statuses([first, second]) == ["CANCELLED", "SUCCEEDED"]


# --- hold and pause


def test_hold_and_resume_a_group(store: Store, journal: Said) -> None:
    assert control.hold(QUEUE, "g", "look", by="Ada").changed
    assert str(control.hold(QUEUE, "g")) == "0 changed, 1 skipped: held already"
    note.enqueue("a")
    note.enqueue("b", group="h")
    drain(lambda: journal() == [["b"]])
    assert store.overview().ready == 0
    assert control.resume(QUEUE, "g").changed
    assert str(control.resume(QUEUE, "g")) == "0 changed, 1 skipped: not held"
    drain()
    assert journal() == [["b"], ["a"]]


def test_pause_and_resume_a_queue(store: Store, journal: Said) -> None:
    assert control.hold(QUEUE, "").changed
    result = note.enqueue("a")
    drain(lambda: True)
    assert statuses([result]) == ["READY"]
    assert control.resume(QUEUE, "").changed
    drain()
    assert journal() == [["a"]]


def test_a_pause_survives_a_flush(store: Store, journal: Said, valkey: EmbeddedValkey) -> None:
    control.hold(QUEUE, "g")
    result = note.enqueue("a")
    valkey.flush()
    wait_until(lambda: recovery.rebuild(QUEUE), 20)
    drain(lambda: True)
    assert statuses([result]) == ["READY"]


def test_i1b_holds_that_cross_on_their_way(store: Store, journal: Said) -> None:
    """Redis hears of a resume before it hears of the hold that came earlier: the version decides."""
    control.hold(QUEUE, "g")
    version = store_for(QUEUE).snapshot([(1, "g")]).groups["g"].version
    control.resume(QUEUE, "g")
    assert not store.hold("g", version, True)
    note.enqueue("a")
    drain()
    assert journal() == [["a"]]


@pytest.mark.parametrize("act", [control.cancel, control.retry])
def test_many_runs_in_pages(store: Store, act: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "PAGE", 10)
    runs = new(35)
    if act is control.retry:
        for run in runs:
            change(run, status="FAILED")
    assert sorted(act([run.pk for run in runs]).changed) == [run.pk for run in runs]


# --- what names nothing


@pytest.mark.parametrize("runs", ["12", b"12", 12, None, {1: 2}, [True], [1.5], [None], ["a"], ["²"]])
def test_what_is_no_list_of_ids_is_refused(store: Store, runs: Any) -> None:
    run = note.enqueue("a")
    for act in (control.cancel, control.retry, lambda runs: control.reschedule(runs, None), groupjobs.progress):
        with pytest.raises(Refused, match=r"ids?, "):
            act(runs)
    assert statuses([run]) == ["READY"]


def test_the_id_of_a_result_names_its_run(store: Store) -> None:
    run = note.enqueue("a")
    assert str(control.cancel([run.id, pk_of(run), 2**70])) == "1 changed, 1 skipped: no such run"
    assert list(groupjobs.progress([run.id, 2**70])) == [pk_of(run)]


@pytest.mark.parametrize("group", ["a\0", "x" * 256, "\ud800", 5, None])
def test_what_can_be_no_group_is_refused(store: Store, group: Any) -> None:
    for act in (control.hold, control.resume, control.skip_head):
        with pytest.raises(Refused, match=r"^group "):
            act(QUEUE, group)
        with pytest.raises(Refused, match="there is no queue 'defautl'; did you mean 'default'"):
            act("defautl", "g")
    with pytest.raises(Refused, match="there is no queue"):
        control.limit_group("defautl", "g", concurrency=1)
    assert not JobGroup.objects.exclude(group="").exists()


def test_a_person_s_words_are_stored_whatever_they_hold(store: Store) -> None:
    run = note.enqueue("a")
    assert control.hold(QUEUE, "g", "why\0\ud800" + "y" * 300, by="Ada\0").changed
    assert control.cancel([run.id], by="Ada\0").changed
    assert again(pk_of(run)).reason == "requested by Ada\\x00"
    assert JobGroup.objects.get(group="g").reason.startswith("why\\x00\\ud800y")
