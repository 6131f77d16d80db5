"""Borders as pixels: those of the page, of groups, child runs, nodes and what is selected, at every scale.

Everything else of a drawing is hidden, and what is left is black on white. Then a border has as much ink everywhere
as its stroke is wide, and no ink lies where no border is.
"""

from __future__ import annotations

import base64

import pytest

from attractor_nb import Pipeline
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import picture_html, render_svg

pytestmark = pytest.mark.browser

SCALES = pytest.mark.parametrize("scale", [0.5, 1, 1.25, 1.5, 2, 3])
"""Pixels of the screen for one of the page: zooming a page changes it, and fine screens have more."""
ARTICLE = "digraph article { start [shape=Mdiamond] draft done [shape=Msquare] start -> draft -> done }"
PARENT = """digraph g { rankdir=TB
  start [shape=Mdiamond] exit [shape=Msquare] plan check fan [shape=component] a b join [shape=tripleoctagon]
  subgraph cluster_a { label="Outer words" look [shape=diamond] subgraph cluster_b { label="Inner" mend see } }
  gate [shape=hexagon] boss [shape=house, "stack.child_pipeline"=article]
  tool [shape=parallelogram, tool_command="true"]
  start -> plan -> check -> look -> mend -> see -> fan
  fan -> a -> join
  fan -> b -> join
  join -> gate -> tool -> boss -> exit
  gate -> plan [label="again"]
}"""
BARE = """.page{fill:#fff!important}.panel rect{fill:#fff!important;stroke:#000!important}.lane rect{fill:#fff!important}
.outline{fill:#fff!important;stroke:#000!important}
.edge,.edge-label,text,.mark,.badge,.hatch,.bar,.ring,.again,.ad-fold,.ad-tools{visibility:hidden!important}"""
LIVE = (
    "(window.drawing = makeDrawing(host.get('svg'), host.get('marks'), {}),"
    " el.classList.add('attractor-ui'), el.append(window.drawing.element), () => {})"
)
BORDERS = """([scale, picture]) => {
  const frame = document.querySelector(".ad-frame"), sheet = document.querySelector(".ad-sheet"), found = [];
  const clip = frame && frame.getBoundingClientRect();
  const isSeen = (x, y, by) => !clip ||
    (x >= clip.left * scale + by && x <= (clip.left + frame.clientWidth) * scale - by &&
     y >= clip.top * scale + by && y <= (clip.top + frame.clientHeight) * scale - by);
  const root = document.querySelector("svg.attractor-graph"), unit = new DOMMatrix().scale(scale);
  const matrixOf = (shape) => {
    const drawn = DOMMatrix.fromMatrix(shape.getScreenCTM());
    if (!picture) return unit.multiply(drawn);
    const { left, top, width } = document.querySelector("img").getBoundingClientRect();
    const image = unit.translate(left, top).scale(width / root.viewBox.baseVal.width);
    return image.multiply(DOMMatrix.fromMatrix(root.getScreenCTM()).inverse()).multiply(drawn);
  };
  for (const shape of root.querySelectorAll(".page, .panel rect, .outline")) {
    const style = getComputedStyle(shape);
    if (!shape.getClientRects().length || style.stroke === "none") continue;
    const matrix = matrixOf(shape), zoom = matrix.a, isConstant = picture && style.vectorEffect === "non-scaling-stroke";
    const stroke = parseFloat(style.strokeWidth) * (isConstant ? scale : zoom);
    const length = shape.getTotalLength(), reach = stroke / 2 + 2, near = (reach + 1) / zoom, samples = [];
    const at = (s) => { const { x, y } = DOMPoint.fromPoint(shape.getPointAtLength(s)).matrixTransform(matrix); return [x, y]; };
    for (let s = near; s < length - near; s += length / 150) {
      const [[x, y], [ax, ay], [bx, by]] = [at(s), at(s - near), at(s + near)], far = Math.hypot(bx - ax, by - ay);
      if (far > 1.998 * near * zoom && isSeen(x, y, reach)) samples.push([x, y, (by - ay) / far, (ax - bx) / far]);
    }
    const node = shape.closest("[data-node]"), name = node ? node.dataset.node : shape.parentNode.getAttribute("class");
    const rect = ["x", "y", "width", "height", "rx"].map((side) => shape[side] && shape[side].baseVal.value);
    const { a, b, c, d, e, f } = matrix;
    found.push({ name, stroke, zoom, reach, samples, rect, path: shape.getAttribute("d"), matrix: [a, b, c, d, e, f] });
  }
  if (sheet) {
    const holder = frame.classList.contains("is-cut") ? frame : sheet; // of a drawing that is cut off the frame has the border
    const { left, top, right, bottom } = holder.getBoundingClientRect(), sides = [];
    for (let k = 40; k < 160; k++) {
      const [x, y] = [left + (right - left) * k / 200, top + (bottom - top) * k / 200];
      sides.push([x, top + 0.5, 0, 1], [x, bottom - 0.5, 0, 1], [left + 0.5, y, 1, 0], [right - 0.5, y, 1, 0]);
    }
    const round = 9 * scale, isInFrame = ([x, y, across, down]) => // not where a corner of the frame is round
      isSeen(x, y, 0) && isSeen(x + round * down, y + round * across, 0) && isSeen(x - round * down, y - round * across, 0);
    const samples = sides.map(([x, y, ...normal]) => [x * scale, y * scale, ...normal]).filter(isInFrame);
    const rect = [left + 0.5, top + 0.5, right - left - 1, bottom - top - 1, 7.5], stroke = Math.min(scale, Math.max(1, Math.floor(scale)));
    found.push({ name: "sheet", stroke, zoom: scale, reach: scale / 2 + (holder === frame ? 0.5 : 2), samples, rect, matrix: [scale, 0, 0, scale, 0, 0] });
  }
  return found;
}"""
INK = """async ([picture, borders, edge]) => {
  const image = new Image();
  image.src = picture;
  await image.decode();
  const canvas = document.createElement("canvas");
  const [width, height] = [canvas.width, canvas.height] = [image.width, image.height];
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.drawImage(image, 0, 0);
  let pixels = pen.getImageData(0, 0, width, height).data;
  const dark = (x, y) => x < 0 || y < 0 || x >= width || y >= height ? 0 : 1 - pixels[4 * (y * width + x) + 1] / 255;
  const between = (x, y) => {
    const [a, b] = [Math.floor(x - 0.5), Math.floor(y - 0.5)], [p, q] = [x - 0.5 - a, y - 0.5 - b];
    return (1 - q) * ((1 - p) * dark(a, b) + p * dark(a + 1, b)) + q * ((1 - p) * dark(a, b + 1) + p * dark(a + 1, b + 1));
  };
  const inks = borders.filter(({ samples }) => samples.length).map(({ name, stroke, reach, samples }) => {
    const found = samples.map(([x, y, across, down]) => {
      let ink = 0;
      for (let d = -reach; d <= reach; d += 0.25) ink += between(x + across * d, y + down * d) / 4;
      return ink;
    });
    return { name, stroke, least: Math.min(...found), most: Math.max(...found) };
  });
  pen.strokeStyle = "#fff";
  for (const { stroke, zoom, rect, path, matrix } of borders) {
    pen.setTransform(...matrix);
    pen.lineWidth = (stroke + 4) / zoom;
    const course = new Path2D(path || "");
    if (!path) course.roundRect(...rect);
    pen.stroke(course);
  }
  pen.resetTransform();
  if (edge) pen.lineWidth = 8, pen.strokeRect(...edge); // where what is scrolled is cut off
  pixels = pen.getImageData(0, 0, width, height).data;
  let stray = 0;
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) stray += dark(x, y) > 0.1;
  return { inks, stray };
}"""


