"""`isolation="worktree"`: a branch and a commit for each stage, and the user's checkout stays as it is."""

import shutil
import subprocess
import sys

import pytest

from attractor_nb import Pipeline, Run
from attractor_nb.errors import OptionError, StorageError
from attractor_nb.model.events import RunWarning
from attractor_nb.pipeline.runs import runs
from attractor_nb.runtime.workspace import worktree as worktree_index
from attractor_nb.runtime.workspace.worktree import worktree_facts, worktree_of
from attractor_nb.storage.stored_run import read_facts
from tests import warm
from tests.waiting import wait_until

FRAME = "digraph d {{ start [shape=Mdiamond] done [shape=Msquare] {body} }}"
STEPS = FRAME.format(
    body="""node [shape=parallelogram, idempotent=true]
    one [tool_command="echo 1 >> a.txt"] look [tool_command="cat *.txt"] two [tool_command="echo 2 >> a.txt; rm gone.txt"]
    start -> one -> look -> two -> done"""
)


def git(*arguments, cwd="."):
    return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository of a user with settings of her own, in which the test works."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    place = tmp_path / "project"
    place.mkdir()
    monkeypatch.chdir(place)
    git("init", "--quiet", "--initial-branch=main")
    git("config", "user.name", "Ada")
    git("config", "user.email", "ada@example.org")
    (place / "gone.txt").write_text("old\n")
    (place / ".gitignore").write_text(".attractor/\n*.log\n")
    git("add", "-A")
    git("commit", "--quiet", "-m", "first")
    return place


def commits(branch):
    return git("log", "--reverse", "--format=%s", f"main..{branch}").splitlines()


def warnings_of(observed):
    return [event.message for event in observed if isinstance(event, RunWarning)]


def output(result):
    return result.context.get("tool.output").strip()


def test_ruling_41_each_stage_that_changes_files_is_a_commit_on_the_branch_of_the_run(repository):
    before = git("rev-parse", "HEAD")
    result = Pipeline(STEPS).run(wait=True, isolation="worktree")
    assert result.status == "success", result.reason
    assert result.branch == f"attractor/{result.run_id}"
    assert commits(result.branch) == ["one: success", "two: success"]
    assert git("show", f"{result.branch}:a.txt") == "1\n2"
    assert (git("rev-parse", "HEAD"), git("status", "--porcelain")) == (before, "")
    assert git("branch", "--show-current") == "main"
    author = "attractor-nb attractor-nb@localhost"
    assert (
        git("log", "-1", "--format=%an %ae", result.branch)
        == git("log", "-1", "--format=%cn %ce", result.branch)
        == author
    )
    said = git("log", "-1", "--format=%B", result.branch)
    assert f"Attractor-Run: {result.run_id}\nAttractor-Stage: two, visit 1, attempt 1" in said


def test_run_changes_and_the_inspector_show_what_changed(repository):
    run = Pipeline(STEPS).run(isolation="worktree")
    run.result(60)
    changes = run.changes()
    assert [str(file) for file in changes.files] == ["a.txt  +2 -0", "gone.txt  +0 -1"]
    assert "+1\n+2" in changes.diff
    assert f"git -C {repository} merge {changes.branch}" in str(changes)
    assert "+2" in run["two"].files("changes.diff")
    assert run["look"].files("changes.diff") is None
    assert "--- changes\n" in str(run.inspect("two"))
    assert run.inspect("two").to_plain()["changes"].startswith("diff --git")
    assert f"works in {run.result().workdir}" in run.details()


def test_what_a_diff_holds_steers_no_terminal_and_no_page(repository):
    body = r"""one [shape=parallelogram, tool_command="printf '\\033[2J<script>alert(1)</script>\\n' > a.txt"] start -> one -> done"""
    result = Pipeline(FRAME.format(body=body)).run(wait=True, isolation="worktree")
    changes = result.changes()
    assert "\x1b" not in str(changes)
    assert r"\x1b[2J" in str(changes)
    assert "<script>" not in changes._repr_mimebundle_()["text/html"]


