"""Spans of OpenTelemetry, as the extra `otel`: one for each enqueuing and one for each attempt, linked through rows.

Off until `install()`; then the trace context of who enqueues travels in the labels of the row, so an attempt in another
process, also one after a crash, continues that trace.
"""

from __future__ import annotations

import contextvars
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

LABEL: Final = "trace"  # of a run: the trace context as its propagator writes it
SYSTEM: Final = "groupjobs"

_tracer: Tracer | None = None


def install(provider: Any = None) -> None:
    """Trace from now on, through this provider of tracers or the global one.

    Raises ImportError, naming the extra, when OpenTelemetry is not installed.
    """
    global _tracer
    try:
        from opentelemetry import trace
    except ImportError as error:
        raise ImportError("Tracing needs OpenTelemetry: install groupjobs[otel].") from error
    _tracer = trace.get_tracer(SYSTEM, tracer_provider=provider)


def uninstall() -> None:
    """Trace no more."""
    global _tracer
    _tracer = None


def active() -> bool:
    """Whether somebody traces."""
    return _tracer is not None


@contextmanager
def enqueuing(queue: str, job: str, count: int, labels: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A span around the writing of runs; gives the labels that their rows are to carry."""
    if _tracer is None:
        yield labels
        return
    from opentelemetry import propagate
    from opentelemetry.trace import SpanKind

    told = {**_about(queue, job), "messaging.operation.type": "send", "messaging.batch.message_count": count}
    with _tracer.start_as_current_span(f"enqueue {job}", kind=SpanKind.PRODUCER, attributes=told):
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        yield {**labels, LABEL: carrier} if carrier else labels


def begin(queue: str, job: str, labels: str, told: Mapping[str, Any]) -> Span | None:
    """The span of one attempt, a child of who enqueued its run and linked to it; None when nobody traces.

    `labels` are the row's, as JSON text; `told` are further attributes.
    """
    if _tracer is None:
        return None
    from opentelemetry import trace

    parent = _parent(labels)
    origin = trace.get_current_span(parent).get_span_context()
    links = [trace.Link(origin)] if origin.is_valid else []
    about = {**_about(queue, job), "messaging.operation.type": "process"}
    about |= {f"{SYSTEM}.{name}": value for name, value in told.items()}
    return _tracer.start_span(f"run {job}", context=parent, kind=trace.SpanKind.CONSUMER, attributes=about, links=links)


def _about(queue: str, job: str) -> dict[str, Any]:
    return {"messaging.system": SYSTEM, "messaging.destination.name": queue, f"{SYSTEM}.job": job}


def _parent(labels: str) -> Any:
    """The context that the labels carry; an empty one when they carry none that can be read."""
    from opentelemetry import context, propagate

    try:
        carrier = json.loads(labels or "{}").get(LABEL)
    except (ValueError, AttributeError):
        carrier = None
    return propagate.extract(carrier if isinstance(carrier, dict) else {}, context=context.Context())


def clean_context(span: Span) -> contextvars.Context:
    """An empty context for a handler, in which this span is the current one."""
    from opentelemetry import context, trace

    clean = contextvars.Context()
    clean.run(context.attach, trace.set_span_in_context(span, context.Context()))
    return clean


def end(span: Span, outcome: str, error: Mapping[str, str] | None = None) -> None:
    """The attempt is over; `error` has class, message and traceback of what went wrong."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute(f"{SYSTEM}.outcome", outcome)
    if error:
        names = {"class": "exception.type", "message": "exception.message", "traceback": "exception.stacktrace"}
        span.add_event("exception", {names[name]: text for name, text in error.items() if name in names})
        span.set_status(Status(StatusCode.ERROR, error.get("message", "")))
    span.end()
