"""Going back in a run: what goes back, what does not, and what is refused."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor_nb import Outcome, Pipeline, Run, StageStatus, Usage, diff
from attractor_nb.decisions.kept_state import checkpoint_entries
from attractor_nb.decisions.log_history import counted_events
from attractor_nb.decisions.planning.plan import compile_plan
from attractor_nb.errors import GraphChanged, OptionError, RunError, RunLocked
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import ModelCallEnded, PipelineResumed, PipelineRewound, StageStarted
from attractor_nb.runtime.handles.recorded_state import restored_context, restored_state
from attractor_nb.stage import current_stage
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import read_run
from attractor_nb.testing import ManualClock, ScriptedInterviewer, SeededRandomness
from attractor_nb.views.state import so_far
from tests.engine.scripted_graphs import scripted_pipelines

LINE = "a b c start -> a -> b -> c -> done"


def counting(calls):
    """A backend that tells how often a node was called, and what its context held before."""

    def answer(node, prompt, context):
        calls.append(current_stage().idempotency_key.partition(":")[2])
        count = context.get(f"calls.{node.id}", 0) + 1
        context.set(f"calls.{node.id}", count)
        return Response(f"{node.id} {count}", usage=Usage(10))

    return answer


@pytest.fixture
def calls():
    return []


@pytest.fixture
def line(make, calls, tmp_path):
    """A run of three stages that has ended."""
    run = make(LINE, backend=counting(calls)).run(logs_root=tmp_path / "run")
    run.result(60)
    return run


def events_of(root, kind):
    return [event for event in read_run(root).events if isinstance(event, kind)]


def test_a_completed_run_goes_on_from_before_a_visit(line, calls):
    result = line.rewind("b").result(60)
    assert result.status == "success"
    assert result.completed_nodes == ("start", "a", "b", "c", "done")
    assert calls == ["a:1", "b:1", "c:1", "b:2", "c:2"]


def test_the_context_is_as_it_was_there(line, calls):
    result = line.rewind("b").result(60)
    assert (result.context["calls.b"], result.context["calls.c"]) == (1, 1)


def test_a_new_visit_has_a_number_and_so_a_key_that_was_never_used(line, calls):
    again = line.rewind("b")
    again.result(60)
    again.rewind("b").result(60)
    assert calls == ["a:1", "b:1", "c:1", "b:2", "c:2", "b:3", "c:3"]
    assert len(set(calls)) == len(calls)


def test_a_visit_that_was_cut_off_keeps_its_number_too(make, tmp_path, calls):
    pipeline = make(LINE, backend=counting(calls))
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=3)
    with (tmp_path / "run/events.jsonl").open("rb") as log:
        assert b'"c"' in log.read()  # its way on; not begun yet
    store = DirectoryRunStore.open(tmp_path / "run", durability="fast", clock=ManualClock())
    store.append(
        StageStarted(name="c", visit=1, sequence=read_run(tmp_path / "run").events[-1].sequence + 1), is_synced=True
    )
    store.close()
    pipeline.resume(tmp_path / "run", rewind_to="b").result(60)
    assert calls == ["a:1", "b:1", "b:2", "c:2"]


def test_what_was_spent_stays_spent(line):
    before = line.result().usage.total_tokens
    result = line.rewind("b").result(60)
    assert (before, result.usage.total_tokens) == (30, 50)
    assert result.view.usage.total_tokens == 50
    assert Run.load(result.logs_root).result().usage.total_tokens == 50


def test_ruling_18_a_budget_counts_what_was_set_aside(line):
    result = line.rewind("a", max_tokens_total=45).result(60)
    assert result.status == "fail"
    assert "max_tokens_total" in result.reason


def test_ruling_18_steps_and_visits_count_on_the_way_taken(line):
    """Five steps and one visit each: going back three times would be over both bounds otherwise."""
    run = line
    for _ in range(3):
        run = run.rewind("b", max_steps=5, max_node_visits=1)
        assert run.result(60).status == "success"


def test_nothing_is_erased(line, tmp_path):
    before = (tmp_path / "run/events.jsonl").read_bytes()
    line.rewind("b").result(60)
    assert (tmp_path / "run/events.jsonl").read_bytes().startswith(before)
    assert (tmp_path / "run/b/visits/1.1/response.md").read_text().startswith("b 1")


def test_the_record_says_what_was_set_aside(line, tmp_path):
    line.rewind("b").result(60)
    (rewound,) = events_of(tmp_path / "run", PipelineRewound)
    assert (rewound.node, rewound.visit, rewound.stages) == ("b", 1, 3)
    assert rewound.description == "rewound to b, visit 1: 3 stages set aside"


def test_the_run_shows_the_way_that_was_taken(line, tmp_path):
    run = line.rewind("b", stop_after=1)
    run.result(60)
    for shown in (run, Run.load(tmp_path / "run")):
        assert "c" not in shown.view.nodes
        assert shown["c"].outcome is None
        assert shown.view.stages == 3
        assert [state.passes for state in shown.view.edges.values()] == [1, 1, 1]
        assert shown.visits == {"start": 1, "a": 1, "b": 1}


def test_files_of_a_visit_that_was_set_aside_are_not_shown_as_the_stages(make, tmp_path, calls):
    run = looping(make, calls).run(logs_root=tmp_path / "run")
    run.result(60)
    again = run.rewind("b", visit=1, stop_after=1, backend=lambda *_: Outcome.fail("stop here"))
    again.result(60)
    for shown in (again, Run.load(tmp_path / "run")):
        assert shown["a"].response.startswith("a 1")
        assert shown["a"].visits == 1
    assert (tmp_path / "run/a/response.md").read_text().startswith("a 2")


def counting_loop(calls):
    def answer(node, prompt, context):
        calls.append(current_stage().idempotency_key.partition(":")[2])
        count = context.get(node.id, 0) + 1
        context.set(node.id, count)
        return f"{node.id} {count}"

    return answer


def looping(make, calls, **options):
    body = """a b start -> a -> b  b -> a [condition="context.b=1"]  b -> done [condition="context.b=2"]"""
    return make(body, backend=counting_loop(calls), **options)


@pytest.mark.parametrize(
    ("node", "visit", "expected"),
    [
        ("a", 1, ["a:3", "b:3", "a:4", "b:4"]),
        ("b", 1, ["b:3", "a:3", "b:4"]),
        ("a", 2, ["a:3", "b:3"]),
        ("a", None, ["a:3", "b:3"]),
        ("b", None, ["b:3"]),
    ],
)
def test_in_a_loop_a_visit_is_named_by_its_number(make, tmp_path, calls, node, visit, expected):
    run = looping(make, calls).run(logs_root=tmp_path / "run")
    run.result(60)
    del calls[:]
    result = run.rewind(node, visit=visit).result(60)
    assert calls == expected
    assert result.completed_nodes == ("start", "a", "b", "a", "b", "done")
    assert result.visits["a"] == 2


def test_a_rewind_behind_a_rewind_knows_only_the_visits_of_the_way(make, tmp_path, calls):
    run = looping(make, calls).run(logs_root=tmp_path / "run")
    run.result(60)
    again = run.rewind("b", visit=1)
    again.result(60)
    with pytest.raises(RunError, match="no visit 2 of b") as caught:
        again.rewind("b", visit=2)
    assert caught.value.hint == "visits of b: 3, 4"
    assert again.rewind("b", visit=3).result(60).completed_nodes[-1] == "done"


def test_a_failed_run_can_go_back_and_end_well(make, tmp_path):
    pipeline = make("a b start -> a -> b -> done", {"b": [Outcome.fail("no"), Outcome.success()]})
    run = pipeline.run(logs_root=tmp_path / "run")
    assert run.result(60).status == "fail"
    with pytest.raises(RunError, match="failed permanently") as caught:
        run.resume()
    assert "run.rewind('b')" in caught.value.hint
    assert f"`attractor-nb resume {tmp_path / 'run'} --from b`" in caught.value.hint
    assert run.rewind("b").result(60).status == "success"
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["status"] == "completed"


def test_retries_and_goal_gates_begin_as_they_were(make, tmp_path):
    body = "a [max_retries=1] b [goal_gate=true, retry_target=a] start -> a -> b -> done"
    replies = {"b": [Outcome.fail("no"), Outcome.success(), Outcome.fail("no"), Outcome.success()]}
    run = make(f'on_fail="continue" {body}', replies).run(logs_root=tmp_path / "run")
    first = run.result(60)
    again = run.rewind("b", visit=1).result(60)
    assert again.completed_nodes == first.completed_nodes
    assert again.node_outcomes == first.node_outcomes


GATE = (
    'gate [shape=hexagon] a b start -> a -> gate  gate -> b [label="[Y] Yes"]  gate -> done [label="[N] No"]  b -> done'
)


def test_an_answer_after_the_place_is_asked_for_again_and_one_before_is_not(make, tmp_path):
    asked = ScriptedInterviewer({"gate": ["Y", "N"]})
    run = make(GATE, interviewer=asked).run(logs_root=tmp_path / "run")
    assert run.result(60).completed_nodes[-2] == "b"
    run = run.rewind("b")
    assert run.result(60).completed_nodes[-2] == "b"
    assert len(asked.questions) == 1
    result = run.rewind("gate").result(60)
    assert len(asked.questions) == 2
    assert "b" not in result.completed_nodes


def test_a_question_that_was_open_is_closed(make, tmp_path):
    pipeline = make(GATE, interviewer="deferred")
    run = pipeline.run(logs_root=tmp_path / "run")
    old = run.wait_for_gate("gate", timeout=60)
    run.cancel()
    run.result(60)
    again = run.rewind("a", stop_after=1)
    again.result(60)
    assert again.gates == ()
    assert "gate" not in again.view.nodes
    new = again.resume()
    assert new.wait_for_gate("gate", timeout=60).id != old.id
    new.answer("gate", "N")
    assert new.result(60).status == "success"


def test_a_graph_that_was_changed_must_be_accepted(make, dot, line):
    changed = Pipeline(dot(LINE.replace("c start", "c [prompt=New] start")), backend=lambda *_: "new")
    with pytest.raises(GraphChanged):
        changed.resume(line.logs_root, rewind_to="c")
    result = changed.resume(line.logs_root, rewind_to="c", on_graph_change="accept").result(60)
    assert result["c"].response == "new"


def test_the_way_remembers_which_graph_it_was_of(make, dot, line):
    """Behind the place where the new graph took over, the old one goes on unasked."""
    changed = Pipeline(dot(LINE.replace("c start", "c [prompt=New] start")), backend=lambda *_: "new")
    changed.resume(line.logs_root, rewind_to="c", on_graph_change="accept").result(60)
    with pytest.raises(GraphChanged):
        line.rewind("c")
    assert line.rewind("b").result(60).status == "success"


def test_a_node_that_is_unknown_is_answered_with_the_nearest(make, tmp_path):
    run = make("review start -> review -> done").run(logs_root=tmp_path / "run")
    run.result(60)
    with pytest.raises(OptionError, match=r"did you mean.*review"):
        run.rewind("reviw")


def test_what_cannot_be_gone_back_to_changes_nothing(make, tmp_path):
    body = "a b c start -> a  a -> b [label=x]  a -> c [weight=5]  b -> done  c -> done"
    run = make(body).run(logs_root=tmp_path / "run")
    run.result(60)
    before = (tmp_path / "run/events.jsonl").read_bytes(), (tmp_path / "run/manifest.json").read_bytes()
    with pytest.raises(RunError, match="never visited b") as caught:
        run.rewind("b")
    assert caught.value.hint == "visited: start, a, c, done"
    with pytest.raises(RunError, match="no visit 2 of a"):
        run.rewind("a", visit=2)
    for node, visit in ((3, None), ("a", 0), ("a", "1"), ("a", True)):
        with pytest.raises(OptionError):
            run.pipeline.resume(tmp_path / "run", rewind_to=node, visit=visit)
    with pytest.raises(OptionError, match="needs the node"):
        run.pipeline.resume(tmp_path / "run", visit=1)
    assert before == ((tmp_path / "run/events.jsonl").read_bytes(), (tmp_path / "run/manifest.json").read_bytes())


def test_a_run_that_is_live_is_not_rewound(make, tmp_path):
    run = make(GATE, interviewer="deferred").run(logs_root=tmp_path / "run")
    run.wait_for_gate("gate", timeout=60)
    with pytest.raises(RunError, match="waiting"):
        run.rewind("a")
    with pytest.raises(RunLocked):
        run.pipeline.resume(tmp_path / "run", rewind_to="a")
    run.answer("gate", "N")
    assert run.result(60).status == "success"


def test_a_run_of_the_older_layout_has_no_log_to_go_back_in(make, tmp_path):
    plain = {"pipeline_name": "demo", "current_node": "a", "context": {"seen": 1}, "completed_nodes": ["start"]}
    old = tmp_path / "old"
    old.mkdir()
    more = {"timestamp": 1771699200.0, "node_retries": {}, "logs": []}
    (old / "checkpoint.json").write_text(json.dumps({**plain, **more}))
    pipeline = make(LINE)
    with pytest.raises(RunError, match="older layout"):
        pipeline.resume(old, rewind_to="a")
    run = pipeline.resume(old)
    run.result(60)
    with pytest.raises(RunError, match="older layout"):
        run.rewind("a")


def test_a_rewind_to_the_start_begins_with_the_inputs(make, tmp_path, calls):
    run = make(LINE, backend=counting(calls)).run(logs_root=tmp_path / "run", params={"ticket": "42"})
    run.result(60)
    result = run.rewind("start").result(60)
    assert (result.context["ticket"], result.context["calls.a"]) == ("42", 1)


def test_listeners_hear_of_it_before_the_run_goes_on(line):
    heard = []
    line.rewind("b", observers=[heard.append]).result(60)
    assert [event.type for event in heard][:2] == ["PipelineRewound", "PipelineResumed"]


def test_a_bound_that_was_raised_and_a_kill_leave_a_run_that_did_not_fail(make, tmp_path):
    """The end that a resume took back does not come back with the next reading of the log."""
    pipeline = make(LINE)
    assert pipeline.run(wait=True, logs_root=tmp_path / "run", max_steps=2).status == "fail"
    pipeline.resume(tmp_path / "run", stop_after=1, max_steps=50).result(60)
    for path in (tmp_path / "run").glob("checkpoint*"):
        path.unlink()
    loaded = Run.load(tmp_path / "run").result()
    assert (loaded.status, loaded.reason) == ("paused", "paused")


# -- properties -------------------------------------------------------------------------------------

STATUSES = [StageStatus.SUCCESS, StageStatus.FAIL, StageStatus.PARTIAL_SUCCESS, StageStatus.SKIPPED]


class Replies:
    """Replies by node and by how often it was called on the way taken: the context alone remembers."""

    def __init__(self, table):
        self._table = table

    async def run(self, node, prompt, context):
        calls = context.get(f"calls.{node.id}", 0)
        replies = self._table[node.id]
        status = replies[min(calls, len(replies) - 1)]
        reason = f"{node.id} {calls}" if status is StageStatus.FAIL else ""
        updates = {f"calls.{node.id}": calls + 1, f"note.{node.id}": calls}
        return Outcome(status, failure_reason=reason, context_updates=updates, usage=Usage(1, 1, calls=1))


PIPELINES = scripted_pipelines(("a", "b", "c"), STATUSES, Replies)


def options():
    return {"clock": ManualClock(), "randomness": SeededRandomness(), "durability": "fast", "max_steps": 15}


def told(result):
    """The facts that two runs must agree in, numbers of visits aside."""
    return (
        result.status,
        result.reason,
        result.completed_nodes,
        result.node_outcomes,
        result.visits,
        result.context.snapshot(),
        result.next_node,
        {node: (state.status, state.reason) for node, state in result.view.nodes.items()},
        result.view.edges,
        result.view.stages,
    )


def visits_of(root):
    """All visits on the way taken, as (node, number)."""
    way = counted_events(read_run(root).events)
    return list(dict.fromkeys((event.name, event.visit) for event in way if isinstance(event, StageStarted)))


@settings(max_examples=25, deadline=None)
@given(pipeline=PIPELINES, data=st.data())
def test_a_rewind_and_the_same_replies_take_the_same_way(pipeline, data):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "run"
        whole = told(pipeline.run(wait=True, logs_root=root, **options()))
        for _ in range(data.draw(st.integers(1, 3))):
            node, visit = data.draw(st.sampled_from(visits_of(root)))
            result = pipeline.resume(root, rewind_to=node, visit=visit, **options()).result(30)
            assert told(result) == whole
            assert told(Run.load(root).result()) == whole
        numbers = [(event.name, event.visit) for event in events_of(root, StageStarted) if event.attempt == 1]
        assert len(set(numbers)) == len(numbers)


def standing(pipeline, stored):
    """State and context, as a resume would read them."""
    plan = compile_plan(pipeline.graph)
    context = restored_context(plan, stored, {}, store=None)
    state = restored_state(plan, stored)
    fields = {name: getattr(state, name) for name in state.__struct_fields__ if name not in {"root", "branches"}}
    return fields, checkpoint_entries(state), context.snapshot()


@settings(max_examples=25, deadline=None)
@given(pipeline=PIPELINES, data=st.data())
@pytest.mark.campaign
def test_the_log_alone_says_what_checkpoint_and_tail_say(pipeline, data):
    """After any sequence of runs, stops, rewinds and resumes."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "run"
        result = pipeline.run(wait=True, logs_root=root, stop_after=data.draw(st.integers(1, 9)), **options())
        for _ in range(data.draw(st.integers(1, 5))):
            stop = {"stop_after": data.draw(st.integers(1, 6))}
            if result.status != "paused" or data.draw(st.booleans()):
                node, visit = data.draw(st.sampled_from(visits_of(root)))
                stop |= {"rewind_to": node, "visit": visit}
            result = pipeline.resume(root, **stop, **options()).result(30)
            stored = read_run(root)
            alone = read_run_without_checkpoint(root)
            assert alone.checkpoint is None
            assert stored.checkpoint is not None
            assert standing(pipeline, alone) == standing(pipeline, stored)


