"""Owners of a run that freeze, race, or are killed; forked from one process that has imported everything.

Usage: python owner_worker.py freeze BASE KIND DURABILITY   (reads numbers of operations on stdin)
       python owner_worker.py stage BASE KIND HOW
       python owner_worker.py race BASE COUNT ROUNDS

``freeze``: for each number an owner begins a run in ``BASE/number`` and stops itself (SIGSTOP) at that operation
of its disk; another process takes the run over and ends it; then the first goes on. Number 0 counts the
operations. ``stage``: the same in the middle of a stage of a KIND (model, tool, gate), by an owner that is
``frozen``, or is ``unlocked``: the lock file is removed, and no process is frozen. ``race``: COUNT processes
resume one run at the same moment, the one that got it is killed, and so on; in the last round its owner is
frozen and all of them take it over. Facts are printed as JSON, a line each; the test judges.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from functools import partial
from hashlib import sha256
from pathlib import Path

from attractor_nb import Outcome, Pipeline, RetryableError, current_stage, runs
from attractor_nb.errors import AttractorError, RunError, RunLocked
from attractor_nb.model.events import PipelineCompleted, PipelineFailed
from attractor_nb.model.outcome import StageStatus
from attractor_nb.storage.stored_run import read_run

sys.path.append(str(Path(__file__).parents[3]))  # last: the package may be a mutated copy
from tests.disks.faulty_disk import FaultyDisk

FRAME = "digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {} }}"
LOOP = FRAME.format(
    'write [prompt=w, max_retries=1] check [prompt=c] start -> write -> check check -> write [label="again"RESTART]'
    ' check -> done [label="good"]'
)
# Who has said that it began is not let go by what comes after.
TOOL = 'test -e "$EFFECTS.go"; go=$?; echo "tool - - $$" >> "$EFFECTS"; test $go = 0 && exit 0; cat "$EFFECTS.fifo"'
SOURCES = {
    "loop": LOOP.replace("RESTART", ""),
    "restart": LOOP.replace("RESTART", ", loop_restart=true"),
    "model": FRAME.format("quick [prompt=q] slow [prompt=s] start -> quick -> slow -> done"),
    "tool": FRAME.format(f"quick [prompt=q] slow [shape=parallelogram, tool_command={json.dumps(TOOL)}]"
                         " start -> quick -> slow -> done"),
    "gate": FRAME.format('quick [prompt=q] slow [shape=hexagon, label="Ship?"] start -> quick -> slow'
                         ' slow -> done [label="[Y] Yes"]'),
}  # fmt: skip

RACE_SECONDS = 60
"""A racer that says nothing for so long has not lost: it owns the run."""


class Backend:
    """Says what it was asked to do in a file, retries once, goes back once; blocks in ``slow`` until told."""

    def __init__(self, effects: Path) -> None:
        self._effects = effects

    def run(self, node, prompt, context):
        del prompt, context
        stage = current_stage()
        is_task_cancelled = Path(f"{self._effects}.go").exists()  # asked before it says that it began
        with self._effects.open("a") as file:
            file.write(f"{stage.logs_root.name} {node.id} {stage.visit} {os.getpid()}\n")
        if node.id == "write":
            if stage.visit == stage.attempt == 1:
                raise RetryableError("not now")
            return "x" * 150_000
        if node.id == "check":
            is_first = stage.visit == 1 and not stage.logs_root.name.startswith("restart")
            return Outcome(StageStatus.SUCCESS, preferred_label="again" if is_first else "good")
        if node.id == "slow" and not is_task_cancelled:
            Path(f"{self._effects}.fifo").read_bytes()  # until a writer comes
        return "fine"


class FreezingDisk(FaultyDisk):
    """Stops the process at an operation."""

    def __init__(self, freeze_at: int) -> None:
        super().__init__()
        self._freeze_at = freeze_at

    def _count(self, operation, name="", *, halfway=None):
        super()._count(operation, name, halfway=halfway)
        if len(self.operations) == self._freeze_at:
            # This thread, not the process: it must not run on until another thread takes the signal.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def forked(work):
    """Do work in a child; its pid, and the descriptor from which its answer is read as JSON."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(reading)
        answer = {}
        try:
            answer = work()
        except AttractorError as error:
            answer = {"ended": type(error).__name__, "message": error.message}
        finally:
            os.write(writing, json.dumps(answer).encode())
            os._exit(0)
    os.close(writing)
    return pid, reading


def answer_of(reading):
    with os.fdopen(reading, "rb") as file:
        return json.loads(file.read() or b"null")


def started(count, work):
    """Processes that begin to do a work at the same moment: when a pipe is closed."""
    gate, starter = os.pipe()

    def wait_and_work():
        os.close(starter)
        os.read(gate, 1)
        return work()

    racers = dict(forked(wait_and_work) for _ in range(count))
    os.close(gate)
    os.close(starter)
    return racers


