"""The setting GROUPJOBS: defaults, checks with hints, read anew when it changes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from groupjobs import conf
from groupjobs.conf import Queue, Settings, load

pytestmark = pytest.mark.api


def test_defaults() -> None:
    settings = load({})
    assert settings == Settings()
    assert settings.redis == "default"
    assert settings.queues == {"default": Queue("default", None, None, 1, None)}
    assert (settings.worker_ttl, settings.commit_interval, settings.sweep_interval) == (15, 0.02, 300)
    assert settings.unknown_job_grace == 3600
    day = 86400
    assert settings.retention == {"SUCCEEDED": 7 * day, "CANCELLED": 7 * day, "FAILED": 90 * day, "ABANDONED": None}


def test_every_key_is_taken() -> None:
    settings = load(
        {
            "REDIS": "redis://localhost/1",
            "PREFIX": "gj",
            "DATABASE": "runs",
            "QUEUES": {
                "default": {},
                "mail": {
                    "consumers": 2,
                    "celery_queue": "slow",
                    "group_concurrency": 3,
                    "rate": (10, timedelta(minutes=1)),
                },
            },
            "WORKER_TTL": timedelta(seconds=5),
            "COMMIT_INTERVAL": 0,
            "SWEEP_INTERVAL": 10,
            "UNKNOWN_JOB_GRACE": 0,
            "RETENTION": {"failed": timedelta(days=1), "SUCCEEDED": None},
            "CELERY_APP": "project.celery.app",
            "MASKED": ["password"],
            "CONSUMER_SECONDS": 1.5,
        }
    )
    assert settings.queues["mail"] == Queue("mail", 2, "slow", 3, (10, 60.0))
    assert settings.worker_ttl == 5
    assert settings.retention["FAILED"] == 86400
    assert settings.retention["SUCCEEDED"] is None
    assert settings.retention["CANCELLED"] == 7 * 86400
    assert settings.masked == ("password",)


def test_queues_may_be_names_only() -> None:
    assert load({"QUEUES": ["a", "b"]}).queues == {"a": Queue("a"), "b": Queue("b")}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"REDDIS": "default"}, r"GROUPJOBS has no key 'REDDIS'; did you mean 'REDIS'\?"),
        ({"worker_ttl": 5}, "no key 'worker_ttl'"),
        ({5: 5}, "no key 5"),
        ({"QUEUES": {"mail": {"consumer": 1}}}, r"\['mail'\] has no key 'consumer'; did you mean 'consumers'\?"),
        ({"RETENTION": {"suceeded": 5}}, r"'SUCEEDED'; did you mean 'SUCCEEDED'\?"),
    ],
)
def test_unknown_keys_get_a_suggestion(given: Any, said: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=said):
        load(given)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("REDIS", ""),
        ("REDIS", 5),
        ("REDIS", None),
        ("PREFIX", "a{b"),
        ("PREFIX", "}"),
        ("DATABASE", None),
        ("QUEUES", {}),
        ("QUEUES", "default"),
        ("QUEUES", {"a": None}),
        ("QUEUES", {"": {}}),
        ("QUEUES", {"a{b}": {}}),
        ("QUEUES", {"q" * 101: {}}),
        ("QUEUES", {5: {}}),
        ("QUEUES", {"a": {"consumers": 0}}),
        ("QUEUES", {"a": {"consumers": "2"}}),
        ("QUEUES", {"a": {"group_concurrency": 0}}),
        ("QUEUES", {"a": {"group_concurrency": None}}),
        ("QUEUES", {"a": {"rate": 5}}),
        ("QUEUES", {"a": {"rate": (0, 1)}}),
        ("QUEUES", {"a": {"rate": (5, 0)}}),
        ("QUEUES", {"a": {"celery_queue": ""}}),
        ("WORKER_TTL", 0),
        ("WORKER_TTL", "15"),
        ("WORKER_TTL", True),
        ("WORKER_TTL", float("nan")),
        ("COMMIT_INTERVAL", -1),
        ("COMMIT_INTERVAL", timedelta(seconds=-1)),
        ("SWEEP_INTERVAL", 0),
        ("UNKNOWN_JOB_GRACE", None),
        ("RETENTION", 5),
        ("RETENTION", {"FAILED": "90 days"}),
        ("RETENTION", {"READY": 5}),
        ("CELERY_APP", 5),
        ("MASKED", "password"),
        ("MASKED", [5]),
        ("CONSUMER_SECONDS", 0),
    ],
)
def test_wrong_values_are_named(key: str, value: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"GROUPJOBS\[" + repr(key)):
        load({key: value})


def test_the_setting_itself_must_be_a_dict() -> None:
    with pytest.raises(ImproperlyConfigured, match="must be a dict"):
        load(["REDIS"])


def test_current_is_cached_and_forgotten_when_the_setting_changes() -> None:
    before = conf.current()
    assert conf.current() is before
    with override_settings(GROUPJOBS={"WORKER_TTL": 77}):
        assert conf.current().worker_ttl == 77
    assert conf.current() == before
    with override_settings(DEBUG=True):
        assert conf.current() == before