def drawn():
    return render_svg(Pipeline(PARENT, pipelines={"article": ARTICLE}).graph, theme="light")


def measured(page, scale, *, is_picture=False, edge=None):
    """Borders that are not whole, with their strokes and the least and most ink of them; and pixels of no border."""
    shot = base64.b64encode(page.screenshot()).decode()
    borders = page.evaluate(BORDERS, [scale, is_picture])
    found = page.evaluate(INK, [f"data:image/png;base64,{shot}", borders, edge])
    broken = [
        ink
        for ink in found["inks"]
        if ink["most"] - ink["least"] > 1 or not 0.5 * ink["stroke"] <= ink["least"] <= ink["stroke"] + 1
    ]
    return {border["name"] for border in borders if border["samples"]}, broken, found["stray"]


@SCALES
@pytest.mark.parametrize("width", [1000, 190])
def test_borders_of_a_picture_are_whole_and_no_line_is_stray(driver, scale, width):
    svg = drawn().replace("</style>", f"{BARE}.page{{stroke:#000!important}}</style>", 1)
    with driver.new_page(width=1040, height=1200, scale=scale) as page:
        page.set_content(
            f"<!doctype html><div style='width:{width}px'>{picture_html(svg, 'words')}</div>"
            f"<div style='position:absolute;left:0;top:0;visibility:hidden'>{svg}</div>"
        )
        page.wait_for_function("() => document.querySelector('img').complete")
        names, broken, stray = measured(page, scale, is_picture=True)
    assert {"panel", "look", "boss", "draft"} < names
    assert (broken, stray) == ([], 0)


@SCALES
def test_borders_of_a_drawing_are_whole_at_every_zoom_selected_and_folded(open_view, scale):
    view = open_view("drawing", LIVE, svg=drawn(), marks=MARK_PATHS, height=1200, scale=scale)
    page = view.page
    page.add_style_tag(content=f"{BARE} .attractor-ui{{--al-line:#000!important}}")
    page.evaluate(
        "() => { drawing.select('plan'); drawing.setNode('a', {status: 'success'}); drawing.setNode('gate', {status: 'fail'}); }"
    )
    frame = page.locator(".ad-frame")
    seen = set()
    for keys in ("", "---", "0+++", "0g--"):
        for key in keys:
            frame.press(key)
        page.evaluate("() => document.activeElement.blur()")
        edge = page.evaluate(
            """(scale) => {
              const frame = document.querySelector(".ad-frame"), { left, top } = frame.getBoundingClientRect();
              return [left * scale, top * scale, frame.clientWidth * scale, frame.clientHeight * scale];
            }""",
            scale,
        )
        names, broken, stray = measured(page, scale, edge=edge)
        assert (keys, broken, stray) == (keys, [], 0)
        seen |= names
    assert {"sheet", "panel", "plan", "gate", "draft"} < seen
    assert any("ad-group" in name for name in seen)
