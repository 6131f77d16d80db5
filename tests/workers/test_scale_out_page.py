"""The examples of docs/scale-out.md are true."""

import re
from pathlib import Path

from attractor_nb.decisions.ambiguity import MAX_LOST_WORKERS
from attractor_nb.runtime.prepare.run_options import RunOptions, worker_wait_seconds
from attractor_nb.workers.lifelines import POLL_SECONDS
from attractor_nb.workers.perform import HOLD_AFTER_SECONDS, IDLE_SECONDS
from attractor_nb.workers.task import MAX_OUTPUT_CHARACTERS, MAX_RETURNED_BYTES, MAX_RETURNED_FILES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scale-out.md").read_text("utf-8")


def test_its_program_runs():
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    names = {}
    exec(compile(program, "scale-out.md", "exec"), names)
    assert names["result"].status == "success"


def test_its_figures_are_those_of_the_code():
    assert worker_wait_seconds(RunOptions().worker_wait) == 30
    assert "`worker_wait` (30 s by default)" in PAGE
    assert (MAX_RETURNED_BYTES, MAX_RETURNED_FILES) == (64 * 2**20, 1000)
    assert "64 MiB and\n1,000 files at most" in PAGE
    assert MAX_OUTPUT_CHARACTERS == 2**20
    assert "the first 1 MiB of each channel" in PAGE
    assert MAX_LOST_WORKERS == 3
    assert "after three lost workers" in PAGE
    assert IDLE_SECONDS == 60
    assert "was not used for a minute" in PAGE
    assert (POLL_SECONDS, HOLD_AFTER_SECONDS) == (0.1, 0.1)
    assert "within 0.1 s of the scheduler's message" in PAGE
    assert "takes less than 0.1 s cannot be stopped" in PAGE
