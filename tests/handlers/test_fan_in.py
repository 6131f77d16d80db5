"""The handler of fan-ins (spec 4.9; ruling 22): the rule, the model's choice, and what reaches the run."""

import asyncio

import pytest

from attractor_nb.backends import SimulatedBackend
from attractor_nb.context import Context
from attractor_nb.errors import RetryableError
from attractor_nb.handlers.fan_out import FanInHandler
from attractor_nb.model.branch import BranchResult
from attractor_nb.model.calls.call_content import Response, StageCall
from attractor_nb.model.graph import Graph, Node
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.testing import ScriptedBackend, try_stage

SUCCESS, PARTIAL, FAIL, SKIPPED = (
    StageStatus.SUCCESS,
    StageStatus.PARTIAL_SUCCESS,
    StageStatus.FAIL,
    StageStatus.SKIPPED,
)
TWO = [
    BranchResult("a", SUCCESS, "A is done", {"design": "round", "last_response": "text of a"}),
    BranchResult("b", SUCCESS, "B is done", {"design": "square", "extra": 1}, score=0.5),
]


@pytest.fixture
def choose(tmp_path):
    """Try a fan-in on results; returns the trial and the backend."""

    def run(results, replies="a", *, context=None, goal="", preamble="", **attrs):
        backend = ScriptedBackend({"join": replies}) if isinstance(replies, str | list) else replies
        node = Node("join", {"shape": "tripleoctagon", **attrs})
        context = Context(context or {})
        if results is not None:
            context.set("parallel.results", [result.to_plain() for result in results])
        graph = Graph("g", {"goal": goal}, {"join": node})
        handler = FanInHandler(backend)
        trial = asyncio.run(try_stage(handler, node, tmp_path, graph=graph, context=context, preamble=preamble))
        return trial, backend

    return run


def test_without_a_prompt_the_rule_chooses_and_nobody_is_asked(choose):
    trial, backend = choose(TWO)
    assert trial.outcome.status is SUCCESS
    assert trial.outcome.notes == "Selected best candidate: b"
    assert trial.outcome.context_updates == {
        "parallel.fan_in.best_id": "b",
        "parallel.fan_in.best_outcome": "success",
        "parallel.fan_in.design": "square",
        "parallel.fan_in.extra": 1,
    }
    assert backend.calls == []


@pytest.mark.parametrize("results", [None, []], ids=["none", "empty"])
def test_no_results_is_a_failure_in_the_specs_words(choose, results):
    outcome = choose(results)[0].outcome
    assert (outcome.status, outcome.failure_reason) == (FAIL, "No parallel results to evaluate")


def test_cancelled_branches_are_no_candidates(choose):
    outcome = choose([BranchResult("a", SKIPPED), BranchResult("b", SKIPPED)])[0].outcome
    assert (outcome.status, outcome.failure_reason) == (FAIL, "No parallel results to evaluate")


IDLE = [BranchResult(name, SUCCESS, is_idle=True) for name in "ab"]


@pytest.mark.parametrize("prompt", ["", "Which?"], ids=["rule", "model"])
def test_ruling_17a_branches_that_were_all_skipped_make_the_fan_in_skipped(choose, prompt):
    trial, backend = choose(IDLE, context={"parallel.fan_in.best_id": "earlier"}, prompt=prompt)
    assert (trial.outcome.status, trial.outcome.notes) == (SKIPPED, "all 2 candidates were skipped")
    assert trial.outcome.context_updates == {"parallel.fan_in.best_id": None}
    assert backend.calls == []


@pytest.mark.parametrize("prompt", ["", "Which?"], ids=["rule", "model"])
def test_ruling_17a_a_skipped_branch_is_never_the_best(choose, prompt):
    results = [*IDLE, BranchResult("c", PARTIAL, context_updates={"x": 1})]
    outcome = choose(results, prompt=prompt, merge="all")[0].outcome
    assert (outcome.status, outcome.context_updates["parallel.fan_in.best_id"]) == (SUCCESS, "c")


def test_ruling_17a_skipped_candidates_beside_a_failed_one_are_a_failure(choose):
    outcome = choose([*IDLE, BranchResult("c", FAIL, failure_reason="c broke")])[0].outcome
    assert outcome.failure_reason == "all 3 candidates failed (a: skipped; b: skipped; c: c broke)"