def test_a_rewind_goes_back_in_the_worktree_and_keeps_what_was_there(repository):
    run = Pipeline(STEPS).run(isolation="worktree")
    first = run.result(60)
    tip = git("rev-parse", first.branch)
    warned = []
    again = run.rewind("look", observers=[warned.append]).result(60)
    assert again["look"].files("stdout.txt") == "1\nold\n"
    assert commits(again.branch) == ["one: success", "two: success"]
    kept = f"{again.branch}-aside-1"
    assert git("rev-parse", kept) == tip
    assert any(kept in getattr(event, "message", "") for event in warned)


def test_a_fork_has_a_worktree_of_its_own_from_the_commit_of_that_moment(repository):
    run = Pipeline(STEPS).run(isolation="worktree")
    first = run.result(60)
    fork = run.fork("two")
    second = fork.result(60)
    assert second.branch == f"attractor/{second.run_id}" != first.branch
    assert second.workdir != first.workdir
    assert git("merge-base", first.branch, second.branch) == git("rev-parse", f"{first.branch}~1")
    assert [str(file) for file in fork.changes().files] == ["a.txt  +2 -0", "gone.txt  +0 -1"]


@pytest.mark.parametrize("moment", ["before the commit of git", "before the record of the log"])
def test_a_run_that_is_killed_between_work_and_record_goes_on_as_if_the_stage_had_not_begun(
    repository, monkeypatch, moment
):
    from attractor_nb.engine.runner import Runner
    from attractor_nb.runtime.workspace.worktree import Worktree

    keep, commit_stage = Worktree.keep, Runner.commit_stage

    def dies_at_git(self, message):
        if message.startswith("two"):
            raise StorageError("the disk is gone", path=str(self.path))
        return keep(self, message)

    def dies_at_log(self, attempts, effect):
        if effect.event.name == "two":
            raise StorageError("the disk is gone", path=str(attempts.store.logs_root))
        return commit_stage(self, attempts, effect)

    with monkeypatch.context() as patch:
        if "git" in moment:
            patch.setattr(Worktree, "keep", dies_at_git)
        else:
            patch.setattr(Runner, "commit_stage", dies_at_log)
        run = Pipeline(STEPS).run(isolation="worktree")
        with pytest.raises(StorageError, match="the disk is gone"):
            run.result(60)
    assert (run.logs_root / "worktree" / "a.txt").read_text() == "1\n2\n"
    result = Pipeline(STEPS).resume(run.logs_root).result(60)
    assert result.status == "success"
    assert (run.logs_root / "worktree" / "a.txt").read_text() == "1\n2\n"
    assert commits(result.branch) == ["one: success", "two: success"]


def test_what_a_person_mends_while_the_run_stands_still_stays(repository):
    first = Pipeline(STEPS).run(wait=True, isolation="worktree", stop_after=2)
    (first.workdir / "a.txt").write_text("mended\n")
    result = Pipeline(STEPS).resume(first.logs_root).result(60)
    assert result["look"].files("stdout.txt") == "mended\nold\n"


def test_a_worktree_that_is_gone_is_made_again_from_its_branch(repository):
    first = Pipeline(STEPS).run(wait=True, isolation="worktree", stop_after=2)
    shutil.rmtree(first.workdir)
    result = Pipeline(STEPS).resume(first.logs_root).result(60)
    assert result["look"].files("stdout.txt") == "1\nold\n"


def test_a_run_directory_that_was_moved_goes_on(repository):
    first = Pipeline(STEPS).run(wait=True, isolation="worktree", stop_after=2)
    moved = repository / ".attractor" / "moved"
    first.logs_root.rename(moved)
    result = Pipeline(STEPS).resume(moved, trust=True).result(60)
    assert result.status == "success", result.reason
    assert result.workdir == moved / "worktree"


