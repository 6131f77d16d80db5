"""Cards without a browser: what they hold after which events, what they hand in, and the inbox of all runs."""

from __future__ import annotations

import getpass
import subprocess
import sys
from types import SimpleNamespace

import pytest
from IPython.lib.pretty import pretty
from pydantic import BaseModel

from attractor_nb import Pipeline, gates
from attractor_nb.errors import AlreadyAnswered, AnswerRefused, NoSuchGate
from attractor_nb.model.events import InterviewCompleted, InterviewStarted, InterviewTimeout
from attractor_nb.notebook.live.gate_card import ClickedAnswer, GateCards, LiveInbox
from attractor_nb.runtime.wired_run import listen
from attractor_nb.testing import ScriptedBackend
from attractor_nb.views.shown_questions import plain_question, settled_words

MAX_LINES = 50

OPTIONS = (("A", "[A] Approve"), ("R", "[R] Redo"), ("S", "Start over"))


def question(question_id="gate:1", kind="multiple_choice", options=OPTIONS, **more):
    event = InterviewStarted(
        question="Good?", stage="gate", question_id=question_id, kind=kind, options=options, **more
    )
    event.time = 100.0
    return event


def answer(question_id="gate:1", **more):
    values = {"answer": "A", "duration": 41.2, "label": "[A] Approve", "answered_by": "widget", **more}
    return InterviewCompleted(question="Good?", stage="gate", question_id=question_id, **values)


def timeout():
    return InterviewTimeout(question="Good?", stage="gate", duration=5, question_id="gate:1")


@pytest.fixture
def given():
    """The answer that a card handed in."""
    return []


@pytest.fixture
def card(given):
    return GateCards(given.append)


def test_a_question_has_what_a_card_shows_of_it():
    plain = plain_question(
        question(
            metadata={"detail": "a diff", "review": [{"name": "plan/response.md", "text": "x", "note": ""}]},
            deadline=160.0,
            form={"name": "Review", "fields": []},
        )
    )
    assert [(choice["key"], choice["label"]) for choice in plain["choices"]] == [
        ("A", "Approve"),
        ("R", "Redo"),
        ("S", "Start over"),
    ]
    assert (plain["since"], plain["deadline"], plain["detail"]) == (100.0, 160.0, "a diff")
    assert plain["materials"] == [{"name": "plan/response.md", "text": "x", "note": "", "shown": [["p", "x"]]}]
    assert plain["form"]["name"] == "Review"


@pytest.mark.parametrize("review", [None, "text", {"name": 1}, [1, None], [[]]])
def test_material_of_a_strange_kind_is_left_out(review):
    assert plain_question(question(metadata={"review": review, "detail": 3}))["materials"] == []


def test_an_answer_is_handed_in_with_comment_and_form(card, given):
    card.ask(plain_question(question()))
    message = {"kind": "answer", "gate": "gate:1", "choice": "R", "text": "fine", "form": {"score": 7}}
    card._on_message(card, message, [])
    assert given == [ClickedAnswer("gate:1", "R", "fine", {"score": 7})]


@pytest.mark.parametrize("message", [{}, {"kind": "answer"}, {"kind": "answer", "gate": "other"}, {"kind": "x"}])
def test_a_message_without_its_question_hands_in_nothing(card, given, message):
    card.ask(plain_question(question()))
    card._on_message(card, message, [])
    assert given == []


def test_questions_wait_in_line_and_one_line_remains_of_each(card):
    card.ask(plain_question(question()))
    card.ask(plain_question(question("other:1")))
    card.hand_in(ClickedAnswer("gate:1", "A"))
    card.settle("gate:1", answer())
    assert [each["key"] for each in card.gates] == ["other:1"]
    assert card.answers == [{"is_answered": True, "words": "Approve, by a person, after 41 s"}]
    card.dismiss()
    assert card.gates == []


def test_a_card_that_another_answer_closes_says_so(card):
    card.ask(plain_question(question()))
    card.settle("gate:1", answer(answered_by="inbox"))
    assert card.answers[0]["words"] == "answered elsewhere: Approve, by a person, in the inbox, after 41 s"


@pytest.mark.parametrize("event", [answer(answered_by="default"), timeout(), None])
def test_nobody_elsewhere_answers_a_timeout(card, event):
    card.ask(plain_question(question()))
    card.settle("gate:1", event)
    assert not any("elsewhere" in line["words"] for line in card.answers)
    assert len(card.answers) == (event is not None)