def test_it_runs_although_some_candidates_failed(choose):
    results = [BranchResult("a", FAIL, score=9.0), BranchResult("b", PARTIAL), BranchResult("c", SKIPPED)]
    outcome = choose(results)[0].outcome
    assert (outcome.status, outcome.context_updates["parallel.fan_in.best_id"]) == (SUCCESS, "b")
    assert outcome.context_updates["parallel.fan_in.best_outcome"] == "partial_success"


@pytest.mark.parametrize("prompt", ["", "Which?"], ids=["rule", "model"])
def test_it_fails_only_when_all_candidates_failed_and_says_why(choose, prompt):
    results = [BranchResult(name, FAIL, failure_reason=f"{name} broke") for name in "abcd"]
    trial, backend = choose(results, prompt=prompt)
    assert trial.outcome.status is FAIL
    assert trial.outcome.failure_reason == "all 4 candidates failed (a: a broke; b: b broke; c: c broke and 1 more)"
    assert backend.calls == []


def test_results_that_no_fan_out_wrote_are_a_failure(choose):
    outcome = choose(None, context={"parallel.results": "b"})[0].outcome
    assert (outcome.status, outcome.is_terminal) == (FAIL, True)
    assert outcome.failure_reason == "join: parallel.results is a str, not a list"


def test_results_that_no_fan_out_wrote_are_no_call_that_can_be_kept():
    node = Node("join", {"shape": "tripleoctagon", "prompt": "Which?"})
    context = Context({"parallel.results": "b"})
    found = FanInHandler(ScriptedBackend()).stage_call(node, context, Graph("g", nodes={"join": node}))
    assert found == StageCall(None, "parallel.results is a str, not a list")


def test_an_unknown_merge_is_a_failure(choose):
    outcome = choose(TWO, merge="everything")[0].outcome
    assert outcome.failure_reason == "join: merge is one of none, best, all, not 'everything'"


def test_with_a_prompt_the_backend_chooses_and_prompt_and_answer_are_kept(choose):
    trial, backend = choose(TWO, "**A**", prompt="For $goal: which?", goal="a house", preamble="Before")
    assert trial.outcome.notes == "Selected best candidate: a"
    assert trial.outcome.context_updates["parallel.fan_in.best_id"] == "a"
    (call,) = backend.calls
    assert call.prompt.startswith("## Context\n\nBefore\n\n## Task\n\nFor a house: which?\n\n## Candidates")
    assert "Notes: A is done\n\nOutput:\n\n```\ntext of a\n```" in call.prompt
    assert trial.files.read_text("prompt.md") == call.prompt
    assert trial.files.read_text("response.md") == "**A**"


def test_a_json_choice_brings_its_reason(choose):
    trial, _ = choose(TWO, '{"best_id": "a", "notes": "It is round."}', prompt="Which?")
    assert trial.outcome.notes == "Selected best candidate: a. It is round."


@pytest.mark.parametrize("nonsense", ["a\nb", "neither", ""], ids=["tie", "none", "empty"])
def test_an_answer_that_is_no_choice_is_asked_for_once_more_with_the_reason(choose, nonsense):
    trial, backend = choose(TWO, [nonsense, "a"], prompt="Which?")
    first, second = (call.prompt for call in backend.calls)
    assert second.startswith(first)
    assert "It could not be used: it " in second
    assert trial.outcome.notes == "Selected best candidate: a"
    assert trial.files.read_text("response.md") == nonsense
    assert trial.files.read_text("prompt-2.md") == second
    assert trial.files.read_text("response-2.md") == "a"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Response("a", is_truncated=True), "the response was cut off by the token limit"),
        ('a\n{"best_id": "b", "notes": "but n', "its JSON is cut off"),
        ('{"best_id": "a"} or {"best_id": "b"}', "it names a and b"),
    ],
    ids=["truncated", "cut-off", "two"],
)
def test_nobody_is_chosen_from_a_part_of_an_answer_or_from_two(choose, answer, problem):
    trial, backend = choose(TWO, [answer, "a"], prompt="Which?")
    assert trial.outcome.notes == "Selected best candidate: a"
    complaint = backend.calls[1].prompt.split("## Your last answer was not accepted")[1]
    assert problem in complaint
    assert answer in complaint


