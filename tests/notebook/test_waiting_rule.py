"""Ways of waiting for a gate that can end, by kernel version, and the messages about the others."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from attractor_nb.errors import GateWouldBlock
from attractor_nb.notebook.environment import Surroundings, probe
from attractor_nb.notebook.presenting import is_click_lost, refuse_endless_wait

GATE = SimpleNamespace(stage="review", deadline=None)
TIMED_GATE = SimpleNamespace(stage="review", deadline=1_800_000_000.0)


def kernel(*version, subshells=0, is_attended=True):
    return Surroundings(has_kernel=True, is_attended=is_attended, kernel_version=version, subshell_count=subshells)


@pytest.mark.parametrize(
    ("around", "is_blocking", "expected"),
    [
        pytest.param(kernel(6, 31), False, True, id="6.31 await"),
        pytest.param(kernel(6, 31), True, True, id="6.31 blocking"),
        pytest.param(kernel(7, 0), False, True, id="7.0 await without a subshell"),
        pytest.param(kernel(7, 0, subshells=1), False, False, id="7.0 await with a subshell"),
        pytest.param(kernel(7, 3, subshells=1), False, False, id="7.3 await with a subshell"),
        pytest.param(kernel(7, 4), False, False, id="7.4 await"),
        pytest.param(kernel(7, 4), True, True, id="7.4 blocking"),
        pytest.param(kernel(7, 4, subshells=1), True, True, id="7.4 blocking with a subshell"),
        pytest.param(kernel(8, 0), False, False, id="8.0 await"),
        pytest.param(kernel(7, 4, is_attended=False), False, True, id="nobody there"),
    ],
)
def test_a_click_is_lost_as_measured(around, is_blocking, expected):
    assert is_click_lost(around, is_blocking=is_blocking) is expected


def test_the_refusal_names_the_gate_and_both_remedies():
    with pytest.raises(GateWouldBlock) as caught:
        refuse_endless_wait(kernel(7, 4), [GATE], is_blocking=True)
    assert "gate `review` waits for your answer" in caught.value.message
    assert "use `await run`, or end this cell and click" in caught.value.hint
    assert 'run.answer("review", choice)' in caught.value.hint


def test_where_nobody_can_click_the_remedies_are_an_answer_or_an_interviewer():
    with pytest.raises(GateWouldBlock) as caught:
        refuse_endless_wait(kernel(7, 4, is_attended=False), [GATE], is_blocking=False)
    assert "there are no buttons here" in caught.value.message
    assert 'interviewer="auto"' in caught.value.hint


def test_in_voila_the_page_has_buttons_when_its_cells_have_ended():
    kernel = SimpleNamespace(_allow_stdin=False)  # Voila executes with nbclient
    around = probe(SimpleNamespace(kernel=kernel), {"VOILA_PREHEAT": "False"})
    with pytest.raises(GateWouldBlock) as caught:
        refuse_endless_wait(around, [GATE], is_blocking=False)
    assert "the page with its buttons appears when all cells have ended" in caught.value.message
    assert "show run.widget() and do not wait" in caught.value.hint


@pytest.mark.parametrize(
    ("around", "gates", "is_blocking", "is_allowed"),
    [
        pytest.param(kernel(7, 4, is_attended=False), [TIMED_GATE], True, True, id="a deadline, without buttons"),
        pytest.param(
            kernel(7, 4, is_attended=False), [TIMED_GATE, GATE], True, False, id="one gate without a deadline"
        ),
        pytest.param(kernel(6, 31), [TIMED_GATE], False, False, id="a deadline beside a dead button"),
        pytest.param(Surroundings(), [GATE], True, True, id="no kernel"),
    ],
)
def test_a_wait_is_refused_unless_it_ends_by_itself_or_by_a_click(around, gates, is_blocking, is_allowed):
    with nullcontext() if is_allowed else pytest.raises(GateWouldBlock):
        refuse_endless_wait(around, gates, is_blocking=is_blocking)


def test_another_thread_may_wait_for_the_kernel_is_free():
    raised: list[BaseException] = []

    def wait():
        try:
            refuse_endless_wait(kernel(7, 4), [GATE], is_blocking=True)
        except GateWouldBlock as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    assert raised == []
