"""A resumed run is answered as it was before; it never goes on with simulated answers by accident."""

import asyncio

import pytest

from attractor_nb import Pipeline, ProviderBackend, Run, RunResult, load_pipeline, runs
from attractor_nb.backends.llm.addresses import FILE_NAME
from attractor_nb.errors import OptionError
from attractor_nb.storage.stored_run import read_facts

SOURCE = "digraph G { start [shape=Mdiamond] a [prompt=a] b [prompt=b] done [shape=Msquare] start -> a -> b -> done }"


def answer(prompt):
    return f"answered {prompt}"


def _stopped(tmp_path, backend):
    Pipeline(SOURCE).run(wait=True, logs_root=tmp_path / "run", backend=backend, stop_after=2)
    return tmp_path / "run"


def test_a_run_on_ones_own_backend_is_not_resumed_without_it(tmp_path):
    logs_root = _stopped(tmp_path, answer)
    with pytest.raises(OptionError, match="prompts of this run were answered by answer, and no backend is given"):
        Pipeline(SOURCE).resume(logs_root)
    result = Pipeline(SOURCE, backend=answer).resume(logs_root).result()
    assert result["b"].response.startswith("answered")


def test_a_simulated_run_is_resumed_as_it_was(tmp_path):
    result = Pipeline(SOURCE).resume(_stopped(tmp_path, None)).result()
    assert result["b"].response.startswith("[Simulated]")


def test_another_backend_may_be_given(tmp_path):
    result = Pipeline(SOURCE).resume(_stopped(tmp_path, answer), backend="simulated").result()
    assert result["b"].response.startswith("[Simulated]")


def test_the_handle_of_a_run_still_has_what_answered_it(tmp_path):
    run = Pipeline(SOURCE).run(logs_root=tmp_path / "run", backend=answer, stop_after=2)
    run.result()
    fork = run.fork("a", logs_root=tmp_path / "fork")
    assert fork.result()["a"].response == "answered a"
    assert run.resume().result()["b"].response.startswith("answered")
    assert fork.fork("b", backend="simulated").result()["b"].response.startswith("[Simulated]")
    with pytest.raises(OptionError, match="no backend is given"):
        Run.load(tmp_path / "run").fork("a")


def test_a_simulation_that_was_asked_for_once_is_not_what_a_later_resume_takes(tmp_path):
    """Ruling 48: the manifest keeps both backends, and each simulation must be requested."""
    root = _stopped(tmp_path, answer)
    Pipeline(SOURCE).resume(root, backend="simulated", stop_after=1).result()
    assert read_facts(root)["backend"] == "answer (own)"
    assert read_facts(root)["backends"] == ["answer (own)", "simulated"]
    with pytest.raises(OptionError, match="answered by answer, and no backend is given"):
        Pipeline(SOURCE).resume(root)


def test_a_fork_says_what_answered_in_it_and_its_parent_what_answered_there(tmp_path):
    root = _stopped(tmp_path, answer)
    fork = Run.load(root).fork("a", backend="simulated", logs_root=tmp_path / "fork")
    assert fork.result().mark == "simulated"
    assert (read_facts(fork.logs_root)["backends"], read_facts(root)["backends"]) == (["simulated"], ["answer (own)"])


def test_models_of_providers_give_way_to_another_backend_in_the_manifest(tmp_path):
    backend = ProviderBackend("gpt-5.2", base_url="http://127.0.0.1:9/v1")
    _stopped(tmp_path, None)
    root = tmp_path / "run"
    Pipeline(SOURCE).resume(root, backend=backend, max_steps=1).result()
    assert read_facts(root)["backend_facts"]
    Pipeline(SOURCE).resume(root, backend="simulated", max_steps=1).result()
    assert read_facts(root)["backend_facts"]  # a simulation does not take their place (ruling 48)
    Pipeline(SOURCE).resume(root, backend=answer, max_steps=1).result()
    facts = read_facts(root)
    assert (facts["backend"], facts.get("backend_facts") or None) == ("answer (own)", None)


@pytest.mark.parametrize("key", ["internal.retry_count.a", "graph.goal"])
def test_parameters_do_not_reach_the_engines_own_keys(key, tmp_path):
    with pytest.raises(OptionError, match="are the engine's own"):
        Pipeline(SOURCE).run(params={key: 1}, logs_root=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_settings_file_that_cannot_be_read_is_named_by_a_replay_too(tmp_path, monkeypatch):
    """The settings are part of the question: without them another call would be looked for."""
    place = {"cassette": tmp_path / "one.json", "cassette_mode": "replay", "durability": "fast"}
    Pipeline(SOURCE).run(wait=True, backend=answer, **{**place, "cassette_mode": "record"})
    monkeypatch.setenv("ATTRACTOR_CONFIG_DIR", str(tmp_path))
    (tmp_path / FILE_NAME).write_text("[broken")
    with pytest.raises(OptionError, match=f"{FILE_NAME} cannot be read") as told:
        Pipeline(SOURCE).run(wait=True, backend="llm", logs_root=tmp_path / "run", **place)
    assert told.value.hint == "correct the file, or remove it"
    assert not (tmp_path / "run").exists()


def test_models_of_providers_are_listed_as_what_they_are(tmp_path):
    backend = ProviderBackend("gpt-5.2", base_url="http://127.0.0.1:9/v1")
    Pipeline(SOURCE).run(wait=True, logs_root=tmp_path / "run", backend=backend, stop_after=1)
    facts = read_facts(tmp_path / "run")
    assert (facts["backend"], facts["backend_facts"]["options"]["model"]) == ("llm", "gpt-5.2")
    assert "own" not in (tmp_path / "run" / "events.jsonl").read_text().splitlines()[0]


@pytest.mark.parametrize("given", ["run", "map"])
def test_a_loaded_pipeline_has_the_name_that_was_recorded(tmp_path, given):
    pipeline = Pipeline(SOURCE.replace(" G ", " "), name="weekly")
    if given == "run":
        pipeline.run(wait=True, logs_root=tmp_path / "it")
    else:
        pipeline.map([{}], wait=True, map_dir=tmp_path / "it")
    assert load_pipeline(tmp_path / "it").name == "weekly"
    assert load_pipeline(tmp_path / "it", name="daily").name == "daily"


WAYS_ON = {
    "Pipeline.resume": lambda root, **options: Pipeline(SOURCE).resume(root, **options),
    "Run.resume": lambda root, **options: Run.load(root).resume(**options),
    "Run.rewind": lambda root, **options: Run.load(root).rewind("a", **options),
    "Run.fork": lambda root, **options: Run.load(root).fork("a", **options),
    "RunRow.resume": lambda root, **options: runs(root.parent)[0].resume(**options),
}


@pytest.mark.parametrize("way", WAYS_ON)
def test_every_way_to_go_on_takes_wait(tmp_path, way):
    result = WAYS_ON[way](_stopped(tmp_path, None), wait=True)
    assert isinstance(result, RunResult)
    assert result.status == "success"


@pytest.mark.parametrize("way", WAYS_ON)
def test_no_way_to_go_on_blocks_the_loop_in_which_it_would_work(tmp_path, way):
    root = _stopped(tmp_path, None)

    async def go_on():
        WAYS_ON[way](root, wait=True, host="kernel")

    with pytest.raises(OptionError, match="a blocking call would stop it"):
        asyncio.run(go_on())
    assert [path.name for path in tmp_path.iterdir() if path.is_dir() and not path.name.startswith(".")] == ["run"]
