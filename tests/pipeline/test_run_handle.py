"""``Run`` and ``RunResult``: waiting, looking, answering, on every host; loading what was stored."""

import asyncio
import re
import threading

import pytest

from attractor_nb import (
    Context,
    Outcome,
    Pipeline,
    Run,
    RunResult,
    StageStatus,
    load_checkpoint,
    load_pipeline,
    run_pipeline,
    runs,
)
from attractor_nb.errors import NoSuchGate, NoSuchKey, OptionError, RunError, RunNotFound, ValidationError
from attractor_nb.model.calls.call_content import INPUTS_FILE
from attractor_nb.model.events import StageCompleted
from attractor_nb.runtime.handles.presenters import are_runs_shown, register_presenter
from attractor_nb.runtime.stored_execution import load_execution

GATE = 'g [shape=hexagon] start -> g g -> done [label="[Y] Yes"]'


def test_a_run_returns_at_once_and_its_result_can_be_waited_for(make):
    go = threading.Event()
    run = make("a start -> a -> done", backend=lambda prompt: str(go.wait(60))).run(durability="none")
    assert (run.status, run.is_done) == ("running", False)
    with pytest.raises(TimeoutError, match="it is still running"):
        run.result(0.01)
    go.set()
    assert run.result(60) is run.result(60)
    assert (run.status, run.is_done) == ("completed", True)


def test_a_waiting_run_says_so_and_shows_its_gate(make):
    run = make(GATE, interviewer="deferred").run(durability="none")
    gate = run.wait_for_gate(timeout=60)
    assert (run.status, gate.stage, gate.question.options[0].key) == ("waiting", "g", "Y")
    assert "gate `g` waits for an answer" in str(run)
    assert run.answer("g", "Y").id == gate.id
    assert run.result(60).status == "success"


def test_waiting_for_a_gate_ends_with_the_run(make):
    run = make("start -> done").run(durability="none")
    with pytest.raises(NoSuchGate, match="was not reached"):
        run.wait_for_gate("g", timeout=60)


@pytest.mark.parametrize("host", ["thread", "kernel"])
def test_a_run_is_awaited_on_either_host(make, host):
    async def main():
        return await make("a start -> a -> done").run(durability="none", host=host)

    assert asyncio.run(main()).status == "success"


def test_run_async_runs_in_the_loop_of_its_caller(make):
    loops = []

    async def answer(prompt):
        loops.append(asyncio.get_running_loop())
        return "done"

    async def main():
        result = await make("a start -> a -> done", backend=answer).run_async(durability="none")
        return result, asyncio.get_running_loop()

    result, loop = asyncio.run(main())
    assert result.status == "success"
    assert loops == [loop]


