"""The human gate (spec 4.6, 6.5; rulings 23, 24)."""

import asyncio

import pytest

from attractor_nb.errors import TerminalError
from attractor_nb.handlers.wait_human import WaitHumanHandler
from attractor_nb.interviewers import AutoApproveInterviewer, RefusingInterviewer
from attractor_nb.model.graph import Edge, Graph, Node
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.question import Answer, AnswerValue, Option, QuestionType
from attractor_nb.model.vocabulary.value_forms import Duration
from attractor_nb.testing import ScriptedInterviewer, try_stage, verify_handler

MAX_ASKED = 10

TIMEOUT = Answer(AnswerValue.TIMEOUT)


def gate(edges=(("[A] Approve", "ship"), ("[F] Fix it", "fix")), **attrs):
    node = Node("review", {"shape": "hexagon", "label": "Ship it?", **attrs})
    lines = tuple(Edge("review", target, {"label": label} if label else {}) for label, target in edges)
    return node, Graph("g", nodes={"review": node}, edges=lines)


def run(tmp_path, node_and_graph, *answers, interviewer=None, **options):
    node, graph = node_and_graph
    asked = interviewer or ScriptedInterviewer({"review": list(answers)})
    trial = asyncio.run(try_stage(WaitHumanHandler(asked), node, tmp_path, graph=graph, **options))
    return trial.outcome, asked


def test_it_keeps_the_handler_contract():
    node, graph = gate()
    outcome = asyncio.run(verify_handler(WaitHumanHandler(AutoApproveInterviewer()), node, graph))
    assert outcome.status is StageStatus.SUCCESS


def test_the_question_is_made_of_the_edges(tmp_path):
    node = gate(**{"human.prompt": "Read the diff first.", "human.timeout": Duration(90_000)})
    _, asked = run(tmp_path, node, "A", visit=3)
    question = asked.questions[0]
    assert (question.id, question.stage, question.text) == ("review:3", "review", "Ship it?")
    assert question.type is QuestionType.MULTIPLE_CHOICE
    assert question.options == (Option("A", "[A] Approve"), Option("F", "[F] Fix it"))
    assert question.timeout_seconds == 90
    assert question.metadata["detail"] == "Read the diff first."


def test_the_time_limit_of_the_node_is_the_time_a_person_has(tmp_path):
    _, asked = run(tmp_path, gate(timeout=Duration(5000)), "A")
    assert asked.questions[0].timeout_seconds == 5


@pytest.mark.parametrize(
    "answer",
    ["F", "f", "[F] Fix it", "fix it", Option("F", "[F] Fix it"), Answer("F", selected_option=Option("F", "x"))],
    ids=["key", "small-key", "label", "bare-label", "option", "answer"],
)
def test_ruling_23_an_answer_gives_both_the_label_and_the_target(tmp_path, answer):
    outcome, _ = run(tmp_path, gate(), answer)
    assert outcome.status is StageStatus.SUCCESS
    assert outcome.preferred_label == "[F] Fix it"
    assert outcome.suggested_next_ids == ("fix",)
    expected = {"human.gate.selected": "F", "human.gate.label": "[F] Fix it", "human.gate.text": ""}
    assert outcome.context_updates == expected


def test_edges_without_labels_are_chosen_by_their_targets(tmp_path):
    outcome, asked = run(tmp_path, gate((("", "ship_it"), ("", "fixes"))), "F")
    assert [option.label for option in asked.questions[0].options] == ["ship_it", "fixes"]
    assert outcome.suggested_next_ids == ("fixes",)


def test_ruling_23_an_answer_that_matches_nothing_is_asked_again_and_never_the_first_choice(tmp_path):
    outcome, asked = run(tmp_path, gate(), "maybe", "Q", "F")
    assert outcome.suggested_next_ids == ("fix",)
    assert len(asked.questions) == 3
    assert asked.messages[0][0].startswith('"maybe" is not one of the choices')
    assert asked.messages[0][1] == "review"


