"""The debugger of a run: stops, steps, changes by hand, what the log, a resume and a rewind make of them."""

from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace

import pytest

from attractor_nb import Outcome, Pipeline, Run
from attractor_nb.engine.debug_control import DebugSession
from attractor_nb.errors import ContextValueError, OptionError, RunAtBreakpoint, RunError
from attractor_nb.model.events import DebuggerChanged, DebuggerMoved, DebuggerStopped, RunWarning, StageCompleted
from attractor_nb.runtime.handles import handle
from attractor_nb.testing import ManualClock

WAIT = 30
CHAIN = "start -> plan -> review -> done"
FAN = """fan [shape=component]; join [shape=tripleoctagon]; a; a2; b
  start -> fan fan -> a fan -> b a -> a2 a2 -> join b -> join join -> done"""


@pytest.fixture
def debug(make):
    """Starts a run with breakpoints; it is ended when the test is."""
    runs = []

    def start(body, *breakpoints, replies=None, durability="fast", **options):
        run = make(body, replies).run(breakpoints=list(breakpoints), durability=durability, **options)
        runs.append(run)
        return run

    yield start
    for run in runs:
        run.cancel()
        if not run.is_done:
            run.result(WAIT)


def changes(run):
    """The changes by hand that the log holds."""
    return [event for event in run.journal().events if isinstance(event, DebuggerChanged)]


# -- stops and steps -------------------------------------------------------------------------------


def test_a_run_stands_before_a_stage_until_it_is_told_to_go_on(debug):
    run = debug(CHAIN, "plan", "plan->review")
    stop = run.debugger.wait_for_stop(WAIT)
    assert (stop.node, stop.moment, stop.edge, stop.breakpoint) == ("plan", "before", "start->plan", "plan")
    assert (run.status, "stopped before `plan`" in str(run)) == ("waiting", True)
    run.debugger.continue_()
    assert str(run.debugger.wait_for_stop(WAIT)).endswith("entered by `plan->review`; by plan->review")
    run.debugger.continue_()
    assert run.debugger.wait_for_stop(WAIT) is None
    assert run.result(WAIT).status == "success"
    stops = [event.node for event in run.journal().events if isinstance(event, DebuggerStopped)]
    assert stops == ["plan", "review"]


def test_steps_go_from_stage_to_stage(debug):
    run = debug(CHAIN, "start")
    seen = []
    while (stop := run.debugger.wait_for_stop(WAIT)) is not None:
        seen.append((stop.node, stop.breakpoint))
        run.debugger.step()
    assert seen == [("start", "start"), ("plan", "step"), ("review", "step"), ("done", "step")]


def test_breakpoints_are_set_and_cleared_while_the_run_goes_on(debug):
    run = debug(CHAIN, "plan")
    run.debugger.wait_for_stop(WAIT)
    run.debugger.break_at("review", "done").clear("done", "plan")
    assert run.debugger.breakpoints == ("review",)
    with pytest.raises(OptionError, match="there is no breakpoint done"):
        run.debugger.clear("done")
    with pytest.raises(OptionError, match="no node 'nobody'"):
        run.debugger.break_at("done", "nobody")
    assert run.debugger.breakpoints == ("review",), "one of them is none: none is set"
    run.debugger.continue_()
    assert run.debugger.wait_for_stop(WAIT).node == "review"
    assert run.debugger.clear().breakpoints == ()


def test_a_run_that_began_without_breakpoints_is_paused(make):
    reached, free = threading.Event(), threading.Event()

    def slow(prompt):
        reached.set()
        assert free.wait(WAIT)
        return "done"

    run = make(CHAIN).run(backend=slow, durability="none")
    assert reached.wait(WAIT)
    run.debugger.pause()
    assert str(run.debugger) == "pauses at the next stage"
    free.set()
    stop = run.debugger.wait_for_stop(WAIT)
    assert (stop.node, stop.breakpoint) == ("review", "pause")
    run.debugger.continue_()
    assert run.result(WAIT).status == "success"


