"""Reasons that rows carry as words, and how they read."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from groupjobs.lifecycle import BAD_ARGUMENTS, EXPIRED, REQUESTED, TOO_MANY_LOSSES, UNKNOWN_JOB

REASONS: Final = {
    TOO_MANY_LOSSES: _("too many losses"),
    UNKNOWN_JOB: _("no worker knows the job"),
    BAD_ARGUMENTS: _("its arguments do not fit the job"),
    EXPIRED: _("expired"),
    REQUESTED: _("requested by a person"),
}


def reason_text(reason: str) -> str:
    """Why a run has its status, in words; a reason that is text already stays as it is."""
    return str(REASONS.get(reason, reason))
