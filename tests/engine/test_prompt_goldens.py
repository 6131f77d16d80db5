"""Twelve real situations, and the prompt that a model stage gets in each (issue 16; spec 5.4; ruling 34).

The golden files are tests/golden/prompts/<situation>.md. Whoever changes what is carried removes them, has them
written anew and reads each as the prompt that it is: could a person do the task with this page alone?
"""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.testing import ManualClock, ScriptedBackend, ScriptedInterviewer, SeededRandomness

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts"
ENDS = "start [shape=Mdiamond] done [shape=Msquare]\n"
PLAN = """# Plan

1. Read the price as decimal numbers, not as floats.
2. Round once, at the end, half up.
3. Keep `total()` as it is for callers: it returns text.

```python
def total(prices: list[str]) -> str: ...
```

Risk: `Decimal("1,5")` raises. Commas are replaced first."""
MODULE = "def total(prices):\n    return str(sum(float(price) for price in prices))\n"
TEST = """from prices import total


def test_cents_are_kept():
    assert total(["0.1", "0.2"]) == "0.3"


def test_nothing_costs_nothing():
    assert total([]) == "0"


def test_one_price():
    assert total(["2"]) == "2.0"
"""
REVIEWS = {
    "security": "No input reaches a shell or a query. `Decimal` has no limit on digits: a price of a megabyte "
    "takes seconds. Refuse prices longer than 30 characters.\n\nVerdict: fine with that limit.",
    "speed": "Measured with 100,000 prices: 41 ms before, 55 ms after.\n\n| variant | ms |\n| --- | --- |\n"
    "| float | 41 |\n| Decimal | 55 |\n\nVerdict: fine.",
    "style": "Verdict: fine.",
    "tests": "\n".join(
        [
            "Cases that no test has:",
            *(f"- case {number}: a price with {number} digits behind the point" for number in range(1, 60)),
            "Verdict: not fine, add at least the first five.",
        ]
    ),
    "docs": "The README still says that floats come back.\nVerdict: one line to change.",
}


class Situation:
    """Runs graphs with canned answers, and gives the prompts as they were sent."""

    def __init__(self, root):
        self.root = root
        self.backend = ScriptedBackend({})

    def run(self, body, replies, *, goal="Prices add up exactly", **options):
        self.backend = ScriptedBackend(replies)
        self.pipeline = Pipeline(f'digraph g {{ goal="{goal}"\n{ENDS}{body} }}', backend=self.backend)
        project = self.root / "project"
        project.mkdir()
        (project / "prices.py").write_text(MODULE)
        (project / "test_prices.py").write_text(TEST)
        options = {"logs_root": self.root / "run", "workdir": project, **options}
        return self.pipeline.run(wait=True, trust=True, clock=ManualClock(), randomness=SeededRandomness(), **options)

    def prompt(self, node, number=-1):
        """The prompt, without what differs between machines."""
        text = re.sub(r"in \d+\.\d\ds", "in 0.02s", self.backend.prompts[node][number])
        return text.replace(sys.executable, "python").replace(str(self.root), "/project")

    @property
    def command(self):
        """Runs the tests of the project, of which one is red."""
        return f"{shlex.quote(sys.executable)} -m pytest -q"


def fix_loop(at):
    at.run(
        f"""plan [prompt="Plan it."] code [prompt="Write it."] test [shape=parallelogram, tool_command="{at.command}"]
        fix [prompt="The tests are red. Find out why and repair the code.", max_retries=0]
        start -> plan -> code -> test test -> fix [condition="outcome=fail"] test -> done fix -> done""",
        {"plan": PLAN, "code": "Written: `prices.py` with `total()`.", "fix": "Repaired."},
    )
    return at.prompt("fix")


def five_reviewers(at):
    nodes = " ".join(f'{name} [prompt="Review it."] fan -> {name} -> gather' for name in REVIEWS)
    at.run(
        f"""code [prompt="Write it."] fan [shape=component, label="Reviews"] gather [shape=tripleoctagon] {nodes}
        judge [prompt="Say what must be done before this is merged, by reviewer."]
        start -> code -> fan gather -> judge -> done""",
        {"code": "Written.", **REVIEWS, "judge": "Done."},
    )
    return at.prompt("judge")


def thirty_stages(at):
    names = [f"chapter_{number:02}" for number in range(1, 31)]
    nodes = " ".join(f'{name} [prompt="Write it."]' for name in names)
    at.run(
        f"""{nodes} edit [prompt="Write the last chapter."] start -> {" -> ".join(names)} -> edit -> done""",
        {
            **{
                name: f"# {name}\n\n" + " ".join(f"Sentence {n} of {name} tells a little more." for n in range(12))
                for name in names
            },
            "edit": "Done.",
        },
        goal="A book of thirty-one chapters",
    )
    return at.prompt("edit")


def child_result(at):
    (at.root / "child.dot").write_text(f'digraph c {{ {ENDS} look [prompt="Look it up."] start -> look -> done }}')
    at.run(
        f"""research [type=pipeline, pipeline.dotfile="{at.root / "child.dot"}", pipeline.inputs="subject='rounding'",
            pipeline.outputs="found=context.look.response"]
        write [prompt="Write the advice."] start -> research -> write -> done""",
        {"look": "Half up: 2.5 is 3.\nHalf even: 2.5 is 2, 3.5 is 4.\n\nBanks use half even.", "write": "Done."},
    )
    return at.prompt("write")


