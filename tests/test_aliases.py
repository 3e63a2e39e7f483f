"""Which backend a job uses: the alias of groupjobs in TASKS, else a built-in one, never another."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from groupjobs import Refused, compat, job
from groupjobs.backend import GroupJobsBackend

pytestmark = pytest.mark.api

OURS = "groupjobs.backend.GroupJobsBackend"
IMMEDIATE = f"{compat.MODULE}.backends.immediate.ImmediateBackend"
DUMMY = f"{compat.MODULE}.backends.dummy.DummyBackend"


@job
def bare(number: int) -> int:
    return number * 2


def plain_function(tail: str) -> None: ...


class SubclassedBackend(GroupJobsBackend):
    pass


@pytest.mark.parametrize(
    ("tasks", "alias", "kind"),
    [
        ({"default": {"BACKEND": OURS}}, "default", GroupJobsBackend),
        ({"default": {"BACKEND": IMMEDIATE}, "runs": {"BACKEND": OURS}}, "runs", GroupJobsBackend),
        (
            {"default": {"BACKEND": DUMMY}, "runs": {"BACKEND": f"{__name__}.SubclassedBackend"}},
            "runs",
            SubclassedBackend,
        ),
        ({"other": {"BACKEND": OURS}}, "other", GroupJobsBackend),
        ({"default": {"BACKEND": IMMEDIATE}}, "groupjobs", GroupJobsBackend),
        ({"default": {"BACKEND": DUMMY}}, "groupjobs", GroupJobsBackend),
        ({"default": {"BACKEND": "does.not.exist"}}, "groupjobs", GroupJobsBackend),
        ({"groupjobs": {"BACKEND": DUMMY}}, "groupjobs", GroupJobsBackend),
        ({}, "groupjobs", GroupJobsBackend),
        ({"runs": {"BACKEND": OURS}, "default": {"BACKEND": OURS}}, "default", GroupJobsBackend),
    ],
)
def test_jobs_use_the_alias_of_groupjobs_else_a_built_in_backend(tasks: Any, alias: str, kind: type[Any]) -> None:
    with override_settings(TASKS=tasks):
        made = job(plain_function)
        assert made.backend == alias
        for each in (made, bare, made.using(priority=1)):
            backend = each.get_backend()
            assert type(backend) is kind
            assert backend.alias == alias


def test_a_job_is_never_given_to_another_backend() -> None:
    with override_settings(TASKS={"default": {"BACKEND": OURS}, "now": {"BACKEND": IMMEDIATE}}):
        with pytest.raises(Refused, match=r"backend='now' is not served by .*groupjobs\.testing"):
            bare.using(backend="now")
        with pytest.raises(Refused, match="backend='now'"):
            job(backend="now")(plain_function)
        with pytest.raises(compat.InvalidTaskBackend, match="unknown"):
            bare.using(backend="unknown")
