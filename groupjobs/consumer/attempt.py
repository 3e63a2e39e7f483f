"""One attempt: call the handler in a clean context, and say in plain data what came of it."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import os
import signal
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from asgiref.sync import async_to_sync
from django.db import transaction

from groupjobs import ledger, policy, tracing
from groupjobs.consumer import announcing
from groupjobs.consumer.batch import Item
from groupjobs.consumer.leftovers import no_transaction_left
from groupjobs.errors import Cancel, Hold, LeaseLost, Retry, SoftTimeLimit
from groupjobs.ledger import Attempt, Settlement
from groupjobs.lifecycle import RUNNING, SUCCEEDED

logger = logging.getLogger("groupjobs")

MakeContext = Callable[[Item], Any]
LONGEST_TEXT: Final = 100_000  # characters of a message or traceback that a row keeps


class LateCommit(Exception):
    """The run's row is no longer under this attempt's fence: its handler's writes must not be committed."""


class OwnRow(RuntimeError):
    """An atomic handler has changed or deleted its run's own row, so that its outcome could not be written."""


class BadResult(TypeError):
    """A handler's return value is no JSON."""


def attempt(item: Item, make_context: MakeContext) -> Settlement:
    """Run the handler of an item to its end. Handlers' exceptions come back as outcomes.

    LeaseLost is raised, for an attempt that has no outcome of its own, and what is no Exception, for
    the consumer to tell apart. An atomic run is settled inside its own transaction; its settlement then
    says `committed`.
    """
    call = _call(item, make_context)
    clean = contextvars.Context() if item.span is None else tracing.clean_context(item.span)
    try:
        return clean.run(_atomic, item, call) if item.row.atomic else _plain(item, clean, call)
    except Retry as asked:
        return _after_failure(item, asked, delay=asked.after)
    except Cancel as asked:
        return _cancelled(item, plain(str(asked.reason)))
    except SoftTimeLimit as limit:
        return _after_failure(item, limit, outcome="timed_out")
    except Hold as asked:
        return _held(item, asked)
    except LateCommit:
        raise LeaseLost from None
    except Exception as error:
        return _failed(item, error)


def _cancelled(item: Item, reason: str) -> Settlement:
    log = Attempt(item.run, _fence(item), "cancelled", item.row.life, message=reason, worker=item.worker)
    return Settlement(item.run, _fence(item), "cancel", reason=reason[:255], attempt=log)


def _held(item: Item, asked: Hold) -> Settlement:
    """The run goes back and its group is held; a run without a group has nothing to hold, so it fails."""
    if not item.row.group:
        return _after_failure(item, TypeError("Hold was raised by a run that has no group to hold."), again=False)
    return Settlement(item.run, _fence(item), "retry", tried=False, holds=plain(asked.reason)[:255] or "asked")


def _fence(item: Item) -> int:
    return item.reservation.fence


def _call(item: Item, make_context: MakeContext) -> Callable[[], Any]:
    handler = item.handler
    assert handler is not None
    function = async_to_sync(_limited(item, handler.func)) if handler.is_async else handler.func
    args = [make_context(item), *item.args] if handler.takes_context else item.args
    return lambda: _in_this_process(item, lambda: function(*args, **item.kwargs))


def _in_this_process(item: Item, call: Callable[[], Any]) -> Any:
    """Call the handler. A copy of the process that it forked and that comes back out of it ends here."""
    pid = os.getpid()
    try:
        return call()
    finally:
        if os.getpid() != pid:
            logger.error("%s (run %s) forked; its child left the handler and is ended.", item.row.job, item.run)
            os._exit(1)


def _limited(item: Item, func: Callable[..., Any]) -> Callable[..., Any]:
    """A coroutine function that raises SoftTimeLimit where it waits for longer than its limit."""
    limit = item.row.soft_time_limit
    if limit is None:
        return func

    async def limited(*args: Any, **kwargs: Any) -> Any:
        clock = asyncio.timeout(limit)
        try:
            async with clock:
                return await func(*args, **kwargs)
        except TimeoutError:
            if clock.expired():
                raise SoftTimeLimit from None
            raise

    return limited


