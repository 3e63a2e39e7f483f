"""The import: each leg is enqueued once, in the order of the file, however often the import starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.db import transaction

from groupjobs.models import JobProgress, JobRun
from project.logbook import importing
from project.logbook.jobs import import_flights, log_leg
from project.logbook.models import Refusal, Upload

Save = Callable[[bytes], Upload]

pytestmark = pytest.mark.django_db


class Crash(Exception):
    """The process ended here."""


def legs() -> list[JobRun]:
    return list(JobRun.objects.filter(job=log_leg.job_name).order_by("id"))


def nothing(line: int, lines: int) -> None:
    pass


def test_saving_a_file_enqueues_its_import(save: Save, bad_file: bytes) -> None:
    upload = save(bad_file)
    run = JobRun.objects.get(group=f"file:{upload.pk}")
    assert (run.job, run.kwargs, run.status) == (import_flights.job_name, {"upload_id": upload.pk}, "READY")
    assert JobProgress.objects.filter(run=run).exists()


@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_rolled_back_leaves_no_run(save: Save, bad_file: bytes) -> None:
    def save_and_crash() -> None:
        with transaction.atomic():
            save(bad_file)
            assert JobRun.objects.count() == 1
            raise Crash

    with pytest.raises(Crash):
        save_and_crash()
    assert (Upload.objects.count(), JobRun.objects.count()) == (0, 0)


def test_changing_a_saved_file_enqueues_nothing(save: Save, bad_file: bytes) -> None:
    upload = save(bad_file)
    upload.problem = "none"
    upload.save()
    assert JobRun.objects.count() == 1


def test_good_lines_become_runs_and_bad_ones_are_reported(save: Save, bad_file: bytes) -> None:
    upload = save(bad_file)
    assert importing.import_upload(upload.pk, log_leg.enqueue_many, nothing) == {"legs": 3, "refused": 3}
    assert [run.group for run in legs()] == ["aircraft:N14228", "aircraft:N619AA", "aircraft:N14228"]
    assert all(run.atomic for run in legs())
    refusals = dict(Refusal.objects.filter(upload=upload).values_list("line", "message"))
    assert list(refusals) == [3, 5, 6]
    assert refusals[6] == "tailnum is empty"
    upload.refresh_from_db()
    assert (upload.lines_read, upload.legs, upload.problem) == (7, 3, "")
    assert upload.imported_at is not None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a,b\n1,2\n", "line 1 (the header): missing columns: flight_date"),
        (b"", "the file is empty"),
    ],
)
def test_a_file_that_is_no_list_of_flights_says_why(save: Save, content: bytes, problem: str) -> None:
    upload = save(content)
    assert importing.import_upload(upload.pk, log_leg.enqueue_many, nothing) == {"legs": 0, "refused": 0}
    upload.refresh_from_db()
    assert upload.problem.startswith(problem)
    assert upload.imported_at is not None


def test_a_file_without_one_valid_line_says_so(save: Save, bad_file: bytes) -> None:
    header, _, bad, *_ = bad_file.splitlines()
    for content, problem in ((header, "no line below the header"), (header + b"\n" + bad, "no valid line (1 refused)")):
        upload = save(content)
        importing.import_upload(upload.pk, log_leg.enqueue_many, nothing)
        upload.refresh_from_db()
        assert upload.problem == problem


def check_all_once(upload: Upload) -> None:
    runs = legs()
    assert len(runs) == 6091
    assert [run.kwargs["flight"]["line"] for run in runs] == list(range(2, 6093))
    assert len({run.group for run in runs}) == 2048
    upload.refresh_from_db()
    assert (upload.legs, upload.lines_read) == (6091, 6092)


def test_an_import_that_crashes_goes_on_behind_what_it_committed(save: Save, flight_file: bytes) -> None:
    upload = save(flight_file)

    def crash_after_the_second_commit(line: int, lines: int) -> None:
        if line == 2001:
            raise Crash

    def crash_before_the_fourth_commit(calls: Iterable[dict[str, Any]]) -> None:
        log_leg.enqueue_many(calls)
        if len(legs()) == 4000:
            raise Crash

    with pytest.raises(Crash):
        importing.import_upload(upload.pk, log_leg.enqueue_many, crash_after_the_second_commit)
    assert len(legs()) == 2000
    with pytest.raises(Crash):
        importing.import_upload(upload.pk, crash_before_the_fourth_commit, nothing)
    assert len(legs()) == 3000
    importing.import_upload(upload.pk, log_leg.enqueue_many, nothing)
    check_all_once(upload)
    assert importing.import_upload(upload.pk, log_leg.enqueue_many, nothing) == {"legs": 6091, "refused": 0}
    check_all_once(upload)


def test_of_two_imports_beside_each_other_the_late_one_stops(save: Save, flight_file: bytes) -> None:
    upload = save(flight_file)

    def be_overtaken(line: int, lines: int) -> None:
        importing.import_upload(upload.pk, log_leg.enqueue_many, nothing)

    with pytest.raises(importing.Overtaken):
        importing.import_upload(upload.pk, log_leg.enqueue_many, be_overtaken)
    check_all_once(upload)
