"""`manage.py recover_ghosts`: find runs that are stuck or lost, and mend them."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError
from redis.exceptions import RedisError

from groupjobs import conf
from groupjobs.explain.causes import add_causes
from groupjobs.policy import suggestion
from groupjobs.recovery import COUNTS, Report, Scope, recover

UNREACHABLE: Final = (DatabaseError, RedisError, OSError)
MOST_LINES: Final = 50
MOST: Final = 1_000_000_000


class Command(BaseCommand):
    """Exit status 0; 1 when something was refused; 2 on bad arguments or an unreachable server."""

    help = "Find runs whose worker died, rows that Redis forgot and entries without a row, and mend them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The arguments of the command."""
        parser.add_argument("--queue", default="", help="only this queue (default: all)")
        parser.add_argument("--group", default=None, help="only this group")
        parser.add_argument("--abandon", action="store_true", help="end each ghost as ABANDONED, no other try")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")
        parser.add_argument("--limit", type=int, default=None, metavar="N", help="move at most N runs")
        parser.add_argument("--watch", type=float, default=None, metavar="SECONDS", help="again every so many seconds")

    def handle(self, **options: Any) -> None:
        """Recover once, or with --watch until interrupted."""
        scope = self._scope(options)
        while True:
            report = self._recover(scope, options["dry_run"])
            self.stdout.write(json.dumps(report.as_dict()) if options["json"] else table(report))
            if options["watch"] is None:
                break
            self.stdout.flush()
            time.sleep(options["watch"])
        if report.counts["refused"]:
            raise SystemExit(1)

    def _scope(self, options: dict[str, Any]) -> Scope:
        queue, queues = options["queue"], conf.current().queues
        if queue and queue not in queues:
            raise CommandError(f"There is no queue {queue!r}.{suggestion(queue, queues)}", returncode=2)
        for name, least in (("limit", 1), ("watch", 0.1)):
            if options[name] is not None and not least <= options[name] <= MOST:
                problem = f"--{name} must be at least {least} and at most {MOST}, not {options[name]}."
                raise CommandError(problem, returncode=2)
        if options["group"] and "\0" in options["group"]:
            raise CommandError(f"There is no group {options['group']!r}.", returncode=2)
        patience = 2 * conf.current().worker_ttl
        return Scope(queue, options["group"], None, options["abandon"], options["limit"], patience)

    def _recover(self, scope: Scope, dry_run: bool) -> Report:
        try:
            report = recover(scope, dry_run)
            if dry_run:
                add_causes(report, scope.queue, scope.group)
            return report
        except UNREACHABLE as error:
            raise CommandError(
                f"Nothing more was changed: a server does not answer ({type(error).__name__}: {error}). "
                "Everything that was moved before is complete; run the command again.",
                returncode=2,
            ) from error


def table(report: Report) -> str:
    """The report for a person: counts first, then the runs that were found."""
    from rich.console import Console
    from rich.table import Table

    console = Console(record=True, file=open_null(), width=120)
    what = "would do" if report.dry_run else "did"
    counts = Table(title=f"recover_ghosts {what}: queues {', '.join(report.queues) or '-'}")
    for name in COUNTS:
        counts.add_column(name, justify="right")
    counts.add_row(*(str(report.counts[name]) for name in COUNTS))
    console.print(counts)
    if report.details:
        console.print(_lines(report))
    return console.export_text()


def _lines(report: Report) -> Any:
    from rich.markup import escape
    from rich.table import Table

    lines = Table()
    for name in ("run", "group", "queue", "verdict", "reason", "worker"):
        lines.add_column(name)
    for detail in report.details[:MOST_LINES]:
        lines.add_row(*(escape(str(detail[name])) for name in ("run", "group", "queue", "verdict", "reason", "worker")))
    if len(report.details) > MOST_LINES:
        lines.add_row("...", f"{len(report.details) - MOST_LINES} more", "", "", "", "")
    return lines


def open_null() -> Any:
    """Somewhere to print to while the console records."""
    from io import StringIO

    return StringIO()
