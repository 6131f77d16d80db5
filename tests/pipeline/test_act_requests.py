"""Requests of the buttons of an inspector, as messages."""

from __future__ import annotations

import json
import threading

import pytest

from attractor_nb import Outcome, Pipeline, Run
from attractor_nb.evaluation.scorers import equals
from attractor_nb.pipeline import run_actions
from attractor_nb.pipeline.run_actions import InspectorActions
from attractor_nb.studio.inspect.inspect_run import answer_inspection

GOES_ON = "The run is active: stop it, or wait until it has ended or waits at a gate."

WAIT = 60
TEXT = """digraph demo { graph [goal="tides"] start [shape=Mdiamond] done [shape=Msquare]
  draft [prompt="Draft $goal ${tone}"] check [prompt="Check"] count [shape=parallelogram, tool_command="echo 3"]
  start -> draft -> check -> count -> done }"""


@pytest.fixture
def run(tmp_path):
    asked = []

    def answer(node, prompt, context):
        asked.append((node.id, prompt.rpartition("## Task")[2].strip() or prompt))
        return f"{node.id} {len(asked)}"

    pipeline = Pipeline(TEXT, backend=answer)
    run = pipeline.run(logs_root=tmp_path / "run", params={"tone": "mild"}, runs_dir=None)
    run.result(WAIT)
    run.asked = asked
    return run


@pytest.fixture
def inspector(run):
    begun = []

    def begin(title, start):
        begun.append((title, start()))
        return begun[-1][1]

    inspector = InspectorActions(run, begin)
    inspector.begun = begun
    return inspector


def test_a_stage_says_what_can_be_done_with_it_and_by_which_call(inspector):
    found = inspector.actions("draft", 1)
    assert [found[name]["why"] for name in ("fork", "rewind", "pin")] == ["", "", ""]
    assert found["prompt"] == "Draft $goal ${tone}", "what the graph says, not what was sent"
    assert found["fork"]["call"].splitlines()[-1] == 'fork = run.fork("draft")'
    assert found["rewind"]["call"].splitlines()[-1] == 'run = run.rewind("draft")'
    assert found["pin"]["call"].splitlines()[-1] == 'run.debugger.pin("draft")'
    assert found["fork"]["call"].startswith('run = Run.load("'), "nobody has a name for it here"


def test_a_stage_without_a_prompt_is_forked_as_it_is(inspector):
    assert inspector.actions("count", 1)["prompt"] is None
    assert inspector.answer({"call": "fork", "node": "count", "visit": 1})["said"]["words"].startswith(
        "Fork before count"
    )


def test_an_edited_prompt_is_what_the_fork_asks(inspector, run):
    answer = inspector.answer({"call": "fork", "node": "draft", "visit": 1, "prompt": "Sketch $goal"})
    ((title, fork),) = inspector.begun
    assert title == "Fork before draft, visit 1"
    assert fork.result(WAIT).status == "success"
    assert run.asked[-2] == ("draft", "Sketch tides")
    assert answer["said"]["call"].startswith('fork = Run.load("')
    assert fork.logs_root.name in answer["said"]["call"]
    assert InspectorActions(fork).actions("draft", 1)["prompt"] == "Sketch $goal"


def test_a_request_that_comes_twice_is_done_once(inspector):
    request = {"call": "fork", "node": "draft", "visit": 1, "key": "one"}
    assert inspector.answer(request) == inspector.answer(request)
    assert len(inspector.begun) == 1
    inspector.answer({**request, "key": "two"})
    assert len(inspector.begun) == 2


def test_a_refusal_says_why_and_how_it_would_do_and_may_be_asked_again(inspector):
    request = {"call": "fork", "node": "draft", "visit": 1, "prompt": "  ", "key": "one"}
    refused = inspector.answer(request)
    assert "the prompt is empty" in refused["problem"]
    assert "leave it out to keep the prompt" in refused["problem"]
    assert "said" in inspector.answer({**request, "prompt": "Sketch"}), "what was refused was not done"


def test_a_prompt_that_is_no_text_begins_no_fork(inspector):
    refused = inspector.answer({"call": "fork", "node": "draft", "visit": 1, "prompt": ["Sketch"]})
    assert "a prompt must be text, not list" in refused["problem"]
    assert inspector.begun == []


