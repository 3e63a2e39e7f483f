"""The demo from its first program to its verdict."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from project.demo import rows, verify
from project.demo.browser import Browser
from project.demo.failure import DemoFailed
from project.demo.faults import Fault, Faults
from project.demo.stage import Stage

SHOWN = 20  # complaints and refused lines that are printed


@dataclass(frozen=True, slots=True)
class Options:
    """`timeout`: seconds without any progress after which the demo gives up."""

    csv: Path
    workers: int
    port: int
    timeout: float
    kill: bool


def play(options: Options, console: Console) -> str:
    """Play the demo; answer its last line. Raises DemoFailed with the reason when anything is wrong."""
    if not options.csv.is_file():
        raise DemoFailed(f"there is no file {options.csv}")
    with Stage(options.workers, options.port, console.print) as stage:
        browser = Browser(stage.address)
        upload = browser.upload(options.csv)
        console.print(f"uploaded {options.csv.name}: {stage.address}/uploads/{upload}/")
        faults = Faults(_faults(stage, upload) if options.kill else [])
        try:
            _watch(stage, browser, upload, faults, options.timeout, console)
        except DemoFailed as failed:
            raise DemoFailed(
                f"{failed}\n{rows.state_of_affairs()}\n"
                f"the web server's last lines:\n{stage.web.tail(10)}\nthe worker's last lines:\n{stage.worker.tail()}"
            ) from None
        for report in faults.reports():
            console.print(report)
        if options.kill and not stage.own_redis:
            console.print("FLUSHALL of Redis: not done, the server of REDIS_URL may hold what others need")
        return _verdict(options.csv, upload, console)


def _faults(stage: Stage, upload: int) -> list[Fault]:
    def kill() -> Callable[[], bool]:
        stage.kill(stage.worker)
        pid = stage.start_worker().pid
        return lambda: rows.begun_by(pid, upload)

    def flush() -> Callable[[], bool]:
        fence = stage.flush()
        return lambda: rows.begun_above(fence, upload)

    faults = [Fault("SIGKILL of the Celery worker, a new one started", 0.2, kill)]
    return [*faults, Fault("FLUSHALL of Redis", 0.6, flush)] if stage.own_redis else faults


def _watch(stage: Stage, browser: Browser, upload: int, faults: Faults, timeout: float, console: Console) -> None:
    """Show the bar until the upload is finished and each of its runs has ended."""
    columns = (BarColumn(), MofNCompleteColumn(), TaskProgressColumn(show_speed=True), TimeRemainingColumn())
    last: object = None
    moved = time.monotonic()
    with Progress(TextColumn("legs entered"), *columns, console=console) as progress:
        bar = progress.add_task("legs", total=None)
        while True:
            now = browser.progress(upload)
            progress.update(bar, completed=now["entered"], total=now["legs"] or None)
            faults.look(now)
            if now["over"] and not rows.live(upload):
                return _check_usable(now)
            seen = (now["read"], now["entered"], now["failed"], now["state"])
            if seen != last:
                last, moved = seen, time.monotonic()
            elif time.monotonic() - moved > timeout:
                raise DemoFailed(_hanging(now, timeout))
            stage.check()
            time.sleep(faults.pause)


def _check_usable(now: dict[str, Any]) -> None:
    if now["state"] == "unusable":
        raise DemoFailed(f"the file could not be imported: {now['problem']}")


def _hanging(now: dict[str, Any], timeout: float) -> str:
    return (
        f"nothing has moved for {timeout:.0f} s: {now['state']}, line {now['read']} of {now['lines']} read, "
        f"{now['entered']} of {now['legs']} legs entered, {now['failed']} failed"
    )


def _verdict(path: Path, upload: int, console: Console) -> str:
    """Judge every logbook against the file; answer the last line, or raise DemoFailed with the complaints."""
    refused = rows.refused(upload)
    _list(console, f"{len(refused)} lines refused", [f"line {line}: {why}" for line, why in refused.items()])
    verdict = verify.verify(verify.read_file(path, refused.keys()), rows.logbooks(upload))
    runs = rows.runs(upload)
    complaints = [*verdict.complaints, *runs.not_succeeded]
    if runs.runs != verdict.legs:
        complaints.append(f"{runs.runs} runs for the {verdict.legs} legs of the file")
    counts = f"{verdict.lost} lost, {verdict.out_of_order} out of order, {verdict.twice} twice"
    if complaints:
        _list(console, f"{len(complaints)} complaints", complaints)
        raise DemoFailed(f"{runs.runs} runs in {runs.groups} groups, {counts}; first complaint: {complaints[0]}")
    rate = runs.runs / max(runs.seconds, 0.001)
    return f"demo ok: {runs.runs} runs in {runs.groups} groups, {counts}, {rate:.0f} jobs/s"


def _list(console: Console, title: str, lines: list[str]) -> None:
    if lines:
        console.print(f"{title}:")
        for line in lines[:SHOWN]:
            console.print(f"  {line}")
        if len(lines) > SHOWN:
            console.print(f"  and {len(lines) - SHOWN} more")