def test_a_condition_stops_once_when_it_begins_to_hold(debug):
    run = debug(CHAIN, "context.last_stage=plan")
    assert run.debugger.wait_for_stop(WAIT).node == "review"
    run.debugger.continue_()
    assert run.debugger.wait_for_stop(WAIT) is None


def test_each_branch_stops_by_itself_and_is_stepped_by_itself(debug):
    run = debug(FAN, "a", "b")
    while len(run.debugger.stops) < 2:
        asyncio.run(run.debugger.stopped())
    assert {stop.branch for stop in run.debugger.stops} == {"fan/a", "fan/b"}
    run.debugger.set_context("mine", 1, branch="a")
    assert "mine" in run.debugger.context("a")
    assert "mine" not in run.debugger.context("fan/b")
    run.debugger.step("a")
    while "a2" not in [stop.node for stop in run.debugger.stops]:
        asyncio.run(run.debugger.stopped())
    with pytest.raises(RunError, match="is not stopped in branch c"):
        run.debugger.step("c")
    run.debugger.clear().continue_()
    result = run.result(WAIT)
    updates = {entry["id"]: entry["context_updates"] for entry in result.context.get("parallel.results")}
    assert (updates["a"]["mine"], "mine" in updates["b"]) == (1, False)


def test_a_step_goes_into_branches_and_a_step_over_does_not(debug):
    run = debug(FAN, "fan")
    run.debugger.wait_for_stop(WAIT)
    run.debugger.step_over()
    assert run.debugger.wait_for_stop(WAIT).node == "join"
    run.debugger.continue_()
    again = debug(FAN, "fan")
    again.debugger.wait_for_stop(WAIT)
    again.debugger.step()
    first = again.debugger.wait_for_stop(WAIT)
    assert first.branch in {"fan/a", "fan/b"}
    while (stop := again.debugger.wait_for_stop(WAIT)) is not None and stop.branch:
        again.debugger.step(stop.branch)
    assert stop.node == "join", "a step out of the last branch ends behind the fan-out"
    again.debugger.continue_()
    assert again.result(WAIT).status == "success"


def child_run(make, dot, *breakpoints):
    """A run whose stage ``sub`` has a child run of three stages, and an end."""
    body = "sub [type=pipeline, pipeline.name=worker] start -> sub -> done"
    pipeline = make(body, pipelines={"worker": dot("start -> draft -> polish -> done")})
    return pipeline.run(breakpoints=list(breakpoints), durability="fast")


def test_a_step_goes_over_a_child_run_and_a_breakpoint_stops_in_it(make, dot):
    run = child_run(make, dot, "sub", "sub>polish")
    assert run.debugger.wait_for_stop(WAIT).node == "sub"
    run.debugger.step()
    stop = run.debugger.wait_for_stop(WAIT)
    assert (stop.path, stop.node) == ("sub>", "polish")
    assert "in the child run of `sub`" in str(stop)
    run.debugger.set_context("seen", True, branch="sub>")
    run.debugger.step()
    assert [run.debugger.wait_for_stop(WAIT).path + run.debugger.stop.node] == ["sub>done"]
    run.debugger.step()
    stop = run.debugger.wait_for_stop(WAIT)
    assert (stop.path, stop.node) == ("", "done"), "a step out of the child's end"
    run.debugger.continue_()
    assert run.result(WAIT).status == "success"
    edits = [event.context for event in changes(run.children["sub"])]
    assert edits == [{"seen": True}], "what is changed in a child is in the child's log"


# -- changes ---------------------------------------------------------------------------------------


