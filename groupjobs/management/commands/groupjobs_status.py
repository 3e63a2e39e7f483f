"""`manage.py groupjobs_status`: queues, workers and groups; why a group does not go on, and what to press."""

from __future__ import annotations

import json
import shutil
import time
from argparse import ArgumentParser
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError

from groupjobs import conf, health
from groupjobs.management.status import Status, plain, status, status_of_group
from groupjobs.management.tables import shown, shown_groups
from groupjobs.models import GROUP_LENGTH
from groupjobs.policy import suggestion

CLEAR: Final = "\x1b[2J\x1b[H"
WIDTH: Final = 140  # columns where the output is no terminal


class Command(BaseCommand):
    """Exit status 0; 1 with --health when something is wrong; 2 on bad arguments or a database that does not answer."""

    help = "Show queues, workers and groups, or why one group does not go on and what to press."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The arguments of the command."""
        parser.add_argument("--queue", default="", help="only this queue (default: all)")
        parser.add_argument("--group", default=None, help="explain this group; '#5' is run 5 without a group")
        parser.add_argument("--health", action="store_true", help="say what is wrong; exit status 1 when something is")
        parser.add_argument("--json", action="store_true", help="print the facts as JSON, one line each time")
        parser.add_argument("--watch", type=float, default=None, metavar="SECONDS", help="again every so many seconds")

    def handle(self, **options: Any) -> None:
        """Show once, or with --watch until interrupted."""
        self._check(options)
        if options["health"]:
            self._health(options["json"])
            return
        while True:
            text = self._text(options)
            clear = options["watch"] is not None and not options["json"] and self.stdout.isatty()
            self.stdout.write(f"{CLEAR if clear else ''}{text}")
            if options["watch"] is None:
                return
            self.stdout.flush()
            time.sleep(options["watch"])

    def _check(self, options: dict[str, Any]) -> None:
        queue, group, queues = options["queue"], options["group"], conf.current().queues
        if queue and queue not in queues:
            raise CommandError(f"There is no queue {queue!r}.{suggestion(queue, queues)}", returncode=2)
        if group is not None and (not 0 < len(group) <= GROUP_LENGTH or "\0" in group):
            raise CommandError(f"--group must be the name of a group, not {group!r}.", returncode=2)
        if options["watch"] is not None and not 0.1 <= options["watch"] <= 86400:
            raise CommandError(f"--watch must be seconds from 0.1 to 86400, not {options['watch']}.", returncode=2)

    def _health(self, as_json: bool) -> None:
        found = health.check()
        told = {"ok": found.ok, "problems": list(found.problems), "queues": found.queues}
        self.stdout.write(json.dumps(told) if as_json else "\n".join(found.problems) or "ok")
        if not found.ok:
            raise SystemExit(1)

    def _text(self, options: dict[str, Any]) -> str:
        found = self._read(options["queue"], options["group"])
        if options["json"]:
            return json.dumps(plain(found))
        width = shutil.get_terminal_size((WIDTH, 0)).columns if self.stdout.isatty() else WIDTH
        return shown(found, width) if options["group"] is None else shown_groups(found.groups, width)

    def _read(self, queue: str, group: str | None) -> Status:
        try:
            return status(queue) if group is None else status_of_group(queue, group)
        except DatabaseError as error:
            problem = f"The database does not answer ({type(error).__name__}: {error})."
            raise CommandError(problem, returncode=2) from error
