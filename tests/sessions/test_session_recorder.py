"""Events of runs become a session, in a thread that delays no run."""

import threading

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import OptionError, StorageError
from attractor_nb.model.events import (
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelCompleted,
    ParallelStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
    PipelineStarted,
    StageCompleted,
)
from attractor_nb.sessions import SessionRecorder, SessionTracker, cancel_session, get_active_session
from attractor_nb.sessions.fold import AgentUpdate
from attractor_nb.storage.files.disk import Disk

BRANCH_FAILED = "the branch failed"

START = 1_769_956_222.0


def at(seconds, event):
    event.time = START + seconds
    return event


def started(branch, fan="fan"):
    return ParallelBranchStarted(name=fan.rpartition("/")[2], branch=f"{fan}/{branch}")


def ended(branch, *, fan="fan", success=True, **fields):
    fields.setdefault("status", "success" if success else "fail")
    name = fan.rpartition("/")[2]
    return ParallelBranchCompleted(name=name, branch=f"{fan}/{branch}", success=success, **fields)


def done():
    return PipelineCompleted(duration=1.0)


@pytest.fixture
def record(tmp_path):
    """Record events to the end; the session that they make."""

    def make(*events, **options):
        with SessionRecorder(tmp_path, source_file="review.dot", **options) as recorder:
            for event in events:
                recorder.take(event)
        assert recorder.problem is None
        return SessionTracker(recorder.session_dir).read() if recorder.session_dir else None

    return make


def standing(session):
    return [(agent.name, agent.status) for agent in session.agents]


def test_a_run_without_a_fan_out_makes_no_session(record, tmp_path):
    assert record(PipelineStarted(name="g", id="r"), done()) is None
    assert get_active_session(tmp_path) is None


def test_a_fan_out_is_a_wave_and_its_branches_are_agents(record):
    session = record(
        at(0, ParallelStarted(name="fan", branch_count=3)),
        at(1, started("plan")),
        at(2, started("write")),
        at(5, ended("plan")),
        at(6, ended("write", success=False)),
        at(7, started("check")),
        at(9.5, ended("check")),
        at(9.5, ParallelCompleted(name="fan", success_count=2, failure_count=1)),
        at(10, done()),
    )
    assert (session.source, session.source_file, session.status) == ("orchestrate", "review.dot", "failed")
    assert standing(session) == [("fan/plan", "complete"), ("fan/write", "failed"), ("fan/check", "complete")]
    assert [agent.duration_seconds for agent in session.agents] == [4, 4, 2.5]
    assert session.agents[1].error == BRANCH_FAILED
    assert [(wave.wave, wave.status, len(wave.agents)) for wave in session.waves] == [(1, "complete", 3)]


def test_branches_that_wait_are_counted_from_the_beginning(tmp_path):
    recorder = SessionRecorder(tmp_path)
    recorder.take(ParallelStarted(name="fan", branch_count=3))
    recorder.take(started("plan"))
    recorder.close()
    session = SessionTracker(recorder.session_dir).read()
    assert [agent.name for agent in session.agents] == ["fan/plan", "fan 2", "fan 3"]
    assert (session.status, session.summary.cancelled) == ("cancelled", 3)


def test_the_reason_of_a_branch_is_what_it_ended_with(record):
    events = [ParallelStarted(name="fan", branch_count=1), started("plan")]
    end = ended("plan", success=False, failure_reason="no idea")
    assert record(*events, end, done()).agents[0].error == "no idea"


def test_a_cancelled_branch_is_no_failed_one(record):
    session = record(
        ParallelStarted(name="fan", branch_count=2),
        started("a"),
        started("b"),
        ended("a"),
        ended("b", success=False, status="skipped", failure_reason="a was first"),
        ParallelCompleted(name="fan", success_count=1),
        done(),
    )
    assert standing(session) == [("fan/a", "complete"), ("fan/b", "cancelled")]
    assert (session.agents[1].error, session.status) == ("a was first", "complete")


def test_the_fan_outs_of_a_cancelled_branch_are_cancelled_with_it(record):
    session = record(
        ParallelStarted(name="fan", branch_count=1),
        started("a"),
        ParallelStarted(name="inner", branch="fan/a", branch_count=2),
        ParallelBranchStarted(name="inner", branch="fan/a/inner/x"),
        ended("a", success=False, status="skipped"),
        ParallelCompleted(name="fan"),
        done(),
    )
    assert standing(session) == [("fan/a", "cancelled"), ("fan/a/inner/x", "cancelled"), ("fan/a/inner 2", "cancelled")]


