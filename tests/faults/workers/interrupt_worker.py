"""Runs pipelines that are interrupted at a line of ours, resumes them, and says what came of it.

It forks, waits and judges as ``kill_worker.py`` does; what hits a life here is not a kill but SIGINT, sent to
the main thread by a trace function just before a line of the package is executed, whichever thread executes
it. A case is one of that worker's with

    {"interrupt": {"place": ["engine/runner.py", 120], "nth": 1, "then": 40}}

as a fault: the nth time that line is reached, and with ``then`` again that many lines of ours later, or with
``then_place`` when that line is reached next. ``host`` is where the engine runs: ``thread``; ``kernel`` under ``asyncio.run``, which turns the first SIGINT into a
cancellation; ``loop`` under a bare ``run_until_complete``, which leaves SIGINT to Python. ``{"count": true}``
asks for the lines that an uninterrupted run executes.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

import kill_graphs
import kill_worker

import attractor_nb
from attractor_nb import Run
from attractor_nb.errors import RunError, RunInterrupted, RunNotFound
from attractor_nb.processes.descendants import MARK_NAME
from attractor_nb.runtime.handles import handle
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.storage.stored_run import has_event_log, read_run

PACKAGE = str(Path(attractor_nb.__file__).parent) + os.sep
MAIN = threading.main_thread().ident
# What would wait until it gives up waits for ever here, and is found without a look at the clock.
handle.STOP_SECONDS = handle.STOP_SECONDS = 1000.0
PATIENCE_SECONDS = 60.0


class Interrupter:
    """Sends the interrupts of one life, or counts lines.

    Attributes:
        sent: When each was sent, on the monotonic clock.
        seen: How often each line was reached, when counting.
    """

    def __init__(self, fault):
        self.sent = []
        self.seen = Counter()
        self._is_counting = bool(fault.get("count"))
        plan = fault.get("interrupt", {})
        self._file, self._line = plan.get("place", ("", 0))
        self._file = PACKAGE + self._file
        self._left = plan.get("nth", 1)
        self._then = plan.get("then", 0)
        name, line = plan.get("then_place", ("", 0))
        self._then_place = (PACKAGE + name, line) if line else None
        self._is_armed = bool(plan)
        self._has_second = bool(self._then or self._then_place)

    def start(self):
        if self._is_counting or self._is_armed:
            threading.settrace(self._enter)
            sys.settrace(self._enter)

    def stop(self):
        self._is_armed = self._is_counting = False
        sys.settrace(None)
        threading.settrace(None)

    def _enter(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if self._is_counting or self.sent or frame.f_code.co_filename == self._file:
            return self._line_reached
        return None

    def _line_reached(self, frame, event, argument):
        if event != "line":
            return self._line_reached
        name, line = frame.f_code.co_filename, frame.f_lineno
        if self._is_counting:
            self.seen[f"{name.removeprefix(PACKAGE)}:{line}"] += 1
        elif self.sent:
            self._then -= 1
            if self._is_armed and (self._then == 0 or (name, line) == self._then_place):
                self._send()
        elif self._is_armed and line == self._line and name == self._file:
            self._left -= 1
            if self._left == 0:
                self._follow_all()
                self._send()
        return self._line_reached

    def _follow_all(self):
        """Trace the frames that are under way in any thread: lines after the first interrupt are counted there."""
        for latest in sys._current_frames().values() if self._has_second else ():
            frame = latest
            while frame is not None:
                if frame.f_code.co_filename.startswith(PACKAGE):
                    frame.f_trace = self._line_reached
                frame = frame.f_back

    def _send(self):
        self.sent.append(time.monotonic())
        if len(self.sent) > 1 or not self._has_second:
            self._is_armed = False
        signal.pthread_kill(MAIN, signal.SIGINT)


def perform(job, pipelines):
    """One life of a run: to its end, or until it is interrupted.

    Returns:
        What the caller was told, how long after the first interrupt, and what was left in this process.
    """
    root = Path(job["root"])
    interrupter = Interrupter(job["fault"])
    options = {
        "backend": kill_graphs.Backend(),
        "interviewer": kill_graphs.Approver(),
        "clock": kill_graphs.HurriedClock(),
        "durability": job["durability"],
    }
    told, before = {}, records_of(root)
    interrupter.start()
    try:
        result = lead_to_its_end(pipelines[job["graph"]], root, job, options, interrupter)
        told = kill_worker.described(result)
    except BaseException as error:  # noqa: BLE001 - which kinds a user may see is what is judged
        ended = time.monotonic()
        interrupter.stop()
        told = described(error, interrupter, ended)
    interrupter.stop()
    gc.collect()
    if len(interrupter.sent) < 2:  # who leaves at once leaves the engine behind, which is still stopping
        told["left_open"] = left_open(root)
        told["is_owned"] = is_owned(root)
        told["standing"] = read_run(root).status if records_of(root) else ""
        told["has_begun"] = records_of(root) > before
    told["left_running"] = left_running(job["effects"]) if interrupter.sent else []
    told["seen"] = interrupter.seen
    told["sent"] = len(interrupter.sent)
    return told


def described(error, interrupter, ended):
    """The error that a user saw in place of a result."""
    ours = [entry.filename for entry in traceback.extract_tb(error.__traceback__)]
    return {
        "ended_by": type(error).__name__,
        "message": str(error),
        "hint": getattr(error, "hint", "") or getattr(error.__context__, "hint", ""),
        "is_interrupted": isinstance(error, RunInterrupted)
        or isinstance(error.__context__, RunInterrupted),  # asyncio.run makes a KeyboardInterrupt of it
        "seconds": ended - interrupter.sent[0] if interrupter.sent else 0.0,
        "seconds_after_second": ended - interrupter.sent[1] if len(interrupter.sent) > 1 else 0.0,
        "place": ours[-1],
        "trace": "".join(traceback.format_exception(error))[-3000:],
    }


def lead_to_its_end(pipeline, root, job, options, interrupter):
    """Do what a user would do: run; resume what was begun; look at what has ended."""
    if job["do"] == "run":
        return run(pipeline, root, job, options)
    options["on_interrupted"] = job["on_interrupted"]
    try:
        if job["host"] == "thread":
            return result_of(pipeline.resume(root, **options), interrupter)
        return in_loop(job["host"], lambda: awaited(pipeline.resume, root, host="kernel", **options))
    except RunNotFound:  # nothing of it was run
        del options["on_interrupted"]
        return run(pipeline, root, job, options)
    except RunError as refusal:
        if "has completed" not in str(refusal):
            raise
        return Run.load(root).result()


def result_of(run, interrupter):
    try:
        return run.result()
    except KeyboardInterrupt:
        if len(interrupter.sent) > 1 or run.is_done:
            raise
        return run.result()  # the wait had not begun: the run continues behind the prompt


def run(pipeline, root, job, options):
    given = {"logs_root": root, "params": {"ticket": "T-1"}, **options}
    if job["host"] == "thread":
        return pipeline.run(wait=True, **given)
    return in_loop(job["host"], lambda: pipeline.run_async(**given))


async def awaited(start, *args, **options):
    return await start(*args, **options)


def in_loop(host, work):
    if host == "kernel":
        return asyncio.run(work())
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(work())
    finally:
        _cancel_all(loop)
        loop.close()


def _cancel_all(loop):
    """Cancel all tasks, as asyncio.run does at its end."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


