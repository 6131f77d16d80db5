"""A pipeline with everything that a cassette records, and what a run of it left."""

import json

import pytest

from attractor_nb import Pipeline
from attractor_nb.engine.handler_calls import TRACEBACK_FILE, USER_LINE_FILE
from attractor_nb.errors import RetryableError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.testing import ScriptedBackend, ScriptedInterviewer

SOURCE = """digraph ship {
    goal="ship it"
    start [shape=Mdiamond]
    done [shape=Msquare]
    plan [prompt="Plan $goal", max_retries=2]
    fan [shape=component]
    left [prompt="Look left"]
    right [shape=parallelogram, tool_command="printf right > \\"$ATTRACTOR_STAGE_DIR/found.txt\\"; echo $ATTRACTOR_RUN_ID"]
    join [shape=tripleoctagon]
    test [shape=parallelogram, tool_command="test -f tried && echo passed || { touch tried; echo not yet >&2; exit 3; }"]
    gate [shape=hexagon, label="Ship?"]
    start -> plan -> fan
    fan -> left -> join
    fan -> right -> join
    join -> test
    test -> gate [condition="outcome=success"]
    test -> plan [condition="outcome=fail"]
    gate -> done [label="[A] Approve"]
    gate -> test [label="[R] Redo"]
}"""
PATH = ["start", "plan", "fan", "join", "test", "plan", "fan", "join", "test", "gate", "test", "gate", "done"]


def backend():
    return ScriptedBackend(
        {
            "plan": [
                RetryableError("busy"),
                Response("First plan.", usage=Usage(100, 10, 0.5, 1)),
                Response("Second plan.\nBetter.", usage=Usage(200, 20, 0.25, 1), is_truncated=True),
            ],
            "left": [Outcome.success("seen", context_updates={"left": 1}), "nothing new"],
        }
    )


@pytest.fixture
def pipeline():
    return Pipeline(SOURCE)


@pytest.fixture
def recorded(pipeline, tmp_path):
    """The pipeline's run, recorded in ``ship.json``."""
    return pipeline.run(
        wait=True,
        backend=backend(),
        interviewer=ScriptedInterviewer({"gate": ["R", "A"]}),
        cassette=tmp_path / "ship.json",
        cassette_mode="record",
        durability="fast",
    )


def evidence(result):
    """The files that the stages of a run left, without what differs between any two runs."""
    found = {}
    for path in sorted(result.logs_root.rglob("*")):
        name = path.relative_to(result.logs_root).as_posix()
        if not path.is_file() or "/" not in name or path.name in {TRACEBACK_FILE, USER_LINE_FILE}:
            continue  # a replay calls no Python of a user, so none of it can fail
        text = path.read_text("utf-8", "replace")
        text = text.replace(str(result.logs_root), "<directory>").replace(result.run_id, "<run>")
        if path.name == "status.json":
            plain = json.loads(text)
            text = {key: value for key, value in plain.items() if key not in {"duration_ms", "usage"}}
        if path.name == "context.json":
            text = without_usage(json.loads(text))
        found[name] = text
    return found


def without_usage(values):
    """Context values without what branches cost: a replay costs nothing."""
    results = values.get("parallel.results")
    if results:
        values = {
            **values,
            "parallel.results": [{key: entry[key] for key in entry if key != "usage"} for entry in results],
        }
    return values


def context_of(result):
    values = {key: result.context[key] for key in result.context}
    text = json.dumps(without_usage(values), sort_keys=True)
    return json.loads(text.replace(str(result.logs_root), "<directory>").replace(result.run_id, "<run>"))
