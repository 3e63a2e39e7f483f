"""A row for each task."""

from django.db import models


class Row(models.Model):
    """What a project would keep at least."""

    group = models.IntegerField()
    status = models.CharField(max_length=10, default="READY", db_index=True)

    class Meta:
        app_label = "rows"