def words_of(racers):
    """The outcomes of the racers, up to the first that has not lost and so goes on."""
    words = []
    for reading in racers.values():
        if not select.select([reading], [], [], RACE_SECONDS)[0]:
            return [*words, {"word": "owner"}]
        words.append(answer_of(reading))
    return words


def pipeline_of(kind, effects):
    os.environ["EFFECTS"] = str(effects)
    return Pipeline(SOURCES[kind], backend=Backend(effects).run)


def begun(kind, place, effects, **options):
    result = pipeline_of(kind, effects).run(wait=True, logs_root=place, **options)
    return {"ended": result.status}


def events_of(place):
    """The events of a run and its restarts."""
    for log in [place, *sorted(place.glob("restart-?"))]:
        with contextlib.suppress(AttractorError):
            yield from read_run(log).events


def commits_of(place):
    """The record: directory, node and visit of each commit."""
    logs = [place, *sorted(place.glob("restart-?"))]
    return [
        (log.name, event.name, event.visit)
        for log in logs
        for event in (read_run(log).events if (log / "events.jsonl").exists() else ())
        if getattr(event, "is_commit", False)
    ]


def taken(kind, place, effects, **options):
    """Resume the run; be refused if need be, and take it over; end it; what was seen."""
    facts = {"commits": commits_of(place)}
    pipeline = pipeline_of(kind, effects)
    began = time.monotonic()
    try:
        run = pipeline.resume(place, interviewer="auto", **options)
    except RunLocked as error:
        facts["locked_by"], facts["refused_after"] = error.owner.get("pid"), time.monotonic() - began
        facts["status"] = [
            read_run(place).status,
            *(run.status for run in runs(place.parent) if run.logs_root == place),
        ]
        run = pipeline.resume(place, take_over=True, interviewer="auto", **options)
    result = run.result(60)
    path = [name for _, name, _ in commits_of(place)]
    return {**facts, "ended": result.status, "path": path, "answer": len(str(result.context.get("write.response", "")))}


EMPTY_FILE = sha256(b"").hexdigest()


def picture(place):
    """Everything under a directory: names and contents."""
    return {
        str(path.relative_to(place)): sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
        for path in sorted(place.rglob("*"))
    }


def changes(before, after):
    """The changes between two pictures.

    Three things may, all among the evidence of the old owner's own earlier attempt: a file that it was just
    moving there arrives, or the directory for it is made; a file that it had just created, and that is still
    empty, is written; and the one file that it was just creating is created. No other file is lost, overwritten
    or new. What it was making for a restart that had not begun belongs to no run: the taker has set it aside.
    """
    names = sorted(
        name
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name) and "-leftover-" not in name.partition("/")[0]
    )
    files = [sorted(set(found.values()) - {"directory"}) for found in (before, after)]
    counts = [sum(content != "directory" for content in found.values()) for found in (before, after)]
    is_moved = files[0] == files[1] and counts[0] == counts[1]
    is_created = counts[1] == counts[0] + 1 and before.keys() < after.keys()
    return [
        name
        for name in names
        if "/visits/" not in name
        or not (is_moved or before.get(name) == EMPTY_FILE or (is_created and name not in before))
    ]


def effects_of(effects):
    return [line.split() for line in effects.read_text().splitlines()] if effects.exists() else []


def say(**facts):
    print(json.dumps(facts), flush=True)


