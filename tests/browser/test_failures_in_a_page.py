"""A failed run in a bare page and on the server's page: it opens its failed stage, with all that is needed to fix it."""

from __future__ import annotations

import json
import time

import pytest

from attractor_nb import Pipeline, Run
from attractor_nb.pipeline.run_actions import InspectorActions
from attractor_nb.studio.inspect.inspect_run import answer_inspection
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.summary_line import status_line
from tests.browser.conftest import LOOKS, folder_of_pictures

pytestmark = pytest.mark.browser

LIVE = "showLiveRun(host, el, shareStates(host))"
TEXT = """digraph import_table {{ start [shape=Mdiamond] done [shape=Msquare]
  plan [label="Plan the import", prompt="Plan it"] load [label="Load the table", {}] check [label="Check it", prompt="Check it"]
  start -> plan -> load -> check -> done }}"""


def look_up(table):
    value = table["found"]
    return table["missing"], value


class Load:
    """A handler that fails in the user's own code."""

    def execute(self, node, context, graph, logs_root):
        return look_up({"found": 1})


KINDS = {
    "function": "type=mine",
    "command": 'shape=parallelogram, tool_command="seq 1 30; echo no such table >&2; exit 1"',
    "schema": 'prompt="Load it", response_schema="{\\"type\\": \\"object\\"}"',
}


def failed_run(root, kind):
    text = TEXT.format(KINDS[kind])
    run = Pipeline(text, handlers={"mine": Load()} if kind == "function" else {}).run(
        logs_root=root / kind, backend=lambda prompt: "The table has 3 columns.\nIt is loaded."
    )
    run.result(60)
    return run


def answered(view, run):
    """Answer what the view asks, as the kernel would."""
    actions = InspectorActions(run)
    for request in view.sent:
        if request["kind"] == "inspect":
            view.tell(**json.loads(json.dumps(actions.with_actions(answer_inspection(run, request)))))


def open_failed(open_view, run, *, is_over=True, **window):
    line = status_line(run.view, run.graph, started=0.0, now=time.time()) | {"is_over": is_over}
    states = run.view.to_plain() | {"line": line, "tails": {}}
    values = {"svg": render_svg(run.graph), "marks": MARK_PATHS, "caption": "import", "states": states}
    view = open_view("live_view", LIVE, **values, **window)
    answered(view, run)
    return view


def test_the_failed_stage_opens_when_the_run_can_be_rewound_not_at_its_last_event(open_view, tmp_path):
    run = failed_run(tmp_path, "command")
    view = open_failed(open_view, run, is_over=False)
    assert view.page.locator(".al-inspector").is_hidden()
    line = status_line(run.view, run.graph, started=0.0, now=time.time()) | {"is_over": True}
    view.tell(kind="delta", line=line)
    answered(view, run)
    assert view.page.locator(".al-failure-resume").is_visible()
    assert view.page.get_by_role("button", name="Rerun this stage").is_enabled()


@pytest.mark.kind("a browser")
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_failed_run_opens_its_failed_stage_by_itself(open_view, tmp_path, kind):
    run = failed_run(tmp_path, kind)
    view = open_failed(open_view, run)
    page = view.page
    failure = page.locator(".al-failure")
    assert page.locator(".al-inspector-title").text_content() == "Load the table (load)"
    assert failure.locator(".al-failure-words").text_content().startswith("load failed: ")
    assert "A rewind to load runs it again" in failure.locator(".al-failure-resume").text_content()
    buttons = page.locator(".as-actions .as-button:visible").all_text_contents()
    if kind == "function":
        assert failure.locator(".al-code.is-failed").text_content().strip().endswith('return table["missing"], value')
        assert failure.locator(".al-code").count() == 5
        assert not failure.locator("details").first.evaluate("one => one.open")
    elif kind == "command":
        assert failure.locator("pre").all_text_contents() == ["\n".join(map(str, range(23, 31))), "no such table"]
    else:
        assert buttons[0] == "Fix the prompt and rerun from here"
        assert failure.locator("pre").first.text_content().endswith("It is loaded.")
    assert "Rerun this stage" in buttons
    assert page.evaluate("() => document.activeElement === document.body"), "it takes no focus"
    assert view.console == []


