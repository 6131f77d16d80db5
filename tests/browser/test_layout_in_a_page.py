"""The geometry of cards, inspector, replay and comparison: edges in common, one line where one is enough, nothing cut off."""

from __future__ import annotations

import time

import pytest
from pydantic import BaseModel, Field

from attractor_nb.handlers.named_models import named_form
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.events import InterviewStarted, PipelineCompleted, PipelineStarted, StageCompleted, StageStarted
from attractor_nb.model.graph import Node
from attractor_nb.model.outcome import Outcome
from attractor_nb.studio.replay_frames import replay_of
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.shown_questions import plain_question

pytestmark = pytest.mark.browser

LAPTOP = {"width": 1366, "height": 640}  # what JupyterLab leaves of 768
SCREEN = {"width": 1920, "height": 950}
NARROW = {"width": 560, "height": 640}
SIZES = {"laptop": LAPTOP, "screen": SCREEN, "narrow": NARROW}
DOT = """digraph refund { rankdir=RANK start [shape=Mdiamond] sort [label="Classify", prompt="Sort it"]
  draft [label="Draft an answer", prompt="Draft it"] check [label="Check the tone", prompt="Check it"]
  ask [shape=hexagon, label="Send this answer?"] send [label="Send", prompt="Send it"] done [shape=Msquare]
  start -> sort -> draft -> check -> ask ask -> send [label="[S] Send"] ask -> draft [label="[A] Again"] send -> done }"""
SHAPES = {"flat": "LR", "tall": "TB"}
LETTER = "# Your refund is on its way\n\nDear Ada,\n\n" + "We refund the whole price to your card.\n\n" * 20
STAGE = {
    "kind": "stage",
    "status": "success",
    "visit": 1,
    "attempt": 1,
    "prompt": "Write it.\n" * 40,
    "response": "It is written.",
    "context": [{"key": "a", "change": "added", "before": None, "after": "1"}],
    "files": [{"path": "response.md", "bytes": 10}],
    "attempts": [],
    "visits": [],
    "actions": {
        "prompt": "Write it to $name.",
        "is_pinned": False,
        "fork": {"call": 'fork = run.fork("draft")', "why": ""},
        "rewind": {"call": 'run = run.rewind("draft")', "why": "The run waits at ask: answer, or stop it."},
        "pin": {"call": 'run.pin("draft")', "why": ""},
    },
}


class Verdict(BaseModel):
    score: int = Field(7, ge=0, le=10, description="10 is ready to be sent")
    risk: bool = False
    findings: list[str] = []
    summary: str = "fine"


def question(**more):
    event = InterviewStarted(
        question="Send this answer?",
        stage="ask",
        question_id="ask:1",
        kind="multiple_choice",
        options=(("S", "[S] Send"), ("A", "[A] Again")),
        form=named_form(Node("ask", {"human.form": "Verdict"}), {"Verdict": Verdict}).to_plain(),
        metadata={"review": [{"name": "draft/response.md", "text": LETTER, "note": ""}]},
        **more,
    )
    event.time = time.time() - 20
    return plain_question(event)


@pytest.fixture
def open_run(open_view):
    """Opens the live view of a run at its gate."""

    def open_(shape, size, *, asks=True, **options):
        nodes = {name: {"status": "success"} for name in ("start", "sort", "draft", "check")}
        line = {"status": "waiting", "node": "ask", "stages": 4, "elapsed": 12.4}
        states = {"nodes": {**nodes, "ask": {"status": "waiting"}}, "edges": {}, "line": line, "tails": {}}
        states |= options.pop("states", {})
        values = {"svg": render_svg(parse_dot(DOT.replace("RANK", SHAPES[shape]))), "marks": MARK_PATHS}
        gates = {"gates": [question()] if asks else [], "answers": [], "refusals": {}, "has_gates": True}
        values |= {"caption": "demo", "states": states, **gates, "has_output": True, **options}
        view = open_view("live_view", "showLiveRun(host, el, shareStates(host))", **values, **SIZES[size])
        view.page.evaluate(
            "() => { const below = document.createElement('p'); below.id = 'below'; below.textContent = 'The next cell';"
            " below.style.height = '2000px'; document.body.append(below); }"
        )
        view.page.wait_for_function("() => document.querySelector('.ad-frame').style.height")
        return view

    return open_


