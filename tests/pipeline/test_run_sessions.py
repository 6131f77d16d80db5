"""A run keeps the status of its branches for everybody to see (ruling 33)."""

import asyncio
import logging

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import OptionError
from attractor_nb.sessions import SessionTracker, get_active_session

FAN_OUT = """digraph G {
    start [shape=Mdiamond]  done [shape=Msquare]
    fan [shape=component, join_policy=%s]  join [shape=tripleoctagon]
    a [type=own]  b [type=own]  c [type=own]
    start -> fan  fan -> a -> join  fan -> b -> join  fan -> c -> join  join -> done
}"""


def session_in(place):
    return SessionTracker(get_active_session(place) or next(iter(sorted(_sessions(place))))).read()


def _sessions(place):
    return [path.parent for path in (place / ".founder-mode" / "status" / "sessions").glob("*/status.json")]


def agents(session):
    return {agent.name: agent.status for agent in session.agents}


def test_each_branch_of_a_run_is_an_agent(tmp_path):
    def own(node, *_):
        return Outcome.fail("no cheese") if node.id == "b" else Outcome.success()

    pipeline = Pipeline(FAN_OUT % "wait_all", handlers={"own": own})
    pipeline.run(wait=True, durability="none", session=tmp_path)
    session = session_in(tmp_path)
    assert agents(session) == {"fan/a": "complete", "fan/b": "failed", "fan/c": "complete"}
    assert "no cheese" in next(agent.error for agent in session.agents if agent.name == "fan/b")


def test_branches_that_were_cancelled_are_cancelled_agents(tmp_path):

    async def own(node, *_):
        if node.id != "a":
            await asyncio.Event().wait()
        return Outcome.success()

    pipeline = Pipeline(FAN_OUT % "first_success", handlers={"own": own})
    result = pipeline.run(wait=True, durability="none", session=tmp_path)
    assert result.is_success
    session = session_in(tmp_path)
    assert agents(session) == {"fan/a": "complete", "fan/b": "cancelled", "fan/c": "cancelled"}
    assert session.status == "complete"


def test_a_resumed_run_begins_a_session_that_knows_all_its_branches(tmp_path):
    pipeline = Pipeline(FAN_OUT % "wait_all", handlers={"own": lambda *_: Outcome.success()})
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    paused = pipeline.run(wait=True, logs_root=tmp_path / "run", session=tmp_path / "one", stop_after=3)
    assert paused.status == "paused"
    assert session_in(tmp_path / "one").status == "cancelled"
    pipeline.resume(tmp_path / "run", session=tmp_path / "two").result()
    assert agents(session_in(tmp_path / "two")) == dict.fromkeys(("fan/a", "fan/b", "fan/c"), "complete")


def test_a_session_that_cannot_be_written_is_not_the_runs_fault(tmp_path, caplog):
    (tmp_path / ".founder-mode").write_text("in the way")
    pipeline = Pipeline(FAN_OUT % "wait_all", handlers={"own": lambda *_: Outcome.success()})
    with caplog.at_level(logging.WARNING):
        assert pipeline.run(wait=True, durability="none", session=tmp_path).is_success
    assert "the session's status cannot be written" in caplog.text


def test_a_run_without_a_fan_out_or_without_the_option_makes_no_session(tmp_path):
    straight = "digraph G { start [shape=Mdiamond] done [shape=Msquare] start -> done }"
    Pipeline(straight).run(wait=True, durability="none", session=tmp_path)
    assert not (tmp_path / ".founder-mode").exists()


def test_a_session_that_is_no_place_is_refused():
    straight = "digraph G { start [shape=Mdiamond] done [shape=Msquare] start -> done }"
    with pytest.raises(OptionError, match="session"):
        Pipeline(straight).run(wait=True, durability="none", session=3.5)
