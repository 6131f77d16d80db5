"""The live view without a browser: what its widgets hold after which events."""

from __future__ import annotations

import asyncio
import getpass
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from attractor_nb import Pipeline
from attractor_nb.languages.dot import read_dot
from attractor_nb.model.events import (
    ChildEvent,
    DebuggerMoved,
    DebuggerStopped,
    InterviewStarted,
    ModelCallEnded,
    PipelineCompleted,
    PipelineStarted,
    StageCompleted,
    StageOutput,
    StageStarted,
    ToolCallEnded,
)
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.model.states import NodeStatus, RunStatus
from attractor_nb.notebook.live.gate_card import ClickedAnswer
from attractor_nb.notebook.live.graph_view import GraphView
from attractor_nb.notebook.live.live_run import Beside, LiveRun
from attractor_nb.notebook.live.live_runs import LiveRuns
from attractor_nb.notebook.live.painting import LoopPainter, ThreadPainter
from attractor_nb.views.folding import fold_event
from attractor_nb.views.state import NodeState, RunView
from attractor_nb.views.summary_line import attempts_allowed, status_line
from attractor_nb.views.texts.prose import prose_of

TAIL_CHARS = 2000
TAILS = 8

GRAPH = read_dot(
    """digraph g {
      start [shape=Mdiamond]
      plan [max_retries=2]
      gate [shape=hexagon, label="Good?"]
      done [shape=Msquare]
      start -> plan -> gate
      gate -> done [label="[A] Approve"]
      gate -> plan [label="[R] Redo"]
      gate -> start [label="Start over"]
    }"""
).graph
OPTIONS = (("A", "[A] Approve"), ("R", "[R] Redo"), ("S", "Start over"))


def question(question_id="gate:1", kind="multiple_choice", options=OPTIONS, **more):
    event = InterviewStarted(
        question="Good?", stage="gate", question_id=question_id, kind=kind, options=options, **more
    )
    event.time = 100.0
    return event


@pytest.fixture
def view():
    made = GraphView(
        on_answer=lambda handed: None,
        on_stop=lambda: None,
        on_inspect=lambda asked: {"kind": "stage", "node": asked["node"]},
        on_debug=lambda asked: {"kind": "debug", "problem": asked["call"]},
        on_beside=lambda asked: {"kind": "beside", "what": asked["what"]},
        known={},
        svg="<svg/>",
    )
    made.sent = []
    made.send = lambda content, buffers=None: made.sent.append(content)
    made.whole = []
    made.send_state = lambda key=None: made.whole.append(key)
    return made


def test_before_the_browser_listens_the_whole_truth_is_sent(view):
    view.show({"nodes": {"plan": {"status": "running"}}})
    assert view.sent == []
    assert view.whole
    assert view.states["nodes"] == {"plan": {"status": "running"}}


def test_once_it_listens_only_changes_are_sent_and_the_truth_is_kept(view):
    view._on_message(view, {"kind": "ready"}, [])
    del view.whole[:]
    view.show({"nodes": {"plan": {"status": "running"}}, "edges": {"0": 1}})
    view.show({"nodes": {"plan": {"status": "success"}}, "line": {"status": "running"}})
    assert [message["kind"] for message in view.sent] == ["delta", "delta"]
    assert view.whole == []
    assert view.get_state("states")["states"]["nodes"] == {"plan": {"status": "success"}}
    assert view.states["edges"] == {"0": 1}
    assert view.states["line"] == {"status": "running"}


def test_the_kept_output_is_bounded(view):
    for _ in range(10):
        view.show({"tails": {"plan": "x" * 1000}})
    assert len(view.states["tails"]["plan"]) == TAIL_CHARS


def test_the_words_of_those_that_spoke_last_are_kept(view):
    for number in range(TAILS + 3):
        view.show({"tails": {f"node_{number}": "one"}})
    view.show({"tails": {"node_5": " two"}})
    assert [*view.states["tails"]] == [*(f"node_{number}" for number in (3, 4, 6, 7, 8, 9, 10)), "node_5"]
    assert view.states["tails"]["node_5"] == "one two"


def test_messages_of_the_browser_reach_the_run(view):
    stopped = []
    view._on_stop = lambda: stopped.append(True)
    view._on_message(view, {"kind": "stop"}, [])
    view._on_message(view, {"kind": "inspect", "node": "plan"}, [])
    view._on_message(view, {"kind": "nonsense"}, [])
    assert stopped == [True]
    assert view.sent == [{"kind": "stage", "node": "plan"}]


def test_a_state_change_is_a_small_message_whatever_the_size_of_the_graph():
    run = RunView(nodes={f"node_{number}": NodeState(NodeStatus.SUCCESS) for number in range(500)})
    event = StageStarted(name="node_7", index=9, visit=2)
    event.time = 1_800_000_000.123
    assert len(repr(fold_event(run, event)[1])) <= 200


