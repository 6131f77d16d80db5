"""The common actions of the stub agents in each mode; each script has its own wording.

``STUB_MODE`` names what to do, ``STUB_LOG`` a file that gets a line of JSON for each call.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

SECRET, KEY = os.environ.get("STUB_PLANTED", "b a")[::-1].split()
"""The text that the mode ``secret`` writes."""


def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def emit(**event):
    write(json.dumps(event) + "\n")


def record(**facts):
    path = os.environ.get("STUB_LOG")
    if path:
        entry = {"argv": sys.argv[1:], "cwd": str(Path.cwd()), "pid": os.getpid(), "env": dict(os.environ), **facts}
        with Path(path).open("a") as file:
            file.write(json.dumps(entry) + "\n")


def crash(message, exit_code=1):
    print(message, file=sys.stderr, flush=True)
    sys.exit(exit_code)


def work(agent, task, *, session, resumed, model):
    """Do what the mode says.

    Args:
        agent: Says it: ``begin``, ``say``, ``tool``, ``end``, ``fail``, and ``failures`` by kind.
        task: What it read.
        session: The session's id.
        resumed: The session that it goes on with, or None.
        model: The model that was asked for.
    """
    mode = os.environ.get("STUB_MODE", "answer")
    record(task=task, resumed=resumed, model=model)
    if mode.startswith("fail:"):
        agent.begin(session, model)
        agent.fail(*agent.failures[mode.removeprefix("fail:")])
    else:
        MODES[mode](agent, task, session, model)


def answer(agent, task, session, model):
    agent.begin(session, model)
    agent.say("Looking at it.")
    agent.end("The work is done.")


def tool(agent, task, session, model):
    agent.begin(session, model)
    agent.say("I run the tests.")
    agent.tool("call_1", {"command": "make test", "deep": {"list": [1, 2]}}, "3 passed", "")
    agent.tool("call_2", {"command": "false"}, "", "exit code 1")
    agent.say("One failed.")
    agent.end("One of two failed.")


def open_tool(agent, task, session, model):
    agent.begin(session, model)
    agent.tool_begins("call_1", {"command": "sleep 1000"})
    os.kill(os.getpid(), signal.SIGKILL)


def empty(agent, task, session, model):
    agent.begin(session, model)
    agent.end("")


def silent(agent, task, session, model):
    pass


def no_end(agent, task, session, model):
    agent.begin(session, model)
    agent.say("I begin.")


def half_line(agent, task, session, model):
    agent.begin(session, model)
    agent.say("I begin.")
    write('{"type": "result", "subtype": "succ')


def no_newline(agent, task, session, model):
    agent.begin(session, model)
    agent.say("Half.")
    agent.end("Whole.", newline=False)


def huge_line(agent, task, session, model):
    agent.begin(session, model)
    write('{"type": "item.completed", "junk": "' + "x" * 10_000_000 + '"}\n')
    agent.end("Done after a huge line.")


def noise(agent, task, session, model):
    sys.stdout.buffer.write(b'\xff\xfe\x00 not text \x80\n{\n}\n[1, 2]\n"word"\nnull\n{"no": "type"}\n')
    sys.stdout.buffer.write(b'{"type": 7}\n{"type": "from.the.future", "message": {"content": 3}}\n')
    sys.stdout.buffer.write(b'{"type": ' * 5000 + b"\n")
    sys.stdout.buffer.flush()
    write("\x1b[2K\x1b[1G")  # a progress bar before the line
    agent.begin(session, model)
    for shape in agent.wrong_shapes:
        write(json.dumps(shape) + "\n")
    sys.stdout.buffer.write(b"\xf0\x9f\n")
    sys.stdout.buffer.flush()
    agent.end("\x1b[31mDone\x1b[0m after noise \ud800.")


def secret(agent, task, session, model):
    agent.begin(session, model)
    agent.say(f"The keys are {SECRET} and {KEY}.")
    agent.tool("call_1", {"command": f"echo {SECRET}"}, f"it says {KEY}", "")
    print(f"warning: {SECRET}", file=sys.stderr)
    agent.end(f"I found {SECRET} and {KEY}.")


def secret_failure(agent, task, session, model):
    agent.begin(session, model)
    agent.fail(f"401 the key {SECRET} is refused", 0)


def report(agent, task, session, model):
    agent.begin(session, model)
    path = re.search(r"in the file (\S+status\.json)", task)[1]
    Path(path).write_text('{"outcome": "partial_success", "notes": "half of it", "context_updates": {"review": "ok"}}')
    agent.end("I wrote the file.")


def verdict(agent, task, session, model):
    agent.begin(session, model)
    agent.end('I looked.\n\n```json\n{"outcome": "fail", "notes": "it is wrong"}\n```')


def approve(agent, task, session, model):
    agent.begin(session, model)
    agent.end('Fine.\n\n```json\n{"outcome": "success"}\n```')


def writes_file(agent, task, session, model):
    Path("made-by-agent.txt").write_text("made")
    answer(agent, task, session, model)


def asks(agent, task, session, model):
    agent.begin(session, model)
    agent.say("Shall I? [y/N]")
    reply = sys.stdin.readline()
    if not reply:
        agent.fail("no input: stdin is closed", 1)
    agent.end("somebody answered")


def hangs(agent, task, session, model):
    agent.begin(session, model)
    agent.say("I think.")
    while True:
        time.sleep(60)


def leaves_children(agent, task, session, model):
    child = subprocess.Popen(["sleep", "1000"])
    record(child=child.pid)
    answer(agent, task, session, model)


def hangs_with_children(agent, task, session, model):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(
        [sys.executable, "-c", "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(1000)"]
    )
    record(child=child.pid)
    hangs(agent, task, session, model)


def denied(agent, task, session, model):
    agent.begin(session, model)
    agent.denied("call_1", {"command": "make test"})
    agent.denied("call_2", {"command": "make test"})
    agent.end("I could not run the tests.")


def structured(agent, task, session, model):
    agent.begin(session, model)
    agent.say("I looked at the order.")
    agent.end('{"items": ["bolt"], "note": "ünïcode"}')


def limit_resets(agent, task, session, model):
    agent.begin(session, model)
    agent.fail("Claude usage limit reached. Your limit will reset at 3pm (Europe/Berlin).", 0)


def flood(agent, task, session, model):
    agent.begin(session, model)
    for number in range(1100):
        agent.tool(f"call_{number}", {"command": "x" * 2000}, "y" * 2000, "")
    agent.end("Many calls.")


def exits_badly_after_success(agent, task, session, model):
    answer(agent, task, session, model)
    crash("fatal: something after the end", 7)


def complains_and_recovers(agent, task, session, model):
    agent.begin(session, model)
    agent.complain("stream disconnected, reconnecting 1/5")
    agent.say("Back.")
    agent.end("Done all the same.")


MODES = {name: value for name, value in list(globals().items()) if callable(value)}
