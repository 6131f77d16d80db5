"""The examples of docs/verdicts.md are true: its pipeline lints, each answer has the outcome that the page gives."""

import re
from pathlib import Path

import pytest

from attractor_nb import Pipeline
from attractor_nb.testing import ManualClock, ScriptedBackend

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "verdicts.md").read_text("utf-8")
SOURCE = re.search(r"^```dot\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]
ROWS = re.findall(r"^\| `(.*)` \| (\w+)(?:: (.*))? \|$", PAGE, re.MULTILINE)


def judged(*answers, without=", retry_target=write"):
    backend = ScriptedBackend({"judge": list(answers)})
    pipeline = Pipeline(SOURCE.replace(without, ""))
    result = pipeline.run(wait=True, backend=backend, durability="none", clock=ManualClock())
    return result, backend.prompts["judge"]


def test_the_pipeline_on_the_page_has_no_findings():
    assert not Pipeline(SOURCE).lint()


@pytest.mark.parametrize(("answer", "status", "reason"), ROWS, ids=[row[0][:30] for row in ROWS])
def test_an_answer_on_the_page_comes_to_what_it_says(answer, status, reason):
    result, _ = judged(answer, without=", max_retries=2, retry_target=write")
    assert result.status == ("success" if status == "success" else "fail")
    assert result.outcomes["judge"].failure_reason == reason
    _, prompts = judged(answer, '{"outcome": "success"}')
    told = ["not accepted" in prompt for prompt in prompts]
    assert told == {"success": [False], "fail": [False, False], "retry": [False, True]}[status]


def test_the_section_on_the_page_is_the_one_that_is_sent():
    section = re.search(r"^````text\n(.*?)^````", PAGE, re.DOTALL | re.MULTILINE)[1]
    _, prompts = judged('{"outcome": "splendid"}', '{"outcome": "success"}')
    assert prompts[1] == f"{prompts[0]}\n\n{section.strip()}"
