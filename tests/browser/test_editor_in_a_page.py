"""The editor and the findings of a cell in bare pages; the test plays the kernel with a real ``EditorRequests``."""

from __future__ import annotations

import pytest

from attractor_nb import Pipeline
from attractor_nb.source import SourceText
from attractor_nb.studio.edit.editor_requests import EditorRequests

pytestmark = pytest.mark.browser

TEXT = """digraph release {
    // What the team ships, and who says so.
    graph [goal="Ship the report command with a --json flag", rankdir=LR]
    start  [shape=Mdiamond, label="Start"]
    plan   [label="Plan the change", promt="Plan: $goal
Name the files that change.
Say what could break."]
    build  [label="Implement it, with tests for every branch of the parser", prompt="Implement the plan", max_retries=2]
    check  [shape=parallelogram, label="Run the tests", tool_command="make test", timeot="15m"]
    gate   [shape=hexagon, label="Is the change good?", human.timeout=15m, human.default_choice=build]
    done   [shape=Msquare, label="Done"]

    start -> plan -> build -> check
    check -> gate  [condition="outcome=success"]
    check -> build [condition="outcome!=success", label="fix"]  // again and again
    gate -> done   [label="[A] Approve"]
    gate -> build  [label="[R] Request changes"]
}
"""


class Kernel:
    """Performs the requests of the view, and sends it the results."""

    def __init__(self, view, requests):
        self.view, self.requests, self.done = view, requests, 0

    def turn(self):
        for message in self.view.sent[self.done :]:
            self.done += 1
            replies, is_changed = self.requests.answer(message)
            if is_changed:
                self.view.set("state", self.requests.state())
            for reply in replies:
                self.view.tell(**reply)

    def wait_for(self, kind):
        self.view.page.wait_for_function(f"() => window.sent.slice({self.done}).some(m => m.kind === '{kind}')")
        self.turn()


@pytest.fixture
def open_editor(open_view):
    def open_(entry="editor", call="showEditor(host, el)", text=TEXT, **options):
        source = SourceText(text, "<cell>", first_line=2)
        requests = EditorRequests(Pipeline(source).edit())
        view = open_view(entry, call, state=requests.state(), place="x", **options)
        return view, Kernel(view, requests), requests.editor

    return open_


@pytest.mark.kind("a browser")
def test_a_value_typed_into_the_form_becomes_a_change_of_one_line(open_editor):
    view, kernel, editor = open_editor()
    page = view.page
    page.locator("[data-node=build]").click()
    kernel.turn()
    prompt = page.locator("textarea[data-name=prompt]")
    assert prompt.input_value() == "Implement the plan"
    prompt.fill("Implement the plan.\nWrite the tests first.")
    prompt.press("Control+Enter")
    kernel.wait_for("set")
    assert editor.pipeline().graph.nodes["build"].prompt == "Implement the plan.\nWrite the tests first."
    assert page.locator(".sp-line.is-changed").count() == 1
    assert "Write the tests first" in page.locator(".sp-line.is-changed").text_content()
    assert page.locator(".sp-line").first.bounding_box()["height"] < 24, "a line of the text, not a box"
    assert page.locator(".ae-kind").text_content() == "build, model"
    assert page.locator("textarea[data-name=prompt]").evaluate("e => e === document.activeElement")
    page.get_by_role("button", name="Undo").click()
    kernel.turn()
    assert (editor.source, page.locator(".sp-line.is-changed").count()) == (TEXT, 0)
    page.get_by_role("button", name="Redo").click()
    kernel.turn()
    assert "Write the tests first" in editor.source
    assert view.console == []


def test_a_condition_is_judged_while_it_is_typed(open_editor):
    view, kernel, editor = open_editor()
    view.page.locator(".edge-label[data-edge='3']").click()
    kernel.turn()
    field = view.page.locator("textarea[data-name=condition]")
    field.press_sequentially(" && ")
    kernel.wait_for("check")
    words = view.page.locator(".ae-field", has=field).locator(".ae-words")
    assert "condition" in words.text_content() or "expected" in words.text_content()
    assert field.get_attribute("aria-invalid") == "true"  # without a value it means "false"
    field.fill("outcome=success && context.tests=green")
    kernel.wait_for("check")
    assert words.text_content() == ""
    assert field.get_attribute("aria-invalid") is None
    field.blur()
    kernel.wait_for("set")
    assert editor.pipeline().graph.edges[3].condition == "outcome=success && context.tests=green"


def test_nodes_and_edges_are_added_renamed_and_removed(open_editor):
    view, kernel, editor = open_editor()
    page = view.page
    page.locator("[data-node=check]").click()
    kernel.turn()
    page.get_by_label("Id of a new node").fill("docs")
    page.get_by_role("button", name="Add node").click()
    kernel.turn()
    page.get_by_label("Edge from").select_option("docs")
    page.get_by_label("Edge to").select_option("gate")
    page.get_by_role("button", name="Add edge").click()
    kernel.turn()
    assert ("docs", "gate") in [(edge.source, edge.target) for edge in editor.pipeline().graph.edges]
    page.locator("[data-node=docs]").click()
    kernel.turn()
    page.get_by_label("Id of the node").fill("manual")
    page.get_by_label("Id of the node").press("Enter")
    kernel.wait_for("rename")
    assert page.locator("[data-node=manual]").count() == 1
    page.get_by_role("button", name="Remove").click()
    kernel.turn()
    assert editor.source == TEXT
    assert page.locator(".ae-form").is_hidden()