def test_an_edited_context_is_in_the_log_the_journal_and_the_result(debug, tmp_path):
    run = debug(CHAIN, "review", logs_root=tmp_path / "run")
    run.debugger.wait_for_stop(WAIT)
    run.debugger.set_context("tests", {"passed": 3})
    for value, error in ((float("nan"), ContextValueError), ({1, 2}, ContextValueError)):
        with pytest.raises(error):
            run.debugger.set_context("tests", value)
    with pytest.raises(OptionError, match="engine's own"):
        run.debugger.set_context("outcome", "fail")
    assert run.debugger.context()["tests"] == {"passed": 3}
    run.debugger.continue_()
    assert run.result(WAIT).context.get("tests") == {"passed": 3}
    assert [event.context for event in changes(run)] == [{"tests": {"passed": 3}}]
    journal = Run.load(tmp_path / "run").journal()
    (plan,), (review,) = journal.visits_of("plan"), journal.visits_of("review")
    assert "tests" not in journal.context_after(plan)
    assert journal.context_before(review)["tests"] == {"passed": 3}
    assert Run.load(tmp_path / "run").result().context.get("tests") == {"passed": 3}


def test_a_value_that_is_set_decides_the_way(debug):
    body = 'start -> plan plan -> good [condition="context.ok=true"] plan -> bad good -> done bad -> done'
    run = debug(body, "after:plan")
    run.debugger.wait_for_stop(WAIT)
    run.debugger.set_context("ok", True)
    run.debugger.continue_()
    assert run.result(WAIT).completed_nodes == ("start", "plan", "good", "done")


@pytest.mark.parametrize("way", ["resume", "elsewhere"])
def test_what_was_edited_survives_a_stop_and_a_resume(debug, tmp_path, way):
    run = debug(CHAIN, "review", logs_root=tmp_path / "run")
    run.debugger.wait_for_stop(WAIT)
    run.debugger.set_context("tests", 3)
    run.debugger.pin("review", response="Looks good.")
    run.cancel()
    assert run.result(WAIT).status == "interrupted"
    if way == "resume":
        on = run.resume()
    else:  # another process, as after a restart of the kernel
        kept = Pipeline(tmp_path / "run" / "pipeline.dot", backend="simulated")
        on = kept.resume(run.logs_root)
    result = on.result(WAIT)
    assert (result.context.get("tests"), result["review"].response) == (3, "Looks good.")
    assert "pinned, not executed" in result["review"].outcome.notes
    said = [event.message for event in on.journal().events if isinstance(event, RunWarning)]
    assert said == [
        "the run was stopped before review (review) and continues without stopping; to stop again give breakpoints=[…]"
    ]
    assert on.debugger.pins == {"review": "pinned to success"}


def test_a_resume_with_breakpoints_stops_again(debug, tmp_path):
    run = debug(CHAIN, "review", logs_root=tmp_path / "run")
    run.debugger.wait_for_stop(WAIT)
    run.cancel()
    run.result(WAIT)
    on = run.resume(breakpoints=["review"])
    assert on.debugger.wait_for_stop(WAIT).node == "review"
    on.debugger.continue_()
    assert on.result(WAIT).status == "success"
    assert not [event for event in on.journal().events if isinstance(event, RunWarning)]


def test_a_rewind_takes_back_what_was_changed_behind_it(debug, tmp_path):
    run = debug(CHAIN, "review", logs_root=tmp_path / "run")
    run.debugger.wait_for_stop(WAIT)
    run.debugger.set_context("tests", 3)
    run.debugger.pin("plan", response="Pinned.")
    run.debugger.continue_()
    run.result(WAIT)
    back = run.rewind("plan")
    result = back.result(WAIT)
    assert result.context.get("tests") is None
    assert back.debugger.pins == {}


def test_an_outcome_is_set_before_an_edge_is_chosen(debug):
    body = 'start -> plan plan -> good [condition="outcome=success"] plan -> bad [condition="outcome=fail"]'
    run = debug(f"{body} good -> done bad -> done", "on:error", replies={"plan": Outcome.fail("no idea")})
    stop = run.debugger.wait_for_stop(WAIT)
    assert "after `plan`: failed (no idea), no edge is chosen yet" in str(stop)
    with pytest.raises(OptionError, match="is not a status"):
        run.debugger.set_outcome("perhaps")
    run.debugger.set_outcome("success", notes="I looked.", context_updates={"by": "hand"})
    run.debugger.continue_()
    result = run.result(WAIT)
    assert result.completed_nodes == ("start", "plan", "good", "done")
    assert (result["plan"].outcome.notes, result.context.get("by")) == ("I looked.", "hand")
    assert json.loads(result["plan"].files("status.json"))["outcome"] == "success"
    (change,) = changes(run)
    assert (change.change, change.before, change.outcome.status) == ("outcome", "fail no idea", "success")


