"""No style of a host reaches into a view: JupyterLab's, Notebook's and nbconvert's own sheets, as they are installed.

JupyterLab and Notebook are asked for theirs in a browser, nbconvert's lie in its template. A view is laid out twice,
with and without the sheet of a host; only the variables of the host, by which views follow its theme, stay.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Literal

import pytest
from filelock import FileLock
from jupyter_core.paths import jupyter_path
from pydantic import BaseModel, Field

from attractor_nb import FunctionBackend, Outcome, Pipeline, diff, runs
from attractor_nb.handlers.named_models import named_form
from attractor_nb.maps.map_view import MapView, map_html
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import InterviewStarted
from attractor_nb.model.graph import Node
from attractor_nb.model.outcome import Usage
from attractor_nb.model.row_result import RowResult
from attractor_nb.notebook.history_view import HistoryRequests
from attractor_nb.sessions.fold import AgentUpdate, apply_change, begin_session
from attractor_nb.studio.compare.comparison_page import comparison_values
from attractor_nb.studio.edit.editor_requests import EditorRequests
from attractor_nb.studio.inspect.inspect_run import answer_inspection, inspect_stage
from attractor_nb.studio.replay_frames import replay_of
from attractor_nb.studio.timeline.run_timeline import timeline_values
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.findings_table import findings_html
from attractor_nb.views.session_table import session_html
from attractor_nb.views.shown_questions import plain_question

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

TEXT = """digraph Review { goal="An answer";
  start [shape=Mdiamond]; done [shape=Msquare]
  plan [label="Plan it", prompt="Plan it.", max_retries=1]
  write [label="Write it", prompt="Write it: $goal"]
  start -> plan -> write
  write -> done [condition="context.score=3"]
  write -> plan [label="again"]
}"""
LIVE = "showLiveRun(host, el, shareStates(host))"
STATIC = "(el.innerHTML = host.get('html'), () => {})"
HOSTS = ("lab", "notebook", "nbconvert")
PLACE = "lm-Widget jp-RenderedHTMLCommon jp-RenderedHTML jp-OutputArea-output"
"""Classes of the element that Jupyter puts HTML into: there its sheets are the loudest."""
SHEETS = """() => [...document.styleSheets].map((sheet) => {
  try { return [...sheet.cssRules].map((rule) => rule.cssText).join("\\n"); } catch { return ""; }
}).join("\\n")"""
STYLES = """() => {
  const styles = new Map();
  for (const [number, element] of [...document.querySelectorAll("#view *")].entries()) {
    if (element.closest("svg, style")) continue;
    const name = `${number} ${element.localName}.${element.className} "${element.textContent.slice(0, 20)}"`;
    const style = getComputedStyle(element);
    styles.set(name, new Map([...style].filter((one) => !one.startsWith("--")).map((one) => [one, style.getPropertyValue(one)])));
  }
  return styles;
}"""
COMPARED = f"""() => {{
  const hosted = ({STYLES})();
  const differing = [];
  for (const [element, its] of window.alone) for (const [one, value] of its) {{
    const there = hosted.get(element)?.get(one);
    if (there !== value) differing.push(`${{element}}: ${{one}} is ${{there}}, not ${{value}}`);
  }}
  return [hosted.size, differing];
}}"""
AFRESH = """() => {
  const view = document.getElementById("view"); // a table that is laid out again may keep columns of before
  view.style.display = "none";
  view.getBoundingClientRect();
  view.style.display = "";
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)));
}"""
VARIABLES = re.compile(r"(?P<selector>[^{}]+)\{(?P<body>[^{}]*--[^{}]*)\}")


def variables_of(sheet):
    """The rules of a sheet with nothing but their variables."""
    rules = []
    for rule in VARIABLES.finditer(sheet):
        own = [line for line in rule["body"].split(";") if line.strip().startswith("--")]
        if own:
            rules.append(f"{rule['selector']} {{ {';'.join(own)} }}")
    return "\n".join(rules)


@pytest.fixture(scope="module")
def sheets(tmp_path_factory, request):
    """The whole style of each host, asked for by the first of the processes that share the tests, for all of them."""
    folder = tmp_path_factory.getbasetemp()
    place = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "styles-of-hosts.json"
    with FileLock(f"{place}.lock"):
        if not place.exists():
            place.write_text(json.dumps(styles_of_hosts(tmp_path_factory, request.getfixturevalue)), "utf-8")
        return json.loads(place.read_text("utf-8"))


def styles_of_hosts(tmp_path_factory, fixture):
    lab, make_server, write_notebook = map(fixture, ("lab", "make_server", "write_notebook"))
    found = {}
    with make_server(tmp_path_factory.mktemp("notebook"), app="notebook") as notebook:
        for name, server in (("lab", lab), ("notebook", notebook)):
            write_notebook(server.root, "styles.ipynb", "1 + 1")
            with server.browser(width=1366, height=768, is_new=True) as browser:  # a used one has our sheets, too
                browser.open("styles.ipynb")
                found[name] = browser.page.evaluate(SHEETS)
    folder = next(
        Path(place) / "lab/static" for place in jupyter_path("nbconvert", "templates") if Path(place).is_dir()
    )
    sheet = "\n".join((folder / name).read_text("utf-8") for name in ("index.css", "theme-light.css"))
    with fixture("driver").new_page() as page:  # which writes it as the others
        page.set_content(f"<style>{sheet}</style>")
        found["nbconvert"] = page.evaluate(SHEETS)
    assert all(".jp-RenderedHTMLCommon" in sheet and "--jp-ui-font-color0" in sheet for sheet in found.values())
    return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Two runs of one pipeline with a loop, a retry and values of a context."""
    folder = tmp_path_factory.mktemp("styles")

    def run_of(name, scores):
        left, failures = list(scores), ["the provider said 503"]

        def answer(node, prompt, context):
            if node.id == "plan" and failures:
                return Outcome.retry(failures.pop())
            if node.id == "write":
                return Outcome.success("graded", context_updates={"score": left.pop(0), "by": name})
            return Response(f"# The plan\n\nof {name}\n" * 3, usage=Usage(1200, 340, 0.0042, 1))

        made = Pipeline(TEXT, backend=FunctionBackend(answer)).run(logs_root=folder / name, is_shown=False)
        made.result()
        return made

    return run_of("one", [1, 3]), run_of("two", [3])


