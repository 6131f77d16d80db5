"""The console: over a pipe, and at a real terminal (spec 6.4, 6.5)."""

import asyncio
import getpass
import io
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import attractor_nb
from attractor_nb.account import signed_here
from attractor_nb.interviewers import ConsoleInterviewer, menus
from attractor_nb.model.question import Answer, AnswerValue, FieldKind, FormField, Option, Question, QuestionType
from attractor_nb.testing import verify_interviewer

CHOICE = Question("Ship it?", options=(Option("A", "[A] Approve"), Option("R", "Reject")), stage="review")


def at_pipe(text, question=CHOICE):
    errors = io.StringIO()
    answer = asyncio.run(ConsoleInterviewer(io.StringIO(text), errors).ask(question))
    return answer, errors.getvalue()


def test_it_keeps_the_interviewer_contract_over_a_pipe():
    lines = "a\ny\nn\nsome words\nt,d\n" * 2
    answers = asyncio.run(verify_interviewer(ConsoleInterviewer(io.StringIO(lines), io.StringIO())))
    assert [answer.value for answer in answers] == ["A", "yes", "no", "some words", "T,D"]


def test_a_question_is_shown_with_its_detail_and_its_keys():
    question = Question("Ship it?", options=CHOICE.options, metadata={"detail": "Read the diff."})
    assert at_pipe("A\n", question)[1] == "[?] Ship it?\nRead the diff.\n  [A] Approve\n  [R] Reject\nSelect: "


@pytest.mark.parametrize(
    "line", ["a", "A", " [A] Approve ", "approve"], ids=["key", "upper-key", "label", "bare-label"]
)
def test_a_line_chooses_by_key_or_label(line):
    answer, _ = at_pipe(f"{line}\n")
    assert (answer.selected_option, answer.answered_by) == (CHOICE.options[0], signed_here("console"))


@pytest.mark.parametrize("error", [ImportError, KeyError, OSError], ids=["no pwd", "before 3.13", "since 3.13"])
def test_a_person_without_a_name_on_this_machine_answers_all_the_same(error, monkeypatch):
    def unnamed():
        raise error("no user 4711")

    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    monkeypatch.setattr(getpass, "getuser", unnamed)
    answer, _ = at_pipe("a\n")
    assert (answer.selected_option, answer.answered_by) == (CHOICE.options[0], "console")


def test_a_wrong_answer_is_asked_again_with_the_choices():
    answer, shown = at_pipe("maybe\n\nr\n")
    assert answer.value == "R"
    assert '"maybe" is not one of the choices: A = "Approve", R = "Reject"' in shown
    assert shown.count("Select: ") == 3


@pytest.mark.parametrize("text", ["", "maybe\n"], ids=["at-once", "after-a-wrong-answer"])
@pytest.mark.parametrize("kind", [QuestionType.MULTIPLE_CHOICE, QuestionType.YES_NO], ids=str)
def test_the_end_of_the_input_is_a_skipped_question_and_never_an_approval(text, kind):
    answer, shown = at_pipe(text, Question("Ship it?", kind, CHOICE.options))
    assert answer.is_skipped
    assert "no more input: the question is skipped" in shown


def test_endless_wrong_input_comes_to_an_end():
    assert at_pipe("maybe\n" * 1000)[0].is_skipped


@pytest.mark.parametrize("word", ["perhaps", "", "ja"], ids=["word", "blank", "other-language"])
def test_yes_and_no_are_never_guessed(word):
    answer, _ = at_pipe(f"{word}\nno\n", Question("Sure?", QuestionType.YES_NO))
    assert answer.value == AnswerValue.NO


def test_control_characters_of_a_pipeline_do_not_reach_the_terminal():
    question = Question("Ship\x1b[2J it?", options=(Option("A", "App\x07rove"),), metadata={"detail": "a\x1bb"})
    shown = at_pipe("A\n", question)[1]
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_news_are_printed():
    errors = io.StringIO()
    console = ConsoleInterviewer(io.StringIO(), errors)
    asyncio.run(console.inform("tests are green", "test"))
    asyncio.run(console.inform("the end", ""))
    assert errors.getvalue() == "[i] test: tests are green\n[i] the end\n"


def test_a_closed_or_missing_stdin_is_no_terminal():
    closed = io.StringIO()
    closed.close()
    assert not ConsoleInterviewer(closed, io.StringIO()).is_terminal


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w") as sender:
        yield stdin, sender


def test_lines_that_come_together_answer_one_question_each(pipe):
    stdin, sender = pipe
    sender.write("a\nr\n")
    sender.flush()
    answers = asyncio.run(ConsoleInterviewer(stdin, io.StringIO()).ask_multiple([CHOICE, CHOICE]))
    assert [answer.value for answer in answers] == ["A", "R"]


