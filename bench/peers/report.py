"""Results: collected, judged against the goals, and written as a table and as JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import psutil

from bench.peers.places import ROOT
from bench.peers.systems import SYSTEMS, System
from bench.peers.visit import Measured

LABELS: Final = {system.name: system.label for system in SYSTEMS}
KEEPS: Final = {system.name: system.keeps for system in SYSTEMS}
PYTHON: Final = frozenset(system.name for system in SYSTEMS if not system.node and system.name != "groupjobs")
OWN: Final = "groupjobs"


class Results:
    """What was measured, by kind of work and system."""

    def __init__(self, work: Mapping[str, str]) -> None:
        self.work = work
        self.measured: dict[str, dict[str, list[Measured]]] = {kind: {} for kind in work}
        self.pickups: dict[str, list[float]] = {}
        self.peaks: dict[str, float] = {}
        self.problems: list[str] = []

    def add(self, system: System, kind: str, measured: Measured) -> None:
        """One phase."""
        self.measured[kind].setdefault(system.name, []).append(measured)
        sys.stderr.write(f"{system.name:16} {kind:7} {measured.drained:10,.0f} jobs/s\n")

    def picked_up(self, system: System, seconds: list[float]) -> None:
        """Latencies when idle."""
        self.pickups[system.name] = sorted(seconds)

    def memory(self, system: System, megabytes: float) -> None:
        """The peak of a visit."""
        self.peaks[system.name] = max(megabytes, self.peaks.get(system.name, 0.0))

    def problem(self, system: System, text: str) -> None:
        """What went wrong."""
        self.problems.append(f"{system.name}: {text}")
        sys.stderr.write(f"{system.name}: {text}\n")

    def rate(self, kind: str, name: str, what: str = "drained") -> float | None:
        """The median of jobs per second."""
        found = self.measured[kind].get(name)
        return statistics.median(getattr(m, what) for m in found) if found else None


def machine() -> dict[str, Any]:
    """Where this was measured."""
    cpu = ""
    if os.path.exists("/proc/cpuinfo"):  # noqa: PTH110
        with open("/proc/cpuinfo") as file:  # noqa: PTH123
            cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
    return {
        "cpu": cpu or platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": [round(load, 1) for load in os.getloadavg()],
        "servers": "Valkey and PostgreSQL on the same machine, over unix sockets, PostgreSQL with fsync off",
    }


def goals(results: Results) -> list[dict[str, Any]]:
    """Each goal with its figure; `met` is None where something was not measured."""
    judged = [_ratio(results, "groups", name, 10) for name in LABELS if name in PYTHON and "rows" in KEEPS[name]]
    judged.append(_best(results, "groups", [n for n in PYTHON if KEEPS[n] == "neither"], 3, "the fastest without rows"))
    groupmq = ["groupmq-8", "groupmq-32"]
    judged.append(_best(results, "groups", groupmq, 1, "groupmq's best"))
    judged.append(_best(results, "one", groupmq, 2, "groupmq's best in one group"))
    judged.append(_best(results, "groups", groupmq, 1, "groupmq's best at entering", "entered"))
    return judged + _absolute(results)


def _ratio(results: Results, kind: str, name: str, least: float) -> dict[str, Any]:
    return _best(results, kind, [name], least, LABELS[name])


def _best(
    results: Results, kind: str, names: Sequence[str], least: float, label: str, what: str = "drained"
) -> dict[str, Any]:
    own = results.rate(kind, OWN, what)
    others = [rate for name in names if (rate := results.rate(kind, name, what)) is not None]
    ratio = own / max(others) if own and others else None
    return _judged(f"jobs/s ({kind}, {what}), times {label}", ratio, f">= {least:g}", ratio and ratio >= least)


def _absolute(results: Results) -> list[dict[str, Any]]:
    judged = []
    own, plain = results.pickups.get(OWN), results.pickups.get("celery")
    ratio = statistics.median(own) / statistics.median(plain) if own and plain else None
    judged.append(_judged("pick-up when idle, p50, times plain Celery's", ratio, "<= 1.5", ratio and ratio <= 1.5))
    cost = {name: _middle(found, "workers") for name, found in results.measured["groups"].items()}
    others = [value for name, value in cost.items() if name in PYTHON]
    ratio = cost[OWN] / min(others) if OWN in cost and others else None
    label = "CPU of the workers per job, times the lowest of the Python systems"
    judged.append(_judged(label, ratio, "< 1", ratio and ratio < 1))
    return judged


def _judged(goal: str, figure: float | None, wanted: str, met: Any) -> dict[str, Any]:
    rounded = None if figure is None else round(figure, 2)
    return {"goal": goal, "figure": rounded, "wanted": wanted, "met": None if figure is None else bool(met)}


def _middle(found: Sequence[Measured], name: str) -> float:
    return float(statistics.median(getattr(m.costs, name) for m in found))


def as_json(results: Results) -> dict[str, Any]:
    """Everything."""
    work = {
        kind: {name: [asdict(m) for m in found] for name, found in systems.items()}
        for kind, systems in results.measured.items()
        if systems
    }
    pickups = {name: {"p50": _at(seconds, 0.5), "p99": _at(seconds, 0.99)} for name, seconds in results.pickups.items()}
    return {
        "machine": machine(),
        "work": work,
        "pickup_seconds": pickups,
        "peak_megabytes": {name: round(value) for name, value in results.peaks.items()},
        "goals": goals(results),
        "problems": results.problems,
    }


def _at(ordered: Sequence[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 5)


def as_text(results: Results) -> str:
    """The tables in Markdown."""
    facts = machine()
    lines = [f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gb']} GB, {facts['system']}, Python"]
    lines[0] += f" {facts['python']}. {facts['servers']}."
    lines[0] += f" Load of the machine at the end, this benchmark's own included: {facts['load'][1]} (five minutes)."
    for kind, systems in results.measured.items():
        if systems:
            lines += ["", f"### {results.work[kind]}", "", *_table(systems)]
    lines += ["", "### Idle: how long a single job waits; memory", "", *_idle(results)]
    lines += ["", "### Goals", "", "| goal | figure | wanted | met |", "|---|--:|--:|---|"]
    words = {True: "yes", False: "**no**", None: "not measured"}
    lines += [f"| {g['goal']} | {g['figure']} | {g['wanted']} | {words[g['met']]} |" for g in goals(results)]
    if results.problems:
        lines += ["", "### Problems", "", *(f"- {problem}" for problem in results.problems)]
    return "\n".join(lines) + "\n"


def _table(systems: Mapping[str, Sequence[Measured]]) -> list[str]:
    heads = ["system", "jobs", "rounds", "jobs/s min", "median", "max", "entered/s", "CPU s per 1,000: workers"]
    heads += ["servers", "scripts a job", "Redis commands a job", "commits a job"]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "--:|" * (len(heads) - 1)]
    for name, found in systems.items():
        rates = [m.drained for m in found]
        numbers = [found[0].jobs, len(found), min(rates), statistics.median(rates), max(rates)]
        numbers.append(statistics.median(m.entered for m in found))
        cells = [f"{number:,.0f}" for number in numbers]
        cells += [f"{_middle(found, part):.2f}" for part in ("workers", "servers", "scripts", "commands", "commits")]
        lines.append(f"| {LABELS[name]} | {' | '.join(cells)} |")
    return lines


def _idle(results: Results) -> list[str]:
    lines = ["| system | p50 ms | p99 ms | peak MB of the workers |", "|---|--:|--:|--:|"]
    for name, seconds in results.pickups.items():
        cells = (1000 * _at(seconds, 0.5), 1000 * _at(seconds, 0.99), results.peaks.get(name, 0.0))
        lines.append(f"| {LABELS[name]} | {cells[0]:,.1f} | {cells[1]:,.1f} | {cells[2]:,.0f} |")
    return lines


def write(results: Results, *, files: bool) -> None:
    """Print the tables; with `files` also into bench/README.md and bench/results/latest.json."""
    text = as_text(results)
    sys.stdout.write(text)
    if not files:
        return
    folder = ROOT / "bench"
    (folder / "results").mkdir(exist_ok=True)
    (folder / "results" / "latest.json").write_text(json.dumps(as_json(results), indent=1) + "\n")
    start = "<!-- results: written by the benchmark -->\n"
    readme = (folder / "README.md").read_text()
    (folder / "README.md").write_text(readme[: readme.index(start) + len(start)] + "\n" + text)
