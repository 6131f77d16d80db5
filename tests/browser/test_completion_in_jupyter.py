"""Tab and Shift-Tab in JupyterLab and Notebook 7: what fits in a cell, and the options of a call with their meanings."""

from __future__ import annotations

from contextlib import suppress

import pytest
from playwright.sync_api import TimeoutError as TookTooLong

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

LOAD = "%load_ext attractor_nb"
REVIEW = """%%attractor review
digraph review {
    inputs="ticket"
    start [shape=Mdiamond]
    plan  [label="Plan", prompt="Plan $ticket"]
    test  [shape=parallelogram, tool_command="true"]
    done  [shape=Msquare]
    start -> plan -> test -> done
}"""
IN_A_CONDITION = REVIEW.replace("test -> done\n}", 'test\n    test -> done [condition="outcome=success && context.')
MAGIC = "%%attractor x --"
CALL = "review.run(max_"
HELP = "review.run("
ITEMS = ".jp-Completer-item .jp-Completer-match"


def press(notebook, index, key):
    editor = notebook.page.locator(".jp-CodeCell").nth(index).locator(".cm-content")
    editor.click()
    notebook.page.keyboard.press("Control+End")
    notebook.page.keyboard.press(key)


def offered(notebook, index):
    """The words that Tab offers. JupyterLab waits a second for the kernel, and a first answer about Python takes longer under load."""
    for _ in range(10):
        press(notebook, index, "Tab")
        with suppress(TookTooLong):
            notebook.wait_for(ITEMS, 5)
            break
    return notebook.page.locator(ITEMS).all_inner_texts()


@pytest.mark.shows("JupyterLab", "completion")
@pytest.mark.shows("Notebook 7", "completion")
def test_tab_and_shift_tab_tell_what_fits(jupyter, open_notebook, pictures):
    notebook = open_notebook(jupyter, LOAD, REVIEW, IN_A_CONDITION, MAGIC, CALL, HELP)
    notebook.run_cells(0, 1)

    found = offered(notebook, 2)
    assert {"context.ticket", "context.plan.response", "context.tool.exit_code"} <= {*found}
    assert all(word.startswith("context.") for word in found)
    notebook.shoot(pictures / "tab_in_a_condition.png")
    notebook.page.keyboard.press("Escape")

    found = offered(notebook, 3)
    assert {"--run", "--quiet", "--param"} <= {*found}
    assert all(word.startswith("--") for word in found)
    notebook.shoot(pictures / "tab_on_the_magic.png")
    notebook.page.keyboard.press("Escape")

    found = offered(notebook, 4)
    assert {"max_budget_usd=", "max_duration=", "max_steps="} <= {*found}
    notebook.shoot(pictures / "tab_in_a_call.png")
    notebook.page.keyboard.press("Escape")

    press(notebook, 5, "Shift+Tab")
    told = notebook.wait_for(".jp-Tooltip").inner_text()
    assert "max_steps: 'int | None' = None" in told
    assert "max_steps: Stop after this many stages." in told
    notebook.shoot(pictures / "shift_tab.png")
