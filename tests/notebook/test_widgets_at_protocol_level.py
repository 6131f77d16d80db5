"""Gates and runs by ipywidgets in a real kernel, message by message; also where no front-end shows live views."""

from __future__ import annotations

import pytest

PIPELINE = """%%attractor review --quiet
digraph review {
  start [shape=Mdiamond]
  plan [label="Plan", prompt="Plan it"]
  gate [shape=hexagon, label="Is the plan good?"]
  done [shape=Msquare]
  start -> plan -> gate
  gate -> done [label="[A] Approve"]
  gate -> plan [label="[R] Redo"]
}"""
VIEW = "application/vnd.jupyter.widget-view+json"


def within(kernel, model):
    """The ids of a widget and of all in it: what a page shows, and a person can click."""
    children = kernel.widgets.get(model, {}).get("children", ())
    return [model, *(each for child in children for each in within(kernel, child.removeprefix("IPY_MODEL_")))]


def button(kernel, root, words):
    """The comm id of the enabled button with these words in a widget, once it is there."""

    def look():
        shown = {each: kernel.widgets.get(each, {}) for each in within(kernel, root)}
        found = [each for each, state in shown.items() if state.get("description") == words]
        return next((each for each in found if not shown[each].get("disabled")), "")

    return kernel.wait_until(look, f"the button {words}")


def click(kernel, root, words):
    kernel.send(button(kernel, root, words), {"event": "click"})


def shown_model(cell):
    """The id of the widget that a cell shows."""
    bundles = [content["data"] for content in cell.outputs("display_data", "execute_result")]
    return next(bundle[VIEW]["model_id"] for bundle in bundles if VIEW in bundle)


@pytest.mark.parametrize("is_attended", [True, False], ids=["live view", "no live view"])
def test_the_magic_names_widgets_and_a_click_takes_the_edge(any_kernel, is_attended):
    any_kernel.run("%load_ext attractor_nb")
    cell = any_kernel.run(PIPELINE.replace("--quiet", "--run --gate widgets"), is_attended=is_attended)
    box = shown_model(cell)
    first = button(any_kernel, box, "[A] Approve")
    assert not any_kernel.descriptions, "the live view has no card beside the controls"
    click(any_kernel, box, "[R] Redo")
    any_kernel.wait_until(lambda: any("Redo, by" in str(state) for state in any_kernel.widgets.values()), "the line")
    any_kernel.wait_until(lambda: first not in within(any_kernel, box), "the first card to close")
    click(any_kernel, box, "[A] Approve")
    any_kernel.wait_until(
        lambda: [
            message
            for message in any_kernel.messages
            if message["msg_type"] == "update_display_data"
            and "✓ Approve, by" in message["content"]["data"]["text/plain"]
        ],
        "words in place of the widget",
    )
    assert "success" in any_kernel.run("print(review_run.result().status)").text


def test_a_cell_that_would_keep_the_click_from_arriving_is_refused(kernel):
    kernel.run("%load_ext attractor_nb")
    kernel.run(PIPELINE)
    refused = kernel.wait(kernel.start("run = review.run(interviewer='widgets')\nrun.result()"))
    assert refused.error.startswith("GateWouldBlock")


def test_a_test_clicks_without_a_page(any_kernel):
    any_kernel.run("%load_ext attractor_nb")
    any_kernel.run(PIPELINE)
    code = """from attractor_nb.notebook.widget_interviewer import WidgetInterviewer
asked = WidgetInterviewer()
run = review.run(interviewer=asked)
asked.wait_for("gate", 60).buttons["A"].click()
(await run).status"""
    assert any_kernel.run(code, is_attended=False).text.endswith("'success'")


def test_a_run_is_a_widget_that_follows_it_and_takes_its_answer(any_kernel):
    any_kernel.run("%load_ext attractor_nb")
    any_kernel.run(PIPELINE)
    cell = any_kernel.run("run = review.run(interviewer='deferred')\nbox = run.widget()\nbox", is_attended=False)
    click(any_kernel, shown_model(cell), "[A] Approve")
    any_kernel.wait_until(
        lambda: any(
            state.get("description") == "step" and state["value"] == 4 for state in any_kernel.widgets.values()
        ),
        "the slider at the end of the run",
    )
    assert "success" in any_kernel.run("print(run.result().status)").text


def test_a_coroutine_runs_inside_the_kernels_loop_and_the_kernel_goes_on(any_kernel):
    code = """import asyncio
from attractor_nb.notebook.run_in_loop import run_sync_on_current_loop
kind = type(asyncio.get_running_loop())
print(run_sync_on_current_loop(asyncio.sleep(0.01, "slept")), type(asyncio.get_running_loop()) is kind)"""
    for _ in range(2):
        assert any_kernel.run(code).text == "slept True\n"
