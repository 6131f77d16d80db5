"""Fault 9: programs that do not want to end, end; and with them all that they started."""

import ast
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import attractor_nb
from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import RunInterrupted
from tests.waiting import wait_until

MAX_KEPT_BYTES = 1024 * 1024
MAX_SPOOLED_BYTES = 64 * 1024 * 1024

WORKERS = Path(__file__).with_name("workers")
PROGRAMS = [
    "ignores_term", "ignores_every_signal", "forks_a_child_that_ignores_term", "leaves_its_session", "daemonises",
    "daemonises_and_waits", "hides_its_environment", "hides_within_its_session", "flees_when_told_to_end",
    "tidies_up_when_told_to_end", "floods_its_output", "floods_its_error_output", "waits_for_input", "writes_bytes",
    "closes_its_outputs", "leaves_a_child_with_the_pipe", "becomes_another_program", "changes_its_group",
    "starts_many_children", "stops_itself", "fills_its_directory", "plants_a_pipe_for_its_status",
]  # fmt: skip
ENDS_BY_ITSELF = {"daemonises", "leaves_a_child_with_the_pipe"}
TIDY = "tidies_up_when_told_to_end"
TIMEOUT_SECONDS = 2
DESCENDANTS = "attractor_nb/processes/descendants.py"
LOCAL = "attractor_nb/processes/local.py"


class Case:
    """A hostile program as the only stage of a pipeline."""

    def __init__(self, program, place, timeout=f", timeout={TIMEOUT_SECONDS}s"):
        self.program, self.place, self.timeout, self.tag = program, place, timeout, secrets.token_hex(8)
        self.root = place / self.tag
        self.seconds = 0.0
        command = f"exec {sys.executable} -S {WORKERS / 'hostile_programs.py'} {program} {self.tag}"
        self.source = f"""digraph g {{
            start [shape=Mdiamond] tool [shape=parallelogram, tool_command="{command}"{timeout}] next [type=own]
            done [shape=Msquare]
            start -> tool tool -> next [condition="outcome=fail"] tool -> next [condition="outcome=success"]
            next -> done
        }}"""

    def has_been_told(self):
        """True if a program that tidies up at its end had the time to do so, and for all others."""
        return self.program != TIDY or (self.root / "tool/tidied").exists()

    def alive(self):
        """Processes that have the tag in their command line and are not dead."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                is_tagged = entry.name.isdigit() and self.tag.encode() in (entry / "cmdline").read_bytes()
                if is_tagged and (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def is_alone(self):
        """True if nothing of it is left; the test kills what is left."""
        with contextlib.suppress(AssertionError):
            return wait_until(lambda: not self.alive())
        for process in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return False

    def run(self):
        """Start the run, and wait until the program does its worst."""
        is_ready = threading.Event()

        def hear(event):
            if "ready" in getattr(event, "text", ""):
                is_ready.set()

        pipeline = Pipeline(self.source, handlers={"own": lambda *_: Outcome.success()})
        run = pipeline.run(logs_root=self.root, durability="fast", observers=[hear])
        assert is_ready.wait(60), self.program
        return run


def side_by_side(judge, cases):
    """Judge cases, three at a time; what is wrong with which."""
    with ThreadPoolExecutor(3) as pool:
        return list(filter(None, pool.map(judge, cases)))


def slowest(cases):
    """The seconds that the slowest of them took to end: a figure, no verdict."""
    return max(case.seconds for case in cases)


def timed_out(case):
    """The faults when a program's time is over."""
    run = case.run()
    result = run.result(60)
    case.seconds = json.loads((case.root / "tool/status.json").read_text())["duration_ms"] / 1000
    text = "" if result.status == "success" else f"the run did not go on: {result.reason}"
    is_over = "timed out" in result.outcomes["tool"].failure_reason
    if is_over == (case.program in ENDS_BY_ITSELF) and case.program != "plants_a_pipe_for_its_status":
        text += f" ended as {result.outcomes['tool']}"
    if not case.is_alone():
        text += " left a process"
    if not case.has_been_told():
        text += " was not told to end"
    for channel in ("stdout", "stderr"):
        if (case.root / "tool" / f"{channel}.txt").stat().st_size > MAX_SPOOLED_BYTES:
            text += f" {channel} is over its bound"
        kept = result.context.get_string({"stdout": "tool.output", "stderr": "tool.stderr"}[channel])
        if len(kept.encode()) > 3 * MAX_KEPT_BYTES + 100:  # U+FFFD is three bytes of one
            text += f" {len(kept)} characters of {channel} kept"
    if case.program == "writes_bytes" and "\ufffd" not in result.context["tool.output"]:
        text += " bytes were lost"
    return text and f"{case.program}:{text}"


def cancelled(case):
    """The faults when the run is cancelled."""
    run = case.run()
    if case.program in ENDS_BY_ITSELF:
        return ""
    began = time.monotonic()
    run.cancel()
    with contextlib.suppress(RunInterrupted):
        run.result(60)
    case.seconds = time.monotonic() - began
    text = "" if case.is_alone() else " left a process"
    if not case.has_been_told():
        text += " was not told to end"
    return text and f"{case.program}:{text}"