def test_an_outcome_cannot_be_set_before_a_stage(debug):
    run = debug(CHAIN, "plan")
    run.debugger.wait_for_stop(WAIT)
    with pytest.raises(RunError, match="stopped before a stage") as refused:
        run.debugger.set_outcome("success")
    assert 'stop there with "after:plan"' in refused.value.hint


def test_a_failure_set_by_hand_is_not_tried_again_and_a_retry_is(debug):
    body = f"plan [max_retries=2] {CHAIN}"
    run = debug(body, "after:plan")
    run.debugger.wait_for_stop(WAIT)
    run.debugger.set_outcome("retry", "once more")
    run.debugger.continue_()
    assert run.debugger.wait_for_stop(WAIT).node == "plan"
    run.debugger.set_outcome("fail", "enough")
    run.debugger.continue_()
    assert run.result(WAIT).status == "fail"
    attempts = run.journal().visits_of("plan")[0].attempts
    assert [attempt.ended.outcome.failure_reason for attempt in attempts] == ["once more", "enough"]


def test_a_prompt_is_another_for_this_run_only(debug, make):
    run = debug(f'review [prompt="Look at it"] {CHAIN}', "plan")
    run.debugger.wait_for_stop(WAIT)
    before = run.pipeline.to_dot()
    run.debugger.set_prompt("review", "Look twice. Be strict.")
    for node, words in (("start", "has no prompt"), ("nobody", "no node 'nobody'")):
        with pytest.raises(OptionError, match=words):
            run.debugger.set_prompt(node, "x")
    with pytest.raises(OptionError, match="a prompt must be text"):
        run.debugger.set_prompt("review", " ")
    run.debugger.clear().continue_()
    result = run.result(WAIT)
    assert result["review"].prompt.endswith("Look twice. Be strict.")
    assert (run.pipeline.to_dot(), run.graph.nodes["review"].prompt) == (before, "Look at it")


def test_a_prompt_carries_a_value_that_was_set_at_its_stop(debug):
    run = debug(f"review [fidelity=compact] {CHAIN}", "review")
    run.debugger.wait_for_stop(WAIT)
    run.debugger.set_context("weather", "rain since noon")
    run.debugger.continue_()
    assert "rain since noon" in run.result(WAIT)["review"].prompt


def test_a_pinned_node_is_not_executed(debug):
    run = debug(CHAIN, "plan", replies={"review": Outcome.fail("it was executed")})
    run.debugger.wait_for_stop(WAIT)
    run.debugger.pin("review", "partial_success")
    with pytest.raises(RunError, match="has no outcome yet"):
        run.debugger.pin("plan")
    with pytest.raises(OptionError, match="can be neither pinned nor mocked"):
        run.debugger.pin("done")
    run.debugger.continue_()
    result = run.result(WAIT)
    assert result.outcomes["review"].status == "partial_success"


def test_a_node_is_pinned_to_what_it_came_to_and_unpinned(debug):
    body = 'start -> plan -> review review -> plan [condition="context.again=true"] review -> done'
    run = debug(body, "review", replies={"plan": ["first", "second", "third"]})
    run.debugger.wait_for_stop(WAIT)
    run.debugger.pin("plan")
    run.debugger.set_context("again", True)
    run.debugger.continue_()
    run.debugger.wait_for_stop(WAIT)
    assert run["plan"].response == "first", "the second visit came to what the first had come to"
    assert run.debugger.context()["plan.response"] == "first"
    run.debugger.unpin("plan")
    with pytest.raises(OptionError, match="neither pinned nor mocked"):
        run.debugger.unpin("plan")
    run.debugger.continue_()
    run.debugger.wait_for_stop(WAIT)
    assert run["plan"].response == "second"
    run.debugger.set_context("again", False)
    run.debugger.continue_()
    assert run.result(WAIT).status == "success"


