"""What completion offers in an %%attractor cell; the cursor is where | stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.completer import CompletionContext

from attractor_nb.backends import NAMED
from attractor_nb.cli.choices import BackendName
from attractor_nb.notebook.completion import node_ids, suggest
from attractor_nb.notebook.matcher import cell_matcher

PLAN = '%%attractor\ndigraph g {\n  plan [label="Plan"]\n  build [label="Build"]\n  '


def offered(marked):
    text = marked.replace("|", "", 1)
    found = suggest(text, marked.index("|"))
    return [item.text for item in found.items]


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        pytest.param("%%attractor --b|", ["--backend"], id="an option"),
        pytest.param("%%attractor x --backend |", list(NAMED), id="an option's value"),
        pytest.param("%%attractor rev|", [], id="a new name"),
        pytest.param("%%attractor|", [], id="the magic itself"),
        pytest.param(PLAN + "bu|", ["build"], id="a node"),
        pytest.param(PLAN + "plan -> b|", ["build"], id="a target"),
        pytest.param(PLAN + "sub|", ["subgraph"], id="a keyword"),
        pytest.param(PLAN + "x [goal_g|", ["goal_gate"], id="a node's attribute"),
        pytest.param(PLAN + "x [label=a, goal_g|", ["goal_gate"], id="a second attribute"),
        pytest.param(PLAN + "x [human.ti|", ["human.timeout"], id="a dotted attribute"),
        pytest.param(PLAN + "plan -> build [wei|", ["weight"], id="an edge's attribute"),
        pytest.param(PLAN + "edge [loop|", ["loop_restart"], id="an edge default"),
        pytest.param(PLAN + "graph [model_s|", ["model_stylesheet"], id="a graph attribute"),
        pytest.param(PLAN + "rankdir=L|", ["LR"], id="a graph attribute's choice"),
        pytest.param(PLAN + "x [shape=hex|", ["hexagon"], id="a shape"),
        pytest.param(PLAN + 'x [shape="hex|', ["hexagon"], id="a quoted shape"),
        pytest.param(PLAN + 'x [type="wait|', ["wait.human"], id="a handler type"),
        pytest.param(PLAN + "x [goal_gate=t|", ["true"], id="a boolean"),
        pytest.param(PLAN + "x [retry_target=pl|", ["plan"], id="a node id as value"),
        pytest.param(PLAN + 'x [prompt="write a goal_g|', [], id="free text is left alone"),
        pytest.param(
            '%%attractor\ndigraph g { a [label="x ] y"] b [sha|', ["shape"], id="brackets in a string"
        ),
        pytest.param("%%attractor\ndigraph g { // a [\n  b [sha|", ["shape"], id="brackets in a comment"),
        pytest.param("print('x|", [], id="another cell"),
    ],
)
def test_what_fits_at_the_cursor_is_offered(marked, expected):
    assert offered(marked) == expected


def test_the_fragment_is_what_the_word_replaces():
    text = PLAN + "x [human.t"
    assert suggest(text, len(text)).fragment == "human.t"


def test_nodes_are_listed_once_in_order_without_attributes_and_keywords():
    body = 'digraph g { rankdir=LR goal="x -> y" node [shape=box] b -> a -> b subgraph s { c } }'
    assert node_ids(body, "") == ["b", "a", "c"]


@given(st.text(alphabet='ab_ [](){}"=,;->#/*\n\\.', max_size=60))
def test_completion_never_fails_on_unfinished_text(body):
    text = f"%%attractor\n{body}"
    for cursor in range(len(text) + 1):
        suggest(text, cursor)


def test_the_matcher_leaves_python_names_out_of_the_body():
    text = PLAN + "x [goal_g"
    lines = text.split("\n")
    context = CompletionContext(
        token="goal_g",
        full_text=text,
        cursor_position=len(lines[-1]),
        cursor_line=len(lines) - 1,
        limit=None,
    )
    result = cell_matcher(context)
    assert [item.text for item in result["completions"]] == ["goal_gate"]
    assert result["suppress"] is True


def test_the_matcher_says_nothing_in_other_cells():
    context = CompletionContext(token="pr", full_text="pr", cursor_position=2, cursor_line=0, limit=None)
    assert cell_matcher(context) == {"completions": []}


def test_a_backend_has_one_name_everywhere():
    assert [name.value for name in BackendName] == list(NAMED)