def test_many_runs_at_the_same_time_in_threads(make):
    pipeline, statuses = make("a b start -> a -> b -> done"), []

    def go():
        statuses.append(pipeline.run(wait=True, durability="fast").status)

    threads = [threading.Thread(target=go) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert statuses == ["success"] * 6
    assert len(runs()) == 6


def test_a_blocking_run_inside_a_running_loop_does_not_deadlock(make):
    async def main():
        return make("start -> done").run(wait=True, durability="none").status

    assert asyncio.run(main()) == "success"


def test_a_result_shows_stages_and_the_run(make):
    result = make('a [prompt="Do it"] start -> a -> done', {"a": "the response"}).run(wait=True)
    assert isinstance(result, RunResult)
    assert result.is_success
    stage = result["a"]
    assert (stage.prompt, stage.response, stage.visits) == ("Do it", "the response", 1)
    assert stage.outcome.status is StageStatus.SUCCESS
    assert '"outcome": "success"' in stage.files("status.json")
    assert "the response" in str(stage)
    assert result.to_svg().startswith("<svg")
    assert result._repr_mimebundle_()["text/plain"] == str(result)


def test_an_unknown_stage_suggests_the_nearest(make):
    result = make("plan start -> plan -> done").run(wait=True, durability="none")
    with pytest.raises(OptionError, match="no node 'plam'; did you mean \"plan\"") as caught:
        result["plam"]
    assert caught.value.hint == "nodes: start, done, plan"


def test_the_table_of_each_view_is_shown_as_a_table(make):
    pipeline = make("plan start -> plan -> done")
    run = pipeline.run()
    run.result()
    for shown in (run.heat(), run.timeline(), run.explain(), pipeline.estimate(), pipeline.models()):
        bundle = shown.table._repr_mimebundle_()
        assert "<table" in bundle["text/html"]
        assert bundle["text/plain"] == repr(shown.table) == str(shown)


def test_a_lookup_that_finds_nothing_is_a_key_error_that_says_what_there_is(make):
    pipeline = make("plan start -> plan -> done")
    run = pipeline.run()
    result = run.result()
    owners = {
        "result": result,
        "run": run,
        "context": result.context,
        "estimate": pipeline.estimate(),
        "models": pipeline.models(),
        "heat": run.heat("time"),
    }
    for name, owner in owners.items():
        with pytest.raises(KeyError) as caught:
            owner["nowhere"]
        assert isinstance(caught.value, NoSuchKey), name
        assert "'nowhere'" in caught.value.message, name
        assert ("last_stage" if name == "context" else "plan") in caught.value.hint, name
    with pytest.raises(KeyError, match='did you mean "last_stage"'):
        result.context["last_stag"]
    with pytest.raises(KeyError, match="has no node 3"):
        result[3]


def test_a_run_and_its_result_know_which_nodes_they_have(make):
    run = make("plan start -> plan -> done").run()
    assert "plan" in run
    assert "plan" in run.result()
    assert "plam" not in run
    assert "plam" not in run.result()


def test_a_live_run_shows_the_stages_that_are_done(make):
    run = make(f"a {GATE.replace('start -> g', 'start -> a -> g')}", {"a": "early"}, interviewer="deferred").run()
    run.wait_for_gate("g", 60)
    assert run["a"].response == "early"
    assert run["g"].outcome is None
    assert "status waiting" in run.details()
    assert run.to_svg().startswith("<svg")
    run.answer("g", "Y")
    run.result(60)


def test_a_run_under_way_cannot_be_resumed(make):
    run = make(GATE, interviewer="deferred").run()
    run.wait_for_gate("g", 60)
    with pytest.raises(RunError, match="is waiting"):
        run.resume()
    run.answer("g", "Y")
    run.result(60)


def test_a_presenter_is_shown_every_run_until_it_is_taken_away(make):
    shown = []
    remove = register_presenter(lambda run: shown.append(run.id))
    try:
        assert are_runs_shown()
        first = make("start -> done").run(wait=True, durability="none")
        make("start -> done").run(wait=True, durability="none", is_shown=False)
    finally:
        remove()
    make("start -> done").run(wait=True, durability="none")
    assert shown == [first.run_id]


def test_a_finished_run_is_loaded_with_all_that_it_showed(make):
    result = make('a [prompt="Do it"] start -> a -> done', {"a": "the response"}).run(wait=True)
    loaded = Run.load(result.logs_root)
    again = loaded.result()
    assert (loaded.id, loaded.status) == (result.run_id, "completed")
    assert again.completed_nodes == result.completed_nodes
    assert again.context.snapshot() == result.context.snapshot()
    assert (again["a"].prompt, again["a"].response) == ("Do it", "the response")
    assert any(isinstance(event, StageCompleted) for event in loaded.events())
    assert loaded.on_event(print)() is None


@pytest.mark.parametrize(
    ("replies", "options", "status"),
    [({"a": Outcome.fail("no")}, {}, "failed"), ({}, {"stop_after": 1}, "paused"), ({}, {"max_steps": 1}, "failed")],
    ids=["failed", "paused", "bound"],
)
def test_a_run_that_ended_otherwise_is_loaded_as_it_stands(make, replies, options, status):
    result = make("a start -> a -> done", replies).run(wait=True, **options)
    loaded = Run.load(result.logs_root)
    assert loaded.status == status
    assert loaded.result().reason == result.reason


def test_a_run_of_another_process_can_be_looked_at_from_its_directory(make, tmp_path):
    run = make(f"a {GATE.replace('start -> g', 'start -> a -> g')}", interviewer="deferred").run(
        logs_root=tmp_path / "run"
    )
    run.wait_for_gate("g", 60)
    other = load_execution(tmp_path / "run")
    assert (other.status, other.is_done, other["a"].visits) == ("running", False, 1)
    with pytest.raises(NoSuchGate) as caught:
        other.answer("g", "Y")
    assert caught.value.hint
    run.answer("g", "Y")
    run.result(60)


def test_a_loaded_run_can_be_resumed(make):
    paused = make("a start -> a -> done").run(wait=True, stop_after=1)
    assert Run.load(paused.logs_root).resume(backend="simulated").result(60).status == "success"


def test_nothing_is_loaded_from_nowhere(tmp_path):
    with pytest.raises(RunNotFound):
        Run.load(tmp_path / "nothing")
    with pytest.raises(RunNotFound):
        load_pipeline(tmp_path / "nothing")


def test_the_pipeline_of_a_run_is_loaded_from_its_directory(make):
    pipeline = make("a start -> a -> done")
    result = pipeline.run(wait=True)
    assert load_pipeline(result.logs_root).graph.content_hash == pipeline.graph.content_hash


def test_runs_are_listed_newest_first(make):
    ids = [make("start -> done").run(wait=True).run_id for _ in range(2)]
    assert {run.run_id for run in runs()} == set(ids)
    assert {run.status for run in runs()} == {"completed"}
    assert runs("elsewhere") == []


def test_run_pipeline_takes_context_and_callback_and_fills_the_context(dot):
    context = Context({"ticket": "42"})
    result = run_pipeline(
        dot("a start -> a -> done"), context, llm_callback=lambda prompt: "done", params={"more": 1}, durability="none"
    )
    assert result.status == "success"
    assert (context.get("last_stage"), context.get("ticket"), context.get("more")) == ("a", "42", 1)


def test_run_pipeline_takes_handlers_transforms_and_rules(dot):
    result = run_pipeline(
        dot('a [type="own"] start -> a -> done'),
        handlers={"own": lambda *_: Outcome.success("mine")},
        durability="none",
    )
    assert result.outcomes["a"].notes == "mine"


def test_run_pipeline_refuses_errors(dot):
    with pytest.raises(ValidationError):
        run_pipeline(dot("orphan start -> done"))


def test_load_checkpoint_has_the_fields_of_spec_5_3(make):
    result = make("a [max_retries=1] start -> a -> done", {"a": [Outcome.fail("x"), "ok"]}).run(wait=True)
    point = load_checkpoint(result.logs_root)
    assert (point.current_node, point.completed_nodes) == ("done", ("start", "a", "done"))
    assert (point.next_node, point.node_outcomes["a"], point.node_retries) == ("", "success", {})
    assert point.context_values["outcome"] == "success"
    assert point.timestamp > 0


def test_a_checkpoint_that_is_not_there_yet_is_said(tmp_path):
    with pytest.raises(RunNotFound):
        load_checkpoint(tmp_path)


def test_a_run_without_a_checkpoint_is_said_to_have_none_yet(make):
    logs_root = make("a start -> a -> done", {"a": ["ok"]}).run(wait=True).logs_root
    for file in logs_root.glob("checkpoint*.json"):
        file.unlink()
    with pytest.raises(RunNotFound, match=f"{re.escape(str(logs_root))} has no checkpoint yet"):
        load_checkpoint(logs_root)


def test_the_result_of_a_run_that_runs_elsewhere_is_not_here_yet(make):
    run = make(GATE, interviewer="deferred").run()
    run.wait_for_gate("g", 60)
    with pytest.raises(RunError, match="runs elsewhere"):
        load_execution(run.logs_root).result(1)  # as in another process
    run.answer("g", "Y")
    run.result(60)


def test_a_backend_that_cannot_start_fails_in_words(make):
    class Dead:
        async def open(self):
            raise ConnectionError("port is busy")

        async def close(self):
            pass

        async def run(self, node, prompt, context):
            return "never"

    result = make("a start -> a -> done", backend=Dead()).run(wait=True, durability="fast")
    assert result.status == "fail"
    assert "port is busy" in result.reason


def test_a_step_waits_at_the_console_as_a_waited_run_does(make):
    """A deferred gate could not be answered while ``step`` blocks."""
    pipeline = make(GATE)
    pipeline.step()
    result = pipeline.step()
    assert result.status == "fail"


def test_pipelines_of_threads_and_loops_share_no_state(dot):
    async def main():
        pipelines = [Pipeline(dot(f"n{number} start -> n{number} -> done")) for number in range(5)]
        return await asyncio.gather(*(pipeline.run_async(durability="none") for pipeline in pipelines))

    results = asyncio.run(main())
    assert [result.completed_nodes[1] for result in results] == [f"n{number}" for number in range(5)]


def test_why_of_a_node_that_there_is_not_suggests_the_nearest(make):
    result = make("plan start -> plan -> done").run(wait=True)
    with pytest.raises(OptionError, match=r"there is no node 'plam'.*plan"):
        result.why("plam")


@pytest.mark.parametrize("text", ["{", "[]", "5"])
def test_a_damaged_record_of_a_look_into_the_cache_is_as_none(make, text):
    run = make("plan start -> plan -> done").run()
    result = run.result(60)
    [directory] = result.logs_root.glob("*plan*")
    (directory / INPUTS_FILE).write_text(text)
    assert str(Run.load(result.logs_root).why("plan")) == str(result.why("plan"))
    assert "the run had no cache" in str(result.why("plan"))


def test_a_context_of_a_run_that_has_ended_takes_no_large_value(make):
    make("plan start -> plan -> done").run(wait=True, logs_root="run")
    context = Run.load("run").result().context
    context.set("small", "x")
    with pytest.raises(OptionError, match="the run has ended; 'large' is too large to be kept in its context"):
        context.set("large", "x" * 2_000_000)
    assert (context["small"], context.get("large")) == ("x", None)


def test_a_directory_without_its_source_says_how_to_go_on_with_it(make):
    result = make("plan start -> plan -> done").run(wait=True)
    (result.logs_root / "pipeline.dot").unlink()
    with pytest.raises(RunNotFound, match="does not hold the pipeline's source") as told:
        load_pipeline(result.logs_root)
    assert "Pipeline(path).resume(directory)" in told.value.hint


def test_a_blocking_call_is_refused_where_there_are_no_threads(monkeypatch, tmp_path):
    monkeypatch.setattr("attractor_nb.runtime.launch.HAS_THREADS", False)
    pipeline = Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    with pytest.raises(OptionError, match="a browser has no threads"):
        pipeline.run(wait=True, logs_root=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_under_way_here_is_loaded_as_itself(tmp_path):
    """Its gate can be answered, and it can be waited for."""
    text = "digraph { start [shape=Mdiamond] gate [shape=hexagon] done [shape=Msquare] start -> gate -> done }"
    run = Pipeline(text).run(runs_dir=tmp_path)
    run.wait_for_gate("gate")
    loaded = runs(tmp_path)[0].load()
    assert loaded is run
    loaded.answer("gate", "done")
    assert loaded.result().status == "success"
    assert Run.load(run.logs_root) is not run, "it has ended, and is read from its directory"
