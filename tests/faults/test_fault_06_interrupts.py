"""Fault 6: Ctrl-C or Stop at any line of ours, once and twice.

SIGINT reaches the main thread just before a line of the package is executed, in whichever thread that is
(``workers/interrupt_worker.py``). After the first the caller is back, with no child alive, no lock and no
descriptor left, and the run is recorded as interrupted; a second one leaves at once. How soon is a figure, and no
verdict. A fresh process goes on to the same end as without, and nothing that was recorded is executed again
(``kill_judge.py``).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from attractor_nb import Pipeline, interrupts
from attractor_nb.decisions import run_state
from attractor_nb.processes import local
from attractor_nb.runtime import launch as launching
from attractor_nb.runtime.handles import handle
from attractor_nb.storage.stored_run import read_run

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to a process of ours"),
    pytest.mark.timeout(1800),
]
HOSTS = ("thread", "kernel", "loop")
FOLLOWS = (1, 5, 30, 100, 300)
"""The lines of ours between the first interrupt and the second."""
PATIENCE_SECONDS = 60


def counted(worker, host, *before, graph="stages"):
    """The times that an uninterrupted life executes each line of the package."""
    verdict = worker.judge(graph, *before, {"count": True}, host=host)
    assert not verdict["violations"], verdict["violations"]
    return verdict["seen"]


def drawn(seen, count, seed, *, twice=False):
    """Interrupts at so many lines, each before any of the times that it is executed."""
    rng = random.Random(seed)
    faults = []
    for place in rng.sample(sorted(seen), min(count, len(seen))):
        name, _, line = place.rpartition(":")
        fault = {"place": [name, int(line)], "nth": rng.randint(1, seen[place])}
        faults.append({"interrupt": {**fault, "then": rng.choice(FOLLOWS)} if twice else fault})
    return faults


class Tally:
    """Verdicts of many interrupted runs as one figure."""

    def __init__(self):
        self.cases = self.interrupts = self.stopped = 0
        self.seconds, self.after_second, self.violations = [], [], []

    def take(self, faults, verdict):
        self.cases += 1
        self.interrupts += sum(verdict["sent"])
        self.stopped += sum(verdict["is_interrupted"])
        if verdict["sent"][-1] == 1:
            self.seconds.append(verdict["seconds"][-1])
        elif verdict["sent"][-1] > 1:
            self.after_second.append(verdict["seconds_after_second"][-1])
        self.violations += [f"{faults}: {violation}" for violation in verdict["violations"]]

    def judge_all(self, workers, host, cases, graph="stages"):
        """Try the cases on all workers at once."""
        queue = iter(list(cases))
        lock = threading.Lock()

        def serve(worker):
            while True:
                with lock:
                    faults = next(queue, None)
                if faults is None:
                    return
                verdict = worker.judge(graph, *faults, host=host)
                with lock:
                    self.take(faults, verdict)

        with ThreadPoolExecutor(len(workers)) as pool:
            list(pool.map(serve, workers))

    def check(self):
        assert not self.violations, "\n".join(self.violations[:20])
        assert self.interrupts >= self.cases * 0.9, "interrupts were not sent"

    def __str__(self):
        text = f"{self.cases} of {self.cases} right, {self.interrupts} interrupts, {self.stopped} runs stopped"
        if self.seconds:
            text += f"; prompt back after at most {max(self.seconds):.2f} s"
        if self.after_second:
            text += f"; after the second at most {max(self.after_second):.2f} s"
        return text


@pytest.mark.protects("attractor_nb/interrupts.py", "signal.signal(signal.SIGINT, _take)")
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.campaign
def test_interrupted_before_any_line(interrupt_workers, campaign, figures, host):
    """Protected by: the first interrupt is held, and stops the engine where nothing is half done."""
    seen = counted(interrupt_workers[0], host)
    tally = Tally()
    cases = [[fault] for fault in drawn(seen, campaign.count(sample=8, full=80), seed=6)]
    tally.judge_all(interrupt_workers, host, cases)
    tally.check()
    figures.record(
        6,
        f"interrupted once before a line of the package, engine in {host}",
        f"{len(seen)} lines executed {sum(seen.values())} times; {tally}",
    )


@pytest.mark.protects(
    "attractor_nb/processes/local.py",
    "self._descendants.kill()  # interrupted before it was known whether anything is alive",
)
@pytest.mark.protects("attractor_nb/runtime/handles/handle.py", "for _ in range(2):", instead="for _ in range(1):")
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.campaign
def test_interrupted_twice(interrupt_workers, campaign, figures, host):
    """Protected by: a command is killed also when it is not yet known whether anything of it is alive.

    And by: the end of a run is told twice, since an interrupt may break off the first.
    """
    seen = counted(interrupt_workers[0], host)
    tally = Tally()
    faults = drawn(seen, campaign.count(sample=4, full=45), seed=7, twice=True)
    of_commands = {place: times for place, times in seen.items() if place.startswith("processes/")}
    faults += drawn(of_commands, campaign.count(sample=2, full=15), seed=9, twice=True)
    waiting = {"place": ["processes/local.py", line_of("done, _ = await asyncio.wait(waited")], "nth": 1}
    ending = {"then_place": ["processes/local.py", line_of("if self._descendants.is_alive():")]}
    told = {"then_place": ["runtime/handles/handle.py", line_of("if not self.future.done():", handle)]}
    faults += [{"interrupt": {**waiting, **second}} for second in (ending, told)]
    tally.judge_all(interrupt_workers, host, [[fault] for fault in faults])
    tally.check()
    assert tally.after_second, "no second interrupt was sent"
    figures.record(6, f"interrupted, and again some lines later, engine in {host}", str(tally))


@pytest.mark.protects(
    "attractor_nb/engine/runner.py", "        if self._is_distrusted:\n            return\n", instead=""
)
@pytest.mark.parametrize("host", ["kernel", "loop"])
@pytest.mark.campaign
def test_interrupted_twice_while_branches_go_on(interrupt_workers, campaign, figures, host):
    """Protected by: a state that a branch left in the middle of a step is in no checkpoint.

    The engine is in the main thread here: of two interrupts in the same step the second breaks it off.
    """
    seen = counted(interrupt_workers[0], host, graph="branches")
    faults = drawn(seen, campaign.count(sample=2, full=20), seed=10, twice=True)
    commit = {"place": ["decisions/run_state.py", line_of("self.completed.append(name)", run_state)], "then": 8}
    faults += [{"interrupt": {**commit, "nth": number}} for number in campaign.pick(range(3, 10), sample=3)]
    tally = Tally()
    tally.judge_all(interrupt_workers, host, [[fault] for fault in faults], "branches")
    tally.check()
    figures.record(6, f"interrupted twice while branches go on, engine in {host}", str(tally))


@pytest.mark.protects(
    "attractor_nb/engine/runner.py",
    'return self._interrupted(PAUSED if setup.is_paused else "cancelled")',
    instead="raise",
)
@pytest.mark.campaign
def test_interrupted_again_while_it_resumes(interrupt_workers, campaign, figures):
    """Protected by: a run that is cancelled says in its log that it was interrupted, and ends in order."""
    first = {"interrupt": {"place": ["processes/local.py", line_of("return bool(done)")], "nth": 1}}
    seen = counted(interrupt_workers[0], "thread", first)
    tally = Tally()
    faults = drawn(seen, campaign.count(sample=4, full=50), seed=8)
    tally.judge_all(interrupt_workers, "thread", [[first, fault] for fault in faults])
    tally.check()
    figures.record(6, "interrupted in a tool's stage, and again before a line of the resume", str(tally))


@pytest.mark.protects("attractor_nb/runtime/launch.py", "interrupt.at_end(wired.behind.stop_for_nobody)")
@pytest.mark.campaign
def test_interrupted_while_the_handle_of_a_resumed_run_is_handed_over(interrupt_workers, figures):
    """Protected by: who is interrupted before he has the handle has the run stopped, whatever line it is."""
    first = {"interrupt": {"place": ["processes/local.py", line_of("return bool(done)")], "nth": 1}}
    handed_over = line_of("interrupt.at_end(wired.behind.stop_for_nobody)", launching)
    lines = [
        *(["runtime/launch.py", handed_over + step] for step in (-1, 0, 1)),
        *(["interrupts.py", number] for number in lines_of(interrupts.HeldInterrupt.finish)),
        *(["interrupts.py", number] for number in lines_of(interrupts._let_go)),
    ]
    tally = Tally()
    cases = [[first, {"interrupt": {"place": place, "nth": 1}}] for place in lines]
    tally.judge_all(interrupt_workers, "thread", cases)
    tally.check()
    figures.record(6, "interrupted while the handle of a resumed run is handed over", str(tally))


def lines_of(function):
    """Numbers of the lines of a function that every call of it executes."""
    seen = set()

    def trace(frame, event, argument):
        if event == "line" and frame.f_code is function.__code__:
            seen.add(frame.f_lineno)
        return trace if frame.f_code is function.__code__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with interrupts.held_interrupts() as held:
            held.at_end(lambda: None)
    finally:
        sys.settrace(before)
    assert seen, f"{function.__qualname__} was not called"
    return sorted(seen)


def line_of(words, module=local):
    """Number of the line of a module that has these words."""
    lines = Path(module.__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if words in line)


# -- an answer ----------------------------------------------------------------------------------------------

GATE = """digraph { start [shape=Mdiamond]; ask [shape=hexagon, label="Ship it?"]; done [shape=Msquare]
    no [prompt="No"]; start -> ask; ask -> done [label="[Y] Yes"]; ask -> no [label="[N] No"]; no -> done }"""


def interrupted_answer(directory, number):
    """Answer a gate, with an interrupt before the nth line of what makes an answer the answer.

    Returns:
        Whether there was such a line.
    """
    from attractor_nb.engine import gates

    run = Pipeline(GATE).run(logs_root=directory, interviewer="deferred", durability="fast")
    run.wait_for_gate("ask", timeout=PATIENCE_SECONDS)
    left = number

    def enter(frame, event, argument):
        if frame.f_code.co_name == "_settle" and frame.f_code.co_filename == gates.__file__:
            return reach
        return None

    def reach(frame, event, argument):
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                signal.raise_signal(signal.SIGINT)
        return reach

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        run.answer("ask", "Y")
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    result = run.result(PATIENCE_SECONDS)
    assert result.completed_nodes == ("start", "ask", "done")
    assert run.status == "completed"
    return left <= 0


@pytest.mark.protects("attractor_nb/engine/gates.py", "with held_interrupts():", instead="if True:")
def test_an_answer_that_is_interrupted_is_known_to_log_and_run_alike(tmp_path, figures):
    """Protected by: an interrupt is held while an answer is logged and the run is told of it."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("Python interrupts the main thread alone")
    number = 1
    while interrupted_answer(tmp_path / str(number), number):
        number += 1
    assert number > 8
    figures.record(
        6,
        "interrupted before each line that makes an answer the answer",
        f"{number - 1} of {number - 1} answers in the log and given to the run",
    )


