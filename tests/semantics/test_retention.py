from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from django.test import override_settings

from groupjobs import control, ledger, recovery
from groupjobs.ledger import Attempt, later, record
from groupjobs.models import JobAttempt, JobProgress, JobRun
from groupjobs.store import Store
from tests.core.rows import change, new

DAY = 86400

pytestmark = pytest.mark.django_db(transaction=True)


def ended(status: str, days: float, **columns: Any) -> JobRun:
    [run] = new(group=columns.pop("group", ""))
    return change(run, status=status, finished_at=later(-days * DAY), **columns)


def prune(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("prune_runs", "--json", *arguments, stdout=out)
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def left() -> set[int]:
    return set(JobRun.objects.values_list("pk", flat=True))


def test_each_status_has_its_own_time() -> None:
    old = [ended("SUCCEEDED", 8), ended("CANCELLED", 8), ended("FAILED", 91)]
    kept = [ended("SUCCEEDED", 6), ended("CANCELLED", 6), ended("FAILED", 89)]
    kept.append(ended("ABANDONED", 9999, abandon_reported_at=Now()))
    dry = prune("--dry-run")
    assert dry == {"dry_run": True, "total": 3, "pruned": {"SUCCEEDED": 1, "CANCELLED": 1, "FAILED": 1}}
    assert left() == {run.pk for run in old + kept}
    assert prune() == {**dry, "dry_run": False}
    assert left() == {run.pk for run in kept}
    assert prune()["total"] == 0


def test_what_belongs_to_a_run_goes_with_it() -> None:
    run, other = ended("FAILED", 91), ended("FAILED", 1)
    record([Attempt(run.pk, 1, "failed"), Attempt(other.pk, 2, "failed")])
    assert prune()["total"] == 1
    assert [attempt.run_id for attempt in JobAttempt.objects.all()] == [other.pk]
    assert [progress.pk for progress in JobProgress.objects.all()] == [other.pk]


def test_live_held_and_unreported_runs_stay() -> None:
    waiting, running = new(2)
    change(waiting, enqueued_at=later(-9999 * DAY))
    change(running, status="RUNNING", enqueued_at=later(-9999 * DAY))
    held = ended("FAILED", 9999, group="h")
    control.hold("default", "h")
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "RETENTION": {"abandoned": DAY, "succeeded": DAY}}):
        unreported = ended("ABANDONED", 9)
        reported = ended("ABANDONED", 9, abandon_reported_at=Now())
        assert prune()["pruned"]["ABANDONED"] == 1
    assert left() == {waiting.pk, running.pk, held.pk, unreported.pk}
    assert reported.pk not in left()
    control.resume("default", "h")
    assert prune()["pruned"]["FAILED"] == 1


def test_a_paused_queue_does_not_keep_its_runs() -> None:
    ended("SUCCEEDED", 8)
    control.hold("default", "")
    assert prune()["total"] == 1


def test_a_limit_takes_the_oldest_first() -> None:
    runs = [ended("SUCCEEDED", days) for days in (8, 10, 9)]
    assert prune("--limit", "2")["total"] == 2
    assert left() == {runs[0].pk}


def test_f1_a_large_backlog_goes_in_bounded_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from groupjobs.recovery import pruning

    monkeypatch.setattr(pruning, "BATCH", 10)
    for run in new(35):
        change(run, status="SUCCEEDED", finished_at=later(-8 * DAY))
    commits: list[int] = []
    real = ledger.prune

    def noted(*arguments: Any) -> int:
        commits.append(real(*arguments))
        return commits[-1]

    monkeypatch.setattr(ledger, "prune", noted)
    assert prune()["total"] == 35
    assert [count for count in commits if count] == [10, 10, 10, 5]


def test_the_sweep_prunes_its_queue(store: Store) -> None:
    run, other = ended("SUCCEEDED", 8), ended("SUCCEEDED", 8, queue="elsewhere")
    recovery.sweep("default")
    assert left() == {other.pk}
    assert run.pk not in left()


@pytest.mark.parametrize("arguments", [["--queue", "nowhere"], ["--limit", "0"]])
def test_bad_arguments_exit_with_2(arguments: list[str]) -> None:
    with pytest.raises(CommandError) as refused:
        prune(*arguments)
    assert refused.value.returncode == 2


def test_it_says_what_it_did() -> None:
    ended("SUCCEEDED", 8)
    out = io.StringIO()
    call_command("prune_runs", stdout=out)
    assert out.getvalue() == "Pruned 1 runs: 1 SUCCEEDED.\n"
