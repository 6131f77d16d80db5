"""A graph document by keys and for screen readers: every control is come by, and has a role and a name."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

TEXT = """digraph release {
    start [shape=Mdiamond]
    plan  [prompt="Plan $topic"]
    build [shape=parallelogram, tool_command="true"]
    done  [shape=Msquare]
    start -> plan -> build -> don
}
"""
SET_TEXT = "[...jupyterapp.shell.widgets('main')].find(one => one.content?.text?.editor).context.model.sharedModel.setSource(text)"
CONTROLS = {
    *("button", "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "spinbutton", "switch", "link"),
    *("slider", "tab", "menuitem", "Iframe", "dialog", "application"),
}
LIST = """() => {
  const isSeen = (one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0;
  const wanted = 'button, input, select, textarea, summary, a[href], [tabindex="0"]';
  const all = [...document.querySelectorAll(wanted)].filter((one) => isSeen(one) && !one.disabled && one.tabIndex >= 0);
  window.told = new Map(all.map((one, number) => [one, number]));
  return all.map((one) => (one.getAttribute('aria-label') || one.textContent || one.name || one.className.toString()).trim().slice(0, 40));
}"""
HERE = "() => [document.activeElement.tagName, window.told?.get(document.activeElement) ?? -1, document.activeElement.outerHTML.slice(0, 120)]"


@pytest.fixture
def document(lab):
    (lab.root / "keys.dot").write_text(TEXT)
    with lab.browser(width=1500, height=1000) as browser:
        page = browser.page
        page.set_default_timeout(60_000)
        browser.show("keys.dot")
        page.frame_locator(".attractor-document-graph iframe").locator("[data-node=done]").wait_for()
        page.evaluate("() => { jupyterapp.shell.collapseLeft(); }")
        yield page
        assert browser.our_errors == []


def frame_of(page):
    return page.query_selector(".attractor-document-graph iframe").content_frame()


def come_by(page, frame):
    """The controls that Tab leads to, from the first one on, and all that there are."""
    names = frame.evaluate(LIST)
    frame.evaluate("() => { document.activeElement.blur(); [...window.told.keys()][0].focus(); }")
    found = set()
    for _ in range(2 * len(names) + 5):
        tag, number, _ = frame.evaluate(HERE)
        if tag == "BODY" and found:
            break
        found.add(number)
        page.keyboard.press("Tab")
    return {names[number] for number in found if number >= 0}, set(names)


def nameless(page, frame):
    """The controls of a frame that a screen reader gets without a name."""
    session = page.context.new_cdp_session(page)
    tree = session.send("Page.getFrameTree")["frameTree"]
    (inner,) = [
        one["frame"]["id"]
        for one in tree["childFrames"]
        if one["frame"]["url"].split("#")[0] == frame.url.split("#")[0]
    ]
    nodes = session.send("Accessibility.getFullAXTree", {"frameId": inner})["nodes"]
    session.detach()
    seen = [each for each in nodes if not each["ignored"] and each["role"]["value"] in CONTROLS]
    assert len(seen) > 5, "the tree is that of the graph"
    return [(each["role"]["value"], each.get("properties")) for each in seen if not each.get("name", {}).get("value")]


def test_tab_leads_to_every_control_and_each_has_a_name(document, pictures):
    page, frame = document, frame_of(document)
    for open_part in (None, "form", "run"):
        if open_part == "form":
            frame.locator("[data-node=plan]").first.focus()
            page.keyboard.press("Enter")
            frame.locator(".ae-form").wait_for()
        elif open_part == "run":
            page.evaluate(f"text => {SET_TEXT}", TEXT.replace("-> don", "-> done"))
            frame.locator("[data-node=don]").wait_for(state="detached")
            frame.get_by_role("button", name="Run…").focus()
            page.keyboard.press("Enter")
            frame.get_by_role("checkbox", name="build").wait_for()
        page.wait_for_timeout(300)
        found, all_ = come_by(page, frame)
        assert all_ - found == set(), open_part
        assert nameless(page, frame) == [], open_part
    page.screenshot(path=str(pictures / "graph-document-by-keys.png"))


def test_focus_is_seen(document):
    frame = frame_of(document)
    names = frame.evaluate(LIST)
    unseen = frame.evaluate(
        """async () => {
          const bare = [];
          for (const one of window.told.keys()) {
            document.activeElement.blur();
            const before = [getComputedStyle(one).outlineStyle, getComputedStyle(one).boxShadow, getComputedStyle(one).borderColor].join();
            one.focus({ focusVisible: true });
            const style = getComputedStyle(one);
            const after = [style.outlineStyle, style.boxShadow, style.borderColor].join();
            const inside = [...one.querySelectorAll('*')].length > 0 && one instanceof SVGElement;
            if (before === after && !inside) bare.push(one.outerHTML.slice(0, 100));
          }
          return bare;
        }"""
    )
    assert len(names) > 10
    assert unseen == []


def test_the_way_from_the_text_to_the_graph_and_back_is_by_keys(document):
    page = document
    page.locator(".attractor-document .cm-attractor-panel button").wait_for()
    page.locator(".attractor-document .cm-content").click()
    page.keyboard.press("Escape")  # in an editor Tab indents; behind Escape it leads on
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.title") == "Go to the next finding (F8)"
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.title").startswith("Graph of keys.dot")
    for _ in range(3):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("() => document.activeElement.classList.contains('cm-content')"):
            break
    assert page.evaluate("() => document.activeElement.classList.contains('cm-content')")
