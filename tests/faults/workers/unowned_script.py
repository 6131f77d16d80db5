"""A user's script that is interrupted between ``pipeline.run()`` and ``run.result()``: see fault 6.

Usage: unowned_script.py N

SIGINT comes before the Nth line that the main thread executes once the engine was started, be it a line of the
script or of ours; at the latest where ``run.result()`` begins. Prints how many lines there were until then.
"""

import signal
import sys
from pathlib import Path

from attractor_nb import Pipeline, Run

OURS = (__file__, "pipeline/pipeline.py", "pipeline/run.py", "attractor_nb/interrupts.py")
LINES = []
STARTED = []


def send():
    sys.settrace(None)
    print(len(LINES), flush=True)
    signal.raise_signal(signal.SIGINT)


def enter(frame, event, argument):
    code = frame.f_code
    if code.co_name == "start" and code.co_filename.endswith("runtime/handles/handle.py"):
        STARTED.append(code)
    if STARTED and code is Run.result.__code__:
        send()
    return reach if code.co_filename.endswith(OURS) else None


def reach(frame, event, argument):
    if event == "line" and STARTED:
        LINES.append(frame.f_lineno)
        if len(LINES) == int(sys.argv[1]):
            send()
    return reach


def script():
    run = Pipeline(Path("it.dot").read_text()).run(logs_root="out", durability="fast")
    if sys.argv[2:]:
        Path("ready").read_text()  # a command of it runs
    names = {run.id: run.status}
    names[run.id] = "mine"
    run.result()


sys.settrace(enter)
script()