def test_fan_outs_of_two_branches_at_the_same_node_are_told_apart(record):
    inner = [ParallelStarted(name="inner", branch=f"fan/{branch}", branch_count=1) for branch in ("a", "b")]
    begun = [ParallelBranchStarted(name="inner", branch=f"fan/{branch}/inner/x") for branch in ("a", "b")]
    over = [
        ParallelBranchCompleted(name="inner", branch=f"fan/{branch}/inner/x", success=True, status="success")
        for branch in ("a", "b")
    ]
    session = record(
        ParallelStarted(name="fan", branch_count=2),
        started("a"),
        started("b"),
        *inner,
        *begun,
        *over,
        ended("a"),
        ended("b"),
        done(),
    )
    assert {agent.status for agent in session.agents} == {"complete"}
    assert [agent.name for agent in session.agents][2:] == ["fan/a/inner/x", "fan/b/inner/x"]


def test_each_fan_out_is_a_wave_of_its_own_nested_ones_too(record):
    session = record(
        ParallelStarted(name="outer", branch_count=1),
        started("a", "outer"),
        ParallelStarted(name="inner", branch="outer/a", branch_count=2),
        started("b", "outer/a/inner"),
        started("c", "outer/a/inner"),
        ended("b", fan="outer/a/inner"),
        ended("c", fan="outer/a/inner"),
        ParallelCompleted(name="inner", branch="outer/a"),
        ended("a", fan="outer"),
        ParallelCompleted(name="outer"),
        ParallelStarted(name="inner", visit=2, branch_count=1),
        started("b", "inner"),
        ended("b", fan="inner"),
        ParallelCompleted(name="inner"),
        done(),
    )
    assert [wave.agents for wave in session.waves] == [("001",), ("002", "003"), ("004",)]
    assert (session.status, session.summary.complete) == ("complete", 4)


def test_branches_that_the_join_did_not_wait_for_are_cancelled(record):
    session = record(
        ParallelStarted(name="fan", branch_count=3),
        started("a"),
        started("b"),
        ended("a"),
        ParallelCompleted(name="fan", success_count=1),
        done(),
    )
    assert [agent.status for agent in session.agents] == ["complete", "cancelled", "cancelled"]
    assert session.status == "complete"


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (PipelineInterrupted(reason="cancelled"), "cancelled"),
        (PipelineFailed(error="no way on", duration=1.0), "cancelled"),
    ],
    ids=["interrupted", "failed"],
)
def test_branches_cut_off_by_the_end_of_the_run_make_no_complete_session(record, end, status):
    session = record(ParallelStarted(name="fan", branch_count=1), started("a"), end)
    assert (session.status, session.agents[0].status) == (status, "cancelled")


def test_a_run_that_goes_on_after_its_end_begins_another_session(record):
    begin = [ParallelStarted(name="fan", branch_count=1), started("a")]
    session = record(*begin, PipelineInterrupted(reason="paused"), *begin, ended("a"), done())
    assert (session.status, session.summary.total) == ("complete", 1)


def test_a_resumed_fan_out_knows_the_branches_that_it_had(record):
    """Neither those that are over nor those under way are announced again."""
    before = [ParallelStarted(name="fan", branch_count=3), started("a"), ended("a"), started("b")]
    after = [ParallelStarted(name="fan", branch_count=3), ended("b"), started("c"), ended("c"), done()]
    session = record(*before, PipelineInterrupted(reason="paused"), *after)
    assert standing(session) == [("fan/a", "complete"), ("fan/b", "complete"), ("fan/c", "complete")]
    assert session.status == "complete"


def test_what_was_recorded_before_a_resume_is_recalled(tmp_path):
    with SessionRecorder(tmp_path) as recorder:
        recorder.recall([ParallelStarted(name="fan", branch_count=2), started("a"), ended("a"), started("b")])
        assert recorder.session_dir is None
        for event in (ParallelStarted(name="fan", branch_count=2), ended("b"), done()):
            recorder.take(event)
    session = SessionTracker(recorder.session_dir).read()
    assert (standing(session), session.status) == ([("fan/a", "complete"), ("fan/b", "complete")], "complete")


def test_a_fan_out_whose_stage_has_ended_is_forgotten(record):
    events = [ParallelStarted(name="fan", branch_count=1), started("a"), ended("a")]
    over = StageCompleted(name="fan", outcome=Outcome.success())
    session = record(*events, over, ParallelStarted(name="fan", branch_count=1), done())
    assert [agent.status for agent in session.agents] == ["complete", "cancelled"]


def test_a_branch_of_an_unknown_fan_out_is_taken_all_the_same(record):
    session = record(started("a"), ended("a"), ended("never began"), done())
    assert standing(session) == [("fan/a", "complete")]


class SlowDisk(Disk):
    """A disk whose first write takes until it is let go."""

    def __init__(self):
        self.is_reached = threading.Event()
        self.may_go = threading.Event()
        self.renames = 0

    def write(self, descriptor, data):
        self.is_reached.set()
        self.may_go.wait()
        return super().write(descriptor, data)

    def rename(self, *names):
        self.renames += 1
        super().rename(*names)