def read_run_without_checkpoint(root):
    hidden = {path: path.read_bytes() for path in root.glob("checkpoint*")}
    for path in hidden:
        path.unlink()
    try:
        return read_run(root)
    finally:
        for path, data in hidden.items():
            path.write_bytes(data)


def test_a_resume_without_a_checkpoint_goes_on_where_the_rewind_led(line, tmp_path, calls):
    line.rewind("b", stop_after=1).result(60)
    for path in (tmp_path / "run").glob("checkpoint*"):
        path.unlink()
    del calls[:]
    result = line.pipeline.resume(tmp_path / "run").result(60)
    assert calls == ["c:2"]
    assert result.context["calls.c"] == 1
    (resumed,) = events_of(tmp_path / "run", PipelineResumed)[-1:]
    assert resumed.next_node == "c"


def test_what_a_rewind_sets_aside_was_spent_and_every_view_says_the_same(line, tmp_path):
    again = line.rewind("b")
    result = again.result(60)
    assert result.usage_by_node["b"] == Usage(20, unpriced=2)
    assert again["b"].usage == result["b"].usage == Run.load(tmp_path / "run")["b"].usage
    assert again["b"].usage == result.usage_by_node["b"]
    assert result.view.usage_by_node == result.usage_by_node


def killed_in_the_middle(make, tmp_path):
    """A directory as a kill leaves it: `b` has made one model call and has no end."""

    def answer(node, prompt, context):
        if node.id == "b" and not (tmp_path / "killed").exists():
            scope = current_stage()
            scope.announce(ModelCallEnded(**scope.place, model="m", usage=Usage(100, 20, 0.5, 1)))
            shutil.copytree(tmp_path / "run", tmp_path / "killed")
        return Response(node.id, usage=Usage(10))

    pipeline = make(LINE, backend=answer)
    pipeline.run(wait=True, logs_root=tmp_path / "run")
    return pipeline, tmp_path / "killed"


