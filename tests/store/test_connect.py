"""Clients: our own timeouts, whatever the settings name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import redis

from groupjobs.conf import Settings
from groupjobs.store.connect import connect
from project.embedded import EmbeddedValkey
from tests.servers.wire import SilentPort


def factory(**options: Any) -> redis.Redis:
    return redis.Redis(host="made.invalid", **options)


@pytest.mark.parametrize(("purpose", "seconds"), [("enqueue", 0.4), ("serve", 5.0), ("beat", 1.0)])
def test_an_alias_is_cloned_with_our_timeouts(
    settings: Any, valkey: EmbeddedValkey, purpose: Any, seconds: float
) -> None:
    settings.CACHES = {"jobs": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": valkey.url}}
    client = connect(Settings(redis="jobs", worker_ttl=6.0), purpose)
    assert client.ping()
    options = client.connection_pool.connection_kwargs
    assert (options["socket_timeout"], options["socket_connect_timeout"]) == (seconds, seconds)
    assert not options.get("decode_responses")


def test_a_url_and_a_factory(valkey: EmbeddedValkey) -> None:
    assert connect(Settings(redis=valkey.url)).ping()
    made = connect(Settings(redis=f"{__name__}.factory"), "enqueue")
    assert made.connection_pool.connection_kwargs["host"] == "made.invalid"
    assert made.connection_pool.connection_kwargs["socket_timeout"] == 0.4


def test_one_client_a_process_and_purpose(valkey: EmbeddedValkey) -> None:
    settings = Settings(redis=valkey.url)
    assert connect(settings) is connect(replace(settings, prefix="other"))
    assert connect(settings) is not connect(settings, "beat")


def test_a_silent_server_holds_an_enqueue_up_for_its_timeout_only(silent_port: SilentPort) -> None:
    client = connect(Settings(redis=f"redis://127.0.0.1:{silent_port.port}/0"), "enqueue")
    with pytest.raises(redis.exceptions.TimeoutError):
        client.ping()
