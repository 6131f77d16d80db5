"""Time travel in a bare page: a slider over the events of a run, without a kernel."""

from __future__ import annotations

import itertools

import pytest

from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.events import (
    InterviewCompleted,
    InterviewStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineRewound,
    PipelineStarted,
    StageCompleted,
    StageFailed,
    StageStarted,
)
from attractor_nb.model.outcome import Outcome
from attractor_nb.studio.replay_frames import replay_of
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg

pytestmark = pytest.mark.browser

GRAPH = parse_dot(
    """digraph release { start [shape=Mdiamond]
    plan [label="Plan the release\\nwith the team", prompt="Write a plan for $goal"]
    build [shape=parallelogram, tool_command="make all"]
    review [shape=hexagon, label="Is the plan good enough to be shown to the customer?"]
    done [shape=Msquare]
    start -> plan -> build -> review  review -> done [label="[Y] Yes"]  review -> plan [label="[N] No"] }"""
)
HOSTILE = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'


def a_run():
    """Events of a run with a failure, a wait for a person, a loop and a rewind."""
    numbers, clock = itertools.count(1), itertools.count(1000, 3)
    events = []

    def tell(kind, **facts):
        events.append(kind(sequence=next(numbers), time=float(next(clock)), run_id="r", **facts))

    def stage(name, visit, edge, outcome=None, **context):
        tell(StageStarted, name=name, visit=visit, attempt=1)
        kind = StageCompleted if outcome is None else StageFailed
        more = {"error": outcome.failure_reason} if outcome else {}
        tell(kind, name=name, visit=visit, outcome=outcome or Outcome.success(), context=context, edge=edge, **more)

    tell(PipelineStarted, name="release", id="r", inputs={"ticket": "T-1"})
    stage("start", 1, 0)
    stage("plan", 1, 1, plan="first", hostile=HOSTILE)
    stage("build", 1, 2, Outcome.fail("make: *** no rule to make target 'all'"), built=False)
    tell(StageStarted, name="review", visit=1)
    tell(InterviewStarted, question="good?", stage="review", question_id="q")
    tell(InterviewCompleted, question="good?", stage="review", question_id="q", answer="N", duration=3.0)
    tell(StageCompleted, name="review", visit=1, outcome=Outcome.success(), context={"answer": "N"}, edge=4)
    stage("plan", 2, 1, plan="second")
    tell(PipelineRewound, node="plan", visit=2, to_sequence=11, stages=1)
    stage("plan", 3, 1, plan="third")
    stage("build", 2, 2, built=True)
    stage("review", 2, 3, answer="Y")
    stage("done", 1, None)
    tell(PipelineCompleted, duration=60.0)
    return events


def texts(node, visit):
    """A stage's texts in the inspector's form."""
    line = {"number": visit, "status": "success", "branch": "", "attempts": 1}
    return {
        "node": node, "label": node, "handler": "codergen", "visit": visit, "visits": [line], "attempt": 1,
        "attempts": [], "status": "success", "reason": "", "prompt": f"prompt of {node}, visit {visit}",
        "carried": "", "response": f"response of {node}, visit {visit}", "notes": "", "branch": "",
        "output": {"stdout": "", "stderr": ""}, "context": [], "files": [], "usage": None, "cost_usd": None,
        "why_here": None, "why_next": None, "path": "", "editor_url": "",
    }  # fmt: skip


def open_replay(open_view, events=None, **options):
    values = {"stages": {}, "is_live": False, **options}
    return open_view(
        "replay",
        "showReplay(host, el)",
        svg=render_svg(GRAPH),
        marks=MARK_PATHS,
        caption="release",
        replay=replay_of(GRAPH, events or a_run()),
        **values,
    )


def state(view, node):
    names = view.page.locator(f"[data-node={node}]").get_attribute("class").split()
    return next(name for name in names if name.startswith("state-"))


