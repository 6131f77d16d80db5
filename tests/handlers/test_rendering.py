"""Texts with variables, as stages send and show them (ruling 34)."""

import asyncio

from attractor_nb.context import Context
from attractor_nb.handlers.codergen import CodergenHandler, rendered_node
from attractor_nb.handlers.wait_human import WaitHumanHandler
from attractor_nb.interviewers import AutoApproveInterviewer
from attractor_nb.model.graph import Edge, Graph, Node
from attractor_nb.model.vocabulary.variables import RENDERED_ATTRIBUTES
from attractor_nb.testing import try_stage


def test_ruling_34_prompt_and_system_prompt_have_the_values_of_the_context_when_the_stage_begins(tmp_path):
    node = Node("fix", {"prompt": "Mend $ticket", "llm.system_prompt": "You serve ${who.name}."})
    seen = []

    def answer(node, prompt, context):
        seen.append((prompt, node.attrs["llm.system_prompt"]))
        return "done"

    class Backend:
        def run(self, node, prompt, context):
            return answer(node, prompt, context)

    context = Context({"ticket": "the printer", "who.name": "Ada $ticket"})
    trial = asyncio.run(try_stage(CodergenHandler(Backend()), node, tmp_path, context=context))
    assert seen == [("Mend the printer", "You serve Ada $ticket.")]
    assert trial.files.read_text("prompt.md") == "Mend the printer"


def test_ruling_34_a_gate_asks_with_the_values_of_the_context(tmp_path):
    node = Node("gate", {"label": "Send $what?", "human.prompt": "It says: ${draft.response}"})
    graph = Graph("g", {}, {"gate": node}, (Edge("gate", "yes", {"label": "Yes"}),))
    asked = []

    class Person(AutoApproveInterviewer):
        def ask(self, question):
            asked.append(question)
            return super().ask(question)

    context = Context({"what": "the letter", "draft.response": "Dear $what"})
    asyncio.run(try_stage(WaitHumanHandler(Person()), node, tmp_path, graph=graph, context=context))
    assert (asked[0].text, asked[0].metadata["detail"]) == ("Send the letter?", "It says: Dear $what")


def test_ruling_25_no_command_is_ever_among_the_texts_that_are_rendered():
    node = Node("t", {"tool_command": "echo $ticket ${ticket}", "tool_hooks.pre": "log $ticket"})
    assert rendered_node(node, Graph("g"), {"ticket": "x; rm -rf ~"}.get) is node
    assert not [name for name in RENDERED_ATTRIBUTES if "command" in name or "hook" in name]


def test_a_large_value_that_lies_outside_the_context_is_read_back_whole(tmp_path):
    from attractor_nb import Pipeline

    log = "".join(f"line {number}\n" for number in range(20_000))
    sent = {}

    def answer(node, prompt, context):
        sent[node.id] = prompt
        return log if node.id == "read" else "done"

    pipeline = Pipeline(
        """digraph { default_fidelity=truncate start [shape=Mdiamond] done [shape=Msquare]
            read [prompt="Read"] whole [prompt="${read.response}"] last [prompt="End:\\n${read.response:tail 25}"]
            start -> read -> whole -> last -> done }""",
        backend=answer,
    )
    result = pipeline.run(wait=True, logs_root=tmp_path / "run", durability="fast")
    assert result.status == "success"
    assert sent["whole"].endswith(log)
    assert sent["last"].endswith("End:\nline 19998\nline 19999\n")
    assert (tmp_path / "run/last/prompt.md").read_text() == sent["last"]


def test_the_answers_of_a_rendered_prompt_are_kept_under_what_was_sent(tmp_path):
    from attractor_nb import Pipeline

    backend = _Counting()
    pipeline = Pipeline(
        'digraph { start [shape=Mdiamond] work [prompt="For $ticket"] done [shape=Msquare] start -> work -> done }',
        backend=backend,
    )
    for ticket in ("41", "42", "41"):
        pipeline.run(wait=True, params={"ticket": ticket}, cache=tmp_path / "cache", runs_dir=tmp_path / "runs")
    assert [prompt.splitlines()[-1] for prompt in backend.prompts] == ["For 41", "For 42"]


class _Counting:
    version = "1"

    def __init__(self):
        self.prompts = []

    def call_inputs(self, node, context):
        return {"version": self.version}

    def run(self, node, prompt, context):
        self.prompts.append(prompt)
        return "done"
