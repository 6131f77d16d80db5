"""Holding interrupts back: the first is noted, the second is raised, and nothing stays behind."""

import signal
import sys
import threading
from pathlib import Path

import pytest

from attractor_nb import interrupts
from attractor_nb.interrupts import held_interrupts

pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="Python interrupts the main thread alone"
)


@pytest.fixture(autouse=True)
def _own_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def press():
    signal.raise_signal(signal.SIGINT)


def test_the_first_interrupt_waits_for_the_end_of_the_block():
    done = []
    with pytest.raises(KeyboardInterrupt), held_interrupts() as held:  # noqa: PT012 - what comes after it is tested
        press()
        done.append(held.is_noted)
    assert done == [True]


def test_the_second_is_raised_at_once():
    done = []
    with pytest.raises(KeyboardInterrupt), held_interrupts():  # noqa: PT012 - what comes after it is tested
        press()
        done.append(1)
        press()
        done.append(2)
    assert done == [1]


def test_an_inner_block_is_told_of_an_interrupt_that_came_before_it():
    called = []
    with pytest.raises(KeyboardInterrupt), held_interrupts():  # noqa: PT012 - what comes after it is tested
        press()
        with held_interrupts(lambda: called.append("now")) as inner:
            assert inner.is_noted
        called.append("after")
    assert called == ["now", "after"]


def test_what_is_to_be_done_is_done_in_every_block_once():
    called = []
    outer, inner = (lambda: called.append("outer")), (lambda: called.append("inner"))
    with pytest.raises(KeyboardInterrupt), held_interrupts(outer), held_interrupts(inner):
        press()
    assert called == ["outer", "inner"]


def test_what_is_left_for_the_end_is_done_when_an_interrupt_has_come_by_then():
    called = []
    with pytest.raises(KeyboardInterrupt), held_interrupts() as held:  # noqa: PT012 - likewise
        held.at_end(lambda: called.append("end"))
        press()
        called.append("block")
    assert called == ["block", "end"]


def test_what_is_left_for_the_end_is_not_done_without_an_interrupt():
    called = []
    with held_interrupts() as held:
        held.at_end(lambda: called.append("end"))
    assert called == []


def test_what_is_done_at_the_end_may_say_what_came_of_it():
    def refuse():
        raise LookupError

    with pytest.raises(LookupError), held_interrupts() as held:  # noqa: PT012 - likewise
        held.at_end(refuse)
        press()


@pytest.mark.parametrize(
    "line", ["if held in _HELD:", "if not _HELD and signal.getsignal", "held.finish()\n    finally"]
)
def test_an_interrupt_in_the_last_moment_is_told_as_the_others_are(line):
    """Pressed before a line of the block's own end, by a trace function."""
    called = []
    source = Path(interrupts.__file__).read_text("utf-8")
    number = source[: source.index(line)].count("\n") + 1

    def trace(frame, event, argument):
        if frame.f_code.co_filename != interrupts.__file__:
            return None
        if event == "line" and frame.f_lineno == number:
            sys.settrace(None)
            press()
        return trace

    before = sys.gettrace()
    try:
        with pytest.raises(KeyboardInterrupt), held_interrupts() as held:  # noqa: PT012 - likewise
            held.at_end(lambda: called.append("end"))
            sys.settrace(trace)
            sys._getframe().f_trace = trace
    finally:
        sys.settrace(before)
    assert called == ["end"]


def test_an_interrupt_while_a_block_lets_go_is_told_as_the_others_are(monkeypatch):
    """As the test before, without a trace function, which hides the line from those that measure."""
    called, presses = [], [press]
    let_go = interrupts._let_go

    def pressed(held):
        if presses:
            interrupts._HELD.remove(held)
            presses.pop()()
        let_go(held)

    monkeypatch.setattr(interrupts, "_let_go", pressed)
    with pytest.raises(KeyboardInterrupt), held_interrupts() as held:
        held.at_end(lambda: called.append("end"))
    assert called == ["end"]


def test_an_exception_of_the_block_tells_of_the_interrupt_instead():
    with pytest.raises(LookupError), held_interrupts():  # noqa: PT012 - likewise
        press()
        raise LookupError


def test_a_handler_of_the_program_is_left_alone():
    pressed = []
    signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    with held_interrupts() as held:
        press()
    assert pressed == [signal.SIGINT]
    assert not held.is_noted
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_another_thread_holds_nothing():
    found = []

    def work():
        with held_interrupts() as held:
            found.append((held.is_noted, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, signal.default_int_handler)]
