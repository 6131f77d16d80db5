"""Gates in a real notebook: a form with its material filled in, the inbox, and the two never fighting."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

PICTURES = Path(os.environ.get("ATTRACTOR_PICTURES", Path(__file__).resolve().parents[2] / ".venv" / "pictures"))
pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

LOAD = "%load_ext attractor_nb"
PIPELINES = """from pathlib import Path
from typing import Literal
from pydantic import BaseModel, Field
from attractor_nb import Pipeline, gates

class Verdict(BaseModel):
    score: int = Field(ge=0, le=10)
    risk: Literal["low", "high"] = "low"
    findings: list[str] = []

SOURCE = '''digraph NAME {
  start [shape=Mdiamond]
  draft [label="Draft", prompt="Write it"]
  judge [shape=hexagon, label="Is NAME good?", human.form="Verdict"]
  done  [shape=Msquare]
  start -> draft -> judge
  judge -> done  [label="[P] Print"]
  judge -> draft [label="[B] Back"]
}'''
async def model(node, prompt, context):
    return f"{node.id} <b>of caching</b>"
def pipeline(name):
    return Pipeline(SOURCE.replace("NAME", name), schemas={"Verdict": Verdict}, backend=model, runs_dir="of_this_inbox")
article, report = pipeline("article"), pipeline("report")"""
RUN = "run = article.run()"
INBOX = "gates('of_this_inbox')"
SECOND = "other = report.run()"
RESULT = "print(run.result().context['human.gate.form'], other.result().context['human.gate.form'], len(gates('of_this_inbox')))"


@pytest.mark.shows("JupyterLab", "gate by click")
@pytest.mark.shows("Notebook 7", "gate by click")
def test_forms_are_filled_in_under_the_run_and_in_the_inbox(jupyter, open_notebook, driver):
    notebook = open_notebook(jupyter, LOAD, PIPELINES, RUN, INBOX, SECOND, RESULT)
    notebook.run_cells(0, 1, 2)
    page = notebook.page
    under_run = page.locator(".attractor-gate.has-gates .ag-card").first
    under_run.wait_for(timeout=60_000)
    assert under_run.locator(".ag-material .pr-shown").text_content() == "draft <b>of caching</b>"

    # what the model refuses is said at its field, and the way goes back once
    under_run.get_by_label("Score").fill("11")
    under_run.get_by_text("Back").click()
    under_run.locator(".is-wrong", has_text="less than or equal to 10").wait_for(timeout=30_000)
    under_run.get_by_label("Score").fill("3")
    under_run.get_by_text("Back").click()
    notebook.wait_for_text(f"Back (score=3, risk=low, findings=[]), by {getpass.getuser()}")

    # the inbox follows both runs
    notebook.run_cell(3)
    inbox = page.locator(".attractor-gate:not(.has-gates)")
    inbox.locator(".ag-card", has_text="Is article good?").wait_for(timeout=60_000)
    notebook.run_cell(4)
    second = inbox.locator(".ag-card", has_text="Is report good?")
    second.wait_for(timeout=60_000)
    # while the output is drawn anew, the cards stand there twice
    driver.wait_until(lambda: inbox.locator(".ag-card").count() == 2, 30, "one card for each run")
    PICTURES.mkdir(parents=True, exist_ok=True)
    inbox.screenshot(path=str(PICTURES / "gates_inbox_in_lab.png"))

    # answered in the inbox: the card under its run closes, and says where the answer was given
    second.get_by_label("Score").fill("8")
    second.get_by_label("Findings").fill("no picture")
    second.get_by_text("Print").click()
    second.wait_for(state="detached", timeout=30_000)
    notebook.wait_for_text("report · judge: Print (score=8")

    # answered under the run: the inbox has nothing left
    first = page.locator(".attractor-gate.has-gates .ag-card", has_text="Is article good?")
    first.get_by_label("Score").fill("9")
    first.get_by_text("Print").click()
    notebook.wait_for(".al-line[data-status=success]")
    notebook.run_cell(5)
    notebook.wait_for_text("'score': 9, 'risk': 'low', 'findings': []} {'score': 8")
    assert notebook.browser.our_errors == []