def human_comment(at):
    at.run(
        """draft [prompt="Draft the notice."] approve [shape=hexagon, label="Send it?", human.type=freeform]
        revise [prompt="Revise the notice by the comment."]
        start -> draft -> approve -> revise -> done""",
        {"draft": "Dear customers,\n\nprices have changed.\n\nYours", "revise": "Done."},
        goal="A notice to customers",
        interviewer=ScriptedInterviewer({"approve": "Too short.\nSay from when on, and whom to ask."}),
    )
    return at.prompt("revise")


def two_megabytes(at):
    script = "for n in range(40000): print(f'{n:05} compiling module_{n} with all warnings switched on')"
    at.run(
        f"""build [shape=parallelogram, tool_command="python -c \\"{script}\\nprint('ERROR module_39999: undefined name total'); raise SystemExit(2)\\""]
        fix [prompt="Repair the build."] start -> build build -> fix [condition="outcome=fail"] build -> done fix -> done""",
        {"fix": "Done."},
        goal="The build is green",
    )
    return at.prompt("fix")


def map_row(at):
    at.backend = ScriptedBackend({"triage": ["Hardware."]})
    pipeline = Pipeline(f'digraph g {{ {ENDS} triage [prompt="Which team is this for?"] start -> triage -> done }}')
    result = pipeline.map(
        [
            {
                "ticket": "The printer on floor 2 is broken.\nIt says:\n```\nE4 paper path\n```\nPlease help!",
                "customer": {"name": "Ada", "tier": 2},
                "urgent": True,
                "note": "",
            }
        ],
        wait=True,
        backend=at.backend,
        map_dir=at.root / "map",
    )
    assert result.rows[0].status == "success"
    return at.prompt("triage")


def failure_after_retries(at):
    at.run(
        """fetch [prompt="Fetch the rates.", max_retries=2, fallback_retry_target=explain]
        explain [prompt="Tell the user what went wrong.", fidelity="summary:high"]
        start -> fetch -> done explain -> done""",
        {
            "fetch": [
                Outcome.retry("the server of the bank did not answer"),
                Outcome.retry("the server of the bank did not answer"),
                Outcome.fail("the server of the bank says:\n503 Service Unavailable, come back on Monday"),
            ],
            "explain": "Done.",
        },
        goal="Today's rates",
    )
    return at.prompt("explain")


BOOK = 'plan [prompt="Plan it."] write [prompt="Write it."] start -> plan -> write -> done'


def resumed_run(at):
    replies = {"plan": PLAN, "write": "Done."}
    paused = at.run(BOOK, replies, params={"currency": "EUR"}, stop_after=2)
    assert paused.status == "paused"
    result = at.pipeline.resume(at.root / "run", trust=True).result(60)
    assert result.status == "success", result.reason
    return at.prompt("write")


def first_stage_with_inputs(at):
    at.run(BOOK, {"plan": PLAN, "write": "Done."}, params={"currency": "EUR", "digits": 2, "files": ["prices.py"]})
    return at.prompt("plan")


def within_a_branch(at):
    at.run(
        """plan [prompt="Plan it."] fan [shape=component] one [prompt="Take the first way."] more [prompt="Go on."]
        two [prompt="Take the second way."] gather [shape=tripleoctagon]
        start -> plan -> fan fan -> one -> more -> gather fan -> two -> gather -> done""",
        {"plan": PLAN, "one": "The first way works:\n- decimals\n- rounding", "more": "Done.", "two": "It does not."},
        params={"currency": "EUR"},
    )
    return at.prompt("more")


def carried_in_full(at):
    at.run(
        f"""plan [prompt="Plan it."] code [prompt="Write it."] test [shape=parallelogram, tool_command="{at.command}"]
        other [prompt="Write the changelog."]
        fix [prompt="Repair it as planned.", fidelity=truncate, carry="plan.response, tool.output, review.response"]
        start -> plan -> code -> test test -> other [condition="outcome=fail"] test -> done other -> fix -> done""",
        {"plan": PLAN, "code": "Written.", "other": "Prices are exact now.", "fix": "Done."},
    )
    return at.prompt("fix")


SITUATIONS = (
    fix_loop,
    five_reviewers,
    thirty_stages,
    child_result,
    human_comment,
    two_megabytes,
    map_row,
    failure_after_retries,
    resumed_run,
    first_stage_with_inputs,
    within_a_branch,
    carried_in_full,
)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
def test_the_prompt_of_a_situation_is_the_golden_file(situation, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:cacheprovider")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    text = situation(Situation(tmp_path)) + "\n"
    place = GOLDEN / f"{situation.__name__}.md"
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
        pytest.fail("the golden file was missing and has been written: read it")
    assert text == place.read_text()


def test_each_golden_file_has_its_situation():
    assert {path.stem for path in GOLDEN.glob("*.md")} == {each.__name__ for each in SITUATIONS}


def test_the_page_shows_the_prompt_of_the_fix_loop():
    page = (Path(__file__).parents[2] / "docs" / "fidelity.md").read_text()
    assert f"`````markdown\n{(GOLDEN / 'fix_loop.md').read_text()}`````" in page
