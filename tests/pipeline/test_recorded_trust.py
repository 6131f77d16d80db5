"""Ruling 43: what a run directory records of backend, addresses and repository needs trust as a graph's words do."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from attractor_nb import Pipeline, ProviderBackend, Run
from attractor_nb.decisions.planning.recorded_choices import recorded_choices
from attractor_nb.errors import OptionError, TerminalError, UntrustedSource
from attractor_nb.runtime.stored_state import choices_of
from attractor_nb.storage.manifest_file import MANIFEST_NAME
from attractor_nb.storage.sealed_file import seal
from attractor_nb.storage.stored_run import read_facts

TEXT = "digraph G { start [shape=Mdiamond] a [prompt=a] b [prompt=b] done [shape=Msquare] start -> a -> b -> done }"
EVIL = "http://127.0.0.1:9/v1"


def evil_backend():
    return ProviderBackend("evil:m", endpoints={"evil": {"url": EVIL, "key_env": "OPENAI_API_KEY"}})


@pytest.fixture
def another_user(monkeypatch, tmp_path):
    """From its call on the directories that were made before are another user's."""

    def become():
        monkeypatch.setenv("ATTRACTOR_STATE_DIR", str(tmp_path / "another-user"))

    return become


@pytest.fixture
def asked(monkeypatch):
    """The prompts that the models of providers are asked; no network is used."""
    prompts = []

    async def run(_self, _node, prompt, _context):
        prompts.append(prompt)
        return "ok"

    monkeypatch.setattr(ProviderBackend, "run", run)
    return prompts


def stopped(backend=None, **options):
    run = Pipeline(TEXT, backend=backend or evil_backend()).run(logs_root="run", stop_after=2, **options)
    run.result(60)
    return run.logs_root


def changed(directory, **entries):
    """The directory, with a manifest written by hand."""
    (directory / MANIFEST_NAME).write_bytes(seal({**read_facts(directory), **entries}))
    return directory


def test_a_run_directory_of_somebody_else_asks_no_address_of_its_choice(another_user, asked):
    root = stopped()
    del asked[:]
    another_user()
    for call in (
        lambda: Run.load(root).resume(),
        lambda: Run.load(root).rewind("a"),
        lambda: Run.load(root).fork("a"),
        lambda: Run.load(root).debugger.rerun("a"),
        lambda: Pipeline(TEXT).resume(root),
    ):
        with pytest.raises(UntrustedSource, match=r"manifest\.endpoint\.evil\.url +http://127\.0\.0\.1:9/v1"):
            call()
    assert asked == []


def test_the_addresses_are_trusted_by_the_hash_that_the_refusal_names(another_user, asked):
    root = stopped()
    another_user()
    with pytest.raises(UntrustedSource) as caught:
        Run.load(root).resume()
    assert "key_env" in str(caught.value)
    with pytest.raises(UntrustedSource, match="trust names 000000000000"):
        Run.load(root).resume(trust="0" * 12)
    del asked[:]
    assert Run.load(root).fork("a", trust=caught.value.surface_hash).result(60).status == "success"
    assert Run.load(root).resume(trust=caught.value.surface_hash).result(60).status == "success"
    assert len(asked) == 3


def test_a_backend_of_ones_own_needs_no_trust_and_is_ones_own_from_then_on(another_user, asked):
    root = stopped()
    another_user()
    own = ProviderBackend("mine:m", endpoints={"mine": {"url": "http://127.0.0.1:8/v1"}})
    assert Run.load(root).resume(backend=own, stop_after=1).result(60).status == "paused"
    assert Run.load(root).resume().result(60).status == "success"


def test_ones_own_run_and_its_fork_go_on_without_a_question(asked):
    root = stopped()
    fork = Run.load(root).fork("a", stop_after=1)
    fork.result(60)
    assert Run.load(fork.logs_root).resume().result(60).status == "success"
    assert Run.load(root).resume().result(60).status == "success"


def test_a_trusted_resume_does_not_make_the_addresses_ones_own(another_user, asked):
    root = stopped()
    another_user()
    Run.load(root).resume(trust=True, stop_after=1).result(60)
    with pytest.raises(UntrustedSource):
        Run.load(root).resume()


