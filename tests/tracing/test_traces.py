"""A run as a trace: its tree, times, names and errors; no content unless asked for; no fault of it is the run's."""

import inspect
import json
import re
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes
from opentelemetry.trace import SpanKind, StatusCode

from attractor_nb import Pipeline, Tracing, current_stage
from attractor_nb.errors import OptionError, RetryableError
from attractor_nb.extras import install_command
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.calls.providers import PROVIDER_NAMES
from attractor_nb.model.events import ModelCallEnded, PipelineCompleted, StageCompleted, StageStarted, ToolCallEnded
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.testing import ManualClock
from attractor_nb.tracing import names
from attractor_nb.tracing.spans import RunSpans

CHILD = "digraph inner { start [shape=Mdiamond] write done [shape=Msquare] start -> write -> done }"
SOURCE = """digraph review {
    start [shape=Mdiamond]
    plan  [prompt="Plan the secret", max_retries=2]
    fan   [shape=component]
    a     [prompt="A"]
    b     [prompt="B"]
    join  [shape=tripleoctagon]
    sub   [type=pipeline, pipeline.dotfile="inner.dot"]
    done  [shape=Msquare]
    start -> plan -> fan
    fan -> a -> join
    fan -> b -> join
    join -> sub -> done
}"""
SPENT = Usage(900, 100, 0.25, 1)


def announce(event, **facts):
    scope = current_stage()
    scope.announce(event(name=scope.node_id, index=scope.index, visit=scope.visit, attempt=scope.attempt, **facts))


def ask(model="openai:gpt-5.2", **facts):
    announce(ModelCallEnded, model=model, **facts)


class Answering:
    """A backend that calls models and tools; its first try at ``plan`` fails."""

    def run(self, node, prompt, context):
        if node.id == "plan" and current_stage().attempt == 1:
            ask(error="429 too many requests", duration=0.5)
            raise RetryableError("429 too many requests")
        ask(usage=SPENT, duration=0.5, finish="tool_call", thread="main", answered_by="gpt-5.2-2026-05-01")
        announce(ToolCallEnded, tool="read", call_id="c1", arguments={"path": "secret.txt"}, result="the secret")
        ask("local-model", usage=Usage(10, 5, None, 1), duration=0.25, finish="stop")
        return Response("The secret response", usage=SPENT + Usage(10, 5, None, 1))


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter):
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    yield made
    made.shutdown()


def tree_of(spans):
    """The names of spans, each with those in it."""
    known = {span.context.span_id for span in spans}
    assert all(span.parent is None or span.parent.span_id in known for span in spans)

    def under(parent):
        return [
            (span.name, under(span.context.span_id))
            for span in spans
            if (span.parent.span_id if span.parent else None) == parent
        ]

    return under(None)


@pytest.fixture
def traced(tmp_path, exporter, provider):
    """The spans of a run with a retry, a fan-out, a child, calls of models and tools."""
    (tmp_path / "inner.dot").write_text(CHILD)
    (tmp_path / "review.dot").write_text(SOURCE)

    def run(**options):
        pipeline = Pipeline(tmp_path / "review.dot", backend=Answering())
        result = pipeline.run(
            wait=True,
            logs_root=tmp_path / "run",
            **{"tracer": provider, "clock": ManualClock(), "trust": True, **options},
        )
        assert result.status == "success", result.reason
        return exporter.get_finished_spans()

    return run


CALLS = ["chat gpt-5.2", "chat local-model", "execute_tool read"]


def sorted_tree(tree):
    """The order in which spans end is not what a trace is about."""
    return sorted((item[0], sorted_tree(item[1])) if isinstance(item, tuple) else (item, []) for item in tree)


def stage(name, *attempts):
    return (f"stage {name}", [(f"attempt {number}", list(inside)) for number, inside in enumerate(attempts, 1)])


def test_a_trace_has_the_run_its_stages_their_attempts_and_calls_with_branches_and_children_nested(traced):
    branches = [("branch a", [stage("a", CALLS)]), ("branch b", [stage("b", CALLS)])]
    inner = ("invoke_workflow inner", [stage("start", []), stage("write", CALLS), stage("done", [])])
    assert sorted_tree(tree_of(traced())) == sorted_tree(
        [
            (
                "invoke_workflow review",
                [
                    stage("start", []),
                    stage("plan", ["chat gpt-5.2"], CALLS),
                    stage("fan", branches),
                    stage("join", []),
                    stage("sub", [inner]),
                    stage("done", []),
                ],
            )
        ]
    )


