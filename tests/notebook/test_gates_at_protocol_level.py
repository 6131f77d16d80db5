"""Gates answered by a button while a real kernel runs the pipeline, message by message."""

from __future__ import annotations

import pytest

PIPELINE = """%%attractor review --quiet
digraph review {
  start [shape=Mdiamond]
  plan [label="Plan", prompt="Plan it"]
  gate [shape=hexagon, label="Is the plan good?"]
  ship [label="Ship", prompt="Ship it"]
  redo [label="Redo", prompt="Redo it"]
  done [shape=Msquare]
  start -> plan -> gate
  gate -> ship [label="[A] Approve"]
  gate -> redo [label="[R] Redo"]
  ship -> done
  redo -> done
}"""
COMPLETED = "nodes = run.result().completed_nodes; print(run.status, nodes)"


def start_review(kernel, *, is_attended=True):
    kernel.run("%load_ext attractor_nb")
    kernel.run(PIPELINE)
    return kernel.run("run = review.run()", is_attended=is_attended)


def updates(kernel):
    return [message["content"] for message in kernel.messages if message["msg_type"] == "update_display_data"]


def wait_for_end(kernel, cell):
    """Until the cell's output keeps the end of the run."""
    ends = ("✓ completed", "stopped")
    kernel.wait_until(
        lambda: [one for one in updates(kernel) if any(end in one["data"]["text/plain"] for end in ends)],
        "what is kept of the end",
    )


def test_a_click_on_a_choice_takes_its_edge_while_no_cell_runs(any_kernel):
    cell = start_review(any_kernel)
    any_kernel.click("Redo")
    wait_for_end(any_kernel, cell)
    assert "completed ('start', 'plan', 'gate', 'redo', 'done')" in any_kernel.run(COMPLETED).text


def test_the_output_needs_no_kernel_from_the_beginning_and_the_view_lives_on_at_the_end(any_kernel):
    cell = start_review(any_kernel)
    (shown,) = cell.outputs("display_data")
    any_kernel.wait_for_button("Approve")
    any_kernel.click("Approve")
    wait_for_end(any_kernel, cell)
    for kept in (shown, *updates(any_kernel)):
        assert kept["transient"]["display_id"] == shown["transient"]["display_id"]
        assert set(kept["data"]) == {"text/html", "image/svg+xml", "text/plain"}
    any_kernel.wait_until(lambda: not any_kernel.descriptions, "the question to be gone")
    comm_id, state = any_kernel.graph_view()
    assert f'data-attractor-place="{state["place"]}"' in shown["data"]["text/html"]
    any_kernel.send(comm_id, {"kind": "inspect", "node": "ship"})
    any_kernel.wait_until(
        lambda: "Ship it" in str([one["content"] for one in any_kernel.messages[-5:]]), "the stage's texts"
    )


def test_a_run_that_was_loaded_is_as_alive_as_one_that_has_ended(any_kernel):
    cell = start_review(any_kernel)
    any_kernel.click("Approve")
    wait_for_end(any_kernel, cell)
    before = set(any_kernel.widgets)
    loaded = any_kernel.run("from attractor_nb import Run\nRun.load(run.logs_root)")
    (shown,) = loaded.outputs("display_data")
    (state,) = [state for name, state in any_kernel.widgets.items() if name not in before and "svg" in state]
    assert state["states"]["line"]["is_ended"]
    assert state["states"]["answer"]["node"] == "ship"
    assert state["place"] in shown["data"]["text/html"]


def test_the_inbox_is_static_with_its_cards_in_its_place(any_kernel):
    start_review(any_kernel)
    any_kernel.wait_for_button("Approve")
    (shown,) = any_kernel.run("from attractor_nb import gates\ngates()").outputs("display_data")
    assert set(shown["data"]) == {"text/html", "text/plain"}
    assert "Is the plan good?" in shown["data"]["text/plain"]
    assert ".resume()" in shown["data"]["text/plain"]
    (cards,) = [state for state in any_kernel.widgets.values() if state.get("shows_all")]
    assert f'data-attractor-place="{cards["place"]}"' in shown["data"]["text/html"]
    any_kernel.click("Approve")
    any_kernel.wait_until(
        lambda: any("no question waits" in one["data"]["text/plain"] for one in updates(any_kernel)),
        "the inbox to keep that none waits",
    )


def test_a_second_run_says_that_the_first_one_still_waits_until_it_is_stopped(any_kernel):
    start_review(any_kernel)
    any_kernel.wait_for_button("Approve")
    (shown,) = any_kernel.run("second = review.run()").outputs("display_data")
    assert "another run of this pipeline" in shown["data"]["text/plain"]
    views = {name: state for name, state in any_kernel.widgets.items() if "svg" in state}
    comm_id = list(views)[-1]
    any_kernel.send(comm_id, {"kind": "ready"})

    def others():
        return any_kernel.widgets[comm_id]["states"]["others"]

    (other,) = any_kernel.wait_until(others, "the notice")
    any_kernel.send(comm_id, {"kind": "beside", "what": "stop", "run": other["run"]})
    any_kernel.wait_until(
        lambda: any(
            one["content"]["data"].get("content", {}).get("others") == []
            for one in any_kernel.messages
            if one["msg_type"] == "comm_msg" and one["content"]["comm_id"] == comm_id
        ),
        "the notice to go",
    )
    assert "interrupted waiting" in any_kernel.run("print(run.status, second.status)").text


