from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from celery import Celery
from django.conf import settings
from django.test import override_settings

from groupjobs import bell
from project.embedded import EmbeddedValkey
from tests.servers.environment import ROOT
from tests.servers.waiting import wait_until
from tests.servers.wire import SilentPort

UseBroker = Callable[[str], Celery]


@pytest.fixture
def use_broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[UseBroker]:
    """This process rings through this broker, by a thread of its own."""

    def use(url: str) -> Celery:
        app = Celery("bells", broker=url, set_as_current=False)
        monkeypatch.setattr(bell, "_installed", [app])
        monkeypatch.setattr(bell, "_ringers", {})
        return app

    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "CELERY_APP": None}):
        yield use


@pytest.fixture
def messages(valkey: EmbeddedValkey) -> Callable[..., list[dict[str, Any]]]:
    """What waits in a Celery queue."""
    client: Any = redis.Redis(unix_socket_path=str(valkey.socket), password=valkey.password, db=1)
    return lambda name="celery": [json.loads(message) for message in client.lrange(name, 0, -1)]


def test_a_bell_names_a_queue_and_cannot_expire(
    use_broker: UseBroker, valkey: EmbeddedValkey, messages: Callable[..., list[dict[str, Any]]]
) -> None:
    use_broker(valkey.broker_url)
    bell.ring("default")
    (message,) = wait_until(messages)
    headers = message["headers"]
    assert (headers["task"], headers["expires"], headers["eta"]) == ("groupjobs.consume", None, None)
    assert headers["ignore_result"] is True
    assert message["content-type"] == "application/json"


def test_as_many_bells_as_were_asked_for(
    use_broker: UseBroker, valkey: EmbeddedValkey, messages: Callable[..., list[dict[str, Any]]]
) -> None:
    use_broker(valkey.broker_url)
    bell.ring("default", 3)
    bell.ring("default", 0)
    bell.ring("default", 2)
    wait_until(lambda: len(messages()) == 5)


def test_bells_go_where_the_settings_say(
    use_broker: UseBroker, valkey: EmbeddedValkey, messages: Callable[..., list[dict[str, Any]]]
) -> None:
    use_broker(valkey.broker_url)
    queues = {"default": {}, "mail": {"celery_queue": "letters"}}
    with override_settings(GROUPJOBS={**settings.GROUPJOBS, "CELERY_APP": None, "QUEUES": queues}):
        bell.ring("mail")
        bell.ring_self("default", "groupjobs.mine")
        bell.sweep("default", "quick")
        wait_until(lambda: all(messages(name) for name in ("letters", "groupjobs.mine", "celery")))
    assert messages()[0]["headers"]["task"] == "groupjobs.sweep"


def test_a_bell_under_eager_celery_is_not_sent(
    use_broker: UseBroker, valkey: EmbeddedValkey, messages: Callable[..., list[dict[str, Any]]]
) -> None:
    app = use_broker(valkey.broker_url)
    app.conf.task_always_eager = True
    bell.ring("default")
    bell._ringer().finish()
    assert messages() == []


@pytest.mark.parametrize("kind", ["redis_url", "amqp_url"])
def test_a_silent_broker_holds_nobody_up_and_is_named_once(
    use_broker: UseBroker, silent_port: SilentPort, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    use_broker(getattr(silent_port, kind))
    began = time.monotonic()
    for _ in range(100):
        bell.ring("default", 5)
    assert time.monotonic() - began < 0.1
    wait_until(bell._ringer().outage.skip, 15, "the broker is known to be silent")
    bell.ring("default")
    warnings = [record for record in caplog.records if record.levelname == "WARNING" and record.name == "groupjobs"]
    assert len(warnings) == 1
    assert "The broker does not answer" in warnings[0].getMessage()


def test_bells_ring_again_when_the_broker_is_back(
    use_broker: UseBroker, valkey: EmbeddedValkey, messages: Callable[..., list[dict[str, Any]]]
) -> None:
    use_broker(valkey.broker_url)
    bell.ring("default")
    wait_until(messages)
    valkey.kill()
    bell.ring("default")
    outage = bell._ringer().outage
    wait_until(outage.skip, 15)
    outage.pause = 0.0
    outage._until = 0.0
    valkey.start()
    before = len(messages())
    bell.ring("default")
    wait_until(lambda: len(messages()) > before)


def test_a_fork_rings_with_a_thread_of_its_own(
    use_broker: UseBroker, valkey: EmbeddedValkey, messages: Callable[..., list[dict[str, Any]]]
) -> None:
    use_broker(valkey.broker_url)
    bell.ring("default")
    wait_until(messages)
    pid = os.fork()
    if pid == 0:
        bell.ring("default")
        bell._ringer().finish()
        os._exit(0)
    os.waitpid(pid, 0)
    assert len(messages()) == 2


ENDS = """
import time
from celery import Celery
from groupjobs import bell
bell.use(Celery("bells", broker={broker!r}, set_as_current=False))
if {warm!r}:
    bell.ring("default")
    while bell._ringer()._waiting or bell._ringer()._busy:
        bell._ringer().finish()  # until it has imported its transport and is connected
bell.ring("default")
print(time.monotonic(), flush=True)
"""


def test_the_end_of_the_interpreter_waits_a_little_for_the_last_bell(
    valkey: EmbeddedValkey, silent_port: SilentPort, messages: Callable[..., list[dict[str, Any]]]
) -> None:
    run_to_its_end(valkey.broker_url, warm=True)
    assert len(messages()) == 2
    assert run_to_its_end(silent_port.amqp_url) < bell.FAREWELL + 1.0


def run_to_its_end(broker: str, warm: bool = False) -> float:
    """Seconds from its last line to its end."""
    program = [sys.executable, "-c", ENDS.format(broker=broker, warm=warm)]
    env = {**os.environ, "GROUPJOBS": '{"CELERY_APP": null}', "DJANGO_SETTINGS_MODULE": "tests.settings"}
    shown = subprocess.run(program, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    return time.monotonic() - float(shown)
