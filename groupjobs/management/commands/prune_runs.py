"""`manage.py prune_runs`: delete ended runs that `RETENTION` no longer keeps."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError

from groupjobs import conf
from groupjobs.policy import suggestion
from groupjobs.recovery import prune


class Command(BaseCommand):
    """Exit status 0; 2 on bad arguments or when the database does not answer."""

    help = "Delete runs that ended longer ago than GROUPJOBS['RETENTION'] keeps them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The arguments of the command."""
        parser.add_argument("--queue", default="", help="only this queue (default: all)")
        parser.add_argument("--limit", type=int, default=None, metavar="N", help="delete at most N runs")
        parser.add_argument("--dry-run", action="store_true", help="say how many would go, and delete nothing")
        parser.add_argument("--json", action="store_true", help="print the counts as JSON")

    def handle(self, **options: Any) -> None:
        """Prune once."""
        queue, limit, dry_run = options["queue"], options["limit"], options["dry_run"]
        if queue and queue not in conf.current().queues:
            raise CommandError(f"There is no queue {queue!r}.{suggestion(queue, conf.current().queues)}", returncode=2)
        if limit is not None and limit < 1:
            raise CommandError(f"--limit must be at least 1, not {limit}.", returncode=2)
        try:
            counts = prune(queue, dry_run, limit)
        except DatabaseError as error:
            raise CommandError(
                f"The database does not answer ({type(error).__name__}: {error}). What was pruned before is gone; "
                "run the command again.",
                returncode=2,
            ) from error
        total = sum(counts.values())
        if options["json"]:
            self.stdout.write(json.dumps({"dry_run": dry_run, "total": total, "pruned": counts}))
            return
        each = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        self.stdout.write(f"{'Would prune' if dry_run else 'Pruned'} {total} runs{f': {each}' if each else ''}.")
