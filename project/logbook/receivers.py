"""What happens when a file is saved."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from project.logbook.jobs import import_flights
from project.logbook.models import Upload


@receiver(post_save, sender=Upload)
def start_import(instance: Upload, created: bool, raw: bool = False, **_: Any) -> None:
    """Enqueue the import in the transaction that saves the file: both are committed, or neither."""
    if created and not raw:
        import_flights.enqueue(upload_id=instance.pk)
