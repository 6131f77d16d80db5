"""A sheet of drawings: as an older commit made them, as ``dot`` does, and as they are now; light and dark, with figures.

    git worktree add /tmp/before COMMIT
    python -m tests.views.beside_dot /tmp/before SHEETS

writes ``light.png``, ``dark.png`` and ``figures.md`` into the folder SHEETS. Look at them: nothing compares them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

from playwright.sync_api import sync_playwright

from attractor_nb import Pipeline, parse_dot
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.layout import MARGIN
from tests.views.drawn_graphs import EXAMPLES, generated, skipping_chain, wide_fan_out
from tests.views.measured_drawings import Drawing, drawn_by_dot, read_svg

THEMES = {"light": "#ffffff", "dark": "#111111"}
MOST_SHOWN = 60
"""Nodes of a graph whose drawings are put on the sheet; larger ones are in the table only."""

ENDS = "start [shape=Mdiamond] done [shape=Msquare]"
TEAMS = [f"team_{number}" for number in range(12)]
LOOPS = " -> ".join(f"s{number}" for number in range(21))
WAYS_BACK = " ".join(f's{late} -> s{late - back} [label="again"]' for late, back in ((4, 3), (9, 2), (13, 8), (18, 12)))

GRAPHS = {
    "ticket_to_release": (EXAMPLES / "ticket_to_release.dot").read_text(),
    "code_review_loop": (EXAMPLES / "code_review_loop.dot").read_text(),
    "clusters": generated("clusters")["clusters-3"],
    "23 nodes with loops": f"digraph g {{ rankdir=LR {ENDS} start -> {LOOPS} -> done {WAYS_BACK} }}",
    "100 nodes": skipping_chain(98),
    "200 nodes": skipping_chain(198),
    "labels of diamonds and edges": f"""digraph g {{ {ENDS}
        check [shape=diamond, label="Is there a source for every claim of the text?"]
        start -> write -> check
        check -> done [condition="outcome=success && context.sources>=3"]
        check -> write [label="Some claims have no source yet"] }}""",
    "router of twelve": f"digraph g {{ {ENDS} sort start -> sort "
    + " ".join(f'{team} sort -> {team} [label="{team}"] {team} -> done' for team in TEAMS)
    + " }",
    "eight branches": wide_fan_out(8),
    "skip and from the top": f"""digraph g {{ {ENDS} plan; write; test; review
        start -> plan -> write -> test -> review -> done
        plan -> review [label="skip"] test -> plan [label="from the top"] }}""",
    "twins": f"""digraph g {{ {ENDS} start -> write write -> check [label="draft"] write -> check [label="final"]
        check -> write [label="not yet"] check -> done }}""",
    "README": f"""digraph g {{ {ENDS} gate [shape=hexagon, label="Publish it?"] start -> plan -> write -> gate
        gate -> done [label="[A] Approve"] gate -> write [label="[R] Write it again"] }}""",
    "fix_loop": (EXAMPLES / "fix_loop.dot").read_text(),
}

RENDER = """
import sys
from attractor_nb import parse_dot
from attractor_nb.views.drawings.svg import render_svg
print(render_svg(parse_dot(sys.stdin.read()), theme=sys.argv[1]))
"""


def drawn_in(tree: Path, text: str, theme: str) -> str:
    """The drawing of a text by the package in another working tree."""
    command = [sys.executable, "-c", RENDER, theme]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    answer = subprocess.run(command, input=text, capture_output=True, text=True, check=True, env=environment, cwd=tree)
    return answer.stdout


def by_dot(text: str) -> str:
    """The picture that ``dot`` makes of the text itself, with its own shapes."""
    picture = Pipeline(text).to_graphviz().pipe("svg").decode()
    return picture[picture.index("<svg") :]


def figures_of(drawing: Drawing, margin: float) -> str:
    """Width, height, crossings and the longest run beside another edge, as cells of a table."""
    width, height = drawing.width - 2 * margin, drawing.height - 2 * margin
    return f"{width:.0f} x {height:.0f} | {len(drawing.crossings)} | {drawing.longest_run_beside:.0f}"


def row_of(name: str, text: str, before: Path) -> str:
    """A row of the table; ``dot`` has the same boxes and labels as the drawing of today."""
    graph = parse_dot(text)
    old, new = (read_svg(svg, graph) for svg in (drawn_in(before, text, "light"), render_svg(graph)))
    cells = (figures_of(old, MARGIN), figures_of(drawn_by_dot(graph), 0.0), figures_of(new, MARGIN))
    return f"| {name} | {' | '.join(cells)} |"


def page_of(before: Path, theme: str) -> str:
    """The sheet of a theme as a page."""
    parts = []
    for name, text in GRAPHS.items():
        graph = parse_dot(text)
        if len(graph.nodes) <= MOST_SHOWN:
            pictures = drawn_in(before, text, theme), by_dot(text), render_svg(graph, theme=theme)
            titles = ("before", "dot", "now")
            cells = "".join(
                f"<figure><figcaption>{escape(name)}: {title}</figcaption>{picture}</figure>"
                for title, picture in zip(titles, pictures, strict=True)
            )
            parts.append(f"<div>{cells}</div>")
    css = (
        f"body {{ margin: 8px; background: {THEMES[theme]}; font: 13px sans-serif; display: inline-block }}"
        "div { display: flex; gap: 24px; align-items: flex-start } figure { margin: 8px } figcaption { color: #888 }"
        "svg { max-width: none !important }"
    )
    return f"<!DOCTYPE html><meta charset=utf-8><style>{css}</style>{''.join(parts)}"


def main(before: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    head = "| drawing | before | crossings | run | `dot` | crossings | run | now | crossings | run |"
    rows = [row_of(name, text, before) for name, text in GRAPHS.items()]
    table = "\n".join([head, "| --- " * 10 + "|", *rows])
    (folder / "figures.md").write_text(table + "\n", encoding="utf-8")
    switches = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    switches += ["--disable-component-update", "--disable-sync"]
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=switches)
        for theme in THEMES:
            file = Path(scratch) / f"{theme}.html"
            file.write_text(page_of(before, theme), encoding="utf-8")
            page = browser.new_page(viewport={"width": 1400, "height": 800})
            page.goto(file.as_uri())
            page.locator("body").screenshot(path=folder / f"{theme}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