class Box:
    """The edges of an element in the window."""

    def __init__(self, view, selector):
        found = view.page.locator(selector).locator("visible=true").first
        place = found.bounding_box()
        self.left, self.top, self.width, self.height = (place[name] for name in ("x", "y", "width", "height"))
        self.right, self.bottom = self.left + self.width, self.top + self.height

    def __repr__(self):
        return f"x {self.left:.0f} to {self.right:.0f}, y {self.top:.0f} to {self.bottom:.0f}"

    def overlaps(self, other):
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def is_seen(view, selector):
    """True if all of an element is in the window, and nothing lies over its middle."""
    place, window = Box(view, selector), view.page.viewport_size
    middle = [(place.left + place.right) / 2, (place.top + place.bottom) / 2]
    inside = place.top >= 0 and place.bottom <= window["height"] and place.left >= 0 and place.right <= window["width"]
    found = "([x, y, wanted]) => Boolean(document.elementFromPoint(x, y)?.closest(wanted))"
    return inside and view.page.evaluate(found, [*middle, selector])


def open_stage(view, node="draft"):
    view.page.locator(f"[data-node={node}]").first.click()
    view.tell(**STAGE, node=node)
    view.page.locator(".al-tab").first.wait_for()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_the_choices_of_a_gate_are_in_sight_before_the_comment_also_beside_an_inspector(open_run, shape, size):
    view = open_run(shape, size)
    assert is_seen(view, ".attractor-choice"), Box(view, ".attractor-choice")
    assert Box(view, ".attractor-choice").bottom <= Box(view, ".ag-text").top
    if size != "narrow":
        open_stage(view)
        for part in (".attractor-choice", ".al-inspector-title", ".al-tab"):
            assert is_seen(view, part), (part, Box(view, part))
    assert view.page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_the_inspector_has_one_line_of_head_one_of_tabs_and_then_its_content(open_run, shape, size):
    view = open_run(shape, size)
    open_stage(view)
    inspector, title = Box(view, ".al-inspector"), Box(view, ".al-inspector-title")
    head = [Box(view, f".al-inspector-head > {part}") for part in (".al-inspector-state", ".as-actions", ".al-close")]
    for part in head:
        assert abs((part.top + part.bottom) - (title.top + title.bottom)) < 8, (part, title)
        assert part.right <= inspector.right
    assert title.right <= head[0].left
    assert head[0].right <= head[1].left
    tabs = view.page.locator(".al-tab:visible")
    assert len({tab.bounding_box()["y"] for tab in tabs.all()}) == 1
    assert tabs.last.bounding_box()["x"] + tabs.last.bounding_box()["width"] <= inspector.right
    assert Box(view, ".al-tab-panel").top - inspector.top < 80
    off = view.page.get_by_role("button", name="Rewind to before this stage")
    assert "The run waits at ask" in off.get_attribute("title")
    assert view.page.locator(".as-panel").is_hidden()


def test_the_folded_parts_of_a_prompt_are_below_its_own_text(open_run):
    view = open_run("flat", "laptop")
    view.page.locator("[data-node=draft]").first.click()
    view.tell(**{**STAGE, "carried": "What was before.", "node": "draft"})
    text, fold = Box(view, ".al-tab-panel > .al-text"), Box(view, ".al-part summary")
    assert text.bottom <= fold.top < text.bottom + 24
    view.page.locator(".al-part summary").first.click()
    assert Box(view, ".al-tab-panel > .al-text").bottom <= Box(view, ".al-part").top


