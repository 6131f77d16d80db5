"""Records the cassettes of the tour anew: after a change of what a prompt carries, or of a notebook's pipeline.

    python tests/notebooks/record_cassettes.py

The answers of notebook 6 are those below, written by hand; the scripted server of tests/backends/llm gives them in
the forms of the providers. Those of notebook 19 are written by hand in notebooks/cassettes/replies.jsonl: ``replies``.
Those of notebook 18 are written by hand below, and its commands are run: ``ticket``. No key is needed, and nothing
leaves this machine.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import nbformat

from attractor_nb import Pipeline
from attractor_nb.evaluation import matches

if TYPE_CHECKING:
    from attractor_nb import Context, Node

REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOK = REPOSITORY / "notebooks" / "06_models_and_stylesheets.ipynb"
CASSETTE = REPOSITORY / "notebooks" / "cassettes" / "release.json"
BETTER = REPOSITORY / "notebooks" / "19_is_it_better.ipynb"
REPLIES = REPOSITORY / "notebooks" / "cassettes" / "replies.json"
EXAMPLE = REPOSITORY / "examples" / "ticket_to_release.dot"
TICKET = REPOSITORY / "notebooks" / "cassettes" / "ticket.json"
PARAMS = {"ticket": "0.1 + 0.2 is printed as 0.30000000000000004"}
SHOP = {
    "prices.py": "def total(prices):\n    return str(sum(float(price) for price in prices))\n",
    "test_prices.py": "from prices import total\n\n\n"
    'def test_cents_are_kept():\n    assert total(["0.1", "0.2"]) == "0.3"\n',
}
TICKET_ANSWERS = {
    "research": "Prices are added as binary floats, and a float cannot hold 0.1 exactly, so the sum carries an error in the "
    "last places. str() then prints every digit of it.",
    "correctness": "Yes: 0.1 has no exact binary fraction, and sum() only adds the errors up. The cause is the conversion "
    "with float() in total(), not the printing.",
    "risk": "Callers that compare the result as text will see 0.3 in place of 0.30000000000000004, "
    "which is wanted. A price that is no number raises InvalidOperation where float raised ValueError.",
    "clarity": "It does not say which line converts the prices, nor whether the result shall stay a text. The test in "
    "test_prices.py expects the text 0.3.",
    "plan": "1. In prices.py, convert each price by an exact decimal type instead of float; that is the cause, as the first "
    "reviewer confirms.\n2. Keep the result a text, so that callers and the test see 0.3; no input format changes.\n3. Run "
    "the test before and after, to see it fail for this reason and then pass.",
    "judge": '{"outcome": "success", "notes": "The plan names the line, keeps the interface, and tests the change."}',
    "fix": "The assertion compares 0.30000000000000004 with 0.3. Decimal keeps the digits as they were typed.\n\n"
    '{"type": "Decimal"}',
}
SERVER = REPOSITORY / "tests" / "backends" / "llm" / "scripted_server.py"
_NEWS = "Version 2.0 finds things in a tenth of the time and works without a network."
ANSWERS = (
    ("1. What is new: faster search.\n2. What changed: settings have moved.\n3. How to upgrade.", (31, 26)),
    (f"{_NEWS} Your settings are in one place now. Upgrading takes a minute.", (74, 33)),
    ("It does not say what becomes of the old settings.", (118, 12)),
    (f"{_NEWS} Your old settings are taken over. Upgrading takes a minute.", (160, 33)),
)


def cell_of(notebook: Path, cell_id: str) -> str:
    """The source of a cell."""
    cells = nbformat.read(notebook, as_version=4).cells
    (source,) = [cell.source for cell in cells if cell.id == cell_id]
    return source


def pipeline_of(notebook: Path, cell_id: str) -> str:
    """The DOT text of a cell."""
    return cell_of(notebook, cell_id).split("\n", 1)[1]


def record(target: Path = CASSETTE) -> None:
    """Run the pipeline of notebook 6 against the scripted server, and keep what was said."""
    program = _load(SERVER)
    replies = [program.Reply(text, usage=usage) for text, usage in ANSWERS]
    with program.ScriptedServer(*replies) as server:
        os.environ.update(
            OPENAI_BASE_URL=server.base_url("openai"),
            ANTHROPIC_BASE_URL=server.base_url("anthropic"),
            OPENAI_API_KEY="not-a-key",
            ANTHROPIC_API_KEY="not-a-key",
        )
        Pipeline(pipeline_of(NOTEBOOK, "sheet")).run(
            wait=True, backend="llm", cassette=target, cassette_mode="record", durability="none", is_shown=False
        )


def answer_ticket(node: Node, prompt: str, context: Context) -> str:
    """The written answer of a stage of notebook 18."""
    del prompt, context
    return TICKET_ANSWERS[node.id]


def record_ticket(target: Path = TICKET) -> None:
    """Run the example of notebook 18 with written answers, beside a module that is wrong."""
    with tempfile.TemporaryDirectory() as place:
        for name, text in SHOP.items():
            (Path(place) / name).write_text(text, "utf-8")
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        Pipeline(EXAMPLE).run(
            wait=True,
            backend=answer_ticket,
            interviewer="auto",
            params=PARAMS,
            trust=True,
            isolation="workspace",
            workspace_from=place,
            cassette=target,
            cassette_mode="record",
            durability="none",
            is_shown=False,
        )


def record_replies(target: Path = REPLIES) -> None:
    """Run both variants of notebook 19 with the replies that are written by hand."""
    rows = [json.loads(line) for line in target.with_suffix(".jsonl").read_text("utf-8").splitlines()]
    replies = {row["ticket"]: row for row in rows}
    guided: dict[str, str] = ast.literal_eval(cell_of(BETTER, "guided").split("=", 1)[1].strip())

    def write(node: Node, prompt: str, context: Context) -> str:
        own = replies[str(context["ticket"])]
        return own["guided" if guided["reply.prompt"].split("$")[0] in prompt else "plain"]

    target.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as place:
        Pipeline(pipeline_of(BETTER, "desk")).compare(
            {"guided": guided},
            [{"id": row["id"], "ticket": row["ticket"]} for row in rows],
            matches("."),
            backend=write,
            cassette=target,
            cassette_mode="auto",
            runs_dir=place,
            is_shown=False,
        )


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    {"": record, "ticket": record_ticket, "replies": record_replies}["".join(sys.argv[1:])]()
