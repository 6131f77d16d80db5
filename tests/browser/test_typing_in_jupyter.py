"""An editor while DOT is typed: brackets, comments, folding and indentation, in cells and in documents."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

TEXT = """digraph Review {
~start [shape=Mdiamond]
~subgraph cluster_a {
~~plan [prompt="Plan $topic}",
~~~max_retries=2]  // not here: {
~}
~start -> plan -> done
~done [shape=Msquare]
}"""
UNITS = {"two": "  ", "four": "    ", "tab": "\t"}
EDITOR = """[...jupyterapp.shell.widgets('main')]
  .map(each => each.content?.widgets?.[0]?.editor ?? each.content?.text?.editor ?? each.content?.editor).find(Boolean).editor"""


class Text:
    """A text in an editor, and the keys that are pressed in it."""

    def __init__(self, page, first_line):
        self.page = page
        self._first_line = first_line

    @property
    def value(self):
        return self.page.evaluate(f"() => {EDITOR}.state.doc.toString()").removeprefix(self._first_line)

    def put_cursor(self, text, key="End"):
        self.page.locator(".cm-line", has_text=text).first.click()
        self.page.keyboard.press(key)

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)


@pytest.fixture(params=["cell", "document"])
def open_text(jupyter, open_notebook, request):
    """Opens a text in a cell, or in a file beside its graph."""

    @contextmanager
    def open_(text):
        if request.param == "cell":
            yield Text(open_notebook(jupyter, f"%%attractor\n{text}").page, "%%attractor\n")
            return
        name = f"{request.node.name.partition('[')[0][:50]}.dot"
        (jupyter.root / name).write_text(text)
        with jupyter.browser() as browser:
            browser.show(name)
            browser.page.wait_for_selector(".cm-content[data-language=attractor]", timeout=60_000)
            yield Text(browser.page, "")
            browser.page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
            assert browser.our_errors == []

    @contextmanager
    def ready(text):
        with open_(text) as opened:
            opened.page.wait_for_selector(".cm-content[data-language=attractor]", timeout=60_000)
            yield opened

    return ready


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_a_new_line_and_tab_are_indented_as_the_text_has_it(open_text, unit):
    text = TEXT.replace("~", unit)
    with open_text(text) as opened:
        opened.put_cursor("start -> plan")
        opened.press("Enter", "x", "Enter", "Tab", "y")
        assert opened.value == text.replace("-> done\n", f"-> done\n{unit}x\n{unit}{unit}y\n")
        opened.put_cursor("subgraph")
        opened.press("Enter", "z")
        assert f"cluster_a {{\n{unit}{unit}z\n" in opened.value
        opened.press("Enter", "}")
        assert f"{unit}{unit}z\n{unit}}}\n" in opened.value, "the brace that closes goes back by one"


def test_a_line_of_a_prompt_keeps_its_place_and_its_braces(open_text):
    text = TEXT.replace("~", "  ").replace("Plan $topic}", "Plan it:\nas JSON")
    with open_text(text) as opened:
        opened.put_cursor("as JSON", "Home")
        opened.press("ArrowDown", "ArrowUp", "Home", "Enter", "ArrowUp", "}")
        assert 'Plan it:\n}\nas JSON"' in opened.value


def test_brackets_are_matched_and_blocks_fold(open_text, pictures):
    with open_text(TEXT.replace("~", "    ")) as opened:
        page = opened.page
        opened.put_cursor("digraph")
        page.wait_for_function("() => document.querySelectorAll('.cm-matchingBracket').length === 2")
        places = page.evaluate(
            "() => [...document.querySelectorAll('.cm-matchingBracket')].map(e => e.closest('.cm-line').textContent)"
        )
        assert places == ["digraph Review {", "}"], "brackets in strings and comments do not count"
        opened.put_cursor("subgraph")
        page.evaluate("() => { jupyterapp.commands.execute('codemirror:fold-current'); }")
        page.locator(".cm-foldPlaceholder").wait_for()
        lines = page.locator(".cm-line").all_inner_texts()
        assert [line for line in lines if "cluster_a" in line] == ["    subgraph cluster_a {…}"]
        assert not [line for line in lines if "max_retries" in line]
        assert [line for line in lines if "start ->" in line], "what comes behind the block is seen"
        page.screenshot(path=str(pictures / f"folded-{'cell' if 'ipynb' in page.url else 'document'}.png"))
        page.evaluate("() => { jupyterapp.commands.execute('codemirror:unfold-all'); }")
        page.locator(".cm-foldPlaceholder").wait_for(state="detached")


def test_lines_become_comments_and_text_again(open_text):
    text = TEXT.replace("~", "  ")
    with open_text(text) as opened:
        opened.put_cursor("start [", "Home")
        opened.press("Shift+ArrowDown", "Control+/")
        commented = text.replace("  start [", "  // start [").replace("  subgraph", "  // subgraph")
        assert opened.value == commented
        opened.press("Control+/")
        assert opened.value == text
        opened.put_cursor("done [", "Home")
        opened.press("Shift+End")
        opened.page.evaluate("() => { jupyterapp.commands.execute('codemirror:toggle-block-comment'); }")
        opened.page.wait_for_function(f"() => {EDITOR}.state.doc.toString().includes('/* done')")
        assert "  /* done [shape=Msquare] */\n}" in opened.value