CARDS = (".ad-frame", ".ad-sheet", ".ag-card", ".al-inspector")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_drawing_card_and_inspector_end_at_one_right_edge(open_run, shape, size):
    view = open_run(shape, size)
    open_stage(view)
    edge = Box(view, ".al-line").right
    if shape == "flat" and size != "narrow":
        assert Box(view, ".ad-sheet").right == pytest.approx(edge, abs=1)
        card, inspector = Box(view, ".ag-card"), Box(view, ".al-inspector")
        assert (card.top, inspector.right) == (pytest.approx(inspector.top, abs=1), pytest.approx(edge, abs=1))
        assert card.width == pytest.approx(inspector.width, abs=1)
    elif size != "narrow":
        assert Box(view, ".ad-sheet").right == pytest.approx(Box(view, ".ad-frame").right, abs=1)
        assert [Box(view, part).right for part in (".ag-card", ".al-inspector")] == [pytest.approx(edge, abs=1)] * 2
    else:
        rights = [Box(view, part).right for part in (".ad-frame", ".ag-card", ".al-inspector")]
        assert rights == [pytest.approx(edge, abs=1)] * 3


@pytest.mark.parametrize("shape", SHAPES)
def test_on_a_high_window_the_column_is_higher_than_the_drawing(open_run, shape):
    view = open_run(shape, "screen")
    open_stage(view)
    card, inspector, frame = Box(view, ".ag-card"), Box(view, ".al-inspector"), Box(view, ".ad-frame")
    assert is_seen(view, ".ag-material")
    if shape == "tall":
        assert inspector.bottom > frame.bottom
    assert card.height > 400, "the material has more than a few lines"
    assert max(card.bottom, inspector.bottom) > 0.7 * SCREEN["height"]


@pytest.mark.parametrize("node", ["start", "draft", "done"])
def test_on_a_narrow_page_a_click_shows_the_content_of_a_stage_and_the_stage(open_run, node):
    view = open_run("tall", "narrow", asks=False)
    open_stage(view, node)
    assert is_seen(view, f"[data-node={node}]"), Box(view, f"[data-node={node}]")
    content = Box(view, ".al-tab-panel")
    assert content.top + 80 < NARROW["height"], content
    assert is_seen(view, ".al-inspector-title")
    assert not Box(view, ".al-inspector").overlaps(Box(view, f"[data-node={node}] .outline"))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_the_tools_of_a_drawing_cover_no_node(open_run, shape, size):
    view = open_run(shape, size, asks=False)
    view.page.locator(".ad-frame").hover()
    at_rest = """() => new Promise((done) => {
      const frame = document.querySelector(".ad-frame");
      let [place, since] = ["", performance.now()];
      const look = (now) => {
        if (`${frame.scrollLeft} ${frame.scrollTop}` !== place) since = now;
        place = `${frame.scrollLeft} ${frame.scrollTop}`;
        if (now - since > 200) done();
        else requestAnimationFrame(look);
      };
      look(since);
    })"""
    view.page.evaluate(at_rest)  # it follows what runs
    tools, frame = Box(view, ".ad-tools"), Box(view, ".ad-frame")
    assert frame.left <= tools.left < tools.right <= frame.right
    assert frame.top <= tools.top < tools.bottom <= frame.bottom
    for node in view.page.locator(".ad-frame [data-node] .outline").all():
        place = node.bounding_box()
        beside = place["x"] >= tools.right or place["x"] + place["width"] <= tools.left
        assert beside or place["y"] >= tools.bottom or place["y"] + place["height"] <= tools.top