def test_after_a_second_answer_that_is_none_the_rule_decides_and_says_so(choose):
    trial, backend = choose(TWO, "both are splendid", prompt="Which?")
    assert len(backend.calls) == 2
    assert trial.outcome.context_updates["parallel.fan_in.best_id"] == "b"
    assert trial.outcome.notes == (
        "Selected best candidate: b. By status, score and id: the answer of the backend was no choice twice "
        "(it names none of the candidates on a line of its own)"
    )


def test_a_failed_branch_cannot_be_chosen(choose):
    results = [*TWO, BranchResult("c", FAIL, failure_reason="boom")]
    trial, backend = choose(results, "c", prompt="Which?")
    assert trial.outcome.context_updates["parallel.fan_in.best_id"] == "b"
    assert "cannot be chosen:\n\n- c: boom" in backend.calls[0].prompt


def test_the_only_candidate_left_needs_no_model(choose):
    trial, backend = choose([TWO[0], BranchResult("b", FAIL)], prompt="Which?")
    assert (trial.outcome.context_updates["parallel.fan_in.best_id"], backend.calls) == ("a", [])


def test_the_usage_of_all_answers_counts(choose):
    answers = [Response("hm", usage=Usage(10, 1, 0.5, calls=1)), Response("a", usage=Usage(20, 2, 0.25, calls=1))]
    assert choose(TWO, answers, prompt="Which?")[0].outcome.usage == Usage(30, 3, 0.75, calls=2)


def test_the_simulated_backend_works_offline_and_the_rule_decides(choose):
    outcome = choose(TWO, SimulatedBackend(), prompt="Which?")[0].outcome
    assert outcome.context_updates["parallel.fan_in.best_id"] == "b"
    assert "By status, score and id" in outcome.notes


def test_a_backends_failure_is_handed_on_with_what_was_spent(choose):
    spent = [Response("hm", usage=Usage(10)), Outcome(StageStatus.RETRY, failure_reason="busy", usage=Usage(5))]
    outcome = choose(TWO, spent, prompt="Which?")[0].outcome
    assert (outcome.status, outcome.failure_reason, outcome.usage) == (StageStatus.RETRY, "busy", Usage(15, unpriced=2))


def test_a_backends_success_is_read_like_a_text(choose):
    outcome = choose(TWO, [Outcome.success("a")], prompt="Which?")[0].outcome
    assert outcome.context_updates["parallel.fan_in.best_id"] == "a"


def test_what_a_backend_raises_is_the_engines_to_class(choose):
    with pytest.raises(RetryableError, match="busy"):
        choose(TWO, [RetryableError("busy")], prompt="Which?")


def test_a_backend_that_returns_no_text_is_a_failure(choose):
    class Wrong:
        def run(self, node, prompt, context):
            return 5

    outcome = choose(TWO, Wrong(), prompt="Which?")[0].outcome
    assert outcome.failure_reason == "the backend returned int; a backend returns text or an Outcome"


@pytest.mark.parametrize(
    ("merge", "design", "conflicts"),
    [("best", "square", ()), ("all", "square", ("join merges branches: design: the value of b replaces that of a",))],
)
def test_merge_brings_changes_of_branches_into_the_run(choose, merge, design, conflicts):
    trial, _ = choose(TWO, merge=merge)
    assert trial.outcome.context_updates["design"] == design
    assert trial.context.logs == conflicts


def test_a_later_fan_in_replaces_what_an_earlier_one_said(choose):
    trial, _ = choose(TWO[:1], context={"parallel.fan_in.extra": 1, "parallel.fan_in.best_id": "z"})
    assert trial.outcome.context_updates["parallel.fan_in.extra"] is None
    assert trial.outcome.context_updates["parallel.fan_in.best_id"] == "a"


def test_ruling_46_a_candidate_that_was_only_considered_is_not_chosen(choose):
    trial, _ = choose(TWO, "<think>Perhaps a.</think>b", prompt="Which?")
    assert trial.outcome.context_updates["parallel.fan_in.best_id"] == "b"
    assert trial.files.read_text("reasoning.md") == "Perhaps a."


def test_ruling_46_nobody_is_chosen_by_a_response_with_unclosed_reasoning(choose):
    trial, _ = choose(TWO, "Hm <think> perhaps\nb", prompt="Which?")
    assert trial.files.read_text("response.md") == ""
    assert "was no choice twice" in trial.outcome.notes
