"""A parent that is killed in the middle of its child goes on with that child (spec 4.11, 9.4)."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb import Run
from attractor_nb.model.events import ChildStarted
from attractor_nb.storage.stored_run import read_run

WORKER = Path(__file__).parent / "workers" / "child_worker.py"


def live(root, life, kind):
    """One life of the parent, in a process of its own."""
    command = [sys.executable, str(WORKER), str(root), life, kind]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("kind", ["manager", "pipeline"])
@pytest.mark.campaign
def test_no_recorded_stage_of_a_child_is_run_again_after_a_kill(kind, tmp_path):
    root = tmp_path / "run"
    assert live(root, "new", kind).returncode == -signal.SIGKILL
    again = live(root, "again", kind)
    assert again.stdout.split() == ["success", "start", "before", "sub", "after", "done"], again.stderr
    calls = (tmp_path / "calls").read_text().split()
    assert calls == ["before", "plan", "build", "build", "check", "after"]
    assert sorted(path.name for path in (root / "children/sub").iterdir()) == ["1", "pipeline.dot"]
    child = Run.load(root / "children/sub/1")
    started = [event for event in read_run(root).events if isinstance(event, ChildStarted)]
    assert [(event.child_id, event.is_taken_up) for event in started] == [(child.id, False), (child.id, True)]
