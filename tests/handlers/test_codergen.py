"""The handler of model stages (spec 4.5; ruling 26)."""

import asyncio
import threading

import pytest

from attractor_nb.errors import RetryableError
from attractor_nb.handlers.codergen import CodergenHandler, compose_prompt
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.graph import Edge, Graph, Node
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.testing import ScriptedBackend, try_stage, verify_handler


def run(node, tmp_path, reply="done", **options):
    backend = ScriptedBackend(default=reply)
    trial = asyncio.run(try_stage(CodergenHandler(backend), node, tmp_path, **options))
    return trial, backend


def graph_of(node, goal="", labels=()):
    edges = tuple(Edge(node.id, f"t{number}", {"label": label}) for number, label in enumerate(labels))
    return Graph("g", {"goal": goal}, {node.id: node}, edges)


def test_it_keeps_the_handler_contract():
    assert asyncio.run(verify_handler(CodergenHandler(ScriptedBackend()))).status is StageStatus.SUCCESS


@pytest.mark.parametrize(
    ("attrs", "goal", "expected"),
    [
        ({"prompt": "Plan $goal now"}, "a house", "Plan a house now"),
        ({"label": "Build $goal"}, "a house", "Build a house"),
        ({}, "a house", "stage"),
        ({"prompt": "Explain $goal"}, "the variable $goal", "Explain the variable $goal"),
        ({"prompt": "costs $5"}, "x", "costs $5"),
    ],
    ids=["prompt", "label", "id", "goal-names-itself", "no-other-variable"],
)
def test_the_prompt_is_the_nodes_or_its_label_with_the_goal(tmp_path, attrs, goal, expected):
    node = Node("stage", attrs)
    assert run(node, tmp_path, graph=graph_of(node, goal))[1].calls[0].prompt == expected


def test_the_carried_context_stands_before_the_task_in_a_section_of_its_own():
    node = Node("stage", {"prompt": "Go on."})
    assert (
        compose_prompt(node, graph_of(node), "Earlier: plan.\n") == "## Context\n\nEarlier: plan.\n\n## Task\n\nGo on."
    )


def test_the_prompt_that_was_sent_and_the_response_are_files_of_the_stage(tmp_path):
    trial, backend = run(Node("plan", {"prompt": "Plan it"}), tmp_path, "A plan", preamble="Before")
    assert trial.files.read_text("prompt.md") == backend.calls[0].prompt == "## Context\n\nBefore\n\n## Task\n\nPlan it"
    assert trial.files.read_text("response.md") == "A plan"


def test_ruling_26_a_text_is_success_with_an_excerpt_and_the_whole_response(tmp_path):
    text = "word " * 100
    outcome = run(Node("plan"), tmp_path, text)[0].outcome
    assert outcome.status is StageStatus.SUCCESS
    assert outcome.notes == "Stage completed: plan"
    assert outcome.context_updates == {"last_stage": "plan", "last_response": text[:200], "plan.response": text}


@pytest.mark.parametrize("text", ["", "  \n\t"], ids=["empty", "blank"])
def test_an_empty_response_is_never_a_success(tmp_path, text):
    outcome = run(Node("plan"), tmp_path, text)[0].outcome
    assert (outcome.status, outcome.failure_reason) == (StageStatus.RETRY, "the response is empty")


def test_a_response_cut_off_by_the_token_limit_is_partial_and_says_so(tmp_path):
    outcome = run(Node("plan"), tmp_path, Response("half a sent", is_truncated=True))[0].outcome
    assert outcome.status is StageStatus.PARTIAL_SUCCESS
    assert "cut off by the token limit" in outcome.notes


def test_the_usage_of_a_response_becomes_the_outcomes(tmp_path):
    usage = Usage(12, 34, 0.5, 1)
    outcome = run(Node("plan"), tmp_path, Response("done", usage=usage))[0].outcome
    assert outcome.usage == usage


def test_an_outcome_of_the_backend_is_passed_through_unchanged(tmp_path):
    given = Outcome(StageStatus.FAIL, preferred_label="again", failure_reason="tests fail")
    trial, _ = run(Node("plan"), tmp_path, given)
    assert trial.outcome is given
    assert trial.files.read_text("response.md") is None