def test_a_gate_that_gets_only_refused_answers_fails_in_the_end(tmp_path):
    outcome, asked = run(tmp_path, gate(), "maybe")
    assert (outcome.status, outcome.failure_reason) == (StageStatus.FAIL, "none of 10 answers matched a choice")
    assert len(asked.questions) == MAX_ASKED


def test_a_refused_answer_gives_no_new_time(tmp_path):
    _, asked = run(tmp_path, gate(**{"human.timeout": Duration(60_000)}), "maybe", "A")
    assert asked.questions[1].timeout_seconds < 60


@pytest.mark.parametrize("default", ["fix", "F", "[F] Fix it", "Fix it"], ids=["target", "key", "label", "bare-label"])
def test_ruling_23_a_timeout_takes_the_default_choice(tmp_path, default):
    outcome, _ = run(tmp_path, gate(**{"human.default_choice": default}), TIMEOUT)
    assert outcome.suggested_next_ids == ("fix",)


def test_ruling_23_a_timeout_without_a_default_is_retry(tmp_path):
    outcome, _ = run(tmp_path, gate(), TIMEOUT)
    assert (outcome.status, outcome.failure_reason) == (StageStatus.RETRY, "human gate timeout, no default")


def test_a_default_that_is_no_choice_fails_before_anybody_is_asked(tmp_path):
    outcome, asked = run(tmp_path, gate(**{"human.default_choice": "fxi"}), TIMEOUT)
    assert outcome.is_terminal
    assert outcome.failure_reason == "human.default_choice 'fxi' is not one of the choices '[A] Approve', '[F] Fix it'"
    assert asked.questions == []


def test_a_skipped_question_is_a_failure(tmp_path):
    outcome, _ = run(tmp_path, gate(), None)
    assert (outcome.status, outcome.failure_reason) == (StageStatus.FAIL, "human skipped interaction")


def test_a_gate_without_edges_is_a_failure(tmp_path):
    outcome, _ = run(tmp_path, gate(()), "A")
    assert outcome.failure_reason == "No outgoing edges for human gate"


def test_nobody_to_ask_is_a_terminal_error_with_a_remedy(tmp_path):
    with pytest.raises(TerminalError) as caught:
        run(tmp_path, gate(), interviewer=RefusingInterviewer())
    assert "gate `review`" in caught.value.message
    assert "--auto-approve" in caught.value.hint


def test_an_interviewer_that_returns_no_answer_is_a_terminal_failure(tmp_path):
    class Broken(AutoApproveInterviewer):
        async def ask(self, question):
            return "yes"

    outcome, _ = run(tmp_path, gate(), interviewer=Broken())
    assert outcome.failure_reason == "the interviewer returned str, not an Answer"


def test_a_plain_interviewer_may_block(tmp_path):
    class Blocking:
        def ask(self, question):
            return Answer("A")

        def ask_multiple(self, questions):
            return [self.ask(question) for question in questions]

        def inform(self, message, stage):
            return None

    outcome, _ = run(tmp_path, gate(), interviewer=Blocking())
    assert outcome.suggested_next_ids == ("ship",)


def test_the_words_beside_a_choice_are_kept(tmp_path):
    outcome, _ = run(tmp_path, gate(), Answer("F", text="the tests are missing"))
    assert outcome.context_updates["human.gate.text"] == "the tests are missing"


YES_NO = (("Yes, deploy", "ship"), ("No", "stop"))
UNNAMED = (("Reject", "stop"), ("Approve", "ship"))


@pytest.mark.parametrize("kind", ["yes_no", "confirmation"])
@pytest.mark.parametrize(
    ("edges", "answer", "expected"),
    [
        (YES_NO, True, ("ship",)),
        (YES_NO, "n", ("stop",)),
        (tuple(reversed(YES_NO)), "yes", ("ship",)),
        (YES_NO[:1], True, ("ship",)),
    ],
    ids=["yes", "no", "yes-is-second", "one-edge"],
)
def test_ruling_24_yes_and_no_go_to_the_edge_of_that_name_or_key(tmp_path, kind, edges, answer, expected):
    outcome, asked = run(tmp_path, gate(edges, **{"human.type": kind}), answer)
    assert asked.questions[0].options == ()
    assert outcome.suggested_next_ids == expected


