"""The plugins of the extension when a JupyterLab lacks a module: the part that needs it is off and says so, the others stay."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

STATIC = Path(__file__).resolve().parents[2] / "attractor_nb" / "labextension" / "static"
TYPES = {".js": "text/javascript", ".svg": "image/svg+xml"}
MADE = """async missing => {
  const { makePlugins } = await import("/extension.js");
  // A module of which everything can be called and taken.
  const anything = () => new Proxy(class {}, { get: (own, name) => name in own ? own[name] : name === "then" ? undefined : anything(), apply: () => anything() });
  const shared = async (name) => {
    if (name === missing) throw new Error(`JupyterLab does not share ${name}`);
    return anything();
  };
  return (await makePlugins(shared)).map(({ id }) => id);
}"""
ALL = {f"attractor-nb:{name}" for name in ("language", "findings", "commands", "outline", "runs", "documents")}


@pytest.fixture
def page(driver):
    with driver.new_page() as page:

        def serve(route):
            file = STATIC / route.request.url.rpartition("/")[2]
            if file.is_file():
                route.fulfill(body=file.read_bytes(), content_type=TYPES[file.suffix])
            else:
                route.fulfill(body="<!doctype html><title>empty</title>", content_type="text/html")

        page.route("http://lab.test/**", serve)
        page.goto("http://lab.test/")
        yield page


@pytest.mark.parametrize(
    ("missing", "off"),
    [
        ("nothing", set()),
        ("@codemirror/language", {"language"}),
        ("@codemirror/view", {"findings", "commands", "outline"}),
        ("@codemirror/state", {"language", "findings", "commands"}),
        ("@jupyterlab/toc", {"outline"}),
        ("@jupyterlab/launcher", {"commands"}),
        ("@jupyterlab/application", {"runs", "documents"}),
        ("@lumino/widgets", {"runs", "documents"}),
        ("@jupyterlab/notebook", {"language", "commands", "outline"}),
    ],
)
def test_what_needs_it_is_off_and_says_so(page, missing, off):
    said = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    made = set(page.evaluate(MADE, missing))
    assert made == ALL - {f"attractor-nb:{name}" for name in off}
    told = [line for line in said if f"is off: JupyterLab does not share {missing}" in line]
    assert len(told) == len(off)
    assert all(line.startswith("warning: attractor-nb: ") for line in told)


def test_without_its_icon_all_parts_are_on_and_the_next_one_asks_for_it_again(page):
    asked = []

    def refuse_once(route):
        asked.append(route.request.url)
        if len(asked) == 1:
            route.fulfill(status=503)
        else:
            route.fallback()

    page.route("**/icon.svg", refuse_once)
    said = []
    page.on("console", lambda message: said.append(message.text))
    assert set(page.evaluate(MADE, "nothing")) == ALL
    assert len(asked) == 2  # language in vain, then commands, whose icon the panel of runs has, too
    assert "attractor-nb: the icon could not be fetched: 503" in said