def named(spans, name):
    return [span for span in spans if span.name == name]


def test_calls_have_opentelemetrys_names_and_what_has_no_price_has_no_attribute(traced):
    spans = traced()
    priced, unpriced = named(spans, "chat gpt-5.2")[-1], named(spans, "chat local-model")[-1]
    assert priced.kind is SpanKind.CLIENT
    assert dict(priced.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5.2",
        "gen_ai.response.model": "gpt-5.2-2026-05-01",
        "gen_ai.conversation.id": priced.attributes["gen_ai.conversation.id"],
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 100,
        "attractor.call.cost_usd": 0.25,
    }
    assert not {"attractor.call.cost_usd", "gen_ai.provider.name"} & unpriced.attributes.keys()
    (tool, *_) = named(spans, "execute_tool read")
    assert dict(tool.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read",
        "gen_ai.tool.call.id": "c1",
    }
    attempt = next(span for span in named(spans, "attempt 2"))
    assert attempt.attributes["attractor.attempt.cost_usd"] == 0.25
    assert attempt.attributes["attractor.attempt.unpriced_calls"] == 1


def test_a_conversation_is_that_of_a_thread_of_one_run(traced):
    spans = traced()
    runs = {
        span.context.span_id: span.attributes["attractor.run.id"]
        for span in spans
        if "attractor.run.id" in span.attributes
    }
    found = {span.attributes.get("gen_ai.conversation.id") for span in named(spans, "chat gpt-5.2")} - {None}
    assert found == {f"{run_id}/main" for run_id in runs.values()}
    assert len(found) == 2


def test_names_are_those_of_the_installed_conventions():
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    ours = {value for value in vars(names).values() if isinstance(value, str) and value.startswith("gen_ai.")}
    assert ours <= known
    operations = {entry.value for entry in gen_ai_attributes.GenAiOperationNameValues}
    assert {names.CHAT, names.EXECUTE_TOOL, names.INVOKE_AGENT, names.INVOKE_WORKFLOW} <= operations
    assert deprecated_names().isdisjoint(ours)


def deprecated_names():
    """The names that the conventions have replaced or removed; "moved" says that another repository has them."""
    text = inspect.getsource(gen_ai_attributes)
    return set(re.findall(r'Final = "(gen_ai\.[a-z_.]+)"\n"""\nDeprecated: (?:Replaced|Removed)', text))


NEWER = {"moonshot_ai"}
"""Providers of the conventions' repository that the installed package does not have yet."""
OTHERS = {"openrouter", "ollama"}
"""Providers for which the conventions have no name."""


def test_each_provider_has_the_name_that_the_conventions_have_for_it():
    providers = {entry.value for entry in gen_ai_attributes.GenAiProviderNameValues} | NEWER | OTHERS
    known = (*PROVIDER_NAMES, "codex", "moonshot", "perplexity", "cohere")
    assert {names.provider_and_model(f"{name}:m")[0] for name in known} <= providers


def test_the_attempts_of_models_are_agents_and_those_of_other_stages_are_not(traced):
    spans = traced()
    agents = [span for span in spans if span.attributes.get("gen_ai.operation.name") == "invoke_agent"]
    assert {span.attributes["gen_ai.agent.name"] for span in agents} == {"plan", "a", "b", "write"}
    assert {span.name for span in agents} == {"attempt 1", "attempt 2"}
    assert len(agents) == 5


def test_names_of_errors_are_those_of_the_installed_conventions():
    assert error_attributes.ERROR_TYPE == names.ERROR_TYPE
    assert error_attributes.ErrorTypeValues.OTHER.value == names.OTHER_ERROR


def test_a_failed_call_and_its_attempt_are_errors_and_the_stage_that_was_tried_again_is_none(traced):
    spans = traced()
    failed = [span for span in spans if span.status.status_code is StatusCode.ERROR]
    assert sorted(span.name for span in failed) == ["attempt 1", "chat gpt-5.2"]
    assert all("429" in span.status.description for span in failed)
    (plan,) = named(spans, "stage plan")
    assert [event.name for event in plan.events] == ["StageRetrying"]
    assert plan.attributes["attractor.outcome"] == "success"