def test_a_line_may_arrive_in_pieces_while_the_loop_goes_on(pipe):
    stdin, sender = pipe

    async def ask():
        asking = asyncio.create_task(ConsoleInterviewer(stdin, io.StringIO()).ask(CHOICE))
        for piece in ("app", "rove\r", "\n"):
            await asyncio.sleep(0.01)
            assert not asking.done()
            sender.write(piece)
            sender.flush()
        return await asking

    assert asyncio.run(ask()).value == "A"


def test_a_question_over_a_pipe_times_out_and_the_next_one_is_read(pipe):
    stdin, sender = pipe
    console = ConsoleInterviewer(stdin, io.StringIO())

    async def ask():
        quick = Question("Ship it?", options=CHOICE.options, timeout_seconds=0.02)
        default = Answer("R", selected_option=CHOICE.options[1])
        first = await console.ask(quick)
        second = await console.ask(Question("", options=CHOICE.options, timeout_seconds=0.02, default=default))
        sender.write("a\n")
        sender.flush()
        return first, second, await console.ask(CHOICE)

    first, second, third = asyncio.run(ask())
    assert (first.value, second.value, second.answered_by, third.value) == ("timeout", "R", "default", "A")


def test_a_cancelled_question_leaves_no_thread_behind(pipe):
    stdin, _ = pipe
    before = threading.active_count()

    async def cancel():
        asking = asyncio.create_task(ConsoleInterviewer(stdin, io.StringIO()).ask(CHOICE))
        await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()

    asyncio.run(cancel())
    assert threading.active_count() == before


def test_answers_come_from_a_plain_file_too(tmp_path):
    path = tmp_path / "answers"
    path.write_text("maybe\nR")
    with path.open() as stdin:
        assert asyncio.run(ConsoleInterviewer(stdin, io.StringIO()).ask(CHOICE)).value == "R"


class WithoutReaders(asyncio.SelectorEventLoop):
    """A loop that knows sockets only, as that of Windows does."""

    def add_reader(self, *_):
        raise NotImplementedError


def test_a_loop_that_cannot_wait_for_a_pipe_reads_its_lines_all_the_same(tmp_path):
    (tmp_path / "lines").write_text("maybe\nreject\n")
    errors = io.StringIO()
    with asyncio.Runner(loop_factory=WithoutReaders) as runner, (tmp_path / "lines").open() as stdin:
        console = ConsoleInterviewer(stdin, errors)
        assert runner.run(console.ask(CHOICE)).value == "R"
        assert runner.run(console.ask(CHOICE)).is_skipped
    assert '"maybe" is not one of the choices' in errors.getvalue()


PACKAGE_ROOT = str(Path(attractor_nb.__file__).parent.parent)
PROGRAM = """
import asyncio
from attractor_nb.interviewers import ConsoleInterviewer
from attractor_nb.model.question import FieldKind, Form, FormField
from attractor_nb.model.question import Answer, Option, Question, QuestionType

fields = FormField("score", FieldKind.WHOLE), FormField("risk", FieldKind.CHOICE, choices=("low", "high"))
options = (Option("A", "[A] Approve"), Option("R", "Reject"))
question = Question("Ship it?", QuestionType({kind!r}), options, metadata={{"detail": "Read it."}}, timeout_seconds={timeout}, form=Form("Review", fields) if {has_form} else None)
async def main():
    console = ConsoleInterviewer()
    assert console.is_terminal
    answer = await console.ask(question)
    print("ANSWER", repr(str(answer.value)), repr(answer.text), answer.form)
asyncio.run(main())
"""


class Terminal:
    """A program at a terminal of its own, typed to by the test."""

    def __init__(self, kind="multiple_choice", timeout=None, has_form=False):
        self.screen = ""
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "PYTHONPATH": PACKAGE_ROOT}
        self.program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(kind=kind, timeout=timeout, has_form=has_form)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)

    def read_until(self, text):
        while text not in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.screen):
            try:
                data = os.read(self._ours, 4096)
            except OSError:
                data = b""
            assert data, f"the program ended before it said {text!r}: {self.screen}"
            self.screen += data.decode(errors="replace")

    def type(self, keys):
        os.write(self._ours, keys.encode())

    def close(self):
        os.close(self._ours)
        if self.program.poll() is None:
            os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait()


@pytest.fixture
def terminal():
    opened = []

    def open_terminal(**options):
        opened.append(Terminal(**options))
        return opened[-1]

    yield open_terminal
    for terminal in opened:
        terminal.close()


