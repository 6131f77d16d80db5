"""``pipeline.models()``: which rule won for each node."""

import re
from xml.etree import ElementTree as ET

import pytest

from attractor_nb import Pipeline
from attractor_nb.model.calls.providers import ModelName

SOURCE = """digraph styled {
    llm_model = "gpt-5-mini"
    model_stylesheet = "
        .code   { llm_model: claude-opus-4-6; reasoning_effort: low }
        #review { llm_model: gemini-2.5-pro; llm_provider: openrouter }
    "
    start  [shape=Mdiamond]
    plan   [prompt="Plan"]
    build  [prompt="Build", class="code"]
    review [prompt="Review", class="code", reasoning_effort=medium]
    test   [shape=parallelogram, tool_command="true"]
    done   [shape=Msquare]
    start -> plan -> build -> review -> test -> done
}"""


class Own:
    own_model = ModelName("house-model", "ours")

    def run(self, node, prompt, context):
        return "done"


def test_the_table_says_which_rule_won_for_each_node():
    lines = str(Pipeline(SOURCE).models()).splitlines()
    assert [" | ".join(re.split("  +", line)) for line in lines] == [
        "node | model | from | provider | from | effort | from",
        "plan | gpt-5-mini | graph, line 2 | openai | model's name | high | default",
        "build | claude-opus-4-6 | stylesheet .code, line 4 | anthropic | model's name | low | stylesheet .code, line 4",
        "review | gemini-2.5-pro | stylesheet #review, line 5 | openrouter | stylesheet #review, line 5 | medium | node, line 10",
    ]


def test_the_html_has_a_row_for_each_node_that_asks_a_model():
    bundle = Pipeline(SOURCE).models()._repr_mimebundle_()
    rows = list(ET.fromstring(bundle["text/html"]).iter("tr"))
    assert [row[0].text for row in rows] == ["node", "plan", "build", "review"]


def test_a_backend_s_own_model_holds_where_nobody_names_one():
    body = "digraph { start [shape=Mdiamond] a [prompt=x] b [prompt=x, llm_model=claude-x] end start->a->b->end }"
    report = Pipeline(body, backend=Own()).models()
    assert [str(choice.name) for choice in report] == ["ours:house-model", "anthropic:claude-x"]
    assert report["a"].model.reason == "backend"
    assert Pipeline(body).models()["a"].name == ModelName("")
    assert Pipeline(body).models(backend=Own())["a"].name == ModelName("house-model", "ours")


def test_what_is_no_node_of_the_table_is_a_key_error():
    with pytest.raises(KeyError, match="test"):
        Pipeline(SOURCE).models()["test"]


def test_without_prompts_there_is_no_table():
    assert str(Pipeline("digraph { start end start -> end }").models()) == "No node asks a model."


def test_a_stylesheet_that_cannot_be_read_gives_nothing():
    body = 'digraph { model_stylesheet="* {" start [shape=Mdiamond] a [prompt=x] end start -> a -> end }'
    assert Pipeline(body).models()["a"].model.origin == "default"
