"""Files of flights, and the logbooks that their legs are entered into."""

from __future__ import annotations

from django.db import models

from project.logbook import chain


class Upload(models.Model):
    """A file of flights as it came in, and how far its import has read it.

    `lines_read` is the last line whose legs are enqueued: it moves in the same transaction as they
    do, so an import that starts again goes on behind it.
    """

    name = models.CharField(max_length=200)
    content = models.BinaryField()
    lines = models.PositiveIntegerField(help_text="Lines of the file, header included.")
    lines_read = models.PositiveIntegerField(default=1)
    legs = models.PositiveIntegerField(default=0, help_text="Legs that were enqueued.")
    problem = models.TextField(blank=True, default="", help_text="Why nothing could be imported.")
    uploaded_at = models.DateTimeField(auto_now_add=True)
    imported_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.name} (upload {self.pk})"

    @property
    def group(self) -> str:
        """The group of this file's import."""
        return f"file:{self.pk}"


class Refusal(models.Model):
    """A line of a file that is not a leg, and why."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="refusals")
    line = models.PositiveIntegerField()
    message = models.CharField(max_length=255)

    class Meta:
        ordering = ["line"]
        indexes = [models.Index(name="logbook_refusal_line", fields=["upload", "line"])]

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class Aircraft(models.Model):
    """An aircraft and where its logbook ends: number of legs, miles, and the hash of the last leg."""

    tail = models.CharField(max_length=12, unique=True)
    legs = models.PositiveIntegerField(default=0)
    miles = models.PositiveBigIntegerField(default=0)
    chain = models.CharField(max_length=64, default=chain.START)

    class Meta:
        ordering = ["tail"]
        verbose_name_plural = "aircraft"

    def __str__(self) -> str:
        return self.tail


class Leg(models.Model):
    """One leg in an aircraft's logbook.

    No unique constraint and no row lock: that a leg is entered once and in order is what the queue
    promises, and a broken promise has to show in the chain.
    """

    aircraft = models.ForeignKey(Aircraft, on_delete=models.CASCADE, related_name="entries")
    number = models.PositiveIntegerField(help_text="Place in the logbook, from 1.")
    upload = models.ForeignKey(Upload, on_delete=models.PROTECT, related_name="entries")
    line = models.PositiveIntegerField(help_text="Line of the uploaded file.")
    date = models.CharField(max_length=10)
    departure = models.CharField(max_length=4)
    carrier = models.CharField(max_length=3)
    flight = models.CharField(max_length=5)
    origin = models.CharField(max_length=4)
    dest = models.CharField(max_length=4)
    miles = models.PositiveIntegerField()
    minutes = models.PositiveIntegerField(null=True, blank=True)
    running_miles = models.PositiveBigIntegerField()
    chain = models.CharField(max_length=64)
    entered_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["aircraft", "number", "id"]
        indexes = [models.Index(name="logbook_leg_number", fields=["aircraft", "number"])]

    def __str__(self) -> str:
        return f"leg {self.number}: {self.carrier} {self.flight} {self.origin}-{self.dest}"

    @property
    def text(self) -> str:
        """What the chain covers: the line's number and its values, in the order of the file's columns."""
        minutes = "" if self.minutes is None else self.minutes
        values = (self.line, self.date, self.departure, self.carrier, self.flight, self.aircraft.tail)
        return "|".join(map(str, (*values, self.origin, self.dest, self.miles, minutes)))
