"""The roll: which executions and children a worker has, read from its home; which of them have died."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Final

from groupjobs.watchdog.home import Execution, Home, Killed
from groupjobs.watchdog.processes import Process, look

NEVER: Final = float("inf")


class Roll:
    """What the watchdog knows of its worker's processes. Talks to no server."""

    def __init__(self, home: Home, main: Process, ttl: float) -> None:
        self.home = home
        self.main = main
        self.ttl = ttl
        self.children: dict[int, Process] = {}
        self.executions: dict[str, Execution] = {}
        self.dead: dict[str, Execution] = {}  # to be reaped as soon as Redis answers
        self._signed_off: dict[str, str] = {}  # nonce -> queue, since that queue's last beat
        self._stopped: dict[int, float] = {}
        self._killed: set[int] = set()

    def call(self) -> None:
        """Read the home; find who has begun, signed off, died or been stopped for too long."""
        for child in self.home.children.all().values():
            if child["pid"] not in self.children:
                self.children[child["pid"]] = Process(child["pid"], child["start"])
        found: dict[str, Execution] = self.home.executions.all()
        self._signed_off |= {n: known["queue"] for n, known in self.executions.items() if n not in found}
        self.executions = {nonce: known for nonce, known in found.items() if nonce not in self.dead}
        for nonce, known in list(self.executions.items()):
            if self._ended(known["pid"]) or self._stands_still(known["pid"]):
                over, struck = known.get("until", NEVER) <= time.monotonic(), known["pid"] in self._killed
                self.dead[nonce] = {**self.executions.pop(nonce), "over": over, "struck": struck}
        self._part_from_children()

    def _ended(self, pid: int) -> bool:
        if pid == self.main.pid:
            return self.main.ended()
        return (pid not in self.children and not self._adopt(pid)) or self.children[pid].ended()

    def _adopt(self, pid: int) -> bool:
        """A child whose own record is missing, such as after a full disk."""
        seen = look(pid)
        if seen is None or seen.parent != self.main.pid:
            return False
        self.children[pid] = Process(pid, seen.start)
        return True

    def _stands_still(self, pid: int) -> bool:
        """A child that is stopped for the TTL is dead to us; a stopped main process is judged by its beats."""
        if pid == self.main.pid or not self.children[pid].stopped():
            self._stopped.pop(pid, None)
            return False
        return time.monotonic() - self._stopped.setdefault(pid, time.monotonic()) > self.ttl

    def _part_from_children(self) -> None:
        for pid, process in list(self.children.items()):
            if process.ended():
                process.close()
                self.home.children.take(str(pid))
                del self.children[pid]
                self._stopped.pop(pid, None)
        self._killed &= {*self.children, *(known["pid"] for known in self.executions.values())}

    @property
    def stopped(self) -> bool:
        """Whether a child that serves stands still."""
        return bool(self._stopped)

    def listed(self, queue: str, worker: str) -> dict[str, int]:
        """What is alive in a queue under an incarnation: nonce -> pid. Stopped processes are left out."""
        return {
            nonce: known["pid"]
            for nonce, known in self.executions.items()
            if (known["queue"], known["worker"]) == (queue, worker) and known["pid"] not in self._stopped
        }

    def compare(self, queue: str, worker: str, registered: dict[str, int]) -> None:
        """Bury what Redis still has registered although it signed off or its process is dead."""
        if not registered.keys() <= self.executions.keys():
            self.call()
        for nonce, pid in registered.items():
            over = nonce in self._signed_off or (nonce not in self.executions and self._ended(pid))
            if over and nonce not in self.dead:
                self.dead[nonce] = {"queue": queue, "worker": worker, "pid": pid}
        self._signed_off = {nonce: home for nonce, home in self._signed_off.items() if home != queue}

    def forget(self, nonce: str) -> None:
        """Redis was told of this one's death, or knows that it has ended: it is never listed again."""
        self.executions.pop(nonce, None)
        self.dead.pop(nonce, None)
        self.home.executions.take(nonce)

    def kill_overdue(self) -> Iterator[Execution]:
        """Kill children whose run has lasted longer than its hard time limit; answers their executions."""
        for nonce, known in list(self.executions.items()):
            if self._limit(known) <= time.monotonic() and self.home.executions.get(nonce) == known:
                self._kill(nonce, known, over=True)
                yield known

    def kill(self, nonce: str, run: int) -> Execution | None:
        """Kill the child of this execution because of a run; None when it has ended, is no child, or is at another run.

        Only runs with a limit are known here. The child may go on to its next run in this very moment: what it
        has then pays nothing for it.
        """
        known: Execution | None = self.home.executions.get(nonce) if nonce in self.executions else None
        if known is None or known["pid"] not in self.children or known.get("run", run) != run:
            return None
        self._kill(nonce, known, over=False)
        return known

    def _kill(self, nonce: str, known: Execution, *, over: bool) -> None:
        """First the word, then the deed: whoever finds the child dead finds out why."""
        child = self.children[known["pid"]]
        run, fence = known.get("run", 0), known.get("fence", 0)
        word = Killed(queue=known["queue"], pid=child.pid, start=child.start, run=run, fence=fence, over=over)
        with contextlib.suppress(OSError):  # a full disk: then Redis alone knows
            self.home.killed.put(nonce, word)
        self._killed.add(child.pid)
        child.kill()

    def next_limit(self) -> float:
        """When the next hard time limit ends, in monotonic seconds."""
        return min(map(self._limit, self.executions.values()), default=NEVER)

    def _limit(self, known: Execution) -> float:
        killable = known["pid"] in self.children and known["pid"] not in self._killed
        return known.get("until", NEVER) if killable else NEVER
