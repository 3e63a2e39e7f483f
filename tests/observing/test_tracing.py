"""Spans: from who enqueues to each attempt, through the row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from groupjobs import job, tracing
from groupjobs.models import JobRun
from groupjobs.store import Store
from tests.core.serving import drain
from tests.jobsapp.jobs import fails, flaky, noop

Spans = Callable[[str], list[ReadableSpan]]

provider = TracerProvider()


@job(atomic=True)
def with_a_span_of_its_own() -> None:
    with provider.get_tracer("a project").start_as_current_span("inner"):
        pass


@pytest.fixture
def spans(store: Store) -> Iterator[Spans]:
    """The finished spans of this name, in the order of their beginnings."""
    exporter = InMemorySpanExporter()
    processor = SimpleSpanProcessor(exporter)
    provider.add_span_processor(processor)
    tracing.install(provider)
    yield lambda name: sorted(
        (span for span in exporter.get_finished_spans() if span.name == name), key=lambda span: span.start_time or 0
    )
    tracing.uninstall()
    exporter.shutdown()


def named(function: str) -> str:
    return f"tests.jobsapp.jobs.{function}"


def told(span: ReadableSpan, *names: str) -> tuple[Any, ...]:
    return tuple((span.attributes or {}).get(name) for name in names)


def test_a_run_continues_the_trace_of_who_enqueued_it(spans: Spans) -> None:
    with provider.get_tracer("a view").start_as_current_span("request") as request:
        result = noop.using(labels={"tenant": "a"}).enqueue()
    drain()
    (sent,), (ran,) = spans(f"enqueue {named('noop')}"), spans(f"run {named('noop')}")
    assert sent.parent is not None
    assert sent.parent.span_id == request.get_span_context().span_id
    assert (sent.kind, ran.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert ran.parent is not None
    assert (ran.context.trace_id, ran.parent.span_id) == (request.get_span_context().trace_id, sent.context.span_id)
    assert [link.context.span_id for link in ran.links] == [sent.context.span_id]
    assert told(ran, "groupjobs.run_id", "groupjobs.attempt", "groupjobs.outcome", "messaging.destination.name") == (
        int(result.id), 1, "succeed", "default",
    )  # fmt: skip
    labels = JobRun.objects.get(pk=result.id).labels
    assert labels["tenant"] == "a"
    assert f"{sent.context.span_id:016x}" in labels["trace"]["traceparent"]


def test_each_attempt_is_a_span_and_says_what_failed(spans: Spans) -> None:
    flaky.enqueue("a", failures=1)
    fails.enqueue("b")
    drain()
    (sent,), (first, second) = spans(f"enqueue {named('flaky')}"), spans(f"run {named('flaky')}")
    assert {first.context.trace_id, second.context.trace_id} == {sent.context.trace_id}
    assert first.context.span_id != second.context.span_id
    assert [told(span, "groupjobs.attempt", "groupjobs.outcome") for span in (first, second)] == [
        (1, "retry"),
        (2, "succeed"),
    ]
    assert (first.status.status_code, second.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)
    assert (first.events[0].attributes or {})["exception.type"] == "builtins.ValueError"
    assert spans(f"run {named('fails')}")[0].status.status_code == StatusCode.ERROR


def test_runs_of_a_batch_have_a_span_each_linked_to_the_one_that_enqueued_them(spans: Spans) -> None:
    noop.enqueue_many([((), {})] * 20)
    drain()
    (sent,), ran = spans(f"enqueue {named('noop')}"), spans(f"run {named('noop')}")
    assert told(sent, "messaging.batch.message_count") == (20,)
    assert len({span.context.span_id for span in ran}) == 20
    assert {link.context.span_id for span in ran for link in span.links} == {sent.context.span_id}
    assert len({told(span, "groupjobs.run_id") for span in ran}) == 20


def test_spans_of_the_handler_are_its_children(spans: Spans) -> None:
    with_a_span_of_its_own.enqueue()
    drain()
    (ran,), (inner,) = spans(f"run {__name__}.with_a_span_of_its_own"), spans("inner")
    assert inner.parent is not None
    assert (inner.parent.span_id, inner.context.trace_id) == (ran.context.span_id, ran.context.trace_id)
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("labels", [{"trace": "nonsense"}, {"trace": {"traceparent": "x"}}, {}])
def test_a_run_whose_labels_carry_no_trace_begins_its_own(spans: Spans, labels: dict[str, Any]) -> None:
    result = noop.enqueue()
    JobRun.objects.filter(pk=result.id).update(labels=labels)
    drain()
    (ran,) = spans(f"run {named('noop')}")
    assert ran.parent is None
    assert not ran.links


def test_nobody_traces(store: Store) -> None:
    result = noop.enqueue()
    drain()
    run = JobRun.objects.get(pk=result.id)
    assert (run.labels, run.status) == ({}, "SUCCEEDED")
