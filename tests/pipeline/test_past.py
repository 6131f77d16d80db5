"""The past of a run, from its handle: live, ended, loaded, or not stored at all."""

from __future__ import annotations

import pytest

from attractor_nb import Pipeline, Run
from attractor_nb.errors import RunNotFound
from attractor_nb.storage import stored_run
from attractor_nb.storage.log.event_log import read_log

TEXT = 'digraph g { graph [goal="ship"] start [shape=Mdiamond] plan done [shape=Msquare] start -> plan -> done }'


def test_a_loaded_run_has_the_same_past_as_the_one_that_has_just_ended(tmp_path):
    run = Pipeline(TEXT).run(logs_root=tmp_path / "run", backend="simulated")
    run.result()
    for shown in (run, Run.load(tmp_path / "run")):
        journal = shown.journal()
        assert [visit.node_id for visit in journal.visits] == ["start", "plan", "done"]
        (plan,) = journal.visits_of("plan")
        assert journal.context_before(plan)["graph.goal"] == "ship"
        assert journal.context_after(plan)["last_stage"] == "plan"
        assert shown.result().context["last_stage"] == journal.values_at(10**6)["last_stage"]


def test_a_run_that_is_stored_nowhere_has_no_past():
    run = Pipeline(TEXT).run(durability="none", backend="simulated")
    run.result()
    with pytest.raises(RunNotFound, match="nothing of run"):
        run.journal()


def test_the_log_of_a_loaded_run_is_read_once_for_all_that_looks_back(tmp_path, monkeypatch):
    Pipeline(TEXT).run(wait=True, logs_root=tmp_path / "run", backend="simulated")
    read = []
    monkeypatch.setattr(stored_run, "read_log", lambda root: read.append(root) or read_log(root))
    loaded = Run.load(tmp_path / "run")
    assert len(loaded.replay()) == len(loaded.journal().events)
    read.clear()  # a journal is the caller's own
    loaded.replay().to_plain()
    loaded.inspect("plan")
    loaded.explain()
    assert read == []


def test_what_a_log_got_after_it_was_loaded_is_seen(tmp_path):
    run = Pipeline(TEXT).run(wait=True, logs_root=tmp_path / "run", backend="simulated", stop_after=2)
    loaded = Run.load(tmp_path / "run")
    before = len(loaded.replay())
    assert run.status == "paused"
    Pipeline(TEXT).resume(tmp_path / "run", backend="simulated").result()
    assert len(loaded.replay()) > before