def test_a_mock_executes_a_node_in_its_place(debug):
    run = debug(f'check [shape=parallelogram, tool_command="false"] {CHAIN} plan -> check -> done', "start")
    run.debugger.wait_for_stop(WAIT)
    run.debugger.mock("plan", "mocked text")
    run.debugger.mock("review", lambda node, prompt, context: f"for {node.id}")
    run.debugger.mock("check", lambda node, context, graph, logs_root: Outcome.success("mocked tool"))
    for answer, words in (("text", "a mock must be a function"), (3, "a mock must be a function")):
        with pytest.raises(OptionError, match=words):
            run.debugger.mock("check", answer)
    assert "plan: mocked" in str(run.debugger)
    run.debugger.clear().continue_()
    result = run.result(WAIT)
    assert result["plan"].response == "mocked text"
    assert [event.change for event in changes(run)] == ["mock", "mock", "mock"]


def test_a_stage_is_run_again_on_its_input_and_the_run_stays_as_it_is(debug, tmp_path):
    run = debug(CHAIN, logs_root=tmp_path / "run", replies={"plan": ["one", "two"]})
    run.result(WAIT)
    log = (tmp_path / "run" / "events.jsonl").read_bytes()
    again = Run.load(tmp_path / "run", run.pipeline).debugger.rerun("plan")
    assert (again.outcome.status, again.response_before, again.response) == ("success", "one", "two")
    assert (again.is_same, "+two" in again.diff, "-one" in str(again)) == (False, True, True)
    assert (tmp_path / "run" / "events.jsonl").read_bytes() == log
    assert again.run.logs_root != run.logs_root
    with pytest.raises(OptionError, match="a rerun executes one stage"):
        run.debugger.rerun("plan", stop_after=2)
    with pytest.raises((OptionError, RunError), match="nobody"):
        run.debugger.rerun("nobody")


def test_a_pinned_stage_is_not_run_again_and_another_visit_is_named(debug, tmp_path):
    run = debug(CHAIN, logs_root=tmp_path / "run", pins={"plan": "by hand"})
    assert run.result(WAIT)["plan"].response == "by hand"
    with pytest.raises(RunError, match="plan was pinned in visit 1: nothing was executed") as refused:
        run.debugger.rerun("plan")
    assert refused.value.hint == 'another visit: rerun("plan", visit=…)'


def test_a_rerun_that_does_not_come_to_an_outcome_says_why(debug, tmp_path):
    run = debug(CHAIN, logs_root=tmp_path / "run")
    run.result(WAIT)
    with pytest.raises(RunError, match=r"review was not brought to an end: .*max_steps"):
        run.debugger.rerun("review", max_steps=1)


# -- waiting, time, ends ---------------------------------------------------------------------------


def test_a_call_that_waits_for_the_end_says_that_the_run_stands(debug, monkeypatch):
    monkeypatch.setattr(handle, "PAUSE_SECONDS", 0.0)
    run = debug(CHAIN, "plan")
    run.debugger.wait_for_stop(WAIT)
    with pytest.raises(RunAtBreakpoint, match="stopped before `plan`") as refused:
        run.result(WAIT)
    assert "run.debugger.continue_()" in refused.value.hint

    async def waits():
        await run

    with pytest.raises(RunAtBreakpoint):
        asyncio.run(waits())
    run.debugger.continue_()
    assert run.result(WAIT).status == "success"


@pytest.mark.parametrize(
    "call",
    [
        lambda pipeline, **given: pipeline.run(wait=True, **given),
        lambda pipeline, **given: asyncio.run(pipeline.run_async(**given)),
        lambda pipeline, **given: pipeline.step(**given),
    ],
    ids=["wait", "run_async", "step"],
)
def test_a_call_that_nobody_could_continue_refuses_breakpoints_at_once(make, call, tmp_path):
    with pytest.raises(OptionError, match="the run could not be continued"):
        call(make(CHAIN), breakpoints=["plan"])
    assert not list(tmp_path.rglob("events.jsonl")), "and nothing was made for it"