def test_the_status_line_names_the_waiting_node_first():
    run = RunView(status=RunStatus.RUNNING, usage=Usage(1000, 240, 0.003, 1))
    run.nodes["gate"] = NodeState(NodeStatus.WAITING)
    run.nodes["plan"] = NodeState(NodeStatus.RUNNING, attempt=2)
    line = status_line(run, GRAPH, started=100.0, now=112.4)
    assert (line["status"], line["node"], line["more"]) == ("waiting", "gate", 1)
    assert (line["tokens"], line["price"], line["elapsed"]) == (1240, "$0.003", 12.4)


def test_the_status_line_grows_with_each_call_and_says_what_has_no_price(live):
    def call(usage):
        return ModelCallEnded(name="plan", index=2, model="m", usage=usage)

    def line():
        return live.graph_view.states["line"]

    live.paint([PipelineStarted(name="g", id="1"), StageStarted(name="plan", index=2)])
    assert not {"tokens", "price"} & line().keys()
    live.paint([call(Usage(10, 5, 0.25, 1))])
    assert (line()["tokens"], line()["price"]) == (15, "$0.25")
    live.paint([call(Usage(20, 5, None, 1)), ToolCallEnded(name="plan", index=2, tool="read")])
    assert (line()["tokens"], line()["price"]) == (40, "≥ $0.25 (1 call unpriced)")
    assert live.graph_view.states["nodes"]["plan"]["note"] == "2 requests, 1 tool call"
    spent = Outcome(StageStatus.SUCCESS, usage=Usage(30, 10, 0.25, 2, unpriced=1))
    live.paint([StageCompleted(name="plan", index=2, outcome=spent, edge=1)])
    assert (line()["tokens"], line()["price"]) == (40, "≥ $0.25 (1 call unpriced)")
    assert "note" not in live.graph_view.states["nodes"]["plan"]


def test_the_status_line_counts_attempts_out_of_those_allowed():
    run = RunView(status=RunStatus.RUNNING, nodes={"plan": NodeState(NodeStatus.RUNNING, attempt=2)})
    line = status_line(run, GRAPH, started=0.0, now=1.0)
    assert (line["attempt"], line["attempts"], attempts_allowed(GRAPH, "gate")) == (2, 3, 1)
    resumed = RunView(status=RunStatus.RUNNING, nodes={"gate": NodeState(NodeStatus.WAITING, attempt=2)})
    assert "attempts" not in status_line(resumed, GRAPH, started=0.0, now=1.0), "no 2/1 after a resume"


def test_the_status_line_of_an_ended_run_says_why_and_stands_still():
    run = RunView(status=RunStatus.FAIL, reason="no key", duration=3.25)
    line = status_line(run, GRAPH, started=1.0, now=900.0)
    assert line["is_ended"]
    assert (line["node"], line["elapsed"]) == ("no key", 3.25)


class FakeRun:
    """A run whose events the test emits."""

    def __init__(self):
        self.graph = GRAPH
        self.logs_root = Path("runs/one")
        self.view = RunView()
        self.is_done = False
        self.observers = []
        self.id = "abc"
        self.debugger = SimpleNamespace(to_plain=lambda: {"breakpoints": ["plan"], "stops": []})

    def on_event(self, observer):
        self.observers.append(observer)
        return lambda: None

    def answer(self, gate, choice="", *, text="", form=None, answered_by=""):
        self.answered = (gate, choice, text, form, answered_by)

    def cancel(self):
        self.is_cancelled = True

    def __getitem__(self, node_id):
        return SimpleNamespace(response=f"{node_id} has spoken")


@pytest.fixture
def live():
    return LiveRun(FakeRun())


def test_a_batch_of_events_becomes_one_change(live):
    usage = Usage(10, 5, calls=1)
    live.paint(
        [
            PipelineStarted(name="g", id="1"),
            StageStarted(name="plan", index=2),
            StageOutput(name="plan", text="first "),
            StageOutput(name="plan", text="words"),
            StageCompleted(name="plan", index=2, outcome=Outcome(StageStatus.SUCCESS, usage=usage), edge=1),
        ]
    )
    states = live.graph_view.states
    assert states["nodes"]["plan"]["status"] == "success"
    assert states["edges"] == {"1": 1}
    assert states["tails"] == {"plan": "first words"}
    assert (states["line"]["tokens"], states["line"]["stages"]) == (15, 1)
    assert live.graph_view.directory == "runs/one"