def test_what_python_refuses_is_said_and_nothing_changes(open_editor):
    view, kernel, editor = open_editor()
    view.page.get_by_label("Id of a new node").fill("plan")
    view.page.get_by_label("Id of a new node").press("Enter")
    kernel.turn()
    assert 'a node "plan" already exists' in view.page.locator(".ax-said.is-error").text_content()
    assert editor.source == TEXT


def test_a_fix_is_a_click_and_a_place_leads_to_its_line(open_editor):
    view, kernel, editor = open_editor()
    assert view.page.locator(".af-table tbody tr").count() >= 2
    view.page.locator(".af-go").first.click()
    assert "promt" in view.page.locator(".sp-line.is-here").text_content()
    view.page.get_by_role("button", name="Fix all").click()
    kernel.turn()
    assert "promt" not in editor.source
    assert "fixed, " in view.page.locator(".ax-said").text_content()
    assert not any(found.rule == "attribute_typo" for found in editor.diagnostics)
    stale = {"kind": "fix", "number": 0, "version": 0}
    assert "has changed since this table" in kernel.requests.answer(stale)[0][0]["words"]


def test_without_a_kernel_it_can_only_be_looked_at(open_editor):
    view, _, _ = open_editor(is_live=False)
    assert "there is no kernel" in view.page.locator(".ax-bar").text_content()
    assert view.page.locator("button:visible", has_text="Fix").count() == 0
    view.page.locator("[data-node=plan]").click()
    assert view.page.locator(".ae-form").is_hidden()
    assert view.sent == []


def test_a_kernel_that_is_silent_is_said_to_be(open_editor):
    view, _, _ = open_editor()
    view.page.clock.install()
    view.page.locator("[data-node=plan]").click()
    view.page.clock.run_for(5000)
    assert "The kernel does not answer" in view.page.locator(".ax-said").text_content()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pictures_for_looking_at(open_editor, dark):
    view, kernel, _ = open_editor(dark=dark, height=1250)
    view.page.locator("[data-node=build]").click()
    kernel.turn()
    view.page.locator("[data-name=max_retries]").fill("3")
    view.page.locator("[data-name=max_retries]").blur()
    kernel.wait_for("set")
    view.page.locator(".ax-difference").evaluate("e => { e.open = true; }")
    view.shoot(f"editor-{'dark' if dark else 'light'}")
    assert view.console == []


# -- findings of a cell ------------------------------------------------------------------------------------

FINDINGS = "showFindings(host, el)"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_fix_shows_its_difference_and_offers_the_new_text(open_editor, dark):
    view, kernel, editor = open_editor("findings", FINDINGS, dark=dark, height=700)
    rows = view.page.locator(".af-table tbody tr").count()
    view.page.get_by_role("button", name="Fix: ").first.click()
    kernel.turn()
    assert view.page.locator(".af-table tbody tr").count() < rows
    assert "prompt=" in view.page.locator(".sp-added").first.text_content()
    assert view.page.locator("textarea").input_value() == editor.source
    assert view.page.get_by_role("button", name="Put it into the cell").count() == 0  # there is no cell around it
    view.shoot(f"findings-{'dark' if dark else 'light'}")
    view.page.get_by_role("button", name="Undo").click()
    kernel.turn()
    assert view.page.locator(".aq-offer").is_hidden()
    assert view.page.locator(".af-table tbody tr").count() == rows
    assert view.console == []


def test_a_text_with_a_secret_is_not_offered(open_editor):
    secret = "sk-ant-api03-" + "A1b2C3d4" * 8
    view, kernel, _ = open_editor("findings", FINDINGS, text=TEXT.replace("make test", f"KEY={secret} make test"))
    view.page.get_by_role("button", name="Fix: ").first.click()
    kernel.turn()
    assert "pipeline.fixed()" in view.page.locator(".aq-offer").text_content()
    assert secret not in view.page.content()


def test_a_view_stands_in_for_its_static_output_and_leaves_it_when_it_ends(open_editor):
    call = """(() => {
      el.innerHTML = '<div data-attractor-place="x"><p id="still">static</p></div>';
      return standIn('x', (inner, place) => showFindings(host, inner, place));
    })()"""
    view, _, _ = open_editor("findings", call)
    assert view.page.locator("#still").is_hidden()
    assert view.page.locator(".af-table").count() == 1
    view.page.evaluate("() => window.end()")
    assert view.page.locator("#still").is_visible()
    assert view.page.locator(".af-table").count() == 0


COVERED = """() => {
  const [tools, ...nodes] = [".ad-tools", ...document.querySelectorAll("[data-node] .outline")].map(
    (one) => (typeof one === "string" ? document.querySelector(one) : one).getBoundingClientRect(),
  );
  return nodes.filter((node) => tools.left < node.right && node.left < tools.right && tools.top < node.bottom && node.top < tools.bottom).length;
}"""


def test_the_tools_of_the_drawing_cover_no_node_when_a_form_has_made_it_narrow(open_editor):
    text = """digraph review {
        rankdir=TB
        start [shape=Mdiamond]
        plan  [prompt="Plan it"]
        done  [shape=Msquare]
        start -> plan -> done
        plan -> done [condition="outcome=success && context.tone != 'dry'"]
        write [prompt="Write it"]
    }"""
    view, kernel, _ = open_editor(text=text, width=760)
    view.page.locator("[data-node=plan]").hover()
    assert view.page.evaluate(COVERED) == 0
    wide = view.page.locator(".ad-drawing").bounding_box()["width"]
    view.page.locator("[data-node=plan]").click()
    kernel.wait_for("form")
    view.page.locator(".ae-form").wait_for()
    assert view.page.locator(".ad-drawing").bounding_box()["width"] < wide
    view.page.wait_for_function(f"() => ({COVERED})() === 0")
    view.shoot("editor_tools_beside_a_form")