def _plain(item: Item, clean: contextvars.Context, call: Callable[[], Any]) -> Settlement:
    with no_transaction_left(item.gate), item.gate:
        value = clean.run(call)
    return _succeeded(item, value)


def _succeeded(item: Item, value: Any) -> Settlement:
    return Settlement(item.run, _fence(item), "succeed", result=result_text(value))


def result_text(value: Any) -> str | None:
    """A return value as JSON text, or BadResult: what a row would not give back is refused here."""
    if value is None:
        return None
    try:
        (plain_value,), _ = policy.json_checked("", [value], {}, ("the return value",))
        return json.dumps(plain_value, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise BadResult(f"The return value is no JSON: {error}") from error


def _atomic(item: Item, call: Callable[[], Any]) -> Settlement:
    """The handler's writes and its terminal row are one commit; zero rows at the end roll it back."""
    settled: Settlement | None = None
    try:
        with no_transaction_left(item.gate), transaction.atomic(using=ledger.alias(), durable=True):
            with item.gate:
                value = call()
            settled = _succeeded(item, value)
            if ledger.settle([settled])[item.run].word != ledger.SETTLED:
                raise LateCommit
    except LateCommit:
        if ledger.read([item.run]).get(item.run) == (RUNNING, _fence(item)):
            raise OwnRow("The handler changed the row of its own run.") from None
        raise
    except Exception:
        if settled is None or not _committed(item):
            raise
        logger.exception("Run %s is committed; what followed its commit failed.", item.run)
    assert settled is not None
    return replace(settled, committed=True)


def _committed(item: Item) -> bool:
    """After an error at COMMIT its reply may be lost: the row tells. Terminal under my fence is done."""
    ledger.forget_connection()
    status, fence = ledger.read([item.run]).get(item.run, ("", 0))
    return status == SUCCEEDED and fence == _fence(item)


def burst(item: Item, error: BaseException) -> Settlement:
    """A handler that ended by sys.exit() or another BaseException has failed: it ran, and nobody asked it to end."""
    return _after_failure(item, error, again=False)


def from_keyboard() -> bool:
    """Whether Ctrl-C raises here: a child of a pool ignores it, and Celery's own handler does not raise."""
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _failed(item: Item, error: Exception) -> Settlement:
    handler = item.handler
    again = handler is not None and issubclass(type(error), handler.policy.retry_on)
    return _after_failure(item, error, again=again)


def _after_failure(
    item: Item, error: BaseException, *, again: bool = True, delay: Any = None, outcome: str = "failed"
) -> Settlement:
    """One try is used up: another one after a back-off, or FAILED."""
    handler, row = item.handler, item.row
    assert handler is not None
    announcing.failed(item, error)
    found = described(error)
    log = Attempt(
        item.run, _fence(item), outcome, row.life, found["class"], found["message"], found["traceback"], item.worker
    )
    failures = row.failures + 1
    base = Settlement(item.run, _fence(item), "fail", error=found, failed=True, attempt=log)
    if not again or failures >= row.max_attempts:
        return base
    seconds = policy.retry_delay(handler.policy, failures) if delay is None else _seconds(delay)
    return replace(base, transition="retry", delay=seconds, yields=row.on_retry == "yield")


def _seconds(delay: Any) -> float:
    return max(0.0, delay.total_seconds() if hasattr(delay, "total_seconds") else float(delay))


def described(error: BaseException) -> dict[str, str]:
    """An exception as text that every database takes: no NUL, no lone surrogate."""
    kind = type(error)
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "message": plain(_made(lambda: str(error))),
        "traceback": plain(_made(lambda: "".join(traceback.format_exception(error)))[-LONGEST_TEXT:]),
    }


def _made(text: Callable[[], str]) -> str:
    try:
        return text()
    except Exception as worse:
        return f"Its text cannot be made: {type(worse).__name__}"


def plain(text: str) -> str:
    """Text without what databases refuse: NUL becomes its escape, lone surrogates theirs."""
    return text[:LONGEST_TEXT].replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
