"""The real evaluators of pydantic-evals and scorers of autoevals as scorers, in an environment of their own."""

import json

import pytest

pytestmark = [pytest.mark.installs, pytest.mark.timeout(600)]

PROGRAM = '''
import json
import sys
from dataclasses import dataclass

import autoevals
from autoevals.json import JSONDiff
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains, EqualsExpected, EvaluationReason, Evaluator, EvaluatorContext
from pydantic_evals.evaluators import IsInstance, LLMJudge

from attractor_nb import Pipeline

TEXT = """digraph answering {
    inputs="question"
    start [shape=Mdiamond]
    answer [prompt="Answer: $question"]
    done [shape=Msquare]
    start -> answer -> done
}"""


@dataclass
class Brief(Evaluator):
    most: int = 10

    def evaluate(self, ctx: EvaluatorContext):
        reason = f"asked {ctx.inputs['question']} for {ctx.metrics['tokens']} tokens"
        return {"brief": len(ctx.output) <= self.most, "right": EvaluationReason(ctx.output == ctx.expected_output, reason)}


@dataclass
class Easy(Evaluator):
    async def evaluate(self, ctx: EvaluatorContext):
        return ctx.metadata["level"] == "easy" and ctx.duration >= 0


@dataclass
class Spans(Evaluator):
    def evaluate(self, ctx: EvaluatorContext):
        return bool(ctx.span_tree)


data = Dataset(
    name="questions",
    cases=[
        Case(name="capital", inputs={"question": "Capital of France?"}, expected_output="Paris", metadata={"level": "easy"}),
        Case(name="sum", inputs={"question": "1 + 1?"}, expected_output="2", metadata={"level": "hard"}),
    ],
)
evaluators = [
    EqualsExpected(), Contains(value="Par"), IsInstance(type_name="str"), Brief(), Easy(), Spans(),
    LLMJudge(rubric="The answer is polite.", model="openai:gpt-4o"),
]
scorers = [autoevals.Levenshtein(), autoevals.ExactMatch(), JSONDiff(), autoevals.NumericDiff()]
pipeline = Pipeline(TEXT, backend=lambda prompt: "Paris" if "France" in prompt else "3")
evaluation = pipeline.evaluate(data, [*evaluators, *scorers], wait=True)
found = {
    name: {row.id: [row.scores[name][0].value, row.scores[name][0].state, row.scores[name][0].reason] for row in evaluation}
    for name in evaluation.scores
}
data.to_file("questions.yaml")
data.to_file("questions.json")
for name in ("questions.yaml", "questions.json"):
    again = pipeline.evaluate(name, [EqualsExpected()], wait=True)
    found[name] = {row.id: [row.scores["EqualsExpected"][0].value] for row in again}
kept = evaluation.rescore([EqualsExpected(), Brief(most=2)])
found["rescored"] = {row.id: [row.scores["Brief.brief"][0].value] for row in kept}
try:
    pipeline.evaluate(data, [Brief])
except Exception as error:
    found["class"] = str(error)
json.dump(found, sys.stdout)
'''


def test_evaluators_and_scorers_of_other_libraries_score_a_real_evaluation(
    wheel, make_environment, tmp_path, monkeypatch
):
    environment = make_environment()
    environment.install(f"attractor_nb @ {wheel.as_uri()}", "pydantic-evals", "autoevals")
    (tmp_path / "program.py").write_text(PROGRAM)
    for name in ("OPENAI_API_KEY", "BRAINTRUST_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    found = json.loads(environment.run("python", "program.py", cwd=tmp_path, warnings="ignore"))
    values = {name: [cell[0] for cell in rows.values()] for name, rows in found.items() if isinstance(rows, dict)}
    assert list(found["EqualsExpected"]) == ["capital", "sum"]
    assert values["EqualsExpected"] == [True, False]
    assert values["Contains"] == [True, False]
    assert found["Contains"]["sum"][2] == "Output string '3' does not contain expected string 'Par'"
    assert values["IsInstance"] == [True, True]
    assert values["Brief.brief"] == [True, True]
    assert found["Brief.right"]["sum"] == [False, "scored", "asked 1 + 1? for 0 tokens"]
    assert values["Easy"] == [True, False]
    assert values["Levenshtein"] == [1.0, 0.0]
    assert values["ExactMatch"] == [1, 0]
    assert values["JSONDiff"] == [1.0, 0.0]
    assert values["questions.yaml"] == values["questions.json"] == [True, False]
    assert values["rescored"] == [False, True]
    for name, words in {"LLMJudge": "", "Spans": "a run has no spans", "NumericDiff": "TypeError"}.items():
        assert [cell[:2] for cell in found[name].values()] == [[None, "unmeasured"]] * 2
        assert all(cell[2] and words in cell[2] for cell in found[name].values()), found[name]
    assert "Brief is a class, not a function" in found["class"]