class Review(BaseModel):
    score: int = Field(ge=0, le=10, description="10 is ready to ship")
    summary: str
    is_urgent: bool = False
    risk: Literal["low", "high"] = "low"


def live_values(run, **more):
    states = run.view.to_plain() | {"line": {"status": "success", "is_ended": True}, "tails": {}}
    values = {"svg": render_svg(run.graph), "marks": MARK_PATHS, "caption": "demo", "has_output": True}
    return {**values, "states": {**states, **more.pop("states", {})}, **more}


def question():
    form = named_form(Node("gate", {"human.form": "Review"}), {"Review": Review}).to_plain()
    material = [{"name": "plan/response.md", "text": "# Plan\n\n1. Do it.", "note": "cut"}]
    event = InterviewStarted(
        question="Is it good?",
        stage="ask",
        question_id="ask:1",
        kind="multiple_choice",
        options=(("A", "[A] Approve"), ("R", "Redo")),
        metadata={"detail": "Look at it.", "review": material},
        form=form,
    )
    event.time = time.time() - 20
    return plain_question(event, about="demo")


STOP = {
    "number": 1,
    "node": "write",
    "moment": "before",
    "visit": 1,
    "breakpoint": "write",
    "branch": "",
    "path": "",
    "edge": "",
    "status": "",
    "words": "before `write`",
}
DEBUGGER = {"breakpoints": ["write"], "stops": [STOP], "pins": {"plan": "pinned"}, "prompts": {}}
LOOK = {
    "number": 1,
    "prompt": "Write it.\nWell.",
    "sent": "Write it.",
    "context": [{"key": "n", "text": "a\nb", "is_fixed": False}, {"key": "id", "text": "3", "is_fixed": True}],
    "more": 2,
}


