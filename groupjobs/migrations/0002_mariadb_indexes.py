"""MariaDB has neither partial indexes nor partial unique constraints: full ones of the same columns."""

from typing import Any

from django.db import migrations

TABLE = "groupjobs_jobrun"
STATEMENTS = [
    f"create index groupjobs_live_line on {TABLE} (queue, `group`, status, `order`, id)",
    f"create index groupjobs_live on {TABLE} (status, queue, id)",
    f"create index groupjobs_unpublished on {TABLE} (unpublished, queue, id)",
    f"create index groupjobs_unreported on {TABLE} (status, abandon_reported_at, report_after, id)",
    f"create index groupjobs_finished on {TABLE} (finished_at)",
    f"create unique index groupjobs_dedup on {TABLE} (queue, dedup_key)",
]


def create(apps: Any, schema_editor: Any) -> None:
    """Nothing to do where the partial indexes exist."""
    if schema_editor.connection.vendor != "mysql":
        return
    for statement in STATEMENTS:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    atomic = False  # MariaDB commits at each of these statements
    dependencies = [("groupjobs", "0001_initial")]
    operations = [migrations.RunPython(create, migrations.RunPython.noop, elidable=False)]
