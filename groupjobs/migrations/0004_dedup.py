"""Dedup keys belong to a job; a coalescing run gives its key up when it begins."""

from typing import Any

from django.db import migrations, models


def create(apps: Any, schema_editor: Any) -> None:
    """MariaDB, which has no partial constraints, carries a full index in their place."""
    if schema_editor.connection.vendor == "mysql":
        schema_editor.execute("drop index groupjobs_dedup on groupjobs_jobrun")
        schema_editor.execute("create unique index groupjobs_dedup on groupjobs_jobrun (queue, job, dedup_key)")


class Migration(migrations.Migration):
    atomic = False  # MariaDB commits at each such statement
    dependencies = [("groupjobs", "0003_permissions")]
    operations = [
        migrations.AddField(
            model_name="jobrun",
            name="coalesces",
            field=models.BooleanField(default=False, help_text="It gives its key up when it begins."),
        ),
        migrations.RemoveConstraint(model_name="jobrun", name="groupjobs_dedup"),
        migrations.AddConstraint(
            model_name="jobrun",
            constraint=models.UniqueConstraint(
                name="groupjobs_dedup",
                fields=["queue", "job", "dedup_key"],
                condition=models.Q(dedup_key__isnull=False),
            ),
        ),
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