@pytest.mark.parametrize("garbage", [None, 7, ["text"], b"bytes"], ids=["None", "int", "list", "bytes"])
def test_a_response_of_another_type_is_a_terminal_failure_that_names_it(tmp_path, garbage):
    class Broken:
        def run(self, node, prompt, context):
            return garbage

    outcome = asyncio.run(try_stage(CodergenHandler(Broken()), Node("n"), tmp_path)).outcome
    assert (outcome.status, outcome.is_terminal) == (StageStatus.FAIL, True)
    assert type(garbage).__name__ in outcome.failure_reason


def test_what_a_backend_raises_goes_to_the_engine_which_classes_it(tmp_path):
    with pytest.raises(RetryableError, match="busy"):
        run(Node("plan"), tmp_path, RetryableError("busy"))


def test_a_plain_backend_runs_in_a_thread_of_its_own_with_the_stage_in_reach(tmp_path):
    from attractor_nb.stage import current_stage

    class Blocking:
        def run(self, node, prompt, context):
            return f"{current_stage().node_id} {threading.current_thread() is threading.main_thread()}"

    trial = asyncio.run(try_stage(CodergenHandler(Blocking()), Node("n"), tmp_path))
    assert trial.files.read_text("response.md") == "n False"


def verdict_node(**attrs):
    return Node("review", {"verdict": "json", **attrs})


def test_ruling_26_a_node_that_asks_for_a_verdict_tells_the_model_its_form_and_the_labels():
    node = verdict_node(prompt="Review it")
    prompt = compose_prompt(node, graph_of(node, labels=("Approve", "Reject")))
    assert prompt.startswith("Review it\n\n## Response format\n\nEnd with one JSON block")
    assert '"preferred_next_label": "Approve | Reject"' in prompt


def test_a_node_with_a_schema_and_a_verdict_asks_for_both():
    node = verdict_node(response_schema=SCHEMA)
    request = compose_prompt(node, graph_of(node)).split("## Response format")[1]
    assert SCHEMA in request
    assert '{"outcome": "success | partial_success | retry | fail"' in request


def test_ruling_26_a_valid_verdict_is_read_as_a_status_file(tmp_path):
    node = verdict_node()
    text = 'I looked.\n```json\n{"outcome": "fail", "preferred_next_label": "Reject", "notes": "no tests"}\n```\n'
    outcome = run(node, tmp_path, text, graph=graph_of(node, labels=("Reject",)))[0].outcome
    assert (outcome.status, outcome.preferred_label, outcome.notes) == (StageStatus.FAIL, "Reject", "no tests")
    assert outcome.context_updates["review.response"] == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It is fine.", "the response does not end with a JSON verdict"),
        ('{"outcome": "splendid"}', "the JSON verdict: outcome 'splendid' is not known"),
        ('{"notes": "fine"}', 'the JSON verdict has no "outcome"'),
        ('```json\n{"outcome": "success"\n```', "the JSON verdict is not JSON"),
        ("```json\n[1, 2]\n```", "the JSON verdict is not an object"),
        (
            '{"outcome": "success", "suggested_next_ids": ["nowhere"]}',
            "the JSON verdict: suggested_next_ids names 'nowhere'",
        ),
        (
            '{"outcome": "success", "context_updates": {"graph.goal": "x"}}',
            "the JSON verdict: context_updates sets 'graph.goal'",
        ),
    ],
    ids=["none", "unknown-outcome", "no-outcome", "broken-json", "a-list", "foreign-target", "reserved-key"],
)
def test_ruling_26_a_missing_or_invalid_verdict_is_retry(tmp_path, text, reason):
    outcome = run(verdict_node(), tmp_path, text)[0].outcome
    assert outcome.status is StageStatus.RETRY
    assert outcome.failure_reason.startswith(reason)


SCHEMA = '{"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}'


def test_a_response_schema_is_told_to_the_model_and_its_value_kept(tmp_path):
    node = Node("rate", {"prompt": "Rate it", "response_schema": SCHEMA})
    trial, backend = run(node, tmp_path, 'Good. {"score": 8.5}')
    assert SCHEMA in backend.calls[0].prompt
    assert trial.outcome.status is StageStatus.SUCCESS
    assert trial.outcome.context_updates["rate.verdict"] == {"score": 8.5}


