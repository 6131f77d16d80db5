"""DOT as a language of its own in a real JupyterLab: cells whose first line is the magic, and files."""

from __future__ import annotations

import statistics

import pytest

from tests.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

MOST_SECONDS_A_KEY = 0.05
"""Of the processor: ten times what it takes. Less than a frame, 16 ms, is what a person at an idle machine sees."""
PYTHON = 'def f(): return "text"  # stays\nx = 1 and f.real'
DOT = r"""%%attractor review --run --param topic="tides"
// what a release needs: "no text"
digraph Review {
    graph [goal="Don't stop", model_stylesheet="* { llm_model: haiku; } .fast { llm_model: \"opus\" }"]
    # of the preprocessor
    plan [prompt="List $topic, it's
        // no comment", max_retries=3, colour=red] /* more
    of it */
    plan -> done [condition="outcome=success && context.tone != 'dry'"]
}"""
MIME = "text/vnd.graphviz"
MIMES = "[...panel.content.model.cells].map(cell => cell.mimeType)"

COLOURS = """index => {
  const editor = document.querySelectorAll(".jp-CodeCell .cm-content")[index];
  const found = [];
  for (const line of editor.querySelectorAll(".cm-line")) {
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const style = getComputedStyle(walker.currentNode.parentElement);
      found.push([walker.currentNode.data, `${style.color} ${style.fontStyle} ${style.fontWeight}`]);
    }
  }
  return found;
}"""


def colours_of(notebook, index):
    """The pieces of a cell's text, each with its look."""
    return notebook.page.evaluate(COLOURS, index)


def look_of(pieces, text):
    """The look of the first piece that holds a text."""
    return next(look for piece, look in pieces if text in piece)


@pytest.fixture
def cells(jupyter, open_notebook):
    notebook = open_notebook(jupyter, PYTHON, DOT, "print(1)")
    notebook.page.wait_for_function(
        "mime => jupyterapp.shell && [...jupyterapp.shell.widgets('main')].some(each =>"
        " [...(each.content?.model?.cells ?? [])].some(cell => cell.mimeType === mime))",
        arg=MIME,
    )
    return notebook


@pytest.mark.kind("JupyterLab")
def test_a_pipeline_has_the_colours_of_its_own_language(cells, pictures):
    wait_until(lambda: len({look for _, look in colours_of(cells, 0)}) > 4, "the colouring of Python")
    python, dot = colours_of(cells, 0), colours_of(cells, 1)
    assert cells.script(MIMES) == ["text/x-ipython", MIME, "text/x-ipython"]
    keyword, string, comment = (look_of(python, text) for text in ("def", '"text"', "# stays"))
    number, plain = look_of(python, "1"), look_of(python, "x ")
    assert len({keyword, string, comment, number, plain}) == 5, "the theme tells them apart"
    for text, look in {
        "digraph": keyword,
        "graph": keyword,
        "Don't stop": string,
        "List ": string,
        "// no comment": string,
        "// what a release": comment,
        "# of the preprocessor": comment,
        "of it */": comment,
        "3": number,
        "Review": plain,
    }.items():
        assert look_of(dot, text) == look, text
    for one, other in (
        ("%%attractor", "digraph"),
        ("--run", "Review"),
        ("max_retries", "colour"),  # one that is known, and one that is not
        ("$topic", "List "),
        ("outcome", "success"),
        ("&&", "success"),
        ("'dry'", "Don't stop"),
        (".fast", "llm_model"),
        ("haiku", "llm_model"),
        ("max_retries", "plan"),
    ):
        assert look_of(dot, one) != look_of(dot, other), (one, other)
    cells.shoot(pictures / "dot-language.png")


def test_the_language_follows_the_first_line_as_it_is_typed(cells):
    page = cells.page
    source = "panel.context.model.cells.get(2).sharedModel"
    cells.script(f"{source}.setSource('%%attractor\\ndigraph X {{ }}')")
    page.wait_for_function(
        "mime => [...jupyterapp.shell.widgets('main')][0].content.model.cells.get(2).mimeType === mime", arg=MIME
    )
    assert look_of(colours_of(cells, 2), "digraph") == look_of(colours_of(cells, 0), "def")
    cells.script(f"{source}.setSource('%%attractor_lint_all\\nx = 1')")
    page.wait_for_function(
        "mime => [...jupyterapp.shell.widgets('main')][0].content.model.cells.get(2).mimeType !== mime", arg=MIME
    )
    assert cells.script(MIMES)[2] == "text/x-ipython"


def test_a_restart_and_a_new_cell_keep_the_language(cells):
    page = cells.page
    cells.script("panel.sessionContext.session.kernel.restart()")
    cells.wait_until_idle()
    cells.script("(panel.content.activeCellIndex = 1, 0)")
    cells.command("notebook:copy-cell")
    cells.command("notebook:paste-cell-below")
    page.wait_for_function("() => document.querySelectorAll('.jp-CodeCell').length === 4")
    page.wait_for_function(
        "mime => [...[...jupyterapp.shell.widgets('main')][0].content.model.cells].filter(c => c.mimeType === mime).length === 2",
        arg=MIME,
    )
    keyword = look_of(colours_of(cells, 0), "def")
    assert look_of(colours_of(cells, 1), "digraph") == keyword
    assert look_of(colours_of(cells, 2), "digraph") == keyword