def test_ruling_18_a_rewind_counts_the_calls_of_an_attempt_that_a_kill_cut_off(make, tmp_path):
    pipeline, root = killed_in_the_middle(make, tmp_path)
    again = pipeline.resume(root, rewind_to="a")
    result = again.result(60)
    assert result.usage.total_tokens == 10 + 120 + 30  # a; what b had asked; all three again
    assert result.usage_by_node["b"].total_tokens == 130
    assert result.view.usage == result.usage == Run.load(root).view.usage
    assert again.rewind("c").result(60).usage.total_tokens == 170  # and not twice


def test_ruling_18_a_replay_of_it_counts_them_once(make, tmp_path):
    pipeline, root = killed_in_the_middle(make, tmp_path)
    result = pipeline.resume(root, rewind_to="a").result(60)
    replay = Run.load(root).replay()
    assert so_far(replay.at(len(replay)).view) == result.usage


class RivalDisk(Disk):
    """Lets a rival act just before something is written, and just after.

    Attributes:
        told: What became of the rival each time.
    """

    def __init__(self, rival, mark=b"PipelineRewound"):
        self.rival = rival
        self.mark = mark
        self.told = []

    def write_at(self, descriptor, data, offset):
        return self._write(data, lambda: super(RivalDisk, self).write_at(descriptor, data, offset))

    def write(self, descriptor, data):
        return self._write(data, lambda: super(RivalDisk, self).write(descriptor, data))

    def _write(self, data, write):
        if self.mark not in data:
            return write()
        self.told.append(self.rival())
        done = write()
        self.told.append(self.rival())
        return done


