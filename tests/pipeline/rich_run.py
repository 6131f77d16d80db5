"""One pipeline with all that a run directory can hold: branches, a child, a gate, a thread, an artifact, a restart.

``python tests/pipeline/rich_run.py FOLDER`` writes the run directories that later versions must read: what this
version leaves of a run that has ended, that waits at its gate, and that was killed in a branch or in a child.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from attractor_nb import Outcome, Pipeline
from attractor_nb.stage import current_stage
from attractor_nb.testing import ManualClock, ScriptedInterviewer, SeededRandomness

CHILD = """digraph worker { start [shape=Mdiamond] look [prompt="Look it up."] done [shape=Msquare]
  start -> look -> done }"""
TEXT = """digraph rich {
  graph [goal="Prices add up", inputs="currency"]
  start [shape=Mdiamond]
  plan [prompt="Plan it in $currency.", max_retries=1]
  fan [shape=component, max_parallel=1]
  tests [prompt="Write tests."]
  code [prompt="Write code."]
  more [prompt="Write more code.", thread_id=code, fidelity=full]
  gather [shape=tripleoctagon]
  research [type=pipeline, pipeline.name=worker, pipeline.outputs="found=context.look.response"]
  measure [shape=parallelogram, tool_command="echo 12 lines"]
  approve [shape=hexagon, label="Merge it?"]
  report [prompt="Tell $goal.", fidelity="summary:high"]
  done [shape=Msquare]
  start -> plan -> fan
  fan -> tests -> gather
  fan -> code -> more -> gather
  gather -> research -> measure -> approve
  approve -> report [label="[Y] Yes"]
  approve -> plan [label="[A] All again", loop_restart=true]
  report -> done
}"""
LONG = "A long answer.\n" * 8000
"""More than a context keeps in itself: it becomes an artifact."""
PATH = ("plan", "fan", "gather", "research", "measure", "approve", "report", "done")
"""The stages that the run completes after its restart."""


class Backend:
    """Answers by node, the same in each run; the first try of ``plan`` in a directory fails."""

    def __init__(self, fatal=""):
        self.fatal = fatal

    def run(self, node, prompt, context):
        """Answer, or end the process at once."""
        if node.id == self.fatal:
            os._exit(9)
        if node.id == "plan" and not context.get("internal.retry_count.plan", 0):
            return Outcome.retry("the answer was cut off")
        if node.id == "more":
            talk = current_stage().conversation
            talk.save(talk.read() + "more code\n")
        return LONG if node.id == "code" else f"{node.id}:\n- done"


def rich_pipeline(answers=("Y",), fatal=""):
    """The pipeline; its gate is answered by these in turn, and the process ends where ``fatal`` is asked."""
    interviewer = ScriptedInterviewer({"approve": list(answers)})
    return Pipeline(TEXT, backend=Backend(fatal), interviewer=interviewer, pipelines={"worker": CHILD})


def seams():
    """A clock and randomness under which each run is the same."""
    return {"clock": ManualClock(), "randomness": SeededRandomness()}


def ended(folder):
    """A run that its gate sent back to the beginning, and that was rewound when it had ended."""
    options = {"cassette": folder / "rich.json", "cassette_mode": "record", **seams()}
    run = rich_pipeline(("A", "Y", "Y")).run(
        trust=True, params={"currency": "EUR"}, logs_root=folder / "run", **options
    )
    run.result(60)
    again = run.rewind("measure", trust=True, **seams())
    again.result(60)
    return again


def waiting(folder):
    """A run that was stopped at its gate."""
    run = rich_pipeline().run(
        trust=True, params={"currency": "EUR"}, logs_root=folder / "run", interviewer="deferred", **seams()
    )
    run.wait_for_gate(timeout=60)
    run.cancel()
    run.result(60)


def killed(folder, node):
    """A run whose process was killed while a node was asked."""
    done = subprocess.run([sys.executable, __file__, str(folder), node])
    assert done.returncode == 9, done


KEPT = {
    "ended": ended,
    "waiting": waiting,
    "killed_in_branch": lambda folder: killed(folder, "more"),
    "killed_in_child": lambda folder: killed(folder, "look"),
}


def write_kept(folder):
    """Write an archive of each kind of run directory."""
    for name, make in KEPT.items():
        with tempfile.TemporaryDirectory() as place:
            make(Path(place))
            with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
                archive.add(Path(place) / "run", "run")


if __name__ == "__main__":
    os.environ.setdefault("ATTRACTOR_STATE_DIR", tempfile.mkdtemp())
    if len(sys.argv) == 2:
        write_kept(Path(sys.argv[1]))
    else:
        rich_pipeline(fatal=sys.argv[2]).run(
            wait=True, trust=True, params={"currency": "EUR"}, logs_root=Path(sys.argv[1]) / "run", **seams()
        )