def test_comments_are_toggled_and_a_new_line_is_indented(cells):
    page = cells.page
    cells.script("panel.context.model.cells.get(2).sharedModel.setSource('%%attractor\\ndigraph X {')")
    page.wait_for_function(
        "mime => [...jupyterapp.shell.widgets('main')][0].content.model.cells.get(2).mimeType === mime", arg=MIME
    )
    page.locator(".jp-CodeCell .cm-content").nth(2).click()
    page.keyboard.press("Control+End")
    page.keyboard.press("Enter")
    page.keyboard.type("a -> b")
    assert cells.script("panel.context.model.cells.get(2).sharedModel.source").endswith("{\n    a -> b")
    page.keyboard.press("Control+/")
    assert cells.script("panel.context.model.cells.get(2).sharedModel.source").endswith("{\n    // a -> b")


def test_a_dot_file_opens_with_its_language(jupyter, driver, pictures):
    if jupyter.app != "lab":
        pytest.skip("Notebook 7 opens a file in a page of its own: the same editor, without the application's tabs")
    (jupyter.root / "plan.dot").write_text(DOT.partition("\n")[2])
    with jupyter.browser() as browser:
        page = browser.page
        browser.show("plan.dot")
        page.wait_for_selector(".jp-FileEditor .cm-line")
        mime = "[...jupyterapp.shell.widgets('main')].map(each => each.content?.text?.model?.mimeType).find(Boolean)"
        driver.wait_until(lambda: page.evaluate(f"() => {mime}") == MIME, 60, "the language")
        page.locator(".jp-FileEditor").screenshot(path=str(pictures / "dot-file.png"))
        assert browser.our_errors == []


def test_a_key_in_a_cell_of_2000_lines_does_not_read_it_all_again(cells, driver):
    lines = "\n".join(f'    node_{n} [prompt="Write $topic {n}", max_retries=2]' for n in range(2000))
    cells.script(
        f"panel.context.model.cells.get(2).sharedModel.setSource({('%%attractor' + chr(10) + 'digraph X {' + chr(10) + lines)!r})"
    )
    cells.page.wait_for_function(
        "mime => [...jupyterapp.shell.widgets('main')][0].content.model.cells.get(2).mimeType === mime", arg=MIME
    )
    clock = driver.thread_clock(cells.page)
    before = clock()
    milliseconds = cells.script(
        """(() => {
          const view = panel.content.widgets[2].editor.editor;
          const taken = [];
          for (let n = 0; n < 60; n++) {
            const start = performance.now();
            view.dispatch({ changes: { from: 40, insert: "x" } });
            taken.push(performance.now() - start);
          }
          return taken;
        })()"""
    )
    seconds = (clock() - before) / 60
    print(
        f"a key in a cell of 2,000 lines: median {statistics.median(milliseconds):.1f} ms, "
        f"{1000 * seconds:.1f} ms of the processor"
    )
    assert seconds < MOST_SECONDS_A_KEY


def test_of_a_long_notebook_only_the_cells_near_the_view_get_the_language(jupyter, open_notebook, driver):
    text = DOT.partition("\n")[2]
    notebook = open_notebook(jupyter, *[f"%%attractor p{number}\n{text}" for number in range(50)])
    notebook.page.wait_for_selector(".cm-attractor-panel button")
    first = notebook.script(MIMES)
    assert first[0] == MIME
    assert MIME not in first[25:], "the others wait, and are not checked"
    notebook.script("(panel.content.scrollToItem(49), 0)")
    driver.wait_until(lambda: notebook.script(MIMES)[49] == MIME, 60, "the language of the last cell")
    keyword = look_of(colours_of(notebook, 0), "digraph")
    driver.wait_until(
        lambda: look_of(colours_of(notebook, 49), "digraph") == keyword, 60, "the colours of the last cell"
    )


TURNED = """async (text) => {
  const panel = [...jupyterapp.shell.widgets("main")].find((each) => each.content?.model?.cells);
  const cell = panel.content.widgets[2];
  let written = 0;
  const isSheet = (node) => node.nodeName === "STYLE" || node.parentNode?.nodeName === "STYLE" || node.rel === "stylesheet";
  const observer = new MutationObserver((changes) => {  // of which some are of the page's icon, which tells of a busy kernel
    for (const { target, addedNodes } of changes) written += [target, ...addedNodes].some(isSheet);
  });
  observer.observe(document.head, { childList: true, characterData: true, subtree: true });
  cell.model.sharedModel.setSource(text);
  while (!cell.node.querySelector(".cm-attractor-gutter")) await new Promise((done) => setTimeout(done, 20));
  await new Promise((done) => requestAnimationFrame(done));
  observer.disconnect();
  return written;
}"""


def test_a_cell_that_becomes_a_pipeline_writes_no_style_sheet_anew(cells):
    assert cells.page.evaluate(TURNED, DOT) == 0  # the browser would style the whole page
