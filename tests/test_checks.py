"""System checks: each wrong or costly setting is named, a good one is silent."""

from __future__ import annotations

from io import StringIO
from typing import Any

import celery
import pytest
from django.apps import apps
from django.conf import settings as project
from django.core.checks import CheckMessage, Error, registry
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings
from django_redis.cache import RedisCache

from groupjobs import checks, compat, job
from project.embedded import EmbeddedValkey

pytestmark = [pytest.mark.api, pytest.mark.once]

OURS = "groupjobs.backend.GroupJobsBackend"
DJANGO_REDIS = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://localhost:6379/3"}
SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:", "OPTIONS": {"transaction_mode": "IMMEDIATE"}}
GOOD: dict[str, Any] = {
    "CACHES": {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}, "runs": DJANGO_REDIS},
    "TASKS": {"default": {"BACKEND": OURS}},
    "GROUPJOBS": {"REDIS": "runs"},
}


class OurCache(RedisCache):  # type: ignore[misc]
    pass


def factory(**options: Any) -> None: ...


@job(name="tests.limited", time_limit=60)
def limited() -> None: ...


def found(**settings: Any) -> list[CheckMessage]:
    with override_settings(**{**GOOD, **settings}):
        return checks.check_settings()


def ids(**settings: Any) -> list[str | None]:
    return [message.id for message in found(**settings)]


def redis_at(**caches: Any) -> list[str | None]:
    return ids(CACHES={**GOOD["CACHES"], **caches})


def test_good_settings_are_silent() -> None:
    assert found() == []


@pytest.mark.parametrize("wrong", [{"REDDIS": 5}, {"WORKER_TTL": "x"}, 5])
def test_a_wrong_setting_is_an_error_and_the_only_message(wrong: Any) -> None:
    (message,) = found(GROUPJOBS=wrong)
    assert isinstance(message, Error)
    assert message.id == "groupjobs.E001"
    assert "GROUPJOBS" in message.msg


@pytest.mark.parametrize(
    ("redis", "expected"),
    [
        ("nowhere", ["groupjobs.E002"]),
        ("redis://localhost:port", ["groupjobs.E002"]),
        ("http://localhost:6379", ["groupjobs.E002"]),
        ("default", ["groupjobs.E003"]),
        ("redis://localhost:6379/5", []),
        ("redis://localhost:6379/3", ["groupjobs.W004"]),
        ("redis://:secret@localhost/3?protocol=3", ["groupjobs.W004"]),
        (f"{__name__}.factory", []),
        ("no.such.factory", ["groupjobs.E002"]),
        (f"{__name__}.GOOD", ["groupjobs.E002"]),
    ],
)
def test_redis_names_an_alias_a_url_or_a_factory(redis: str, expected: list[str]) -> None:
    assert ids(GROUPJOBS={"REDIS": redis}) == expected


def test_the_default_cache_is_shared_with_django() -> None:
    (message,) = found(CACHES={"default": DJANGO_REDIS}, GROUPJOBS={})
    assert message.id == "groupjobs.W004"
    assert "FLUSHDB" in str(message.hint)


@pytest.mark.parametrize(
    ("cache", "shared"),
    [
        (DJANGO_REDIS, True),
        ({**DJANGO_REDIS, "LOCATION": "redis://localhost/3"}, True),
        ({**DJANGO_REDIS, "LOCATION": ["redis://a:1/0", "redis://:pw@localhost:6379?db=3"]}, True),
        ({**DJANGO_REDIS, "LOCATION": "redis://a:1/0,redis://localhost", "OPTIONS": {"DB": 3}}, True),
        ({**DJANGO_REDIS, "BACKEND": "django.core.cache.backends.redis.RedisCache"}, True),
        ({**DJANGO_REDIS, "LOCATION": "redis://localhost:6379/4"}, False),
        ({**DJANGO_REDIS, "LOCATION": "redis://elsewhere:6379/3"}, False),
        ({**DJANGO_REDIS, "LOCATION": "redis://localhost:6380/3"}, False),
        ({"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": "redis://localhost/3"}, False),
    ],
)
def test_a_cache_in_the_same_database_is_named(cache: Any, shared: bool) -> None:
    assert redis_at(sessions=cache) == (["groupjobs.W004"] if shared else [])