def test_a_rewind_goes_on_in_the_same_run(inspector, run):
    inspector.answer({"call": "rewind", "node": "check", "visit": 1})
    ((title, again),) = inspector.begun
    assert (title, again.logs_root) == ("Rewound to before check, visit 1", run.logs_root)
    again.result(WAIT)
    assert inspector.run is again, "what is asked next is asked of the handle that goes on"
    assert inspector.actions("check", 1)["fork"]["why"].startswith("A rewind set this visit aside")
    assert inspector.actions("check", 2)["fork"]["why"] == ""
    assert inspector.actions("draft", 1)["fork"]["call"].splitlines()[-1] == 'fork = run.fork("draft")'


def test_a_pinned_answer_is_in_the_next_fork_and_is_taken_out_again(inspector, run):
    answer = inspector.answer({"call": "pin", "node": "draft", "visit": 1})
    assert answer["actions"]["is_pinned"] is True
    assert answer["actions"]["pin"]["call"].endswith('run.debugger.unpin("draft")')
    inspector.answer({"call": "fork", "node": "draft", "visit": 1})
    assert inspector.begun[0][1].result(WAIT)["draft"].response == run["draft"].response
    assert 'run.debugger.pin("draft")' in inspector.actions("check", 1)["fork"]["call"]
    assert inspector.answer({"call": "unpin", "node": "draft"})["actions"]["is_pinned"] is False


@pytest.mark.parametrize("node", ["start", "done"])
def test_what_cannot_be_pinned_says_why(inspector, node):
    assert "does nothing" in inspector.actions(node, 1)["pin"]["why"]


def test_a_run_that_goes_on_is_left_alone_and_says_so(tmp_path):
    pipeline = Pipeline(TEXT.replace("check [", "check [shape=hexagon, "), backend="simulated")
    run = pipeline.run(logs_root=tmp_path / "run", interviewer="deferred", breakpoints=["draft"], params={"tone": "x"})
    run.debugger.wait_for_stop(WAIT)
    stands = InspectorActions(run).actions("start", 1)
    assert (stands["fork"]["why"], stands["rewind"]["why"][:18]) == ("", "The run is stopped")
    run.debugger.continue_()
    run.wait_for_gate("check", WAIT)
    waits = InspectorActions(run).actions("draft", 1)
    assert waits["fork"]["why"] == ""
    assert waits["rewind"]["why"] == "The run waits at check: answer, or stop it, then it can be rewound."
    run.cancel()
    run.result(WAIT)
    assert InspectorActions(run).actions("draft", 1)["rewind"]["why"] == ""


def test_while_a_stage_works_all_buttons_are_off(tmp_path):
    why = []

    def answer(node, prompt, context):
        if node.id == "check":
            why.extend(
                each["why"] for each in map(InspectorActions(run).actions("draft", 1).get, ("fork", "rewind", "pin"))
            )
        return "ok"

    held = Pipeline(TEXT, backend=answer)
    run = held.run(logs_root=tmp_path / "run", breakpoints=["check"], params={"tone": "x"})
    run.debugger.wait_for_stop(WAIT)
    run.debugger.continue_()
    run.result(WAIT)
    assert why == [GOES_ON] * 3


def test_a_stage_of_a_branch_and_one_of_a_child_run_say_where_to_go_back(tmp_path):
    text = """digraph { start [shape=Mdiamond] done [shape=Msquare] fan [shape=component] join [shape=tripleoctagon]
      a [prompt=a] b [prompt=b] start -> fan fan -> a fan -> b a -> join b -> join join -> done }"""
    run = Pipeline(text, backend="simulated").run(logs_root=tmp_path / "run")
    run.result(WAIT)
    inspector = InspectorActions(run)
    branch = run.inspect("a").branch
    assert inspector.actions("a", 1, branch)["fork"]["why"].endswith("go back at fan, where its branches begin.")
    assert inspector.actions("fan>inner", 1)["fork"]["why"].endswith("go back at fan.")


def test_a_run_that_is_not_stored_says_so(tmp_path):
    run = Pipeline(TEXT, backend="simulated").run(durability="none", params={"tone": "x"})
    run.result(WAIT)
    assert "nothing of run" in InspectorActions(run).actions("draft", 1)["fork"]["why"]