@pytest.fixture
def restarted(make, tmp_path):
    """A run that a restart took to another directory, and its pipeline."""
    body = """prepare a start -> prepare -> a  a -> prepare [condition="context.round=1", loop_restart=true]
              a -> done [condition="context.round!=1"]"""
    rounds = []

    def answer(node, prompt, context):
        rounds.append(node.id)
        context.set("round", rounds.count("a"))
        return node.id

    pipeline = make(body, backend=answer)
    assert pipeline.run(wait=True, logs_root=tmp_path / "run").status == "success"
    return pipeline


def test_ruling_21_nobody_goes_on_in_a_restart_while_a_rewind_to_before_it_is_recorded(restarted, make, tmp_path):
    def rival():
        try:
            DirectoryRunStore.open(tmp_path / "run/restart-1", durability="fast", clock=ManualClock()).close()
        except RunLocked:
            return "refused"
        return "in"

    disk = RivalDisk(rival)
    again = restarted.resume(tmp_path / "run", rewind_to="prepare", visit=1, disk=disk)
    assert again.result(60).status == "success"
    assert disk.told == ["refused", "refused"]
    assert rival() == "in"
    with pytest.raises(RunError, match="was set aside"):
        restarted.resume(tmp_path / "run/restart-1")


def test_a_rewind_to_before_a_restart_that_was_taken_over_meanwhile_is_not_recorded(restarted, tmp_path):
    """The new owner found the run to stand in its restart, and goes on there."""
    new_owners = []

    def rival():
        place = tmp_path / "run/restart-1"
        if not new_owners:
            new_owners.append(DirectoryRunStore.open(place, durability="fast", clock=ManualClock(), take_over=True))

    again = restarted.resume(
        tmp_path / "run", rewind_to="prepare", visit=1, disk=RivalDisk(rival, b'"status": "resumed"')
    )
    with pytest.raises(RunLocked):
        again.result(60)
    assert events_of(tmp_path / "run", PipelineRewound) == []
    (new_owner,) = new_owners
    new_owner.check_owner()
    new_owner.close()