def records_of(root):
    return len(read_run(root).events) if has_event_log(root) else 0


def left_open(root):
    """Files of a run and pipes of commands that this process still has open."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        if int(entry.name) > 2 and target.startswith((str(root), "pipe:")):
            found.append(target)
    return found


def left_running(effects):
    """Commands and watchdogs that still run, in a process that lives on."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while (found := commands(effects)) and time.monotonic() < give_up:
        time.sleep(0.01)  # the end of a stranger's process is no event
    return found


def commands(effects):
    marks = (f"{kill_graphs.EFFECTS}={effects}".encode(), f"{MARK_NAME}=".encode())
    found = []
    for entry in Path("/proc").iterdir():
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            environment = (entry / "environ").read_bytes()
            words = (entry / "cmdline").read_bytes()[:40]
        except OSError:  # it has ended meanwhile
            continue
        if state not in "ZX" and (int(parent) == os.getpid() or all(mark in environment for mark in marks)):
            found.append(f"{entry.name}: {words}")
    return found


class InterruptedLives(kill_worker.Lives):
    """Lives that are interrupted, and what must be true of each beside what must be of a killed one."""

    def live(self, job, told_path):
        life = super().live(job, told_path)
        if "ended_by" in life:
            life["killed_by"] = int(signal.SIGINT)
        return life