def test_an_agent_that_a_run_directory_names_needs_trust(another_user, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    agent = tmp_path / "bin" / "claude"
    agent.write_text("#!/bin/sh\ntouch started\n")
    agent.chmod(0o700)
    monkeypatch.setenv("PATH", f"{agent.parent}:{os.environ['PATH']}")
    root = changed(stopped("simulated"), backend="claude")
    another_user()
    with pytest.raises(UntrustedSource, match=r"manifest\.backend +claude"):
        Run.load(root).resume()
    assert not Path("started").exists()


def test_a_repository_that_a_run_directory_names_needs_trust(another_user, tmp_path):
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run(["git", "-C", str(repository), *who, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    root = stopped("simulated", workdir=repository, isolation="worktree")
    another_user()
    with pytest.raises(UntrustedSource, match=r"manifest\.worktree\.repository"):
        Run.load(root).resume()


@pytest.fixture
def stopped_map(asked, monkeypatch, tmp_path):
    """A map whose row has failed in its second stage; its row's directory."""
    ok = ProviderBackend.run

    async def refuse(self, node, prompt, context):
        if node.id == "b":
            raise TerminalError("no credit")
        return await ok(self, node, prompt, context)

    monkeypatch.setattr(ProviderBackend, "run", refuse)
    Pipeline(TEXT).map([{"x": 1}], map_dir=tmp_path / "map", backend=evil_backend()).result()
    monkeypatch.setattr(ProviderBackend, "run", ok)
    del asked[:]
    return next(tmp_path.glob("map/row-*"))


def test_a_map_of_somebody_else_asks_no_address_of_its_choice(another_user, asked, stopped_map):
    assert choices_of(stopped_map.parent, Pipeline(TEXT).graph, is_backend_given=False)
    another_user()
    for call in (
        lambda: Pipeline(TEXT).resume_map(stopped_map.parent, failed="retry"),
        lambda: Run.load(stopped_map).rewind("b"),
    ):
        with pytest.raises(UntrustedSource, match=r"manifest\.endpoint\.evil\.url"):
            call()
    assert asked == []


def test_a_row_of_ones_own_map_goes_on_without_a_question(asked, stopped_map):
    assert Run.load(stopped_map).rewind("b").result(60).status == "success"
    assert len(asked) == 1


def test_a_run_of_the_older_layout_asks_no_address_of_its_choice(another_user, asked):
    manifest = read_facts(stopped())
    old = Path("old")
    old.mkdir()
    (old / MANIFEST_NAME).write_bytes(seal(manifest))
    (old / "pipeline.dot").write_text(TEXT)
    checkpoint = {"current_node": "a", "completed_nodes": ["start"], "context": {}, "timestamp": 1.0}
    (old / "checkpoint.json").write_text(json.dumps(checkpoint))
    another_user()
    del asked[:]
    with pytest.raises(UntrustedSource, match=r"manifest\.endpoint\.evil\.url") as caught:
        Pipeline(TEXT).resume(old)
    assert asked == []
    assert Pipeline(TEXT).resume(old, trust=caught.value.surface_hash).result(60).status == "success"


def test_a_copied_run_directory_is_one_of_somebody_else(asked):
    shutil.copytree(stopped(), "copy")
    with pytest.raises(UntrustedSource, match="run directory"):
        Run.load("copy").resume()


@pytest.mark.parametrize(
    "endpoint",
    [
        {"name": "evil", "url": EVIL, "key_env": "HOME", "api": "chat", "rates": {}},
        {"name": "evil", "url": "file:///etc/passwd", "key_env": "", "api": "chat", "rates": {}},
    ],
    ids=["no key", "no address"],
)
def test_a_recorded_endpoint_is_checked_as_a_written_one(endpoint, asked):
    """A manifest that was changed by hand sends no other variable than a key, and to nothing but an address."""
    root = stopped()
    facts = read_facts(root)["backend_facts"]
    changed(root, backend_facts={**facts, "options": {**facts["options"], "endpoints": {"evil": endpoint}}})
    with pytest.raises(OptionError, match=r"the manifest of this run records no endpoint: endpoint\.evil"):
        Run.load(root).resume(trust=True)


@pytest.mark.parametrize(
    ("manifest", "shown"),
    [
        ({"backend": "llm", "backend_facts": {"options": {"base_url": EVIL}}}, [("manifest.base_url", EVIL)]),
        ({"backend": "llm", "backend_facts": {"options": {"system_prompt": "x"}}}, [("manifest.system_prompt", "x")]),
        ({"backend": "llm", "backend_facts": {"options": [1]}}, [("manifest.backend_facts", '{"options": [1]}')]),
        ({"backend": "llm", "backend_facts": [1]}, [("manifest.backend_facts", "[1]")]),
        ({"backend_facts": {"options": {"endpoints": [1]}}}, [("manifest.endpoints", "[1]")]),
        ({"backend_facts": {"options": {"endpoints": {"e": 1}}}}, [("manifest.endpoint.e", "1")]),
        ({"backend_facts": {"options": {"endpoints": {"openai": {"name": "openai", "rates": {"x": 1}}}}}}, []),
        ({"isolation": "worktree", "workdir": "/r"}, [("manifest.workdir", "/r")]),
        ({"backend": "answer (own)"}, []),
        ({"backend": "local"}, []),
        ({}, []),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_what_a_manifest_chooses(manifest, shown):
    found = recorded_choices(manifest, manifest, is_backend_given=False)
    assert [(entry.attribute, entry.text) for entry in found] == shown
