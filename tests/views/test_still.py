"""Drawings as they are kept in outputs: images that every page shows, small and the same each time."""

import base64
import re
from xml.etree import ElementTree as ET

import pytest

from attractor_nb import Pipeline, parse_dot
from attractor_nb.views.drawings.svg import picture_bundle, picture_html, render_svg, still_svg

MAX_ALT_CHARS = 1000

TEXT = """digraph g {
    start [shape=Mdiamond] gate [shape=hexagon] done [shape=Msquare]
    draft [prompt="Draft", goal_gate=true, label="A <b> & \\"c\\""]
    start -> draft -> gate
    gate -> done [label="[Y] Yes"]
}"""


@pytest.fixture
def drawn():
    return Pipeline(TEXT).to_svg()


def image_in(html):
    (source,) = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)"', html)
    return base64.b64decode(source).decode()


def test_a_drawing_is_an_image_in_html_and_svg_for_exporters(drawn):
    bundle = picture_bundle(drawn, "words")
    assert list(bundle) == ["text/html", "image/svg+xml", "text/plain"]
    assert image_in(bundle["text/html"]) == bundle["image/svg+xml"]
    assert "<svg" not in bundle["text/html"]
    assert 'alt="words"' in bundle["text/html"]


def test_the_words_of_an_image_are_escaped_and_bounded(drawn):
    html = picture_bundle(drawn, '"><script>' + "x" * 10_000)["text/html"]
    assert "<script" not in html
    assert len(html) < len(picture_bundle(drawn, "")["text/html"]) + MAX_ALT_CHARS + 100


def test_a_kept_drawing_has_every_element_and_less_than_half_of_the_style_sheet(drawn):
    still = still_svg(drawn)
    assert len(still) < len(drawn) - 3_500
    before, after = ([(each.tag, each.attrib) for each in ET.fromstring(text).iter()] for text in (drawn, still))
    assert before == after


def test_a_kept_drawing_keeps_the_rules_of_the_states_it_shows():
    run = Pipeline(TEXT).run(interviewer="auto", wait=True)
    still = still_svg(run.to_svg())
    for rule in (".state-success", "--success-fill:", ".taken .line", "prefers-color-scheme:dark"):
        assert rule in still
    for rule in (".state-fail{", "--fail-fill", "anb-march", "data-jp-theme"):
        assert rule not in still


def test_what_moves_keeps_its_motion(drawn):
    still = still_svg(drawn.replace('state-pending"', 'state-running"', 1))
    assert "@keyframes anb-march" in still
    assert "@keyframes anb-pulse" not in still


def test_a_picture_that_cannot_be_read_in_a_cell_scrolls_at_a_legible_size():
    steps = " -> ".join(f"step_{number}" for number in range(40))
    wide = picture_html(render_svg(parse_dot(f"digraph g {{ rankdir=LR start -> {steps} }}")), "words")
    whole = picture_html(render_svg(parse_dot("digraph g { start -> a -> b }")), "words")
    svg = render_svg(parse_dot(f"digraph g {{ rankdir=LR start -> {steps} }}"))
    width, box = (float(re.search(pattern, svg)[1]) for pattern in (r' width="(\d+)"', r'viewBox="0 0 ([\d.]+)'))
    assert width == round(0.75 * box) > 1080
    assert wide.startswith('<div style="overflow-x:auto"><img ')
    assert f'width="{width:.0f}" style="max-width:none;height:auto"' in wide
    assert whole.startswith("<img ")
    assert "max-width:100%" in whole
