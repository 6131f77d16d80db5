"""Time travel in real Jupyter: a finished run is scrubbed through, forked, and its lineage drawn."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

CELLS = (
    """%load_ext attractor_nb
from attractor_nb import Pipeline, lineage
def answer(node, prompt, context):
    context.set("tests", context.get("tests", 0) + 1)
    return f"{node.id} says {context.get('tests')}"
pipeline = Pipeline('''digraph release { start [shape=Mdiamond] done [shape=Msquare]
    plan [prompt="Plan it"] write [prompt="Write it"]
    start -> plan -> write  write -> plan [condition="context.tests!=4"]  write -> done [condition="context.tests=4"] }''',
    backend=answer)
run = pipeline.run(is_shown=False)
run.result(30)""",
    "run.replay()",
    """fork = run.fork("write", visit=2, prompt="Write it better", is_shown=False)
print(fork.result(30).status, "forked")
fork.replay()""",
    "lineage(fork)",
)


def test_a_run_is_scrubbed_through_forked_and_drawn_with_its_kin(open_notebook, jupyter, pictures):
    notebook = open_notebook(jupyter, *CELLS)
    notebook.run_all()
    page = notebook.page
    replay = page.locator(".attractor-replay").first
    replay.wait_for(timeout=30_000)
    slider = replay.get_by_label("Event", exact=True)
    slider.fill("4")
    assert "state-running" in replay.locator("[data-node=plan]").get_attribute("class")
    slider.press("Shift+ArrowRight")
    assert "state-running" in replay.locator("[data-node=write]").get_attribute("class")
    replay.locator("[data-node=plan]").click()
    inspector = replay.locator(".al-inspector")
    inspector.get_by_text("Plan it").first.wait_for()
    slider.press("End")
    assert "state-success" in replay.locator("[data-node=done]").get_attribute("class")
    second = page.locator(".attractor-replay").nth(1)
    second.wait_for()
    second.get_by_label("Event", exact=True).press("Home")
    assert "Before the first event" in second.locator(".ar-words").text_content()
    page.wait_for_function(  # a drawing is kept as an image
        "[...document.querySelectorAll('.jp-OutputArea-output img')]"
        ".some(image => atob(image.src.split(',')[1]).includes('attractor-lineage'))"
    )
    assert notebook.browser.our_errors == []
    notebook.shoot(pictures / "replay_in_jupyter.png")
