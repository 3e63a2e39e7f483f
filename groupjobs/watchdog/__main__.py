"""The program: `python -m groupjobs.watchdog`, started by a worker, with its assignment on stdin."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Final

# Supervisors send their signals to every process of a service. The watchdog ends with its worker.
IGNORED: Final = ("SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGTSTP")
FORMAT: Final = "[%(asctime)s: %(levelname)s/Watchdog-%(process)d] %(message)s"


def main() -> None:
    """Watch one worker until it has ended."""
    for name in IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    # The worker sees the end of our standard output; what settings modules print must not go there.
    os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    from groupjobs.watchdog.assignment import Assignment
    from groupjobs.watchdog.home import Home
    from groupjobs.watchdog.watch import Watch

    line = sys.stdin.buffer.readline()
    if not line:
        return
    assignment = Assignment.of(line)
    logging.basicConfig(stream=sys.stderr, level=assignment.level, format=FORMAT)
    if Path(assignment.home).is_dir():
        Watch(assignment, Home(Path(assignment.home)), sys.stdin.fileno()).run()


if __name__ == "__main__":
    main()
