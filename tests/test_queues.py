"""Queues: those of GROUPJOBS, which TASKS may only narrow."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from django.utils.module_loading import import_string

from groupjobs import compat, job
from groupjobs.compat import (
    InvalidTask,
    Task,
    task_backends,
)
from groupjobs.errors import Refused

task: Any = import_string(f"{compat.MODULE}.task")

pytestmark = [pytest.mark.api, pytest.mark.django_db]

OURS = "groupjobs.backend.GroupJobsBackend"


@job(group="aircraft:{tail}")
def log_leg(tail: str) -> int:
    return 0


@task
def plain(number: int) -> int:
    return number


def test_queues_of_tasks_only_narrow() -> None:
    ours = {"REDIS": "groupjobs", "QUEUES": ["default", "mail", "slow"]}
    narrow = {"default": {"BACKEND": OURS, "QUEUES": ["default", "mail"]}}
    with override_settings(GROUPJOBS=ours):
        assert log_leg.using(queue_name="slow").queue_name == "slow"
        with override_settings(TASKS=narrow):
            assert task_backends["default"].queues == {"default", "mail"}
            log_leg.using(queue_name="mail").enqueue("N1")
            with pytest.raises(InvalidTask, match="queue_name 'slow' is no queue of this backend"):
                log_leg.using(queue_name="slow")
    wide = {"default": {"BACKEND": OURS, "QUEUES": ["defalt"]}}
    with (
        override_settings(TASKS=wide),
        pytest.raises(ImproperlyConfigured, match=r"'defalt', which is not in GROUPJOBS.*did you mean 'default'\?"),
    ):
        task_backends["default"]


def test_the_queue_is_checked_again_at_enqueue() -> None:
    with override_settings(GROUPJOBS={"REDIS": "groupjobs", "QUEUES": ["default", "mail"]}):
        variant = log_leg.using(queue_name="mail")
    with pytest.raises(InvalidTask, match=r"'mail' is no queue .*known are default"):
        variant.enqueue("N1")


@pytest.mark.parametrize("wrong", [5, None, [], "x" * 300])
def test_a_queue_name_of_any_kind_is_refused_clearly(wrong: Any) -> None:
    foreign = object.__new__(Task)
    for name, value in {"func": plain.func, "queue_name": wrong, "priority": 0, "run_after": None}.items():
        object.__setattr__(foreign, name, value)
    with pytest.raises(Refused, match="queue_name"):
        task_backends["default"].validate_task(foreign)