# -- the command --------------------------------------------------------------------------------------------

COMMAND = """digraph { start [shape=Mdiamond]; plan [prompt="Plan"]; done [shape=Msquare]
    build [shape=parallelogram, tool_command="sh tool.sh"]; start -> plan -> build -> done }"""
TOOL = """if [ -e again ]; then exit 0; fi
touch again
tail -f /dev/null >/dev/null 2>&1 & setsid tail -f /dev/null >/dev/null 2>&1 &
echo began >ready
wait
"""
PROGRAM = """
import sys
from attractor_nb.cli import main
from attractor_nb.runtime.handles import handle, handle as hosts
handle.STOP_SECONDS = hosts.STOP_SECONDS = 1000.0  # what would wait until it gives up waits for ever
sys.exit(main())
"""
SIGNALS = {
    "INT": [signal.SIGINT],
    "INT-INT": [signal.SIGINT, signal.SIGINT],
    "TERM": [signal.SIGTERM],
    "TERM-TERM": [signal.SIGTERM, signal.SIGTERM],
    "HUP": [signal.SIGHUP],
    "INT-TERM": [signal.SIGINT, signal.SIGTERM],
}


def marked(folder):
    """Processes of commands that were started in a folder, wherever they went."""
    found = []
    for process in psutil.process_iter():
        try:
            variables = process.environ()
            if process.status() != psutil.STATUS_ZOMBIE and variables.get("CAMPAIGN_FOLDER") == folder:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.protects(
    "attractor_nb/runtime/handles/handle.py",
    "with held_interrupts(self.cancel) as interrupt:\n            future =",
    instead="with held_interrupts() as interrupt:\n            future =",
)
@pytest.mark.protects("attractor_nb/cli/run_execution.py", '("SIGTERM", "SIGHUP")', instead='("SIGWINCH",)')
@pytest.mark.parametrize("numbers", SIGNALS.values(), ids=SIGNALS.keys())
@pytest.mark.campaign
def test_the_command_is_interrupted_while_a_tool_runs(tmp_path, figures, numbers):
    """Protected by: requests to end stop a run as Ctrl-C does; an interrupt stops the engine at once."""
    (tmp_path / "it.dot").write_text(COMMAND)
    (tmp_path / "tool.sh").write_text(TOOL)
    os.mkfifo(tmp_path / "ready")
    command = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "CAMPAIGN_FOLDER": str(tmp_path)}
    process = subprocess.Popen(
        [*command, "run", "it.dot", "--trust", "--logs-root", "out"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert (tmp_path / "ready").read_text() == "began\n"
    assert len(marked(str(tmp_path))) >= 4  # itself, the tool, and what that started twice
    sent = time.monotonic()
    for number in numbers:
        process.send_signal(number)
    try:
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()  # what hangs does not outlive its test
    seconds = time.monotonic() - sent
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "attractor-nb resume out" in said
    psutil.wait_procs(marked(str(tmp_path)), timeout=PATIENCE_SECONDS)  # a watchdog ends what is left
    assert not marked(str(tmp_path))
    status = read_run(tmp_path / "out").status
    assert status == "interrupted" or (len(numbers) > 1 and status == "abandoned")
    resumed = subprocess.run(
        [*command, "resume", "out", "--trust", "--on-interrupted", "rerun", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert resumed.returncode == 0, resumed.stderr
    assert [stage["id"] for stage in json.loads(resumed.stdout)["stages"]] == ["start", "plan", "build", "done"]
    names = " ".join(signal.Signals(number).name for number in numbers)
    figures.record(
        6, f"attractor-nb run with a tool running gets {names}", f"gone after {seconds:.2f} s, resumed to its end"
    )


# -- a script between start and wait -------------------------------------------------------------------------

UNOWNED = Path(__file__).with_name("workers") / "unowned_script.py"
WAITING = """digraph { start [shape=Mdiamond]; ask [shape=hexagon]; done [shape=Msquare]
    start -> ask; ask -> done [label="[Y] Yes"] }"""


def interrupted_script(folder, number, *more):
    """Run the script, interrupted before so many lines; how many there were."""
    ended = subprocess.run(
        [sys.executable, str(UNOWNED), str(number), *more],
        cwd=folder,
        env={**os.environ, "CAMPAIGN_FOLDER": str(folder)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode in {-signal.SIGINT, 128 + signal.SIGINT, 1}, ended.stderr
    assert "KeyboardInterrupt" in ended.stderr or "RunInterrupted" in ended.stderr
    psutil.wait_procs(marked(str(folder)), timeout=PATIENCE_SECONDS)
    assert not marked(str(folder))
    stored = read_run(folder / "out")
    assert (stored.status, stored.is_owned) == ("interrupted", False), ended.stderr
    return int(ended.stdout)


@pytest.mark.protects("attractor_nb/runtime/handles/handle.py", "at_program_end(self._stop_jobs)", instead="pass")
@pytest.mark.kind("an interrupt")
def test_a_script_that_is_interrupted_between_start_and_wait_ends_its_run(tmp_path, campaign, figures):
    """Protected by: a program that ends stops the runs that no code waits for, and says so."""

    def folder(name):
        place = tmp_path / name
        place.mkdir()
        (place / "it.dot").write_text(WAITING)
        return place

    lines = interrupted_script(folder("counted"), 10**9)
    assert lines > 10
    numbers = campaign.pick(range(1, lines + 1), sample=4)
    for number in numbers:
        interrupted_script(folder(str(number)), number)
    figures.record(
        6,
        "a script interrupted before lines between pipeline.run() and run.result()",
        f"{len(numbers)} of {lines} lines: its run interrupted, to be resumed, and free",
    )


def test_a_script_that_is_interrupted_between_start_and_wait_ends_the_commands_of_its_run(tmp_path, figures):
    """The command is ended with the run, and the run continues to its end."""
    (tmp_path / "it.dot").write_text(COMMAND)
    (tmp_path / "tool.sh").write_text(TOOL)
    os.mkfifo(tmp_path / "ready")
    interrupted_script(tmp_path, 10**9, "with a command")
    pipeline = Pipeline(COMMAND)
    result = pipeline.resume(tmp_path / "out", on_interrupted="fail").result(PATIENCE_SECONDS)
    assert result.visits["build"] == 1
    assert not marked(str(tmp_path))
    figures.record(6, "a script interrupted after its run has started a command", "command and run ended")


IMPORTED = """
import signal, sys

class Watch:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in {names}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Watch)
from attractor_nb.cli import main
sys.exit(main(["handlers"]))
"""


@pytest.mark.protects("attractor_nb/cli/__init__.py", "except KeyboardInterrupt:", instead="except EOFError:")
@pytest.mark.parametrize("names", [{"typer"}, {"typer", "typer.core"}], ids=["once", "twice"])
def test_the_command_is_interrupted_while_it_is_imported(figures, names):
    """Protected by: the frame around all of the command turns an interrupt into its exit code."""
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(names=names)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
    figures.record(6, f"interrupted {len(names)} times during the command's imports", "exit code 130, no word")
