"""The watch: beat while the worker lives, reap what has died, end with it."""

from __future__ import annotations

import logging
import os
import select
import time
from typing import Final

from redis.exceptions import RedisError

from groupjobs import conf
from groupjobs.outage import Outage
from groupjobs.store.connect import store_of
from groupjobs.watchdog.assignment import Assignment
from groupjobs.watchdog.home import Execution, Home, Mailbox
from groupjobs.watchdog.processes import POLL, Process
from groupjobs.watchdog.pulse import Pulse
from groupjobs.watchdog.roll import Roll

logger = logging.getLogger("groupjobs.watchdog")

REDIS_ERRORS: Final = (RedisError, OSError)
LOOK_AGAIN: Final = 1.0  # seconds between two looks at a process that stands still
KILLED_WITHIN: Final = 5.0  # seconds that killed children may take to end
FAREWELL: Final = 3.0  # seconds to reap after an end in order; after any other, twice the TTL


class Watch:
    """Watches one worker. `lifeline` reads as ended when the main process has ended or replaced itself."""

    def __init__(self, assignment: Assignment, home: Home, lifeline: int) -> None:
        self.settings = conf.load(assignment.settings)
        self.ttl = self.settings.worker_ttl
        self.slots = assignment.slots
        self.home = home
        self.lifeline = lifeline
        self.mailbox = Mailbox(home)
        self.main = Process(assignment.main)
        self.roll = Roll(home, self.main, self.ttl)
        self.pulses: dict[str, Pulse] = {}
        self.outage = Outage("Redis (beats)", pause=min(1.0, self.ttl / 10))
        self.main_stopped = False
        # What we watch is our parent, not a later process with its number.
        self.orphaned = os.getppid() != assignment.main

    def run(self) -> None:
        """Until the worker has ended and is reaped."""
        while not (self.home.finished or self.orphaned or self.main.ended()):
            self._look()
            self._wait()
        self._end()

    def _look(self) -> None:
        self.mailbox.empty()
        self.roll.call()
        for known in self.roll.kill_overdue():
            logger.error("Run %s lasts longer than its time limit: process %s is killed.", *_named(known))
        self._meet_queues()
        if self.outage.skip():
            return
        try:
            answered = self._beat()
            answered = self._reap() or answered
        except REDIS_ERRORS as error:
            self.outage.failed(error, "no beat arrives; the queue's clock stands still for as long as nobody asks it")
        else:
            if answered:
                self.outage.ended()

    def _meet_queues(self) -> None:
        for queue in self.home.served():
            if queue not in self.pulses and queue in self.settings.queues:
                store = store_of(self.settings, queue, "beat")
                self.pulses[queue] = Pulse(queue, store, self.home, self.main.pid, self.slots, self.ttl)

    def _beat(self) -> bool:
        """Whether Redis was asked."""
        leaving, beaten = self.home.leaving, False
        for pulse in self.pulses.values():
            if time.monotonic() < pulse.due and (pulse.announced or not leaving):
                continue
            self.main_stopped = self.main.stopped()
            if not self.main_stopped:
                self._beat_once(pulse, leaving)
                beaten = True
        return beaten

    def _beat_once(self, pulse: Pulse, leaving: bool) -> None:
        worker = pulse.worker
        listed = self.roll.listed(pulse.queue, worker)
        reply = pulse.beat(listed, leaving)
        if reply.state == "format":
            return
        for nonce in listed.keys() - reply.consumers.keys():
            self.roll.forget(nonce)
        self.roll.compare(pulse.queue, worker, dict(reply.consumers))
        for nonce, run in reply.kills:
            if (known := self.roll.kill(nonce, run)) is not None:
                logger.warning("Run %s is cancelled by force: process %s is killed.", run, known["pid"])

    def _reap(self) -> bool:
        dead = bool(self.roll.dead)
        for nonce, known in list(self.roll.dead.items()):
            if known["queue"] in self.pulses:
                self.pulses[known["queue"]].reap(nonce, known)
                logger.warning("A consumer of %s in process %s is dead and reaped.", known["queue"], known["pid"])
            self.roll.forget(nonce)
        return dead

    def _wait(self) -> None:
        """Until something has happened or is due."""
        poll = select.poll()
        processes = (self.main, *self.roll.children.values())
        for fd in (self.lifeline, self.mailbox.fileno(), *(process.fd for process in processes)):
            if fd is not None:
                poll.register(fd, select.POLLIN)
        happened = dict(poll.poll(1000 * self._pause(any(process.fd is None for process in processes))))
        self.orphaned = self.orphaned or self.lifeline in happened

    def _pause(self, blind: bool) -> float:
        now = time.monotonic()
        pauses = [LOOK_AGAIN if not self.pulses or self.main_stopped or self.roll.stopped else self.ttl]
        pauses.append(POLL if blind else self.ttl)
        if self.outage.skip():
            pauses.append(self.outage.pause)
        elif not self.main_stopped:
            pauses += [pulse.due - now for pulse in self.pulses.values()]
        pauses.append(self.roll.next_limit() - now)
        return max(0.0, min(pauses))

    def _end(self) -> None:
        """Reap the worker, once none of its children can write a row any more."""
        if not self.home.finished:
            self._kill_children()
        self._meet_queues()
        patience = FAREWELL if self.home.finished else 2 * self.ttl
        until = time.monotonic() + patience
        left = list(self.pulses.values())
        while left and time.monotonic() < until:
            try:
                left[-1].end(self.home.leaving, self.roll.dead)
                left.pop()
            except REDIS_ERRORS as error:
                self.outage.failed(error, "the worker has ended and cannot be reaped; its TTL will decide")
                time.sleep(self.outage.pause)
        self.home.remove()

    def _kill_children(self) -> None:
        logger.warning("The worker's main process %s has ended without a word.", self.main.pid)
        self.roll.call()
        for child in self.roll.children.values():
            child.kill()
        until = time.monotonic() + KILLED_WITHIN
        while time.monotonic() < until and not all(child.ended() for child in self.roll.children.values()):
            time.sleep(0.005)


def _named(known: Execution) -> tuple[int | None, int]:
    return known.get("run"), known["pid"]