def test_an_agent_that_changes_branches_commits_and_detaches_moves_no_branch_of_the_user(repository):
    git("branch", "feature")
    before = git("rev-parse", "feature")
    body = """node [shape=parallelogram] one [tool_command="git checkout -q feature && echo x > x.txt"]
    two [tool_command="git -c user.name=a -c user.email=b commit -q --allow-empty -m own && git checkout -q --detach && echo y > y.txt"]
    start -> one -> two -> done"""
    result = Pipeline(FRAME.format(body=body)).run(wait=True, isolation="worktree")
    assert result.status == "success", result.reason
    assert git("rev-parse", "feature") == before
    assert commits(result.branch) == ["one: success", "own", "two: success"]


def test_no_hook_no_signature_no_setting_and_no_variable_of_the_user_takes_part(repository, monkeypatch):
    for name in ("pre-commit", "commit-msg", "post-commit", "post-checkout", "reference-transaction"):
        hook = repository / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {repository.parent}/hook-ran\nexit 1\n")
        hook.chmod(0o755)
    git("config", "commit.gpgSign", "true")
    settings = (repository / ".git" / "config").read_text()
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Mallory")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    result = Pipeline(STEPS).run(wait=True, isolation="worktree")
    monkeypatch.delenv("GIT_DIR")
    assert result.status == "success", result.reason
    assert git("log", "-1", "--format=%an", result.branch) == "attractor-nb"
    assert not (repository.parent / "hook-ran").exists()
    assert (repository / ".git" / "config").read_text() == settings


def test_a_run_in_a_folder_of_the_repository_works_in_that_folder_of_the_worktree(repository, monkeypatch):
    (repository / "sub").mkdir()
    monkeypatch.chdir(repository / "sub")
    result = Pipeline(FRAME.format(body='one [shape=parallelogram, tool_command="pwd"] start -> one -> done')).run(
        wait=True, isolation="worktree"
    )
    assert output(result) == str(result.workdir) == str((result.logs_root / "worktree" / "sub").absolute())


def test_changes_that_are_not_committed_are_not_in_the_worktree_and_the_user_is_told(repository):
    (repository / "gone.txt").write_text("changed\n")
    warned = []
    result = Pipeline(STEPS).run(wait=True, isolation="worktree", observers=[warned.append])
    assert result["look"].files("stdout.txt") == "1\nold\n"
    (told,) = [event.message for event in warned if type(event).__name__ == "RunWarning"]
    assert told.startswith(f"1 file in {repository} is changed and not committed")
    assert (repository / "gone.txt").read_text() == "changed\n"


def test_rows_of_a_map_have_a_worktree_and_a_branch_each(repository):
    result = Pipeline(STEPS).map([{"n": n} for n in range(3)], wait=True, isolation="worktree", map_dir="rows")
    assert [row.status for row in result.rows] == ["success"] * 3, result.rows
    branches = git("branch", "--format=%(refname:short)", "--list", "attractor/*").splitlines()
    assert [commits(branch) for branch in branches] == [["one: success", "two: success"]] * 3


