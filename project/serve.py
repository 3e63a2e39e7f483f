"""`python -m project.serve`: the logbook's web server and its workers, until Ctrl-C.

The rows stay in the project's SQLite file (or where DATABASE_URL says). The Redis is an embedded one
that begins empty each time (or the one that REDIS_URL names); the waiting runs are found in the rows.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import sys
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

LOGIN = "demo"
WORKER_TTL = 5  # seconds: of a flushed Redis a newcomer sees the end


def main() -> int:
    """Run until interrupted (0), or until a program ends by itself (1)."""
    parser = argparse.ArgumentParser(prog="make serve", description="Web server and workers of the demo project.")
    parser.add_argument("--workers", type=int, default=2, help="Celery workers (default: 2, so that one can be killed)")
    parser.add_argument("--children", type=int, default=2, help="child processes of each worker (default: 2)")
    parser.add_argument("--port", type=int, default=8000, help="port of the web server (default: 8000)")
    options = parser.parse_args()
    os.environ["GROUPJOBS"] = json.dumps({"WORKER_TTL": WORKER_TTL, **json.loads(os.environ.get("GROUPJOBS") or "{}")})

    import django

    django.setup()
    from django.db import connection

    from project.databases import address

    os.environ.setdefault("DATABASE_URL", address(connection.settings_dict))
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    return serve(options.workers, options.children, options.port)


def serve(workers: int, children: int, port: int) -> int:
    """Start everything, say where it is, and look after it."""
    from project.demo.failure import DemoFailed
    from project.demo.stage import Stage
    from project.demo.supervisor import Supervisor

    stage = Stage(children, port, _say, workers)
    stage.open_desk()
    try:
        with stage:
            _say(f"Open {stage.address}/ and upload project/data/flights_2013_w1.csv. Ctrl-C ends everything.")
            _say(f"Admin: {stage.address}/admin/ with the name {LOGIN} and the password {new_password()}")
            supervisor = Supervisor(stage)
            while True:
                supervisor.look()
                time.sleep(supervisor.pause)
    except KeyboardInterrupt:
        return 0
    except DemoFailed as failed:
        print(failed, file=sys.stderr)
        return 1


def new_password() -> str:
    """Of the superuser of this demo, who is made where there is none; the password before is good no more."""
    from django.contrib.auth import get_user_model

    user, _ = get_user_model().objects.get_or_create(username=LOGIN)
    user.is_active = user.is_staff = user.is_superuser = True
    password = secrets.token_urlsafe(9)
    user.set_password(password)
    user.save()
    return password


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