def killed(case):
    """The faults when the engine is killed."""
    case.root.parent.joinpath(f"{case.tag}.dot").write_text(case.source.replace("[type=own]", ""))
    arguments = [str(WORKERS / "hostile_engine.py"), f"{case.root}.dot", str(case.root)]
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE) as engine:
        assert engine.stdout.readline() == b"ready\n", case.program
        began = time.monotonic()
        engine.kill()
        is_alone = case.is_alone()
        case.seconds = time.monotonic() - began
    return "" if is_alone else f"{case.program}: left a process"


@pytest.mark.protects(
    DESCENDANTS, "            or self._table.has_variable(number, MARK_NAME, self._mark)\n", instead=""
)
@pytest.mark.protects(DESCENDANTS, "(found.group, found.session)", instead="(found.group,)")
@pytest.mark.protects(DESCENDANTS, "        while added:", instead="        while False:")
@pytest.mark.protects(DESCENDANTS, "            self._signal(SIGKILL, found)", instead="            pass")
@pytest.mark.protects(
    LOCAL, "asyncio.wait(waited, timeout=timeout_seconds,", instead="asyncio.wait(waited, timeout=None,"
)
@pytest.mark.campaign
def test_at_its_timeout_a_program_and_all_it_started_end(tmp_path, campaign, figures):
    """Protected by: the time limit; KILL after TERM; what left the group is found by its mark, its session,
    and its parents.
    """
    chosen = campaign.pick([Case(program, tmp_path) for program in PROGRAMS], sample=len(PROGRAMS))
    problems = side_by_side(timed_out, chosen)
    assert not problems, "\n".join(problems)
    figures.record(
        9,
        f"hostile programs at a timeout of {TIMEOUT_SECONDS} s",
        f"{len(chosen)} of {len(chosen)} ended after at most {slowest(chosen):.1f} s, no process left, output bounded, "
        "the run went on",
    )


@pytest.mark.protects(LOCAL, "exit_code = await job.end(grace)", instead="exit_code = -9")
def test_when_the_run_is_cancelled_a_program_and_all_it_started_end(tmp_path, campaign, figures):
    """Protected by: whatever interrupts the wait for a command, it is told to end, and then made to.

    Without the line the watchdog still kills all of it: what tidies up at its end has no time for that.
    """
    names = [name for name in PROGRAMS if name not in ENDS_BY_ITSELF]
    names.sort(key=lambda name: name != TIDY)
    chosen = campaign.pick([Case(program, tmp_path, "") for program in names], sample=6)
    problems = side_by_side(cancelled, chosen)
    assert not problems, "\n".join(problems)
    figures.record(
        9,
        "hostile programs, run cancelled",
        f"{len(chosen)} of {len(chosen)} gone after at most {slowest(chosen):.1f} s",
    )


@pytest.mark.protects(LOCAL, "            watchdog.watch(process.pid)", instead="            pass")
@pytest.mark.kind("a process tree")
def test_when_the_engine_is_killed_a_program_and_all_it_started_end(tmp_path, campaign, figures):
    """Protected by: the watchdog, which outlives us."""
    names = [name for name in PROGRAMS if name not in ENDS_BY_ITSELF]
    names.sort(key=lambda name: not name.startswith("hides"))  # no mark finds those: they are in each sample
    chosen = campaign.pick([Case(program, tmp_path, "") for program in names], sample=6)
    problems = side_by_side(killed, chosen)
    assert not problems, "\n".join(problems)
    figures.record(
        9,
        "hostile programs, engine killed -9",
        f"{len(chosen)} of {len(chosen)} gone after at most {slowest(chosen):.1f} s",
    )


STARTERS = {
    "os": ("system", "popen", "fork", "forkpty", "spawn", "exec", "posix_spawn"),
    "subprocess": ("Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"),
    "asyncio": ("create_subprocess_exec", "create_subprocess_shell"),
    "pty": ("",),
    "multiprocessing": ("",),
}
ALLOWED = {
    "processes/descendants.py": "commands of stages, the local model's server, and the watchdog over each",
    "processes/git.py": "the worktree of a run: fixed arguments, no hooks, no configuration, bounded in time",
}


def starts_processes(tree):
    """True if a module calls functions that start processes, or imports any that may."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in STARTERS:
            names = [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [(alias.name.partition(".")[0], "") for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [(node.value.id, node.attr)]
        elif isinstance(node, ast.Attribute):
            names = [("asyncio", node.attr)] if node.attr in {"subprocess_exec", "subprocess_shell"} else []
        else:
            continue
        for module, name in names:
            if name in {"subprocess_exec", "subprocess_shell"}:
                return True
            if any(
                name == start if start in {"", "run", "call"} else name.startswith(start)
                for start in STARTERS.get(module, ())
            ):
                return True
    return False


@pytest.mark.protects(
    "attractor_nb/handlers/tool.py",
    "        result = await self._processes.run(",
    instead="        __import__('asyncio'); asyncio.create_subprocess_shell\n        result = await self._processes.run(",
)
@pytest.mark.campaign
def test_nobody_else_starts_a_process(figures):
    """Protected by: a tool stage goes through ``processes``, and no module but those listed starts any."""
    package = Path(attractor_nb.__file__).parent
    modules = sorted(package.rglob("*.py"))
    starting = {
        path.relative_to(package).as_posix()
        for path in modules
        if starts_processes(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert starting == set(ALLOWED)
    figures.record(9, "modules that start processes", f"{len(starting)} of {len(modules)}, each with its reason")
