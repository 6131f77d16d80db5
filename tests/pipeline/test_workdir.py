"""Ruling 41: commands, agents and tools of models of a run work in one place, and it is said which."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attractor_nb import Pipeline, Run
from attractor_nb.errors import OptionError, StorageError, UntrustedSource
from attractor_nb.pipeline.runs import runs
from attractor_nb.runtime.workspace.workspace import filling_of
from attractor_nb.stage import current_stage

FRAME = "digraph d {{ {graph} start [shape=Mdiamond] done [shape=Msquare] {body} }}"


def made(body, graph="", **options):
    return Pipeline(FRAME.format(body=body, graph=graph), **options)


def where(graph="", **options):
    """Says by `tool.output` where its command ran."""
    return made('where [shape=parallelogram, tool_command="pwd"] start -> where -> done', graph, **options)


def writes(name="made.txt", text="by an agent"):
    """Stands for an agent: a backend that writes a file where agents work."""

    def backend(node, prompt, context):
        place = current_stage().workplace.directory
        (place / name).write_text(text)
        return str(place)

    return backend


def output(result):
    return result.context.get("tool.output").strip()


def manifest(result):
    return json.loads((result.logs_root / "manifest.json").read_text())


def test_ruling_41_what_an_agent_wrote_the_command_after_it_finds_without_any_option(tmp_path):
    """The plainest pipeline of all: an agent writes, `pytest -q` tests; it tested something else."""
    pipeline = made(
        'write [prompt="Write it"] check [shape=parallelogram, tool_command="cat made.txt"] start -> write -> check -> done'
    )
    result = pipeline.run(wait=True, backend=writes())
    assert (result.status, output(result)) == ("success", "by an agent")
    assert (tmp_path / "made.txt").read_text() == "by an agent"


def test_ruling_41_the_place_is_where_the_run_was_started_and_always_recorded(tmp_path):
    result = where().run(wait=True)
    assert output(result) == str(tmp_path) == manifest(result)["workdir"] == str(result.workdir)
    assert f"works in {tmp_path}" in Run.load(result.logs_root).details()


def test_ruling_41_a_resume_works_where_the_run_did_wherever_it_is_called(tmp_path, monkeypatch):
    first = where().run(wait=True, stop_after=1, logs_root=tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    result = Run.load(first.logs_root).resume(trust=True).result(30)
    assert output(result) == str(tmp_path)


def test_ruling_41_a_resume_whose_place_is_gone_says_so_and_takes_another(tmp_path):
    place, other = tmp_path / "place", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    first = where().run(wait=True, stop_after=1, workdir=place)
    place.rmdir()
    with pytest.raises(OptionError, match=f"worked in {place}, and that directory is gone") as told:
        where().resume(first.logs_root)
    assert "--workdir DIR" in told.value.hint
    handle = where().resume(first.logs_root, workdir=other)
    result = handle.result(30)
    assert output(result) == str(other) == manifest(result)["workdir"]


def test_ruling_41_a_run_that_goes_on_elsewhere_warns_of_it(tmp_path):
    (tmp_path / "other").mkdir()
    first = where().run(wait=True, stop_after=1)
    warned = []
    where().resume(first.logs_root, workdir=tmp_path / "other", observers=[warned.append]).result(30)
    told = [event.message for event in warned if type(event).__name__ == "RunWarning"]
    assert told == [f"the run worked in {tmp_path} before, and is resumed in {tmp_path / 'other'}"]


@pytest.mark.parametrize("isolation", [None, "workspace"])
def test_ruling_41_child_runs_and_restarts_work_in_the_place_of_the_run(isolation):
    child = made('where [shape=parallelogram, tool_command="pwd >> seen.txt"] start -> where -> done')
    parent = made(
        """again [shape=parallelogram, tool_command="pwd >> seen.txt; test $(wc -l < seen.txt) -gt 2"]
        sub [type="pipeline", pipeline.name="child"] look [shape=parallelogram, tool_command="cat seen.txt"]
        start -> sub -> again
        again -> look [condition="outcome=success"]
        again -> sub [condition="outcome=fail", loop_restart=true]
        look -> done""",
        pipelines={"child": child},
    )
    result = parent.run(wait=True, isolation=isolation)
    assert result.status == "success", result.reason
    assert set(output(result).splitlines()) == {str(result.workdir)}


def test_ruling_41_rows_of_a_map_work_in_the_place_of_the_map(tmp_path):
    result = where().map([{"a": 1}, {"a": 2}], wait=True, map_dir="rows", outputs=["tool.output"])
    assert [row.outputs["tool.output"].strip() for row in result.rows] == [str(tmp_path)] * 2


def test_ruling_41_rows_with_isolation_have_a_workspace_each_and_a_resume_keeps_that(tmp_path):
    result = where().map(
        [{"a": 1}, {"a": 2}], wait=True, map_dir="rows", outputs=["tool.output"], isolation="workspace"
    )
    places = [str(tmp_path / "rows" / f"row-0000{row}" / "workspace") for row in (0, 1)]
    assert [row.outputs["tool.output"].strip() for row in result.rows] == places
    assert where().resume_map("rows").result().is_success


def test_a_workspace_is_fresh_recorded_and_used_again(tmp_path):
    (tmp_path / "here.txt").write_text("x")
    pipeline = made(
        """one [shape=parallelogram, tool_command="ls -A; touch one"] two [shape=parallelogram, tool_command="ls -A; pwd"]
        start -> one -> two -> done"""
    )
    first = pipeline.run(wait=True, isolation="workspace", stop_after=2)
    assert output(first) == ""
    result = pipeline.resume(first.logs_root).result(30)
    place = (first.logs_root / "workspace").absolute()
    assert output(result) == f"one\n{place}"
    assert manifest(result)["isolation"] == "workspace"
    assert not (tmp_path / "one").exists()


def test_a_graph_may_ask_for_a_place_of_its_own_and_an_option_decides(tmp_path):
    graph = 'graph [isolation="workspace"]'
    assert output(where(graph).run(wait=True)).endswith("/workspace")
    assert output(where(graph).run(wait=True, isolation="none")) == str(tmp_path)
    paused = where(graph).run(wait=True, isolation="none", stop_after=1)
    assert output(where(graph).resume(paused.logs_root).result(30)) == str(tmp_path)


def test_a_workspace_of_a_run_that_keeps_nothing_goes_away_with_it():
    result = where().run(wait=True, isolation="workspace", durability="none")
    assert not Path(output(result)).exists()


@pytest.fixture
def project(tmp_path):
    place = tmp_path / "project"
    (place / "src").mkdir(parents=True)
    (place / ".git").mkdir()
    (place / ".git" / "config").write_text("[core]")
    (place / "src" / "a.py").write_text("a")
    (place / ".hidden").write_text("h")
    (tmp_path / "secret").write_text("s")
    (place / "link").symlink_to(tmp_path / "secret")
    (place / "src" / "out").symlink_to(tmp_path)
    return place


LOOK = 'look [shape=parallelogram, tool_command="find . -mindepth 1 | sort; echo changed > src/a.py"] start -> look -> done'


def test_workspace_from_a_folder_copies_its_files_and_no_link(project):
    result = made(LOOK).run(wait=True, isolation="workspace", workspace_from=project)
    assert output(result).splitlines() == ["./.hidden", "./src", "./src/a.py"]
    assert (project / "src" / "a.py").read_text() == "a"
    assert manifest(result)["workspace_from"] == str(project)


def test_workspace_from_a_pattern_keeps_the_places_of_its_files(project, monkeypatch):
    monkeypatch.chdir(project)
    result = made(LOOK).run(wait=True, isolation="workspace", workspace_from="src/**/*.py")
    assert output(result).splitlines() == ["./src", "./src/a.py"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"isolation": "container"}, "unknown isolation 'container'"),
        ({"isolation": "workspace", "workdir": "."}, "exclude each other"),
        ({"workspace_from": "."}, "needs a run in a workspace"),
        ({"isolation": "workspace", "workspace_from": "none-*"}, "matches no file"),
        ({"isolation": "workspace", "workspace_from": "../*"}, "leads out of the working directory"),
        ({"isolation": "worktree", "durability": "none"}, "keeps nothing"),
        ({"workdir": "none"}, "is not a directory"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_places_that_contradict_each_other_or_are_not_there_are_refused_before_anything_is_made(
    tmp_path, options, message
):
    with pytest.raises(OptionError, match=message):
        where().run(wait=True, **options)
    assert not (tmp_path / ".attractor").exists()


def test_a_place_on_this_machine_and_workers_contradict_each_other():
    with ThreadPoolExecutor(1) as executor, pytest.raises(OptionError, match="has stages done elsewhere"):
        where().run(wait=True, executor=executor, isolation="workspace")


def test_a_run_with_a_place_of_its_own_is_not_resumed_elsewhere(tmp_path):
    first = where().run(wait=True, isolation="workspace", stop_after=1)
    with pytest.raises(OptionError, match="works in its own workspace"):
        where().resume(first.logs_root, workdir=tmp_path)


def test_a_child_of_an_isolated_run_cannot_leave_its_place(tmp_path):
    (tmp_path / "outside").mkdir()
    child = where()
    parent = made(
        f'sub [type="pipeline", pipeline.name="child", stack.child_workdir="{tmp_path / "outside"}"] start -> sub -> done',
        pipelines={"child": child},
    )
    assert parent.run(wait=True).status == "success"
    result = parent.run(wait=True, isolation="workspace")
    assert "leads out of the workspace of the run" in result.reason


@pytest.mark.parametrize(("trust", "is_isolated"), [(False, True), (True, False)])
def test_ruling_41_a_text_from_a_stream_that_nobody_trusts_works_in_a_place_of_its_own(trust, is_isolated):
    source = FRAME.format(graph="", body='say [prompt="Say"] start -> say -> done')
    pipeline = Pipeline(source, origin="a stream", backend=writes())
    result = pipeline.run(wait=True, trust=trust)
    assert Path("made.txt").exists() != is_isolated
    assert (result.logs_root / "workspace" / "made.txt").exists() == is_isolated


@pytest.mark.parametrize(
    ("options", "place"),
    [({}, "{}"), ({"workdir": "sub"}, "{}/sub"), ({"isolation": "worktree"}, "a worktree of the run's own")],
    ids=["cwd", "workdir", "worktree"],
)
def test_ruling_41_who_is_asked_to_trust_commands_is_told_where_they_run(tmp_path, options, place):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.dot").write_text(where().to_dot())
    with pytest.raises(UntrustedSource) as refused:
        Pipeline(Path("a.dot")).run(wait=True, **options)
    assert f"\ncommands run in {place.format(tmp_path)}\n" in str(refused.value)


def test_a_fork_of_a_run_with_a_workspace_works_in_a_copy_of_it(tmp_path):
    pipeline = made(
        """one [shape=parallelogram, tool_command="touch one"] two [shape=parallelogram, tool_command="ls; pwd"]
        start -> one -> two -> done"""
    )
    first = pipeline.run(isolation="workspace")
    first.result(30)
    forked = first.fork("two").result(30)
    assert output(forked) == f"one\n{(forked.logs_root / 'workspace').absolute()}"
    assert manifest(forked)["workdir"] == str((forked.logs_root / "workspace").absolute())


def test_a_run_with_a_workspace_is_deleted_whole(tmp_path):
    result = where().run(wait=True, isolation="workspace")
    assert runs()[0].delete(confirm=True) == ""
    assert not result.logs_root.exists()


def test_a_run_gets_its_worktree_when_it_begins(tmp_path):
    first = where().run(wait=True, stop_after=1, logs_root=tmp_path / "run")
    with pytest.raises(OptionError, match="gets its worktree when it begins") as told:
        where().resume(first.logs_root, isolation="worktree")
    assert told.value.hint == "start it anew, or leave isolation out"


def test_ruling_41_a_map_whose_place_is_gone_says_so(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    where().map([{}], map_dir=tmp_path / "map", workdir=place, wait=True)
    place.rmdir()
    with pytest.raises(OptionError, match=f"the map worked in {place}, which is gone") as told:
        where().resume_map(tmp_path / "map")
    assert "restore it" in told.value.hint


def test_a_current_directory_that_was_removed_is_told_before_anything_is_made(tmp_path, monkeypatch):
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    pipeline = where()
    (tmp_path / "given.dot").write_text(pipeline.to_dot())
    for begun in (pipeline, Pipeline(tmp_path / "given.dot")):
        with pytest.raises(OptionError, match="the current directory was removed") as told:
            begun.run(wait=True, logs_root=tmp_path / "run")
        assert "--workdir DIR" in told.value.hint
    with pytest.raises(OptionError, match="the current directory was removed"):
        made('sub [type=pipeline, pipeline.dotfile="given.dot"] start -> sub -> done')
    assert not (tmp_path / "run").exists()
    assert output(pipeline.run(wait=True, logs_root=tmp_path / "run", workdir=tmp_path)) == str(tmp_path)


def test_an_isolation_that_there_is_not_is_refused_wherever_it_is_written(tmp_path):
    pipeline = where("isolation=container;", severity={"bad_value": "warning"})
    with pytest.raises(OptionError, match="unknown isolation 'container'") as told:
        pipeline.run(wait=True)
    assert "worktree" in told.value.hint
    assert not (tmp_path / ".attractor").exists()


def test_workspace_from_has_a_bound_and_names_what_to_do(project, tmp_path, monkeypatch):
    monkeypatch.setattr("attractor_nb.runtime.workspace.workspace.MAX_FILES", 1)
    with pytest.raises(OptionError, match="has more than 1 files or") as told:
        where().run(wait=True, isolation="workspace", workspace_from=project)
    assert "name less of it" in told.value.hint
    assert not (tmp_path / ".attractor").exists()


def test_a_file_that_goes_while_a_workspace_is_filled_is_named(project, tmp_path):
    filling = filling_of(project)
    (project / "src/a.py").unlink()
    with pytest.raises(StorageError, match=r"copy .*src/a.py"):
        filling.fill(tmp_path / "workspace")