@pytest.mark.parametrize(
    ("kind", "waits_for", "keys", "expected"),
    [
        ("multiple_choice", "Reject", "r\r", "'R' ''"),
        ("multiple_choice", "Reject", "\x1b[B\r", "'R' ''"),
        ("multi_select", "Reject", " \x1b[B \r", "'A,R' ''"),
        ("multi_select", "Reject", "\r \r", "'A' ''"),
        ("yes_no", "Ship it?", "y\r", "'yes' ''"),
        ("confirmation", "Ship it?", "n\r", "'no' ''"),
        ("freeform", "Ship it?", "add tests\r", "'add tests' 'add tests'"),
        ("freeform", "Ship it?", "\x04", "'skipped' ''"),
    ],
    ids=["key", "arrow", "several", "nothing-selected-is-asked-again", "yes", "no", "text", "end-of-input"],
)
def test_at_a_terminal_keys_answer(terminal, kind, waits_for, keys, expected):
    opened = terminal(kind=kind)
    opened.read_until("Read it.")
    opened.read_until(waits_for)
    for key in re.findall(r"\x1b\[B|.", keys, re.DOTALL):
        opened.type(key)
    opened.read_until(f"ANSWER {expected}")


def test_at_a_terminal_a_form_is_asked_field_by_field(terminal):
    opened = terminal(has_form=True)
    opened.read_until("Reject")
    opened.type("a")
    opened.type("\r")
    opened.read_until("score (a whole number)")
    opened.type("many\r")
    opened.read_until("score: takes a whole number")
    opened.type("7\r")
    opened.read_until("high")
    opened.type("\x1b[B")
    opened.type("\r")
    opened.read_until("ANSWER 'A' '' {'score': 7, 'risk': 'high'}")


def test_the_end_of_the_input_within_a_form_skips_the_question(terminal):
    opened = terminal(has_form=True)
    opened.read_until("Reject")
    opened.type("a")
    opened.type("\r")
    opened.read_until("score (a whole number)")
    opened.type("\x04")
    opened.read_until("ANSWER 'skipped'")


def test_at_a_terminal_the_time_runs_out_too(terminal):
    opened = terminal(timeout=0.5)
    opened.read_until("Ship it?")
    opened.read_until("no answer in time")
    opened.read_until("ANSWER 'timeout'")


def test_ctrl_c_at_a_menu_is_the_interrupt_that_it_would_have_been(terminal):
    opened = terminal()
    opened.read_until("Reject")
    opened.type("\x03")
    opened.read_until("KeyboardInterrupt")
    assert opened.program.wait(60) != 0


class TestTheMenuItself:
    """In this process, with keys from a pipe and a screen that shows nothing."""

    @pytest.fixture
    def keys(self, monkeypatch):
        """Typed text."""
        with create_pipe_input() as pipe:
            monkeypatch.setattr(menus, "create_input", lambda stdin: pipe)
            monkeypatch.setattr(menus, "create_output", lambda stderr: DummyOutput())
            monkeypatch.setattr(ConsoleInterviewer, "is_terminal", property(lambda console: True))
            yield pipe

    def test_the_end_of_the_input_is_a_skipped_question(self, keys):
        keys.send_text("\x04")
        answer, _ = at_pipe("", Question("Why?", QuestionType.FREEFORM))
        assert (answer.is_skipped, answer.answered_by) == (True, signed_here("console"))

    def test_the_end_of_the_input_within_a_form_is_no_answer(self, keys):
        keys.send_text("\x04")
        ask = menus.field_menu(io.StringIO(), io.StringIO())
        assert asyncio.run(ask(FormField("score", FieldKind.WHOLE))) is None

    def test_an_answer_that_is_refused_is_told_and_asked_for_again(self, keys):
        keys.send_text("\r \r")
        answer, shown = at_pipe("", Question("Which?", QuestionType.MULTI_SELECT, CHOICE.options))
        assert answer.value == "A"
        assert shown.count("\n") == 1
        assert 'A = "Approve"' in shown

    def test_ctrl_c_is_the_signal_that_it_would_have_been_and_no_answer(self, keys, monkeypatch):
        sent = []

        async def asked():
            monkeypatch.setattr(menus.os, "kill", lambda *signal: (sent.append(signal), asking.cancel()))
            asking = asyncio.ensure_future(menus.ask_by_menu(CHOICE, io.StringIO(), io.StringIO()))
            keys.send_text("\x03")
            await asyncio.wait([asking])
            return asking

        assert asyncio.run(asked()).cancelled()
        assert sent == [(os.getpid(), signal.SIGINT)]
