"""From the name in a row to the code: names, aliases, paths, discovery."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings

from groupjobs import job, registry
from groupjobs.errors import Refused
from groupjobs.jobs import Job
from groupjobs.policy import Policy, retry_delay

pytestmark = pytest.mark.api


@job
def plain(number: int) -> int:
    return number


@job(name="billing.post", aliases=["old.billing.post", "older.post"], takes_context=True, max_attempts=3)
def renamed(context: Any, number: int) -> None: ...


@job
async def coroutine(number: int) -> None: ...


not_a_task = object()


def test_a_job_is_known_by_its_path() -> None:
    handler = registry.resolve(f"{__name__}.plain")
    assert handler is not None
    assert handler.task is plain
    assert handler.func is plain.func
    assert handler.name == f"{__name__}.plain"
    assert list(handler.signature.parameters) == ["number"]
    assert not handler.is_async


@pytest.mark.parametrize("name", ["billing.post", "old.billing.post", "older.post", f"{__name__}.renamed"])
def test_a_job_is_known_by_its_name_its_former_names_and_its_path(name: str) -> None:
    handler = registry.resolve(name)
    assert handler is not None
    assert handler.task is renamed
    assert handler.name == "billing.post"
    assert handler.takes_context
    assert list(handler.signature.parameters) == ["number"]
    assert handler.policy.max_attempts == 3
    assert registry.resolve(name) is handler


def test_coroutines_are_marked() -> None:
    handler = registry.resolve(f"{__name__}.coroutine")
    assert handler is not None
    assert handler.is_async


@pytest.mark.parametrize(
    "name",
    ["", "nowhere", "no.such.module.job", f"{__name__}.gone", f"{__name__}.not_a_task", "os.system", "a..b", "."],
)
def test_what_is_no_task_is_unknown(name: str) -> None:
    assert registry.resolve(name) is None


def test_a_module_that_cannot_be_imported_means_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken_jobs.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert registry.resolve("broken_jobs.anything") is None
    assert "ZeroDivisionError" in caplog.text


def test_a_taken_name_is_refused_and_the_registry_stays() -> None:
    def other() -> None: ...

    before = registry.registered()
    task = object.__new__(Job)
    object.__setattr__(task, "func", other)
    for name, aliases in [("billing.post", ()), ("new", ["older.post"])]:
        with pytest.raises(Refused, match=r"belongs to .*renamed already"):
            registry.register(task, name, aliases)
    assert registry.registered() == before


def test_the_same_function_may_register_again() -> None:
    registry.register(renamed, "billing.post", ["older.post"])
    assert registry.resolve("billing.post") is not None


def test_the_handler_of_a_variant_has_its_options() -> None:
    handler = registry.handler_of(renamed.using(priority=5, group="one", max_attempts=9))
    assert handler.policy.priority == 5
    assert handler.policy.literal_group == "one"
    assert handler.policy.max_attempts == 9
    assert registry.handler_of(renamed).policy.max_attempts == 3


def test_moments_follow_use_tz(settings: Any) -> None:
    aware = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert registry.checked_moment("j", "run_after", aware) is aware
    with pytest.raises(Refused, match="run_after must be an aware datetime"):
        registry.checked_moment("j", "run_after", datetime(2026, 7, 1))
    for year in (1, 9999):
        with pytest.raises(Refused, match="must be a time of the years 2 to 9998"):
            registry.checked_moment("j", "run_after", aware.replace(year=year))
    with override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin"):
        assert registry.checked_moment("j", "run_after", aware) == datetime(2026, 7, 1, 14)
        assert registry.checked_moment("j", "run_after", datetime(2026, 7, 1)) == datetime(2026, 7, 1)
    assert aware.astimezone(ZoneInfo("Europe/Berlin")).hour == 14


def test_the_default_backoff_doubles_with_jitter_up_to_ten_minutes() -> None:
    options: Policy = registry.policy_of(plain)
    for failures, least, most in [(1, 1, 2), (2, 2, 4), (5, 16, 32), (20, 300, 600), (2**31, 300, 600)]:
        delays = {retry_delay(options, failures) for _ in range(50)}
        assert all(least <= delay <= most for delay in delays)
        assert len(delays) > 1


@pytest.fixture
def undiscovered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_discovered", threading.Event())


@pytest.mark.usefixtures("undiscovered")
def test_discovery_happens_once_and_the_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, imported = threading.Event(), threading.Event(), []

    def slow(*names: str) -> None:
        begun.set()
        assert go_on.wait(10)
        registry.autodiscover()  # a jobs.py may ask for a job while it is imported
        imported.append(names)

    monkeypatch.setattr(registry, "autodiscover_modules", slow)
    seen: list[int] = []

    def discover() -> None:
        registry.autodiscover()
        seen.append(len(imported))

    threads = [threading.Thread(target=discover) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(10)
    assert seen == []
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert imported == [("jobs", "tasks")]
    assert seen == [1, 1, 1, 1]


@pytest.mark.usefixtures("undiscovered")
def test_a_failed_discovery_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def failing(*names: str) -> None:
        calls.append("called")
        raise ImportError("jobs.py of some app")

    monkeypatch.setattr(registry, "autodiscover_modules", failing)
    for _ in range(2):
        with pytest.raises(ImportError):
            registry.autodiscover()
    assert len(calls) == 2


STARTS = """
import sys
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["early", "django.contrib.contenttypes", "groupjobs"],
    GROUPJOBS={"REDIS": "redis://localhost:1/0"},
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
import early
assert early.log_leg.job_name == "early.log_leg"
assert "groupjobs.models" not in sys.modules, "models were imported"
import django
django.setup()
from groupjobs import registry
registry.autodiscover()
assert registry.resolve("early.jobs.later").task.max_attempts == 7
assert registry.resolve("early.tasks.also").name == "early.tasks.also"
from groupjobs.models import JobRun
print("fine")
"""


def test_an_app_listed_before_groupjobs_may_import_job(tmp_path: Path) -> None:
    early = tmp_path / "early"
    early.mkdir()
    define = "from groupjobs import job\n\n@job{}\ndef {}(tail): ...\n"
    (early / "__init__.py").write_text(define.format("(group='aircraft:{tail}')", "log_leg"))
    (early / "jobs.py").write_text(define.format("(max_attempts=7)", "later"))
    (early / "tasks.py").write_text(define.format("", "also"))
    root = str(Path(__file__).parents[1])
    script = f"import sys; sys.path[:0] = [{root!r}, {str(tmp_path)!r}]\n{STARTS}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "fine\n", done.stderr


@job
def open_ended(number: int, *, size: int = 1, **more: int) -> None: ...


@pytest.mark.parametrize("args", [(), (1,), (1, 2)])
@pytest.mark.parametrize("kwargs", [{}, {"number": 1}, {"size": 2}, {"size": 2, "number": 1}, {"more": 3}])
@pytest.mark.parametrize("task", [plain, renamed, open_ended])
def test_a_call_fits_as_often_as_it_is_asked(task: Any, args: tuple[int, ...], kwargs: dict[str, int]) -> None:
    handler = registry.handler_of(task)
    try:
        handler.signature.bind(*args, **kwargs)
        fits = True
    except TypeError:
        fits = False
    assert [handler.fits(args, kwargs) for _ in range(3)] == [fits] * 3
    assert handler.fits((), {"number": 5})


def test_a_job_that_takes_any_name_does_not_fill_the_memory() -> None:
    handler = registry.handler_of(open_ended)
    assert all(handler.fits((1,), {f"name{number}": number}) for number in range(registry.MOST_SHAPES + 10))
    assert len(handler.shapes) == registry.MOST_SHAPES
