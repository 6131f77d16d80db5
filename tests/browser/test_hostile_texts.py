"""Hostile texts through every view of the studio, in Chromium: 612 payloads, 0 executions.

The texts come as an attacker would bring them: in a DOT file (labels, prompts, conditions, ids of the graph), in
what a model says (responses, reasons, context values), in questions, and in a run's directory. Whatever runs calls
``hit``, which no page has, so that the page reports an error; a page that does run one proves that this is heard.
"""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from itertools import product

import nbformat
import pytest

from attractor_nb import FunctionBackend, Outcome, Pipeline, diff, runs
from attractor_nb.languages.dot import write_dot
from attractor_nb.languages.dot.writer import quote
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import InterviewStarted
from attractor_nb.model.graph import Graph, Node
from attractor_nb.notebook.history_view import HistoryRequests
from attractor_nb.studio.compare.compare_runs import PLAIN_TEXT_CHARS
from attractor_nb.studio.compare.comparison_page import comparison_values
from attractor_nb.studio.edit.editor_requests import EditorRequests
from attractor_nb.studio.inspect.inspect_run import answer_inspection, inspect_stage
from attractor_nb.studio.replay_frames import replay_of
from attractor_nb.studio.timeline.run_timeline import timeline_values
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.findings_table import findings_html
from attractor_nb.views.texts.prose import prose_css, prose_html, prose_of

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

BREAKS = (
    *("", '">', "'>", "-->", "]]>", "\\", "`", "</title>", "</text></svg>", "</script>", "</style>"),
    *("</textarea>", "</pre>", "</code>", "</option></select>", "</td></table>", "</details>", "\u2028"),
)
VECTORS = (
    "<img src=x onerror=hit()>",
    "<img src=x onerror='hit()'>",
    '<img src=x onerror="hit()">',
    "<IMG SRC=x OnErRoR=hit()>",
    "<img/src=x/onerror=hit()>",
    "<script>hit()</script>",
    "<script src='data:text/javascript,hit()'></script>",
    "<svg onload=hit()>",
    "<svg><script>hit()</script></svg>",
    "<svg><animate onbegin=hit() attributeName=x dur=1s>",
    "<svg><foreignObject><img src=x onerror=hit()></foreignObject></svg>",
    "<svg><image href=x onerror=hit() />",
    "<svg><style onload=hit()></style>",
    "<math><mi xlink:href='javascript:hit()'>x",
    "<iframe srcdoc='<script>parent.hit()</script>'></iframe>",
    "<iframe src='javascript:parent.hit()'></iframe>",
    "<object data='javascript:hit()'></object>",
    "<embed src='javascript:hit()'>",
    "<body onload=hit()>",
    "<details open ontoggle=hit()>x</details>",
    "<input autofocus onfocus=hit()>",
    "<select autofocus onfocus=hit()></select>",
    "<textarea autofocus onfocus=hit()></textarea>",
    "<video><source onerror=hit()></video>",
    "<audio src=x onerror=hit()></audio>",
    "<marquee onstart=hit()>x</marquee>",
    "<style>@keyframes a{}</style><b style='animation:a 1s' onanimationstart=hit()>x</b>",
    "<link rel=stylesheet href='data:text/css,*{}' onload=hit()>",
    "<meta http-equiv=refresh content='0;url=javascript:hit()'>",
    "<base href='javascript:hit()//'>",
    "<form action='javascript:hit()'><button autofocus onfocus=hit()>x",
    "<a href='javascript:hit()'>x</a>",
    "<noscript><p title='</noscript><img src=x onerror=hit()>'>",
    "javascript:hit()",
)
PAYLOADS = [start + vector for start, vector in product(BREAKS, VECTORS)]
GROUPS = ["\n".join(start + vector for vector in VECTORS) for start in BREAKS]
FOREIGN = "script, img, iframe, object, embed, video, audio, base, meta, link, foreignObject, image, marquee, math, form[action]"


