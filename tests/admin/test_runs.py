"""The list of runs and the page of each."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings

from groupjobs.models import JobAttempt, JobProgress, JobRun
from tests.admin.conftest import MakeRun, Staff

LIST = "/admin/groupjobs/jobrun/"


def listed(client: Client, query: str = "") -> list[int]:
    answer = client.get(LIST + query)
    assert answer.status_code == 200, answer
    return [int(pk) for pk in re.findall(r'<a href="[^"]*/jobrun/(\d+)/change/[^"]*">#', answer.content.decode())]


def page(client: Client, run: JobRun) -> str:
    answer = client.get(f"{LIST}{run.pk}/change/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_list_shows_status_group_and_progress(boss: Client, make_run: MakeRun) -> None:
    run = make_run("RUNNING", group="<b>aircraft", attempts=1, max_attempts=5, losses=2)
    JobProgress.objects.filter(run=run).update(done=30, total=120, message="<i>leg", updated_at=run.enqueued_at)
    text = boss.get(LIST).content.decode()
    assert '<span class="gj-badge gj-running">RUNNING</span>' in text
    assert "&lt;b&gt;aircraft" in text
    assert "&lt;i&gt;leg" in text
    assert 'value="25.0"' in text
    assert "1 / 7" in text  # each loss has bought one more
    assert "2 lost" in text


def test_pages_go_down_and_up_by_id(boss: Client, make_run: MakeRun) -> None:
    ids = sorted((make_run().pk for _ in range(120)), reverse=True)
    first = boss.get(LIST).content.decode()
    older = re.search(r'href="(\?p=o\d+)" rel="next"', first)
    assert older
    assert listed(boss) == ids[:50]
    assert listed(boss, older[1]) == ids[50:100]
    assert listed(boss, f"?p=o{ids[99]}") == ids[100:]
    assert listed(boss, f"?p=n{ids[100]}") == ids[50:100]
    assert listed(boss, f"?p=n{ids[30]}") == ids[:50]
    assert listed(boss, "?p=nonsense") == ids[:50]
    assert listed(boss, "?p=o0") == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?status=READY", ["ready", "other"]),
        ("?status=live", ["ready", "running", "other"]),
        ("?status=bad", ["failed"]),
        ("?status=FAILED", ["failed"]),
        ("?queue=elsewhere", ["other"]),
        ("?job=some.job", ["running"]),
        ("?status=nonsense", []),
    ],
)
def test_filters(boss: Client, make_run: MakeRun, query: str, expected: list[str]) -> None:
    runs = {
        "ready": make_run(),
        "running": make_run("RUNNING", job="some.job"),
        "done": make_run("SUCCEEDED"),
        "failed": make_run("FAILED"),
        "other": make_run(queue="elsewhere"),
    }
    assert listed(boss, query) == sorted((runs[name].pk for name in expected), reverse=True)


@pytest.mark.parametrize(
    ("term", "found"),
    [("N142", [0]), ("aircraft:N619", [1]), ("log_leg", [0, 1]), ("tenant-7", [2]), ("München", [2]), ("nothing", [])],
)
def test_search(boss: Client, make_run: MakeRun, term: str, found: list[int]) -> None:
    runs = [
        make_run(group="aircraft:N14228"),
        make_run("SUCCEEDED", group="aircraft:N619AA"),
        make_run(group="", job="other", labels={"tenant": "tenant-7"}, kwargs={"city": "München"}),
    ]
    assert listed(boss, f"?q={term}") == sorted((runs[n].pk for n in found), reverse=True)


def test_search_by_id(boss: Client, make_run: MakeRun) -> None:
    run, _ = make_run(), make_run(group="g1")
    assert listed(boss, f"?q={run.pk}") == [run.pk]
    assert listed(boss, f"?q=%23{run.pk}") == [run.pk]
    assert listed(boss, "?q=999999999999999999999") == []


def test_nobody_guesses_a_masked_value_by_searching(boss: Client, make_run: MakeRun) -> None:
    make_run(kwargs={"password": "hunter2"})
    with override_settings(GROUPJOBS={"REDIS": "groupjobs", "MASKED": ["password"]}):
        assert listed(boss, "?q=hunter") == []


def test_the_list_never_counts_the_table(boss: Client, make_run: MakeRun) -> None:
    for _ in range(60):
        make_run()
    for query in ("", "?status=READY", "?p=o30", "?q=g"):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            boss.get(LIST + query)
        assert not [q["sql"] for q in queries if "COUNT(" in q["sql"].upper()], query
        assert len(queries) <= 9, [q["sql"] for q in queries]


def test_the_page_of_a_run(boss: Client, make_run: MakeRun) -> None:
    run = make_run("FAILED", kwargs={"tail": "<N1>"}, reason="too_many_losses", error={"class": "ValueError"})
    JobAttempt.objects.create(
        run=run, fence=7, outcome="failed", error_class="ValueError", message="<bad>", traceback="Traceback <x>",
        worker="host:1:a", started_at=run.enqueued_at, finished_at=run.enqueued_at,
    )  # fmt: skip
    text = page(boss, run)
    for part in ("&lt;N1&gt;", "too many losses", "ValueError", "&lt;bad&gt;", "Traceback &lt;x&gt;", "host:1:a"):
        assert part in text, part
    assert "<script" not in re.sub(r"<script[^>]*\ssrc=[^>]*>", "", text)


def test_sensitive_values_are_masked_by_name_at_any_depth(boss: Client, make_run: MakeRun) -> None:
    by_name = make_run(kwargs={"Password": "hunter2", "user": {"token": ["s3cr3t"]}, "city": "Bonn"})
    by_place = make_run(args=[7, "hunter2", {}], job="project.logbook.jobs.log_leg")
    unknown = make_run(args=["hunter2"], job="gone")
    with override_settings(GROUPJOBS={"REDIS": "groupjobs", "MASKED": ["password", "token", "tail"]}):
        for run in (by_name, by_place, unknown):
            text = page(boss, run)
            assert "hunter2" not in text
            assert "s3cr3t" not in text
            assert "•••••" in text
        assert "Bonn" in page(boss, by_name)


def test_j1_corrupt_arguments_are_shown_as_they_are(boss: Client, make_run: MakeRun) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("this database refuses text that is no JSON")
    run = make_run(kwargs={"password": "hunter2"})
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = on")
        cursor.execute(
            "update groupjobs_jobrun set args = %s, kwargs = %s", ["[1, <oops", '{"password": "hunter2", <oops']
        )
        cursor.execute("PRAGMA ignore_check_constraints = off")
    assert listed(boss) == [run.pk]
    assert listed(boss, "?q=oops") == [run.pk]
    text = page(boss, run)
    assert "[1, &lt;oops" in text
    assert "no valid JSON" in text
    with override_settings(GROUPJOBS={"REDIS": "groupjobs", "MASKED": ["password"]}):
        assert "hunter2" not in page(boss, run)


def test_a_run_without_progress_row_or_gone(boss: Client, make_run: MakeRun) -> None:
    run = make_run()
    JobProgress.objects.all().delete()
    assert listed(boss) == [run.pk]
    assert "Attempts" in page(boss, run)
    assert boss.get(f"{LIST}999/change/").status_code == 302
    assert boss.get(f"{LIST}nonsense/change/").status_code == 302


def test_nothing_is_added_changed_or_deleted(boss: Client, make_run: MakeRun) -> None:
    run = make_run()
    assert boss.get(f"{LIST}add/").status_code == 403
    assert boss.get(f"{LIST}{run.pk}/delete/").status_code == 403
    assert boss.post(f"{LIST}{run.pk}/change/", {"status": "FAILED"}).status_code == 403
    boss.post(LIST, {"action": "delete_selected", "_selected_action": run.pk, "index": 0})
    assert JobRun.objects.get().status == "READY"


def test_who_may_look(staff: Staff, make_run: MakeRun) -> None:
    run = make_run()
    nobody, viewer = staff(), staff("view_jobrun")
    for address in (LIST, f"{LIST}{run.pk}/change/", f"{LIST}drift/"):
        assert nobody.get(address).status_code == 403, address
        assert viewer.get(address).status_code == 200, address
        assert Client().get(address).status_code == 302, address
    assert 'name="action"' not in page(viewer, run)
