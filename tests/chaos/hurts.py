"""Faults of processes: killed, stopped, replaced. Each answers what it did, '' when it could do nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tests.chaos.chaos import Chaos
from tests.chaos.lines import busy as busy_processes
from tests.servers.worker import Worker

SEEK_WORK: Final = 0.8  # how often a fault looks for a process that executes something
Target = tuple[int, str]  # process id, kind


def kill_child(chaos: Chaos) -> str:
    """SIGKILL of one process of a pool."""
    worker = _some(chaos)
    if not worker:
        return ""
    pid = _one_of(chaos, worker.children())
    chaos.record.kill(pid, worker.pid, "child")
    return f"child {pid} of {worker.name}"


def kill_main(chaos: Chaos) -> str:
    """SIGKILL of a worker's main process."""
    worker = _some(chaos)
    if not worker:
        return ""
    chaos.record.kill(worker.pid, worker.pid, "main")
    return worker.name


def kill_watchdog(chaos: Chaos) -> str:
    """SIGKILL of a worker's watchdog, which has to be started again."""
    worker = _some(chaos)
    watchdog = chaos.fleet.watchdog(worker) if worker else None
    if not worker or not watchdog:
        return ""
    chaos.record.kill(watchdog, worker.pid, "watchdog")
    return f"watchdog {watchdog} of {worker.name}"


def kill_both(chaos: Chaos) -> str:
    """SIGKILL of watchdog and main process: only the TTL can tell."""
    worker = _some(chaos)
    watchdog = chaos.fleet.watchdog(worker) if worker else None
    if not worker or not watchdog:
        return ""
    chaos.record.kill(watchdog, worker.pid, "watchdog")
    chaos.record.kill(worker.pid, worker.pid, "both")
    return worker.name


def stop_child(chaos: Chaos) -> str:
    """SIGSTOP of one process of a pool, past the TTL."""
    worker = _some(chaos)
    return _stop(chaos, worker, [(_one_of(chaos, worker.children()), "child")]) if worker else ""


def stop_main(chaos: Chaos) -> str:
    """SIGSTOP of a main process, past the TTL."""
    worker = _some(chaos)
    return _stop(chaos, worker, [(worker.pid, "main")]) if worker else ""


def stop_watchdog(chaos: Chaos) -> str:
    """SIGSTOP of a watchdog, past the TTL."""
    worker = _some(chaos)
    watchdog = chaos.fleet.watchdog(worker) if worker else None
    return _stop(chaos, worker, [(watchdog, "watchdog")]) if worker and watchdog else ""


def stop_worker(chaos: Chaos) -> str:
    """SIGSTOP of all processes of a worker, as a host that sleeps."""
    worker = _some(chaos)
    if not worker:
        return ""
    watchdog = chaos.fleet.watchdog(worker)
    all_of_it = [(worker.pid, "main"), *((pid, "child") for pid in worker.children())]
    return _stop(chaos, worker, [*all_of_it, *([(watchdog, "watchdog")] if watchdog else [])])


def deploy(chaos: Chaos) -> str:
    """A new worker comes, then the oldest one leaves in order."""
    if not chaos.fleet.workers or len(chaos.fleet.leaving) > 1:
        return ""
    old, new = chaos.fleet.workers[0], chaos.fleet.launch()
    chaos.later(chaos.rng.uniform(0, 4), lambda: _retire(chaos, old))
    return f"{new.name} comes, {old.name} goes"


def kill_producer(chaos: Chaos) -> str:
    """SIGKILL of a producer, perhaps between commit and publication."""
    if not chaos.crew.working:
        return ""
    producer = chaos.rng.choice(chaos.crew.working)
    producer.process.kill()
    return f"producer {producer.notes.stem}"


def _retire(chaos: Chaos, worker: Worker) -> None:
    if worker.alive and worker in chaos.fleet.workers:
        chaos.fleet.retire(worker)


def _some(chaos: Chaos) -> Worker | None:
    """A worker with children that no other fault has in its hands, mostly one with the longest run in hands."""
    stopped = {stop.main for stop in chaos.record.stops if stop.pid in chaos.record.stopped()}
    fit = [worker for worker in chaos.fleet.workers if worker.alive and worker.pid not in stopped and worker.children()]
    if not fit or chaos.rng.random() > SEEK_WORK:
        return chaos.rng.choice(fit) if fit else None
    busy = busy_processes(chaos.handler_log)
    chaos.rng.shuffle(fit)
    return max(fit, key=lambda worker: max((busy.get(pid, 0.0) for pid in worker.children()), default=0.0))


def _one_of(chaos: Chaos, children: Sequence[int]) -> int:
    """One process of a pool, mostly the one with the longest run in hands."""
    if chaos.rng.random() > SEEK_WORK:
        return chaos.rng.choice(children)
    busy = busy_processes(chaos.handler_log)
    return max(chaos.rng.sample(children, len(children)), key=lambda pid: busy.get(pid, 0.0))


def _stop(chaos: Chaos, worker: Worker | None, targets: Iterable[Target]) -> str:
    assert worker is not None
    seconds = chaos.rng.uniform(1.1, 2.5) * chaos.plan.ttl
    for pid, kind in targets:
        chaos.record.stop(pid, worker.pid, kind)
        chaos.later(seconds, lambda pid=pid: chaos.record.resume(pid))  # type: ignore[misc]
    return f"{worker.name} for {seconds:.1f} s"