@pytest.mark.campaign
def test_a_slow_disk_holds_nobody_up_and_what_came_meanwhile_is_written_in_one_go(tmp_path):
    disk = SlowDisk()
    recorder = SessionRecorder(tmp_path, disk=disk, interval_seconds=1000)
    recorder.take(ParallelStarted(name="fan", branch_count=200))
    disk.is_reached.wait()
    for number in range(200):
        recorder.take(started(f"branch {number}"))
        recorder.take(ended(f"branch {number}"))
    recorder.take(done())
    assert disk.renames == 0
    disk.may_go.set()
    recorder.close()
    session = SessionTracker(recorder.session_dir).read()
    assert (session.status, session.summary.complete) == ("complete", 200)
    # status.json and the link of the beginning, the first change, and all the rest at once.
    assert disk.renames == 4


class FullDisk(Disk):
    """A disk that is full until a user makes room."""

    def __init__(self):
        self.is_full = True
        self.was_refused = threading.Event()

    def make_directory(self, name, parent=None):
        if self.is_full:
            self.was_refused.set()
            raise OSError(28, "no space left on device")
        super().make_directory(name, parent)


def test_what_a_full_disk_refused_is_written_when_there_is_room(tmp_path, caplog):
    disk = FullDisk()
    recorder = SessionRecorder(tmp_path, disk=disk, interval_seconds=0.001)
    recorder.take(ParallelStarted(name="fan", branch_count=1))
    disk.was_refused.wait()
    disk.is_full = False
    recorder.take(started("a"))
    recorder.take(ended("a"))
    recorder.take(done())
    recorder.close()
    assert recorder.problem is None
    assert standing(SessionTracker(recorder.session_dir).read()) == [("fan/a", "complete")]
    assert caplog.text.count("the session's status cannot be written") == 1


def test_a_disk_that_stays_full_is_told_of_at_the_end(tmp_path, caplog):
    recorder = SessionRecorder(tmp_path, disk=FullDisk())
    recorder.take(ParallelStarted(name="fan", branch_count=1))
    with pytest.raises(StorageError, match="no space left"):
        recorder.close()
    assert "cannot be written" in caplog.text


def test_what_somebody_else_ended_stays_as_it_is(tmp_path, caplog):
    recorder = SessionRecorder(tmp_path, items=["a", "b"])
    SessionTracker(recorder.session_dir).change(AgentUpdate("001", {"status": "cancelled"}))
    for item in ("a", "b"):
        observe = recorder.observer_of(item)
        observe(PipelineStarted(name="g", id=item))
        observe(done())
    recorder.close()
    session = SessionTracker(recorder.session_dir).read()
    assert standing(session) == [("a", "cancelled"), ("b", "complete")]
    assert "agent 001 cannot go from cancelled to running" in caplog.text


def test_a_session_that_somebody_else_ended_stays_ended(tmp_path, caplog):
    recorder = SessionRecorder(tmp_path, items=["a", "b"])
    cancel_session(recorder.session_dir)
    recorder.observer_of("a")(done())
    recorder.take(ParallelStarted(name="fan", branch_count=1))
    recorder.close()
    assert recorder.problem is None
    session = SessionTracker(recorder.session_dir).read()
    assert (session.status, session.summary.cancelled, session.summary.total) == ("cancelled", 2, 2)
    assert get_active_session(tmp_path) == recorder.session_dir


PASSES = "digraph g { start [shape=Mdiamond] a [type=own] done [shape=Msquare] start -> a -> done }"


def test_a_map_is_a_session_whose_agents_are_its_items(tmp_path):
    items = ["good", "bad"]
    with SessionRecorder(tmp_path, source_file="g.dot", items=items) as recorder:
        before = SessionTracker(recorder.session_dir).read()
        for item in items:
            outcome = Outcome.success() if item == "good" else Outcome.fail("no cheese")
            pipeline = Pipeline(PASSES, handlers={"own": lambda *_, outcome=outcome: outcome})
            pipeline.on_event(recorder.observer_of(item))
            pipeline.run(wait=True, durability="none")
    assert (before.status, before.summary.queued, before.waves[0].agents) == ("running", 2, ("001", "002"))
    session = SessionTracker(recorder.session_dir).read()
    assert standing(session) == [("good", "complete"), ("bad", "failed")]
    assert "no cheese" in session.agents[1].error
    assert session.status == "failed"


def test_an_item_that_nobody_named_is_refused(tmp_path):
    with SessionRecorder(tmp_path, items=[1]) as recorder, pytest.raises(OptionError, match="no item '2'"):
        recorder.observer_of(2)


def test_items_that_cannot_be_told_apart_are_refused(tmp_path):
    with pytest.raises(OptionError, match="two items of the map have the same name"):
        SessionRecorder(tmp_path, items=["a", "b", "a"])
    assert get_active_session(tmp_path) is None


def test_a_recorder_that_is_closed_takes_nothing_more(tmp_path):
    recorder = SessionRecorder(tmp_path)
    recorder.close()
    recorder.take(ParallelStarted(name="fan", branch_count=1))
    recorder.close()
    assert recorder.session_dir is None
