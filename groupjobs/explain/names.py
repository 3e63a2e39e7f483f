"""The words of states, as a badge shows them."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

NAMES: Final = {
    "unreachable": _("Redis down"),
    "newer": _("newer release"),
    "unnamed": _("no such queue"),
    "rebuilding": _("rebuilding"),
    "held": _("held"),
    "paused": _("queue paused"),
    "ghost": _("ghost"),
    "silent": _("worker silent"),
    "starting": _("starting"),
    "running": _("running"),
    "quiet": _("running, no progress"),
    "lost": _("lost"),
    "unpublished": _("not published"),
    "unknown": _("unknown to Redis"),
    "scheduled": _("scheduled"),
    "backing_off": _("backing off"),
    "given_back": _("job unknown"),
    "rate_limited": _("rate limited"),
    "no_worker": _("no worker"),
    "unserved": _("queue not served"),
    "waiting": _("waiting for a worker"),
    "behind": _("behind others"),
    "stuck": _("stuck"),
    "unreported": _("abandonment unreported"),
    "idle": _("idle"),
}
