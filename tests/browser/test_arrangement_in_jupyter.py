"""A run on a laptop and on a narrow screen in a real front-end: question, line and buttons are in sight, and stay."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

LOAD = """%load_ext attractor_nb
from attractor_nb import Pipeline
async def model(node, prompt, context):
    return f"# {node.id}\\n\\nSome words of the plan.\\n" * 6
stages = " ".join(f'n{n} [label="Step {n}", prompt="Write part {n}"]' for n in range(38))
way = " -> ".join(["start", *(f"n{n}" for n in range(38)), "ask"])
SOURCE = f'''digraph g {{ start [shape=Mdiamond] done [shape=Msquare] ask [shape=hexagon, label="Is it good?"] {stages}
{way} ask -> done [label="[A] Approve"] ask -> n30 [label="[R] Redo"] }}'''"""
RUN = "run = Pipeline(SOURCE, backend=model, runs_dir='kept').run()"
SCROLLER = "document.querySelector('.jp-WindowedPanel-outer')"


def in_sight(page, selector):
    """True if an element is within the visible part of the notebook, and nothing lies over it."""
    return page.evaluate(
        f"""(selector) => {{
          const element = [...document.querySelectorAll(selector)].find((one) => one.getClientRects().length);
          const [box, whole] = [element.getBoundingClientRect(), {SCROLLER}.getBoundingClientRect()];
          const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
          return box.top >= whole.top && box.bottom <= whole.bottom && box.right <= whole.right
            && Boolean(document.elementFromPoint(x, y)?.closest(selector));
        }}""",
        selector,
    )


def test_who_looks_at_a_run_sees_what_it_wants(jupyter, open_notebook, pictures, look):
    notebook = open_notebook(jupyter, LOAD, RUN, "1 + 1", look=look)
    page = notebook.page
    notebook.run_cells(0, 1)
    notebook.wait_for(".attractor-gate.is-open .attractor-choice")
    page.evaluate(
        "() => document.querySelector('.attractor-live').scrollIntoView({ block: 'start', behavior: 'instant' })"
    )
    for part in (".al-stop", ".db-pause", ".al-word", ".ag-title", ".attractor-choice"):
        assert in_sight(page, part), part
    page.locator(".al-canvas [data-node=n37]").first.click()
    page.locator(".al-inspector .al-tab").first.wait_for()
    page.screenshot(path=str(pictures / f"arrangement-{jupyter.app}-{look.name}.png"))
    assert in_sight(page, ".al-inspector-title")

    page.evaluate(f"() => {{ {SCROLLER}.scrollTop += 90; }}")
    for part in (".al-stop", ".al-word", ".al-inspector-title"):
        assert in_sight(page, part), f"{part} after scrolling"
    assert notebook.browser.our_errors == []
