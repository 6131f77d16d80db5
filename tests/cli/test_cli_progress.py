"""Events as lines: what a person reads while a run goes on."""

import errno
import io

import pytest

from attractor_nb import Pipeline, Run, current_stage
from attractor_nb.cli.progress import ProgressDisplay
from attractor_nb.cli.quiet_progress import QuietProgress, Tally
from attractor_nb.cli.run_summary import in_words, summary_plain
from attractor_nb.cli.terminal import Line, Terminal, fitted
from attractor_nb.cli.tones import Tone
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import (
    EventsDropped,
    GoalGateUnsatisfied,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    ModelCallEnded,
    ModelCallWaiting,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelStarted,
    PipelineFailed,
    PipelineResumed,
    PipelineStarted,
    RunWarning,
    StageCompleted,
    StageFailed,
    StageOutput,
    StageRetrying,
    StageStarted,
    ToolCallEnded,
)
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.testing import ManualClock

AGAIN = "\N{CLOCKWISE OPEN CIRCLE ARROW}"
TIMES = "\N{MULTIPLICATION SIGN}"

GRAPH = parse_dot("""
digraph G {
    start [shape=Mdiamond]
    write [label="Write it"]
    test  [shape=parallelogram, label="Test it", tool_command="true"]
    done  [shape=Msquare]
    start -> write -> test
    test -> done [label="[G] Green", condition="outcome=success"]
    test -> write [label="Red", condition="outcome!=success"]
}
""")


