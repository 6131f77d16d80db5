"""One rich run, and what each fidelity mode carries of it into the next prompt (spec 5.4).

The golden files are tests/golden/preambles/<mode>.txt; whoever changes what a mode carries reads them.
"""

from pathlib import Path

import pytest

from attractor_nb import Outcome
from attractor_nb.model.calls.messages import estimated_tokens
from attractor_nb.model.events import ToolCallEnded
from attractor_nb.model.vocabulary.attribute_table import FIDELITY_MODES
from attractor_nb.stage import current_stage
from attractor_nb.testing import ManualClock, ScriptedBackend, ScriptedInterviewer, SeededRandomness
from tests.engine.carried import carried as context_of

TOKEN_BUDGETS = {"truncate": 350, "compact": 4000, "summary:low": 600, "summary:medium": 1500, "summary:high": 3000}
GOLDEN = Path(__file__).parents[1] / "golden" / "preambles"
RUN_ID = "k7f3m2qa"
BODY = """goal="Let the importer read files of many gigabytes"
plan [label="Plan the work"]
implement [label="Implement the plan", max_retries=2]
verify [label="Run the tests", goal_gate=true, retry_target=implement]
reviews [shape=component, label="Reviews"] security [label="Security review"] speed [label="Speed review"]
gather [shape=tripleoctagon]
approve [shape=hexagon, label="Merge it?"]
report [label="Write the report", thread_id=main, fidelity="{mode}"]
start -> plan -> implement -> verify
verify -> implement [label="red", condition="outcome=fail"]
verify -> reviews [label="green", condition="outcome!=fail"]
reviews -> security -> gather reviews -> speed -> gather
gather -> approve
approve -> report [label="[Y] Yes"]
approve -> implement [label="[N] No, once more"]
report -> done"""
PLAN = (
    "1. Read the file in pieces of one megabyte.\n2. Keep the index on disk in place of in memory.\n"
    "3. Measure with a file of eight gigabytes before and after."
)


class Worker(ScriptedBackend):
    """Follows the script, and calls tools where a model would."""

    async def run(self, node, prompt, context):
        if node.id == "implement":
            _tool("read", {"path": "importer.py"}, result="214 lines")
            _tool("write", {"path": "importer.py", "text": "def pieces(file):\n    ..." * 9}, result="written")
        if node.id == "verify" and context.get("tests.failed") != 0:
            _tool("run", {"command": "make test"}, error="exit code 2: 3 failed, 118 passed")
            context.set("tests.failed", 3)
        elif node.id == "verify":
            _tool("run", {"command": "make test"}, result="121 passed")
        return await super().run(node, prompt, context)


def _tool(name, arguments, **came_to):
    scope = current_stage()
    scope.announce(
        ToolCallEnded(
            name=scope.node_id, visit=scope.visit, attempt=scope.attempt, tool=name, arguments=arguments, **came_to
        )
    )


SCRIPT = {
    "plan": PLAN,
    "implement": [
        Outcome.retry("the answer was cut off after 4096 tokens"),
        Outcome.success("read in pieces", context_updates={"files.changed": ["importer.py"]}),
        Outcome.success(
            "the index is closed now", context_updates={"files.changed": ["importer.py", "index.py"], "tests.failed": 0}
        ),
    ],
    "verify": [Outcome.fail("3 tests are red: the index is left open"), Outcome.success("121 tests are green")],
    "security": "Paths are checked before they are opened. Nothing to add.",
    "speed": "Eight gigabytes in 94 seconds; before it ran out of memory.",
    "report": "Done.",
}


@pytest.fixture
def carried(make):
    """The text that a mode carried into the prompt of the last stage."""

    def tell(mode):
        backend = Worker(SCRIPT)
        randomness = SeededRandomness()
        randomness.new_id = lambda: RUN_ID
        result = make(BODY.format(mode=mode), backend=backend).run(
            wait=True,
            durability="none",
            clock=ManualClock(),
            randomness=randomness,
            interviewer=ScriptedInterviewer({"approve": "Y"}),
        )
        assert result.status == "success", result.reason
        return context_of(backend.prompts["report"][-1])

    return tell


@pytest.mark.parametrize("mode", FIDELITY_MODES)
def test_what_a_mode_carries_is_the_golden_file(carried, mode):
    text = carried(mode)
    place = GOLDEN / f"{mode.replace(':', '-')}.txt"
    if not place.exists():
        place.write_text(f"{text}\n")
        pytest.fail("the golden file was missing and has been written: read it")
    assert f"{text}\n" == place.read_text()


@pytest.mark.parametrize("mode", TOKEN_BUDGETS)
def test_it_is_within_the_budget_of_its_mode(mode):
    text = (GOLDEN / f"{mode.replace(':', '-')}.txt").read_text().removesuffix("\n")
    assert 0 < estimated_tokens(text) <= TOKEN_BUDGETS[mode]


def test_each_mode_carries_more_than_the_one_below():
    sizes = [
        len((GOLDEN / f"{mode}.txt").read_text())
        for mode in ("full", "truncate", "summary-low", "compact", "summary-medium", "summary-high")
    ]
    assert sizes == sorted(set(sizes))