def test_options_that_are_no_breakpoints_are_refused_before_anything_is_made(make, tmp_path):
    for given in ("plan", ["nobody"], [3], {"plan": 1}.items()):
        with pytest.raises(OptionError):
            make(CHAIN).run(breakpoints=given)
    with pytest.raises(OptionError, match="a row can be debugged as a run of its own"):
        make(CHAIN).map([{}], breakpoints=["plan"])
    assert not list(tmp_path.rglob("events.jsonl"))


def test_the_time_bound_does_not_run_while_the_run_stands(make):
    clock = ManualClock()
    run = make(CHAIN).run(breakpoints=["review"], max_duration="10s", clock=clock, durability="none")
    run.debugger.wait_for_stop(WAIT)
    clock.advance(3600)
    run.debugger.continue_()
    result = run.result(WAIT)
    assert (result.status, result.duration < 10) == ("success", True)


def test_a_loaded_run_and_one_that_has_ended_say_so(debug, tmp_path):
    run = debug(CHAIN, logs_root=tmp_path / "run")
    run.result(WAIT)
    with pytest.raises(RunError, match="the run has ended"):
        run.debugger.pause()
    with pytest.raises(RunError, match="the run has ended"):
        run.debugger.set_context("x", 1)
    loaded = Run.load(tmp_path / "run").debugger
    assert (loaded.stop, loaded.breakpoints, loaded.pins) == (None, (), {})
    with pytest.raises(RunError, match="was loaded") as refused:
        loaded.break_at("plan")
    assert "run.resume(breakpoints=[…])" in refused.value.hint


@pytest.fixture
def ended(make, tmp_path):
    """A run that has ended, whose stages say how often they were asked, and what they were asked."""
    asked = []

    def answer(node, prompt, context):
        asked.append(node.id)
        return f"{node.id} {asked.count(node.id)}"

    run = make(CHAIN, backend=answer).run(logs_root=tmp_path / "run", durability="fast")
    run.result(WAIT)
    del asked[:]
    return run, asked


GOING_ON = {
    "fork": lambda run, tmp_path: run.fork("plan", logs_root=tmp_path / "fork"),
    "rewind": lambda run, tmp_path: run.rewind("plan"),
    "loaded": lambda run, tmp_path: run.fork("plan", logs_root=tmp_path / "fork"),
}


@pytest.mark.parametrize("how", GOING_ON)
def test_an_answer_pinned_after_the_end_is_kept_for_what_goes_on_from_there(ended, how, tmp_path):
    run, asked = ended
    run = Run.load(run.logs_root, run.pipeline) if how == "loaded" else run
    run.debugger.pin("plan")
    assert run.debugger.pins == {"plan": "pinned to success"}
    again = GOING_ON[how](run, tmp_path)
    assert again.result(WAIT)["plan"].response == "plan 1"
    assert "plan" not in asked
    assert [event.node for event in changes(again)] == ["plan"], "its log has it, so a resume has it, too"


def test_a_pin_after_the_end_can_be_taken_away_and_a_rerun_executes_all_the_same(ended, tmp_path):
    run, asked = ended
    run.debugger.pin("plan")
    assert run.debugger.rerun("plan", logs_root=tmp_path / "rerun").response == "plan 1"
    assert asked == ["plan"]
    run.debugger.unpin("plan")
    assert run.fork("plan", logs_root=tmp_path / "fork").result(WAIT)["plan"].response == "plan 2"


def test_the_answer_of_an_earlier_visit_is_pinned_by_its_number(ended, tmp_path):
    run, _ = ended
    again = run.rewind("plan")
    assert again.result(WAIT)["plan"].response == "plan 1"  # asked anew after the fixture forgot
    again.debugger.pin("plan", visit=1)
    with pytest.raises(RunError, match="plan has no outcome in visit 7") as refused:
        again.debugger.pin("plan", visit=7)
    assert refused.value.hint == "visits that ended: 1, 2"
    with pytest.raises(OptionError, match="visit 1 and an outcome or response of plan exclude each other"):
        again.debugger.pin("plan", "success", visit=1)