def hostile_graph(texts):
    """A chain of stages with these texts as labels, prompts, classes and attributes of other tools."""
    nodes = {"start": Node("start", {"shape": "Mdiamond"})}
    for number, text in enumerate(texts):
        attrs = {"label": text, "prompt": text, "class": text, "x.own": text}
        nodes[f"n{number}"] = Node(f"n{number}", attrs, frozenset(attrs))
    nodes["done"] = Node("done", {"shape": "Msquare"})
    graph = Graph(texts[0], {"label": texts[0], "goal": texts[-1]}, nodes)
    ends = " -> ".join(nodes)
    return f"{write_dot(graph).rstrip()[:-1]}\n{ends} [label={quote(texts[0])}]\n}}\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose stages are named, asked and answered in hostile words; its second stage fails once with them."""
    tries = []

    def answer(node, prompt, context):
        group = GROUPS[int(node.id[1:])]
        if node.id == "n1" and not tries:
            tries.append(1)
            return Outcome.retry(GROUPS[0])
        if node.id == "n2":
            return Outcome.success(group, context_updates={"said": group})
        return Response(group)

    text = hostile_graph(GROUPS).replace("n1 [", "n1 [max_retries=2, ", 1)
    made = Pipeline(text, backend=FunctionBackend(answer)).run(logs_root=tmp_path_factory.mktemp("x") / "runs" / "one")
    made.result(60)
    return made


STRANGERS = "all => all.filter(one => !(one.src || '').startsWith('data:image/svg+xml')).map(one => one.outerHTML)"
"""A drawing is kept as an image, in which nothing can run."""
FOREIGN_IN_VIEW = ", ".join(f"#view {name.strip()}" for name in FOREIGN.split(","))


def check(view):
    """Nothing ran, and nothing that could stands in the page."""
    view.page.wait_for_timeout(300)  # what would run needs a moment; there is no event for nothing
    assert view.console == []
    assert view.page.locator(FOREIGN_IN_VIEW).evaluate_all(STRANGERS) == []


@pytest.mark.kind("a browser")
def test_there_are_enough_of_them_and_one_that_runs_is_heard(open_view):
    assert len(PAYLOADS) == len(set(PAYLOADS)) >= 500
    view = open_view("parts", f"(el.innerHTML = {PAYLOADS[0]!r}, () => {{}})")
    view.page.wait_for_timeout(300)
    assert any("hit is not defined" in said for said in view.console)


def test_in_a_static_drawing_and_its_findings(open_view):
    """As Jupyter shows a fresh output: the SVG and the table are put into the page as markup."""
    pipeline = Pipeline(hostile_graph(PAYLOADS).replace("x.own", "timeout"))
    svg, table = pipeline.to_svg(), findings_html(pipeline.diagnostics)
    assert "&lt;svg onload=hit()&gt;" in table
    view = open_view("parts", "(el.innerHTML = host.get('html'), () => {})", html=svg + table)
    assert view.page.locator("[data-node]").count() == len(PAYLOADS) + 2
    check(view)


@pytest.mark.kind("a browser")
def test_in_the_live_view_and_the_inspector(open_view, run):
    states = run.view.to_plain() | {"line": {"status": GROUPS[1], "reason": GROUPS[2]}, "tails": {}}
    states["nodes"]["n3"] = {"status": "fail", "reason": GROUPS[3], "note": GROUPS[4]}
    call = "showLiveRun(host, el, shareStates(host))"
    view = open_view("live_view", call, svg=render_svg(run.graph), marks=MARK_PATHS, caption=GROUPS[0], states=states)
    view.page.locator("[data-node=n1]").first.click()
    view.tell(**json.loads(json.dumps(answer_inspection(run, view.sent[-1]))))
    tabs = view.page.locator(".al-inspector").get_by_role("tab")
    for number in range(tabs.count()):
        tabs.nth(number).click()
        check(view)


