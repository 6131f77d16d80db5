"""Colours: readable in both themes, and never alone in telling a state."""

import re

import pytest

from attractor_nb.model.states import NodeStatus
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.theme import DARK, LIGHT, drawing_css, root_class
from attractor_nb.views.output_styles import findings_css, table_css
from tests.views.contrast import contrast

PALETTES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
FILLS = [name for name in LIGHT if name.endswith("-fill")]
LINES = [name for name in LIGHT if name.endswith("-line") and name != "panel-line"]


@PALETTES
@pytest.mark.parametrize("text", ["ink", "dim"])
@pytest.mark.parametrize("ground", ["page", "panel", *FILLS])
def test_text_has_a_contrast_of_four_and_a_half(palette, text, ground):
    assert contrast(palette[text], palette[ground]) >= 4.5


@PALETTES
@pytest.mark.parametrize("line", [name for name in LINES if name != "pending-line"])
def test_marks_have_a_contrast_of_four_and_a_half(palette, line):
    assert contrast(palette["on-mark"], palette[line]) >= 4.5


@PALETTES
@pytest.mark.parametrize("line", ["line", "taken", *LINES])
def test_strokes_stand_out_from_the_page(palette, line):
    assert contrast(palette[line], palette["page"]) >= 3


@PALETTES
@pytest.mark.parametrize("line", ["fail-line", "waiting-line", "running-line"])
def test_signs_of_findings_can_be_read(palette, line):
    assert contrast(palette[line], palette["page"]) >= 4.5


def test_both_palettes_name_the_same_colours():
    assert LIGHT.keys() == DARK.keys()


def test_every_status_has_a_mark_of_its_own():
    assert MARK_PATHS.keys() == set(NodeStatus)
    paths = [path for path in MARK_PATHS.values() if path]
    assert len(paths) == len(set(paths)) == len(NodeStatus) - 1


def test_motion_stops_when_the_reader_asks_for_it():
    assert re.search(r"@media \(prefers-reduced-motion:reduce\)\{[^}]*animation:none", drawing_css())


@pytest.mark.parametrize("css", [drawing_css(), findings_css(), table_css()], ids=["drawing", "findings", "table"])
def test_rules_reach_nothing_but_our_own_elements(css):
    selectors = re.findall(r"(?:^|[}{])([^{}@]+)\{", css.replace("\n", ""))
    keyframes = {"to", "50%"}
    for selector in selectors:
        for part in re.split(r",(?![^(]*\))", selector):  # those in parentheses belong to one
            assert root_class() in part or part.strip() in keyframes, part


def test_the_dark_theme_follows_the_host():
    css = drawing_css()
    assert "@media (prefers-color-scheme:dark)" in css
    assert '[data-jp-theme-light="false"]' in css
    assert ".jp-mod-dark" in css
