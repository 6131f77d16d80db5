"""A .dot file as text and graph side by side, in a real JupyterLab or Notebook 7 with the server that Jupyter starts on demand."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

TEXT = """digraph release {
    // what is shipped, and who says so
    start [shape=Mdiamond]
    plan  [label="Plan it \U0001f642", prompt="Plan it: <img src=x onerror=hit()>"]
    build [prompt="Build it", max_retries=2]
    done  [shape=Msquare]
    start -> plan -> build -> done
}
"""
WIDGET = "[...jupyterapp.shell.widgets('main')].find(one => one.content?.text?.editor)"
SOURCE = f"() => {WIDGET}.context.model.sharedModel.getSource()"
SELECTED = f"""() => {{
  const view = {WIDGET}.content.text.editor.editor;
  return view.state.sliceDoc(view.state.selection.main.from, view.state.selection.main.to);
}}"""


class Document:
    """An open document: the page, the frame of its graph, its text."""

    def __init__(self, page):
        self.page = page
        self.graph = page.frame_locator(".attractor-document-graph iframe")

    @property
    def text(self):
        return self.page.evaluate(SOURCE)

    @property
    def selected(self):
        return self.page.evaluate(SELECTED)

    def node(self, name):
        return self.graph.locator(f"[data-node={name}]")

    def wait_for_text(self, text):
        self.page.wait_for_function(f"wanted => ({SOURCE})() === wanted", arg=text)

    def set_text(self, text):
        self.page.evaluate(f"text => {WIDGET}.context.model.sharedModel.setSource(text)", text)


@pytest.fixture
def open_document(jupyter, request):
    @contextmanager
    def open_(text=TEXT, *, wait=True, route=None, width=1500, **options):
        name = f"{request.node.name.partition('[')[0][:50]}.dot"
        path = jupyter.root / name
        path.write_text(text, encoding="utf-8")
        with jupyter.browser(width=width, **options) as browser:
            page = browser.page
            page.set_default_timeout(60_000)
            if route:
                page.route(*route)
            browser.show(name)
            page.wait_for_selector(".attractor-document .cm-content")
            page.evaluate("() => { jupyterapp.shell.collapseLeft(); }")
            document = Document(page)
            document.path = path
            if wait:
                document.node("done").wait_for()
            yield document
            page.evaluate(f"() => {WIDGET}.context.save()")
            assert browser.our_errors == []

    return open_


@pytest.mark.kind("JupyterLab")
def test_text_and_graph_stand_side_by_side_and_typing_redraws(open_document, pictures):
    with open_document() as document:
        page = document.page
        page.screenshot(path=str(pictures / "graph-document.png"))
        page.locator(".cm-line", has_text="start -> plan").click()
        page.keyboard.press("End")
        page.keyboard.insert_text(" -> more")
        document.node("more").wait_for()
        assert "-> done -> more" in document.text
        page.keyboard.press("Control+z")
        document.node("more").wait_for(state="detached")
        assert page.frame_locator("iframe").locator("img[src=x]").count() == 0


HIGH = """digraph high {
    node [prompt="Do it"]
    start [shape=Mdiamond]
    done  [shape=Msquare]
    a [label="Write the first draft of the notes"]
    b [label="Write the second draft of the notes"]
    c [label="Write the third draft of the notes"]
    d; e; f; g; h; i
    start -> a -> d; start -> b -> d; start -> c -> d
    d -> e -> f -> g -> h -> i -> done
}
"""
FRAME = """() => {
  const [frame, ...tools] = [document.querySelector('.ad-frame'), ...document.querySelector('.ax-bar').children];
  const [outer, ...inner] = [frame, ...frame.querySelectorAll('.outline')].map(one => one.getBoundingClientRect());
  const inSight = tools.filter(one => one.offsetWidth).map(one => one.getBoundingClientRect());
  return {
    isInside: inner.every(box => box.left >= outer.left && box.right <= outer.right),
    page: document.documentElement.scrollWidth - innerWidth,
    rows: inSight.filter(box => box.top > inSight[0].bottom - 2).length + 1,
    scale: frame.querySelector('svg').getBoundingClientRect().width / frame.querySelector('svg').viewBox.baseVal.width,
  };
}"""


@pytest.mark.kind("JupyterLab")
def test_the_drawing_is_as_wide_as_its_pane_and_the_tools_are_one_row_on_a_laptop(open_document, pictures):
    with open_document(HIGH, width=1366, height=768) as document:
        page = document.page
        frame = page.locator(".attractor-document-graph iframe").element_handle().content_frame()
        for change in ("collapse", "expand", "collapse"):
            page.evaluate(f"() => {{ jupyterapp.shell.{change}Left(); }}")
            page.wait_for_timeout(300)  # there is no event for a drawing that has got its size
            seen = frame.evaluate(FRAME)
            page.screenshot(path=str(pictures / f"graph-document-laptop-{change}.png"))
            assert seen["isInside"], change
            assert seen["page"] <= 0
            assert seen["rows"] == 1, change
            assert 0.8 <= seen["scale"] <= 1
        document.node("d").click()
        field = document.graph.locator(".ae-form [data-name=prompt]")
        field.wait_for()
        page.screenshot(path=str(pictures / "graph-document-laptop-form.png"))
        place = field.bounding_box()
        assert place["y"] + place["height"] <= 768, "the prompt of a chosen node is in sight"
        document.graph.locator(".ae-form").get_by_label("Close").click()
        document.graph.get_by_role("button", name="Larger").click()
        scale = frame.evaluate(FRAME)["scale"]
        page.evaluate("() => { jupyterapp.shell.expandLeft(); }")
        page.wait_for_timeout(300)  # nothing is to happen
        assert frame.evaluate(FRAME)["scale"] == pytest.approx(scale), "who has zoomed keeps the size"
        page.evaluate("() => { jupyterapp.shell.collapseLeft(); }")


def test_a_click_on_a_node_selects_its_text_and_the_cursor_marks_the_node(open_document):
    with open_document() as document:
        document.node("build").click()
        document.page.wait_for_function(f"() => ({SELECTED})() === 'build'")
        document.graph.locator(".ae-form").wait_for()
        document.graph.locator(".ae-form").get_by_label("Close").click()
        document.page.locator(".cm-line", has_text="max_retries").click()
        expect(document.graph.locator("[data-node=build].selected")).to_be_visible()
        document.page.locator(".cm-line", has_text="Plan it").click()
        expect(document.graph.locator("[data-node=plan].selected")).to_be_visible()


def test_the_tools_change_the_text_by_the_smallest_change_and_labs_undo_takes_it_back(open_document):
    with open_document() as document:
        page, graph = document.page, document.graph
        document.node("build").click()
        field = graph.locator(".ae-form [data-name=prompt]")
        field.fill("Build it well")
        field.press("Control+Enter")
        changed = TEXT.replace("Build it", "Build it well")
        document.wait_for_text(changed)
        assert page.evaluate(f"() => {WIDGET}.context.model.dirty")
        graph.get_by_role("button", name="Add…").click()
        graph.get_by_label("Id of a new node").fill("check")
        graph.get_by_role("button", name="Add node").click()
        document.node("check").wait_for()
        graph.get_by_role("button", name="Undo").click()
        document.wait_for_text(changed)
        page.locator(".attractor-document .cm-content").click()
        page.keyboard.press("Control+z")
        document.wait_for_text(TEXT)
        page.keyboard.press("Control+Shift+z")
        document.wait_for_text(changed)
        page.keyboard.press("Control+s")
        page.wait_for_function(f"() => !{WIDGET}.context.model.dirty")
        assert document.path.read_text() == changed


def choose_in_menu(page, menu, item):
    page.locator(".lm-MenuBar-item", has_text=menu).click()
    page.locator(".lm-Menu-item", has_text=item).first.click()


def test_undo_and_redo_of_the_edit_menu_take_back_changes_of_the_graph_and_a_fix(open_document):
    broken = TEXT.replace("-> done", "-> don")
    with open_document(broken) as document:
        page = document.page
        document.graph.locator(".af-table tbody tr", has_text="don").get_by_role("button", name="Fix").click()
        document.wait_for_text(TEXT)
        document.node("build").focus()
        document.node("build").press("Delete")
        document.node("build").wait_for(state="detached")
        removed = document.text
        for item, text in (("Undo", TEXT), ("Undo", broken), ("Redo", TEXT), ("Redo", removed)):
            choose_in_menu(page, "Edit", item)
            document.wait_for_text(text)
        document.node("build").wait_for(state="detached")
        page.locator(".attractor-document .cm-content").click()
        page.keyboard.press("Control+z")
        document.wait_for_text(TEXT)
        document.node("build").wait_for()


DIRTY = f"() => {WIDGET}.context.model.dirty"
TAB_IS_DIRTY = "() => Boolean(document.querySelector('.lm-TabBar-tab.lm-mod-current.jp-mod-dirty'))"


@pytest.mark.parametrize("choice", ["Cancel", "Overwrite", "Revert"])
def test_a_file_that_changed_on_disk_is_asked_about_and_nothing_is_lost(jupyter, open_document, choice, pictures):
    is_marked = TAB_IS_DIRTY if jupyter.app == "lab" else DIRTY  # Notebook 7 has no tab that could be marked
    theirs = TEXT.replace("Build it", "Build it as they want")
    mine = "// mine\n" + TEXT
    with open_document() as document:
        page = document.page
        time.sleep(1.1)  # JupyterLab takes half a second for the same time
        document.path.write_text(theirs)
        page.locator(".attractor-document .cm-content").click()
        page.keyboard.press("Control+Home")
        page.keyboard.insert_text("// mine\n")
        page.wait_for_function(is_marked)
        page.keyboard.press("Control+s")
        dialog = page.locator(".jp-Dialog", has_text="changed on disk")
        dialog.wait_for()
        page.screenshot(path=str(pictures / "conflict.png"))
        dialog.get_by_role("button", name=choice).click()
        dialog.wait_for(state="detached")
        if choice == "Cancel":
            assert document.text == mine
            assert page.evaluate(DIRTY)
            assert document.path.read_text() == theirs
            page.evaluate(f"() => {WIDGET}.context.revert()")
            document.wait_for_text(theirs)
            return
        document.wait_for_text(mine if choice == "Overwrite" else theirs)
        page.wait_for_function(f"() => !({DIRTY})() && !({is_marked})()")
        assert document.path.read_text() == document.text
        if choice == "Revert":
            document.node("build").click()
            field = document.graph.locator(".ae-form [data-name=prompt]")
            field.wait_for()
            assert field.input_value() == "Build it as they want", "the graph is that of the file"


def test_it_is_saved_by_itself(jupyter, open_document):
    settings = f"{jupyter.url}/lab/api/settings/@jupyterlab/docmanager-extension:plugin"

    def put(page, raw):
        token = {"Authorization": f"token {jupyter.token}"}
        assert page.request.put(settings, data={"raw": raw}, headers=token).ok

    with jupyter.browser() as browser:
        put(browser.page, '{"autosaveInterval": 1}')
    try:
        with open_document(is_new=True) as document:
            document.node("build").focus()
            document.node("build").press("Delete")
            document.node("build").wait_for(state="detached")
            document.page.wait_for_function(f"() => !({DIRTY})()")
            assert "build [" not in document.path.read_text()
    finally:
        with jupyter.browser() as browser:
            put(browser.page, "{}")


def test_an_edge_is_dragged_from_node_to_node_and_removed_by_a_key(open_document):
    with open_document() as document:
        page = document.page
        start, done = document.node("start").bounding_box(), document.node("done").bounding_box()
        page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
        page.mouse.down()
        page.mouse.move(done["x"] + done["width"] / 2, done["y"] + done["height"] / 2 - 4, steps=5)
        page.mouse.move(done["x"] + done["width"] / 2, done["y"] + done["height"] / 2)
        page.mouse.up()
        page.wait_for_function(f"() => ({SOURCE})().includes('start -> done')")
        document.graph.locator("[data-edge='3']").first.wait_for(state="attached")
        document.node("build").focus()
        document.node("build").press("c")
        document.graph.locator(".ax-said", has_text="An edge from build").wait_for()
        document.node("plan").focus()
        document.node("plan").press("Enter")
        page.wait_for_function(f"() => ({SOURCE})().includes('build -> plan')")
        document.node("build").focus()
        document.node("build").press("Delete")
        document.node("build").wait_for(state="detached")
        assert "build [" not in document.text


def test_a_run_is_begun_here_and_shown_on_the_same_drawing(jupyter, open_document, pictures):
    text = TEXT.replace('build [prompt="Build it", max_retries=2]', 'build [shape=hexagon, label="Good?"]').replace(
        "build -> done", 'build -> done [label="[A] Approve"]\n    build -> plan [label="[R] Again"]'
    )
    with open_document(text) as document:
        graph = document.graph
        graph.get_by_role("button", name="Run…").click()
        graph.get_by_role("button", name="Run", exact=True).click()
        graph.locator("[data-node=plan].state-success").wait_for()
        card = graph.locator(".ag-card", has_text="Good?")
        card.wait_for()
        graph.locator("[data-node=build].state-waiting").wait_for()
        document.page.screenshot(path=str(pictures / "graph-document-run.png"))
        change = "theme => jupyterapp.commands.execute('apputils:change-theme', { theme })"
        document.page.evaluate(change, "JupyterLab Dark")
        graph.locator("body[data-jp-theme-light=false]").wait_for()
        document.page.wait_for_timeout(500)  # the theme's sheet is loaded; there is no event for it
        document.page.screenshot(path=str(pictures / "graph-document-run-dark.png"))
        document.page.evaluate(change, "JupyterLab Light")
        card.get_by_role("button", name="Approve").click()
        expect(graph.locator("[data-node=done].state-success")).to_be_visible()
        expect(graph.locator(".al-line[data-status=success]")).to_be_visible()
        if jupyter.app == "lab":
            graph.get_by_role("button", name="Open the run").click()
            document.page.locator(".lm-TabBar-tab", has_text="a_run_is_begun").nth(1).wait_for()
            return
        with document.page.context.expect_page() as opened:
            graph.get_by_role("button", name="Open the run").click()
        opened.value.locator("[data-node=done].state-success").wait_for()
        opened.value.close()


def test_commands_are_asked_for_before_a_run(open_document):
    text = TEXT.replace('build [prompt="Build it"', 'build [shape=parallelogram, tool_command="true"')
    with open_document(text) as document:
        graph = document.graph
        graph.get_by_role("button", name="Run…").click()
        tick = graph.get_by_role("checkbox", name="build")
        tick.wait_for()
        assert graph.get_by_role("button", name="Run", exact=True).is_disabled()
        tick.check()
        graph.get_by_role("button", name="Run", exact=True).click()
        graph.locator("[data-node=build].state-success").wait_for()


def test_a_broken_text_keeps_the_last_drawing_and_its_mistake_is_gone_to(open_document, pictures):
    with open_document() as document:
        document.set_text(TEXT.replace("-> done", "-> don"))
        row = document.graph.locator(".af-table tbody tr", has_text="don").first
        row.wait_for()
        row.get_by_role("button", name="Fix").click()
        document.wait_for_text(TEXT)
        document.set_text(TEXT.replace("digraph release {", "digraph release { plan ["))
        document.graph.locator(".ax-editor.is-stale [data-node=plan]").wait_for()
        document.graph.locator(".af-go").first.click()
        document.page.wait_for_function(f"() => ({SELECTED})() !== ''")
        document.page.screenshot(path=str(pictures / "graph-document-broken.png"))
        document.set_text(TEXT)
        expect(document.graph.locator(".ax-editor:not(.is-stale)")).to_be_visible()


def test_it_is_exported_as_a_picture(open_document):
    with open_document() as document:
        for choice, ending, start in (("svg", "svg", b"<svg"), ("png", "png", b"\x89PNG"), ("mermaid", "mmd", b"")):
            with document.page.expect_download() as saved:
                document.graph.get_by_label("Export the drawing").select_option(choice)
            assert saved.value.suggested_filename.endswith(f"exported_as_a_picture.{ending}")
            content = Path(saved.value.path()).read_bytes()
            assert content.startswith(start)
            assert content


def test_without_a_server_the_text_is_edited_all_the_same(open_document):
    gone = ("**/attractor-nb/", lambda route: route.fulfill(status=404, body="{}"))
    with open_document(wait=False, route=gone) as document:
        document.page.locator(".attractor-document-graph", has_text="its extra proxy").wait_for()
        document.page.locator(".attractor-document .cm-content").click()
        document.page.keyboard.press("Control+Home")
        document.page.keyboard.insert_text("// mine\n")
        document.wait_for_text("// mine\n" + TEXT)


def test_a_server_that_does_not_answer_is_asked_again(open_document):
    gone = ("**/attractor-nb/", lambda route: route.fulfill(status=502, body="{}"))
    with open_document(wait=False, route=gone) as document:
        again = document.page.get_by_role("button", name="Try again")
        again.wait_for()
        document.page.unroute("**/attractor-nb/")
        again.click()
        expect(document.node("done")).to_be_visible()


def test_messages_of_other_windows_are_not_heard(open_document):
    with open_document() as document:
        document.page.evaluate(
            """() => {
              window.postMessage({ kind: "attractor-change", before: "", after: "x" }, "*");
              const other = document.createElement("iframe");
              document.body.append(other);
              other.contentWindow.eval("parent.postMessage({ kind: 'attractor-change', before: '', after: 'x' }, '*')");
            }"""
        )
        document.page.wait_for_timeout(300)
        assert document.text == TEXT


HUNDRED = (
    "digraph big {\n    start [shape=Mdiamond]\n    done [shape=Msquare]\n"
    + "".join(f'    n{number} [label="Node {number}", prompt="Do {number}"]\n' for number in range(98))
    + "    start -> "
    + " -> ".join(f"n{number}" for number in range(98))
    + " -> done\n}\n"
)


def test_typing_in_a_hundred_nodes_is_drawn_with_a_request_a_change(open_document):
    with open_document(HUNDRED) as document:
        took, asked = [], []
        document.page.on("request", lambda request: asked.append(request.url))
        for number in range(16):
            label = f"typed {number}"
            took.append(
                document.page.evaluate(
                    f"""async label => {{
                      const text = ({SOURCE})().replace(/label="[^"]*", prompt="Do 40"/, `label="${{label}}", prompt="Do 40"`);
                      const place = document.querySelector(".attractor-document-graph iframe").contentDocument;
                      const isDrawn = () => place.querySelector("[data-node=n40]")?.textContent.includes(label);
                      const begun = performance.now();
                      {WIDGET}.context.model.sharedModel.setSource(text);
                      while (!isDrawn()) await new Promise(done => setTimeout(done, 1));
                      return performance.now() - begun;
                    }}""",
                    label,
                )
            )
        print("drawn after", [round(one) for one in took])
        # How soon is measured on a machine of its own: docs/jupyterlab.md.
        assert sum(url.endswith("/edit") for url in asked) <= len(took) + 4