def test_in_gates(open_view):
    from attractor_nb.views.shown_questions import plain_question

    event = InterviewStarted(
        question=GROUPS[0],
        stage="n1",
        question_id="n1:1",
        kind="multiple_choice",
        options=tuple((str(number), text) for number, text in enumerate(GROUPS[:6])),
        metadata={
            "detail": GROUPS[7],
            "review": [
                {"name": GROUPS[8], "text": text, "note": GROUPS[10]} for text in (GROUPS[9], *in_markup(GROUPS[9]))
            ],
        },
    )
    values = {"answers": [{"is_answered": True, "words": GROUPS[3]}], "refusals": {"n1:1": GROUPS[4]}}
    shown = {"shows_all": True, "has_gates": True, "none": GROUPS[5]}
    view = open_view(
        "gates_view", "showGates(host, el)", gates=[plain_question(event, about=GROUPS[6])], **values, **shown
    )
    check(view)


def in_markup(text):
    """A hostile text where Markdown, code, JSON and a diff have their places for texts."""
    line = " ".join(text.split("\n"))
    quoted = json.dumps({text: [text, {line: None}]})
    return (
        (
            f"# {line}\n\n[{line}]({line}) ![{line}]({line}) <{line}> `{line}` **{line}**\n\n[a][b]\n\n[b]: {line}\n\n"
            f"| {line} |\n|---|\n| {line} |\n\n- {line}\n\n> {line}\n\n```{line}\n{text}\n```\n\n```python\n{text}\n```\n\n"
            f"```html\n{text}\n```\n\n```json\n{quoted}\n```\n\n```diff\n-{line}\n+{line}!\n```\n\n{text}\n"
        ),
        quoted,
        f"diff --git a/{line} b/{line}\n--- a/{line}\n+++ b/{line}\n@@ -1 +1 @@ {line}\n-{line}\n+{line}!\n",
    )


def test_in_rendered_texts_in_a_cell_and_in_the_front_end(open_view):
    """Each payload in Markdown, code, JSON, diffs and tracebacks, as markup of a cell and as trees."""
    texts = [(part, "response.md") for text in GROUPS for part in in_markup(text)]
    texts += [(f"Traceback (most recent call last):\n  File {text}\n{text}", "traceback.txt") for text in GROUPS]
    trees = [prose_of(text, name) for text, name in texts]
    assert all(trees)
    view = open_view(
        "prose", "(el.append(...host.get('trees').map(one => makeProse(one, 'x'))), () => {})", trees=trees
    )
    assert view.page.locator("#view a:not([href^='http'])").count() == 0
    check(view)
    html = f"<style>{prose_css()}</style>"
    html += "".join(prose_html(text, tree) for (text, _), tree in zip(texts, trees, strict=True))
    view = open_view("parts", "(el.innerHTML = host.get('html'), () => {})", html=html)
    assert view.page.locator(".pr-shown").count() == len(texts)
    check(view)


def test_in_two_runs_beside_each_other(open_view, run, tmp_path):
    other = Pipeline(hostile_graph(GROUPS), backend=FunctionBackend(lambda node, prompt, context: in_markup(prompt)[0]))
    made = other.run(logs_root=tmp_path / "other")
    made.result(60)
    values = comparison_values(diff(run, made).compared, text_chars=PLAIN_TEXT_CHARS)
    view = open_view("compare", "showCompare(host, el)", **values)
    for node, is_open in (("n0", True), ("n3", False)):  # the first one that differs opens by itself
        if not is_open:
            view.page.locator(f"[data-node={node}]").first.click()
        view.page.locator(f"[data-node={node}].selected").first.wait_for()
        for fold in view.page.locator(".ac-change summary").all():
            fold.click()
        check(view)