def test_a_new_run_takes_pins_of_texts_outcomes_and_runs(ended, tmp_path):
    run, asked = ended
    pins = {"plan": run, "review": "Looks good."}
    result = run.pipeline.run(pins=pins, logs_root=tmp_path / "next").result(WAIT)
    assert (result["plan"].response, result["review"].response) == ("plan 1", "Looks good.")
    assert asked == []
    failed = run.pipeline.run(pins={"plan": Outcome.fail("no")}, logs_root=tmp_path / "failed").result(WAIT)
    assert failed["plan"].outcome.failure_reason == "no"


@pytest.mark.parametrize(
    ("pins", "words"),
    [
        ({"plann": "x"}, "the pipeline has no node 'plann'; did you mean"),
        ({"start": "x"}, "start is of type start and can be neither pinned"),
        ({"plan": 3}, "plan is pinned to the text of a response, an Outcome or a run, not int"),
    ],
)
def test_a_pin_that_is_none_is_refused_before_anything_is_made(ended, pins, words, tmp_path):
    run, _ = ended
    for call in (
        lambda: run.pipeline.run(pins=pins, logs_root=tmp_path / "new"),
        lambda: run.fork("plan", pins=pins, logs_root=tmp_path / "new"),
    ):
        with pytest.raises(OptionError, match=words):
            call()
    assert not (tmp_path / "new").exists()


def test_nothing_can_be_changed_where_nothing_stands(debug):
    run = debug(CHAIN, "plan")
    run.debugger.wait_for_stop(WAIT)
    run.debugger.break_at("review").continue_()
    stop = run.debugger.wait_for_stop(WAIT)
    assert stop.node == "review"
    run.debugger.clear().continue_()
    run.result(WAIT)
    for call in (run.debugger.step, run.debugger.continue_):
        with pytest.raises(RunError):
            call()


def test_pins_hold_over_a_restart_of_the_loop(make, tmp_path):
    body = """start -> plan -> review review -> done [condition="context.tries=2"]
      review -> plan [condition="context.tries!=2", loop_restart=true]"""
    run = make(body, {"review": Outcome.success(context_updates={"tries": 1})}).run(
        breakpoints=["plan"], logs_root=tmp_path / "run", durability="fast"
    )
    run.debugger.wait_for_stop(WAIT)
    run.debugger.pin("plan", response="Pinned.")
    run.debugger.continue_()
    run.debugger.wait_for_stop(WAIT)
    run.debugger.pin("review", Outcome.success(context_updates={"tries": 2}))
    run.debugger.clear().continue_()
    result = run.result(WAIT)
    assert (result.status, result["plan"].response) == ("success", "Pinned.")
    assert result.logs_root != tmp_path / "run"
    assert [event.node for event in changes(run)] == ["plan", "review"], "the new log has both"


def test_what_is_changed_before_the_run_has_begun_comes_after_its_first_record(make, tmp_path):
    run = make(CHAIN).run(logs_root=tmp_path / "run", durability="fast", breakpoints=["start"])
    run.debugger.pin("review", response="x")
    run.debugger.continue_() if run.debugger.wait_for_stop(WAIT) else None
    run.result(WAIT)
    kinds = [event.type for event in run.journal().events]
    assert kinds[0] == "PipelineStarted"
    assert "DebuggerChanged" in kinds


def test_views_hear_of_stops_and_of_going_on(debug):
    run = debug(CHAIN, "start")
    run.debugger.wait_for_stop(WAIT)
    heard, done = [], threading.Event()

    def hear(event):
        heard.append(type(event))
        if isinstance(event, StageCompleted):
            done.set()

    run.on_event(hear)
    assert run.debugger.to_plain()["stops"][0]["words"] == "before `start`"
    run.debugger.continue_()
    assert done.wait(WAIT)
    assert DebuggerMoved in heard
    run.result(WAIT)
    assert run.debugger.to_plain()["is_over"]