def test_spans_have_the_times_of_their_events(provider, exporter):
    """A call that says it took longer than its attempt began with it."""
    spans = RunSpans(provider.get_tracer("x"), None)
    spans.begin(9.0, "p", "1")
    spans.take(StageStarted(name="a", time=10.0))
    spans.take(ModelCallEnded(name="a", model="m", time=12.0, duration=1.5))
    spans.take(ModelCallEnded(name="a", model="m", time=12.5, duration=5.0))
    spans.take(StageCompleted(name="a", outcome=Outcome.success(), time=13.0))
    spans.take(PipelineCompleted(duration=4.0, time=14.0))
    assert [(span.name, span.start_time / 1e9, span.end_time / 1e9) for span in exporter.get_finished_spans()] == [
        ("chat m", 10.5, 12.0),
        ("chat m", 10.0, 12.5),
        ("attempt 1", 10.0, 13.0),
        ("stage a", 10.0, 13.0),
        ("invoke_workflow p", 9.0, 14.0),
    ]


def test_spans_lie_within_one_another(traced):
    spans = {span.context.span_id: span for span in traced()}
    for span in spans.values():
        assert span.start_time <= span.end_time
        if span.parent is not None:
            assert spans[span.parent.span_id].start_time <= span.start_time
            assert span.end_time <= spans[span.parent.span_id].end_time


def test_content_is_there_on_request_only(traced):
    spans = traced()
    assert "secret" not in "".join(span.to_json() for span in spans)


def test_with_content_spans_have_prompts_responses_and_what_tools_were_told(traced, provider):
    spans = traced(tracer=Tracing(provider, content=True))
    (last,) = named(spans, "attempt 2")
    (sent,) = json.loads(last.attributes["gen_ai.input.messages"])
    (got,) = json.loads(last.attributes["gen_ai.output.messages"])
    assert sent["role"] == "user"
    assert "Plan the secret" in sent["parts"][0]["content"]
    assert got == {
        "role": "assistant",
        "parts": [{"type": "text", "content": "The secret response"}],
        "finish_reason": "stop",
    }
    (tool, *_) = named(spans, "execute_tool read")
    assert json.loads(tool.attributes["gen_ai.tool.call.arguments"]) == {"path": "secret.txt"}
    assert tool.attributes["gen_ai.tool.call.result"] == "the secret"


def test_content_of_files_that_are_another_attempts_by_now_is_left_out(provider, exporter):
    files = {"prompt.md": "later", "status.json": '{"visit": 2, "attempt": 1}'}
    spans = RunSpans(provider.get_tracer("x"), None, has_content=True, read=lambda node, name, branch: files.get(name))
    spans.begin(1.0, "p", "1")
    spans.take(StageStarted(name="a", time=1.0))
    spans.take(StageCompleted(name="a", outcome=Outcome.success(), time=2.0))
    assert "gen_ai.input.messages" not in named(exporter.get_finished_spans(), "attempt 1")[0].attributes


LINE = "digraph line { start [shape=Mdiamond] a b done [shape=Msquare] start -> a -> b -> done }"


def test_the_trace_of_a_resumed_run_links_to_the_earlier_one(tmp_path, provider, exporter):
    pipeline = Pipeline(LINE)
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=2, tracer=provider)
    (before,) = named(exporter.get_finished_spans(), "invoke_workflow line")
    exporter.clear()
    pipeline.resume(tmp_path / "run", tracer=provider).result(60)
    (after,) = named(exporter.get_finished_spans(), "invoke_workflow line")
    assert [link.context.span_id for link in after.links] == [before.context.span_id]
    assert after.context.trace_id != before.context.trace_id
    assert after.attributes["attractor.run.id"] == before.attributes["attractor.run.id"]
    assert (before.attributes["attractor.outcome"], after.attributes["attractor.outcome"]) == ("interrupted", "success")
    assert sorted(span.name for span in exporter.get_finished_spans() if span.name.startswith("stage")) == [
        "stage b",
        "stage done",
    ]