def test_in_a_replay(open_view, run):
    events = run.journal().events
    stages = {f"{node}@1": inspect_stage(run, node).to_plain() for node in ("n0", "n1", "n2")}
    values = {"svg": render_svg(run.graph), "marks": MARK_PATHS, "caption": GROUPS[0]}
    view = open_view(
        "replay", "showReplay(host, el)", is_live=False, replay=replay_of(run.graph, events), stages=stages, **values
    )
    slider = view.page.get_by_role("slider")
    for key in ("End", "Home", "ArrowRight", "ArrowRight"):
        slider.press(key)
    view.page.locator("[data-node=n1]").first.click()
    check(view)


def test_in_the_editor_and_the_findings_of_a_cell(open_view):
    requests = EditorRequests(Pipeline(hostile_graph(GROUPS).replace("x.own", "promt")).edit())
    requests.editor.set("n1", prompt=GROUPS[5])
    view = open_view("editor", "showEditor(host, el)", state=requests.state(), place="x")
    for target in ({"node": "n1"}, {"edge": 1}, {}):
        for reply in requests.answer({"kind": "form", "target": target})[0]:
            view.tell(**reply)
    view.tell(kind="said", words=GROUPS[0], is_error=True)
    check(view)
    view = open_view("findings", "showFindings(host, el)", state=requests.state(), place="x")
    check(view)


def test_in_the_list_of_runs_and_the_timeline(open_view, run):
    kept = runs(run.logs_root.parent)
    kept[0].tag(VECTORS[0])
    view = open_view("history", "showHistory(host, el)", rows=HistoryRequests(kept).rows(), caption=GROUPS[0], place="")
    check(view)
    values = {"graph": render_svg(run.graph), "marks": MARK_PATHS, "caption": GROUPS[0], "place": ""}
    view = open_view("timeline", "showTimeline(host, el)", **values, **timeline_values(run.timeline()))
    view.page.locator("[data-bar]").first.hover()
    check(view)


def test_in_comparisons_timelines_and_heat_as_static_outputs(open_view, run):
    outputs = [diff(run, run), run.timeline(), run.heat("time"), run.result(), run.inspect("n2"), run.explain()]
    html = ""
    for output in outputs:
        bundle = output._repr_mimebundle_()
        html += bundle.get("image/svg+xml", "") + bundle.get("text/html", "")
    view = open_view("parts", "(el.innerHTML = host.get('html'), () => {})", html=html)
    check(view)


def test_in_an_exported_page(driver, run, tmp_path):
    file = run.export_html(tmp_path / "run.html")
    with driver.quiet_page(offline=True) as page:
        page.goto(file.as_uri())
        page.get_by_role("slider").press("End")
        page.locator("[data-node=n1]").first.click()
        page.wait_for_timeout(300)
        assert page.locator("img, iframe, object, embed, video, audio, base, foreignObject, marquee").count() == 0


@contextmanager
def open_served(driver):
    """A page of the server: it, what its console said, and what checks that nothing was heard and nothing got in."""
    said = []
    with driver.new_page(width=1300, height=900) as page:
        page.set_default_timeout(60_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))

        def check_page(but="nothing"):
            page.wait_for_timeout(300)  # as of check
            assert [line for line in said if but not in line] == []
            inside = ", ".join(f".ap-main {name.strip()}" for name in FOREIGN.split(","))
            assert page.locator(inside).evaluate_all("all => all.map(one => one.outerHTML)") == []

        yield page, said, check_page


