"""A failure on one screen: the stage, its reason, the user's line, the last output, what a resume would do."""

import time

import pytest

from attractor_nb import Outcome, Pipeline, Run
from attractor_nb.errors import TerminalError
from attractor_nb.studio.inspect.failure import failure_lines
from attractor_nb.views.summary_line import failed_stage

FRAME = "digraph d {{ start [shape=Mdiamond] done [shape=Msquare] {} }}"
LINE = 'plan [prompt="Plan"] load [{}] start -> plan -> load -> done'


def look_up(table):
    value = table["found"]
    return table["missing"], value


class Load:
    """A handler that fails in the user's own code."""

    def execute(self, node, context, graph, logs_root):
        return look_up({"found": 1})


def say(node, prompt, context):
    return f"{node.id} said\nthe second line"


def run_of(tmp_path, body, backend=say, **options):
    run = Pipeline(FRAME.format(body), **options).run(logs_root=tmp_path / "run", backend=backend)
    run.result(60)
    return run


def failure_of(run):
    return run.inspect(failed_stage(run.view, run.graph)).to_plain(with_place=False)["failure"]


def test_a_function_that_raises_shows_the_users_own_line_between_the_lines_around_it(tmp_path):
    run = run_of(tmp_path, LINE.format("type=mine"), handlers={"mine": Load()})
    for shown in (run, Run.load(run.logs_root)):
        failure = failure_of(shown)
        assert failure["sentence"] == "load failed: KeyError: 'missing'"
        place, _, function = failure["place"].partition(", in ")
        assert place.startswith("test_failed_stages.py:")
        assert function == "look_up"
        assert [text for _, text, is_failed in failure["code"] if is_failed] == ['    return table["missing"], value']
        assert [number - failure["code"][2][0] for number, _, _ in failure["code"]] == [-2, -1, 0, 1, 2]
        assert "A rewind to load runs it again" in failure["resume"]


def test_the_line_is_the_innermost_of_the_users_own_code_and_not_of_a_library(tmp_path):
    def parse(node, prompt, context):
        import json

        return json.loads("{")

    failure = failure_of(run_of(tmp_path, LINE.format('prompt="x"').replace("plan", "first"), backend=parse))
    assert [text.strip() for _, text, is_failed in failure["code"] if is_failed] == ['return json.loads("{")']


def test_a_command_shows_the_last_lines_of_its_output_and_errors(tmp_path):
    command = "seq 1 30; echo broken >&2; exit 1"
    run = run_of(tmp_path, LINE.format(f'shape=parallelogram tool_command="{command}"'))
    failure = failure_of(run)
    assert failure["sentence"] == "load failed: the command ended with exit code 1: broken"
    assert failure["outputs"] == [
        ["Output", "\n".join(str(number) for number in range(23, 31)), True],
        ["Errors", "broken", False],
    ]
    assert failure["code"] == []


