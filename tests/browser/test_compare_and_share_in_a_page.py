"""Exported pages in Chromium: opened from the disk with networking off, scrubbed, clicked, and attacked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from attractor_nb import FunctionBackend, Outcome, Pipeline, diff

pytestmark = pytest.mark.browser

TEXT = """digraph release { graph [goal="ship it", label="Release"]
  start [shape=Mdiamond] done [shape=Msquare]
  plan [label="Plan the release", prompt="Plan: $goal"] write [label="Write the notes", prompt="Write"]
  check [label="Check", prompt="Check"] polish [label="Polish", prompt="Polish"]
  start -> plan -> write -> check
  check -> done [condition="context.score=2"]
  check -> write [condition="context.score=1", label="again"]
  check -> polish [condition="context.score=3"]
  polish -> done }"""


def ran(folder, name, scores, *, text=TEXT, words="A plan in two sentences. It is short."):
    left = list(scores)

    def answer(node, prompt, context):
        if node.id == "check":
            return Outcome.success(f"score {left[0]}", context_updates={"score": left.pop(0)})
        return f"{words} ({node.id} of {name})"

    run = Pipeline(text, backend=FunctionBackend(answer)).run(logs_root=folder / name)
    run.result()
    return run


class Opened:
    """A page that was opened from the disk, and all that it did."""

    def __init__(self, page, file):
        self.page, self.said, self.asked, self.dialogs = page, [], [], []
        page.on("console", lambda said: self.said.append(said.text))
        page.on("pageerror", lambda error: self.said.append(f"pageerror: {error}"))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(Path(file).as_uri())

    def shoot(self, name):
        folder = Path(os.environ.get("ATTRACTOR_PICTURES", Path(__file__).parents[2] / ".venv" / "pictures"))
        folder.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(folder / f"{name}.png"), full_page=True)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.kind("a browser")
def test_an_exported_run_opens_without_a_network_and_scrubs(driver, tmp_path, dark):
    file = ran(tmp_path, "run", ["1", "2"]).export_html(tmp_path / "run.html")
    with driver.new_page(dark=dark, offline=True) as page:
        opened = Opened(page, file)
        slider = page.get_by_role("slider")
        slider.wait_for()
        assert "state-success" in page.locator(".ad-drawing [data-node=done]").get_attribute("class")
        page.locator(".ad-drawing [data-node=write]").click()
        page.get_by_role("tab", name="Response").click()
        page.locator(".al-inspector .pr-shown", has_text="(write of run)").first.wait_for()
        opened.shoot(f"exported-run{'-dark' if dark else ''}")
        slider.focus()
        page.keyboard.press("Home")
        page.wait_for_function(
            "() => document.querySelector('.ad-drawing [data-node=done]').classList.contains('state-pending')"
        )
        page.keyboard.press("End")
        page.wait_for_function(
            "() => document.querySelector('.ad-drawing [data-node=done]').classList.contains('state-success')"
        )
        assert opened.said == []
        assert opened.asked == [Path(file).as_uri()]


def test_without_script_a_page_is_a_picture_and_a_table(driver, tmp_path):
    file = ran(tmp_path, "run", ["1", "2"]).export_html(tmp_path / "run.html")
    with driver.new_page(java_script_enabled=False, offline=True) as page:
        Opened(page, file).shoot("exported-run-no-script")
        assert page.locator("svg.attractor-graph").is_visible()
        assert "write, visit 2" in page.locator("table").inner_text()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_drawing_of_two_runs_shows_both_sides_of_the_first_difference_then_of_the_clicked_stage(
    driver, tmp_path, dark
):
    found = diff(ran(tmp_path, "one", ["1", "2"]), ran(tmp_path, "two", ["3"]))
    file = found.export_html(tmp_path / "both.html")
    with driver.new_page(dark=dark, offline=True) as page:
        opened = Opened(page, file)
        page.locator(".ad-drawing [data-node=plan].selected").wait_for()
        page.locator(".ac-visit-title", has_text="visit 1: response").wait_for()
        page.locator(".ad-drawing [data-node=write]").click()
        sides = page.locator(".ac-side")
        sides.first.wait_for()
        assert "(write of one)" in sides.nth(0).inner_text()
        assert "(write of two)" in sides.nth(1).inner_text()
        assert "did not visit this node" in page.locator(".ac-panel").inner_text()
        assert page.evaluate(
            "() => document.querySelector('.ac-change').getBoundingClientRect().bottom <= document.querySelector('.ac-sides').getBoundingClientRect().top"
        )
        assert "two" in page.locator(".ac-change .pr-new").first.inner_text()
        opened.shoot(f"compared-runs{'-dark' if dark else ''}")
        assert page.locator(".ad-drawing [data-node=polish]").get_attribute("class").split().count("only-b") == 1
        page.keyboard.press("Escape")
        assert page.locator(".ac-panel").is_hidden()
        assert opened.said == []
        assert opened.asked == [Path(file).as_uri()]


MARK = "window.pwned=1"
PAYLOADS = [
    f"<script>{MARK}</script>",
    f"</script><script>{MARK}</script>",
    f'"><script>{MARK}</script>',
    f"'><img src=x onerror={MARK}>",
    f"<svg onload={MARK}>",
    f"</title><svg/onload={MARK}>",
    f"</style><script>{MARK}</script>",
    f"<iframe srcdoc='<script>parent.{MARK}</script>'></iframe>",
    f"<a href=javascript:{MARK}>x</a>",
    f"--><script>{MARK}</script><!--",
    f"]]><script>{MARK}</script>",
    f"<math><mi//xlink:href='data:x,<script>{MARK}</script>'>",
    f"<details open ontoggle={MARK}>",
    f"<body onload={MARK}>",
    f"javascript:{MARK}",
    f"{{{{constructor.constructor('{MARK}')()}}}}",
    f"${{{MARK}}}",
    f"`;{MARK};`",
    f"\\u003cscript\\u003e{MARK}\\u003c/script\\u003e",
    f"&lt;script&gt;{MARK}&lt;/script&gt;",
    f"<meta http-equiv=refresh content='0;url=javascript:{MARK}'>",
    f"<base href=javascript:{MARK}//>",
    f"<form action=javascript:{MARK}><button>x</button></form>",
    f"<object data=javascript:{MARK}></object>",
    f"\u202e<script>{MARK}</script>",
    f"__proto__[onerror]={MARK}",
    f"<img src=x onerror=\u2028{MARK}>",
    f"<template><script>{MARK}</script></template>",
]


CLICK_EVERYTHING = """async () => {
  const pause = () => new Promise((go) => setTimeout(go, 20));
  for (const node of document.querySelectorAll(".ad-drawing [data-node]")) {
    node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    for (const tab of document.querySelectorAll("[role=tab]")) tab.click();
    for (const part of document.querySelectorAll("details")) part.open = true;
    await pause();
  }
}"""


def quoted(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')


def hostile_run(folder, name, payloads):
    """A run with a payload in every field that an author, a model or a tool can fill."""
    nodes, edges = [], []
    for number, payload in enumerate(payloads):
        text = quoted(payload)
        nodes.append(f'n{number} [label="{text}", prompt="{text}"]')
        edges.append(f'n{number} -> n{number + 1} [label="{text}"]')
    last = len(payloads)
    text = f"""digraph hostile {{ graph [goal="{quoted(payloads[0])}", label="{quoted(payloads[1])}"]
      start [shape=Mdiamond] done [shape=Msquare] n{last} [max_retries=0]
      {" ".join(nodes)} start -> n0 {" ".join(edges)} n{last} -> done }}"""

    def answer(node, prompt, context):
        number = int(node.id[1:])
        if number == last:
            return Outcome.fail(payloads[-1])
        payload = payloads[number]
        updates = {f"key{number}": payload, f"list{number}": [payload, {payload: payload}]}
        return Outcome.success(payload, context_updates=updates)

    run = Pipeline(text, backend=FunctionBackend(answer)).run(logs_root=folder / name)
    run.result()
    return run


def test_no_text_of_a_run_is_ever_executed(driver, tmp_path):
    a = hostile_run(tmp_path, "a", PAYLOADS)
    b = hostile_run(tmp_path, "b", list(reversed(PAYLOADS)))
    files = [a.export_html(tmp_path / "a.html"), diff(a, b).export_html(tmp_path / "ab.html")]
    for file in files:
        with driver.new_page(offline=True) as page:
            opened = Opened(page, file)
            page.locator(".ad-drawing [data-node=n3]").wait_for()
            page.evaluate(CLICK_EVERYTHING)
            assert page.evaluate("() => window.pwned") is None
            assert opened.dialogs == []
            assert not [url for url in opened.asked if not url.startswith("file:")]
            assert not [said for said in opened.said if "pageerror" in said]
            assert page.locator("main img, main iframe, main a, main object, main form").count() == 0