def open_live(open_view, run):
    return open_view("live_view", LIVE, **live_values(run, **GATES_OF_A_RUN))


GATES_OF_A_RUN = {
    "gates": [],
    "answers": [{"is_answered": True, "words": "Approve, by ada"}],
    "refusals": {},
    "has_gates": True,
}


def the_live_view(open_view, run, _):
    view = open_live(open_view, run)
    view.tell(kind="delta", tails={"plan": "words\n", "write": "more words"})
    return view


def the_table(open_view, run, _):
    view = open_live(open_view, run)
    view.page.get_by_label("The states as a table").click()
    return view


def inspector_on(tab):
    def the_inspector(open_view, run, _):
        view = open_live(open_view, run)
        view.page.locator("[data-node=write]").first.click()
        view.tell(**answer_inspection(run, view.sent[-1]))
        view.page.get_by_role("tab", name=tab).click()
        if tab == "Files":
            view.page.locator(".al-file").first.click()
            view.tell(**answer_inspection(run, view.sent[-1]))
        return view

    return the_inspector


def an_edge(open_view, run, _):
    view = open_live(open_view, run)
    view.tell(**answer_inspection(run, {"kind": "inspect", "edge": 3}))
    view.page.locator("[data-node=write]").first.press("e")
    view.tell(**answer_inspection(run, view.sent[-1]))
    return view


def the_debugger(open_view, run, _):
    debugger = {**DEBUGGER, "is_pausing": False, "is_over": False}
    view = open_view(
        "live_view", LIVE, **live_values(run, states={"debugger": debugger, "line": {"status": "waiting"}})
    )
    view.tell(kind="debug", debugger=debugger, look=LOOK, problem="the key is the engine's own")
    view.page.locator(".db-editor summary").click()
    return view


def the_gates(open_view, *_):
    asked = [question(), {**question(), "key": "b", "kind": "multi_select"}, {**question(), "key": "c", "how": "no"}]
    values = {**GATES_OF_A_RUN, "gates": asked, "shows_all": True, "refusals": {"b": {"message": "no", "fields": {}}}}
    return open_view("gates_view", "showGates(host, el)", **values)


def the_editor(open_view, *_):
    requests = EditorRequests(Pipeline(TEXT.replace('prompt="Plan it."', 'promt="Plan it."')).edit())
    requests.editor.set("write", prompt="Anew.")
    view = open_view("editor", "showEditor(host, el)", state=requests.state(), place="x")
    for reply in requests.answer({"kind": "form", "target": {"node": "write"}})[0]:
        view.tell(**reply)
    view.page.locator(".ax-difference summary").click()
    return view


def the_findings(open_view, *_):
    requests = EditorRequests(Pipeline(TEXT.replace("prompt=", "promt=")).edit())
    return open_view("findings", "showFindings(host, el)", state=requests.state(), place="x")


def the_history(open_view, run, _):
    rows = HistoryRequests(runs(run.logs_root.parent)).rows()
    return open_view("history", "showHistory(host, el)", rows=rows, caption="runs", place="")


def the_comparison(open_view, run, other):
    values = comparison_values(diff(run, other).compared, text_chars=2000)
    view = open_view("compare", "showCompare(host, el)", is_live=False, **values)
    view.page.locator("[data-node=write]").first.click()
    for fold in view.page.locator(".ac-change summary").all():
        fold.click()
    return view


def the_timeline(open_view, run, _):
    values = {"graph": render_svg(run.graph), "marks": MARK_PATHS, "caption": "Review", "place": ""}
    view = open_view("timeline", "showTimeline(host, el)", **values, **timeline_values(run.timeline()))
    view.page.locator("[data-bar]").first.click()
    return view


def the_replay(open_view, run, _):
    stages = {f"{node}@1": inspect_stage(run, node).to_plain() for node in ("plan", "write")}
    values = {"svg": render_svg(run.graph), "marks": MARK_PATHS, "caption": "Review", "stages": stages}
    replay = replay_of(run.graph, run.journal().events)
    view = open_view("replay", "showReplay(host, el)", is_live=False, replay=replay, **values)
    view.page.locator(".ar-context summary").click()
    view.page.locator("[data-node=write]").first.click()
    return view


