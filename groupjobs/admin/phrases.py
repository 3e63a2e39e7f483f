"""Words and phrases that other modules answer in English, collected here so that catalogues can hold them."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

PHRASES: Final = (
    # what became of runs, and the keys of a recovery's report
    _("examined"), _("requeued"), _("abandoned"), _("republished"), _("released"), _("dropped"), _("reported"),
    _("rung"), _("kept"), _("refused"),
    # statuses and outcomes in running text
    _("ready"), _("running"), _("succeeded"), _("failed"), _("cancelled"), _("lost"), _("timed out"),
    # reasons of recovery
    _("ended"), _("unknown to Redis"), _("reserved by a ghost"), _("reserved"), _("Redis knows an older life"),
    _("Redis forgot that it is a suspect"), _("waits"), _("running without a lease"), _("its lease was healed"),
    _("its worker is dead"), _("leased under an older fence"), _("its worker is silent"), _("its worker lives"),
    _("its row is terminal or gone"), _("Redis lost its memory and is being rebuilt; call again"),
    _("no worker has served the queue yet"), _("not published: Redis did not answer when it was enqueued"),
    # reasons of control
    _("no such run"), _("asked already"), _("retried already"), _("it has moved in between; look again"),
)  # fmt: skip


def phrase(text: str) -> str:
    """A word or phrase of another module in the reader's language; one that is not known stays as it is."""
    return gettext(text) if text else ""
