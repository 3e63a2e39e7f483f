"""The cells of the list of runs."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from groupjobs import conf
from groupjobs.explain import duration, reason_text, seconds_between
from groupjobs.lifecycle import RUNNING, TERMINAL


def badge(status: str) -> SafeString:
    """A status with its colour."""
    return format_html('<span class="gj-badge gj-{}">{}</span>', status.lower(), status)


def status_cell(run: Any) -> SafeString:
    """The badge, the reason, and what else is pending."""
    notes = [reason_text(run.reason)] if run.reason else []
    if run.cancel_requested_at and run.status == RUNNING:
        notes.append(_("asked to cancel"))
    if run.unpublished:
        notes.append(_("not published yet"))
    note = format_html('<span class="gj-note gj-below">{}</span>', ", ".join(notes)) if notes else ""
    return live(run, "status", format_html("{}{}", badge(run.status), note))


def job_cell(run: Any) -> SafeString:
    """The job's function, its module under the pointer, and its queue where there are several."""
    several = len(conf.current().queues) > 1 or run.queue not in conf.current().queues
    queue = format_html('<span class="gj-note gj-below">{}</span>', run.queue) if several else ""
    return format_html('<span title="{}">{}</span>{}', run.job, run.job.rpartition(".")[2], queue)


def age_cell(run: Any) -> SafeString:
    """How long ago it was enqueued; for an ended run how long it took from then to its end."""
    ended = run.finished_at if run.status in TERMINAL else None
    enqueued = run.enqueued_at.isoformat(sep=" ", timespec="seconds")
    age = duration(seconds_between(run.enqueued_at, run.now))
    took = _("took %s") % duration(seconds_between(run.enqueued_at, ended)) if ended else ""
    return format_html(
        '<time class="gj-keep" datetime="{0}" title="{0}">{1}</time> <span class="gj-note gj-below gj-keep">{2}</span>',
        enqueued,
        age,
        took,
    )


def tries_cell(run: Any) -> SafeString:
    """Attempts of this life against the budget, and losses."""
    lost = format_html('<span class="gj-note gj-below">{}</span>', _("%s lost") % run.losses) if run.losses else ""
    return live(run, "tries", format_html("{}{}", tries_text(run), lost))


def tries_text(run: Any) -> str:
    """Attempts that have ended, of those it may have: each loss has bought one more."""
    return f"{run.attempts} / {run.max_attempts + run.losses}"


def progress_of(run: Any) -> Any:
    """Its progress row; None for a row that somebody deleted by hand."""
    try:
        return run.progress
    except ObjectDoesNotExist:
        return None


def live(run: Any, name: str, cell: SafeString | str) -> SafeString:
    """A cell that the page's script keeps up to date."""
    return format_html('<span data-gj-live="{}-{}">{}</span>', run.pk, name, cell)


def progress_cell(run: Any) -> SafeString:
    """How far it says it is."""
    return live(run, "progress", bar(run))


def bar(run: Any) -> SafeString | str:
    """A progress bar, or the count where the total is unknown."""
    progress = progress_of(run)
    if progress is None or progress.updated_at is None:
        return ""
    label = progress.message or progress.phase
    if progress.total:
        said = _("%(done)s of %(total)s") % {"done": progress.done, "total": progress.total}
        drawn = format_html(
            '<progress class="gj-bar" max="100" value="{}" aria-label="{}"></progress>',
            round(progress.percent, 1),
            said,
        )
        return format_html('{} <span class="gj-note gj-below">{}</span>', drawn, label or said)
    return format_html('{} <span class="gj-note">{}</span>', progress.done, label)