def test_yes_is_never_guessed_from_the_order_of_the_edges(tmp_path):
    outcome, asked = run(tmp_path, gate(UNNAMED, **{"human.type": "yes_no"}), True)
    assert outcome.is_terminal
    assert 'needs an edge labelled "Yes"' in outcome.failure_reason
    assert asked.questions == []


def test_a_no_that_no_edge_stands_for_is_a_failure(tmp_path):
    outcome, _ = run(tmp_path, gate(YES_NO[:1], **{"human.type": "yes_no"}), "no")
    assert outcome.failure_reason == "the answer was no, and no edge stands for it"


@pytest.mark.parametrize(
    ("default", "expected"), [("no", "stop"), ("No", "stop"), ("ship", "ship")], ids=["word", "label", "target"]
)
def test_a_yes_no_gate_has_a_default_too(tmp_path, default, expected):
    node = gate(YES_NO, **{"human.type": "yes_no", "human.default_choice": default})
    assert run(tmp_path, node, TIMEOUT)[0].suggested_next_ids == (expected,)


def test_a_yes_no_default_that_is_no_side_fails(tmp_path):
    node = gate(YES_NO, **{"human.type": "yes_no", "human.default_choice": "perhaps"})
    assert run(tmp_path, node, TIMEOUT)[0].is_terminal


@pytest.mark.parametrize(
    ("edges", "answer", "expected"),
    [
        ((("", "next"),), "because of the tests", ("next",)),
        ((("Approve", "ship"), ("Fix", "fix")), "fix", ("fix",)),
        ((("Approve", "ship"), ("Fix", "fix")), "add a test first", ()),
    ],
    ids=["one-edge", "names-an-edge", "left-to-the-engine"],
)
def test_ruling_24_free_text_is_kept_and_may_name_an_edge(tmp_path, edges, answer, expected):
    outcome, _ = run(tmp_path, gate(edges, **{"human.type": "freeform"}), answer)
    assert outcome.status is StageStatus.SUCCESS
    assert outcome.context_updates["human.gate.text"] == answer
    assert outcome.suggested_next_ids == expected


def test_free_text_has_a_default_text(tmp_path):
    node = gate((("", "next"),), **{"human.type": "freeform", "human.default_choice": "go on"})
    assert run(tmp_path, node, TIMEOUT)[0].context_updates["human.gate.text"] == "go on"


def test_ruling_24_several_choices_are_suggested_in_edge_order(tmp_path):
    edges = (("Tests", "tests"), ("Docs", "docs"), ("Examples", "examples"))
    outcome, _ = run(tmp_path, gate(edges, **{"human.type": "multi_select"}), ["E", "T"])
    assert outcome.suggested_next_ids == ("tests", "examples")
    assert outcome.preferred_label == "Tests"
    assert outcome.context_updates["human.gate.label"] == "Tests, Examples"


def test_several_choices_have_a_default_too(tmp_path):
    node = gate(**{"human.type": "multi_select", "human.default_choice": "fix"})
    assert run(tmp_path, node, TIMEOUT)[0].suggested_next_ids == ("fix",)


@pytest.mark.parametrize("answer", [[], ["T", "Z"]], ids=["none", "unknown"])
def test_a_selection_of_nothing_or_of_unknown_keys_is_asked_again(tmp_path, answer):
    edges = (("Tests", "tests"), ("Docs", "docs"))
    outcome, asked = run(tmp_path, gate(edges, **{"human.type": "multi_select"}), answer, ["D"])
    assert outcome.suggested_next_ids == ("docs",)
    assert len(asked.questions) == 2
