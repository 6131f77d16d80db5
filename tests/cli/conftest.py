"""Pipelines as files, and the command as a process of its own."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from attractor_nb import Pipeline
from tests import warm

REVIEW = """\
digraph Review {
    graph [goal="Ship it"]
    start [shape=Mdiamond]
    plan  [label="Plan the work", prompt="Plan: $goal"]
    gate  [shape=hexagon, label="Good enough?"]
    done  [shape=Msquare]
    start -> plan -> gate
    gate -> done [label="[A] Approve"]
    gate -> plan [label="[R] Again"]
}
"""
STRAIGHT = """\
digraph Straight {
    start [shape=Mdiamond]
    write [label="Write it", prompt="Write"]
    done  [shape=Msquare]
    start -> write -> done
}
"""
FAILING = """\
digraph Failing {
    start [shape=Mdiamond]
    check [shape=parallelogram, tool_command="echo no >&2; exit 3"]
    done  [shape=Msquare]
    start -> check -> done
}
"""
SLOW = """\
digraph Slow {
    start [shape=Mdiamond]
    nap   [shape=parallelogram, idempotent=true, tool_command="touch began; test -e quick || sleep 60"]
    done  [shape=Msquare]
    start -> nap -> done
}
"""
BROKEN = """\
digraph Broken {
    start [shape=Mdiamond]
    write [prompt="Write"]
    done [shape=Msquare]
    start -> write -> dne
}
"""


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def sources(tmp_path):
    """The pipelines above as files in the working directory."""
    texts = {"review": REVIEW, "straight": STRAIGHT, "failing": FAILING, "slow": SLOW, "broken": BROKEN}
    for name, text in texts.items():
        (tmp_path / f"{name}.dot").write_text(text)
    return tmp_path


@pytest.fixture
def command(capfd, monkeypatch):
    """Run a command line in this process; stdin is empty unless given."""
    from attractor_nb.cli import main

    def run(*arguments, stdin=b""):
        read_end, write_end = os.pipe()
        os.write(write_end, stdin)
        os.close(write_end)
        with os.fdopen(read_end, "r") as given:
            monkeypatch.setattr(sys, "stdin", given)
            capfd.readouterr()
            code = main([str(argument) for argument in arguments])
            captured = capfd.readouterr()
        return Ended(int(code), captured.out, captured.err)

    return run


@pytest.fixture
def started(tmp_path):
    """Start the command as a process; ended at the end of the test if it still runs."""
    processes = []

    def start(*arguments, **options):
        defaults = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = warm.Popen(
            [sys.executable, "-m", "attractor_nb", *(str(argument) for argument in arguments)],
            cwd=tmp_path,
            **(defaults | options),
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@dataclass
class Asked:
    """A request that reached the stub."""

    method: str
    path: str
    headers: object
    body: object


class Stub(ThreadingHTTPServer):
    """A server that says what a test wants it to, in the shapes of spec 9.5."""

    daemon_threads = True

    def __init__(self):
        self.asked = []
        self.answers = {}
        super().__init__(("127.0.0.1", 0), StubHandler)
        self.url = f"http://127.0.0.1:{self.server_port}"

    def says(self, method, path, *answers, status=200, kind="application/json", headers=()):
        """Answers to the same request, one after another; the last one stays."""
        texts = [answer if isinstance(answer, str | bytes) else json.dumps(answer) for answer in answers]
        self.answers.setdefault((method, path), []).extend(
            (status, kind, dict(headers), text.encode() if isinstance(text, str) else text) for text in texts
        )


class StubHandler(BaseHTTPRequestHandler):
    def _serve(self):
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.asked.append(Asked(self.command, self.path, self.headers, body))
        answers = self.server.answers.get((self.command, self.path))
        if not answers:
            self.send_error(404)
            return
        status, kind, headers, content = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Connection": "close", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = _serve  # noqa: N815 - the name that the standard library calls
    do_POST = _serve  # noqa: N815 - as above

    def log_message(self, *arguments):
        pass


@pytest.fixture
def stub():
    server = Stub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def waiting(sources):
    """A run that was stopped while its gate waited."""
    run = Pipeline(sources / "review.dot").run(wait=False, logs_root=sources / "out")
    run.wait_for_gate("gate", 60)
    run.cancel()
    assert run.result(60).status == "interrupted"
    return sources / "out"