def problems_of(life, baseline):
    """Faults in the end of an interrupted life as its user sees it."""
    wrong = []
    if "sent" not in life:
        return [f"it told nothing: {life}"]
    if left := set(life.get("left_open", ())) - set(baseline):
        wrong.append(f"left open: {sorted(left)}")
    if life.get("left_running"):
        wrong.append(f"left running: {life['left_running']}: {life.get('trace')}")
    if life.get("is_owned"):
        wrong.append("the run is still owned")
    if "ended_by" not in life:
        return wrong
    if life.get("standing", "") not in {"", "interrupted", "completed", "restarted"}:
        wrong.append(f"it stands as {life['standing']}: {life['trace']}")
    is_stopped = life.get("has_begun") and life["standing"] in {"interrupted", "restarted"}
    if is_stopped and not life["is_interrupted"]:
        wrong.append(f"a run was stopped and its caller not told: {life['trace']}")
    if not (life["is_interrupted"] or life["ended_by"] == "KeyboardInterrupt"):
        wrong.append(f"{life['ended_by']}: {life['message']}\n{life['trace']}")
    if life["is_interrupted"] and not life["hint"]:
        wrong.append(f"no way on is named: {life['message']}")
    return wrong


def judged(lives, case, references, baseline):
    """A case, judged by an uninterrupted run of the same graph on the same host."""
    told = []

    class Recorder:
        def live(self, job, told_path):
            job = {**job, "host": case["host"] if job["fault"] else "thread"}
            life = lives.live(job, told_path)
            told.append(life)
            return life

    verdict = kill_worker.judged(Recorder(), {"graph": case["graph"], "faults": case["faults"]}, references)
    own = told[-len(case["faults"]) - 1 :]
    interrupted = own[: len(case["faults"])]
    for life in interrupted:
        verdict["violations"] += problems_of(life, baseline)
    verdict["sent"] = [life.get("sent", 0) for life in interrupted]
    verdict["ended_by"] = [life.get("ended_by", "") for life in interrupted]
    verdict["is_interrupted"] = [life.get("is_interrupted", False) for life in interrupted]
    verdict["seconds"] = [life.get("seconds", 0.0) for life in interrupted]
    verdict["seconds_after_second"] = [life.get("seconds_after_second", 0.0) for life in interrupted]
    verdict["statuses"] = [life.get("status", "") for life in interrupted]
    verdict["seen"] = dict(told[-2].get("seen", {})) if "count" in case["faults"][-1] else {}
    return verdict


def serve():
    """Answer cases until stdin ends."""
    lives, references = InterruptedLives(perform), {}
    baseline = left_open(Path("/nowhere"))
    for line in sys.stdin:
        print(json.dumps(judged(lives, json.loads(line), references, baseline)), flush=True)


if __name__ == "__main__":
    os.environ["CAMPAIGN_TOOL"] = str(kill_graphs.TOOL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    serve()