def test_the_lines_of_past_answers_are_bounded(card):
    for number in range(MAX_LINES + 5):
        card.ask(plain_question(question(f"gate:{number}")))
        card.settle(f"gate:{number}", answer())
    assert len(card.answers) == MAX_LINES


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (AnswerRefused("not so", hint="so"), {"message": "not so\n hint: so", "fields": {}, "is_final": False}),
        (AnswerRefused("x", fields={"score": "high"}), {"message": "", "fields": {"score": "high"}, "is_final": False}),
        (AlreadyAnswered("too late"), {"message": "too late", "fields": {}, "is_final": True}),
        (NoSuchGate("gone", hint="x"), {"message": "gone", "fields": {}, "is_final": True}),
    ],
)
def test_a_refused_answer_is_said_in_place_until_the_question_is_over(error, refusal):
    def refuse(_):
        raise error

    card = GateCards(refuse)
    card.ask(plain_question(question()))
    card.hand_in(ClickedAnswer("gate:1", "A"))
    assert card.refusals == {"gate:1": refusal}
    card.settle("gate:1", answer())
    assert card.refusals == {}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        pytest.param(answer(answered_by="default", duration=61), "Approve, by default, after 1 min 1 s", id="default"),
        pytest.param(answer(answered_by="ada (widget)"), "Approve, by ada, after 41 s", id="a person with a name"),
        pytest.param(answer(answered_by="ada (page)"), "Approve, by ada, on the page, after 41 s", id="on the page"),
        pytest.param(answer(answered_by="call"), "Approve, by a call, after 41 s", id="run.answer"),
        pytest.param(answer(label="", keys=("A", "S")), "A, S, by a person, after 41 s", id="several"),
        pytest.param(answer(form={"score": 7}), "Approve (score=7), by a person, after 41 s", id="form"),
        pytest.param(answer(label="", text="a\nlong " * 40), None, id="long text"),
        pytest.param(timeout(), "no answer at gate after 5 s", id="timeout"),
    ],
)
def test_what_remains_of_a_question_is_one_short_line(event, words):
    line = settled_words(event)
    assert "\n" not in line
    assert len(line) <= 110
    if words:
        assert line == words


# -- the inbox ---------------------------------------------------------------------------------------


class Review(BaseModel):
    score: int


def source(name, more="", on_again=""):
    return f"""digraph {name} {{ start [shape=Mdiamond] review [shape=hexagon, label="Is <b>{name}</b> good?"{more}]
      done [shape=Msquare] start -> review review -> done [label="[A] Approve"] review -> review [label="[R] Again"{on_again}] }}"""


@pytest.fixture
def start(tmp_path):
    """Starts a run that waits at its gate."""
    started = []

    def start(name, more="", on_again="", **options):
        pipeline = Pipeline(source(name, more, on_again), backend=ScriptedBackend(), schemas={"Review": Review})
        run = pipeline.run(interviewer="deferred", logs_root=tmp_path / "runs" / name, **options)
        run.wait_for_gate("review", timeout=30)
        started.append(run)
        return run

    yield start
    for run in started:
        run.cancel()
        run.result(timeout=30)


def test_all_questions_of_all_runs_are_in_one_list_and_answered_there(start, tmp_path):
    first, second = start("first"), start("second", ", human.form=Review")
    inbox = gates(tmp_path / "runs")
    assert [(asked.pipeline, asked.gate) for asked in inbox] == [("first", "review"), ("second", "review")]
    assert "2 questions wait" in str(inbox)
    assert "A = Approve, R = Again; form: score" in str(inbox)
    with pytest.raises(NoSuchGate, match="2 gates `review` wait"):
        inbox.answer("review", "A")
    with pytest.raises(NoSuchGate, match="no gate `other`"):
        inbox.answer("other", "A")
    inbox.answer("second/review", "A", form={"score": 3})
    assert second.result(timeout=30).context["human.gate.form.score"] == 3
    assert [asked.run for asked in gates(tmp_path / "runs")] == [first]
    with pytest.raises(AlreadyAnswered, match="Approve, by call"):
        inbox[1].answer("A")


def test_a_question_of_the_list_is_one_line_in_a_terminal(start, tmp_path):
    run = start("first")
    (asked,) = gates(tmp_path / "runs")
    line = pretty(asked)
    assert line.startswith(f"<gate review of first · run {run.id}: ")
    assert line.endswith('(A = Approve, R = Again); run.answer("review", …)>')
    assert "\n" not in line


def test_cards_with_the_same_words_name_their_run_also_when_no_process_works_on_it(start, live, tmp_path):
    run = start("left")
    run.cancel()
    run.result(timeout=30)
    live.place(gates(tmp_path / "runs"))
    assert [card["about"] for card in live.cards.gates] == ["left · review · run left"]


def test_a_card_names_its_run_by_its_id_without_the_time_also_when_no_process_works_on_it(start, live, tmp_path):
    run = start("left")
    run.cancel()
    run.result(timeout=30)
    run.logs_root.rename(run.logs_root.with_name("2026-11-30T10-38-36Z-reapctld"))
    live.place(gates(tmp_path / "runs"))
    assert live.cards.gates[0]["about"].endswith(" · run reapctld")


def test_the_table_escapes_what_pipelines_say_and_is_the_same_each_time(start, tmp_path):
    start("first")
    bundle = gates(tmp_path / "runs")._repr_mimebundle_()
    assert "<b>" not in bundle["text/html"]
    assert "&lt;b&gt;first" in bundle["text/html"]
    assert bundle == gates(tmp_path / "runs")._repr_mimebundle_()