def freeze(base, kind, durability):
    for line in sys.stdin:
        number = int(line)
        place, effects = base / str(number), base / f"{number}.effects"
        owner, answer = forked(partial(own_and_freeze, number, kind, place, effects, durability))
        _, status = os.waitpid(owner, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            say(number=number, **answer_of(answer))
            continue
        taker, reading = forked(partial(taken, kind, place, effects, durability=durability))
        facts = answer_of(reading)
        os.waitpid(taker, 0)
        before, count = picture(place), len(effects_of(effects))
        os.kill(owner, signal.SIGCONT)
        thawed = answer_of(answer)
        os.waitpid(owner, 0)
        after = picture(place)
        say(
            number=number,
            owner=owner,
            taker_pid=taker,
            taker=facts,
            thawed=thawed,
            changed=changes(before, after),
            late=effects_of(effects)[count:],
            done=[effect for effect in effects_of(effects) if effect[3] == str(taker)],
            recorded=[event.time for event in events_of(place)],
        )


def own_and_freeze(number, kind, place, effects, durability):
    """Begin a run, and end it unless robbed; with it, the times of the commits that observers were told of."""
    disk, told = FreezingDisk(number), []
    options = {"logs_root": place, "durability": durability, "disk": disk, "observers": [told.append]}
    try:
        ended = {"ended": pipeline_of(kind, effects).run(wait=True, **options).status}
    except AttractorError as error:
        ended = {"ended": type(error).__name__, "message": error.message}
    commits = [event.time for event in told if getattr(event, "is_commit", False)]
    return {**ended, "told": commits, "operations": disk.operations if number == 0 else []}


def stage(base, kind, how):
    place, effects = base / kind, base / f"{kind}.effects"
    os.mkfifo(f"{effects}.fifo")
    owner, answer = forked(lambda: begun(kind, place, effects, interviewer="deferred"))
    wait_for(
        lambda: "slow" in (place / "events.jsonl").read_text() and (kind == "gate" or len(effects_of(effects)) > 1)
    )
    Path(f"{effects}.go").touch()
    if how == "frozen":
        os.kill(owner, signal.SIGSTOP)
        os.waitpid(owner, os.WUNTRACED)
    else:
        (place / "owner.lock").unlink()
    facts = forked(lambda: taken(kind, place, effects, on_interrupted="rerun"))
    taker, facts = facts[0], answer_of(facts[1])
    os.waitpid(taker, 0)
    before = picture(place)
    began = time.monotonic()
    if how == "frozen":
        os.kill(owner, signal.SIGCONT)
    thawed = answer_of(answer)
    os.waitpid(owner, 0)
    commands = [int(effect[3]) for effect in effects_of(effects) if effect[0] == "tool"]
    say(
        owner=owner,
        taker=facts,
        thawed=thawed,
        seconds=time.monotonic() - began,
        is_changed=bool(changes(before, picture(place))),
        commands_alive=[pid for pid in commands if Path(f"/proc/{pid}").exists()],
    )


def wait_for(condition):
    """Wait for a foreign process; polled, because it has no other way to tell."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        with contextlib.suppress(OSError):
            if condition():
                return
        time.sleep(0.005)
    raise TimeoutError


def end_owner(owner, effects, answer, *, is_frozen):
    """Freeze an owner, and let its successors go on to the end; or kill it."""
    if is_frozen:
        Path(f"{effects}.go").touch()
        os.kill(owner, signal.SIGSTOP)
        os.waitpid(owner, os.WUNTRACED)
    else:
        os.kill(owner, signal.SIGKILL)
        os.waitpid(owner, 0)
        os.close(answer)


def outcome_of_resume(place, effects, *, take_over):
    """The outcome that a racer gets."""
    began = time.monotonic()
    try:
        run = pipeline_of("model", effects).resume(place, take_over=take_over)
    except RunLocked as error:
        return {"word": "locked", "by": error.owner.get("pid"), "after": time.monotonic() - began}
    except RunError as error:
        if "has completed" not in error.message:
            raise
        return {"word": "too late"}  # another has taken it over and ended it already
    try:
        return {"word": run.result().status}
    except RunLocked:
        return {"word": "lost"}


def race(base, count, rounds):
    place, effects = base / "run", base / "run.effects"
    os.mkfifo(f"{effects}.fifo")

    owner, answer = forked(lambda: begun("model", place, effects))
    for number in range(rounds):
        is_last = number == rounds - 1
        slow_before = number + 1
        wait_for(lambda before=slow_before: sum(effect[1] == "slow" for effect in effects_of(effects)) == before)
        end_owner(owner, effects, answer, is_frozen=is_last)
        racers = started(count, partial(outcome_of_resume, place, effects, take_over=is_last))
        if is_last:
            words = [answer_of(reading) for reading in racers.values()]
        else:
            wait_for(lambda before=slow_before: sum(effect[1] == "slow" for effect in effects_of(effects)) > before)
            owner = int(effects_of(effects)[-1][3])
            answer = racers.pop(owner)
            words = words_of(racers)
            if {"word": "owner"} in words:  # two owners: nothing more needs to be known
                for other in (owner, *racers):
                    os.kill(other, signal.SIGKILL)
                say(words=words)
                return
        for pid in racers:
            os.waitpid(pid, 0)
        say(round=number, owner=owner, words=words, effects=effects_of(effects))
    os.kill(owner, signal.SIGCONT)
    thawed = answer_of(answer)
    say(thawed=thawed, ends=[event.type for event in read_run(place).events.select(PipelineCompleted, PipelineFailed)])


def warm_up():
    """Import and compile beforehand what each child would; no thread may be started before a fork."""
    for source in SOURCES.values():
        Pipeline(source)


if __name__ == "__main__":
    warm_up()
    command, base, *arguments = sys.argv[1:]
    if command == "freeze":
        freeze(Path(base), *arguments)
    elif command == "stage":
        stage(Path(base), *arguments)
    else:
        race(Path(base), *(int(argument) for argument in arguments))
