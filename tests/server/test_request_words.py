"""Remedies of the server: they name its requests, and no call of Python."""

import ast
import re
from pathlib import Path

import pytest

import attractor_nb
from attractor_nb import Outcome, Pipeline
from attractor_nb.server.request_words import in_requests, reason_in_requests, report_in_requests, view_in_requests

CALL = re.compile(
    r"\b(?:run|pipeline|Run|Pipeline|ProviderBackend|QueueInterviewer|Path|resume)\b(?:\.\w+)*\(|(?<!inputs)=(?:True|…|[\[{])"
)
RUNS_ON_A_SERVER = ("backends", "decisions", "engine", "handlers", "lint", "runtime", "storage")
NOT_REACHED = {
    "pipeline.on_event(lambda event: print(event.description))",
    'Pipeline("digraph { … }") or Pipeline(Path("review.dot"))',
    "run = pipeline.run(breakpoints=[…]), then run.debugger.wait_for_stop() and continue_()",
    'use `await pipeline.run_async()`, or host="thread"',
    "use `await pipeline.run_async()`, or `pipeline.run()` and `await run`",
    "give one of a0, an object with run(node, prompt, context), or a function",
    'functions={"count": count}',
    'guards={"sprint": lambda child, context: "continue"}',
    'pins={"a0": run} keeps what it came to there',
    'pins={"plan": "the text of its response"}',
    'schemas={"Review": Review}',
    'tools={"lookup": lookup}',
    "a0=[…]",
}
"""Remedies for arguments of Python that no request has."""


@pytest.mark.parametrize(
    ("python", "words"),
    [
        ("resume it: run.resume()", "resume it: POST /pipelines/{id}/resume"),
        ('resume with Run.load("kept").resume()', "resume with POST /pipelines/{id}/resume"),
        ('run.answer("review", "Y", form={"score": 7})', "POST /pipelines/{id}/questions/{qid}/answer"),
        ('run.tell("plan", "Use two nails")', "POST /pipelines/{id}/messages"),
        ("stop it first: run.cancel()", "stop it first: POST /pipelines/{id}/cancel"),
        (
            "go on from an earlier place: run.rewind(node), or run.fork(node)",
            'go on from an earlier place: POST /pipelines/{id}/resume with "rewind_to", or POST /pipelines/{id}/fork',
        ),
        ("change values: run.fork(node, context={…})", 'change values: POST /pipelines/{id}/fork with "context"'),
        ("resume(…, backend=…) with the same", 'POST /pipelines/{id}/resume with "backend" with the same'),
        ('see run.inspect("plan")', "see GET /pipelines/{id}/stages/plan"),
        ("see run.result()", "see GET /pipelines/{id}"),
        ("see pipeline.lint()", "see POST /validate"),
        ('register it: Pipeline(…, functions={"count": count})', "register it: a run in Python can have it"),
        ('say on_graph_change="accept" or "warn"', 'say "on_graph_change": "accept" or "warn"'),
        ("resume with your own pipeline, Pipeline(…).resume(directory)", "`attractor-nb resume DIR --graph FILE`"),
        ("attractor-nb serve --edit", "attractor-nb serve --edit"),
    ],
)
def test_a_remedy_in_python_has_its_request(python, words):
    assert words in in_requests(python)
    assert not CALL.search(in_requests(python))


def remedies():
    """Every hint and every title of a fix that is written out in a layer that works behind the server."""
    root = Path(attractor_nb.__file__).parent
    for path in sorted(file for layer in RUNS_ON_A_SERVER for file in (root / layer).rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call):
                given = [word.value for word in call.keywords if word.arg == "hint"]
                given += call.args[:1] if isinstance(call.func, ast.Name) and call.func.id == "Fix" else []
                yield from filter(None, map(text_of, given))


def text_of(node):
    """The text of a literal, digits in place of each value."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "a0" for part in node.values)
    return ""


def test_no_remedy_of_the_layers_below_reaches_a_client_with_a_call():
    found = set(remedies()) - NOT_REACHED
    assert len(found) > 300
    assert sorted(remedy for remedy in map(in_requests, found) if CALL.search(remedy)) == []


def test_a_reason_keeps_its_words_and_its_remedy_is_said_in_requests():
    assert reason_in_requests("max_steps=3 reached (run.resume())") == (
        "max_steps=3 reached (POST /pipelines/{id}/resume)"
    )


def test_what_a_report_quotes_from_a_source_stays():
    report = 'wrong\n 3 |  a [prompt="run.resume()"]\n hint: run.resume()'
    assert report_in_requests(report) == 'wrong\n 3 |  a [prompt="run.resume()"]\n hint: POST /pipelines/{id}/resume'


def test_findings_of_an_answer_name_no_call(client):
    source = "digraph { start [shape=Mdiamond] a [function=count] done [shape=Msquare] start -> a -> done }"
    found = client.post("/validate", {"source": source}).json()["diagnostics"]
    assert found[0]["fix"] == "register it: a run in Python can have it"
    assert not [one for one in found if CALL.search(one["fix"] + one["report"])]


def test_values_of_a_run_stay_in_a_view():
    said, answer = "it ended (run.resume())", [{"reason": "it ended (run.resume())"}]
    view = {"steps": [{"reason": said, "problems": [said], "context": {"reason": said}, "response": said}]}
    turned = "it ended (POST /pipelines/{id}/resume)"
    expected = {"reason": turned, "problems": [turned], "context": {"reason": said}, "response": said}
    assert view_in_requests(view) == {"steps": [expected]}
    assert view_in_requests({"outputs": answer}) == {"outputs": answer}


REFUSED = "digraph demo { start [shape=Mdiamond] plan [prompt=x] done [shape=Msquare] start -> plan -> done }"


def refuses(node, prompt, context):
    return Outcome.fail('the plan was refused (run.inspect("plan") shows it)')


@pytest.fixture(scope="module")
def at_refused(tmp_path_factory, serving):
    """A server of a run and a map whose stages failed with a remedy in Python."""
    root = tmp_path_factory.mktemp("refused")
    pipeline = Pipeline(REFUSED, backend=refuses)
    pipeline.run(logs_root=root / "one", wait=True, durability="fast")
    pipeline.map([{"n": "1"}], map_dir=root / "map", wait=True, durability="fast")
    with serving(root) as client:
        yield client


@pytest.mark.parametrize(
    "path",
    [
        "/pipelines",
        "/rows",
        "/pipelines/one",
        "/pipelines/one/stages/plan",
        "/pipelines/one/inspection?node=plan",
        "/pipelines/one/inspection?edge=9",
        "/pipelines/one/graph?format=json",
        "/pipelines/one/replay",
        "/pipelines/one/timeline",
        "/pipelines/one/comparison?other=map~row-00000",
        "/maps/map?with_page=true",
        "/maps/map/comparison?other=map&with_page=true",
    ],
)
def test_a_view_of_a_failed_run_names_no_call(at_refused, path):
    answer = at_refused.get(path)
    assert answer.status_code == 200, answer.text
    assert not CALL.search(answer.text.replace('\\"', '"'))


def test_the_records_of_a_failed_run_stay_as_they_were_written(at_refused):
    errors = {one["data"]["error"] for one in at_refused.events("one") if one["data"].get("error")}
    assert errors == {'the plan was refused (run.inspect("plan") shows it)'}
