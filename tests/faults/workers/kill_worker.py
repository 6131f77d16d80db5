"""Runs pipelines that are killed or hit by disk faults, resumes them, and says what came of it.

Started by the fixture ``kill_worker``; it reads one case a line as JSON from stdin and writes one verdict a
line. Everything is imported and every graph parsed once; each run and each resume then happens in a process
of its own: forked from here, or, with ``is_whole``, started from nothing. All descendants of such a process,
its tools and what they left behind, become our children when it dies, so that waiting for them all shows
whether anything is left running.

A case: ``{"graph", "faults": [fault, …], "on_interrupted", "is_whole"}``. The first fault hits the run, each
further one the next resume; after the last one the run is resumed unharmed. A fault is one of

    {"disk": {arguments of FaultyDisk}}             the seam kills or fails at an operation
    {"library": {"at": 7, "when": "before"}}        the preloaded library kills at an operation
    {"user": 65534}                                 the life is that of another user
    {}                                              nothing: to count the operations

With ``{"program": {…}}`` as its argument it is such a whole process itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import tempfile
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import kill_graphs
import kill_judge

from attractor_nb import Run
from attractor_nb.errors import AttractorError, RunError, RunNotFound
from attractor_nb.storage.log.lock import is_owned

sys.path.append(str(Path(__file__).parents[3]))  # last: the package may be a mutated copy
from tests.disks.faulty_disk import FaultyDisk

for room in ("model", "storage", "engine", "handlers", "runtime", "pipeline"):
    package = import_module(f"attractor_nb.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)  # once, here: a life may be that of a user who cannot read Python's own files

LIBRARY = os.environ.get("CAMPAIGN_LIBRARY", "")
BECOME_SUBREAPER = 36
LONG = 10_000
OF_EACH_RUN = {"sub.run_id", "stack.child.run_id", "stack.child.logs_root", "stack.child.cycle"}
"""Keys of a context that are others in every run."""
PATIENCE_SECONDS = 60
"""Seconds for descendants to end; only one that never ends takes that long."""


def perform(job, pipelines):
    """One life of a run, from its beginning or a resume to its end: in a process that may not see it.

    Returns:
        What the caller of ``run`` or ``resume`` was told.
    """
    root = Path(job["root"])
    disk = FaultyDisk(**job["fault"].get("disk", {}))
    options = {
        "backend": kill_graphs.Backend(),
        "interviewer": kill_graphs.Approver(),
        "clock": kill_graphs.HurriedClock(),
        "durability": job["durability"],
        "disk": disk,
    }
    told = {}
    try:
        result = lead_to_its_end(pipelines[job["graph"]], root, job, options)
        told = described(result)
    except Exception as error:  # noqa: BLE001 - the judge says which kinds may reach a user
        told["error"] = {
            "type": type(error).__name__,
            "is_ours": isinstance(error, AttractorError),
            "message": str(error),
            "path": getattr(error, "path", ""),
            "hint": getattr(error, "hint", ""),
            "errno": getattr(error.__cause__, "errno", None),
        }
        told["is_owned"] = is_owned(root)
    told["operations"] = disk.operations
    return told


def described(result):
    """The facts that a caller got with a result."""
    return {
        "status": result.status,
        "reason": result.reason,
        "path": list(result.completed_nodes),
        "outcomes": {name: str(status) for name, status in result.node_outcomes.items()},
        "visits": dict(result.visits),
        "context": {
            name: _shortened(result.context.get(name)) for name in result.context.snapshot() if name not in OF_EACH_RUN
        },
        "run_id": result.run_id,
    }


def lead_to_its_end(pipeline, root, job, options):
    """Do what a user would do: run; resume what was begun; look at what has ended."""
    if job["do"] == "run":
        return pipeline.run(wait=True, logs_root=root, params={"ticket": "T-1"}, **options)
    try:
        return pipeline.resume(root, on_interrupted=job["on_interrupted"], **options).result()
    except RunNotFound:  # nothing of it was run
        return pipeline.run(wait=True, logs_root=root, params={"ticket": "T-1"}, **options)
    except RunError as refusal:
        if "has completed" not in str(refusal):
            raise
        return Run.load(root).result()


def _shortened(value):
    """A value as it reads; a large one by its digest."""
    text = json.dumps(value)
    return value if len(text) < LONG else sha256(text.encode()).hexdigest()


class Lives:
    """Starts the processes in which runs live, and sees them and all that they started end."""

    def __init__(self, perform=perform):
        self._perform = perform
        if ctypes.CDLL(None).prctl(BECOME_SUBREAPER, 1, 0, 0, 0):
            sys.exit("this system gives orphans to nobody but init")
        self._pipelines = kill_graphs.pipelines()
        self._killer = ctypes.CDLL(LIBRARY) if LIBRARY else None
        signal.signal(signal.SIGALRM, _give_up)

    def live(self, job, told_path):
        """One life; how it ended, and what it told unless it was killed."""
        with tempfile.TemporaryFile() as said:
            if job.get("is_whole"):
                process_id = self._start(job, told_path, said)
            elif not (process_id := os.fork()):
                self._be(job, told_path, said)
            ended, left = self._see_the_end_of(process_id)
            said.seek(0)
            spoken = said.read().decode("utf-8", "replace")
        told = json.loads(told_path.read_text("utf-8")) if told_path.exists() and told_path.stat().st_size else {}
        told_path.unlink(missing_ok=True)
        killed_by = os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else 0
        return {"killed_by": killed_by, "left_alive": left, "said": spoken, **told}

    def _be(self, job, told_path, said):
        """The work of a forked child; it never returns."""
        try:
            os.dup2(said.fileno(), sys.stderr.fileno())
            told_path.touch()
            os.environ[kill_graphs.EFFECTS] = job["effects"]
            if user := job["fault"].get("user"):
                os.chown(told_path, user, -1)
                os.setuid(user)
            if library := job["fault"].get("library"):
                trace = library.get("trace", "")
                self._killer.killer_arm(
                    os.fsencode(job["root"]), int(library["at"]), library["when"].encode(), trace.encode()
                )
            _tell(told_path, self._perform(job, self._pipelines))
        except BaseException:  # noqa: BLE001 - a child of a fork must not go on as if it were its parent
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)

    def _start(self, job, told_path, said):
        environment = {**os.environ, kill_graphs.EFFECTS: job["effects"]}
        if library := job["fault"].get("library"):
            environment.update(KILLER_ROOT=job["root"], KILLER_AT=str(library["at"]), KILLER_WHEN=library["when"])
        program = json.dumps({"program": {**job, "told": str(told_path)}})
        return subprocess.Popen([sys.executable, __file__, program], env=environment, stderr=said).pid

    def _see_the_end_of(self, process_id):
        """Wait for a process and for every descendant that it left to us; the ids of those that stay."""
        ended, left = 0, []
        signal.alarm(PATIENCE_SECONDS)
        try:
            while True:
                found, status = os.waitpid(-1, 0)
                if found == process_id:
                    ended = status
        except ChildProcessError:
            pass
        except TimeoutError:
            left = _children()
        finally:
            signal.alarm(0)
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)
        return ended, left


def _give_up(number, frame):
    raise TimeoutError


def _children():
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(word) for word in path.read_text().split()]


def _tell(path, told):
    path.write_text(json.dumps(told), "utf-8")


def try_case(lives, case, place, reference=None):
    """Everything that one case asks for; the verdict, measured by a run that nothing happened to."""
    root = place / "run"
    effects = place / "effects"
    effects.touch()
    job = {
        "graph": case["graph"],
        "root": str(root),
        "effects": str(effects),
        "on_interrupted": case.get("on_interrupted", "rerun"),
        "durability": case.get("durability", "full"),
        "is_whole": case.get("is_whole", False),
    }
    history = kill_judge.History(root, effects, kill_graphs.AT_ONCE.get(case["graph"], 1))
    for number, fault in enumerate(case["faults"]):
        life = lives.live({**job, "do": "resume" if number else "run", "fault": fault}, place / "told")
        history.note_life(fault, life)
    if case["faults"] != [{}]:
        life = lives.live({**job, "do": "resume", "fault": {}}, place / "told")
        history.note_life({}, life)
    return history.verdict(case, reference)


def judged(lives, case, references):
    """A case in a place of its own; a graph's first one is preceded by an uninterrupted run."""
    graph = case["graph"]
    is_reference = case["faults"] == [{}]
    if not is_reference and graph not in references:
        references[graph] = judged(lives, {"graph": graph, "faults": [{}]}, references)
    place = Path(tempfile.mkdtemp(prefix="kill-", dir=os.environ["CAMPAIGN_PLACE"])).resolve()
    place.chmod(0o755)  # for what another user is refused further down
    try:
        return try_case(lives, case, place, None if is_reference else references[graph])
    finally:
        shutil.rmtree(place, ignore_errors=True)


def serve():
    """Answer cases until stdin ends."""
    lives, references = Lives(), {}
    for line in sys.stdin:
        print(json.dumps(judged(lives, json.loads(line), references)), flush=True)


def be_whole(job):
    """Be one life, in a process that was started for it alone."""
    for name in [name for name in os.environ if name.startswith(("KILLER_", "LD_PRELOAD"))]:
        del os.environ[name]
    _tell(Path(job["told"]), perform(job, kill_graphs.pipelines()))


if __name__ == "__main__":
    os.environ["CAMPAIGN_TOOL"] = str(kill_graphs.TOOL)
    if len(sys.argv) > 1:
        be_whole(json.loads(sys.argv[1])["program"])
    else:
        serve()
