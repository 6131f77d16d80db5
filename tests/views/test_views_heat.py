"""Heat: measures of nodes over one run and many, tints with numbers, and text that stays readable on them."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from msgspec.structs import replace

from attractor_nb.decisions.history.journal import Journal
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.events import InterviewCompleted, PipelineStarted, StageCompleted, StageFailed, StageStarted
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.studio.timeline.heat_view import ALPHAS, HUE, MEASURES, heat_of, measure
from attractor_nb.views.drawings.theme import DARK, LIGHT
from tests.views.contrast import contrast

GRAPH = parse_dot(
    'digraph g { s [shape=Mdiamond] plan write [label="<b>&"] d [shape=Msquare] s -> plan -> write -> d }'
)


def past(*stages):
    """A journal of (node, seconds, usage, is_failed), each a visit or, after a failure, another try of it."""
    events, moment = [PipelineStarted(name="g", id="a", time=0.0)], 0.0
    tries: dict[str, int] = {}
    for name, seconds, usage, is_failed in stages:
        attempt = tries.get(name, 0) + 1
        tries[name] = attempt if is_failed else 0
        events.append(StageStarted(name=name, attempt=attempt, time=moment))
        moment += seconds
        kind, status = (StageFailed, "fail") if is_failed else (StageCompleted, "success")
        outcome = Outcome.fail("no") if status == "fail" else Outcome.success()
        end = kind(name=name, attempt=attempt, time=moment, outcome=replace(outcome, usage=usage))
        if is_failed:
            end.will_retry = True
        events.append(end)
    for number, event in enumerate(events, 1):
        event.sequence = number
    return Journal(events)


ONE = past(("plan", 2, Usage(10, 5, 0.5, 1), True), ("plan", 3, Usage(1, 1, None, 1), False), ("write", 1, None, False))


def test_measures_add_up_over_attempts():
    assert measure(ONE, "time") == {"plan": 5, "write": 1}
    assert measure(ONE, "tokens") == {"plan": 17}
    assert measure(ONE, "cost") == {"plan": 0.5}
    assert measure(ONE, "failures") == {"plan": 1, "write": 0}
    assert measure(ONE, "visits") == {"plan": 1, "write": 1}


def test_of_many_runs_the_median_tints_and_the_highest_is_told():
    runs = [past(("plan", seconds, None, False)) for seconds in (1, 2, 30)]
    heat = heat_of(GRAPH, [*runs, ONE], "time")
    assert (heat.nodes["plan"].median, heat.nodes["plan"].most) == (3.5, 30)
    assert heat.words("plan") == "3.50 s (max 30.0 s)"
    assert (heat.level("plan"), heat.level("write"), heat.level("s")) == (5, 2, 0)
    assert "4 runs" in str(heat.table)


def test_what_the_graph_does_not_have_is_told():
    heat = heat_of(GRAPH, [past(("other", 1, None, False))], "time")
    assert heat.nodes == {}
    assert "not in this graph: other" in str(heat.table)
    assert "nothing says its time" in heat.to_svg()


def test_what_must_be_known_of_it_is_written_below_the_picture():
    heat = heat_of(GRAPH, [past(("other", 1, None, False)), ONE], "time", ["3 runs of other pipelines left out"])
    lines = [text.text for text in ET.fromstring(heat.to_svg()).iter("{http://www.w3.org/2000/svg}text")]
    assert "3 runs of other pipelines left out" in lines
    assert "not in this graph: other" in lines


def test_short_times_are_in_milliseconds():
    assert heat_of(GRAPH, [past(("plan", 0.0042, None, False))], "time").words("plan") == "4.2 ms"


def test_the_waits_for_people_are_left_out_by_choice():
    waited = past(("plan", 60, None, False), ("write", 1, None, False))
    answer = InterviewCompleted(duration=58, stage="plan", time=60, sequence=99)
    journal = Journal([*waited.events, answer])
    assert measure(journal, "time") == {"plan": 60, "write": 1}
    assert measure(journal, "time", waits=False) == {"plan": 2, "write": 1}
    assert "without the waits for people" in str(heat_of(GRAPH, [journal], "time", waits=False).table)


@pytest.mark.parametrize("by", MEASURES)
def test_the_picture_is_well_formed_and_equal_and_has_number_and_legend(by):
    heat = heat_of(GRAPH, [ONE], by)
    drawn = heat.to_svg()
    ET.fromstring(drawn)
    assert drawn == heat_of(GRAPH, [ONE], by).to_svg()
    assert f"{by}, one run" in drawn
    if heat.level("plan"):
        assert f"heat-{heat.level('plan')}" in drawn.rpartition("</style>")[2]


def test_a_legend_has_the_tint_of_every_node_and_its_highest_number():
    heat = heat_of(
        GRAPH, [past(*((name, seconds, None, False) for name, seconds in (("plan", 1), ("write", 9))))], "time"
    )
    svg = heat.to_svg()
    legend = svg[svg.rindex('<g class="legend"') :]
    levels = {heat.level(name) for name in ("plan", "write")} - {0}
    assert len(levels) == 2
    for level in levels:
        assert f'fill="{HUE}{ALPHAS[level - 1]}"' in legend
    assert legend.count("<rect") == len(ALPHAS), "a scale from the least to the most"
    assert ">0<" in legend
    assert ">9.00 s<" in legend


def test_no_number_is_told_by_colour_alone():
    drawn = heat_of(GRAPH, [ONE], "time").to_svg().rpartition("</style>")[2]
    assert ">5.00 s<" in drawn
    assert "time: 1.00 s" in drawn


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_on_every_tint_is_readable(palette):
    def over(alpha):
        part = int(alpha, 16) / 255
        page, hue = palette["page"], HUE
        mixed = (round(part * int(hue[at : at + 2], 16) + (1 - part) * int(page[at : at + 2], 16)) for at in (1, 3, 5))
        return "#" + "".join(f"{value:02x}" for value in mixed)

    assert min(contrast(palette["ink"], over(alpha)) for alpha in ALPHAS) >= 4.5
