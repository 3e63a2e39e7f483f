"""The pages of groups, and what a person may do there."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings

from groupjobs import control
from groupjobs.explain import listed
from groupjobs.models import JobGroup, JobRun
from groupjobs.moves import publish
from groupjobs.store import Store
from tests.admin.conftest import MakeRun, Staff

GROUPS = "/admin/groupjobs/jobgroup/"
ACT = GROUPS + "act/"
PAGES = (GROUPS, GROUPS + "queues/", GROUPS + "group/?queue=default&group=g")

Reserve = Callable[[JobRun], int]


def shown(client: Client, query: str = "") -> list[str]:
    """Names of the groups of a page."""
    text = html.unescape(client.get(GROUPS + query).content.decode())
    return re.findall(r'jobgroup/group/\?queue=[^"]*">([^<]*)</a>', text)


def post(client: Client, deed: str, **data: object) -> int:
    return client.post(ACT, {"deed": deed, "queue": "default", "group": "g", "next": GROUPS, **data}).status_code


def test_oldest_first_in_pages_without_repeats(boss: Client, make_run: MakeRun, store: Store) -> None:
    names = [f"g{number:02}" for number in range(60)]
    for _ in range(2):
        for name in reversed(names):
            make_run(group=name)
    seen: list[str] = []
    query = ""
    while True:
        seen += shown(boss, query)
        more = re.search(r'href="(\?[^"]*)" rel="next"', boss.get(GROUPS + query).content.decode())
        if not more:
            break
        query = html.unescape(more[1])
    assert seen == names[::-1]


def test_by_name_in_pages(boss: Client, make_run: MakeRun, store: Store) -> None:
    names = [f"g{number:02}" for number in range(60)]
    for name in reversed(names):
        make_run(group=name)
        make_run("SUCCEEDED", group=f"ended{name}")
    assert shown(boss, "?order=name") == names[:25]
    assert shown(boss, "?order=name&after=default%09g24") == names[25:50]
    assert shown(boss, "?q=g3") == [name for name in names if name.startswith("g3")]
    assert shown(boss, "?q=nothing") == []


def test_a_long_backlog_hides_no_group(make_run: MakeRun, store: Store) -> None:
    """The window is small here: the oldest group has more runs than one look reads."""
    rows = [JobRun(queue="default", group="long", job="j") for _ in range(12_000)]
    JobRun.objects.bulk_create([*rows, JobRun(queue="default", group="short", job="j")])
    assert [group for _queue, group, _run in listed("oldest", ["default"], "", 5).found] == ["long", "short"]


def test_queues_are_merged_by_age(boss: Client, make_run: MakeRun, store: Store) -> None:
    with override_settings(GROUPJOBS={"REDIS": "groupjobs", "QUEUES": ["default", "mail"]}):
        for number in range(6):
            make_run(group=f"g{number}", queue="mail" if number % 2 else "default")
        assert shown(boss) == [f"g{number}" for number in range(6)]
        assert shown(boss, "?queue=mail") == ["g1", "g3", "g5"]


def test_held_groups_without_runs_are_listed(boss: Client, store: Store) -> None:
    for number in range(30):
        control.hold("default", f"g{number}", "why", "anna")
    control.resume("default", "g3", "anna")
    page = [*shown(boss, "?order=held"), *shown(boss, f"?order=held&after={JobGroup.objects.get(group='g25').pk}")]
    assert page == [f"g{number}" for number in range(30) if number != 3]


def test_filter_by_state(boss: Client, make_run: MakeRun, store: Store, reserve: Reserve) -> None:
    reserve(make_run(group="a"))
    publish([make_run(group="b")])
    make_run(group="c")
    assert shown(boss, "?state=running") == ["a"]
    assert shown(boss, "?state=waiting") == ["b"]
    assert shown(boss, "?state=unknown") == ["c"]
    assert shown(boss, "?state=nonsense") == []


def test_names_are_escaped_everywhere(boss: Client, make_run: MakeRun, store: Store) -> None:
    name = "<script>\"&'é€"
    publish([make_run(group=name)])
    text = boss.get(GROUPS).content.decode()
    assert "<script>&quot;" not in text
    address = html.unescape(re.search(r'jobgroup/group/(\?queue=[^"]*)"', text)[1])  # type: ignore[index]
    page = boss.get(f"{GROUPS}group/{address}").content.decode()
    assert "&lt;script&gt;&quot;&amp;&#x27;é€" in page
    assert "no worker runs" in page


def test_skipping_the_head_asks_first_and_spares_the_next_one(boss: Client, make_run: MakeRun, store: Store) -> None:
    head, following = make_run(), make_run()
    publish([head, following])
    answer = boss.post(ACT, {"deed": "skip", "queue": "default", "group": "g", "run": head.pk, "next": GROUPS})
    assert "The head of the group is cancelled." in answer.content.decode()
    assert JobRun.objects.get(pk=head.pk).status == "READY"
    for _click in range(2):
        assert post(boss, "skip", run=head.pk, confirmed="yes") == 302
    assert [JobRun.objects.get(pk=run.pk).status for run in (head, following)] == ["CANCELLED", "READY"]
    assert LogEntry.objects.get().change_message == "Skip head: 1 changed, 0 skipped"


def test_cancel_rest_leaves_what_runs(boss: Client, make_run: MakeRun, store: Store, reserve: Reserve) -> None:
    reserve(head := make_run())
    waiting = [make_run() for _ in range(3)]
    other = make_run(group="other")
    publish([*waiting, other])
    assert post(boss, "cancel_rest", confirmed="yes") == 302
    statuses = [JobRun.objects.get(pk=run.pk).status for run in (head, *waiting, other)]
    assert statuses == ["RUNNING", *["CANCELLED"] * 3, "READY"]


def test_hold_is_recorded_with_its_reason_and_person(boss: Client, make_run: MakeRun, store: Store) -> None:
    publish([make_run()])
    assert post(boss, "hold", reason=" printer  ") == 302
    row = JobGroup.objects.get()
    assert (row.held, row.by, row.reason) == (True, "boss", "printer")
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.change_message) == ("default/g", "Hold: printer")
    assert "held by boss" in boss.get(f"{GROUPS}group/?queue=default&group=g").content.decode()
    assert post(boss, "hold") == 302
    assert LogEntry.objects.count() == 1


def test_limits_of_a_group_ask_first_and_are_recorded(boss: Client, make_run: MakeRun, store: Store) -> None:
    publish([make_run()])
    page = f"{GROUPS}group/?queue=default&group=g"
    assert 'name="concurrency" min="1" max="1000000" size="5" value=""' in boss.get(page).content.decode()
    asked = {"concurrency": "3", "count": "10", "seconds": "60"}
    question = boss.post(ACT, {"deed": "limit", "queue": "default", "group": "g", "next": page, **asked})
    assert "New reservations keep to these limits" in question.content.decode()
    for name, value in asked.items():
        assert f'name="{name}" value="{value}"' in question.content.decode()
    assert not JobGroup.objects.filter(group="g").exists()
    for _click in range(2):
        assert post(boss, "limit", confirmed="yes", **asked) == 302
    row = JobGroup.objects.get(group="g")
    assert (row.group_concurrency, row.rate_count, row.rate_seconds, row.by) == (3, 10, 60.0, "boss")
    assert LogEntry.objects.get().change_message == "Set limits: 3 x, 10 / 60 s"
    assert store.client.hget(f"{store.base}:groups", "g").decode() == f"{row.version} 0 3 10 60000"
    text = html.unescape(boss.get(page).content.decode())
    assert "3 consumers at once 10 runs in 60.0 s" in re.sub(r"\s+", " ", text)
    assert 'name="concurrency" min="1" max="1000000" size="5" value="3"' in text
    assert post(boss, "limit", confirmed="yes") == 302
    row.refresh_from_db()
    assert (row.group_concurrency, row.rate_count, row.rate_seconds) == (None, None, None)


@pytest.mark.parametrize(
    "asked",
    [{"concurrency": "0"}, {"concurrency": "x"}, {"count": "3"}, {"seconds": "3"}, {"count": "1", "seconds": "-1"},
     {"count": "1", "seconds": "nan"}, {"count": "1", "seconds": "inf"}, {"concurrency": "9" * 20}],
)  # fmt: skip
def test_what_is_no_limit_is_refused(boss: Client, make_run: MakeRun, store: Store, asked: dict[str, str]) -> None:
    publish([make_run()])
    data = {"deed": "limit", "queue": "default", "group": "g", "next": GROUPS, "confirmed": "yes", **asked}
    answer = boss.post(ACT, data, follow=True)
    assert "These are no limits" in answer.content.decode()
    assert not JobGroup.objects.filter(group="g").exists()


@pytest.mark.parametrize(
    ("deed", "permission"),
    [("hold", "hold_group"), ("resume", "hold_group"), ("recover", "recover_run"), ("at_once", "retry_run"),
     ("limit", "limit_group"), ("retry", "retry_run"), ("skip", "cancel_run"), ("cancel_rest", "cancel_run")],
)  # fmt: skip
def test_each_deed_needs_its_permission(
    staff: Staff, make_run: MakeRun, store: Store, deed: str, permission: str
) -> None:
    run = make_run()
    others = {"hold_group", "limit_group", "recover_run", "retry_run", "cancel_run", "abandon_run"} - {permission}
    assert post(staff("view_jobrun", *others), deed, run=run.pk, confirmed="yes") == 403
    assert post(staff(permission), deed, run=run.pk, confirmed="yes") == 403
    assert post(staff("view_jobrun", permission), deed, run=run.pk, confirmed="yes") == 302
    strict = staff("view_jobrun", permission, csrf=True)
    assert post(strict, deed, run=run.pk, confirmed="yes") == 403
    assert strict.get(f"{ACT}?deed={deed}&queue=default&group=g").status_code == 403


def test_who_may_look(staff: Staff, make_run: MakeRun, store: Store) -> None:
    make_run()
    nobody, viewer = staff(), staff("view_jobrun")
    for address in PAGES:
        assert nobody.get(address).status_code == 403
        assert Client().get(address).status_code == 302
        page = viewer.get(address)
        assert page.status_code == 200
        assert (
            "<button"
            not in re.sub(
                r"<nav.*?</nav>|<form[^>]*(search|logout).*?</form>", "", page.content.decode(), flags=re.DOTALL
            ).partition('id="content-main"')[2]
        )
    assert "/admin/groupjobs/jobgroup/" in viewer.get("/admin/").content.decode()


def test_bad_requests(boss: Client, make_run: MakeRun, store: Store) -> None:
    assert post(boss, "nonsense") == 403
    assert post(boss, "hold", queue="nonsense") == 403
    answer = boss.post(ACT, {"deed": "resume", "queue": "default", "group": "g", "next": "https://example.org/"})
    assert answer["Location"] == GROUPS
    for query in ("?after=%00", "?order=x&state=y&after=-1", "?order=name&after=x%09y%09z", "?q=%00", "?queue=gone"):
        assert boss.get(GROUPS + query).status_code == 200


def test_no_page_has_a_script_or_style_of_its_own(boss: Client, make_run: MakeRun, store: Store) -> None:
    run = make_run()
    more = (f"/admin/groupjobs/jobrun/{run.pk}/change/", "/admin/groupjobs/jobrun/", "/admin/groupjobs/jobrun/drift/")
    for address in (*PAGES, *more):
        page = boss.get(address).content.decode()
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:", page), address
        assert '<script src="/static/groupjobs/live.js" defer></script>' in page


def test_queries_do_not_grow_with_the_backlog(boss: Client, make_run: MakeRun, store: Store) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            boss.get(GROUPS)
        return len(captured)

    for number in range(5):
        make_run(group=f"g{number}")
    few = queries()
    JobRun.objects.bulk_create([JobRun(queue="default", group=f"g{n % 5}", job="j") for n in range(5_000)])
    assert queries() <= few + 1  # one more window of live rows
