"""`manage.py demo`: the whole application, started, fed with a file, and judged."""

from __future__ import annotations

import signal
from argparse import BooleanOptionalAction
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console

from project.demo.failure import DemoFailed
from project.demo.play import Options, play

DATA = Path(__file__).resolve().parents[3] / "data" / "flights_2013_w1.csv"


class Command(BaseCommand):
    """Starts Redis (unless REDIS_URL names one), a database, the web server and a Celery worker; stops them all."""

    help = "Upload a file of flights to a real web server and a real worker, and verify every logbook against it."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """All have defaults."""
        parser.add_argument("--csv", type=Path, default=DATA, help="file of flights (default: the bundled one)")
        parser.add_argument("--workers", type=int, default=2, help="child processes of the worker (default: 2)")
        parser.add_argument("--port", type=int, default=0, help="port of the web server (default: a free one)")
        parser.add_argument("--timeout", type=float, default=60.0, help="seconds without progress before giving up")
        kill = "kill the worker in mid-run, then flush Redis (unless REDIS_URL names one)"
        parser.add_argument("--kill", action=BooleanOptionalAction, default=True, help=kill)

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the verdict as the last line; any other ending is a CommandError."""
        names = ("csv", "workers", "port", "timeout", "kill")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            line = play(
                Options(**{name: options[name] for name in names}),
                Console(highlight=False, markup=False, soft_wrap=True),
            )
        except DemoFailed as failed:
            raise CommandError(f"demo failed: {failed}") from None
        except KeyboardInterrupt:
            raise CommandError("demo stopped before its end", returncode=130) from None
        self.stdout.write(line)
        self.stdout.flush()