def test_a_verdict_that_breaks_the_schema_is_retry_and_says_where(tmp_path):
    outcome = run(Node("rate", {"response_schema": SCHEMA}), tmp_path, '{"score": "high"}')[0].outcome
    assert outcome.status is StageStatus.RETRY
    assert outcome.failure_reason.endswith("'high' is not of type 'number' (at $.score)")


def test_a_schema_may_ask_for_a_status_too(tmp_path):
    node = Node("rate", {"response_schema": SCHEMA, "verdict": "json"})
    outcome = run(node, tmp_path, '{"score": 1, "outcome": "partial_success"}')[0].outcome
    assert outcome.status is StageStatus.PARTIAL_SUCCESS


def test_broken_json_under_a_schema_is_retry(tmp_path):
    outcome = run(Node("rate", {"response_schema": SCHEMA}), tmp_path, '```\n{"score": }\n```')[0].outcome
    assert outcome.status is StageStatus.RETRY


@pytest.mark.parametrize(
    "schema",
    ["{", '{"type": "thing"}', '{"$ref": "http://127.0.0.1:9/schema.json"}'],
    ids=["no-json", "no-schema", "schema-elsewhere-is-not-fetched"],
)
def test_a_schema_that_is_none_is_a_terminal_error_of_the_node(tmp_path, schema):
    from attractor_nb.errors import TerminalError

    with pytest.raises(TerminalError, match="response_schema of node 'rate' is not a JSON Schema"):
        run(Node("rate", {"response_schema": schema}), tmp_path, '{"score": 1}')


def test_ruling_46_reasoning_is_a_file_of_its_own_and_no_part_of_the_response(tmp_path):
    reply = Response("<think>Perhaps blue.</think>\nRed.", usage=Usage(5, 9, None, 1))
    trial, _ = run(Node("plan"), tmp_path, reply)
    updates = trial.outcome.context_updates
    assert (updates["plan.response"], updates["last_response"]) == ("Red.", "Red.")
    assert trial.files.read_text("response.md") == "Red."
    assert trial.files.read_text("reasoning.md") == "Perhaps blue."
    assert trial.outcome.usage.output_tokens == 9


def test_ruling_46_no_verdict_is_read_from_reasoning(tmp_path):
    node = Node("check", {"verdict": "json"})
    reply = '<think>I say {"outcome": "success"}.</think>I could not check the sources.'
    assert run(node, tmp_path, reply)[0].outcome.status is StageStatus.RETRY


@pytest.mark.parametrize(
    "begun", ["I could not check. <think>Should I say", "It could be <think> that I say", "\ufeff<think>"]
)
def test_ruling_46_no_verdict_is_read_from_a_response_with_unclosed_reasoning(tmp_path, begun):
    trial, _ = run(Node("check", {"verdict": "json"}), tmp_path, f'{begun} {{"outcome": "success"}}')
    assert trial.outcome.status is StageStatus.RETRY
    assert '{"outcome": "success"}' in trial.files.read_text("reasoning.md")


def test_a_response_that_only_mentions_a_mark_is_whole(tmp_path):
    trial, _ = run(Node("plan"), tmp_path, "The <think> tag begins it.")
    assert trial.files.read_text("response.md") == "The <think> tag begins it."


def test_ruling_46_only_reasoning_is_asked_again_without_being_told_its_own_thoughts(tmp_path):
    outcome = run(Node("plan"), tmp_path, "<think>secret musings")[0].outcome
    assert (outcome.status, outcome.failure_reason) == (
        StageStatus.RETRY,
        "the response is only reasoning, without an answer",
    )
    assert "musings" not in outcome.complaint


@pytest.mark.parametrize("text", ["", "<think>Hm.", "<think>Hm.</think>"])
def test_a_token_limit_that_left_no_answer_is_not_asked_for_again(tmp_path, text):
    """It would be reached again: the same would be asked."""
    outcome = run(Node("plan"), tmp_path, Response(text, is_truncated=True))[0].outcome
    assert (outcome.status, outcome.is_terminal) == (StageStatus.FAIL, True)
    assert "token limit" in outcome.failure_reason
