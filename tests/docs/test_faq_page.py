"""Each message of docs/faq.md is what the package says in that situation."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attractor_nb import AttractorError, Pipeline

PAGE = (Path(__file__).parents[2] / "docs" / "faq.md").read_text("utf-8")
HEADINGS = re.findall(r"^### (.*)$", PAGE.partition("\n## Messages\n")[2], re.MULTILINE)


def pipeline(body, **options):
    return Pipeline(f"digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {body} }}", **options)


def in_a_row(stage, **options):
    return pipeline(f"{stage} start -> a -> done", **options)


def run_untrusted():
    Path("down.dot").write_text(in_a_row('a [shape=parallelogram, tool_command="ls"]').to_dot())
    return Pipeline(Path("down.dot")).run()


def answer_twice():
    run = pipeline("gate [shape=hexagon, label=Ok] start -> gate gate -> done [label=Yes]").run()
    run.wait_for_gate("gate")
    run.answer("gate", "Yes")
    run.result()
    run.answer("gate", "Yes")


def run_without_terminal():
    Path("gate.dot").write_text(
        pipeline("gate [shape=hexagon, label=Ok] start -> gate gate -> done [label=Yes]").to_dot()
    )
    command = [sys.executable, "-m", "attractor_nb", "run", "gate.dot", "--simulate"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stderr


def resume_with_another_graph():
    begun = in_a_row("a [prompt=x]").run(wait=True, stop_after=1)
    return in_a_row("a [prompt=y]").resume(begun.logs_root)


def replay_another_prompt():
    in_a_row("a [prompt=x]").run(wait=True, cassette="c.json", backend="simulated")
    return in_a_row('a [prompt="x y"]').run(wait=True, cassette="c.json", cassette_mode="replay")


def divide(context):
    return len(context) / 0


SITUATIONS = {
    "[Simulated]": lambda: pipeline("draft [prompt=x] start -> draft -> done").run(wait=True)["draft"].response,
    "the edge": lambda: pipeline("plan [prompt=x] start -> plan -> dnoe").run(),
    'node "b"': lambda: in_a_row("a [prompt=x] b [prompt=y]").run(),
    "node 'plan'": lambda: pipeline("plan [prompt=x] start -> plan -> done").run(backend="llm"),
    "openai:": lambda: in_a_row('a [prompt=x, llm_model="openai:gpt-5.2"]').run(backend="llm", wait=True),
    "there is no backend": lambda: in_a_row("a [prompt=x]").run(backend="gpt-5.2"),
    "the agent": lambda: in_a_row("a [prompt=x]").run(backend="claude"),
    "inputs of": lambda: in_a_row('inputs="ticket" a [prompt="$ticket"]').run(),
    "unknown option": lambda: in_a_row("a [prompt=x]").run(timeout=3),
    "down.dot": run_untrusted,
    "gate `gate`": answer_twice,
    "there is no terminal": run_without_terminal,
    "no matching edge": lambda: pipeline('a [prompt=x] start -> a a -> done [condition="outcome=fail"]').run(wait=True),
    "max_steps": lambda: pipeline(
        'a [prompt=x] start -> a a -> a [condition="outcome=success"] a -> done [condition="outcome=fail"]'
    ).run(wait=True, max_steps=5),
    "timeout": lambda: in_a_row('a [prompt=x, timeout="50ms"]').run(wait=True, backend=lambda _: time.sleep(1) or ""),
    "the command": lambda: in_a_row('a [shape=parallelogram, tool_command="echo no such table >&2; exit 3"]').run(
        wait=True
    ),
    "ZeroDivisionError": lambda: in_a_row("a [function=divide]", functions={"divide": divide}).run(wait=True),
    "the response": lambda: in_a_row(
        'a [prompt=x, response_schema="{\\"type\\": \\"object\\", \\"required\\": [\\"level\\"]}"]'
    ).run(wait=True, backend=lambda _: "high"),
    "the graph": resume_with_another_graph,
    "the cassette": replay_another_prompt,
}


@pytest.fixture(autouse=True)
def _no_keys_and_agents(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.mark.parametrize("begin", SITUATIONS)
def test_a_message_of_the_page_is_said(begin):
    [heading] = [heading for heading in HEADINGS if heading.startswith(begin)]
    try:
        said = SITUATIONS[begin]()
    except AttractorError as error:
        said = str(error)
    said = getattr(said, "reason", said)
    assert re.sub(r"hash \w+", "hash", heading) in re.sub(r"hash \w+", "hash", said)


def test_each_message_has_a_situation():
    """IPython says the first one."""
    assert len(HEADINGS) == len(SITUATIONS) + 1 >= 20