def values(view):
    rows = view.page.locator('.ar-values tbody tr:not(:has-text("gone"))').all()
    return {row.locator("td").nth(1).text_content(): row.locator("td").nth(2).text_content() for row in rows}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_graph_words_and_context_follow_the_slider(open_view, dark):
    view = open_replay(open_view, dark=dark)
    assert state(view, "done") == "state-success"
    slider = view.page.get_by_label("Event", exact=True)
    slider.fill("7")
    assert (state(view, "build"), state(view, "plan"), state(view, "done")) == (
        "state-fail", "state-success", "state-pending",
    )  # fmt: skip
    assert values(view)["plan"] == "first"
    long = view.page.locator(".ar-long").first
    low = long.bounding_box()["height"]
    long.focus()
    view.page.keyboard.press("Enter")
    assert long.get_attribute("aria-expanded") == "true"
    assert long.bounding_box()["height"] >= low
    assert values(view)["hostile"] == HOSTILE
    assert view.page.evaluate("window.hit") is None
    view.shoot(f"replay_at_a_failure_{'dark' if dark else 'light'}")
    slider.fill("9")
    assert state(view, "review") == "state-waiting"
    slider.fill("13")
    assert values(view)["plan"] == "second"
    slider.fill("14")
    assert values(view)["plan"] == "first"
    assert "rewound to plan" in view.page.locator(".ar-words").text_content()
    slider.fill("0")
    assert state(view, "start") == "state-pending"
    assert "ticket" not in values(view)
    assert view.console == []


@pytest.mark.kind("a browser")
def test_keys_step_by_event_and_by_stage(open_view):
    view = open_replay(open_view)
    slider = view.page.get_by_label("Event", exact=True)
    slider.focus()
    place = view.page.locator(".ar-place")
    for key, wanted in [
        ("Home", "0 / 23"), ("ArrowRight", "1 / 23"), ("Shift+ArrowRight", "2 / 23"), ("Shift+ArrowRight", "4 / 23"),
        ("ArrowLeft", "3 / 23"), ("Shift+ArrowLeft", "2 / 23"), ("End", "23 / 23"),
    ]:  # fmt: skip
        slider.press(key)
        assert place.text_content() == wanted, key
    assert "23 of 23: pipeline completed" in slider.get_attribute("aria-valuetext")


def test_it_plays_to_its_end_and_can_be_paused(open_view):
    view = open_replay(open_view)
    view.page.get_by_label("Play (Space)").click()
    view.page.get_by_label("Pause (Space)").click()
    before = view.page.locator(".ar-place").text_content()
    assert int(before.split(" / ")[0]) < 23
    view.page.get_by_title("Four times as fast").click()
    assert view.page.get_by_title("Four times as fast").get_attribute("aria-checked") == "true"
    view.page.get_by_label("Event", exact=True).fill("22")
    view.page.get_by_label("Play (Space)").click()
    view.page.wait_for_function("() => document.querySelector('.ar-place').textContent === '23 / 23'")
    view.page.get_by_label("Play (Space)").wait_for()


def open_failed_replay(open_view, **window):
    """The replay of a run that fails at ``build``."""
    events = a_run()[:7]
    failed = PipelineFailed(sequence=8, time=1030.0, run_id="r", error="make failed", duration=30.0)
    return open_replay(open_view, [*events, failed], stages={"build@1": texts("build", 1)}, **window)


@pytest.mark.kind("a browser")
@pytest.mark.parametrize("window", [{}, {"width": 640}, {"dark": True}], ids=["wide", "narrow", "dark"])
def test_the_end_of_a_failed_run_opens_its_failed_stage_and_the_way_back_closes_it(open_view, window):
    view = open_failed_replay(open_view, **window)
    inspector, slider = view.page.locator(".al-inspector"), view.page.get_by_label("Event", exact=True)
    inspector.get_by_text("prompt of build, visit 1").wait_for()
    assert view.page.evaluate("() => scrollY") == 0
    view.shoot("replay_of_a_failed_run_" + "_".join(map(str, window)))
    slider.focus()
    slider.press("ArrowLeft")
    inspector.wait_for(state="hidden")
    slider.press("End")
    inspector.get_by_text("prompt of build, visit 1").wait_for()
    assert view.page.evaluate("() => document.activeElement.type") == "range"
    inspector.get_by_label("Close").click()
    slider.press("End")
    inspector.wait_for(state="hidden")
    assert view.console == []