def test_a_question_of_a_run_that_stands_still_is_listed_with_how_to_go_on(start, tmp_path):
    run = start("left")
    run.cancel()
    run.result(timeout=30)
    (asked,) = gates(tmp_path / "runs")
    assert (asked.pipeline, asked.gate, asked.run) == ("left", "review", None)
    assert asked.how.startswith('Run.load("')
    with pytest.raises(NoSuchGate) as refused:
        asked.answer("A")
    assert "Run.load(" in str(refused.value)


def test_the_question_that_a_run_asks_behind_a_restart_is_listed(start, tmp_path):
    run = start("again", on_again=", loop_restart=true")
    run.answer("review", "R")
    second = run.wait_for_gate("review", timeout=30)
    run.cancel()
    run.result(timeout=30)
    (asked,) = gates(tmp_path / "runs")
    assert asked.event.question_id == second.id
    assert asked.event.time >= second.since
    assert asked.logs_root == tmp_path / "runs" / "again"


def test_a_run_that_cannot_be_read_is_said_and_the_others_are_shown(start, tmp_path):
    for name in ("left", "torn"):
        run = start(name)
        run.cancel()
        run.result(timeout=30)
    log = tmp_path / "runs" / "torn" / "events.jsonl"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0x55
    log.write_bytes(bytes(data))
    inbox = gates(tmp_path / "runs")
    assert [asked.pipeline for asked in inbox] == ["left"]


def test_an_empty_inbox_says_so(tmp_path):
    inbox = gates(tmp_path / "nothing")
    assert (len(inbox), str(inbox)) == (0, "no question waits")


def test_whoever_listens_hears_of_each_gate_that_opens_and_is_over(start):
    heard = []
    stop = listen(lambda run, gate, event: heard.append(type(event).__name__))
    try:
        run = start("heard")
        run.answer("review", "A")
        run.result(timeout=30)
    finally:
        stop()
    assert heard == ["InterviewStarted", "InterviewCompleted", "NoneType"]


def test_a_listener_that_fails_is_not_the_runs_fault(start):
    def fail(*change):
        raise ValueError("a fault of the display")

    stop = listen(fail)
    try:
        run = start("calm")
        run.answer("review", "A")
        assert run.result(timeout=30).status == "success"
    finally:
        stop()


@pytest.fixture
def live():
    made = LiveInbox()
    yield made
    made.stop()


def wait_for(run, gate="review"):
    run.wait_for_gate(gate, timeout=30)


def test_the_live_inbox_has_a_card_for_each_question_and_answers_it(start, live, tmp_path):
    run = start("first")
    live.place(gates(tmp_path / "runs"))
    (shown,) = live.cards.gates
    assert (shown["title"], shown["how"]) == ("Is <b>first</b> good?", "")
    live.cards.hand_in(ClickedAnswer(shown["key"], "A"))
    assert run.result(timeout=30).status == "success"
    event = answer(answered_by=f"{getpass.getuser()} (inbox)")
    live._follow([(run, SimpleNamespace(id="review:1", stage="review"), event)])
    assert live.cards.gates == []
    assert live.cards.answers[0]["words"].startswith(f"first · review: Approve, by {getpass.getuser()}, in the inbox")


def test_what_waits_on_the_disk_has_a_card_that_says_how_to_go_on(start, tmp_path, request):
    run = start("left")
    run.cancel()
    run.result(timeout=30)
    live = request.getfixturevalue("live")
    live.place(gates(tmp_path / "runs"))
    (shown,) = live.cards.gates
    assert "Run.load(" in shown["how"]
    live.cards.hand_in(ClickedAnswer(shown["key"], "A"))
    assert live.cards.refusals[shown["key"]]["is_final"]
    live.place(gates(tmp_path / "nothing"))
    assert live.cards.gates == []


OWNER = """import sys
from attractor_nb import Pipeline
run = Pipeline(sys.argv[1]).run(logs_root=sys.argv[2], interviewer="deferred")
run.wait_for_gate("review", 60)
print("waits", flush=True)
print(run.result(60).status, flush=True)
"""
ASKS = """digraph Far { start [shape=Mdiamond] review [shape=hexagon, label="Good?"] done [shape=Msquare]
  start -> review -> done [label="[A] Approve"] }"""


def test_a_question_of_another_process_is_answered_on_its_card(live, tmp_path):
    command = [sys.executable, "-c", OWNER, ASKS, str(tmp_path / "runs/one")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout.readline() == "waits\n"
            live.place(gates(tmp_path / "runs"))
            (shown,) = live.cards.gates
            assert (shown["title"], shown.get("how", "")) == ("Good?", "")
            live.cards.hand_in(ClickedAnswer(shown["key"], "Z"))
            assert not live.cards.refusals[shown["key"]]["is_final"]
            live.cards.hand_in(ClickedAnswer(shown["key"], "A"))
            assert live.cards.gates == []
            assert live.cards.answers[0]["words"].startswith(
                f"Far · review: Approve, by {getpass.getuser()}, in the inbox"
            )
            assert owner.stdout.readline() == "success\n"
        finally:
            owner.kill()
