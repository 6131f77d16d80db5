"""Texts of stages as people read them: Markdown, code, JSON to fold, diffs by their words; and as they are by a click."""

from __future__ import annotations

import json

import pytest

from attractor_nb import FunctionBackend, Pipeline, diff
from attractor_nb.model.events import InterviewStarted
from attractor_nb.studio.compare.compare_runs import PLAIN_TEXT_CHARS
from attractor_nb.studio.compare.comparison_page import comparison_values
from attractor_nb.studio.inspect.inspect_run import answer_inspection
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.shown_questions import plain_question

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

PLAN = """# Plan for the release

The importer reads **each row once** and keeps `row_id`; see [the notes](https://example.org/notes)
and ![the chart](https://example.org/chart.png), not [this](javascript:hit()).

| step | owner | days |
|------|:-----:|-----:|
| parse | Ada | 2 |
| write | Grace | 13 |

1. Read the file
2. Check each row
   - a missing `id` ends the import
   - an empty row is skipped

> Nothing is written before all rows are checked.

```python
def import_rows(path: str) -> int:
    \"\"\"Read all rows.\"\"\"
    rows = [parse(line) for line in open(path)]  # closed at the end
    return len(rows) + 1
```
"""
VERDICT = json.dumps(
    {
        "verdict": "changes_requested",
        "score": 0.85,
        "reviewed": True,
        "findings": [{"file": f"src/part_{n}.py", "line": 10 * n, "message": "name the unit"} for n in range(6)],
        "summary": {"errors": 0, "next": None},
    }
)
CHANGES = """diff --git a/importer.py b/importer.py
index 83db48f..bf2a1c4 100644
--- a/importer.py
+++ b/importer.py
@@ -1,6 +1,7 @@
 def import_rows(path):
-    rows = [parse(line) for line in open(path)]
+    with open(path) as file:
+        rows = [parse(line) for line in file]
     return rows
-LIMIT = 100
+LIMIT = 250
"""
SIZES = {"light": (1366, 768, False), "dark": (1366, 768, True), "narrow": (640, 900, False)}


def run_of(tmp_path, *texts, name="run", prompt="Plan it"):
    given = dict(zip(("plan", "check"), texts, strict=False))
    backend = FunctionBackend(lambda node, prompt, context: given.get(node.id, "done"))
    graph = f'digraph d {{ start [shape=Mdiamond] plan [prompt="{prompt}"] check [prompt="Check"] done [shape=Msquare] start -> plan -> check -> done }}'
    run = Pipeline(graph, backend=backend).run(logs_root=tmp_path / name)
    run.result(60)
    return run


def inspected(open_view, run, node, tab, **options):
    states = run.view.to_plain() | {"tails": {}}
    view = open_view(
        "live_view",
        "showLiveRun(host, el, shareStates(host))",
        svg=render_svg(run.graph),
        marks=MARK_PATHS,
        caption="plan",
        states=states,
        **options,
    )
    view.page.locator(f"[data-node={node}]").first.click()
    view.tell(**json.loads(json.dumps(answer_inspection(run, {"node": node}))))
    view.page.get_by_role("tab", name=tab).click()
    return view


def gates(open_view, *materials, **options):
    event = InterviewStarted(
        question="Merge the fix?",
        stage="ask",
        question_id="ask:1",
        kind="multiple_choice",
        options=(("A", "Approve"), ("R", "Redo")),
        metadata={"review": [{"name": name, "text": text, "note": ""} for name, text in materials]},
    )
    values = {"shows_all": True, "has_gates": True, "none": "", "answers": [], "refusals": {}}
    return open_view("gates_view", "showGates(host, el)", gates=[plain_question(event)], **values, **options)


def compared(open_view, a, b, **options):
    values = comparison_values(diff(a, b).compared, text_chars=PLAIN_TEXT_CHARS)
    view = open_view("compare", "showCompare(host, el)", **values, **options)
    view.page.locator("[data-node=plan]").first.click()
    return view


def test_a_response_in_markdown_has_its_headings_lists_tables_and_code(open_view, tmp_path):
    view = inspected(open_view, run_of(tmp_path, PLAN), "plan", "Response")
    box = view.page.locator(".al-tab-panel:visible .pr-shown")
    assert box.get_by_role("heading", name="Plan for the release").count() == 1
    assert box.locator("td", has_text="Grace").count() == 1
    assert box.locator("ol > li").count() == 2
    assert box.locator(".pr-code .pr-keyword", has_text="def").count() == 1
    assert view.console == []


