"""The inspector without Jupyter: a real run's plain forms, clicked through in a bare page."""

from __future__ import annotations

import json

import pytest

from attractor_nb import FunctionBackend, Pipeline
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.studio.inspect.inspect_run import answer_inspection
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg

pytestmark = pytest.mark.browser

LIVE = "showLiveRun(host, el, shareStates(host))"
HOSTILE = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
TEXT = """digraph release { graph [goal="a page that a newcomer understands in two minutes"]
  start [shape=Mdiamond] done [shape=Msquare]
  draft [label="Write the first page of the manual for people who never saw it", max_retries=2,
         prompt="Write about $goal.\\nUse short sentences.\\nName every button that is clicked."]
  build [shape=parallelogram, tool_command="echo built 12 pages; echo 'warning: 1 link is dead' >&2"]
  check [label="Is it good?"]
  start -> draft -> build -> check
  check -> done [condition="outcome=success && context.grade=A"]
  check -> draft [condition="context.grade!=A", label="again"]
}"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    grades, failures = ["C", "A"], ["the provider said 503: overloaded, try later"]

    def answer(node, prompt, context):
        if node.id == "draft" and failures:
            return Outcome.retry(failures.pop())
        if node.id == "check":
            updates = {"grade": grades.pop(0), "findings": "a long finding " * 60, "html": HOSTILE}
            return Outcome.success("graded", context_updates=updates)
        return Response(
            f"# The page\\n\\n{HOSTILE}\\n" + "A sentence about it. " * 40, usage=Usage(1200, 340, 0.0042, 1)
        )

    made = Pipeline(TEXT, backend=FunctionBackend(answer)).run(logs_root=tmp_path_factory.mktemp("i") / "run")
    made.result()
    return made


@pytest.fixture
def shown(open_view, run):
    """A live view of the run, whose questions the test answers as the kernel would."""

    def open_(**options):
        states = run.view.to_plain() | {"line": {"status": "success", "is_ended": True}, "tails": {}}
        view = open_view(
            "live_view", LIVE, svg=render_svg(run.graph), marks=MARK_PATHS, caption="demo", states=states, **options
        )
        view.answered = len(view.sent)
        return view

    return open_


def answer(view, run):
    """Answer what the view has asked since the last time."""
    for request in view.sent[view.answered :]:
        if request["kind"] == "inspect":
            view.tell(**json.loads(json.dumps(answer_inspection(run, request))))
    view.answered = len(view.sent)


def open_tab(view, name):
    view.page.get_by_role("tab", name=name).click()
    return view.page.locator(".al-tab-panel")


def test_the_prompt_of_the_graph_comes_first_and_the_preamble_is_folded(shown, run):
    view = shown()
    view.page.locator("[data-node=draft]").first.click()
    answer(view, run)
    panel = open_tab(view, "Prompt")
    parts = panel.locator("> *")
    assert " ".join(parts.first.inner_text().split()).startswith("Raw Copy Write about a page that a newcomer")
    assert panel.locator("details[open]").count() == 0
    assert panel.locator("summary").all_inner_texts() == ["Preamble: the run so far", "The whole prompt as it was sent"]


@pytest.mark.kind("a browser")
def test_a_node_is_clicked_and_each_tab_shows_what_is_known(shown, run):
    view = shown()
    view.page.locator("[data-node=check]").click()
    assert view.sent[-1] == {"kind": "inspect", "node": "check"}
    answer(view, run)
    inspector = view.page.locator(".al-inspector")
    assert inspector.get_by_role("tab").all_text_contents()[:3] == ["Prompt", "Response", "Status"]
    assert "success · visit 2 of 2" in view.page.locator(".al-inspector-state").text_content()
    assert "graded" in open_tab(view, "Status").text_content()
    panel = open_tab(view, "Context")
    rows = panel.locator("tr.is-changed").all_text_contents()
    assert any(row.startswith("~grade") and row.endswith("A") for row in rows)
    assert panel.locator("details summary").first.text_content().startswith("Unchanged: ")
    why = open_tab(view, "Why").text_content()
    assert "the condition `outcome=success && context.grade=A` holds" in why
    assert 'does not hold: `context.grade!=A` saw "A"' in why
    view.page.locator("[data-node=build]").click()
    answer(view, run)
    assert "built 12 pages" in open_tab(view, "Response").text_content()
    assert "echo built" in open_tab(view, "Prompt").text_content()
    assert view.page.evaluate("() => window.hit") is None
    assert view.console == []


def test_a_stage_that_failed_opens_on_its_reason_and_another_on_its_prompt(shown):
    view = shown()
    chosen = view.page.get_by_role("tab", selected=True)

    def open_stage(node, status):
        view.page.locator(f"[data-node={node}]").click()
        view.tell(kind="stage", node=node, status=status, visit=1, attempt=1, reason="no such file: a.csv")

    open_stage("check", "fail")
    assert chosen.text_content() == "Status"
    assert "no such file: a.csv" in view.page.locator(".al-tab-panel").text_content()
    view.page.get_by_role("tab", name="Prompt").click()
    view.tell(kind="stage", node="check", status="fail", visit=1, attempt=1, reason="no such file: a.csv")
    assert chosen.text_content() == "Prompt", "what is read stays"
    open_stage("draft", "success")
    assert chosen.text_content() == "Prompt"


def test_visits_and_attempts_are_switched_and_files_are_read_on_demand(shown, run):
    view = shown()
    view.page.locator("[data-node=draft]").click()
    answer(view, run)
    open_tab(view, "Attempts")
    view.page.get_by_role("button", name="visit 1").click()
    assert view.sent[-1] == {"kind": "inspect", "node": "draft", "visit": 1, "branch": ""}
    answer(view, run)
    assert "visit 1 of 2 · attempt 2 of 2" in view.page.locator(".al-inspector-state").text_content()
    view.page.get_by_role("button", name="attempt 1").click()
    answer(view, run)
    assert "503: overloaded" in open_tab(view, "Status").text_content()
    open_tab(view, "Files")
    view.page.get_by_role("button", name="status.json").click()
    assert view.sent[-1]["file"] == "status.json"
    answer(view, run)
    assert '"outcome": "retry"' in view.page.locator(".al-file-text .pr-shown").text_content()
    assert view.page.locator(".al-path code").text_content().endswith("visits/1.1")
    assert view.console == []


def test_a_page_that_stands_alone_has_the_texts_of_files_or_says_that_it_has_not(shown, run):
    view = shown()
    view.page.locator("[data-node=build]").click()
    plain = run.inspect("build").to_plain(with_files=True, with_place=False)
    plain["files"].append({"name": "large.bin", "bytes": 9_000_000, "text": None})
    view.tell(**plain | {"kind": "stage"})
    count = len(view.sent)
    open_tab(view, "Files")
    for name, words in (
        ("status.json", '"outcome"'),
        ("stdout.txt", "built 12"),
        ("large.bin", "not part of this page"),
    ):
        view.page.get_by_role("button", name=name).click()
        assert words in view.page.locator("li", has_text=name).text_content()
    assert view.page.locator(".al-path").count() == 0
    assert len(view.sent) == count


def test_an_edge_is_clicked_and_shows_its_condition_the_values_and_the_verdicts(shown, run):
    view = shown()
    index = next(i for i, edge in enumerate(run.graph.edges) if edge.target == "draft" and edge.source == "check")
    view.page.locator(f"[data-edge='{index}']").first.dispatch_event("click")
    assert view.sent[-1] == {"kind": "inspect", "edge": str(index)}
    answer(view, run)
    body = view.page.locator(".al-inspector-body").text_content()
    assert view.page.locator(".al-inspector-title").text_content() == "check → draft"
    assert "taken once" in view.page.locator(".al-inspector-state").text_content()
    assert "grade = C ✓" in body
    assert 'does not hold: `context.grade!=A` saw "A"' in body
    view.page.get_by_role("button", name="Close").press("Escape")
    assert view.page.locator(".al-inspector").is_hidden()


def test_tabs_are_walked_with_the_arrow_keys_and_long_values_are_unfolded(shown, run):
    view = shown()
    view.page.locator("[data-node=check]").click()
    answer(view, run)
    view.page.get_by_role("tab", name="Prompt").focus()
    for _ in range(3):
        view.page.keyboard.press("ArrowRight")
    assert view.page.get_by_role("tab", name="Context").get_attribute("aria-selected") == "true"
    view.tell(**answer_inspection(run, {"node": "check", "visit": 1}))
    more = view.page.locator(".al-more").first
    more.click()
    assert more.text_content() == "show less"


def test_what_cannot_be_read_is_said(shown, run):
    view = shown()
    view.page.locator("[data-node=check]").click()
    view.tell(kind="stage", node="check", problems=["the log is damaged; `attractor-nb doctor` says what can be saved"])
    assert "the log is damaged" in view.page.locator(".al-problem").text_content()
    assert view.console == []


@pytest.mark.parametrize(
    "text", [HOSTILE, "javascript:alert(1)", "</script><script>window.hit=1</script>", "{{7*7}}", "\u202egnp"]
)
def test_hostile_texts_stay_texts_in_every_field(shown, run, text):
    plain = answer_inspection(run, {"node": "check"})

    def soiled(value):
        if isinstance(value, str):
            return text
        if isinstance(value, dict):
            return {key: soiled(one) for key, one in value.items()}
        return [soiled(one) for one in value] if isinstance(value, list) else value

    view = shown()
    view.page.locator("[data-node=check]").click()
    view.tell(**soiled(plain) | {"kind": "stage", "node": "check"})
    for name in ("Prompt", "Response", "Status", "Context", "Files", "Attempts", "Why"):
        open_tab(view, name)
    assert view.page.locator(".al-inspector img, .al-inspector script, .al-inspector iframe").count() == 0
    assert view.page.locator(".al-inspector a").count() == 0
    assert view.page.evaluate("() => window.hit") is None


@pytest.mark.parametrize("is_dark", [False, True])
def test_its_pictures(shown, run, is_dark):
    view = shown(dark=is_dark, width=1150, height=760)
    theme = "dark" if is_dark else "light"
    view.page.locator("[data-node=check]").click()
    answer(view, run)
    for name in ("Prompt", "Context", "Files", "Attempts", "Why"):
        open_tab(view, name)
        view.shoot(f"inspector_{name.lower()}_{theme}")
    view.page.locator("[data-node=draft]").click()
    answer(view, run)
    open_tab(view, "Response")
    view.shoot(f"inspector_response_{theme}")
    view.page.locator("[data-edge='4']").first.dispatch_event("click")
    answer(view, run)
    view.shoot(f"inspector_edge_{theme}")
    assert view.console == []


# -- the items of a list -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    text = """digraph files { start [shape=Mdiamond] done [shape=Msquare]
        review [label="Review each file", for_each="item in files", prompt="Review ${item.path}", max_parallel=1]
        start -> review -> done }"""

    def answer(node, prompt, context):
        name = context["item"]["path"]
        return Outcome.fail("it is binary") if name == "b.bin" else f"{name} is fine"

    made = Pipeline(text, backend=FunctionBackend(answer)).run(
        logs_root=tmp_path_factory.mktemp("items") / "run",
        params={"files": [{"path": name} for name in ("a.py", "b.bin", "c.py")]},
    )
    made.result()
    return made


def test_the_items_of_a_stage_are_a_table_and_the_run_of_each_can_be_opened(open_view, repeated):
    states = repeated.view.to_plain() | {"line": {"status": "success", "is_ended": True}, "tails": {}}
    view = open_view("live_view", LIVE, svg=render_svg(repeated.graph), marks=MARK_PATHS, caption="demo", states=states)
    view.answered = len(view.sent)
    box = view.page.locator("[data-node=review]").first
    assert "3 of 3, 1 failed" in box.text_content()
    box.click()
    answer(view, repeated)
    rows = open_tab(view, "Items").locator("tbody tr")
    assert [rows.nth(at).locator("td").nth(2).inner_text() for at in range(3)] == ["completed", "failed", "completed"]
    assert rows.nth(1).locator("td").nth(3).inner_text() == "it is binary"
    view.page.get_by_role("button", name="Open item 2").click()
    assert view.sent[-1] == {"kind": "inspect", "node": "review", "visit": 1, "branch": "", "item": 2}
    answer(view, repeated)
    assert view.page.locator(".al-inspector-state").text_content().startswith("item 2 · success")
    assert "c.py is fine" in open_tab(view, "Response").text_content()
    open_tab(view, "Files")
    view.page.get_by_role("button", name="response.md").click()
    answer(view, repeated)
    assert "c.py is fine" in view.page.locator(".al-tab-panel").text_content()
    open_tab(view, "Items").get_by_role("button", name="All items").click()
    answer(view, repeated)
    assert rows.count() == 3
    view.page.locator("[data-node=start]").first.click()
    answer(view, repeated)
    assert not view.page.get_by_role("tab", name="Items").is_visible()
    assert view.console == []
