"""docs/inspecting.md is true: its calls work, its fields are there, its sentence is what a loop says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from attractor_nb import FunctionBackend, Pipeline
from attractor_nb.model.outcome import Outcome
from attractor_nb.studio.inspect.inspection import MAX_TEXT, StageInspection

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "inspecting.md").read_text("utf-8")
INNER = "digraph inner { start [shape=Mdiamond] draft done [shape=Msquare] start -> draft -> done }"
TEXT = """digraph g { start [shape=Mdiamond] done [shape=Msquare] draft [max_retries=1] check
  review [type=pipeline, pipeline.name=inner] start -> draft -> check
  check -> review [condition="context.n=2"]; check -> draft; review -> done }"""


def test_the_calls_of_the_page_work_and_the_loop_says_what_stands_there(tmp_path):
    def answer(node, prompt, context):
        return Outcome.success(context_updates={"n": context.get("n") + 1} if node.id == "check" else {})

    run = Pipeline(TEXT, backend=FunctionBackend(answer), pipelines={"inner": INNER}).run(
        logs_root=tmp_path / "run", params={"n": -1}
    )
    run.result()
    calls = re.search(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1].splitlines()
    calls += re.findall(r"`(run\.(?:inspect|explain|explain_loop)\([^`]*\))`", PAGE)
    assert len(calls) == 7
    for call in calls:
        assert str(eval(call, {"run": run})), call
    assert f"\n> {run.explain_loop('draft').statement}\n" in PAGE


def test_the_fields_and_figures_of_the_page_are_those_of_the_code():
    table = PAGE.split("| field | meaning |", 1)[1].split("\n\n", 1)[0]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)(?:\(\w+\))?`", row.split("|")[1])}
    known = {entry.name for entry in fields(StageInspection) if not entry.name.startswith("_")} | {"read"}
    assert named <= known
    assert known - named == {"node", "label", "handler", "visit", "attempt", "directory", "workdir"}
    assert f"{MAX_TEXT:,} characters" in PAGE
