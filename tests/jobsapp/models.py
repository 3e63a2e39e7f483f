"""What handlers of the tests write."""

from __future__ import annotations

from django.db import models


class Written(models.Model):
    """One effect of an attempt, in the database that holds the runs."""

    label = models.CharField(max_length=100)
    run = models.BigIntegerField()
    fence = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.label} of run {self.run} under {self.fence}"
