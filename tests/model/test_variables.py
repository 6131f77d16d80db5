"""Variables in texts: one pass, values never read again (ruling 34)."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.model.vocabulary.variables import MISSING, lookup_in, rendered, settled, variables, with_renamed_nodes

KNOWN = {
    "ticket": "printer broken",
    "plan.response": "step one\nstep two\nstep three",
    "tags": ["a", "ä"],
    "count": 3,
    "flag": True,
    "nothing": None,
    "empty": "",
    "Ticket no": "41",
    "evil": "$ticket ${plan.response} $$",
}


def render(text, known=KNOWN, goal="ship"):
    return rendered(text, lookup_in(goal, known.get))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("About $ticket.", "About printer broken."),
        ("About ${ticket}s", "About printer brokens"),
        ("$goal. ${goal}!", "ship. ship!"),
        ("${context.ticket}", "printer broken"),
        ("${tags} ${count} ${flag} ${nothing}", '["a", "ä"] 3 true null'),
        ("${Ticket no}", "41"),
        ("${ ticket }", "printer broken"),
        ("$evil", "$ticket ${plan.response} $$"),
        ("$$ticket and $$$ticket", "$ticket and $printer broken"),
        ("$tickets ${tickets} $5 ${} ${ $ US$", "$tickets ${tickets} $5 ${} ${ $ US$"),
        ("$plan.response", "$plan.response"),
        ("${plan.response:head 9}", "step one"),
        ("${plan.response:tail 12}", "step three"),
        ("${plan.response: tail  5 }", "three"),
        ("${plan.response:tail 900}", "step one\nstep two\nstep three"),
        ("${plan.response:tail 0}|", "|"),
        ("${plan.response:last 5}", "${plan.response:last 5}"),
        ("${tags:head 3}", '["a'),
        ("${missing:default none yet}", "none yet"),
        ("${missing:default}|", "|"),
        ("${ticket:default none yet}", "printer broken"),
        ("${empty:default none yet} ${nothing:default -} ${count:default -}", "none yet - 3"),
        ("${a:b:default c}", "c"),
        ("${missing:default $ticket}", "${missing:default printer broken}"),
    ],
)
def test_ruling_34_variables_become_the_values_that_they_name(text, expected):
    assert render(text) == expected


def test_the_goal_of_the_graph_goes_before_a_value_of_that_name_and_an_empty_one_does_not():
    assert render("$goal", {"goal": "mine"}, "graphs") == "graphs"
    assert render("$goal", {"goal": "mine"}, "") == "mine"
    assert render("[$goal]", {}, "") == "[]"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("${log:tail 10}", "line\nlast\n"),
        ("${log:tail 13}", "line\nlast\n"),
        ("${log:tail 3}", "st\n"),
        ("${log:head 7}", "first"),
        ("${log:head 10}", "first\nline"),
        ("${log:head 2}", "fi"),
    ],
)
def test_a_filter_keeps_whole_lines_where_that_leaves_at_least_half_of_what_was_asked_for(written, kept):
    assert render(written, {"log": "first\nline\nlast\n"}) == kept


TEXTS = st.text(alphabet="$${}ab :.\n5tail", max_size=40)


@given(TEXTS, st.dictionaries(st.sampled_from(["a", "b", "a.b", "goal"]), TEXTS))
def test_a_value_is_never_expanded_again(text, known):
    """Stand-ins for the values, put back afterwards, make the same text."""
    marks = {name: f"\0{number}\0" for number, name in enumerate(sorted(known))}
    expected = rendered(text, lambda name: marks.get(name, MISSING))
    plain = rendered(text, lambda name: known.get(name, MISSING))
    if ":" not in text:  # a filter would cut the stand-in
        for name, mark in marks.items():
            expected = expected.replace(mark, known[name])
        assert plain == expected


@given(st.text().filter(lambda text: "$" not in text))
def test_a_text_without_a_dollar_sign_stays_as_it_is(text):
    assert rendered(text, lambda _: "changed") == text


@given(st.text())
def test_doubled_dollar_signs_give_any_text_back(text):
    assert rendered(text.replace("$", "$$"), lambda _: "changed") == text


@given(TEXTS, TEXTS.filter(bool), TEXTS)
def test_a_goal_that_was_settled_before_gives_what_it_would_have_given_among_the_others(text, goal, value):
    text = text.replace("b", "$goal").replace("5", "${a$goal}")
    known = {"a": value, "al": value}
    direct = rendered(text, lookup_in(goal, known.get))
    assert rendered(settled(text, "goal", goal), lookup_in("another", known.get)) == direct


@given(st.lists(st.sampled_from(["${", "$", "}", "a:", "tail 4", "$$", "${a:tail 1}", " "]), max_size=60))
def test_variables_of_a_text_do_not_overlap_and_stand_where_they_say(parts):
    text, end = "".join(parts), 0
    for each in variables(text):
        assert end <= each.start < each.end <= len(text)
        assert each.name in text[each.start : each.end]
        end = each.end


@pytest.mark.parametrize("unit", ["${", "$", "${a", "$a", "${a:", "${a: tail ", "${a:tail 4}", "${:::: tail 1x}"])
def test_reading_is_linear_in_the_text(unit):
    text = unit * (400_000 // len(unit))
    began = time.process_time()
    rendered(text, lambda _: MISSING)
    settled(text, "goal", "x")
    assert time.process_time() - began < 4, "quadratic reading of 400 KB takes minutes"


@pytest.mark.parametrize("gap", ["a:" * 100_000, "a:tail " * 60_000, " " * 200_000, "a:tail 1" + " " * 200_000])
def test_reading_what_stands_in_braces_is_linear(gap):
    began = time.process_time()
    rendered("${" + gap + "x}", lambda _: MISSING)
    assert time.process_time() - began < 4


def test_other_values_are_json():
    value = {"ä": [1, None, {"b": "$ticket"}]}
    assert json.loads(render("${form}", {"form": value, "ticket": "x"})) == value


def test_renamed_stages_keep_their_variables():
    text = "${plan.response:tail 9} ${context.plan.run_id} $plan ${plan} ${planner.response} $${plan.response}"
    assert with_renamed_nodes(text, {"plan": "a_plan"}) == (
        "${a_plan.response:tail 9} ${context.a_plan.run_id} $plan ${plan} ${planner.response} $${plan.response}"
    )
