"""A saved notebook on pages: of exporters, of a code host, in JupyterLab without trust. Every drawing."""

from __future__ import annotations

import base64
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import bleach
import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter, MarkdownExporter, SlidesExporter

REPOSITORY = Path(__file__).resolve().parents[2]
CELLS = (
    "%load_ext attractor_nb\nfrom attractor_nb import FunctionBackend, Pipeline, diff",
    """%%attractor notes
digraph notes {
  start [shape=Mdiamond]
  draft [prompt="Draft"]
  done [shape=Msquare]
  start -> draft -> done
}""",
    "run = notes.run(backend=FunctionBackend(lambda prompt: 'It is fast.'))\nawait run",
    "run.replay()",
    "run.heat('visits')",
    "notes.edit()",
    "other = notes.run(backend=FunctionBackend(lambda prompt: 'It is small.'))\nboth = diff(run, await other)\nboth",
)
DRAWINGS = len(CELLS) - 1
SAFE_TAGS = {
    *("a", "b", "br", "code", "dd", "details", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "i", "img"),
    *("li", "ol", "p", "pre", "span", "strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
"""The markup that sanitisers of code hosts and of JupyterLab leave: no SVG, no style, no script."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "IPYTHONDIR": str(folder / "ipython")}
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    return notebook


def outputs_of(notebook):
    return [output["data"] for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]


def sanitised(html):
    """HTML as a code host shows it."""
    without = re.sub(r"<(style|script)\b.*?</\1>", "", html, flags=re.DOTALL)
    kept = {"img": ["src", "alt", "width"]}
    return bleach.clean(without, tags=SAFE_TAGS, attributes=kept, protocols={"data", "https"}, strip=True)


class Images(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        source = dict(attrs).get("src") or ""
        if tag == "img" and source.startswith("data:image/svg+xml;base64,"):
            self.found.append(base64.b64decode(source.partition(",")[2]).decode())


def drawings_in(html):
    return [svg for svg in Images(html).found if "attractor-graph" in svg or "<svg" in svg]


@pytest.mark.shows("nbconvert", "picture", "stored output")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("exporter", [HTMLExporter, SlidesExporter])
def test_exporters_show_every_drawing(saved, exporter):
    html, _ = exporter().from_notebook_node(saved)
    assert len(drawings_in(html)) == DRAWINGS


@pytest.mark.timeout(180)
def test_markdown_shows_every_drawing(saved):
    text, _ = MarkdownExporter().from_notebook_node(saved)
    assert text.count("data:image/svg+xml;base64,") == DRAWINGS


@pytest.mark.timeout(180)
def test_html_that_was_sanitised_shows_every_drawing_and_words_as_lines(saved):
    shown = [sanitised(data["text/html"]) for data in outputs_of(saved) if "text/html" in data]
    assert sum(len(drawings_in(html)) for html in shown) == DRAWINGS
    lines = [line.strip() for line in re.sub(r"<[^>]+>", "\n", shown[-1]).splitlines()]
    assert "other texts, attempts or visits" in lines, "the legend of the drawing"
    assert not any("start · start" in line for line in lines), "the tooltips of a drawing are no words of its output"


@pytest.mark.timeout(180)
def test_no_output_carries_a_widget_and_each_has_words(saved):
    for data in outputs_of(saved):
        assert not any("widget" in kind for kind in data)
        assert data["text/plain"].strip()


TOUR = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("path", TOUR, ids=lambda path: path.stem)
def test_every_drawing_of_the_tour_is_shown_by_exporters_and_where_html_is_sanitised(path):
    notebook = nbformat.read(path, 4)
    outputs = outputs_of(notebook)
    drawn = [data for data in outputs if "image/svg+xml" in data or "data:image/svg" in data.get("text/html", "")]
    assert drawn, "refresh them: make notebooks"
    assert not [data for data in outputs if "<svg" in data.get("text/html", "")], "inline SVG is taken out"
    html, _ = HTMLExporter().from_notebook_node(notebook)
    assert len(drawings_in(html)) == len(drawn)
    assert [len(drawings_in(sanitised(data.get("text/html", "")))) for data in drawn] == [1] * len(drawn)
