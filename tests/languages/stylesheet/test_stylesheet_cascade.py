"""The declarations that win (spec 8.3, 11.10; ruling 10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.languages.stylesheet import parse_stylesheet, resolve_properties
from attractor_nb.model.graph import Node

REVIEW = Node("review", {"shape": "hexagon", "class": "code, critical"}, derived_classes=("loop-a",))


def model(text, node=REVIEW):
    return resolve_properties(parse_stylesheet(text), node).get("llm_model")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("* { model: a }", "a", id="every-node"),
        pytest.param("hexagon { model: a }", "a", id="shape"),
        pytest.param("box { model: a }", None, id="other-shape"),
        pytest.param(".critical { model: a }", "a", id="class"),
        pytest.param(".loop-a { model: a }", "a", id="derived-class"),
        pytest.param("#review { model: a }", "a", id="id"),
        pytest.param("#other { model: a }", None, id="other-id"),
        pytest.param("hexagon { model: b } * { model: a }", "b", id="shape-over-every"),
        pytest.param(".code { model: b } hexagon { model: a }", "b", id="class-over-shape"),
        pytest.param("#review { model: b } .code { model: a }", "b", id="id-over-class"),
        pytest.param(".code { model: a } .critical { model: b }", "b", id="later-wins"),
        pytest.param(".critical { model: a } .code { model: b }", "b", id="later-wins-whatever-the-class-order"),
        pytest.param("* { model: a; model: b }", "b", id="later-in-one-rule"),
        pytest.param("* { temperature: 1 }", None, id="unknown-property"),
    ],
)
def test_ruling_10_the_more_specific_then_the_later_rule_wins(text, expected):
    assert model(text) == expected


def test_a_node_without_shape_is_a_box():
    assert model("box { model: a }", Node("plan")) == "a"


def test_properties_come_from_different_rules():
    sheet = parse_stylesheet("* { model: a; provider: p } #review { model: b }")
    assert resolve_properties(sheet, REVIEW) == {"llm_model": "b", "llm_provider": "p"}


SELECTORS = ["*", "hexagon", ".code", "#review"]


@given(st.lists(st.sampled_from(SELECTORS), min_size=1, max_size=6))
def test_the_winner_is_the_last_of_the_most_specific(selectors):
    text = " ".join(f"{selector} {{ model: m{number} }}" for number, selector in enumerate(selectors))
    best = max(range(len(selectors)), key=lambda number: (SELECTORS.index(selectors[number]), number))
    assert model(text) == f"m{best}"
