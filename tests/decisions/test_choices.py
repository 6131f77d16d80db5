"""The choices of a human gate and the answers that mean them (spec 4.6, 6.3; rulings 23, 24)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.decisions.gate_choices import (
    GateChoice,
    check_answer,
    choices_of,
    default_answer,
    find_choice,
    side_of,
)
from attractor_nb.decisions.routing import ConditionOutcome, select_edge
from attractor_nb.engine import gates
from attractor_nb.errors import AnswerRefused
from attractor_nb.interviewers.unattended import answer_of
from attractor_nb.model.events import InterviewCompleted
from attractor_nb.model.graph import Edge
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.question import Answer, AnswerValue, Option, Question, QuestionType


def offer(*edges):
    made = [Edge("gate", target, {"label": label, **(rest[0] if rest else {})}) for label, target, *rest in edges]
    return [(choice.key, choice.label, choice.target) for choice in choices_of(made)]


OFFERS = {
    "spec 4.6: all patterns": (
        [("[Y] Yes, deploy", "a"), ("N) No", "b"), ("R - Retry", "c"), ("skip it", "d")],
        [("Y", "[Y] Yes, deploy", "a"), ("N", "N) No", "b"), ("R", "R - Retry", "c"), ("S", "skip it", "d")],
    ),
    "an edge without a label is named by its target": ([("", "ship_it")], [("S", "ship_it", "ship_it")]),
    "ruling 23: a taken key gives way to the next free letter of the label": (
        [("Approve", "a"), ("Abort", "b")],
        [("A", "Approve", "a"), ("B", "Abort", "b")],
    ),
    "ruling 23: a written accelerator goes first": (
        [("Abort", "b"), ("[A] Approve", "a")],
        [("B", "Abort", "b"), ("A", "[A] Approve", "a")],
    ),
    "ruling 23: two written accelerators": (
        [("[A] Aa", "a"), ("[A] Ab", "b"), ("[A] A", "c")],
        [("A", "[A] Aa", "a"), ("B", "[A] Ab", "b"), ("1", "[A] A", "c")],
    ),
    "a long accelerator": ([("[OK] Fine", "a"), ("Other", "b")], [("OK", "[OK] Fine", "a"), ("O", "Other", "b")]),
    "edges of one label are told apart by their targets": (
        [("Go", "a"), ("[G] go", "b")],
        [("O", "Go (a)", "a"), ("G", "[G] go (b)", "b")],
    ),
    "the same edge twice is one choice": ([("Go", "a"), ("Go", "a")], [("G", "Go", "a")]),
    "an edge for failures is no choice": (
        [("Yes", "a"), ("Late", "b", {"condition": "outcome=fail"}), ("", "c", {"condition": "outcome!=success"})],
        [("Y", "Yes", "a")],
    ),
    "an edge with another condition is a choice": (
        [("Fix", "a", {"condition": "preferred_label=Fix"}), ("Go", "b", {"condition": "outcome=success"})],
        [("F", "Fix", "a"), ("G", "Go", "b")],
    ),
    "no edges": ([], []),
}


@pytest.mark.parametrize(("edges", "expected"), OFFERS.values(), ids=OFFERS)
def test_choices_come_from_edges_with_distinct_keys_and_labels(edges, expected):
    assert offer(*edges) == expected


@given(st.lists(st.tuples(st.sampled_from(["Go", "[G] Go", "go on", "?", "1", ""]), st.text("abc", min_size=1))))
def test_ruling_23_keys_are_always_distinct(edges):
    keys = [key.casefold() for key, _, _ in offer(*edges)]
    assert len(keys) == len(set(keys))


@given(st.lists(st.tuples(st.sampled_from(["Go", "[S] Stop", "Wait", ""]), st.text("abc", min_size=1)), max_size=40))
def test_every_choice_is_found_by_its_key(edges):
    choices = choices_of([Edge("gate", target, {"label": label}) for label, target in edges])
    labels = {choice.label for choice in choices}
    for choice in choices:
        assert find_choice(choices, choice.key) == choice
        if choice.key.lower() not in labels:
            assert find_choice(choices, choice.key.lower()) == choice


TWINS = (GateChoice("B", "in Massen", "bulk"), GateChoice("L", "in Maßen", "little"))
CASES = (GateChoice("A", "[A] Approve", "yes"), GateChoice("B", "[B] approve", "no"))


@pytest.mark.parametrize(
    ("choices", "text", "target"),
    [
        (TWINS, "in Maßen", "little"),
        (TWINS, "in Massen", "bulk"),
        (TWINS, "IN MASSEN", "bulk"),
        (CASES, "Approve", "yes"),
        (CASES, "approve", "no"),
        (CASES, "APPROVE", None),
        (CASES, "b", "no"),
        ((GateChoice("1", "x", "Ship"), GateChoice("2", "y", "ship")), "ship", "ship"),
        ((GateChoice("1", "x", "Ship"), GateChoice("2", "y", "ship")), "SHIP", None),
    ],
)
def test_an_exact_answer_takes_its_choice_and_one_that_several_match_none(choices, text, target):
    found = find_choice(choices, text)
    assert (found and found.target) == target
    question = Question("Q", QuestionType.MULTIPLE_CHOICE, tuple(Option(each.key, each.label) for each in choices))
    if {each.label for each in choices} != {"x", "y"}:
        if target is None:
            with pytest.raises(AnswerRefused):
                check_answer(question, Answer(text))
        else:
            chosen = next(each for each in choices if each.target == target)
            assert check_answer(question, Answer(text)).value == chosen.key


@pytest.mark.parametrize("label", ["Go", "go", "GO"])
def test_a_label_that_a_stage_prefers_takes_the_edge_that_is_labelled_exactly_so(build, label):
    plan = build.plan([("a", to, {"label": to}) for to in ("Go", "go")])
    step = select_edge(plan.nodes["a"], ConditionOutcome(StageStatus.SUCCESS, label), (), {}.get)
    assert step.target == (label if label == "go" else "Go")


@given(
    st.lists(
        st.tuples(st.sampled_from(["Go", "[G] go", "a", "Stop", ""]), st.sampled_from("abc"), st.booleans()), min_size=1
    )
)
def test_ruling_23_the_run_follows_the_edge_that_was_chosen(build, written):
    plan = build.plan([("gate", to, {"label": label, "default": default}) for label, to, default in written])
    gate = plan.nodes["gate"]
    for choice in choices_of([edge.edge for edge in gate.edges]):
        step = select_edge(gate, ConditionOutcome(StageStatus.SUCCESS, choice.label), (choice.target,), {}.get)
        assert step.target == choice.target


CHOICES = (GateChoice("Y", "[Y] Yes, deploy", "ship"), GateChoice("N", "No", "fixes"))
FOUND = {
    "key": ("Y", "ship"),
    "key in lower case": ("n", "fixes"),
    "label": ("[Y] Yes, deploy", "ship"),
    "label without accelerator": ("yes, DEPLOY", "ship"),
    "target": ("Fixes", "fixes"),
    "blanks around": ("  no \n", "fixes"),
    "nothing like it": ("maybe", None),
    "a part of a label": ("yes", None),
    "blank": ("  ", None),
}


@pytest.mark.parametrize(("text", "target"), FOUND.values(), ids=FOUND)
def test_a_choice_is_found_by_key_label_or_target_and_never_guessed(text, target):
    found = find_choice(CHOICES, text)
    assert (found and found.target) == target


YES, NO = Option("Y", "[Y] Yes, deploy"), Option("N", "No")
THREE = (Option("A", "Apples"), Option("B", "Bread, white"), Option("C", "Cheese"))


def question(kind, options=()):
    return Question("Well?", kind, options)


GATE = question(QuestionType.MULTIPLE_CHOICE, (YES, NO))
YES_NO = question(QuestionType.YES_NO)
CONFIRM = question(QuestionType.CONFIRM)
FREE = question(QuestionType.FREEFORM)
MULTI = question(QuestionType.MULTI_SELECT, THREE)

ANSWERS = {
    "a key": (GATE, Answer("y"), Answer("Y", YES)),
    "a label": (GATE, Answer("no"), Answer("N", NO)),
    "a label as text": (GATE, Answer(text="yes, deploy"), Answer("Y", YES)),
    "a remark beside a key": (GATE, Answer("N", text="not yet"), Answer("N", NO, text="not yet")),
    "an option": (GATE, Answer(selected_option=NO), Answer("N", NO)),
    "a copy of an option": (GATE, Answer(selected_option=Option("n", "")), Answer("N", NO)),
    "who answered is kept": (GATE, Answer("y", answered_by="widget"), Answer("Y", YES, answered_by="widget")),
    "a timeout": (GATE, Answer(AnswerValue.TIMEOUT), Answer(AnswerValue.TIMEOUT)),
    "a skip": (FREE, Answer(AnswerValue.SKIPPED), Answer(AnswerValue.SKIPPED)),
    "yes": (YES_NO, Answer("Yes"), Answer("yes")),
    "y as text": (CONFIRM, Answer(text=" y "), Answer("yes")),
    "no with a remark": (YES_NO, Answer("n", text="why?"), Answer("no", text="why?")),
    "the option of a yes-no question": (YES_NO, Answer(selected_option=NO), Answer("no", NO)),
    "free text": (FREE, Answer(text=" hello "), Answer("hello", text="hello")),
    "free text as value": (FREE, Answer("hello"), Answer("hello", text="hello")),
    "free text that says timeout": (FREE, Answer(text="timeout"), Answer("", text="timeout")),
    "several keys, in the order of the options": (
        MULTI,
        Answer("c, A"),
        Answer("A,C", selected_options=(THREE[0], THREE[2])),
    ),
    "one label with a comma": (MULTI, Answer("bread, white"), Answer("B", selected_options=(THREE[1],))),
    "several options": (
        MULTI,
        Answer(selected_options=(THREE[2], THREE[1], THREE[2])),
        Answer("B,C", selected_options=THREE[1:]),
    ),
    "several labels as text": (MULTI, Answer(text="apples,cheese"), Answer("A,C", selected_options=THREE[::2])),
}


@pytest.mark.parametrize(("asked", "given_answer", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_brought_into_its_one_form(asked, given_answer, expected):
    assert check_answer(asked, given_answer) == expected


@pytest.mark.parametrize(("asked", "given_answer", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_checking_a_checked_answer_changes_nothing(asked, given_answer, expected):
    assert check_answer(asked, expected) == expected


REFUSED = {
    "no such choice": (GATE, Answer("maybe"), '"maybe" is not one of the choices: Y = "Yes, deploy", N = "No"'),
    "an option of another question": (GATE, Answer(selected_option=THREE[0]), '"A" is not one of the choices'),
    "nothing": (GATE, Answer(), "the answer names no choice"),
    "neither yes nor no": (YES_NO, Answer("perhaps"), '"perhaps" is neither yes nor no'),
    "empty free text": (FREE, Answer(text="  "), "the answer is empty"),
    "one wrong of several": (MULTI, Answer("A,X"), '"X" is not one of the choices'),
    "none of several": (MULTI, Answer(""), "the answer names no choice"),
}


@pytest.mark.parametrize(("asked", "given_answer", "message"), REFUSED.values(), ids=REFUSED)
def test_ruling_23_an_answer_that_matches_nothing_is_refused(asked, given_answer, message):
    with pytest.raises(AnswerRefused) as caught:
        check_answer(asked, given_answer)
    assert message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("kind", [QuestionType.SINGLE_SELECT, QuestionType.FREE_TEXT, QuestionType.CONFIRM])
def test_ruling_24_the_names_of_11_8_are_aliases(kind):
    assert kind in {QuestionType.MULTIPLE_CHOICE, QuestionType.FREEFORM, QuestionType.CONFIRMATION}


def offered(*labels):
    return choices_of([Edge("gate", f"t{at}", {"label": label}) for at, label in enumerate(labels)])


def asked_of(choices, kind=QuestionType.MULTIPLE_CHOICE):
    return question(kind, tuple(Option(choice.key, choice.label) for choice in choices))


NAMED_LIKE_A_KEY = [
    ("10", "5", "1"),
    ("Approve", "A"),
    ("Ship", "S"),
    ("[A] Approve", "A"),
    ("approve", "a"),
    ("K", "k!"),
]


@pytest.mark.parametrize("labels", NAMED_LIKE_A_KEY)
def test_ruling_23_a_label_goes_before_a_key_and_no_key_is_a_label_of_another_choice(labels):
    choices = offered(*labels)
    for choice, label in zip(choices, labels, strict=True):
        assert find_choice(choices, label) == find_choice(choices, choice.key) == choice
        assert default_answer(QuestionType.MULTIPLE_CHOICE, label, choices).value == choice.key
        assert check_answer(asked_of(choices), Answer(label)).value == choice.key


@given(
    st.lists(st.sampled_from(["A", "a", "Approve", "[A] x", "1", "10", "[1] y", "x", "B) A"]), unique=True, min_size=1)
)
def test_ruling_23_every_key_and_label_means_its_own_choice(labels):
    choices = choices_of([Edge("gate", f"to_{at}", {"label": label}) for at, label in enumerate(labels)])
    for choice in choices:
        assert find_choice(choices, choice.key) == find_choice(choices, choice.label) == choice


def test_ruling_23_a_key_of_an_older_log_gives_way_to_a_label():
    older = question(QuestionType.MULTIPLE_CHOICE, (Option("1", "10"), Option("2", "1")))
    assert check_answer(older, Answer("1")).selected_option.label == "1"
    assert check_answer(older, Answer("1", Option("1", "10"))).selected_option.label == "10"


@pytest.mark.parametrize(
    ("labels", "value", "expected"),
    [
        (("Yank the release", "Yes"), "yes", "Yes"),
        (("Yes, but later", "Yes"), "yes", "Yes"),
        (("[Y] Yank it", "Yes, deploy"), "yes", "Yes, deploy"),
        (("[Y] Go", "[N] Stop"), "no", "[N] Stop"),
        (("Y", "N"), "no", "N"),
        (("[Y]", "[N]"), "yes", "[Y]"),
        (("Yes", "Now, at once"), "no", None),
        (("Yesterday's build", "No"), "yes", None),
    ],
)
def test_ruling_23_yes_and_no_are_words_and_no_made_up_keys(labels, value, expected):
    found = side_of(offered(*labels), value)
    assert (found and found.label) == expected


@pytest.mark.parametrize(
    ("wanted", "value"), [("yes", "yes"), ("y", "yes"), ("Yes", "yes"), ("Yank the release", None)]
)
def test_ruling_23_a_default_of_yes_or_no_is_the_word(wanted, value):
    found = default_answer(QuestionType.YES_NO, wanted, offered("Yank the release", "Yes"))
    assert (found and found.value) == value


@pytest.mark.parametrize("word", ["timeout", "skipped"])
def test_ruling_23_a_typed_word_is_never_a_timeout_or_a_skip(word):
    asked = asked_of(offered("go", word))
    for answer in (gates.given_answer(asked, word, ""), answer_of(word, asked, "x"), answer_of([word], asked, "x")):
        checked = check_answer(asked, answer)
        assert checked.selected_option.label == word
        assert not (checked.is_timeout)
        assert not (checked.is_skipped)
    with pytest.raises(AnswerRefused):
        check_answer(GATE, gates.given_answer(GATE, word, ""))
    assert check_answer(FREE, answer_of(word, FREE, "x")).text == word
    assert not (answer_of(word, FREE, "x").is_timeout)
    assert not (answer_of(word, FREE, "x").is_skipped)
    assert check_answer(GATE, answer_of(AnswerValue(word), GATE, "x")).value == word


def test_ruling_23_a_recorded_answer_goes_by_its_label_where_the_keys_have_changed():
    recorded = InterviewCompleted(duration=1.0, answer="1", label="10")
    found = gates.recorded_answer(recorded, asked_of(offered("10", "5", "1")))
    assert found.selected_option.label == "10"


def test_ruling_23_a_target_of_a_yes_no_gate_is_the_word_that_leads_there():
    asked = Question("Q", QuestionType.YES_NO, metadata={"targets": {"yes": "ship", "no": "yank"}})
    assert check_answer(asked, gates.given_answer(asked, "yank", "")).value == "no"