@pytest.mark.parametrize(
    ("attributes", "backend", "reason"),
    [
        ('prompt="x" response_schema="{\\"type\\": \\"object\\"}"', say, "JSON"),
        ('prompt="x" llm_model="gpt-5.2" llm_provider="openai"', "llm", "OPENAI_API_KEY is not set"),
        ('shape=parallelogram tool_command="echo begun; sleep 9" timeout="300ms"', say, "timed out after 300ms"),
    ],
    ids=["a schema", "a key", "a time limit"],
)
def test_other_failures_are_one_sentence_and_say_what_a_resume_would_do(
    attributes, backend, reason, tmp_path, monkeypatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    body = f"load [{attributes}] start -> load -> done"
    failure = failure_of(run_of(tmp_path, body, backend=backend))
    assert failure["sentence"].startswith("load failed: ")
    assert reason in failure["sentence"]
    assert "\n" not in failure["sentence"]
    assert failure["resume"].startswith("A resume would run nothing")


def test_a_model_that_answers_in_another_form_shows_the_answer(tmp_path):
    body = 'load [prompt="x" response_schema="{\\"type\\": \\"object\\"}"] start -> load -> done'
    assert failure_of(run_of(tmp_path, body))["outputs"] == [["Response", "load said\nthe second line", False]]


def test_the_failed_stage_of_a_fan_out_is_that_of_its_branch_and_a_rewind_goes_to_the_fan_out(tmp_path):
    def fail_in_b(node, prompt, context):
        if node.id == "b":
            raise ValueError("bad")
        return "fine"

    body = """fan [shape=component error_policy=fail_fast] a [prompt=x] b [prompt=x] join [shape=tripleoctagon]
              start -> fan  fan -> a -> join  fan -> b -> join  join -> done"""
    run = run_of(tmp_path, body, backend=fail_in_b)
    assert run.view.status == "fail"
    assert failed_stage(run.view, run.graph) == "b"
    failure = failure_of(run)
    assert failure["rewind_to"] == "fan"
    assert failure["code"]


def test_the_failed_stage_of_a_child_run_is_named_with_its_path(tmp_path):
    child = FRAME.format('inner [prompt="x"] start -> inner -> done')
    body = "boss [type=pipeline pipeline.name=child] start -> boss -> done"

    def fail(node, prompt, context):
        raise ValueError("bad")

    run = run_of(tmp_path, body, backend=fail, pipelines={"child": child})
    assert failed_stage(run.view, run.graph) == "boss>inner"
    failure = failure_of(run)
    assert failure["sentence"] == "boss>inner failed: ValueError: bad"
    assert failure["rewind_to"] == "boss"


def test_a_stage_that_could_not_be_executed_is_run_again_by_a_resume(tmp_path):
    def no_credit(node, prompt, context):
        raise TerminalError("the account has no credit left", is_unmeasured=True)

    run = run_of(tmp_path, 'load [prompt="x"] start -> load -> done', backend=no_credit)
    assert run.view.status == "interrupted"
    assert failed_stage(run.view, run.graph) == "load"
    failure = failure_of(run)
    assert "the account has no credit left" in failure["sentence"]
    assert failure["resume"].startswith("A resume runs load again and continues")
    assert failure["rewind_to"] == ""


def test_a_run_that_succeeded_or_is_active_has_no_failed_stage(tmp_path):
    def fail_once(node, prompt, context):
        return Outcome.fail("not today") if node.id == "plan" else "fine"

    body = """plan [prompt="x"] mend [prompt="x"] start -> plan
              plan -> mend [condition="outcome=fail"] plan -> done [condition="outcome=success"] mend -> done"""
    run = run_of(tmp_path, body, backend=fail_once)
    assert run.view.status == "success"
    assert failed_stage(run.view, run.graph) == ""
    routed = run.inspect("plan").to_plain()["failure"]
    assert (routed["sentence"], routed["resume"]) == ("plan failed: not today", "")


def test_the_inspected_stage_shows_it_as_text_and_as_html(tmp_path):
    run = run_of(tmp_path, LINE.format("type=mine"), handlers={"mine": Load()})
    stage = run.inspect("load")
    for line in failure_lines(stage.to_plain(with_place=False)["failure"]):
        assert line in str(stage)
    assert "&gt; " in stage._repr_mimebundle_()["text/html"]
    assert str(tmp_path) not in str(stage)


def test_the_line_of_a_run_from_elsewhere_opens_no_file(tmp_path):
    run = run_of(tmp_path, LINE.format("type=mine"), handlers={"mine": Load()})
    secret = tmp_path / "secret.txt"
    secret.write_text("one\ntwo\n")
    (run.logs_root / "load" / "failed_line.txt").write_text(f"{secret}:1, in f\nnonsense\n> 7  planted\n")
    failure = Run.load(run.logs_root).inspect("load").to_plain(with_place=False)["failure"]
    assert failure["code"] == [[7, "planted", True]]
    assert "one" not in str(failure)
    assert str(tmp_path) not in str(failure)


def test_the_failure_of_a_long_output_is_cut(tmp_path):
    begun = time.monotonic()
    command = "head -c 200000 /dev/zero | tr '\\\\0' x; exit 1"
    run = run_of(tmp_path, LINE.format(f'shape=parallelogram tool_command="{command}"'))
    ((name, text, is_cut),) = failure_of(run)["outputs"]
    assert (name, len(text), is_cut) == ("Output", 1500, True)
    assert time.monotonic() - begun < 60
