"""Results from the cache: what runs again and what does not, and what is never kept."""

from __future__ import annotations

import json
import threading

import pytest

from attractor_nb import Outcome, Pipeline, Run, StageStatus
from attractor_nb.model.events import RunWarning, StageEnd
from attractor_nb.model.outcome import Usage
from attractor_nb.model.response import Response
from attractor_nb.stage import current_stage

SPENT = Usage(input_tokens=100, output_tokens=20, cost_usd=0.5, calls=1)


class Asked:
    """A backend that counts who asked, and answers by the prompt alone."""

    version = "1"

    def __init__(self, answers=None, usage=SPENT):
        self.nodes = []
        self.answers = answers or {}
        self.usage = usage
        self.lock = threading.Lock()

    def call_inputs(self, node, context):
        return {"model": node.llm_model or "m", "version": self.version}

    async def run(self, node, prompt, context):
        with self.lock:
            self.nodes.append(node.id)
        answer = self.answers.get(node.id, f"answer of {node.id}")
        if callable(answer):
            answer = answer(node, prompt, context)
        return Response(answer, usage=self.usage) if isinstance(answer, str) else answer


SIX = """digraph six {{
    goal = "ship it"
    node [fidelity={fidelity}]
    start [shape=Mdiamond]
    done [shape=Msquare]
    plan [prompt="Plan $goal."]
    design [prompt="Design."]
    build [prompt="{build}"]
    test [prompt="Test."]
    review [prompt="Review."]
    ship [prompt="Ship."]
    start -> plan -> design -> build -> test -> review -> ship -> done
}}"""


@pytest.fixture
def go(tmp_path):
    """Runs a pipeline with the cache of this test."""
    counter = iter(range(1, 1000))

    def run(source, backend=None, **options):
        backend = backend or Asked()
        pipeline = Pipeline(source, **{name: options.pop(name) for name in ("handlers",) if name in options})
        options = {"cache": tmp_path / "cache", "logs_root": tmp_path / f"run{next(counter)}", **options}
        result = pipeline.run(wait=True, backend=backend, **options)
        result.asked = None
        return result, backend.nodes if hasattr(backend, "nodes") else None

    return run


def graph(body, attrs=""):
    return f"digraph g {{ {attrs} start [shape=Mdiamond] done [shape=Msquare] {body} }}"


def test_nothing_is_executed_twice(tmp_path):
    source = SIX.format(fidelity="compact", build="Build.")
    first, second = Asked(), Asked()
    before = Pipeline(source).run(wait=True, backend=first, cache=tmp_path / "cache", logs_root=tmp_path / "1")
    after = Pipeline(source).run(wait=True, backend=second, cache=tmp_path / "cache", logs_root=tmp_path / "2")
    assert first.nodes == ["plan", "design", "build", "test", "review", "ship"]
    assert second.nodes == []
    assert before.status == after.status == "success"
    assert after.usage == Usage()
    assert {key: value for key, value in after.context.items()} == dict(before.context.items()) if hasattr(after.context, "items") else True
    assert after["build"].response == "answer of build"
    assert [event.saved for event in ends(tmp_path / "2") if event.is_cached] == [SPENT] * 6


def ends(root):
    return [event for event in Run.load(root).events() if isinstance(event, StageEnd)]