@pytest.fixture
def a_plain_terminal(monkeypatch):
    """rich takes the stream for a terminal that can move its cursor."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


class Watched:
    """Progress on a stream that can be read."""

    def __init__(self, **options):
        self._stream = io.StringIO()
        terminal = Terminal(self._stream, name_columns=5)
        self.progress = ProgressDisplay(GRAPH, terminal=terminal, **options)

    def after(self, *events):
        for event in events:
            self.progress.take(event)
        return self._stream.getvalue().splitlines()


def completed(name, **fields):
    defaults = {"duration": 1.5, "outcome": Outcome(StageStatus.SUCCESS)}
    return StageCompleted(name=name, **(defaults | fields))


def test_a_stage_is_its_mark_id_label_and_time():
    (line,) = Watched().after(completed("write"))
    assert line.split() == ["✓", "write", "Write", "it", "1.50", "s"]
    assert len(line) == 80


def test_a_stage_says_what_its_attempt_consumed():
    watched = Watched()
    spent = Usage(900, 100, 0.0031, 2)
    failed = Outcome(StageStatus.RETRY, failure_reason="busy", usage=Usage(15))
    lines = watched.after(
        StageFailed(name="write", outcome=failed, error="busy", will_retry=True),
        StageRetrying(name="write", attempt=2, delay=0.2),
        completed("write", outcome=Outcome(StageStatus.SUCCESS, usage=spent), attempt=2),
    )
    assert "busy (15 tokens, unpriced); attempt 2 in 0.20 s" in lines[0]
    assert f"Write it {TIMES}2 (1,000 tokens, $0.0031)" in lines[1]


def test_a_stage_under_way_says_how_often_it_has_called(a_plain_terminal):
    shown = io.StringIO()
    shown.isatty = lambda: True
    progress = ProgressDisplay(GRAPH, terminal=Terminal(shown, name_columns=5))
    for event in (
        StageStarted(name="write", handler_type="codergen"),
        ModelCallEnded(name="write", model="m"),
        ToolCallEnded(name="write", tool="read"),
        ModelCallEnded(name="write", model="m"),
    ):
        progress.take(event)
    block = Terminal(io.StringIO(), name_columns=5)._console
    with block.capture() as captured:
        block.print(progress._block())
    progress.close()
    assert "Write it (2 requests, 1 tool call)" in captured.get()


@pytest.mark.parametrize("is_verbose", [True, False])
def test_verbose_shows_that_a_request_waits_for_the_rates_of_its_provider(is_verbose):
    waiting = ModelCallWaiting(name="write", model="openai:m", seconds=12.4, rates="60 requests a minute")
    lines = Watched(is_verbose=is_verbose).after(StageStarted(name="write", handler_type="codergen"), waiting)
    assert ("waits about 12 s for openai:m" in " ".join(lines)) == is_verbose


def test_the_summary_for_programs_has_usage_by_run_stage_and_attempt(tmp_path):
    spent = Usage(10, 5, 0.25, 1)
    replies = iter([Outcome(StageStatus.RETRY, failure_reason="busy", usage=Usage(3)), spent])

    def answer(node, prompt, context):
        scope = current_stage()
        scope.announce(ModelCallEnded(name=node.id, index=scope.index, model="m", usage=spent))
        reply = next(replies)
        return reply if isinstance(reply, Outcome) else Response("done", usage=reply)

    pipeline = Pipeline(
        "digraph { start [shape=Mdiamond] a [max_retries=1] done [shape=Msquare] start -> a -> done }", backend=answer
    )
    run = pipeline.run(logs_root=tmp_path / "run", clock=ManualClock())
    result = run.result(60)
    plain = summary_plain(run, result, Tally())
    assert plain["usage"] == (Usage(3) + spent).to_plain()
    (stage,) = [stage for stage in plain["stages"] if stage["id"] == "a"]
    assert stage["usage"] == plain["usage"]
    assert stage["usage"]["unpriced_calls"] == 1
    assert (stage["model_calls"], stage["tool_calls"]) == (2, 0)
    assert stage["spent"] == [
        {"visit": 1, "attempt": 1, "status": "retry", "usage": {"input_tokens": 3}},
        {"visit": 1, "attempt": 2, "status": "success", "usage": spent.to_plain()},
    ]
    assert "≥ $0.25 (1 call unpriced)" in in_words(result)
    for seen in (result, Run.load(tmp_path / "run").result()):
        assert str(seen).endswith('18 tokens   ≥ $0.25 (1 call unpriced)   see run["a"]')
        assert "used: 18 tokens, ≥ $0.25 (1 call unpriced)" in str(seen["a"])
        assert "  visit 1, attempt 1: 3 tokens, unpriced" in str(seen["a"])
    assert "used 18 tokens, ≥ $0.25 (1 call unpriced)" in run.details()
    assert "unpriced" not in str(run)  # which is what a saved notebook shows


def test_a_start_has_no_time():
    assert Watched().after(completed("start")) == ["✓ start"]


def test_where_there_was_a_choice_the_way_taken_is_said_without_its_key():
    (line,) = Watched().after(completed("test", edge=2, next_node="done"))
    assert "Test it → Green" in line


def test_a_jump_names_its_target():
    (line,) = Watched().after(completed("test", next_node="start"))
    assert "→ start" in line


def test_attempts_and_visits_are_counted():
    (line,) = Watched().after(completed("write", attempt=3, visit=2))
    assert f"Write it {TIMES}3 {AGAIN}2" in line


@pytest.mark.parametrize(
    ("status", "mark"),
    [(StageStatus.PARTIAL_SUCCESS, "✓~"), (StageStatus.SKIPPED, "\N{EN DASH}")],
    ids=["partial", "skipped"],
)
def test_each_status_has_its_mark(status, mark):
    (line,) = Watched().after(completed("write", outcome=Outcome(status)))
    assert line.startswith(f"{mark} write")


def test_a_failure_says_its_first_words_in_place_of_the_label():
    failed = StageFailed(name="test", duration=0.2, outcome=Outcome.fail("x"), error="it broke\nin two")
    (line,) = Watched().after(failed)
    assert line.startswith("✕ test   it broke in two")


def test_a_retry_is_one_line_with_reason_and_wait():
    failed = StageFailed(name="test", outcome=Outcome.fail("x"), error="it broke", will_retry=True)
    assert Watched().after(failed, StageRetrying(name="test", attempt=2, delay=2.0)) == [
        "↻ test   it broke; attempt 2 in 2.00 s"
    ]


@pytest.mark.parametrize(
    "event",
    [
        InterviewTimeout(question="?", stage="gate", duration=3.0),
        GoalGateUnsatisfied(gate="test", target="write", redirects=1),
        RunWarning(message="a gate was never visited", node="test"),
        EventsDropped(count=3),
    ],
    ids=["timeout", "goal gate", "warning", "dropped"],
)
def test_what_a_person_should_know_is_a_line(event):
    (line,) = Watched().after(event)
    assert line.startswith("! ")
    assert event.description in line


def test_a_resumed_run_says_where_it_goes_on():
    assert Watched().after(PipelineResumed(next_node="test")) == ["↻ test   resumed here"]


def test_a_stage_whose_id_is_a_letter_of_the_sentence_goes_on_here_too():
    line = Watched().after(PipelineResumed(next_node="e", interrupted_node="e", on_interrupted="rerun"))
    assert line == ["↻ e      resumed here, which was cut off and is run again"]


def test_the_heading_comes_with_the_first_event():
    watched = Watched(heading=[("Title", Tone.STRONG), ("", Tone.PLAIN)])
    assert watched.after() == []
    assert watched.after(PipelineStarted(name="G", id="1"), completed("start")) == ["Title", "", "✓ start"]


def test_verbose_shows_a_response_without_what_could_take_over_a_terminal():
    watched = Watched(is_verbose=True)
    lines = watched.after(
        StageStarted(name="write", handler_type="codergen"),
        StageOutput(name="write", text="Hello\x1b[2J "),
        StageOutput(name="write", text="there."),
        completed("write"),
    )
    assert lines[1:] == ["    Hello\\x1b[2J there."]


def test_verbose_shows_a_tool_s_output_as_it_comes_line_by_line_and_never_again():
    watched = Watched(is_verbose=True)
    watched.after(StageStarted(name="test", handler_type="tool"))
    assert watched.after(StageOutput(name="test", text="1 pas", channel="stdout")) == []
    lines = watched.after(
        StageOutput(name="test", text="sed\x1b[2J\n2 f", channel="stdout"),
        StageOutput(name="test", text="oops\n", channel="stderr"),
    )
    assert lines == ["    test | 1 passed\\x1b[2J", "    test | oops"]
    lines = watched.after(completed("test"))
    assert (lines[2], len(lines)) == ("    test | 2 f", 4)


def test_a_tool_s_output_is_no_response():
    lines = Watched(is_verbose=True).after(
        StageStarted(name="test", handler_type="tool"),
        StageOutput(name="test", text="1 passed", channel="stdout"),
        completed("test"),
    )
    assert [line.strip()[:4] for line in lines] == ["test", "✓ te"]


def test_quiet_progress_counts_and_shows_nothing(capfd):
    progress = QuietProgress()
    for event in (StageStarted(name="write"), completed("write"), completed("write")):
        progress.take(event)
    progress.say("nobody reads it")
    progress.close()
    assert capfd.readouterr() == ("", "")
    assert progress.tally.seconds == {("", "write"): 3.0}
    assert progress.tally.attempts == {("", "write"): 1}
    progress.take(PipelineFailed(error="bound", duration=1.0, is_resumable=True))
    assert progress.tally.is_resumable


FAN_OUT = parse_dot("""
digraph G {
    start [shape=Mdiamond]  done [shape=Msquare]
    fan [shape=component]  a [label="First"]  b  c  join [shape=tripleoctagon]
    start -> fan  fan -> a -> c -> join  fan -> b -> join  join -> done
}
""")


def in_branch(kind, name, branch, **fields):
    return kind(name=name, branch=f"fan/{branch}", **fields)


def branch_events():
    """Two branches side by side: one of two stages, one that is cancelled."""
    yield StageStarted(name="fan", handler_type="parallel")
    yield ParallelStarted(name="fan", branch_count=2, join_policy="first_success")
    for branch in ("a", "b"):
        yield in_branch(ParallelBranchStarted, "fan", branch, id=branch, start_node=branch)
        yield in_branch(StageStarted, branch, branch, handler_type="codergen")
    ok = {"outcome": Outcome.success(), "duration": 1.0}
    yield in_branch(StageCompleted, "a", "a", **ok)
    yield in_branch(StageStarted, "c", "a", handler_type="codergen")
    yield in_branch(StageCompleted, "c", "a", **ok)
    end = {"status": "success", "success": True, "duration": 2.0}
    yield in_branch(ParallelBranchCompleted, "fan", "a", id="a", **end)
    cancelled = {"status": "skipped", "failure_reason": "a succeeded"}
    yield in_branch(ParallelBranchCompleted, "fan", "b", id="b", **cancelled)
    yield StageCompleted(name="fan", next_node="join", **ok)


class Fan(Watched):
    """The same with a fan-out, at a terminal or in a pipe."""

    def __init__(self, stream=None, **options):
        self._stream = stream or io.StringIO()
        self.progress = ProgressDisplay(FAN_OUT, terminal=Terminal(self._stream, name_columns=8), **options)


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def test_stages_of_branches_have_the_path_of_their_branch_and_branches_their_time():
    lines = [" ".join(line.split()) for line in Fan().after(*branch_events())]
    assert lines == [
        "✓ fan/a First 1.00 s",
        "✓ fan/a/c 1.00 s",
        "✓ fan/a branch of 2 stages 2.00 s",
        "\N{EN DASH} fan/b cancelled: a succeeded",
        "✓ fan (first_success: won by a) 1.00 s",
    ]


@pytest.mark.usefixtures("a_plain_terminal")
def test_stages_side_by_side_move_beneath_the_lines_each_on_its_own():
    fan = Fan(Screen())
    events = list(branch_events())
    fan.after(*events[:6])
    shown = [line.split()[1] for line in _plain(fan.progress._block())]
    assert shown == ["fan", "fan/a", "fan/b"]
    fan.after(*events[6:8])
    shown = [line.split()[1] for line in _plain(fan.progress._block())]
    assert shown == ["fan", "fan/b", "fan/a/c"]
    fan.after(*events[8:])
    assert _plain(fan.progress._block()) == []
    fan.progress.close()


def _plain(block):
    return [line.plain for line in block.renderables]


def test_more_stages_than_fit_are_counted():
    fan = Fan()
    for number in range(12):
        fan.after(in_branch(StageStarted, f"n{number}", f"n{number}", handler_type="tool"))
    lines = _plain(fan.progress._block())
    assert (lines[0].strip(), len(lines)) == ("+ 4 more", 9)


@pytest.mark.usefixtures("a_plain_terminal")
@pytest.mark.parametrize(
    "end",
    [
        InterviewCompleted(question="?", answer="Y", duration=1.0, question_id="q", stage="a", branch="fan/a"),
        InterviewTimeout(question="?", stage="a", duration=1.0, question_id="q", branch="fan/a"),
        StageCompleted(name="a", branch="fan/a", outcome=Outcome.success()),
        ParallelBranchCompleted(name="fan", id="a", branch="fan/a", status="skipped"),
    ],
    ids=lambda event: event.type,
)
def test_while_a_question_is_on_the_screen_other_branches_write_nothing(end):
    fan = Fan(Screen())
    fan.after(*list(branch_events())[:6])
    fan.after(InterviewStarted(question="?", stage="a", question_id="q", branch="fan/a"))
    before = fan.after()
    assert fan.after(completed("b", branch="fan/b")) == before
    assert any("fan/b" in line for line in fan.after(end)[len(before) - 1 :])
    fan.progress.close()


def test_a_line_without_time_has_no_trailing_blanks():
    assert Terminal(io.StringIO(), name_columns=9).laid_out(Line("✓", "a")).plain == "✓ a"


def test_piped_words_are_never_cut():
    words = "long " * 40
    assert words.strip() in Terminal(io.StringIO()).laid_out(Line("✕", "a", words.strip(), "1 s")).plain


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [("plan", 4, "plan"), ("planning", 5, "plan…"), ("計画する", 5, "計画…")],
    ids=["fits", "cut", "wide characters"],
)
def test_fitted_counts_columns(text, columns, expected):
    assert fitted(text, columns) == expected


@pytest.mark.parametrize(
    "problem", [BrokenPipeError(), OSError(errno.ENOSPC, "No space left on device")], ids=["gone", "full"]
)
def test_a_stream_that_fails_falls_silent(problem):
    tried = []

    class Gone(io.StringIO):
        def write(self, text):
            tried.append(text)
            raise problem

    terminal = Terminal(Gone())
    terminal.say("a")
    tries = len(tried)
    terminal.say("b")
    assert tries == len(tried) > 0
