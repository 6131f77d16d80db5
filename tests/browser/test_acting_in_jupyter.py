"""Fork, rewind and pin by a click, in a cell of real Jupyter: the run that begins stands beneath."""

from __future__ import annotations

import json

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = '''%load_ext attractor_nb
from attractor_nb import Pipeline, Run
asked = []
def answer(node, prompt, context):
    asked.append(node.id)
    return f"{node.id} says {len(asked)}: {prompt.rpartition('Task')[2].strip()[:60]}"
talk = Pipeline("""digraph talk { graph [label="Talk", goal="tides"]
    start [shape=Mdiamond, label="Start"] draft [label="Draft", prompt="Draft a talk on $goal\\nin two sentences"]
    check [label="Check it", prompt="Check the draft"] gate [shape=hexagon, label="Good?"]
    done [shape=Msquare, label="Done"]
    start -> draft -> check -> gate
    gate -> done [label="[Y] Yes"] gate -> draft [label="[N] No"] }""")'''
RUN = "review = talk.run(backend=answer)"
ANSWER = 'review.wait_for_gate("gate", 60); review.answer("gate", "Yes"); print(review.result().status)'


def open_stage(notebook, node, within="[data-attractor-place]"):
    notebook.page.locator(f"{within} [data-node={node}]").first.click()
    notebook.wait_for(f"{within} .as-actions:visible")


def test_a_fork_begins_by_a_click_and_its_gate_is_answered_beneath(jupyter, open_notebook, pictures, look):
    notebook = open_notebook(jupyter, SETUP, RUN, ANSWER, "print(len(asked))", look=look)
    page = notebook.page
    notebook.run_cells(0, 1, 2)
    notebook.wait_for_text("success")
    open_stage(notebook, "draft")
    bar = page.locator(".as-actions").first
    assert bar.locator(".as-button").all_text_contents() == [
        "Fork", "Rewind", "Pin", "Save as row"
    ]  # fmt: skip
    page.get_by_role("button", name="Edit prompt and fork from here", exact=True).click()
    field = page.locator(".as-prompt")
    assert field.input_value() == "Draft a talk on $goal\nin two sentences"
    assert 'fork = review.fork("draft")' in page.locator(".as-call pre").text_content()
    field.fill("Draft one sentence\nabout tides")
    call = page.locator(".as-call pre").text_content()
    assert call == 'fork = review.fork("draft", prompt="Draft one sentence\\nabout tides")'
    page.screenshot(path=pictures / f"acting-form-{jupyter.app}-{look.name}.png")
    page.get_by_role("button", name="Fork and run").dblclick()
    notebook.wait_for(".an-run [data-node=gate].state-waiting")
    assert page.locator(".an-run").count() == 1, "a double click starts one fork"
    page.locator(".an-run").get_by_text("Yes", exact=True).first.click()
    notebook.wait_for(".an-run [data-node=done].state-success")
    notebook.wait_for(".an-run .al-after:visible")
    assert page.locator(".an-run .al-stop").is_hidden(), "there is nothing to be stopped any more"
    notebook.run_cell(3)
    notebook.wait_for_text("4")
    page.locator(".an-run").get_by_role("button", name="Compare with parent").click()
    notebook.wait_for(".an-run .attractor-compared [data-node=draft].selected")
    assert page.locator(".an-run .ac-side").count() == 2, "the parent's draft beside the fork's"
    page.locator(".an-run").get_by_role("button", name="Compare with parent").click()
    page.locator(".an-run").scroll_into_view_if_needed()
    page.screenshot(path=pictures / f"acting-fork-{jupyter.app}-{look.name}.png")
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    assert notebook.browser.our_errors == []
    notebook.save()
    saved = [output for cell in nbformat.read(notebook.path, 4).cells for output in cell.get("outputs", [])]
    assert not any("widget-view" in kind for output in saved for kind in output.get("data", {}))


def test_a_stage_is_saved_as_a_row_beside_the_notebook_and_once(jupyter, open_notebook, pictures, look):
    notebook = open_notebook(jupyter, SETUP, RUN, ANSWER, look=look)
    page, place = notebook.page, notebook.path.parent
    notebook.run_cells(0, 1, 2)
    notebook.wait_for_text("success")
    open_stage(notebook, "check")
    save = page.get_by_role("button", name="Save as row in rows.jsonl")
    assert save.get_attribute("title").splitlines()[-1] == 'save_rows(review, "rows.jsonl")'
    save.click()
    notebook.wait_for(".as-said:visible")
    assert page.locator(".as-said").text_content() == (
        f'Saved as row 1 of {place / "rows.jsonl"}. "expected" is what came out: check it.'
    )
    page.locator(".as-actions").scroll_into_view_if_needed()
    page.screenshot(path=pictures / f"acting-save-{jupyter.app}-{look.name}.png")
    save.click()
    page.get_by_text("nothing was written").wait_for()
    (line,) = (place / "rows.jsonl").read_text().splitlines()
    assert json.loads(line)["expected"].startswith("check says 2")
    assert notebook.browser.our_errors == []
    (place / "rows.jsonl").unlink()