def test_a_run_directory_behind_a_link_is_the_same_place(repository, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far")
    first = Pipeline(STEPS).run(wait=True, isolation="worktree", stop_after=2, logs_root=tmp_path / "link" / "run")
    assert commits(f"attractor/{first.run_id}") == ["one: success"]
    assert Pipeline(STEPS).resume(tmp_path / "far" / "run", trust=True).result(60).status == "success"


def test_a_process_that_is_killed_in_a_stage_loses_nothing_that_was_committed(repository):
    """A real SIGKILL, in the middle of what the stage writes; git's own lock is left behind, too."""
    script = """
import sys
from attractor_nb import Pipeline
Pipeline(open("p.dot").read()).run(wait=True, isolation="worktree", logs_root="../run")
"""
    steps = STEPS.replace(
        'two [tool_command="',
        'two [tool_command="if test ! -e ../../go; then echo half >> a.txt; touch ../../half; sleep 600; fi; ',
    )
    (repository / "p.dot").write_text(steps)
    here = repository.parent
    process = warm.Popen([sys.executable, "-c", script])
    wait_until(lambda: (here / "half").exists() or process.poll() is not None, "the second stage")
    process.kill()
    process.wait()
    assert (here / "half").exists()
    place = here / "run" / "worktree"
    assert (place / "a.txt").read_text() == "1\nhalf\n"
    next((repository / ".git" / "worktrees").iterdir()).joinpath("index.lock").touch()
    (here / "go").touch()
    result = Pipeline(steps).resume(here / "run").result(60)
    assert result.status == "success", result.reason
    assert (place / "a.txt").read_text() == "1\n2\n"
    assert commits(result.branch) == ["one: success", "two: success"]
    assert "half" in git("show", f"{result.branch}-aside-1:a.txt")


def test_a_detached_head_is_a_place_to_begin(repository):
    git("checkout", "--quiet", "--detach")
    assert Pipeline(STEPS).run(wait=True, isolation="worktree").status == "success"


def test_where_there_can_be_no_worktree_it_is_said_and_nothing_is_made(repository, tmp_path, monkeypatch):
    def refusal(place):
        monkeypatch.chdir(place)
        with pytest.raises(OptionError) as refused:
            Pipeline(STEPS).run(wait=True, isolation="worktree")
        assert not (place / ".attractor").exists()
        return f"{refused.value.message}; {refused.value.hint}"

    plain, empty, bare = (tmp_path / name for name in ("plain", "empty", "bare"))
    plain.mkdir()
    git("init", "--quiet", str(empty))
    git("init", "--quiet", "--bare", str(bare))
    assert "is in none; git init and commit" in refusal(plain)
    assert "has no commit yet" in refusal(empty)
    assert "is in a bare repository" in refusal(bare)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git, which is not on the PATH; install git" in refusal(repository)


def test_a_run_that_is_deleted_is_forgotten_by_the_repository_and_its_branch_stays(repository):
    result = Pipeline(STEPS).run(wait=True, isolation="worktree")
    told = runs()[0].delete(confirm=True)
    assert told == f"its changes stay on {result.branch}: git branch -D removes them"
    assert git("worktree", "list").count("\n") == 0
    assert commits(result.branch) == ["one: success", "two: success"]


def test_a_repository_that_is_gone_is_said_with_its_name(repository, monkeypatch):
    first = Pipeline(STEPS).run(wait=True, isolation="worktree", stop_after=2, logs_root=repository.parent / "run")
    monkeypatch.chdir(repository.parent)
    repository.rename(repository.parent / "moved")
    with pytest.raises(StorageError, match=f"the repository {repository} of the run's worktree is gone"):
        Pipeline(STEPS).resume(first.logs_root)


def test_branches_of_a_fan_out_and_children_commit_to_the_one_branch(repository):
    child = Pipeline(FRAME.format(body='c [shape=parallelogram, tool_command="echo c > c.txt"] start -> c -> done'))
    body = """fan [shape=component] join [shape=tripleoctagon] sub [type="pipeline", pipeline.name="child"]
    a [shape=parallelogram, tool_command="echo a > a.txt"] b [shape=parallelogram, tool_command="echo b > b.txt"]
    start -> fan -> a -> join  fan -> b -> join  join -> sub -> done"""
    result = Pipeline(FRAME.format(body=body), pipelines={"child": child}).run(wait=True, isolation="worktree")
    assert result.status == "success", result.reason
    assert sorted(git("ls-tree", "--name-only", result.branch).splitlines()) == [
        ".gitignore",
        "a.txt",
        "b.txt",
        "c.txt",
        "gone.txt",
    ]
    assert "c: success" in commits(result.branch)
    run = Run.load(result.logs_root)
    again = run.rewind("sub").result(60)
    assert again.status == "success", again.reason
    assert git("status", "--porcelain", cwd=result.workdir) == ""


def test_a_run_without_a_worktree_says_what_keeps_changes(tmp_path):
    result = Pipeline(FRAME.format(body="start -> done")).run(wait=True)
    with pytest.raises(OptionError, match=f"nothing keeps what the run changes in {tmp_path}") as refused:
        result.changes()
    assert 'isolation="worktree"' in refused.value.hint


def test_a_repository_that_git_cannot_read_is_quoted_with_another_way(repository):
    (repository / ".git/index").write_bytes(b"no index")
    with pytest.raises(OptionError, match=r"git status failed: .*index") as told:
        Pipeline(STEPS).run(wait=True, isolation="worktree")
    assert told.value.hint.startswith("fix it, or ")


def test_a_worktree_that_the_repository_has_forgotten_keeps_nothing_and_says_where(repository):
    result = Pipeline(STEPS).run(wait=True, isolation="worktree")
    facts = worktree_facts(read_facts(result.logs_root))
    shutil.rmtree(repository / ".git/worktrees")
    worktree = worktree_of(result.logs_root / "worktree", facts)
    with pytest.raises(StorageError, match=f"is not a worktree of {repository}") as told:
        worktree.keep("anything")
    assert told.value.hint == "resume the run"


def test_a_manifest_that_does_not_say_enough_of_the_worktree_is_told(tmp_path):
    with pytest.raises(StorageError, match="the manifest does not say the branch of the run's worktree"):
        worktree_of(tmp_path, {"repository": str(tmp_path), "base": "0"})


NESTED = "mkdir -p new/app; cd new/app; git init -q; echo hi > f.txt"
OWN_COMMIT = "git add -A; git -c user.name=a -c user.email=b commit -qm own"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(NESTED, id="without a commit"),
        pytest.param(f"{NESTED}; {OWN_COMMIT}", id="with a commit"),
        pytest.param(f"{NESTED}; {OWN_COMMIT}; cd ../..; {OWN_COMMIT}", id="committed as a link"),
    ],
)
def test_ruling_49_a_nested_repository_is_told_of_and_skipped_and_the_run_goes_on(repository, command):
    body = f"""node [shape=parallelogram] one [tool_command="{command}"]
    two [tool_command="echo two > b.txt; cat new/app/f.txt"] start -> one -> two -> done"""
    observed = []
    result = Pipeline(FRAME.format(body=body)).run(wait=True, isolation="worktree", observers=[observed.append])
    assert result.status == "success", result.reason
    assert output(result) == "hi"
    assert "b.txt" in git("ls-tree", "-r", "--name-only", result.branch).splitlines()
    (told,) = warnings_of(observed)
    assert told == (
        f"new/app in the worktree of the run is a git repository of its own: its files are not on the branch "
        f"{result.branch}. To have them committed, remove new/app/.git"
    )
    again = Run.load(result.logs_root).rewind("two").result(60)
    assert again.status == "success", again.reason