def static(html):
    def the_static(open_view, run, other):
        return open_view("parts", STATIC, html=html(run, other))

    return the_static


def bundle(shown):
    return shown._repr_mimebundle_()["text/html"]


def a_session():
    agents = [{"id": "a", "name": "schema"}, {"id": "b", "name": "writer"}, {"id": "c", "name": "renderer"}]
    waves = [{"wave": 1, "agents": ["a"]}, {"wave": 2, "agents": ["b", "c"]}]
    session = begin_session("20260201-143022-abc12345", "orchestrate", "review.dot", agents, waves, at=100.0)
    for number, (name, updates) in enumerate(
        [("a", {"status": "running"}), ("a", {"status": "complete"}), ("b", {"status": "running"})]
    ):
        session = apply_change(session, AgentUpdate(name, updates), at=101.0 + number)
    return session_html(session, now=120.0)


def a_map():
    view = MapView("demo", 3)
    for row in range(3):
        view.take(RowResult(row, "fail" if row else "success", reason="no"))
    view.end("fail", "one row failed")
    return map_html(view)


VIEWS = {
    "live": the_live_view,
    "table": the_table,
    **{f"inspector-{tab.lower()}": inspector_on(tab) for tab in ("Prompt", "Response", "Status", "Context", "Files", "Attempts", "Why")},
    "edge": an_edge,
    "debugger": the_debugger,
    "gates": the_gates,
    "editor": the_editor,
    "findings": the_findings,
    "history": the_history,
    "compare": the_comparison,
    "timeline": the_timeline,
    "replay": the_replay,
    "static-findings": static(lambda *_: findings_html(Pipeline(TEXT.replace("prompt=", "promt=")).diagnostics)),
    "static-history": static(lambda run, _: bundle(runs(run.logs_root.parent))),
    "static-comparison": static(lambda run, other: bundle(diff(run, other))),
    "static-inspection": static(lambda run, _: bundle(run.inspect("write"))),
    "static-explanation": static(lambda run, _: bundle(run.explain())),
    "static-session": static(lambda *_: a_session()),
    "static-map": static(lambda *_: a_map()),
    "static-spending": static(lambda run, _: bundle(run.details())),
}  # fmt: skip


HOVERED = {"history", "static-history", "table", "static-session"}
"""Views that have the pointer on a row meanwhile."""


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_looks_the_same_with_and_without_the_style_of_its_host(open_view, sheets, ran, name):
    view = VIEWS[name](open_view, *ran)
    page = view.page
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(
        """(classes) => {
          document.body.className = "jp-ThemedContainer";
          document.body.dataset.jpThemeLight = "true";
          const place = document.createElement("div");
          place.className = classes;
          place.style.cssText = "all: initial; display: block; width: 1000px;";
          const view = document.getElementById("view");
          view.replaceWith(place);
          place.append(view);
          for (const id of ["variables", "host"]) document.head.append(Object.assign(document.createElement("style"), { id }));
        }""",
        PLACE,
    )

    page.set_viewport_size({"width": 1200, "height": 800})
    page.mouse.move(1195, 5)  # beside the view
    if name in HOVERED:
        page.locator("#view tbody tr").first.hover()

    def lay_out(variables, sheet):
        set_sheets = "([variables, sheet]) => { document.getElementById('variables').textContent = variables;"
        page.evaluate(f"{set_sheets} document.getElementById('host').textContent = sheet; }}", [variables, sheet])
        page.evaluate(AFRESH)

    for host in HOSTS:
        lay_out(variables_of(sheets[host]), "")
        page.evaluate(f"() => {{ window.alone = ({STYLES})(); }}")
        lay_out("", sheets[host])
        count, differing = page.evaluate(COMPARED)
        assert count > 3
        assert not differing, "\n".join([f"{len(differing)} styles of {host}", *differing[:25]])
