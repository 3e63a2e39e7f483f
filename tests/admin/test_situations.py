"""Situations staged in rows and in a real Valkey.

The page of groups, `groupjobs_status --group` and `recover_ghosts --dry-run` name the true cause, and the page's
button mends it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client
from django.test.utils import override_settings
from django.utils import timezone

from groupjobs import control, ledger
from groupjobs.explain import State, explain, facts_of
from groupjobs.models import JobAttempt, JobProgress, JobRun
from groupjobs.moves import publish
from groupjobs.store import Consumer, Outcome, Store, store_for
from project.embedded import EmbeddedValkey
from tests.admin.conftest import MakeRun
from tests.servers.waiting import wait_until

GROUPS = "/admin/groupjobs/jobgroup/"
ACT = GROUPS + "act/"

Reserve = Callable[[JobRun], int]


def state(queue: str = "default", group: str = "g") -> State:
    return explain(facts_of(queue, [(group, 0)])[0])


def shown(client: Client, query: str = "") -> str:
    answer = client.get(GROUPS + query)
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def steady(text: str) -> str:
    """The same for any number of seconds."""
    return re.sub(r"\d+(\.\d)? s\b", "N s", text)


def command(name: str, *options: str) -> str:
    out = StringIO()
    with suppress(SystemExit):
        call_command(name, *options, stdout=out)
    return out.getvalue()


def told(word: str, *, queue: str = "default", recovery: str | None = None) -> str:
    """The state is so, and both commands say so; answers the reason. `recovery` is what a dry run says instead."""
    now = state(queue)
    assert now.word == word
    asked = ("--queue", queue, "--group", "g")
    (group,) = json.loads(command("groupjobs_status", *asked, "--json"))["groups"]
    assert (group["state"], steady(group["reason"]), group["mend"]) == (word, steady(now.reason), now.mend)
    table = " ".join(re.sub(r"[\W_]*\n[\W_]*", " ", command("groupjobs_status", *asked)).split())
    assert now.name in table
    assert steady(now.reason)[:60] in steady(table)
    report = json.loads(command("recover_ghosts", *asked, "--dry-run", "--json"))
    reasons = [steady(line["reason"]) for line in report["details"]]
    assert any(steady(recovery or now.reason) in reason for reason in reasons), reasons
    return now.reason


def named(client: Client, word: str, reason: str, *, queue: str = "default", recovery: str | None = None) -> None:
    """The state is so, and the commands, the page of groups, that of the group, and the filter say so."""
    assert told(word, queue=queue, recovery=recovery) == reason
    for page in (shown(client), shown(client, f"?state={word}"), shown(client, f"group/?queue={queue}&group=g")):
        assert f"gj-state-{word}" in page
        assert steady(reason) in steady(page)


def press(client: Client, deed: str, **data: object) -> str:
    answer = client.post(ACT, {"deed": deed, "queue": "default", "group": "g", "next": GROUPS, **data}, follow=True)
    assert answer.redirect_chain == [(GROUPS, 302)]
    return html.unescape(answer.content.decode())


def choose(client: Client, action: str, run: JobRun) -> None:
    """An action of the list of runs, confirmed."""
    data = {"action": action, "_selected_action": run.pk, "select_across": "0", "confirmed": "yes"}
    assert client.post("/admin/groupjobs/jobrun/", data).status_code == 302


def beat(store: Store, worker: str = "host:77:a") -> str:
    store.beat(worker, 2, {})
    return worker


def age(store: Store, worker: str, milliseconds: int) -> None:
    """Its last beat becomes so much older."""
    store.client.zincrby(f"{store.base}:workers", -milliseconds, worker)


def test_no_worker_runs(boss: Client, make_run: MakeRun, store: Store) -> None:
    publish([make_run()])
    named(boss, "no_worker", "no worker runs")
    beat(store)
    assert state().word == "waiting"


def test_no_worker_has_run_yet(boss: Client, make_run: MakeRun) -> None:
    """Nobody has opened the queue, and Redis has lost nothing."""
    publish([make_run()])
    named(boss, "no_worker", "no worker runs")
    assert "Redis lost its memory" not in shown(boss)


def test_workers_serve_other_celery_queues(boss: Client, make_run: MakeRun) -> None:
    queues = {"default": {}, "mail": {"celery_queue": "post"}}
    with override_settings(GROUPJOBS={"REDIS": "groupjobs", "QUEUES": queues}):
        for queue in queues:
            store_for(queue).open(store_for(queue).tick("", 0).epoch)
        beat(store_for("default"))
        publish([make_run(queue="mail")])
        reason = "1 workers run, but none of them serves the queue mail (Celery queue post)"
        named(boss, "unserved", reason, queue="mail")
        beat(store_for("mail"), "host:78:a")
        assert state("mail").word == "waiting"


def test_the_host_of_a_run_died_inside_its_ttl(boss: Client, make_run: MakeRun, store: Store, reserve: Reserve) -> None:
    run = make_run()
    reserve(run)
    age(store, run.worker, 4000)
    reason = told("silent")
    assert reason.startswith(f"#{run.pk} is with worker {run.worker}, which was last heard of 4")
    assert "gj-state-silent" in shown(boss)
    age(store, run.worker, 2000)
    reason = f"#{run.pk} was with worker {run.worker}, which is dead, and no worker is left to heal it"
    named(boss, "ghost", reason, recovery="its worker is dead")
    press(boss, "recover")
    assert state().word == "no_worker"
    assert JobRun.objects.get().status == "READY"


def test_the_head_backs_off(boss: Client, make_run: MakeRun, store: Store) -> None:
    due = timezone.now() + timedelta(minutes=10, seconds=30)
    run = make_run(run_after=due, failures=2, attempts=2, max_attempts=5)
    JobAttempt.objects.create(
        run=run, fence=1, outcome="failed", error_class="smtplib.SMTPException", finished_at=timezone.now()
    )
    publish([run])
    named(boss, "backing_off", f"#{run.pk} backs off for another 10 min before attempt 3 of 5, after SMTPException")
    assert state().until == due
    press(boss, "at_once", run=run.pk)
    assert state().word == "no_worker"


def test_the_group_was_held_after_a_failure(boss: Client, make_run: MakeRun, store: Store) -> None:
    failed, run = make_run("FAILED"), make_run()
    publish([run])
    control.hold("default", "g", f"after_failure=hold: run {failed.pk} ended")
    assert told("held").endswith(f": after_failure=hold: run {failed.pk} ended")
    assert "gj-state-held" in shown(boss, "?order=held")
    assert "Retry default/g: 1 changed" in press(boss, "retry", run=failed.pk)
    assert "Resume default/g: 1 changed" in press(boss, "resume")
    assert "Resume default/g: 0 changed, 1 skipped: not held" in press(boss, "resume")
    assert facts_of("default", [("g", 0)])[0].head.id == failed.pk  # type: ignore[union-attr]


def test_the_queue_is_paused(boss: Client, make_run: MakeRun, store: Store) -> None:
    publish([make_run()])
    press(boss, "hold", group="", reason="provider is down")
    assert re.fullmatch(r"the queue is paused by boss for [\d.]+ s: provider is down", told("paused"))
    assert store.overview().paused
    page = shown(boss)
    assert "default: the queue is paused (boss): provider is down" in page
    press(boss, "resume", group="")
    assert not store.overview().paused


def test_the_rate_is_used_up(boss: Client, make_run: MakeRun) -> None:
    with override_settings(GROUPJOBS={"REDIS": "groupjobs", "QUEUES": {"default": {"rate": (1, 3600)}}}):
        store = store_for("default")
        store.open(store.tick("", 0).epoch)
        first, second = make_run(), make_run()
        publish([first, second])
        consumer = Consumer("n", beat(store), 1)
        (served,) = store.step(consumer, 1, 1, []).reservations
        store.step(consumer, 2, 0, [Outcome(served.run, served.fence, "done")])
        JobRun.objects.filter(pk=served.run).update(status="SUCCEEDED", finished_at=timezone.now())
        named(boss, "rate_limited", state().reason)
        assert re.fullmatch(r"rate limited: its next token comes in (59 min|1 h)", state().reason)
        press(boss, "limit", count="1000", seconds="1", confirmed="yes")
        wait_until(lambda: state().word == "waiting", what="a token of the new rate comes at once")


def test_redis_was_down_at_enqueue_and_is_still(
    boss: Client, make_run: MakeRun, store: Store, valkey: EmbeddedValkey
) -> None:
    run = make_run(unpublished=True)
    reason = f"#{run.pk} is not published: Redis did not answer when it was enqueued; the next quick sweep does it"
    named(boss, "unpublished", reason, recovery="not published: Redis did not answer when it was enqueued")
    valkey.kill()
    assert state().word == "unreachable"
    assert json.loads(command("groupjobs_status", "--group", "g", "--json"))["groups"][0]["state"] == "unreachable"
    with pytest.raises(CommandError, match="a server does not answer") as refused:
        command("recover_ghosts", "--dry-run")
    assert refused.value.returncode == 2
    assert "Redis does not answer" in shown(boss)
    assert "Redis does not answer, and nothing was changed" in press(boss, "recover")
    valkey.start()
    press(boss, "recover")
    assert state().word == "no_worker"


def test_redis_lost_its_memory(
    boss: Client, make_run: MakeRun, store: Store, reserve: Reserve, valkey: EmbeddedValkey
) -> None:
    reserve(make_run())
    ledger.mark_opened("default")
    valkey.flush()
    reason = r"Redis lost its memory [\d.]+ s ago; the queue is rebuilt from rows, which takes up to 5 s"
    assert re.fullmatch(reason, told("rebuilding", recovery="Redis lost its memory and is being rebuilt"))
    assert "Redis lost its memory" in shown(boss)
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "WORKER_TTL": 0.6}):
        wait_until(lambda: "1 refused" not in press(boss, "recover"), what="the TTL has passed, and the queue is open")
        assert (state().word, JobRun.objects.get().status) == ("no_worker", "READY")


def test_an_abandonment_cannot_be_reported(boss: Client, make_run: MakeRun, store: Store) -> None:
    run = make_run("ABANDONED", reason="too_many_losses", report_attempts=3, report_after=timezone.now())
    reason = f"#{run.pk} was abandoned (too many losses); its report was tried 3 times"
    assert told("unreported", recovery="abandoned (too_many_losses); its report was tried 3 times") == reason
    assert reason in shown(boss, "?order=unreported")
    JobRun.objects.update(report_attempts=10)
    assert "its report failed 10 times and waits for a person" in told("unreported")
    assert state().mend == "redeliver"


def test_a_run_goes_on_without_a_word(boss: Client, make_run: MakeRun, store: Store, reserve: Reserve) -> None:
    run = make_run()
    reserve(run)
    hour = timezone.now() - timedelta(minutes=61)
    JobRun.objects.update(last_attempted_at=hour)
    JobProgress.objects.update(done=3, updated_at=hour + timedelta(minutes=20))
    named(boss, "quiet", f"#{run.pk} runs for 1 h 1 min on {run.worker}; its progress is unchanged for 41 min")
    choose(boss, "kill", run)
    assert "it was asked to cancel" in told("quiet")
    assert store.beat(run.worker, 1, {}).kills == ((run.consumer, run.pk),)


def test_no_worker_knows_the_job(boss: Client, make_run: MakeRun, store: Store) -> None:
    run = make_run(job="gone.away")
    publish([run])
    consumer = Consumer("n", beat(store), 1)
    (served,) = store.step(consumer, 1, 1, []).reservations
    store.step(consumer, 2, 0, [Outcome(run.pk, served.fence, "back", delay_ms=30_000)])
    reason = f"no worker knows the job gone.away of #{run.pk}; it is tried again, and abandoned in "
    assert told("given_back").startswith(reason)
    assert reason in shown(boss)
    JobRun.objects.update(status="ABANDONED", reason="unknown_job", finished_at=timezone.now())
    assert f"#{run.pk} was abandoned (no worker knows the job)" in told("unreported", recovery="(unknown_job)")
    choose(boss, "retry", run)
    assert state().word == "waiting", "for a worker that knows it by now"


def test_a_scheduled_run_does_not_hide_the_head_behind_it(boss: Client, make_run: MakeRun, store: Store) -> None:
    scheduled = make_run(run_after=timezone.now() + timedelta(hours=2, minutes=1), yields=True)
    publish([scheduled])
    named(boss, "scheduled", f"#{scheduled.pk} is due in 2 h")
    publish([make_run()])
    assert state().word == "no_worker"


def test_a_run_without_a_group_is_a_group_of_its_own(boss: Client, make_run: MakeRun, store: Store) -> None:
    run = make_run(group="")
    publish([run])
    assert f'?queue=default&group=&run={run.pk}">#{run.pk}</a>' in shown(boss)
    page = shown(boss, f"group/?queue=default&group=&run={run.pk}")
    assert "no worker runs" in page
    assert 'value="cancel_rest"' not in page


@pytest.mark.parametrize("query", ["", "?queue=default&group=", "?queue=nonsense&group=g", "?queue=default&group=%00"])
def test_no_such_group(boss: Client, store: Store, query: str) -> None:
    assert boss.get(f"{GROUPS}group/{query}").status_code == 404