def test_a_run_is_part_of_the_trace_of_its_caller(provider, exporter):
    with provider.get_tracer("mine").start_as_current_span("cell") as cell:
        Pipeline(LINE).run(wait=True, durability="none", tracer=provider)
    (run,) = named(exporter.get_finished_spans(), "invoke_workflow line")
    assert run.parent.span_id == cell.get_span_context().span_id


class Costly:
    def run(self, node, prompt, context):
        return Response("done", usage=SPENT)

    def call_inputs(self, node, context):
        return {"model": "m"}


def test_a_stage_from_the_cache_says_so(provider, exporter, tmp_path):
    pipeline = Pipeline(LINE, backend=Costly())
    for number in range(2):
        exporter.clear()
        pipeline.run(wait=True, logs_root=tmp_path / str(number), cache=tmp_path / "cache", tracer=provider)
    (stage,) = named(exporter.get_finished_spans(), "stage a")
    within = stage.context.span_id
    spans = exporter.get_finished_spans()
    (attempt,) = [span for span in spans if span.parent and span.parent.span_id == within]
    assert stage.attributes["attractor.cached"] is True
    assert "attractor.attempt.cost_usd" not in attempt.attributes


def test_what_was_under_way_when_the_run_was_stopped_is_cut_off(provider, exporter):
    gate = Pipeline(LINE.replace("a b", 'a [shape=hexagon, label="Go on?"] b'), backend="simulated")
    run = gate.run(durability="none", tracer=provider, interviewer="deferred")
    run.wait_for_gate("a", 60)
    run.cancel()
    run.result(60)
    spans = {span.name: span.attributes.get("attractor.outcome") for span in exporter.get_finished_spans()}
    assert spans["stage a"] == "cut_off"
    assert spans["invoke_workflow line"] == "interrupted"


class FaultyTracer:
    """A tracer that fails at its first span, or later."""

    def __init__(self, tracer, spans):
        self.tracer, self.left = tracer, spans

    def start_span(self, *arguments, **options):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("no tracer")
        return self.tracer.start_span(*arguments, **options)


@pytest.mark.parametrize("spans", [0, 1, 4])
def test_a_fault_of_the_tracer_is_never_the_runs(provider, spans, caplog):
    tracer = FaultyTracer(provider.get_tracer("x"), spans)
    assert Pipeline(LINE).run(wait=True, durability="none", tracer=tracer).status == "success"
    assert "no tracer" in caplog.text


def test_what_is_no_tracer_is_refused_before_the_run(tmp_path):
    with pytest.raises(OptionError, match="tracer= cannot be str"):
        Pipeline(LINE).run(wait=True, logs_root=tmp_path / "run", tracer="yes")
    assert not (tmp_path / "run").exists()


def test_the_global_provider_is_used_on_request_and_without_one_nothing_is_made():
    assert Pipeline(LINE).run(wait=True, durability="none", tracer=True).status == "success"


def test_nothing_of_it_is_imported_for_a_run_without_a_trace():
    code = (
        f"from attractor_nb import Pipeline; import sys; Pipeline({LINE!r}).run(wait=True, durability='none');"
        "print([name for name in sys.modules if 'opentelemetry' in name or name.endswith('tracing.spans')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_the_extra_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(OptionError, match="not installed") as caught:
        Pipeline(LINE).run(wait=True, durability="none", tracer=True)
    assert install_command("tracing") in caught.value.hint


@pytest.mark.parametrize("status", ["", "{", "[]", "5", "[" * 100_000])
def test_content_beside_a_status_that_says_nothing_is_left_out_and_costs_no_span(provider, exporter, status):
    files = {"prompt.md": "asked", "status.json": status}
    spans = RunSpans(provider.get_tracer("x"), None, has_content=True, read=lambda node, name, branch: files.get(name))
    spans.begin(1.0, "p", "1")
    spans.take(StageStarted(name="a", time=1.0))
    spans.take(StageCompleted(name="a", outcome=Outcome.success(), time=2.0))
    (attempt,) = named(exporter.get_finished_spans(), "attempt 1")
    assert "gen_ai.input.messages" not in attempt.attributes
    assert attempt.end_time == 2_000_000_000
