"""Lives of a run whose one command is cut off: begun, resumed, killed in the middle, resumed again.

Reads one life a line as JSON from stdin and answers one line each. A life is a process of its own, forked
before anything was started here::

    {"root": run directory, "is_new": …, "answer": what the person says, "kill_at": operation of the disk}

The answer says whether the life was killed, how often the disk was written to, in all and before the person
answered, and how the run ended. The command writes its idempotency key to ``effects`` beside the run directory and,
while there is no file ``calm``, kills the engine that started it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path

from attractor_nb import Pipeline

sys.path.append(str(Path(__file__).parents[3]))  # last: the package may be a mutated copy
from tests.disks.faulty_disk import FaultyDisk

COMMAND = "echo $ATTRACTOR_IDEMPOTENCY_KEY >> ../../effects; test -e ../../calm || kill -9 $ENGINE"
SOURCE = f"""digraph Deploy {{
    start [shape=Mdiamond]
    deploy [shape=parallelogram, tool_command="cd $ATTRACTOR_STAGE_DIR && {COMMAND}"]
    check [prompt="Check"]
    mourn [prompt="Say so"]
    done [shape=Msquare]
    start -> deploy -> check -> done
    deploy -> mourn [condition="outcome=fail"]
    mourn -> done
}}"""


def live(job: dict, told) -> None:
    """One life, in a process that may not see its end."""
    root = Path(job["root"])
    disk = FaultyDisk(kill_at=job.get("kill_at"))
    asked = (root.parent / "asked").open("a")

    before_answer = 0

    def person(question):
        nonlocal before_answer
        asked.write(question.id + "\n")
        asked.flush()
        before_answer = len(disk.operations)
        return job["answer"]

    pipeline = Pipeline(SOURCE)
    options = {"disk": disk, "is_shown": False}
    if job.get("is_new"):
        run = pipeline.run(logs_root=root, **options)
    else:
        run = pipeline.resume(root, interviewer=person, **options)
    result = run.result(60)
    notes = result.outcomes["deploy"].notes or result.outcomes["deploy"].failure_reason
    words = {"status": result.status, "path": result.completed_nodes, "notes": notes}
    json.dump({**words, "operations": len(disk.operations), "before_answer": before_answer}, told)
    told.flush()


def main() -> None:
    """Serve lives until stdin ends."""
    for line in sys.stdin:
        job = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.environ["ENGINE"] = str(os.getpid())
            code = 1
            try:
                with os.fdopen(writing, "w") as told:
                    live(job, told)
                code = 0
            except BaseException:  # noqa: BLE001 - the test reads it on stderr
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as told:
            words = told.read()
        _, status = os.waitpid(child, 0)
        was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        verdict = {"was_killed": was_killed, "code": os.waitstatus_to_exitcode(status)}
        print(json.dumps({**verdict, **(json.loads(words) if words else {})}), flush=True)


main()
