"""A run on a laptop and on a narrow screen in a real front-end: question, line and buttons are in sight, and stay."""

from __future__ import annotations

import os
from itertools import product

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
# Each width and each theme once; all four pairs in the campaign.
IS_CAMPAIGN = os.environ.get("ATTRACTOR_CAMPAIGN") == "full"
LOOKS = list(product((1366, 640), (False, True))) if IS_CAMPAIGN else [(1366, False), (640, True)]
THEME = "(theme) => { jupyterapp.commands.execute('apputils:change-theme', { theme }); }"


def in_sight(page, selector):
    """Whether an element is within what the notebook shows, and nothing lies over it."""
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


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_who_looks_at_a_run_sees_what_it_wants(jupyter, open_notebook, pictures, width, dark, request):
    notebook = open_notebook(jupyter, LOAD, RUN, "1 + 1", width=width, height=768, dark=dark)
    page = notebook.page
    page.evaluate(THEME, "JupyterLab Dark" if dark else "JupyterLab Light")
    page.wait_for_selector(f"body[data-jp-theme-light={'false' if dark else 'true'}]", state="attached")
    for index in range(2):
        notebook.run_cell(index)
        notebook.wait_until_idle()
    notebook.wait_for(".attractor-gate.is-open .attractor-choice")
    page.evaluate(
        "() => document.querySelector('.attractor-live').scrollIntoView({ block: 'start', behavior: 'instant' })"
    )
    for part in (".al-stop", ".db-pause", ".al-word", ".ag-title", ".attractor-choice"):
        assert in_sight(page, part), part
    page.locator(".al-canvas [data-node=n37]").first.click()
    page.locator(".al-inspector .al-tab").first.wait_for()
    page.screenshot(path=str(pictures / f"arrangement_in_jupyter_{request.node.callspec.id}.png"))
    assert in_sight(page, ".al-inspector-title")

    page.evaluate(f"() => {{ {SCROLLER}.scrollTop += 90; }}")
    for part in (".al-stop", ".al-word", ".al-inspector-title"):
        assert in_sight(page, part), f"{part} after scrolling"
    assert notebook.browser.our_errors == []
