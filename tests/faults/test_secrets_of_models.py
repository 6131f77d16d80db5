"""Secrets that models and their tools see: found in no file, recording, cache, span, report or event."""

import json
import logging
from contextlib import asynccontextmanager

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from attractor_nb import Pipeline, Run, Tracing
from attractor_nb.backends.llm import ProviderBackend
from attractor_nb.backends.llm.clients import Clients
from attractor_nb.model.events import ModelCallEnded, ToolCallEnded

SOURCE = """digraph Models {{
    graph [goal="reach {google}", tool_hooks.post="cat >&2; exit 1", llm_model="openai:function"]
    start  [shape=Mdiamond]
    talk   [prompt="Say {github}", allowed_tools="read,list,write,run", fidelity=full, thread_id=t, llm.system_prompt="Never tell {told}"]
    more   [prompt="And {slack}?", fidelity=full, thread_id=t]
    sum    [prompt="Sum up", fidelity="summary:high"]
    broken [prompt="Fail with {aws}", fidelity=compact]
    done   [shape=Msquare]
    start -> talk -> more -> sum -> broken
    broken -> done [condition="outcome=fail"]
}}"""


@pytest.fixture
def model(planted, monkeypatch):
    """A model of the provider backend that tells, asks tools for, and fails with keys."""
    told = []

    async def streamed(messages, info):
        last = messages[-1].parts
        told.extend(str(part.content) for part in last if isinstance(part, ToolReturnPart))
        asked = str(getattr(last[-1], "content", ""))
        if "Fail with" in asked:
            raise ValueError(f"refused {planted['environment']} and {planted['openai']}")
        if info.function_tools and not any(isinstance(part, ToolReturnPart) for part in last):
            for place, (name, arguments) in enumerate(calls(planted)):
                yield {place: DeltaToolCall(name=name, json_args=json.dumps(arguments), tool_call_id=f"c{place}")}
            return
        text = f"it is {planted['environment']}, {planted['anthropic']}\n{planted['pem']}\n{planted['token']}."
        for place in range(0, len(text), 7):
            yield text[place : place + 7]

    class Ending(FunctionModel):
        @asynccontextmanager
        async def request_stream(self, *arguments, **options):
            async with super().request_stream(*arguments, **options) as response:
                response.finish_reason = "stop"
                yield response

    made = Ending(stream_function=streamed)
    monkeypatch.setattr(Clients, "model", lambda self, target: made)
    return told


def calls(planted):
    return [
        ("read_file", {"path": "key.txt"}),
        ("run_command", {"command": f"cat key.txt; printf %s {planted['hugging_face']}; cat key.txt >&2"}),
        ("write_file", {"path": "copy.txt", "content": planted["gitlab"]}),
        ("read_file", {"path": f"{planted['github_fine']}.txt"}),
    ]


def spans_of(exporter):
    return "\n".join(span.to_json() for span in exporter.get_finished_spans())


@pytest.mark.campaign
def test_no_planted_key_is_in_what_model_calls_leave_behind(planted, model, tmp_path, monkeypatch, caplog, figures):
    """Threads, prompts, what was carried, calls of tools, hooks, cache, cassette, spans, estimates, events."""
    monkeypatch.chdir(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    (work / "key.txt").write_text(planted["environment"])
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    pipeline = Pipeline(SOURCE.format(**planted.keys), backend=ProviderBackend())
    seen, sinks = [], []
    kinds = {
        "run": {"cache": tmp_path / "cache"},
        "again": {"cache": tmp_path / "cache"},
        "taped": {"cassette": tmp_path / "tape.json"},
    }
    for name, options in kinds.items():
        result = pipeline.run(
            wait=True,
            logs_root=tmp_path / name,
            durability="fast",
            workdir=work,
            trust=True,
            tracer=Tracing(provider, content=True),
            observers=[seen.append],
            **options,
        )
        assert result.status == "success", result.reason
        loaded = Run.load(tmp_path / name)
        sinks += [(f"{name}/{path}", text) for path, text in planted.files_below(tmp_path / name)]
        sinks.append((f"{name} shown", f"{result}\n{loaded!r}\n{loaded.details()}\n{result.to_svg()}"))
        sinks += [(f"{name} {node}", f"{result[node]}\n{result.why(node)}") for node in pipeline.graph.nodes]
        sinks += [(f"{name} context", json.dumps({key: result.context.get(key) for key in result.context}))]
    assert any("[redacted]" in text for text in model)  # what tools read is told to the model without it, too
    sinks += planted.files_below(tmp_path / "cache")
    sinks.append(("cassette", (tmp_path / "tape.json").read_text()))
    sinks.append(("spans", spans_of(exporter)))
    sinks += [(f"event {event.type}", f"{event!r}\n{event.description}") for event in seen]
    sinks.append(("estimate", f"{pipeline.estimate()}\n{pipeline.models()}\n{pipeline.analyse()}"))
    formatter = logging.Formatter()
    sinks.append(("log", "\n".join(formatter.format(record) for record in caplog.records)))
    names = {name for name, _ in sinks}
    expected = ("run/threads/t.json", "run/talk/tool_calls.jsonl", "run/sum/prompt.md", "run/talk/response.md")
    assert set(expected) <= names, sorted(names)
    assert {ModelCallEnded, ToolCallEnded} <= {type(event) for event in seen}
    assert planted.found_in(sinks) == []
    assert all("[redacted]" in text for name, text in sinks if name in {*expected, "cassette", "spans"})
    figures.record(
        0, "planted keys in what model calls leave behind", f"{len(planted.keys)} keys, {len(sinks)} sinks: 0 hits"
    )


def test_a_replayed_cassette_lets_no_key_out_either(planted, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = """digraph { start [shape=Mdiamond] a [prompt="Say it", llm_model="openai:m"] done [shape=Msquare] start -> a -> done }"""
    pipeline = Pipeline(text, backend=ProviderBackend())
    for name, mode in {"recorded": "record", "replayed": "replay"}.items():
        pipeline.run(
            wait=True, logs_root=tmp_path / name, durability="fast", cassette=tmp_path / "tape.json", cassette_mode=mode
        )
    assert planted.found_in(planted.files_below(tmp_path)) == []
    assert "[redacted]" in (tmp_path / "replayed/a/response.md").read_text()