def test_links_lead_only_where_they_may_and_images_are_named_and_not_loaded(open_view, tmp_path):
    view = inspected(open_view, run_of(tmp_path, PLAN), "plan", "Response")
    asked = []
    view.page.on("request", lambda request: asked.append(request.url))
    links = view.page.locator(".pr-shown a")
    found = links.evaluate_all("all => all.map(one => [one.href, one.rel, one.target])")
    assert found == [["https://example.org/notes", "noopener noreferrer", "_blank"]]
    assert "image: the chart (https://example.org/chart.png)" in view.page.locator(".pr-image").inner_text()
    assert "this (javascript:hit())" in view.page.locator(".pr-shown").last.inner_text()
    assert (view.page.locator("img").count(), asked) == (0, [])


def test_raw_shows_the_text_as_it_is_and_is_kept_for_the_next_stage(open_view, tmp_path):
    run = run_of(tmp_path, PLAN, VERDICT)
    view = inspected(open_view, run, "plan", "Response")
    panel = view.page.locator(".al-tab-panel:visible")
    panel.get_by_role("button", name="Raw").click()
    assert panel.locator("pre").inner_text() == PLAN
    view.page.locator("[data-node=check]").first.click()
    view.tell(**json.loads(json.dumps(answer_inspection(run, {"node": "check"}))))
    view.page.get_by_role("tab", name="Response").click()
    assert panel.locator("pre").inner_text() == VERDICT
    panel.get_by_role("button", name="Rendered").click()
    assert panel.locator("pre").count() == 0
    assert panel.locator(".pr-json").count() == 1


def test_copy_gives_the_text_as_it_is(open_view, tmp_path):
    view = inspected(open_view, run_of(tmp_path, PLAN), "plan", "Response")
    view.page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    view.page.locator(".al-tab-panel:visible").get_by_role("button", name="Copy").click()
    assert view.page.evaluate("window.copied") == PLAN


def test_json_opens_and_closes_by_click_and_keyboard_and_begins_closed_where_it_is_big(open_view, tmp_path):
    view = inspected(open_view, run_of(tmp_path, PLAN, VERDICT), "check", "Response")
    findings = view.page.locator("summary", has_text="findings")
    message = view.page.get_by_text("name the unit").first
    assert "6 entries" in findings.inner_text()
    assert not message.is_visible()
    findings.click()
    assert message.is_visible()
    findings.press("Enter")
    assert not message.is_visible()


def test_a_gate_shows_a_diff_with_its_words_marked_and_sending_leaves_its_buttons(open_view):
    view = gates(open_view, ("fix/changes.diff", CHANGES), ("plan/response.md", PLAN))
    words = view.page.locator(".ag-material ins.pr-word").all_inner_texts()
    assert words[-1] == "250"
    assert view.page.locator(".ag-material del.pr-word").last.inner_text() == "100"
    weight, line = view.page.locator("ins.pr-word").last.evaluate(
        "one => [getComputedStyle(one).fontWeight, getComputedStyle(one).textDecorationLine]"
    )
    assert (weight, line) == ("600", "underline"), "by more than colour"
    view.page.get_by_role("button", name="Approve").click()
    assert view.page.get_by_role("button", name="Raw").first.is_enabled()


def test_two_runs_prompts_are_compared_word_by_word(open_view, tmp_path):
    long = "Read the importer with care. " * 12
    a = run_of(tmp_path, PLAN, name="a", prompt=f"{long}Name three risks. {long}")
    b = run_of(tmp_path, PLAN, name="b", prompt=f"{long}Name five risks. {long}")
    view = compared(open_view, a, b)
    assert view.page.locator(".ac-change del.pr-word").all_inner_texts() == ["three"]
    assert view.page.locator(".ac-change ins.pr-word").all_inner_texts() == ["five"]
    assert len(view.page.locator(".ac-change .pr-gone").inner_text()) < 200


def test_an_exported_page_shows_the_same_without_a_kernel(driver, tmp_path):
    file = run_of(tmp_path, PLAN, VERDICT).export_html(tmp_path / "run.html")
    with driver.quiet_page(offline=True) as page:
        page.goto(file.as_uri())
        page.locator("[data-node=plan]").first.click()
        page.get_by_role("tab", name="Response").click()
        assert page.get_by_role("heading", name="Plan for the release").count() == 1
        page.locator("[data-node=check]").first.click()
        page.get_by_role("tab", name="Response").click()
        page.locator("summary", has_text="findings").click()
        assert page.get_by_text("name the unit").first.is_visible()


