"""The inputs that a graph declares (ruling 34)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.errors import InputsSyntaxError, OptionError
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.inputs import Input, completed, input_problems, inputs_of, parse_inputs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("ticket", [("ticket", None)]),
        ("ticket, product, tone=plain", [("ticket", None), ("product", None), ("tone", "plain")]),
        (" a ,\n b = two words , c=", [("a", None), ("b", "two words"), ("c", "")]),
        ("""a='x, y', b="it's" """, [("a", "x, y"), ("b", "it's")]),
        ("größe, my-key, a.b", [("größe", None), ("my-key", None), ("a.b", None)]),
        ("a=b=c,", [("a", "b=c")]),
    ],
)
def test_a_declaration_has_names_and_defaults(text, expected):
    found = [(each.name, None if each.is_required else each.default) for each in parse_inputs(text)]
    assert found == expected


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("a b", 'expected a ","', 3),
        ("a, 1b", "expected a name", 4),
        (", a", "expected a name", 1),
        ("a, b, a=3", '"a" occurs twice', 7),
        ("outcome", '"outcome" is a key that the engine sets', 1),
        ("a, tool.output=x", '"tool.output" is a key that the engine sets', 4),
        ("a='x' y", 'expected a ","', 7),
    ],
)
def test_a_wrong_declaration_points_at_the_place(text, message, column):
    with pytest.raises(InputsSyntaxError) as caught:
        parse_inputs(text)
    assert (caught.value.message, caught.value.span.column) == (message, column)


@given(st.text(alphabet="ab=,'\" \n.-1", max_size=30))
def test_any_text_is_a_declaration_or_an_error_with_a_place(text):
    try:
        names = [each.name for each in parse_inputs(text)]
    except InputsSyntaxError as error:
        names = [error.span.text]
    assert len(set(names)) == len(names)


DECLARED = parse_inputs("ticket, product, tone=plain")


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        (["ticket", "product"], []),
        (["ticket", "product", "tone"], []),
        (["ticket"], ['the input "product" is missing']),
        (["tikcet", "product"], ['"tikcet" is no input; did you mean "ticket"?']),
        (["ticket", "product", "tony"], ['"tony" is no input; did you mean "tone"?']),
        (["ticket", "product", "zebra"], ['"zebra" is no input']),
        ([], ['the input "ticket" is missing', 'the input "product" is missing']),
    ],
)
def test_missing_and_misspelt_names_are_told(given, problems):
    assert input_problems(DECLARED, given) == problems


def test_before_a_run_only_what_is_misspelt_is_wrong():
    assert input_problems(DECLARED, [], is_whole=False) == []
    assert input_problems(DECLARED, ["tikcet"], is_whole=False) == ['"tikcet" is no input; did you mean "ticket"?']


def test_declared_inputs_keep_the_order_of_their_declaration_however_they_are_given():
    given = {"tone": "warm", "product": "P", "ticket": "41"}
    assert list(completed("P", DECLARED, given)) == ["ticket", "product", "tone"]
    assert list(completed("P", DECLARED, {"product": "P", "ticket": "41"})) == ["ticket", "product", "tone"]


def test_defaults_fill_what_was_not_given():
    given = {"ticket": "41", "product": None}
    assert completed("P", DECLARED, given) == {"ticket": "41", "product": None, "tone": "plain"}
    assert completed("P", (), {"any": 1}) == {"any": 1}
    with pytest.raises(OptionError, match="inputs of P: the input") as caught:
        completed("P", DECLARED, {})
    assert caught.value.hint == "its inputs: ticket, product, tone=plain"


def test_a_schema_gives_types_and_the_list_gives_defaults():
    graph = parse_dot('digraph { inputs="tone=kind, extra" inputs_schema="Ticket" }')
    typed = (Input("count", type="integer"), Input("tone", type="string", description="How it sounds"))
    assert inputs_of(graph, {"Ticket": typed}.get) == (
        typed[0],
        Input("tone", is_required=False, default="kind", description="How it sounds"),
        Input("extra"),
    )
