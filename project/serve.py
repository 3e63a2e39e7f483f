"""`python -m project.serve`: the logbook's web server and a worker, until Ctrl-C.

The rows stay in the project's SQLite file (or where DATABASE_URL says). The Redis is an embedded one
that begins empty each time (or the one that REDIS_URL names); the waiting runs are found in the rows.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

LOOK = 0.5  # seconds between two looks at the programs


def main() -> int:
    """Run until interrupted (0), or until a program ends by itself (1)."""
    parser = argparse.ArgumentParser(prog="make serve", description="Web server and worker of the demo project.")
    parser.add_argument("--workers", type=int, default=2, help="child processes of the worker (default: 2)")
    parser.add_argument("--port", type=int, default=8000, help="port of the web server (default: 8000)")
    options = parser.parse_args()

    import django

    django.setup()
    from django.db import connection

    from project.databases import address

    os.environ.setdefault("DATABASE_URL", address(connection.settings_dict))
    return serve(options.workers, options.port)


def serve(workers: int, port: int) -> int:
    """Start everything, say where it is, and wait."""
    from project.demo.failure import DemoFailed
    from project.demo.stage import Stage

    try:
        with Stage(workers, port, print) as stage:
            print("A login for the admin: .venv/bin/python manage.py createsuperuser. Ctrl-C ends.")
            while True:
                stage.check()
                time.sleep(LOOK)
    except KeyboardInterrupt:
        return 0
    except DemoFailed as failed:
        print(failed, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
