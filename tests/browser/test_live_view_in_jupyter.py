"""The live view in a real front-end, in one scenario: heard, walked, searched, read as a table, and its kernel lost."""

from __future__ import annotations

import statistics

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOAD = "%load_ext attractor_nb"
WRITING = """%%attractor writing
digraph writing {
  graph [goal="A release note"]
  start [shape=Mdiamond]
  plan  [label="Plan it", prompt="Plan: $goal"]
  fan   [shape=component, label="Ask three writers"]
  anna  [label="Anna", prompt="Write it short"]
  ben   [label="Ben", prompt="Write it long"]
  cleo  [label="Cleo", prompt="Write it in verse"]
  best  [shape=tripleoctagon, label="Take the best"]
  done  [shape=Msquare]
  start -> plan -> fan
  fan -> anna -> best
  fan -> ben -> best
  fan -> cleo -> best
  best -> done
}"""
MODEL = """import asyncio
from attractor_nb import current_stage
async def model(node, prompt, context):
    for part in range(2 if node.id == "plan" else 4000):
        current_stage().stream(f"{node.id} writes line {part}\\n")
        await asyncio.sleep(0.05)
    return "written"
"""
CLICK = """() => new Promise((done) => {
  const began = performance.now();
  const node = document.querySelector(".al-canvas [data-node=plan]");
  const body = document.querySelector(".al-inspector-body");
  const watch = new MutationObserver(() => {
    if (!body.textContent.includes("Plan: A release note")) return;
    watch.disconnect();
    const taken = performance.now() - began;
    document.querySelector(".al-inspector .al-close").click();
    done(taken);
  });
  watch.observe(body, { childList: true, subtree: true });
  node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
})"""


@pytest.mark.shows("JupyterLab", "picture", "live view")
@pytest.mark.shows("Notebook 7", "picture", "live view")
def test_a_run_is_heard_walked_searched_read_as_a_table_and_outlives_its_kernel(jupyter, open_notebook, pictures):
    notebook = open_notebook(jupyter, LOAD, WRITING, MODEL, "run = writing.run(backend=model)")
    page = notebook.page
    notebook.run_all()
    page.set_default_timeout(30000)
    notebook.wait_for(".al-canvas [data-node=cleo].state-running", 40)
    page.wait_for_function("() => document.querySelectorAll('.al-words').length === 3")
    assert "Anna" in page.locator(".al-speech").inner_text()

    taken = [page.evaluate(CLICK) for _ in range(9)]
    print(
        f"\nV2 in {jupyter.app}: a click to the texts of the stage, median {statistics.median(taken):.0f} ms of {taken}"
    )

    page.locator(".ad-frame").focus()
    page.keyboard.press("/")
    page.keyboard.type("verse")
    assert page.locator(".is-found-here").get_attribute("data-node") == "cleo"
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("() => document.activeElement.dataset.node") == "fan"
    assert notebook.script("panel.content.widgets.length") == 4, "no shortcut of the notebook was triggered"

    page.locator(".al-more").click()
    shown = page.locator(".al-table tbody tr:visible th").all_text_contents()
    assert {"Anna (anna)", "Ben (ben)", "Cleo (cleo)"} <= set(shown)
    assert "Plan it (plan)" not in shown
    notebook.shoot(pictures / f"live_view_{jupyter.app}.png", ".jp-OutputArea-output:has(.attractor-live)")

    notebook.script("(panel.sessionContext.session.kernel.restart(), 0)")
    lost = notebook.wait_for(".al-lost")
    assert "This is the last known state. Run.load(" in lost.text_content()
    assert page.locator(".al-stop").is_disabled()
    assert notebook.browser.our_errors == []
