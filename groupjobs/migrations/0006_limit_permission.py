"""The permission to give groups limits of their own."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("groupjobs", "0005_running_index")]
    operations = [
        migrations.AlterModelOptions(
            name="jobrun",
            options={
                "ordering": ["-id"],
                "permissions": [
                    ("recover_run", "Can recover runs"),
                    ("retry_run", "Can retry runs"),
                    ("cancel_run", "Can cancel runs"),
                    ("abandon_run", "Can abandon runs"),
                    ("hold_group", "Can hold and resume groups and queues"),
                    ("limit_group", "Can give groups limits of their own"),
                ],
                "verbose_name": "run",
                "verbose_name_plural": "runs",
            },
        ),
    ]