LOAD = "Run.load(review.logs_root, talk)"
INSPECT = 'review.inspect("check")'
REPLAY = "review.replay()"


def test_a_rewind_asks_once_and_goes_on_beneath(jupyter, open_notebook, pictures):
    notebook = open_notebook(jupyter, SETUP, RUN, ANSWER, "print(review.journal().visits_of('check')[-1].number)")
    page = notebook.page
    notebook.run_cells(0, 1, 2)
    open_stage(notebook, "check")
    page.get_by_role("button", name="Rewind to before this stage", exact=True).click()
    assert "They stay in the log, and nothing is lost." in page.locator(".as-form").text_content()
    assert 'review = review.rewind("check")' in page.locator(".as-call pre").text_content()
    page.locator(".as-actions").scroll_into_view_if_needed()
    page.screenshot(path=pictures / "acting-rewind.png")
    page.get_by_role("button", name="Not now").click()
    assert page.locator(".as-form").count() == 0
    page.get_by_role("button", name="Rewind to before this stage", exact=True).click()
    page.get_by_role("button", name="Rewind and run").click()
    notebook.wait_for(".an-run [data-node=gate].state-waiting")
    assert page.locator(".an-title").text_content() == "Rewound to before check, visit 1"
    notebook.run_cell(3)
    notebook.wait_for_text("2")
    assert notebook.browser.our_errors == []


@pytest.mark.parametrize("cell", [LOAD, INSPECT, REPLAY], ids=["loaded", "inspected", "replay"])
def test_the_same_buttons_are_where_else_a_stage_is_looked_at(jupyter, open_notebook, pictures, cell):
    fork = "print(asked.count('check'), asked.count('draft'))"
    notebook = open_notebook(
        jupyter, SETUP.replace("review", "talk"), RUN.replace(")", ", is_shown=False)"), ANSWER, cell, fork
    )
    page = notebook.page
    notebook.run_cells(0, 1, 2, 3)
    if cell != INSPECT:
        notebook.wait_for(".attractor-stand-in [data-node=check]")
        open_stage(notebook, "check", ".attractor-stand-in")
    notebook.wait_for(".as-actions:visible")
    page.get_by_role("button", name="Pin this answer", exact=True).click()
    notebook.wait_for_text("check is pinned")
    assert page.get_by_role("button", name="Unpin this answer", exact=True).count() == 1
    page.get_by_role("button", name="Rewind to before this stage", exact=True).scroll_into_view_if_needed()
    page.screenshot(
        path=pictures / f"acting-{'inspect' if cell == INSPECT else 'replay' if cell == REPLAY else 'loaded'}.png"
    )
    if cell == LOAD:
        return  # what answered was an object of the other handle
    page.get_by_role("button", name="Edit prompt and fork from here", exact=True).click()
    page.get_by_role("button", name="Fork and run").click()
    notebook.wait_for(".an-run [data-node=gate].state-waiting")
    notebook.run_cell(4)
    notebook.wait_for_text("1 1")
    assert notebook.browser.our_errors == []


def test_a_refusal_stands_in_place_and_keeps_what_was_typed(jupyter, open_notebook):
    notebook = open_notebook(
        jupyter, SETUP, RUN.replace(")", ", is_shown=False)"), ANSWER, "Run.load(review.logs_root)"
    )
    page = notebook.page
    notebook.run_cells(0, 1, 2, 3)
    notebook.wait_for(".attractor-stand-in [data-node=check]")
    open_stage(notebook, "check", ".attractor-stand-in")
    page.get_by_role("button", name="Edit prompt and fork from here", exact=True).click()
    page.locator(".as-prompt").fill("Check it twice")
    page.get_by_role("button", name="Fork and run").click()
    notebook.wait_for_text("no backend is given")
    assert 'backend="simulated"' in page.locator(".as-problem:visible").text_content(), "with its hint"
    assert page.locator(".as-prompt").input_value() == "Check it twice"
    assert page.locator(".an-run").count() == 0