def test_nothing_is_kept_of_each_attempt(live):
    usage = Usage(10, 5, calls=1)
    ended = [
        StageCompleted(name="plan", index=2, outcome=Outcome(StageStatus.SUCCESS, usage=usage), edge=1)
        for _ in range(100)
    ]
    live.paint([PipelineStarted(name="g", id="1"), *ended])
    assert live._view.attempts == {}
    assert live.graph_view.states["line"]["tokens"] == 1500


def test_branches_that_speak_at_once_are_all_heard(live):
    live.paint([StageOutput(name=name, text=text) for name, text in (("a", "1"), ("b", "2"), ("a", "3"))])
    assert live.graph_view.states["tails"] == {"b": "2", "a": "13"}


def test_a_card_names_the_asking_node_and_the_run(live):
    live.paint([question()])
    assert live.graph_view.gates[0]["about"] == "gate · run abc"


def test_a_card_answers_the_run_as_a_person(live):
    live.paint([question()])
    live.graph_view.hand_in(ClickedAnswer("gate:1", "A", "fine", {"score": 7}))
    assert live.run.answered == ("gate:1", "A", "fine", {"score": 7}, f"{getpass.getuser()} (widget)")


class Kept:
    """An output; what it was told to keep."""

    def __init__(self):
        self.bundles = []

    def update(self, bundle, *, raw):
        assert raw
        self.bundles.append(bundle)

    @property
    def words(self):
        return self.bundles[-1]["text/plain"]


def test_the_end_dismisses_questions_and_leaves_the_view_as_it_is(live):
    live.run.is_done = True
    live.paint([question()])
    live.paint([PipelineCompleted(duration=1.0)])
    assert live.is_over
    assert live.graph_view.gates == []
    assert live.graph_view.comm is not None
    assert live.graph_view.states["line"]["is_ended"]


def test_what_is_kept_follows_what_matters_to_a_reader_and_carries_no_widget(live):
    live.run.is_done = True
    live.show_in(kept := Kept())
    live.paint([PipelineStarted(name="g", id="1"), StageStarted(name="plan", index=2)])
    assert len(kept.bundles) == 1, "a stage that begins is not kept"
    live.paint([question()])
    assert "gate `gate` waits for an answer: Good? (A = Approve, R = Redo, S = Start over)" in kept.words
    live.paint([PipelineCompleted(duration=1.0)])
    assert "waits" not in kept.words
    assert kept.words.startswith("✓ completed")
    for bundle in kept.bundles:
        assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
        assert f'data-attractor-place="{live.key}"' in bundle["text/html"]


def test_what_is_kept_is_renewed_now_and_then_but_always_at_the_end(live):
    live.run.is_done = True
    live.show_in(kept := Kept())
    for number in range(20):
        live.paint([question(f"gate:{number}")])
    assert len(kept.bundles) == 2
    live.paint([PipelineCompleted(duration=1.0)])
    assert len(kept.bundles) == 3


def test_the_answer_of_a_run_stays(live):
    live.run.is_done = True
    live.show_in(kept := Kept())
    done = StageCompleted(name="plan", index=2, outcome=Outcome(StageStatus.SUCCESS), edge=1)
    live.paint([StageStarted(name="plan", index=2), done, PipelineCompleted(duration=1.0)])
    answer = {"node": "plan", "text": "plan has spoken", "shown": prose_of("plan has spoken")}
    assert live.graph_view.states["answer"] == answer
    assert "plan said:\nplan has spoken" in kept.words


def test_a_run_that_is_over_is_shown_as_it_stands_and_asks_nobody_for_a_beat():
    run = FakeRun()
    run.is_done = True
    run.view.status = RunStatus.SUCCESS
    run.view.nodes["plan"] = NodeState(NodeStatus.SUCCESS)
    live = LiveRun(run, is_followed=False)
    assert live.is_over
    assert run.observers == []
    assert not live.graph_view.has_beats
    assert live.graph_view.states["nodes"]["plan"]["status"] == "success"


def test_views_of_runs_that_are_over_are_bounded_and_the_newest_stay():
    views = LiveRuns(most_over=2)
    shown = [views.open(FakeRun()) for _ in range(4)]
    assert [view.graph_view.comm is not None for view in shown] == [False, False, True, True]
    assert views.view_of(shown[0].run) is None
    assert views.view_of(shown[3].run) is shown[3]


def test_a_view_of_a_run_that_goes_on_is_never_let_go():
    views = LiveRuns(most_over=1)
    going = views.open(FakeRun(), is_followed=True)
    for _ in range(3):
        views.open(FakeRun())
    assert views.view_of(going.run) is going
    going.run.is_done = True
    going.paint([PipelineCompleted(duration=1.0)])