@pytest.mark.parametrize("way", ["rewind", "fork"])
def test_ruling_45_a_gate_that_failed_before_a_restart_stays_unsatisfied(way, make, tmp_path):
    """The first record of a restart says so: what goes back in it has no checkpoint and no directory before it."""
    pipeline = make(
        """test [goal_gate=true] start -> test -> done  test -> a [condition="outcome=fail", loop_restart=true]
           a -> done""",
        backend=lambda node, prompt, context: Outcome(StageStatus.FAIL if node.id == "test" else StageStatus.SUCCESS),
    )
    first = pipeline.run(wait=True, logs_root=tmp_path / "run")
    assert first.reason == "goal_gate_unsatisfied: test has not succeeded and there is no retry_target"
    loaded = Run.load(tmp_path / "run", pipeline)
    again = (loaded.rewind if way == "rewind" else loaded.fork)("a").result(30)
    assert (again.status, again.reason) == ("fail", first.reason)


def test_a_handle_that_a_rewind_passed_over_shows_its_own_end_and_says_so(line):
    again = line.rewind("b", stop_after=1)
    again.result(60)
    path = line.explain()
    assert [(step.node, step.visit) for step in path.steps] == [("start", 1), ("a", 1), ("b", 1), ("c", 1), ("done", 1)]
    assert path.ending.startswith("the run completed; it was rewound to before b since")
    assert line.inspect("b").response.startswith("b 1")
    assert [visit.node_id for visit in line.journal().visits] == ["start", "a", "b", "c", "done"]
    assert "was rewound to before b since" in str(line)
    assert [(step.node, step.visit) for step in again.explain().steps][-1] == ("b", 2)
    assert "since" not in str(again)