def test_stop_in_the_live_view_interrupts_the_run(any_kernel):
    cell = start_review(any_kernel)
    any_kernel.wait_for_button("Approve")
    comm_id, _ = any_kernel.graph_view()
    any_kernel.send(comm_id, {"kind": "stop"})
    wait_for_end(any_kernel, cell)
    assert "interrupted" in any_kernel.run("print(run.status)").text


def test_a_later_cell_answers_in_place_of_the_button(any_kernel):
    start_review(any_kernel)
    any_kernel.wait_for_button("Approve")
    any_kernel.run("run.answer('gate', 'approve')")
    assert "'ship'" in any_kernel.run(COMPLETED).text


def test_await_run_ends_with_a_click_on_ipykernel_7_4(kernel):
    start_review(kernel)
    waiting = kernel.start("result = await run")
    kernel.click("Approve")
    assert kernel.wait(waiting).error == ""
    assert "success" in kernel.run("print(result.status)").text


def test_await_run_is_refused_where_it_would_keep_the_button_from_working(old_kernel):
    start_review(old_kernel)
    old_kernel.wait_for_button("Approve")
    refused = old_kernel.wait(old_kernel.start("await run"))
    assert refused.error.startswith("GateWouldBlock: gate `gate` waits for your answer")
    assert 'run.answer("gate", choice)' in refused.error
    old_kernel.click("Approve")
    assert "completed" in old_kernel.run(COMPLETED).text


@pytest.mark.old_kernels
@pytest.mark.parametrize("old_kernel", ["7.0.1"], indirect=True)
def test_await_run_ends_with_a_click_that_comes_by_a_subshell(old_kernel):
    subshell_id = old_kernel.open_subshell()
    start_review(old_kernel)
    waiting = old_kernel.start("result = await run")
    old_kernel.click("Approve", subshell_id=subshell_id)
    assert old_kernel.wait(waiting).error == ""


def test_a_blocking_wait_for_a_gate_is_refused_with_both_remedies(kernel):
    start_review(kernel)
    refused = kernel.wait(kernel.start("run.result()"))
    assert refused.error.startswith("GateWouldBlock")
    assert "use `await run`, or end this cell and click" in refused.error


def test_where_nobody_can_click_a_gate_fails_at_once(any_kernel):
    cell = start_review(any_kernel, is_attended=False)
    refused = any_kernel.wait(any_kernel.start("await run", is_attended=False))
    assert "there are no buttons here" in refused.error
    assert not any("svg" in state for state in any_kernel.widgets.values())
    assert cell.outputs("display_data") == []


def test_where_nobody_looks_the_picture_appears_once_in_the_cell_that_waits(any_kernel):
    any_kernel.run("%load_ext attractor_nb")
    any_kernel.run(PIPELINE)
    started = any_kernel.run("run = review.run(interviewer='auto')", is_attended=False)
    awaited = any_kernel.run("await run", is_attended=False)
    assert started.outputs("display_data", "execute_result") == []
    picture, words = awaited.outputs("display_data", "execute_result")
    assert set(picture["data"]) == {"text/html", "image/svg+xml", "text/plain"}
    assert set(words["data"]) == {"text/plain"}


def test_after_a_live_view_the_result_is_words_alone(kernel):
    start_review(kernel)
    kernel.click("Approve")
    (shown,) = kernel.run("await run").outputs("execute_result")
    assert set(shown["data"]) == {"text/plain"}
    assert "completed" in shown["data"]["text/plain"]


SLOW = """
import asyncio
async def slow(node, prompt, context):
    await asyncio.sleep(60)
run = review.run(backend=slow)
"""


@pytest.mark.parametrize("wait", ["await run", "run.result()"])
def test_the_kernels_stop_button_ends_the_wait_and_interrupts_the_run(any_kernel, wait):
    any_kernel.run("%load_ext attractor_nb")
    any_kernel.run(PIPELINE)
    any_kernel.run(SLOW)
    # Said by another thread, once the cell's own thread is in the wait and can be interrupted there.
    begun = "import threading; threading.Timer(0.3, print, ['begun']).start()"
    waiting = any_kernel.start(f"{begun}\n{wait}")
    any_kernel.wait_until(lambda: "begun" in waiting.text, "the cell to begin")
    any_kernel.press_stop()
    assert "stopped" in any_kernel.wait(waiting).error
    assert "interrupted" in any_kernel.run("print(run.status)").text


BUSY = """
print("begun", flush=True)
import time
for _ in range(6000): time.sleep(0.01)
"""


@pytest.mark.parametrize("busy", [BUSY, BUSY.replace("time.sleep", "await asyncio.sleep")], ids=["plain", "async"])
def test_stop_ends_a_run_that_its_cell_began_and_no_run_of_an_earlier_cell(any_kernel, busy):
    any_kernel.run("%load_ext attractor_nb")
    any_kernel.run(PIPELINE)
    any_kernel.run(SLOW)
    any_kernel.run("earlier = run")
    cell = any_kernel.start(SLOW + busy)
    any_kernel.wait_until(lambda: "begun" in cell.text, "the cell to begin")
    any_kernel.press_stop()
    assert any_kernel.wait(cell).error
    assert "interrupted running" in any_kernel.run("print(run.status, earlier.status)").text
    assert "interrupted" in any_kernel.run("earlier.cancel(); print(earlier.result().status)").text


def test_the_kernel_host_runs_in_the_kernels_own_loop_and_takes_a_click(any_kernel):
    any_kernel.run("%load_ext attractor_nb")
    any_kernel.run(PIPELINE)
    cell = any_kernel.run("run = review.run(host='kernel')")
    any_kernel.click("Approve")
    wait_for_end(any_kernel, cell)
    assert "completed" in any_kernel.run("print(run.status)").text