def test_a_stage_that_is_open_stays_open_when_the_run_fails(open_view, tmp_path):
    run = failed_run(tmp_path, "command")
    states = {"nodes": {"plan": {"status": "success", "visits": 1}}, "line": {"status": "running"}, "tails": {}}
    view = open_view("live_view", LIVE, svg=render_svg(run.graph), marks=MARK_PATHS, caption="d", states=states)
    view.page.locator("[data-node=plan]").click()
    view.tell(kind="delta", nodes={"load": {"status": "fail"}}, line=status_line(run.view, run.graph, started=0, now=1))
    assert view.sent[-1] == {"kind": "inspect", "node": "plan"}
    assert view.page.locator(".al-inspector-title").text_content() == "Plan the import (plan)"


HEAD = """() => {
  const box = (selector) => document.querySelector(selector).getBoundingClientRect();
  const [head, line] = [box(".al-inspector"), box(".al-line")];
  const inside = [...document.querySelectorAll(".al-inspector-title, .as-button, .al-inspector-head > .al-close")];
  return {
    title: document.querySelector(".al-inspector-title").scrollWidth - document.querySelector(".al-inspector-title").clientWidth,
    outside: inside.filter((one) => one.offsetWidth && one.getBoundingClientRect().right > head.right).map((one) => one.textContent),
    dot: box(".al-dot").bottom > box(".al-word").top,
    word: box(".al-word").left - line.left,
  };
}"""


@pytest.mark.parametrize("width", [520, 640, 960])
def test_in_a_narrow_place_no_part_of_the_head_or_of_the_status_line_is_cut(open_view, tmp_path, width):
    view = open_failed(open_view, failed_run(tmp_path, "schema"), width=width)
    seen = view.page.evaluate(HEAD)
    view.shoot(f"failure-head-{width}")
    assert seen["title"] <= 0, "the name of the stage is whole"
    assert seen["outside"] == []
    assert seen["dot"], "the dot is beside the word"
    assert seen["word"] >= 0


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_pictures_of_failures(open_view, tmp_path, look):
    for kind in KINDS:
        run = failed_run(tmp_path, kind)
        view = open_failed(open_view, run, width=look.width, height=look.height, dark=look.is_dark, scale=1)
        view.shoot(f"failure-{kind}-{look.name}")
        assert view.console == []


@pytest.mark.kind("a browser")
def test_the_servers_page_opens_the_failed_stage_and_reruns_it(serve_page, driver, tmp_path):
    failing = tmp_path / "fail"
    failing.touch()
    command = f"test ! -e {failing} || {{ echo no such table >&2; exit 1; }}"
    text = TEXT.format(f'shape=parallelogram, tool_command="{command}"')
    run = Pipeline(text).run(logs_root=tmp_path / "runs" / "one", backend="simulated")
    run.result(60)
    address = serve_page(tmp_path / "runs")
    with driver.new_page(width=1366, height=768) as page:
        page.goto(address)
        page.locator("text=one").first.click()
        words = page.locator(".al-failure-words")
        words.wait_for()
        assert "exit code 1: no such table" in words.text_content()
        assert "Rerun this stage" in page.locator(".as-button:visible").all_text_contents()
        page.screenshot(path=str(folder_of_pictures() / "failure-page.png"))
        failing.unlink()
        page.get_by_role("button", name="Rerun this stage").click()
        page.get_by_role("button", name="Rewind and run").click()
        trust = page.get_by_role("button", name="Trust these commands and resume")
        trust.or_(page.locator(".al-line[data-status=success]")).first.wait_for()
        if trust.is_visible():
            trust.click()
        page.locator(".al-line[data-status=success]").wait_for()
    assert Run.load(run.logs_root).view.status == "success"