def test_in_the_served_page(driver, run, serve_page):
    """Names of directories, tags, labels, prompts, responses, reasons, questions, choices, and what was answered."""
    base = run.logs_root.parent
    runs(base)[0].tag(VECTORS[0])
    shutil.copytree(run.logs_root, base / "<img src=x onerror=hit()>")
    gate = f"ask [shape=hexagon, label={quote(GROUPS[5])}] n3 -> ask [weight=9] "
    gate += " ".join(f"ask -> done [label={quote(text)}]" for text in GROUPS[6:9])
    asking = f"{hostile_graph(GROUPS[:4]).rstrip()[:-1]}{gate}}}"
    waiting = Pipeline(asking, backend="simulated").run(logs_root=base / "two", is_shown=False, interviewer="deferred")
    waiting.wait_for_gate("ask", 60)
    waiting.cancel()
    waiting.result(60)
    with open_served(driver) as (page, _, check_page):
        page.goto(serve_page(base))
        assert page.locator("tr[data-run]").nth(2).wait_for() is None
        assert "onerror=hit()" in page.locator(".ah-table").inner_text()
        check_page()
        page.locator("tr[data-run=two]").get_by_role("button", name="Resume").click()
        page.locator(".ap-run .ag-card").wait_for()
        assert page.locator(".ap-run .ag-card .attractor-choice").count() == 3
        check_page()
        page.locator(".ap-run .ag-card textarea").fill(PAYLOADS[0])
        page.locator(".ap-run .ag-card .attractor-choice").first.click()
        page.locator(".ap-run .ag-answers li").wait_for()
        check_page()
        page.get_by_role("button", name="Fork").click()
        check_page()

        page.goto(f"{page.url.partition('#')[0]}#run=one")
        for node in ("n1", "n2"):
            page.locator(f"[data-node={node}]").first.click()
            tabs = page.locator(".al-inspector").get_by_role("tab")
            tabs.first.wait_for()
            for number in range(tabs.count()):
                tabs.nth(number).click()
            check_page()
        page.locator(".ap-fold summary", has_text="Timeline and heat").click()
        page.locator("[data-bar]").first.hover()
        check_page()
        page.locator(".ap-fold summary", has_text="Replay").click()
        page.locator(".attractor-replay [data-node=n1]").wait_for()
        check_page()
        page.locator(".ap-fold summary", has_text="Compare").click()
        page.get_by_label("The run to compare with").select_option("two")
        page.locator(".attractor-compared [data-node=n1]").first.wait_for()
        check_page()
        page.goto(f"{page.url.partition('#')[0]}#run={VECTORS[0].replace(' ', '%20')}")
        page.locator(".ap-said", has_text="there is no pipeline").wait_for()
        check_page(but="status of 404")  # the browser says so of each request about a run that there is none of


def test_in_the_form_of_a_new_run(driver, serve_page, tmp_path):
    """Texts, findings, commands, inputs, names and refusals, and the same again as a kept draft."""
    (tmp_path / "runs").mkdir()
    text = hostile_graph(PAYLOADS).replace("x.own", "tool_command")
    (tmp_path / "all.dot").write_text(text, "utf-8")
    with open_served(driver) as (page, _, check_page):
        page.goto(serve_page(tmp_path / "runs"))
        page.get_by_role("button", name="New run").click()
        area = page.get_by_label("DOT text")
        page.get_by_label("A file to read").set_input_files(tmp_path / "all.dot")
        page.locator(".an-command").nth(len(PAYLOADS) - 1).wait_for()
        check_page()
        for text in GROUPS:
            area.fill(text)
            page.locator(".an-verdict", has_text="It cannot be read").wait_for()
            page.locator(".af-table tbody tr").wait_for()
        check_page()
        area.fill(hostile_graph(GROUPS).replace("x.own", "timeout"))
        page.locator(".an-sketch [data-node=n1]").wait_for()
        page.get_by_role("button", name="Add an input").click()
        page.get_by_label("Name of the input").fill(PAYLOADS[0])
        page.locator(".an-value").fill(GROUPS[1])
        page.get_by_label("Name of the run").fill(PAYLOADS[1])
        page.locator(".an-bounds summary").click()
        page.get_by_label("Time at most").fill(PAYLOADS[2])
        check_page()
        page.reload()
        page.locator(".an-sketch [data-node=n1]").wait_for()
        assert page.get_by_label("Name of the input").input_value() == PAYLOADS[0]
        check_page()