def test_a_run_that_nobody_debugs_asks_nobody(make):
    run = make(CHAIN).run(durability="none")
    assert run.result(WAIT).status == "success"
    assert not run._debugging.is_active


def test_secrets_that_are_set_by_hand_are_not_in_the_log(debug, tmp_path):
    secret = "sk-" + "proj-" + "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
    run = debug(CHAIN, "plan", logs_root=tmp_path / "run")
    run.debugger.wait_for_stop(WAIT)
    run.debugger.set_context("key", secret)
    run.debugger.set_prompt("review", f"Use {secret}")
    run.debugger.pin("plan", response=f"It is {secret}")
    run.debugger.continue_()
    run.result(WAIT)
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_what_a_node_is_pinned_to_or_mocked_by_is_text(debug):
    run = debug(CHAIN, "plan")
    run.debugger.wait_for_stop(WAIT)
    with pytest.raises(OptionError, match="a response must be text, not a int"):
        run.debugger.pin("review", response=5)
    with pytest.raises(
        OptionError, match="node review asks a model: a mock must be text or a function, not a int"
    ) as told:
        run.debugger.mock("review", 5)
    assert "pin(node, outcome)" in told.value.hint
    assert "mocked" not in str(run.debugger)
    run.debugger.clear().continue_()
    assert run.result(WAIT)["review"].response != "5"


def test_nothing_that_stands_still_within_the_time_is_a_timeout_and_the_run_goes_on(make):
    free = threading.Event()
    run = make(CHAIN, backend=lambda prompt: str(free.wait(WAIT))).run(durability="none", is_shown=False)
    with pytest.raises(TimeoutError, match=r"the run did not stop within 0.01 s; it is still running"):
        run.debugger.wait_for_stop(0.01)
    free.set()
    assert run.result(WAIT).status == "success"


def test_a_change_where_the_run_does_not_stand_any_more_changes_nothing():
    session = DebugSession(Pipeline("digraph { start [shape=Mdiamond] }").graph)
    loop = SimpleNamespace(call_soon_threadsafe=lambda work: work())
    gone = SimpleNamespace(stop=SimpleNamespace(number=1, node="plan"), loop=loop)
    changed = []
    with pytest.raises(RunError, match="the run is no longer paused at plan; nothing was changed"):
        session.change(gone, lambda: changed.append(True))
    assert changed == []


def test_a_wait_in_the_loop_that_runs_the_run_is_refused_with_the_call_that_waits(make):
    async def waits():
        run = make(CHAIN).run(breakpoints=["plan"], durability="none", is_shown=False, host="kernel")
        with pytest.raises(RunError, match="waiting here would stop it") as told:
            run.debugger.wait_for_stop(WAIT)
        assert told.value.hint == "use `await run.debugger.stopped()`"
        assert (await run.debugger.stopped()).node == "plan"
        run.debugger.continue_()
        assert (await run).status == "success"

    asyncio.run(waits())


def test_an_answer_to_a_stop_that_is_not_there_says_where_the_run_stands(debug):
    run = debug(CHAIN, "review")
    run.debugger.wait_for_stop(WAIT)
    with pytest.raises(RunError, match="the run is not stopped in branch b") as refused:
        run.debugger.continue_("b")
    assert "before `review`" in refused.value.hint
    with pytest.raises(RunError, match="stopped before a stage, and an outcome can be set after one") as refused:
        run.debugger.set_outcome("success")
    assert '"after:review"' in refused.value.hint
    assert run.debugger.stop.node == "review"


def test_a_step_of_a_run_that_is_under_way_says_how_it_is_stopped(make):
    has_begun, free = threading.Event(), threading.Event()

    def answer(prompt):
        has_begun.set()
        return str(free.wait(WAIT))

    run = make(CHAIN, backend=answer).run(durability="none", is_shown=False)
    try:
        assert has_begun.wait(WAIT)
        with pytest.raises(RunError, match="the run is not stopped anywhere") as refused:
            run.debugger.step()
        assert refused.value.hint == "pause() stops it at its next stage, break_at(…) at others"
    finally:
        free.set()
    assert run.result(WAIT).status == "success"
