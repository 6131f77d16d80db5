"""Verdicts in whole runs: nothing guessed is a success, and a retry is told what was wrong (ruling 26)."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import BaseModel

from attractor_nb import Outcome, Pipeline, StageStatus
from attractor_nb.errors import RetryableError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.stage import current_stage
from attractor_nb.testing import ManualClock, ScriptedBackend
from tests import warm

CUT = '{"outcome":"fail","checks":[{"outcome":"success"},{"outcome":"fail","notes":"tests mis'
FAILED = '{"outcome":"fail","notes":"claim 3 has no source"}'
SECTION = "\n\n## Your last answer was not accepted\n\n"


class Order(BaseModel):
    """Nothing in it is required."""

    items: list[dict] = []
    note: str = ""


def frame(body):
    return f"digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {body} }}"


def judge(*answers, more="", body="start -> judge -> done", schemas=None, **options):
    """Run a stage that is to give a verdict; the result, and the prompts that it sent."""
    backend = ScriptedBackend({"judge": list(answers)})
    node = f"judge [prompt=Judge, {more}]"
    if "logs_root" not in options:
        options["durability"] = "none"
    pipeline = Pipeline(frame(f"{node} {body}"), schemas=schemas or {})
    return pipeline.run(wait=True, backend=backend, clock=ManualClock(), **options), backend.prompts["judge"]


GATE = "verdict=json, goal_gate=true"


@pytest.mark.parametrize("answer", [CUT, Response(CUT, is_truncated=True)], ids=["cut", "said-to-be-cut"])
def test_a_verdict_that_was_cut_off_passes_no_goal_gate(answer):
    result, _ = judge(answer, more=GATE)
    assert result.status == "fail"
    assert result.outcomes["judge"].status is StageStatus.FAIL


def test_nothing_is_read_from_an_answer_that_the_token_limit_cut_off():
    """Though what there is of it is a verdict."""
    result, _ = judge(Response('{"outcome": "success"}\n\nThat said, th', is_truncated=True), more=GATE)
    assert result.status == "fail"
    assert "cut off by the token limit" in result.reason


@pytest.mark.parametrize("more", [f"{GATE}, allow_partial=true", f"{GATE}, allow_partial=true, max_retries=1"])
@pytest.mark.parametrize("answer", [CUT, Response(CUT, is_truncated=True), "It is fine.", ""])
def test_allow_partial_makes_no_verdict_of_none_at_a_goal_gate(answer, more):
    assert judge(answer, more=more)[0].status == "fail"


def test_ruling_17_a_plain_answer_that_was_cut_off_is_partial_and_passes_its_gate():
    result, _ = judge(Response("half an answ", is_truncated=True), more="goal_gate=true")
    assert result.status == "success"
    assert result.outcomes["judge"].status is StageStatus.PARTIAL_SUCCESS


@pytest.mark.parametrize(
    "answer",
    [
        '{"items":[{"name":"bolt"},{"name":"nut"},{"na',
        '[{"items":[{"name":"bolt"}]},{"items":[]}]',
        '{"a": 1}',
        'As in {"a": 1}.',
        'Either {"items": [{"name": "bolt"}]} or {"items": []}.',
    ],
    ids=["cut-off", "array", "stray", "stray-in-prose", "two"],
)
def test_an_order_is_not_guessed_though_nothing_in_it_is_required(answer):
    result, _ = judge(answer, more="response_schema=Order", schemas={"Order": Order})
    assert result.status == "fail"
    assert "judge.verdict" not in result.context


BOLT = '{"items": [{"name": "bolt"}]}'


@pytest.mark.parametrize(
    "answer",
    [
        f'{BOLT}\n\nThat is it, as in format {{"a": 1}}',
        f'```json\n{BOLT}\n```\nThat is it, as in format {{"a": 1}}',
        f"{BOLT}\n\nIn short: {BOLT}",
    ],
    ids=["bare", "fenced", "twice-the-same"],
)
def test_an_order_with_something_else_beside_it_is_that_order(answer):
    result, _ = judge(answer, more="response_schema=Order", schemas={"Order": Order})
    assert result.status == "success", result.reason
    assert result.context["judge.verdict"] == {"items": [{"name": "bolt"}], "note": ""}


def test_an_order_of_more_than_64_kilobytes_is_read_whole():
    names = ", ".join(f'{{"name": "bolt {number}"}}' for number in range(10_000))
    result, _ = judge(f'{{"items": [{names}]}}', more="response_schema=Order", schemas={"Order": Order})
    assert result.status == "success", result.reason
    assert len(result.context["judge.verdict"]["items"]) == 10_000


@pytest.mark.parametrize("more", ["", ", max_retries=0", ", max_retries=1"])
def test_the_reason_of_a_run_is_what_the_verdict_noted(more):
    result, _ = judge(FAILED, more=f"verdict=json{more}")
    assert result.reason == "claim 3 has no source"
    assert result.outcomes["judge"].failure_reason == "claim 3 has no source"


@pytest.mark.parametrize("reply", [RetryableError("busy"), Outcome.retry("busy"), "", CUT])
def test_a_stage_that_may_not_be_tried_again_does_not_say_that_it_was(reply):
    result, _ = judge(reply, more="verdict=json, max_retries=0")
    assert result.status == "fail"
    assert "retries exceeded" not in result.reason


def test_the_notes_of_a_status_file_are_its_reason(tmp_path):
    write = 'echo {\\"outcome\\":\\"fail\\",\\"notes\\":\\"claim 3\\"} > $ATTRACTOR_STAGE_DIR/status.json'
    source = frame(
        f'check [shape=parallelogram, tool_command="{write}"] start -> check -> done'.replace('\\"', '\\\\\\"')
    )
    result = Pipeline(source).run(wait=True, logs_root=tmp_path / "run", trust=True)
    assert result.reason == "claim 3"


def test_the_notes_of_a_stage_in_a_branch_are_its_reason():
    body = """fan [shape=component] join [shape=tripleoctagon] other [prompt=Other, verdict=json]
        start -> fan fan -> judge -> join fan -> other -> join join -> done"""
    backend = ScriptedBackend({"judge": [FAILED], "other": [FAILED]})
    source = frame(f"judge [prompt=Judge, verdict=json] {body}")
    result = Pipeline(source).run(wait=True, backend=backend, durability="none")
    assert "judge: claim 3 has no source" in result.reason


def test_the_notes_of_a_stage_in_a_child_are_its_reason():
    child = frame("judge [prompt=Judge, verdict=json] start -> judge -> done")
    for shape in ("type=pipeline, pipeline.name=child", "shape=house, stack.child_pipeline=child"):
        parent = Pipeline(frame(f"sub [{shape}] start -> sub -> done"), pipelines={"child": child})
        result = parent.run(wait=True, backend=lambda prompt: FAILED, durability="none")
        assert result.reason.endswith("claim 3 has no source")


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("It is fine.", "the response does not end with a JSON verdict"),
        ('{"outcome": "splendid"}', "outcome 'splendid' is not known"),
        (Response(CUT, is_truncated=True), "cut off by the token limit"),
    ],
    ids=["none", "invalid", "truncated"],
)
def test_a_retry_tells_the_model_what_was_wrong_and_what_it_said(answer, wrong):
    result, (first, second) = judge(answer, 'Sorry. {"outcome": "success"}', more="verdict=json, max_retries=2")
    assert result.status == "success", result.reason
    assert SECTION not in first
    asked, complaint = second.split(SECTION)
    assert asked == first
    assert wrong in complaint
    assert answer in complaint


def test_a_retry_after_an_empty_response_says_so():
    _, (_, second) = judge("", "Here.", more="max_retries=1")
    assert "the response is empty" in second.split(SECTION)[1]


def test_what_a_provider_failed_with_is_no_business_of_the_model():
    result, prompts = judge(RetryableError("busy"), "Here.", more="max_retries=1")
    assert result.status == "success"
    assert prompts[0] == prompts[1]


def test_a_verdict_that_asks_for_a_retry_was_accepted():
    answers = ('{"outcome": "retry", "notes": "wait"}', '{"outcome": "success"}')
    result, prompts = judge(*answers, more="verdict=json, max_retries=1")
    assert result.status == "success"
    assert prompts[0] == prompts[1]


def test_a_failure_of_the_provider_in_between_hides_no_complaint():
    answers = ("It is fine.", RetryableError("busy"), '{"outcome": "success"}')
    result, prompts = judge(*answers, more="verdict=json, max_retries=2")
    assert result.status == "success"
    assert SECTION in prompts[1]
    assert prompts[2] == prompts[1]


def test_the_next_visit_begins_without_a_complaint():
    answers = ("It is fine.", FAILED, '{"outcome": "success"}')
    body = """start -> judge
        judge -> judge [condition="outcome=fail"] judge -> done [condition="outcome=success"]"""
    result, prompts = judge(*answers, more="verdict=json, max_retries=1", body=body)
    assert result.status == "success", result.reason
    assert [SECTION in prompt for prompt in prompts] == [False, True, False]


def test_a_failure_that_the_model_said_ends_the_complaint_before_it():
    answers = ("It is fine.", FAILED, '{"outcome": "success"}')
    result, prompts = judge(*answers, more="verdict=json, max_retries=2")
    assert result.status == "success", result.reason
    assert [SECTION in prompt for prompt in prompts] == [False, True, False]


def test_the_complaint_is_in_the_files_of_its_attempt(tmp_path):
    answers = ("It is fine.", '{"outcome": "success"}')
    _, prompts = judge(*answers, more="verdict=json, max_retries=1", logs_root=tmp_path / "run")
    assert (tmp_path / "run" / "judge" / "prompt.md").read_text("utf-8") == prompts[1]
    earlier = tmp_path / "run" / "judge" / "visits" / "1.1" / "prompt.md"
    assert earlier.read_text("utf-8") == prompts[0]


KILLED = """
import os, sys
from attractor_nb import Pipeline