def test_in_the_debuggers_bar(open_view, run):
    stop = {"number": 1, "node": "n1", "moment": "before", "visit": 2, "breakpoint": GROUPS[0], "branch": GROUPS[1]}
    stop |= {"path": GROUPS[2], "edge": GROUPS[3], "status": "fail", "words": GROUPS[4]}
    debugger = {"breakpoints": GROUPS[5:8], "stops": [stop], "pins": {"n2": GROUPS[8], GROUPS[9]: GROUPS[10]}}
    debugger |= {"prompts": {"n1": GROUPS[11]}, "is_pausing": False, "is_over": False}
    values = {"svg": render_svg(run.graph), "marks": MARK_PATHS, "caption": GROUPS[0]}
    states = run.view.to_plain() | {"tails": {}, "debugger": debugger}
    call = "showLiveRun(host, el, shareStates(host))"
    view = open_view("live_view", call, states=states, **values)
    view.page.wait_for_selector(".db-said")
    check(view)
    context = [{"key": GROUPS[12], "text": GROUPS[13], "is_fixed": False}]
    look = {"number": 1, "prompt": GROUPS[14], "context": context, "more": 2}
    view.tell(kind="debug", debugger=debugger, look=look)
    view.page.locator(".db-editor summary").click()
    view.tell(kind="debug", problem=GROUPS[15], debugger=debugger, look=look)
    check(view)


CELLS = (
    (
        "%load_ext attractor_nb\nfrom pathlib import Path\nfrom attractor_nb import Outcome, Pipeline, diff, runs\n"
        'words = Path("words.txt").read_text("utf-8").split("\\f")'
    ),
    'hostile = Pipeline(Path("hostile.dot").read_text("utf-8"))\nhostile',
    (
        "async def model(node, prompt, context):\n"
        "    return Outcome.success(words[int(node.id[1:])], context_updates={'said': words[2]})\n"
        'run = hostile.run(backend=model, logs_root="hostile/one")\nresult = await run\nresult'
    ),
    'run.inspect("n2")',
    "run.explain()",
    "diff(run, run)",
    "run.timeline()",
    'run.heat("visits")',
    'runs("hostile")',
    "run.replay()",
    "hostile.edit()",
    "raise ValueError(words[1])",
)


def test_in_a_notebook_that_is_run_saved_and_opened_again_with_and_without_trust(lab, open_notebook):
    (lab.root / "words.txt").write_text("\f".join(GROUPS[::3]), "utf-8")
    (lab.root / "hostile.dot").write_text(hostile_graph(GROUPS[::3]), "utf-8")
    notebook = open_notebook(lab, *CELLS)
    notebook.run_cells(*range(len(CELLS)))
    assert "Traceback" in notebook.output_text(), "all cells ran, to the last one"
    notebook.page.wait_for_timeout(500)
    assert notebook.browser.our_errors == []
    notebook.save()
    # Of a notebook that was changed the server has no signature: what it shows of its outputs is sanitized.
    changed = nbformat.read(notebook.path, 4)
    changed.metadata["from"] = "elsewhere"
    nbformat.write(changed, lab.root / "untrusted.ipynb")
    for name in (notebook.path.name, "untrusted.ipynb"):
        with lab.browser(is_new=True) as browser:
            again = browser.open(name)
            assert "Traceback" in again.output_text()
            assert again.script("panel.content.widgets[1].model.trusted") == (name != "untrusted.ipynb")
            again.page.wait_for_timeout(500)
            assert browser.our_errors == []
            inside = again.page.locator(
                ", ".join(f".jp-OutputArea-output {name.strip()}" for name in FOREIGN.split(","))
            )
            assert inside.evaluate_all(STRANGERS) == []


