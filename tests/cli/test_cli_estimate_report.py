"""The estimate on the command line: models, their requests and the price."""

import json

import pytest

STYLED = """\
digraph Styled {
    llm_model = "claude-sonnet-4-5"
    model_stylesheet = "#check { llm_model: gpt-5.2 }"
    start [shape=Mdiamond]
    write [prompt="Write", max_retries=1]
    check [prompt="Check", llm.max_tokens=100]
    done  [shape=Msquare]
    start -> write -> check
    check -> done  [condition="context.lang=de"]
    check -> write [condition="context.lang!=de"]
}
"""


@pytest.fixture
def styled(sources):
    (sources / "styled.dot").write_text(STYLED)
    return "styled.dot"


def test_estimate_prints_a_line_for_each_node_and_the_total(command, styled):
    ended = command("estimate", styled, "--max-node-visits", "2")
    assert ended.code == 0
    first = [line.split()[0] for line in ended.out.splitlines() if line]
    assert first[:4] == ["node", "write", "check", "total"]
    assert "$" in ended.out


def test_estimate_prints_json(command, styled):
    plain = json.loads(command("estimate", styled, "--json", "--max-node-visits", "2", "--param", "lang=de").out)
    by_node = {node["node"]: node for node in plain["nodes"]}
    assert by_node["check"]["worst_calls"] == 2
    assert by_node["write"]["worst_calls"] == 4
    assert plain["worst"]["cost_usd"] > plain["expected"]["cost_usd"] > 0
    assert plain["expected"]["unpriced_calls"] == 0


def test_estimate_takes_its_inputs_from_a_file(command, sources):
    (sources / "list.dot").write_text(
        'digraph { inputs="files" start [shape=Mdiamond] read [prompt="Read ${item}", for_each="item in files"]\n'
        "done [shape=Msquare] start -> read -> done }"
    )
    (sources / "p.toml").write_text('files = ["a", "b", "c"]\n')
    assert json.loads(command("estimate", "list.dot", "--params", "p.toml", "--json").out)["expected"]["calls"] == 3


def test_estimate_of_an_invalid_pipeline_is_invalid_input(command, sources):
    assert command("estimate", "broken.dot").code == 2


def test_models_prints_which_rule_won(command, styled):
    ended = command("models", styled)
    assert "stylesheet #check, line 3" in ended.out
    assert "graph, line 2" in ended.out
    nodes = json.loads(command("models", styled, "--json").out)["nodes"]
    assert nodes[1]["model"] == {"value": "gpt-5.2", "from": "stylesheet", "selector": "#check", "line": 3}
    assert nodes[1]["provider"]["from"] == "model's name"
