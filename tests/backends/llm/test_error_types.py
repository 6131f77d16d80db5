"""The kind of a failed call, as OpenTelemetry's conventions name it: in its event, and in its span."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from attractor_nb import Pipeline, Tracing
from attractor_nb.model.events import ModelCallEnded
from attractor_nb.tracing import names

SOURCE = "digraph { start [shape=Mdiamond]  plan [prompt=Plan]  done [shape=Msquare]  start -> plan -> done }"


@pytest.mark.parametrize(
    ("fault", "options", "expected"),
    [
        ({"status": 429, "error": "slow down"}, {}, "429"),
        ({"status": 503, "error": "busy"}, {}, "503"),
        ({"status": 401, "error": "no"}, {}, "401"),
        ({"ends": "hang"}, {"read_timeout_seconds": 0.2}, "timeout"),
        ({"ends": "hang"}, {"request_timeout_seconds": 0.2}, "timeout"),
        ({"text": "no", "finish": "refusal"}, {}, "refusal"),
        ({"raw": b"data: {nonsense\n\n"}, {}, "JSONDecodeError"),
        ({"text": "fine"}, {}, None),
    ],
)
def test_a_failed_call_says_its_kind_in_event_and_span(fault, options, expected, serve, reply, backend_for, tmp_path):
    server, exporter, events = serve(reply(**fault)), InMemorySpanExporter(), []
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    Pipeline(SOURCE).run(
        wait=True,
        logs_root=tmp_path / "run",
        backend=backend_for(server, **options),
        observers=[events.append],
        tracer=Tracing(provider),
    )
    (call,) = (event for event in events if isinstance(event, ModelCallEnded))
    assert call.error_type == (expected or "")
    (span,) = (span for span in exporter.get_finished_spans() if span.name.startswith(names.CHAT))
    assert span.attributes.get(names.ERROR_TYPE) == expected