@pytest.mark.parametrize("words", ["It was sent.", "It was sent.\n" * 30], ids=["short", "long"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_below_a_run_that_has_ended_there_is_no_blank_room(open_run, shape, size, words):
    view = open_run(shape, size, has_beside=True)
    view.set("gates", [])
    view.set("answers", [{"is_answered": True, "words": "Send, by ada, after 41 s"}])
    below, frame = Box(view, "#below").top, Box(view, ".ad-frame").top
    view.tell(
        kind="delta",
        line={"status": "success", "is_ended": True, "stages": 7, "elapsed": 44},
        answer={"node": "send", "text": words, "shown": None},
    )
    view.page.locator(".al-answer").wait_for()
    assert (Box(view, "#below").top, Box(view, ".ad-frame").top) == (below, frame), "the end moves nothing"
    whole = view.page.get_by_role("button", name="Show all")
    assert whole.count() == (words.count("\n") > 2)
    lowest = max(Box(view, part).bottom for part in (".ad-frame", ".ag-answers", ".al-answer pre"))
    assert below - lowest < 70
    if size == "narrow":
        assert frame - Box(view, ".ag-answers").bottom < 20
    elif shape == "tall":
        assert Box(view, ".al-answer").top - Box(view, ".ag-answers").bottom < 30
    if whole.count():
        before = Box(view, ".al-answer pre").height
        whole.click()
        assert Box(view, ".al-answer pre").height >= before


@pytest.fixture
def open_replay(open_view):
    """Opens the replay of a run of seven stages, at its end."""

    def open_(shape, size):
        graph = parse_dot(DOT.replace("RANK", SHAPES[shape]))
        events = [PipelineStarted(sequence=1, time=0.0, run_id="r", name="refund", id="r")]
        for place, name in enumerate(("start", "sort", "draft", "check", "ask", "send", "done")):
            events.append(StageStarted(sequence=len(events) + 1, time=1.0 + place, run_id="r", name=name))
            about = {"outcome": Outcome.success(), "context": {f"{name}.response": "words " * 9}, "edge": place}
            events.append(StageCompleted(sequence=len(events) + 1, time=1.5 + place, run_id="r", name=name, **about))
        events.append(PipelineCompleted(sequence=len(events) + 1, time=8.0, run_id="r", duration=8.0))
        values = {
            "svg": render_svg(graph),
            "marks": MARK_PATHS,
            "caption": "refund",
            "replay": replay_of(graph, events),
        }
        view = open_view("replay", "showReplay(host, el)", stages={}, **values, **SIZES[size])
        view.page.wait_for_function("() => document.querySelector('.ad-frame').style.height")
        return view

    return open_


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_the_slider_of_a_replay_is_in_sight_with_the_drawing(open_replay, shape, size):
    view = open_replay(shape, size)
    scrubber, frame = Box(view, ".ar-scrubber"), Box(view, ".ad-frame")
    for part in (".ar-slider", ".ar-buttons", ".ar-words"):
        assert is_seen(view, part), (part, Box(view, part))
    if size == "narrow":
        assert scrubber.bottom <= frame.top
    elif shape == "tall":
        assert (scrubber.left >= frame.right, scrubber.top) == (True, pytest.approx(frame.top, abs=2))
        assert Box(view, ".ar-context").left == pytest.approx(scrubber.left, abs=2)
    else:
        assert frame.bottom <= scrubber.top
    view.page.locator("[data-node=draft]").first.click()
    view.tell(**STAGE, node="draft")
    for part in (".al-inspector-title", "[data-node=draft]", ".al-tab", ".ar-slider"):
        assert is_seen(view, part), (part, Box(view, part))
    assert Box(view, ".al-tab-panel").top + 60 < SIZES[size]["height"]
    inspector = Box(view, ".al-inspector")
    assert not inspector.overlaps(Box(view, ".ar-scrubber"))
    assert inspector.right == pytest.approx(Box(view, ".ar-stage").right, abs=1)


def test_the_time_of_a_replay_is_said_once(open_replay):
    view = open_replay("flat", "laptop")
    text = view.page.locator(".attractor-replay").inner_text()
    assert text.count("8.0 s") == 1
    assert "pipeline completed" in text
