"""examples/fix_loop.dot with an agent that is a real process, in a real project with real tests (ruling 41)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb import ClaudeBackend, Pipeline

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fix_loop.dot"
ASSERTION = "assert mean([]) == 0"
AGENT = f"""#!{sys.executable}
# Speaks Claude Code's stream. It forgets the empty list at first, and mends that when it is called again.
import json, pathlib, sys
sys.stdin.read()
code = pathlib.Path("stats.py")
wrong = "def mean(values):\\n    return sum(values) / max(len(values), 1) + (not values)\\n"
code.write_text(wrong.replace(" + (not values)", "") if code.exists() else wrong)
for line in (
    {{"type": "system", "subtype": "init", "session_id": "s1", "model": "m", "tools": []}},
    {{"type": "result", "subtype": "success", "is_error": False, "result": "wrote stats.py", "session_id": "s1"}},
):
    print(json.dumps(line), flush=True)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a test, and an agent on the machine."""
    agent = tmp_path / "claude"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    place = tmp_path / "project"
    place.mkdir()
    (place / "test_stats.py").write_text(
        f"from stats import mean\n\n\ndef test_of_nothing():\n    {ASSERTION}\n\n\ndef test_of_two():\n    assert mean([1, 3]) == 2\n"
    )
    (place / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n.attractor/\n")
    monkeypatch.chdir(place)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for words in (
        ["init", "--quiet"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first"],
    ):
        subprocess.run(["git", *words], check=True)
    return place


@pytest.fixture
def loop(project):
    def run(**options):
        backend = ClaudeBackend(executable=str(project.parent / "claude"))
        return Pipeline(EXAMPLE, backend=backend).run(wait=True, trust=True, **options)

    return run


@pytest.mark.campaign
def test_the_agent_writes_the_tests_fail_it_is_asked_again_and_they_pass(loop, project):
    result = loop()
    assert result.status == "success", result.reason
    assert result.completed_nodes == ("start", "write", "test", "fix", "test", "done")
    assert "2 passed" in result["test"].files("stdout.txt")
    assert "+ (not values)" not in (project / "stats.py").read_text()
    assert "FAILURES" in result["fix"].prompt


@pytest.mark.campaign
def test_the_agent_is_told_the_assertion_that_failed(loop):
    assert ASSERTION in loop()["fix"].prompt


@pytest.mark.campaign
def test_in_a_worktree_each_stage_that_changed_a_file_is_a_commit_and_the_project_stays(loop, project):
    result = loop(isolation="worktree")
    assert result.status == "success", result.reason
    log = ["git", "log", "--reverse", "--format=%s", f"HEAD..{result.branch}"]
    assert subprocess.check_output(log, text=True).splitlines() == ["write: success", "fix: success"]
    assert not (project / "stats.py").exists()
    assert [file.path for file in result.changes().files] == ["stats.py"]
