"""Fault 7: the kernel is killed, or shut down, while a tool runs or while a gate waits.

Real kernels, driven by bare protocol messages. The run then shows as abandoned with the one line that goes
on; no process of it is left; the next kernel asks the same question with the time that it had left, and an
answer that was given before is not asked for again.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import signal
import sys
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from attractor_nb import Run
from attractor_nb.model.events import InterviewCompleted, InterviewStarted
from attractor_nb.storage.stored_run import read_run
from tests import warm

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to a process of ours"),
    pytest.mark.timeout(300),
]
PATIENCE_SECONDS = 60
DRIVER = Path(__file__).parents[1] / "notebook" / "kernel_driver.py"
GATE_SECONDS = 3600

TOOL = """digraph { start [shape=Mdiamond]; plan [prompt="Plan"]; done [shape=Msquare]
    build [shape=parallelogram, tool_command="sh tool.sh"]; start -> plan -> build -> done }"""
SCRIPT = """if [ -e again ]; then exit 0; fi
touch again
tail -f /dev/null >/dev/null 2>&1 & setsid tail -f /dev/null >/dev/null 2>&1 &
echo began >ready
wait
"""
GATES = """digraph { start [shape=Mdiamond]; plan [prompt="Plan"]; done [shape=Msquare]; no [prompt="No"]
    first [shape=hexagon, label="First?"]
    second [shape=hexagon, label="Second?", timeout="3600s"]
    start -> plan -> first; first -> second [label="[Y] Yes"]; first -> no [label="[N] No"]
    second -> done [label="[Y] Yes"]; second -> no [label="[N] No"]; no -> done }"""
BEGIN = """
import os
from attractor_nb import Pipeline, Run, runs
pipeline = Pipeline({graph!r})
run = pipeline.run(logs_root="out/one", interviewer="deferred")
"""


@pytest.fixture(scope="module")
def driver():
    spec = importlib.util.spec_from_file_location("attractor_tests_kernel_driver_of_faults", DRIVER)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.REPOSITORY = Path(os.environ.get("ATTRACTOR_PROVED_PACKAGE", module.REPOSITORY))
    return module


def begun(driver, folder, graph):
    """A kernel in which a run was begun, and its process."""
    (folder / "ipython").mkdir(exist_ok=True)
    kernel = driver.Kernel(Path(sys.executable), folder)
    kernel.run(BEGIN.format(graph=graph))
    return kernel, psutil.Process(int(kernel.run("print(os.getpid())").text))


def lose(kernel, process, how):
    """End a kernel as a crash, or as the front-end does; it is gone when this returns."""
    if how == "kill -9":
        os.kill(process.pid, signal.SIGKILL)
    else:
        kernel._manager.shutdown_kernel(now=False)
    with suppress(psutil.NoSuchProcess):
        process.wait(PATIENCE_SECONDS)


def marked(folder):
    """Processes of commands of runs in a folder, wherever they went."""
    found = []
    for process in psutil.process_iter():
        try:
            variables = process.environ()
            is_ours = "ATTRACTOR_COMMAND" in variables and process.status() != psutil.STATUS_ZOMBIE
            if is_ours and variables.get("ATTRACTOR_LOGS_ROOT", "").startswith(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


def shown(kernel):
    """The run as a new kernel shows it: the list, the handle as text, the handle as HTML or SVG."""
    kernel.run("%load_ext attractor_nb")
    kernel.run("from attractor_nb import Pipeline, Run")
    listed = kernel.run("print(repr(get_ipython().run_line_magic('attractor_runs', 'out')))").text
    text = kernel.run('run = Run.load("out/one"); print(run)').text
    bundle = kernel.run("print(run._repr_mimebundle_())").text
    return listed, text, ast.literal_eval(bundle)


@contextmanager
def found_again(driver, lost, folder, how):
    """A fresh kernel, and the text and the bundle that it shows of the run of a lost one."""
    with suppress(Exception):
        lost.close()
    at_terminal = listed_at_the_terminal(driver, folder)
    assert at_terminal.endswith("resume the newest stopped run: attractor-nb resume out/one\n")
    assert how != "kill -9" or "its process ended" in at_terminal
    with closing(driver.Kernel(Path(sys.executable), folder)) as fresh:
        listed, text, bundle = shown(fresh)
        assert 'resume it with Run.load("out/one").resume()' in listed
        if how == "kill -9":
            assert "its process ended" in listed
            assert "abandoned: its process ended" in text
        yield fresh, text, bundle


def listed_at_the_terminal(driver, folder):
    """The output of ``attractor-nb runs``."""
    environment = {**os.environ, "PYTHONPATH": str(driver.REPOSITORY)}
    command = [sys.executable, "-m", "attractor_nb", "runs", "--runs-dir", "out"]
    ended = warm.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return ended.stdout + ended.stderr


@pytest.mark.protects("attractor_nb/processes/descendants.py", "read -r group\n        read -r word", instead="exit")
@pytest.mark.parametrize("how", ["kill -9", "shutdown"])
@pytest.mark.campaign
def test_a_kernel_that_is_lost_while_a_tool_runs(driver, tmp_path, figures, how):
    """Protected by: a watchdog ends the commands of a process that is gone."""
    (tmp_path / "tool.sh").write_text(SCRIPT)
    os.mkfifo(tmp_path / "ready")
    kernel, process = begun(driver, tmp_path, TOOL)
    assert (tmp_path / "ready").read_text() == "began\n"
    started = marked(str(tmp_path))
    assert len(started) >= 3
    lost = time.monotonic()
    lose(kernel, process, how)
    _, left = psutil.wait_procs(started, timeout=PATIENCE_SECONDS)
    seconds = time.monotonic() - lost
    for stray in left:
        stray.kill()
    assert not left
    assert not marked(str(tmp_path))
    assert read_run(tmp_path / "out/one").status in {"abandoned", "interrupted"}
    with found_again(driver, kernel, tmp_path, how) as (fresh, text, bundle):
        assert "build" in text
        assert "run.resume(" in text
        assert bundle["text/plain"] == text.strip()
        fresh.run('on = run.resume(trust=True, backend="simulated", on_interrupted="rerun")')
        answer = fresh.run("print(on.result(60).completed_nodes)").text
    assert ast.literal_eval(answer) == ("start", "plan", "build", "done")
    figures.record(
        7,
        f"kernel lost ({how}) while a tool runs",
        f"{len(started)} processes, all gone after {seconds:.2f} s, one that had left the session too; run resumed to its end",
    )


@pytest.mark.protects(
    "attractor_nb/engine/gates.py", "before = self._deadlines.pop(question.id, None)", instead="before = None"
)
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("kill -9", marks=pytest.mark.kind("a lost kernel")),
        pytest.param("shutdown", marks=pytest.mark.campaign),
    ],
)
def test_a_kernel_that_is_lost_while_a_gate_waits(driver, tmp_path, figures, how):
    """Protected by: a question that was put before keeps its deadline."""
    root = tmp_path / "out/one"
    kernel, process = begun(driver, tmp_path, GATES)
    kernel.run('run.wait_for_gate("first", 60); run.answer("first", "Y"); run.wait_for_gate("second", 60)')
    asked = questions(root)["second"]
    lose(kernel, process, how)
    assert read_run(root).status in {"abandoned", "interrupted"}
    assert "second" in str(Run.load(root))
    with found_again(driver, kernel, tmp_path, how) as (fresh, text, _):
        assert "second" in text
        fresh.run('on = run.resume(backend="simulated", interviewer="deferred")')
        gate = fresh.run('gate = on.wait_for_gate("second", 60); print((gate.id, gate.stage, gate.deadline))').text
        identity, stage, deadline = ast.literal_eval(gate)
        assert (identity, stage) == (asked.question_id, "second")
        assert deadline == pytest.approx(asked.deadline, abs=0.01)
        path = fresh.run('on.answer("second", "Y"); print(on.result(60).completed_nodes)').text
    assert ast.literal_eval(path) == ("start", "plan", "first", "second", "done")
    stored = read_run(root).events
    answers = [event.stage for event in stored if isinstance(event, InterviewCompleted)]
    assert answers == ["first", "second"]
    assert [event.stage for event in stored if isinstance(event, InterviewStarted)].count("first") == 1
    left = deadline - time.time()
    assert left < GATE_SECONDS
    figures.record(
        7,
        f"kernel lost ({how}) while a gate waits",
        "same question, same deadline to 10 ms, the answered one not asked again; run resumed to its end",
    )


def questions(root):
    """The latest question of each gate in a log."""
    return {event.stage: event for event in read_run(root).events if isinstance(event, InterviewStarted)}