asked = []

def backend(prompt):
    asked.append(prompt)
    if len(asked) == 2:
        os._exit(9)
    return "It is fine."

Pipeline(sys.argv[1]).run(wait=True, backend=backend, logs_root=sys.argv[2])
"""


def test_a_complaint_outlives_a_kill(tmp_path):
    """The complaint is in the log: the attempt after a resume is told what the one that was killed was told."""
    source = frame("judge [prompt=Judge, verdict=json, max_retries=5] start -> judge -> done")
    command = [sys.executable, "-c", KILLED, source, str(tmp_path / "run")]
    assert warm.run(command, check=False).returncode == 9
    before = (tmp_path / "run" / "judge" / "prompt.md").read_text("utf-8")
    resumed = ScriptedBackend({"judge": ['{"outcome": "success"}']})
    result = Pipeline(source).resume(tmp_path / "run", backend=resumed).wait()
    assert result.status == "success", result.reason
    assert resumed.prompts["judge"] == [before]
    assert "does not end with a JSON verdict" in before.split(SECTION)[1]


def test_a_backend_of_ones_own_says_itself_what_its_next_attempt_is_told():
    refused = Outcome.retry("no tests", complaint="There are no tests.")
    _, (_, second) = judge(refused, "Here.", more="max_retries=1")
    assert second.endswith(f"{SECTION}There are no tests.")


def test_a_secret_in_a_refused_answer_is_not_told_again(tmp_path):
    secret = "sk-ant-api03-" + "a1B2c3D4" * 11 + "-Qw4xYzAA"
    answers = (f"The key is {secret}.", '{"outcome": "success"}')
    _, prompts = judge(*answers, more="verdict=json, max_retries=1", logs_root=tmp_path / "run")
    assert secret not in prompts[1]
    assert secret not in (tmp_path / "run" / "events.jsonl").read_text("utf-8")


class Described(ScriptedBackend):
    """A scripted backend whose answers may be kept."""

    def call_inputs(self, node, context):
        return {"model": "m"}


SOURCE = frame("judge [prompt=Judge, verdict=json, max_retries=2] start -> judge -> done")
TALK = ["It is fine.", '{"outcome": "success"}']


def test_a_retry_is_looked_up_in_the_cache_by_the_prompt_that_it_sends(tmp_path):
    """No answer that was refused is kept, and none answers the attempt after it."""
    asked = []
    for number in range(2):
        backend = Described({"judge": TALK})
        place = {"cache": tmp_path / "cache", "logs_root": tmp_path / f"run{number}"}
        result = Pipeline(SOURCE).run(wait=True, backend=backend, clock=ManualClock(), **place)
        assert result.status == "success", result.reason
        asked.append(len(backend.calls))
    assert asked == [2, 1]
    assert result.cached_nodes == ("judge",)


def test_a_retry_is_replayed_from_a_cassette_with_what_it_was_told(tmp_path):
    prompts = []
    for mode in ("record", "replay"):
        backend = ScriptedBackend({"judge": TALK if mode == "record" else AssertionError("asked")})
        place = {"cassette": tmp_path / "talk.json", "logs_root": tmp_path / mode}
        result = Pipeline(SOURCE).run(wait=True, backend=backend, clock=ManualClock(), cassette_mode=mode, **place)
        assert result.status == "success", result.reason
        prompts.append((tmp_path / mode / "judge" / "prompt.md").read_text("utf-8"))
    assert prompts[0] == prompts[1]
    assert SECTION in prompts[0]


def test_what_was_wrong_reaches_a_handler_at_a_worker():
    class Handler:
        """Refuses its first answer."""

        async def execute(self, node, context, graph, logs_root):
            told = current_stage().complaint
            return Outcome.success(told) if told else Outcome.retry("no", complaint="It is too short.")

    source = frame("work [type=own, max_retries=1] start -> work -> done")
    with ThreadPoolExecutor(1) as executor:
        result = Pipeline(source, handlers={"own": Handler()}).run(
            wait=True, executor=executor, durability="none", clock=ManualClock()
        )
    assert result.status == "success", result.reason
    assert result.outcomes["work"].notes == "It is too short."


def test_a_branch_tells_its_own_complaints():
    body = """fan [shape=component] join [shape=tripleoctagon]
        left [prompt=Left, verdict=json, max_retries=1] right [prompt=Right, verdict=json, max_retries=1]
        start -> fan fan -> left -> join fan -> right -> join join -> done"""
    backend = ScriptedBackend({"left": ["left is fine", TALK[1]], "right": ["right is fine", TALK[1]]})
    result = Pipeline(frame(body)).run(wait=True, backend=backend, durability="none", clock=ManualClock())
    assert result.status == "success", result.reason
    for name, other in (("left", "right"), ("right", "left")):
        complaint = backend.prompts[name][1].split(SECTION)[1]
        assert f"{name} is fine" in complaint
        assert f"{other} is fine" not in complaint