def test_ruling_49_a_declared_submodule_is_committed_as_a_link_without_a_warning(repository, tmp_path):
    git("init", "--quiet", str(tmp_path / "library"))
    git("-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "1", "--allow-empty", cwd=tmp_path / "library")
    add = f"git -c protocol.file.allow=always submodule add -q {tmp_path}/library library"
    body = f'one [shape=parallelogram, tool_command="{add}"] start -> one -> done'
    observed = []
    result = Pipeline(FRAME.format(body=body)).run(wait=True, isolation="worktree", observers=[observed.append])
    assert result.status == "success", result.reason
    assert "160000" in git("ls-tree", result.branch, "library")
    assert not warnings_of(observed)


def test_ruling_49_a_stale_lock_of_the_index_is_waited_for_named_and_worked_around(repository, monkeypatch):
    monkeypatch.setattr(worktree_index, "LOCK_DELAYS_SECONDS", (0.0, 0.0))
    body = """node [shape=parallelogram] one [tool_command="touch $(git rev-parse --git-dir)/index.lock; echo 1 > b.txt"]
    two [tool_command="echo 2 > c.txt"] start -> one -> two -> done"""
    observed = []
    result = Pipeline(FRAME.format(body=body)).run(wait=True, isolation="worktree", observers=[observed.append])
    assert result.status == "success", result.reason
    assert commits(result.branch) == ["one: success", "two: success"]
    (told,) = warnings_of(observed)
    assert "index.lock is there: a git works in the worktree of the run, or was killed there" in told
    assert list((repository / ".git" / "worktrees").glob("*/index.lock")), "nobody's lock is taken away"


def test_ruling_49_a_lock_that_goes_away_is_waited_for(repository, monkeypatch):
    waited = []

    def release(seconds):
        waited.append(seconds)
        for lock in (repository / ".git" / "worktrees").glob("*/index.lock"):
            lock.unlink()

    monkeypatch.setattr(worktree_index, "sleep", release)
    body = """one [shape=parallelogram, tool_command="touch $(git rev-parse --git-dir)/index.lock; echo 1 > b.txt"]
    start -> one -> done"""
    observed = []
    result = Pipeline(FRAME.format(body=body)).run(wait=True, isolation="worktree", observers=[observed.append])
    assert commits(result.branch) == ["one: success"]
    assert (waited, warnings_of(observed)) == ([worktree_index.LOCK_DELAYS_SECONDS[0]], [])


def test_ruling_49_line_ends_that_git_is_told_to_refuse_are_committed(repository):
    git("config", "core.autocrlf", "true")
    git("config", "core.safecrlf", "true")
    body = r"""one [shape=parallelogram, tool_command="printf 'a\nb\n' > b.txt"] start -> one -> done"""
    result = Pipeline(FRAME.format(body=body)).run(wait=True, isolation="worktree")
    assert result.status == "success", result.reason
    assert commits(result.branch) == ["one: success"]


@pytest.mark.parametrize(
    "command",
    [
        "cd ..; rm -rf worktree",
        "cd ..; rm -rf worktree; ln -s /tmp worktree",
        "cd ..; rm -rf worktree; echo x > worktree",
    ],
)
def test_ruling_49_a_stage_that_removes_its_worktree_is_told_of_and_the_run_goes_on(repository, command):
    observed = []
    body = f"""node [shape=parallelogram] n [tool_command="{command}"] m [tool_command="echo k > k.txt"]
        start -> n -> m -> done"""
    result = Pipeline(FRAME.format(body=body)).run(wait=True, isolation="worktree", observers=[observed.append])
    assert result.status == "success", result.reason
    assert git("ls-tree", "-r", "--name-only", result.branch) == "k.txt"
    (warning,) = warnings_of(observed)
    assert "a stage removed the worktree of the run" in warning
    assert "deleted all files" in warning
    assert (repository / "gone.txt").read_text() == "old\n"


def test_a_worktree_folder_that_a_stage_removes_is_there_for_the_next_one(repository, monkeypatch):
    (repository / "part").mkdir()
    (repository / "part" / "a.txt").write_text("a\n")
    git("add", "-A")
    git("commit", "--quiet", "-m", "part")
    monkeypatch.chdir(repository / "part")
    body = """node [shape=parallelogram] n [tool_command="cd ..; rm -rf part"] m [tool_command="echo k > k.txt"]
        start -> n -> m -> done"""
    result = Pipeline(FRAME.format(body=body)).run(wait=True, isolation="worktree")
    assert result.status == "success", result.reason
    assert "part/k.txt" in git("ls-tree", "-r", "--name-only", "--full-tree", result.branch)


@pytest.mark.parametrize("command", ["rm -f .git", "echo 'gitdir: elsewhere' > .git", "rm .git; ln -s /nowhere .git"])
def test_ruling_49_without_its_git_file_a_later_command_does_not_change_the_checkout_of_the_user(repository, command):
    body = f"""node [shape=parallelogram] n [tool_command="{command}"]
        m [tool_command="echo k > k.txt; git rev-parse --show-toplevel; git rm -q --cached gone.txt"]
        start -> n -> m -> done"""
    result = Pipeline(FRAME.format(body=body)).run(wait=True, isolation="worktree")
    assert result.status == "success", result.reason
    assert output(result) == str(result.logs_root / "worktree")
    assert git("status", "--porcelain") == ""