def test_secrets_are_neither_in_the_prompt_nor_in_a_problem(tmp_path):
    secret = "planted-3c5a7e9b1d2f4680"
    run = Pipeline(TEXT.replace("Draft $goal", f"Draft {secret}"), backend="simulated").run(
        logs_root=tmp_path / "run", secrets=[secret], params={"tone": "x"}
    )
    run.result(WAIT)
    inspector = InspectorActions(run)
    shown = inspector.actions("draft", 1)
    assert secret not in str(shown)
    asked = {"call": "fork", "node": "draft", "visit": 1}
    problem = inspector.answer({**asked, "prompt": f"{shown['prompt']} in one line"})["problem"]
    assert "[redacted] in place of its secret" in problem
    assert '.fork("draft", prompt=…)' in problem
    assert "said" in inspector.answer({**asked, "prompt": "Draft it without"})
    assert "said" in inspector.answer(asked), "as it is: the fork has the secret itself"


def test_a_loaded_run_has_the_same(run):
    loaded = Run.load(run.logs_root, run.pipeline)
    assert InspectorActions(loaded).answer({"call": "fork", "node": "draft", "visit": 1})["said"]


def test_nonsense_is_refused_in_words(inspector):
    assert "unknown inspector action 'dance'" in inspector.answer({"call": "dance", "node": "draft"})["problem"]
    assert inspector.answer({"call": "look", "node": "nowhere"})["actions"]["fork"]["why"]


def test_a_running_stage_is_told_by_a_click_and_the_answer_has_the_call(tmp_path):
    reached, free = threading.Event(), threading.Event()

    def answer(node, prompt, context):
        reached.set()
        assert free.wait(WAIT)
        return "done"

    run = Pipeline(TEXT, backend=answer).run(logs_root=tmp_path / "run", params={"tone": "mild"}, trust=True)
    assert reached.wait(WAIT)
    assert [answer_inspection(run, {"node": node})["can_be_told"] for node in ("draft", "check", "count")] == [
        True,
        True,
        False,
    ]
    inspector, request = (
        InspectorActions(run),
        {"call": "tell", "node": "draft", "visit": 1, "text": 'Say "no"', "key": "k"},
    )
    first, again = inspector.answer(request), inspector.answer(request)
    assert first is again
    assert (first["call"], first["said"]["words"]) == ("tell", "queued for the next attempt of draft")
    assert first["said"]["call"].endswith('.tell("draft", "Say \\"no\\"")')
    assert inspector.answer({**request, "key": "", "text": " "})["problem"].startswith("the instruction is empty")
    assert "count asks no model" in inspector.answer({**request, "key": "", "node": "count"})["problem"]
    free.set()
    run.result(WAIT)
    assert answer_inspection(run, {"node": "draft"})["can_be_told"] is False
    assert "has ended" in inspector.answer({**request, "key": ""})["problem"]
    [line] = run.inspect("draft").messages
    assert (line.text, line.given_by) == ('Say "no"', "inspector")


FAN = """digraph d { start [shape=Mdiamond] done [shape=Msquare]
  fan [shape=component error_policy=fail_fast] a [prompt=x] b [prompt=x] join [shape=tripleoctagon]
  start -> fan  fan -> a -> join  fan -> b -> join  join -> done }"""


def test_the_failed_stage_of_a_branch_is_rerun_from_its_fan_out(tmp_path):
    fails = [True]

    def answer(node, prompt, context):
        if node.id == "b" and fails:
            raise ValueError("bad")
        return "fine"

    run = Pipeline(FAN, backend=answer).run(logs_root=tmp_path / "run")
    run.result(WAIT)
    inspector = InspectorActions(run)
    found = inspector.actions("b", 1, "fan/b")
    assert (found["at"], found["prompt"]) == ("fan", None)
    assert (found["fork"]["why"], found["rewind"]["why"]) == ("", "")
    assert found["rewind"]["call"].endswith('.rewind("fan")')
    assert "at" not in inspector.actions("a", 1, "fan/a"), "it has not failed"
    fails.clear()
    acted = inspector.answer({"call": "rewind", "node": "b", "visit": 1, "branch": "fan/b"})
    assert acted["said"]["words"] == "Rewound to before fan: the run is resumed."
    assert inspector.run.result(WAIT).status == "success"