def test_the_end_of_a_failed_run_leaves_the_stage_that_a_person_opened(open_view):
    view = open_failed_replay(open_view)
    slider = view.page.get_by_label("Event", exact=True)
    slider.fill("6")
    view.page.locator("[data-node=plan]").click()
    slider.fill("8")
    title = view.page.locator(".al-inspector-title")
    assert "plan" in title.text_content()
    slider.fill("6")
    assert title.is_visible()


def test_the_inspector_shows_the_visit_of_the_moment(open_view):
    stages = {f"plan@{visit}": texts("plan", visit) for visit in (1, 2, 3)}
    view = open_replay(open_view, stages=stages)
    view.page.locator("[data-node=plan]").click()
    inspector = view.page.locator(".al-inspector")
    for moment, visit in ((23, 3), (13, 2), (6, 1), (14, 1)):
        view.page.get_by_label("Event", exact=True).fill(str(moment))
        inspector.get_by_text(f"prompt of plan, visit {visit}").wait_for()
    view.page.get_by_label("Event", exact=True).fill("2")
    inspector.get_by_text("had not visited this node yet").wait_for()
    view.page.get_by_label("Event", exact=True).fill("14")
    view.shoot("replay_with_inspector")
    assert view.console == []


def test_where_somebody_answers_texts_are_asked_for_once_the_slider_rests(open_view):
    view = open_replay(open_view, is_live=True)
    view.page.locator("[data-node=plan]").click()
    for moment in ("13", "6"):
        view.page.get_by_label("Event", exact=True).fill(moment)
    view.page.wait_for_function("() => window.sent.length && window.sent[window.sent.length - 1].visit === 1")
    assert view.sent[-1] == {"kind": "inspect", "node": "plan", "visit": 1}


def test_a_click_into_the_strip_goes_there(open_view):
    view = open_replay(open_view)
    strip = view.page.locator(".ar-strip")
    assert strip.locator(".ar-tick.ar-fail").count() == 1
    strip.click(position={"x": 1, "y": 5})
    assert view.page.locator(".ar-place").text_content() == "0 / 23"


MOST_SECONDS_A_STEP = 0.1
"""Of the processor: ten times what it takes."""
SPEED = """() => {
  const slider = document.querySelector('.ar-slider'), times = [];
  const count = Number(slider.max);
  for (let i = 0; i < 120; i += 1) {
    const to = i % 3 ? (Number(slider.value) + 1) % count : Math.floor(((i * 7919) % count));
    const begin = performance.now();
    slider.value = to;
    slider.dispatchEvent(new Event('input'));
    document.body.getBoundingClientRect();
    times.push(performance.now() - begin);
  }
  times.sort((a, b) => a - b);
  return [times[60], times[114], times[119]];
}"""


@pytest.mark.parametrize("size", [50, 200])
def test_a_step_at_500_events_costs_little(open_view, size, driver, record_property):
    line = " -> ".join(["start", *(f"n{number}" for number in range(size - 2)), "done"])
    graph = parse_dot(f"digraph big {{ start [shape=Mdiamond] done [shape=Msquare] {line} }}")
    events = [PipelineStarted(name="big", id="r", sequence=1, time=1.0)]
    nodes = list(graph.nodes)
    while len(events) < 500:
        place, visit = ((len(events) - 1) // 2) % size, (len(events) - 1) // 2 // size + 1
        told = {"sequence": len(events) + 1, "time": 1.0 + len(events), "name": nodes[place], "visit": visit}
        context = {f"{nodes[place]}.response": "words " * 40, "last_stage": nodes[place]}
        events += [
            StageStarted(**told),
            StageCompleted(**{**told, "sequence": len(events) + 2}, outcome=Outcome.success(), context=context, edge=0),
        ]
    view = open_view(
        "replay",
        "showReplay(host, el)",
        is_live=False,
        svg=render_svg(graph),
        marks=MARK_PATHS,
        caption="big",
        replay=replay_of(graph, events[:500]),
        stages={},
    )
    clock = driver.thread_clock(view.page)
    before = clock()
    median, high, highest = view.page.evaluate(SPEED)
    seconds = (clock() - before) / 120
    record_property("milliseconds", [median, high, highest])
    print(
        f"{size} nodes: median {median:.1f} ms, 95 % {high:.1f} ms, highest {highest:.1f} ms; "
        f"{1000 * seconds:.1f} ms of the processor"
    )
    assert seconds < MOST_SECONDS_A_STEP