def test_a_handle_that_a_resume_continued_says_so(make, tmp_path):
    stopped = make(LINE).run(logs_root=tmp_path / "run", stop_after=2)
    stopped.result(60)
    stopped.resume().result(60)
    assert [step.node for step in stopped.explain().steps] == ["start", "a", "b", "c", "done"]
    assert "resumed since" in stopped.explain().ending
    assert "was resumed since" in str(stopped)


def test_a_loaded_handle_that_a_rewind_passed_over_shows_its_own_end(line):
    loaded = Run.load(line.logs_root)
    Run.load(line.logs_root).rewind("b", stop_after=1, backend=lambda prompt: "new").result(60)
    assert [step.node for step in loaded.explain().steps] == ["start", "a", "b", "c", "done"]


def test_a_comparison_shows_the_end_that_its_heading_names(line):
    again = line.rewind("b", stop_after=1)
    again.result(60)
    both = diff(line, again)
    assert {pair.node: pair.a.status for pair in both.steps if pair.a}["c"] == "success"
    assert both.first_difference.node == "c"


def test_a_handle_that_restarted_shows_its_own_end_after_a_rewind_to_before_the_restart(restarted, tmp_path):
    before = Run.load(tmp_path / "run", restarted)
    path = [(step.node, step.visit) for step in before.explain().steps]
    restarted.resume(tmp_path / "run", rewind_to="prepare", visit=1, stop_after=1).result(60)
    assert [(step.node, step.visit) for step in before.explain().steps] == path
    assert "rewound to before prepare since" in before.explain().ending
