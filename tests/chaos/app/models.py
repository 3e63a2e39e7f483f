from __future__ import annotations

from django.db import models


class Effect(models.Model):
    """What a handler writes: with an atomic job in the same transaction as its outcome."""

    id = models.BigAutoField(primary_key=True)
    run = models.BigIntegerField()
    fence = models.BigIntegerField()

    objects: models.Manager[Effect]

    class Meta:
        app_label = "chaos"
        db_table = "chaos_effect"

    def __str__(self) -> str:
        return f"run {self.run} under fence {self.fence}"
