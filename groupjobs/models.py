"""The rows: what is true about runs, their progress, their attempts and their groups.

Only `ledger` writes `status`. Groups and dedup keys compare byte for byte on every database.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from groupjobs import lifecycle

GROUP_LENGTH = 255


class ByteField(models.CharField):  # type: ignore[type-arg]
    """A CharField that compares byte for byte: case, accents and trailing blanks all count."""

    def db_parameters(self, connection: Any) -> Any:
        """Ask MariaDB and MySQL for a binary collation that does not pad; the others compare so already."""
        parameters: dict[str, Any] = dict(super().db_parameters(connection))
        if connection.vendor == "mysql":
            parameters["collation"] = "utf8mb4_nopad_bin" if connection.mysql_is_mariadb else "utf8mb4_0900_bin"
        return parameters


class JobRun(models.Model):
    """One run of a job: durable from the commit that enqueued it until retention prunes it."""

    id = models.BigAutoField(primary_key=True)
    queue = ByteField(_("queue"), max_length=100)
    group = ByteField(_("group"), max_length=GROUP_LENGTH, blank=True, help_text=_("Empty: a group of its own."))
    job = models.CharField(_("job"), max_length=255)
    args = models.JSONField(_("arguments"), default=list)
    kwargs = models.JSONField(_("named arguments"), default=dict)
    priority = models.SmallIntegerField(_("priority"), default=0)
    order = models.BigIntegerField(_("order"), default=0, help_text=_("Smaller first; equal: as enqueued."))
    status = models.CharField(
        _("status"), max_length=10, default=lifecycle.READY, choices=[(name, name) for name in lifecycle.STATUSES]
    )
    reason = models.CharField(_("reason"), max_length=255, blank=True, default="")
    run_after = models.DateTimeField(_("run after"), null=True, blank=True)
    yields = models.BooleanField(default=False, help_text=_("Before `run_after` it does not block its group."))
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)

    fence = models.BigIntegerField(_("fence"), default=0)
    alone = models.BooleanField(_("alone"), default=False)
    life = models.PositiveIntegerField(_("life"), default=1)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    failures = models.PositiveIntegerField(_("failures"), default=0)
    losses = models.PositiveIntegerField(_("losses"), default=0)
    max_attempts = models.PositiveIntegerField(default=1)
    max_losses = models.PositiveIntegerField(default=2)
    after_failure = models.CharField(max_length=8, default="continue")
    on_retry = models.CharField(max_length=5, default="block")
    atomic = models.BooleanField(default=False)
    time_limit = models.FloatField(null=True, blank=True)
    soft_time_limit = models.FloatField(null=True, blank=True)

    dedup_key = ByteField(max_length=GROUP_LENGTH, null=True, blank=True)
    coalesces = models.BooleanField(default=False, help_text=_("It gives its key up when it begins."))
    unpublished = models.BooleanField(default=False)
    worker = models.CharField(_("worker"), max_length=255, blank=True, default="")
    consumer = models.CharField(_("consumer"), max_length=40, blank=True, default="")
    enqueued_at = models.DateTimeField(_("enqueued at"), db_default=Now())
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    last_attempted_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    result = models.JSONField(_("result"), null=True, blank=True)
    error = models.JSONField(_("error"), null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    abandon_reported_at = models.DateTimeField(null=True, blank=True)
    report_attempts = models.PositiveIntegerField(default=0)
    report_after = models.DateTimeField(null=True, blank=True)
    labels = models.JSONField(_("labels"), default=dict, blank=True)

    duplicate = False  # no column: whether `enqueue` answered this row instead of writing another one

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ["-id"]
        permissions = [
            ("recover_run", _("Can recover runs")),
            ("retry_run", _("Can retry runs")),
            ("cancel_run", _("Can cancel runs")),
            ("abandon_run", _("Can abandon runs")),
            ("hold_group", _("Can hold and resume groups and queues")),
            ("limit_group", _("Can give groups limits of their own")),
        ]
        constraints = [
            models.CheckConstraint(
                name="groupjobs_finished_iff_terminal",
                condition=Q(status__in=sorted(lifecycle.LIVE), finished_at__isnull=True)
                | Q(status__in=sorted(lifecycle.TERMINAL), finished_at__isnull=False),
            ),
            models.CheckConstraint(
                name="groupjobs_dedup_only_live", condition=Q(status__in=sorted(lifecycle.LIVE)) | Q(dedup_key=None)
            ),
            models.UniqueConstraint(
                name="groupjobs_dedup", fields=["queue", "job", "dedup_key"], condition=Q(dedup_key__isnull=False)
            ),
        ]
        # Partial, so that the three writes of a run's life touch few of them. MariaDB has no partial
        # indexes: it makes full ones of the same columns.
        indexes = [
            models.Index(
                name="groupjobs_live_line",
                fields=["queue", "group", "order", "id"],
                condition=Q(status__in=sorted(lifecycle.LIVE)),
            ),
            models.Index(name="groupjobs_live", fields=["queue", "id"], condition=Q(status__in=sorted(lifecycle.LIVE))),
            models.Index(name="groupjobs_running", fields=["queue", "id"], condition=Q(status=lifecycle.RUNNING)),
            models.Index(
                name="groupjobs_ended_badly",
                fields=["status", "id"],
                condition=Q(status__in=[lifecycle.FAILED, lifecycle.ABANDONED, lifecycle.CANCELLED]),
            ),
            models.Index(name="groupjobs_unpublished", fields=["queue", "id"], condition=Q(unpublished=True)),
            models.Index(
                name="groupjobs_unreported",
                fields=["report_after", "id"],
                condition=Q(status=lifecycle.ABANDONED, abandon_reported_at=None),
            ),
            models.Index(name="groupjobs_finished", fields=["finished_at"], condition=Q(finished_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.job} #{self.pk}" + (f" of {self.group}" if self.group else "")


class JobProgress(models.Model):
    """How far a run has come, as its handler says; made with the run, in a table of its own because it is hot."""

    run = models.OneToOneField(JobRun, on_delete=models.CASCADE, primary_key=True, related_name="progress")
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(null=True, blank=True)
    message = models.CharField(max_length=255, blank=True, default="")
    phase = models.CharField(max_length=100, blank=True, default="")
    updated_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("progress")
        verbose_name_plural = _("progress")

    def __str__(self) -> str:
        return f"{self.done}/{self.total if self.total is not None else '?'}"

    @property
    def percent(self) -> float | None:
        """From 0 to 100; None while the total is unknown."""
        return min(100.0, 100.0 * self.done / self.total) if self.total else None


class JobAttempt(models.Model):
    """One try of a run that did not end in success; history survives retries."""

    run = models.ForeignKey(JobRun, on_delete=models.CASCADE, related_name="attempt_log")
    fence = models.BigIntegerField()
    life = models.PositiveIntegerField(default=1)
    outcome = models.CharField(
        max_length=10, choices=[(name, name) for name in ("failed", "lost", "cancelled", "timed_out")]
    )
    error_class = models.CharField(max_length=255, blank=True, default="")
    message = models.TextField(blank=True, default="")
    traceback = models.TextField(blank=True, default="")
    worker = models.CharField(max_length=255, blank=True, default="")
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField()

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        ordering = ["id"]
        constraints = [models.UniqueConstraint(name="groupjobs_attempt_once", fields=["run", "fence"])]

    def __str__(self) -> str:
        return f"{self.outcome} under fence {self.fence}"


class JobGroup(models.Model):
    """What somebody set on a group, or with an empty name on the whole queue; `version` grows with each change."""

    queue = ByteField(max_length=100)
    group = ByteField(max_length=GROUP_LENGTH, blank=True)
    held = models.BooleanField(default=False)
    reason = models.CharField(max_length=255, blank=True, default="")
    by = models.CharField(max_length=150, blank=True, default="")
    since = models.DateTimeField(null=True, blank=True)
    group_concurrency = models.PositiveIntegerField(null=True, blank=True)
    rate_count = models.PositiveIntegerField(null=True, blank=True)
    rate_seconds = models.FloatField(null=True, blank=True)
    version = models.PositiveBigIntegerField(default=0)

    class Meta:
        verbose_name = _("group")
        verbose_name_plural = _("groups")
        constraints = [models.UniqueConstraint(name="groupjobs_one_per_group", fields=["queue", "group"])]

    def __str__(self) -> str:
        return str(self.group or self.queue)