def test_a_static_output_needs_no_script_to_show_a_text_as_it_is(open_view, tmp_path):
    html = run_of(tmp_path, PLAN).inspect("plan")._repr_mimebundle_()["text/html"]
    view = open_view("parts", "(el.innerHTML = host.get('html'), () => {})", html=html)
    response = view.page.locator(".attractor-prose:has(> .pr-raw)").last
    heading = response.get_by_role("heading", name="Plan for the release")
    assert heading.is_visible()
    response.get_by_text("Raw", exact=True).click()
    assert not heading.is_visible()
    assert response.locator(".pr-raw > pre").inner_text().strip() == PLAN.strip()
    response.get_by_text("Rendered", exact=True).click()
    assert heading.is_visible()


def failed_run(tmp_path):
    def failing(node, prompt, context):
        table = {"found": prompt}
        return table["missing"]

    graph = 'digraph d { start [shape=Mdiamond] plan [prompt="Plan"] done [shape=Msquare] start -> plan -> done }'
    run = Pipeline(graph, backend=FunctionBackend(failing)).run(logs_root=tmp_path / "failed")
    run.result(60)
    return run


def test_a_failure_in_the_users_python_has_its_traceback_folded_with_its_line_marked(open_view, tmp_path):
    view = inspected(open_view, failed_run(tmp_path), "plan", "Status")
    traceback = view.page.locator("summary", has_text="Traceback")
    error = traceback.locator("..").get_by_text("KeyError: 'missing'").last
    assert not error.is_visible()
    traceback.click()
    assert error.is_visible()
    assert view.page.locator(".pr-marked").inner_text().strip() == 'return table["missing"]'


@pytest.mark.kind("a browser")
def test_a_tree_of_a_stranger_makes_only_what_is_allowed(open_view):
    """The front-end trusts no tree, either: a run directory or a server could be anybody's."""
    tree = [
        ["script", "hit()"],
        ["img", {"src": "x", "onerror": "hit()"}],
        ["a", {"href": "javascript:hit()", "onclick": "hit()"}, "there"],
        ["p.x onclick=hit()", {"style": "position:fixed", "onclick": "hit()"}, "<img src=x onerror=hit()>"],
        ["iframe", {"srcdoc": "<script>parent.hit()</script>"}, ["svg", ["script", "hit()"]]],
    ]
    for _ in range(500):
        tree = [["div", *tree]]
    call = "(el.append(makeProse(host.get('tree'))), () => {})"
    view = open_view("prose", call, tree=tree)
    view.page.wait_for_timeout(300)  # what would run needs a moment
    assert view.console == []
    made = view.page.evaluate(
        "[...document.querySelectorAll('#view *')].flatMap(one => [one.tagName, ...one.getAttributeNames()])"
    )
    assert set(made) <= {"DIV", "class", "tabindex", "P", "A", "SPAN"}
    assert "hit()" in view.page.locator("#view").inner_text()


@pytest.mark.parametrize("size", SIZES)
def test_pictures_of_texts(open_view, tmp_path, size):
    width, height, dark = SIZES[size]
    options = {"width": width, "height": height, "dark": dark}
    run = run_of(tmp_path, PLAN, VERDICT)
    inspected(open_view, run, "plan", "Response", **options).shoot(f"prose-markdown-{size}")
    view = inspected(open_view, run, "check", "Response", **options)
    view.shoot(f"prose-json-folded-{size}")
    view.page.locator("summary", has_text="findings").click()
    view.shoot(f"prose-json-open-{size}")
    view = inspected(open_view, failed_run(tmp_path), "plan", "Status", **options)
    view.page.locator("summary", has_text="Traceback").click()
    view.shoot(f"prose-traceback-{size}")
    texts = ("fix/changes.diff", CHANGES), ("plan/response.md", PLAN)
    gates(open_view, *texts, **options).shoot(f"prose-gate-{size}")
    other = run_of(tmp_path, PLAN.replace("13", "14"), VERDICT, name="b", prompt="Plan it in small steps")
    compared(open_view, run, other, **options).shoot(f"prose-compare-{size}")
    html = run.inspect("plan")._repr_mimebundle_()["text/html"] + diff(run, other).to_html()
    view = open_view("parts", "(el.innerHTML = host.get('html'), () => {})", html=html, **options)
    view.shoot(f"prose-static-{size}")
    assert view.console == []
