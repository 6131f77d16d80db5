"""The modules that a command loads before it answers: as few as it needs. Counted, not timed."""

import json
import subprocess
import sys

HEAVY = {
    "IPython", "anthropic", "dask", "distributed", "genai_prices", "graphviz", "httpx", "ipywidgets", "jsonschema",
    "jsonschema_rs", "lark", "lsprotocol", "networkx", "openai", "pandas", "pydantic_ai", "pygls", "questionary", "rich",
    "xllamacpp",
}  # fmt: skip
ENGINE = {"attractor_nb.pipeline.pipeline", "attractor_nb.engine.runner", "attractor_nb.handlers.handler_registry"}

SERVE = """\
import json, os, signal, sys, threading, urllib.request
from attractor_nb.cli import main, serve_until_stopped

serve = serve_until_stopped.serve

def ask(url):
    server, _, token = url.partition("/#token=")
    request = urllib.request.Request(server + "/pipelines", headers={"Authorization": "Bearer " + token})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        print(json.dumps({"status": answer.status, "modules": list(sys.modules)}))
    os.kill(os.getpid(), signal.SIGINT)

def serve_once(root, *, on_ready, **options):
    serve(root, on_ready=lambda url: threading.Thread(target=ask, args=(url,)).start(), **options)

serve_until_stopped.serve = serve_once
sys.exit(main(["serve", "--port", "0", "--runs-dir", "runs"]))
"""
ASK = """\
import json, sys
from attractor_nb.cli import main

codes = [main([*words.split(), "--server", sys.argv[1]]) for words in sys.argv[2:]]
print(json.dumps({"codes": codes, "modules": list(sys.modules)}))
"""


def said_by(program, *arguments):
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def top_level(modules):
    return {name.partition(".")[0] for name in modules}


def test_a_server_answers_its_first_request_before_anything_heavy_is_loaded():
    said = said_by(SERVE)
    assert said["status"] == 200
    assert top_level(said["modules"]) & HEAVY == set()
    assert "starlette" in top_level(said["modules"])  # the list is one of what was loaded


def test_who_asks_a_server_loads_no_engine(stub, sources):
    for path in ("", "/r1/resume", "/r1/fork", "/r1/cancel", "/r1/questions/gate/answer"):
        stub.says("POST", f"/pipelines{path}", {"id": "r1", "status": "running"}, status=202)
    stub.says("GET", "/pipelines/r1/events", "event: end\ndata: {}\n\n", kind="text/event-stream")
    stub.says("GET", "/pipelines/r1", {"id": "r1", "status": "interrupted"})
    words = ["submit straight.dot", "resume r1", "fork r1 plan", "cancel r1", "answer r1 gate A"]
    said = said_by(ASK, stub.url, *words)
    assert said["codes"] == [0] * len(words)
    assert len(stub.asked) == len(words) + 2  # who cancels looks how it stands then
    assert set(said["modules"]) & ENGINE == set()
    assert top_level(said["modules"]) & HEAVY == set()
    assert "attractor_nb.cli.remote_runs.remote" in said["modules"]


PIPELINE = """\
import json, sys
from attractor_nb import Pipeline

found = Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }").lint()
print(json.dumps({"findings": len(found), "modules": list(sys.modules)}))
"""


def test_a_pipeline_is_read_and_linted_without_what_few_runs_need():
    said = said_by(PIPELINE)
    assert said["findings"] == 0
    assert top_level(said["modules"]) & (HEAVY | {"pydantic", "starlette"}) == set()
    assert "attractor_nb.sessions" not in said["modules"]
    assert "attractor_nb.pipeline.pipeline" in said["modules"]