def test_in_a_graph_document_and_its_files(driver, serve_page, tmp_path):
    """The text of a file, its name and its findings, through the page's list, editor, forms, selection and run form."""
    (tmp_path / "runs").mkdir()
    folder = tmp_path / "work"
    folder.mkdir()
    text = hostile_graph(GROUPS[:6]).replace("x.own", "timeout")
    (folder / "one.dot").write_text(text, encoding="utf-8")
    for number, payload in enumerate(vector for vector in VECTORS if "/" not in vector):
        (folder / f"{number} {payload}.dot").write_text("digraph {", encoding="utf-8")
    line = serve_page(tmp_path / "runs", "s" * 43, documents=folder, is_editing=True)
    with driver.quiet_page(width=1300, but="^(?!error)|status of 4") as page:
        page.goto(line)
        page.get_by_role("link", name="Files").click()
        page.get_by_role("link", name="one.dot").wait_for()
        page.get_by_role("link", name="onerror").first.click()
        page.locator(".ad-note", has_text="cannot be read").wait_for()
        page.get_by_role("link", name="Files").click()
        page.get_by_role("link", name="one.dot").click()
        for node in ("n0", "n3"):
            page.locator(f"[data-node={node}]").click()
            page.locator(".ae-form", has_text=node).wait_for()
        page.get_by_role("button", name="Run…").click()
        page.get_by_text("Prompts are answered by").wait_for()
        page.wait_for_timeout(300)  # what would run needs a moment
        strangers = (
            FOREIGN.replace("img,", "img:not(.ap-icon),")
            .replace("meta,", "")
            .replace("link,", "")
            .replace("script,", "")
        )
        assert page.locator(", ".join(f"main {name.strip()}" for name in strangers.split(","))).count() == 0


def test_in_the_extension_of_jupyterlab(lab, open_notebook):
    """Findings, meanings, the outline, breakpoints, notifications, names of tabs and the panel of runs."""
    few = GROUPS[::5]
    cell = f"%%attractor hostile\n{hostile_graph(few).replace('x.own', 'promt')}"
    base = lab.root / ".attractor" / "runs"
    failing = (
        "x [shape=parallelogram, tool_command=false] start [shape=Mdiamond] done [shape=Msquare] start -> x -> done"
    )
    notebook = open_notebook(lab, cell)
    page = notebook.page
    page.set_default_timeout(60_000)

    def check_page():
        page.wait_for_timeout(300)  # as of check
        assert notebook.browser.our_errors == []
        assert page.locator("img[src=x], [onerror], [onload], [onfocus]").count() == 0

    page.locator(".cm-attractor-panel button").wait_for()
    notebook.command("toc:show-panel")
    page.locator(".jp-tocItem-content", has_text="onerror=hit()").first.wait_for()
    check_page()
    page.locator(".cm-attractor-warning, .cm-attractor-info").first.hover()
    page.locator(".cm-attractor-tooltip").wait_for()
    check_page()
    page.locator(".jp-tocItem-content", has_text="done").click()
    page.locator(".cm-line", has_text="done [").last.hover(position={"x": 40, "y": 8})
    page.locator(".cm-attractor-meaning").wait_for()
    check_page()
    page.keyboard.press("F9")
    page.locator(".cm-attractor-breakpoint").wait_for()
    check_page()

    notebook.command("attractor-nb:show-runs")
    frame = page.frame_locator("#attractor-nb-runs iframe")
    frame.get_by_label("Filter runs").wait_for()
    for _ in range(2):
        with page.expect_response("**/attractor-nb/rows?limit=50*"):
            pass
    Pipeline(f"digraph {quote(VECTORS[0])} {{ {failing} }}").run(logs_root=base / "hostile", is_shown=False).result(60)
    told = page.locator(".Toastify__toast", has_text="onerror=hit()> failed")
    told.wait_for()
    check_page()
    told.get_by_role("button", name="Show").click()
    page.locator(".lm-TabBar-tabLabel", has_text="onerror=hit()").wait_for()
    frame.locator(".ap-side-name", has_text="onerror=hit()").first.wait_for()
    check_page()
    inside = frame.locator(".ap-side").locator(FOREIGN)
    assert inside.count() == 0