def rows_in(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_last_answer_is_saved_as_the_row_of_the_run_and_once(inspector, run, tmp_path):
    save = inspector.actions("check", 1)["save"]
    assert save["file"] == "rows.jsonl"
    first = inspector.answer({"call": "save", "node": "check", "visit": 1})["said"]
    assert first["words"] == (f'Saved as row 1 of {tmp_path / "rows.jsonl"}. "expected" is what came out: check it.')
    assert rows_in(tmp_path / "rows.jsonl") == [{"id": run.id, "tone": "mild", "expected": "check 2"}]
    again = inspector.answer({"call": "save", "node": "check", "visit": 1})["said"]["words"]
    assert again == f"{tmp_path / 'rows.jsonl'} has the row {run.id} already; nothing was written."
    assert len(rows_in(tmp_path / "rows.jsonl")) == 1


@pytest.mark.parametrize(("node", "expected"), [("draft", "draft 1"), ("count", "3\n")])
def test_the_answer_of_a_stage_has_a_file_of_its_own(inspector, run, tmp_path, node, expected):
    assert inspector.actions(node, 1)["save"]["file"] == f"rows-{node}.jsonl"
    inspector.answer({"call": "save", "node": node})
    assert rows_in(tmp_path / f"rows-{node}.jsonl") == [{"id": run.id, "tone": "mild", "expected": expected}]


def test_the_call_that_is_shown_saves_the_same(inspector, tmp_path):
    call = inspector.actions("draft", 1)["save"]["call"]
    assert call.splitlines()[-1] == 'save_rows(run, "rows-draft.jsonl", stage="draft")'
    exec(call, {"Run": Run})
    assert len(rows_in(tmp_path / "rows-draft.jsonl")) == 1
    assert "already" in inspector.answer({"call": "save", "node": "draft"})["said"]["words"]


def test_an_earlier_visit_is_saved_with_its_own_answer(inspector, run, tmp_path):
    again = run.fork("draft")
    again.result(WAIT)
    inspector = InspectorActions(again)
    inspector.answer({"call": "save", "node": "draft", "visit": 1})
    (row,) = rows_in(tmp_path / "rows-draft.jsonl")
    assert (row["id"], row["expected"]) == (again.id, "draft 3")


def test_what_has_no_answer_cannot_be_saved(inspector, tmp_path):
    for node in ("start", "done"):
        assert "save" not in inspector.actions(node, 1)
    assert list(tmp_path.glob("rows*")) == []


def test_a_run_that_failed_is_a_row_without_an_expected_answer(tmp_path):
    run = Pipeline(TEXT, backend=lambda node, prompt, context: Outcome.fail("no")).run(params={"tone": "mild"})
    run.result(WAIT)
    said = InspectorActions(run).answer({"call": "save", "node": "draft"})["said"]["words"]
    assert 'write "expected" yourself' in said
    assert rows_in(tmp_path / "rows.jsonl") == [{"id": run.id, "tone": "mild"}]


def test_a_run_that_has_not_ended_is_not_saved(tmp_path):
    started, go_on = threading.Event(), threading.Event()

    def answer(prompt):
        started.set()
        go_on.wait(WAIT)
        return "x"

    run = Pipeline(TEXT, backend=answer).run(params={"tone": "mild"})
    assert started.wait(WAIT)
    inspector = InspectorActions(run)
    is_offered = "save" in inspector.actions("draft", 1)
    problem = inspector.answer({"call": "save", "node": "draft"})["problem"]
    go_on.set()
    run.result(WAIT)
    assert not is_offered
    assert GOES_ON in problem
    assert list(tmp_path.glob("rows*")) == []


def test_a_file_that_holds_something_else_stays_as_it_is(inspector, tmp_path):
    place = tmp_path / "rows.jsonl"
    place.write_text("not a row\n")
    problem = inspector.answer({"call": "save", "node": "check"})["problem"]
    assert "rows.jsonl" in problem
    assert place.read_text() == "not a row\n"
    place.unlink()
    place.mkdir()
    assert "cannot be read: it is a directory" in inspector.answer({"call": "save", "node": "check"})["problem"]


def test_a_last_line_without_an_end_stays_a_line_of_its_own(inspector, tmp_path):
    place = tmp_path / "rows.jsonl"
    place.write_text('{"id": "mine", "tone": "x"}')
    inspector.answer({"call": "save", "node": "check"})
    assert [row["id"] for row in rows_in(place)] == ["mine", inspector.run.id]


def test_a_saved_stage_is_a_row_of_an_evaluation_of_it(inspector, run, tmp_path):
    inspector.answer({"call": "save", "node": "draft"})
    evaluation = run.pipeline.evaluate(
        tmp_path / "rows-draft.jsonl", scorers=equals(), runs=run, only="draft", wait=True
    )
    assert evaluation[0].row.expected == "draft 1"
    assert evaluation.scores["equals"].estimate.value == 0.0, "the model counts its calls"


def test_of_a_source_that_is_no_dot_no_prompt_is_known_as_written():
    assert run_actions._written_prompts("no graph") == {}
