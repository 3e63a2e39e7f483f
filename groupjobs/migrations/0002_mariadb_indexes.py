"""MariaDB has no partial unique constraints and does not make ours: a full one says the same, for NULLs differ."""

from typing import Any

from django.db import migrations


def create(apps: Any, schema_editor: Any) -> None:
    """Nothing to do where the partial constraint exists."""
    if schema_editor.connection.vendor == "mysql":
        schema_editor.execute("create unique index groupjobs_dedup on groupjobs_jobrun (queue, dedup_key)")


class Migration(migrations.Migration):
    atomic = False  # MariaDB commits at each such statement
    dependencies = [("groupjobs", "0001_initial")]
    operations = [migrations.RunPython(create, migrations.RunPython.noop)]