def test_a_run_that_somebody_has_asked_for_is_given_a_place_and_not_displayed(capsys):
    views = LiveRuns()
    with views.caught() as started:
        view = views.present(FakeRun())
    assert started == [view]
    assert view._handles == []
    assert capsys.readouterr().out == ""


def test_a_click_asks_about_the_run_that_is_shown():
    asked = []

    def inspect(run, request):
        asked.append((run, request))
        return {"kind": "stage", "node": "plan"}

    run = FakeRun()
    view = LiveRun(run, inspect=inspect).graph_view
    view.send = lambda content, buffers=None: asked.append(content)
    view._on_message(view, {"kind": "inspect", "node": "plan", "visit": 2}, [])
    assert asked == [(run, {"kind": "inspect", "node": "plan", "visit": 2}), {"kind": "stage", "node": "plan"}]


def test_a_resumed_run_begins_with_what_was_done():
    run = FakeRun()
    run.view.nodes["plan"] = NodeState(NodeStatus.SUCCESS)
    assert LiveRun(run).graph_view.states["nodes"] == {"plan": {"status": "success"}}


def test_a_painter_collects_a_burst_and_outlives_a_fault():
    painted, has_failed, is_over = [], threading.Event(), threading.Event()

    def paint(batch):
        painted.append(len(batch))
        if len(painted) == 1:
            has_failed.set()
            raise ValueError("a fault of the display")
        if sum(painted) == 1002:
            is_over.set()

    painter = ThreadPainter(paint, last=(PipelineCompleted,))
    painter.put(StageStarted(name="first"))
    assert has_failed.wait(60)
    for number in range(1000):
        painter.put(StageStarted(name="plan", index=number))
    painter.put(PipelineCompleted(duration=1.0))
    assert is_over.wait(60)
    assert len(painted) < 20


def test_a_quiet_painter_says_that_it_lives_and_outlives_a_fault_of_it():
    beats, is_enough = [], threading.Event()

    def beat():
        beats.append(len(beats))
        if len(beats) == 3:
            is_enough.set()
        raise ValueError("a fault of the display")

    painter = ThreadPainter(lambda batch: None, last=(PipelineCompleted,), beat=beat, beat_seconds=0.01)
    assert is_enough.wait(60)
    painter.put(PipelineCompleted(duration=1.0))


def test_a_beat_is_said_only_to_who_listens(view):
    view.beat()
    assert view.sent == []
    view._on_message(view, {"kind": "ready"}, [])
    view.beat()
    assert view.sent == [{"kind": "beat"}]


def test_without_threads_the_running_loop_paints():
    painted = []

    async def emit():
        is_painted = asyncio.Event()

        def paint(batch):
            painted.append(batch)
            is_painted.set()

        painter = LoopPainter(paint)
        for number in range(100):
            painter.put(StageStarted(name="plan", index=number))
        assert painted == [], "whoever emits never waits"
        await is_painted.wait()

    asyncio.run(emit())
    assert len(painted[0]) == 100


def test_the_picture_is_put_in_place_even_after_a_fault_of_the_display(live):
    live.run.is_done = True
    live.graph_view.show = None
    with pytest.raises(TypeError):
        live.paint([StageStarted(name="plan"), PipelineCompleted(duration=1.0)])
    assert live.is_over


def test_what_the_debugger_says_is_part_of_the_truth_and_its_bar_is_answered(live, view):
    live.paint([DebuggerMoved()])
    assert live.graph_view.states["debugger"] == {"breakpoints": ["plan"], "stops": []}
    live.paint([ChildEvent(name="sub", child_id="1", event=DebuggerStopped(node="draft"))])
    assert live.graph_view.states["debugger"]["breakpoints"] == ["plan"]
    view._on_message(view, {"kind": "debug", "call": "step"}, [])
    assert view.sent == [{"kind": "debug", "problem": "step"}]


def test_a_fork_offers_the_comparison_with_its_parent_and_opens_it_once(tmp_path):
    text = "digraph g { start [shape=Mdiamond] done [shape=Msquare] start -> plan -> done }"
    run = Pipeline(text, backend="simulated").run(runs_dir=tmp_path, is_shown=False)
    run.result(60)
    fork = run.fork("plan", prompt="Another one", is_shown=False)
    fork.result(60)
    assert [LiveRun(each, is_followed=False).graph_view.has_parent for each in (run, fork)] == [False, True]
    beside = Beside(fork, None)
    first, again = (beside.answer({"what": "compare"}) for _ in range(2))
    assert first["place"]
    assert first == again
    steps = beside._opened["compare"].comparison["steps"]
    assert [step["node"] for step in steps if step["differs"]] == ["plan"]
    assert "parent of this fork" in Beside(run, None).answer({"what": "compare"})["problem"]
