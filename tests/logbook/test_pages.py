"""The pages: upload, progress, fleet and logbooks."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from groupjobs.models import JobRun
from project.demo import rows, verify
from project.logbook import entering, importing
from project.logbook.jobs import log_leg
from project.logbook.models import Aircraft, Leg, Upload

Save = Callable[[bytes], Upload]

pytestmark = pytest.mark.django_db


@pytest.fixture
def imported(save: Save, bad_file: bytes) -> Upload:
    """An upload whose legs are enqueued, none of them entered."""
    upload = save(bad_file)
    importing.import_upload(upload.pk, log_leg.enqueue_many, lambda line, lines: None)
    upload.refresh_from_db()
    return upload


@pytest.fixture
def entered(imported: Upload) -> Upload:
    """An upload whose legs are entered, as the runs would do it."""
    for run in JobRun.objects.filter(job=log_leg.job_name).order_by("id"):
        entering.enter(**run.kwargs)
    return imported


def end(run: JobRun, status: str, reason: str) -> None:
    JobRun.objects.filter(pk=run.pk).update(status=status, reason=reason, finished_at=timezone.now())


def progress(client: Client, upload: Upload) -> dict[str, object]:
    answer: dict[str, object] = client.get(f"/uploads/{upload.pk}/progress.json").json()
    return answer


def test_upload_leads_to_the_page_of_the_file(client: Client, bad_file: bytes) -> None:
    answer = client.post("/", {"file": SimpleUploadedFile("<b>week.csv", bad_file)}, follow=True)
    upload = Upload.objects.get()
    assert answer.redirect_chain == [(f"/uploads/{upload.pk}/", 302)]
    assert bytes(upload.content) == bad_file
    page = answer.content.decode()
    assert "&lt;b&gt;week" in page
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in page


def test_upload_needs_a_csrf_token(bad_file: bytes) -> None:
    answer = Client(enforce_csrf_checks=True).post("/", {"file": SimpleUploadedFile("week.csv", bad_file)})
    assert (answer.status_code, Upload.objects.count()) == (403, 0)


@pytest.mark.parametrize("data", [{}, {"file": SimpleUploadedFile("empty.csv", b"")}])
def test_no_file_or_an_empty_one_is_refused_by_the_form(client: Client, data: dict[str, SimpleUploadedFile]) -> None:
    answer = client.post("/", data)
    assert answer.status_code == 422
    assert "errorlist" in answer.content.decode()
    assert (Upload.objects.count(), JobRun.objects.count()) == (0, 0)


def test_progress_from_the_upload_to_the_last_leg(client: Client, save: Save, bad_file: bytes) -> None:
    upload = save(bad_file)
    assert progress(client, upload)["state"] == "importing"
    importing.import_upload(upload.pk, log_leg.enqueue_many, lambda line, lines: None)
    now = progress(client, upload)
    assert (now["state"], now["over"], now["legs"], now["entered"], now["refused"]) == ("entering", False, 3, 0, 3)
    first, second, third = JobRun.objects.filter(job=log_leg.job_name).order_by("id")
    entering.enter(**first.kwargs)
    end(second, "FAILED", "")
    now = progress(client, upload)
    assert (now["entered"], now["failed"], now["percent"]) == (1, 1, 66)
    entering.enter(**third.kwargs)
    now = progress(client, upload)
    assert (now["state"], now["over"], now["percent"]) == ("finished", True, 100)


def test_a_finished_page_lists_the_refused_lines_and_polls_no_more(client: Client, entered: Upload) -> None:
    page = client.get(f"/uploads/{entered.pk}/").content.decode()
    assert "tailnum is empty" in page
    assert "too short: 4 fields, the header has 9" in page
    assert "refresh" not in page
    assert "<script" not in page


def test_an_unusable_file_and_a_failed_import_say_why(client: Client, save: Save, bad_file: bytes) -> None:
    nonsense = save(b"a,b\n")
    importing.import_upload(nonsense.pk, log_leg.enqueue_many, lambda line, lines: None)
    assert "missing columns: flight_date" in client.get(f"/uploads/{nonsense.pk}/").content.decode()
    failed = save(bad_file)
    end(JobRun.objects.get(group=failed.group), "ABANDONED", "too_many_losses")
    now = progress(client, failed)
    assert (now["state"], now["over"]) == ("unusable", True)
    assert now["problem"] == "the import ended as ABANDONED: too_many_losses"


def test_the_fleet_can_be_searched(client: Client, entered: Upload) -> None:
    assert re.findall(r'href="/aircraft/(\w+)/"', client.get("/aircraft/").content.decode()) == ["N14228", "N619AA"]
    assert re.findall(r'href="/aircraft/(\w+)/"', client.get("/aircraft/?q=n6").content.decode()) == ["N619AA"]
    assert "None." in client.get("/aircraft/?q=%3Cb%3E&page=7").content.decode()


def test_a_logbook_shows_its_legs_and_whether_its_chain_holds(client: Client, entered: Upload) -> None:
    page = client.get("/aircraft/N14228/").content.decode()
    assert "unbroken" in page
    assert page.count("EWR → IAH") == 2
    assert "2800" in page
    Leg.objects.filter(aircraft__tail="N14228", number=1).delete()
    page = client.get("/aircraft/N14228/").content.decode()
    assert "broken at leg 1" in page
    assert "expected leg 1, found leg 2" in page


def test_unknown_files_and_aircraft_are_not_found(client: Client) -> None:
    for address in ("/uploads/9/", "/uploads/9/progress.json", "/aircraft/N9/"):
        assert client.get(address).status_code == 404


def test_no_page_has_a_script_or_style_of_its_own(client: Client, imported: Upload) -> None:
    for address in ("/", f"/uploads/{imported.pk}/", "/aircraft/"):
        page = client.get(address).content.decode()
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", page), address


def test_the_demo_judges_the_rows_against_the_file(entered: Upload, bad_file: bytes, tmp_path: Path) -> None:
    file = tmp_path / "week.csv"
    file.write_bytes(bad_file)
    expected = verify.read_file(file, rows.refused(entered.pk).keys())
    assert verify.verify(expected, rows.logbooks(entered.pk)).good
    Leg.objects.filter(aircraft__tail="N619AA").update(chain="0" * 64)
    assert verify.verify(expected, rows.logbooks(entered.pk)).complaints == [
        "N619AA: the chain breaks at leg 1 (line 4 of the file)"
    ]
    Leg.objects.filter(aircraft__tail="N619AA").delete()
    assert verify.verify(expected, rows.logbooks(entered.pk)).lost == 1


def test_the_demo_judges_only_the_file_it_uploaded(
    entered: Upload, save: Save, bad_file: bytes, tmp_path: Path
) -> None:
    again = save(bad_file)
    importing.import_upload(again.pk, log_leg.enqueue_many, lambda line, lines: None)
    for run in rows.leg_runs(again.pk):
        entering.enter(**run.kwargs)
    assert Aircraft.objects.get(tail="N14228").legs == 4
    file = tmp_path / "week.csv"
    file.write_bytes(bad_file)
    for upload in (entered, again):
        expected = verify.read_file(file, rows.refused(upload.pk).keys())
        assert verify.verify(expected, rows.logbooks(upload.pk)).good
        assert (rows.runs(upload.pk).runs, rows.runs(upload.pk).groups) == (3, 2)