def test_sockets_are_compared_by_path_and_database() -> None:
    def at(location: str) -> dict[str, Any]:
        return {**DJANGO_REDIS, "LOCATION": location}

    assert redis_at(runs=at("unix://:pw@/run/v.sock?db=1"), more=at("unix:///run/v.sock?db=1")) == ["groupjobs.W004"]
    assert redis_at(runs=at("unix:///run/v.sock?db=1"), more=at("unix:///run/v.sock")) == []


@pytest.mark.parametrize("backend", [f"{__name__}.OurCache"])
def test_a_subclass_of_the_cache_is_taken(backend: str) -> None:
    assert redis_at(runs={**DJANGO_REDIS, "BACKEND": backend}) == []


@pytest.mark.parametrize(
    ("databases", "alias", "expected"),
    [
        ({"default": SQLITE}, "runs", ["groupjobs.E005"]),
        ({"default": SQLITE, "runs": SQLITE}, "runs", ["groupjobs.W005"]),
        ({"default": {**SQLITE, "OPTIONS": {}}}, "default", ["groupjobs.W006"]),
        ({"default": {**SQLITE, "OPTIONS": {"transaction_mode": "DEFERRED"}}}, "default", ["groupjobs.W006"]),
        ({"default": {**SQLITE, "OPTIONS": {"transaction_mode": "exclusive"}}}, "default", []),
        ({"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "x"}}, "default", []),
    ],
)
def test_the_database_of_the_rows(
    databases: Any, alias: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "DATABASES", databases)
    assert ids(GROUPJOBS={"REDIS": "runs", "DATABASE": alias}) == expected


def test_several_aliases_of_tasks_are_named() -> None:
    (message,) = found(TASKS={"b": {"BACKEND": OURS}, "default": {"BACKEND": OURS}})
    assert message.id == "groupjobs.W012"
    assert "default, b" in message.msg
    assert "'default'" in str(message.hint)


def test_the_backport_must_be_an_installed_app_where_django_has_no_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "CORE", False)
    without = [app for app in project.INSTALLED_APPS if app != "django_tasks"]
    monkeypatch.setattr(apps, "is_installed", without.__contains__)
    assert ids() == ["groupjobs.W007"]
    monkeypatch.setattr(compat, "CORE", True)
    assert ids() == []


def test_eager_celery_points_at_the_testing_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    app = celery.Celery(set_as_current=False)
    app.conf.task_always_eager = True
    monkeypatch.setattr(celery, "current_app", app)
    (message,) = found()
    assert message.id == "groupjobs.W008"
    assert "groupjobs.testing" in str(message.hint)


def test_hard_limits_need_a_process_to_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    app = celery.Celery(set_as_current=False)
    app.conf.worker_pool = "threads"
    monkeypatch.setattr(celery, "current_app", app)
    (message,) = found()
    assert message.id == "groupjobs.W010"
    assert "tests.limited" in message.msg
    app.conf.worker_pool = "prefork"
    assert found() == []


def test_a_celery_app_that_is_not_there() -> None:
    assert ids(GROUPJOBS={"REDIS": "runs", "CELERY_APP": "no.such.app"}) == ["groupjobs.E011"]
    assert ids(GROUPJOBS={"REDIS": "runs", "CELERY_APP": "celery:current_app"}) == []


def test_e6_the_server_may_not_forget_keys(valkey: EmbeddedValkey) -> None:
    assert checks.check_server() == []
    with valkey.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            (message,) = checks.check_server()
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    assert message.id == "groupjobs.W009"
    assert "allkeys-lru" in message.msg


def test_a_server_that_is_not_there_is_a_warning() -> None:
    with override_settings(GROUPJOBS={"REDIS": "redis://localhost:1/0"}):
        (message,) = checks.check_server()
    assert message.id == "groupjobs.W013"


def test_the_checks_are_part_of_manage_check() -> None:
    usual: list[Any] = registry.registry.get_checks()
    deploy: list[Any] = registry.registry.get_checks(include_deployment_checks=True)
    assert checks.check_settings in usual
    assert checks.check_server not in usual
    assert checks.check_server in deploy
    call_command("check", tags=["groupjobs"], stdout=StringIO())
    with override_settings(GROUPJOBS={"REDDIS": 5}), pytest.raises(SystemCheckError, match="did you mean 'REDIS'"):
        call_command("check", tags=["groupjobs"])
