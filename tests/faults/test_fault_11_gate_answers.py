"""Fault 11: a gate is answered twice, too late, after a cancel, from fifty threads, or with a wrong option."""

import threading

import pytest

from attractor_nb import Outcome, Pipeline, Run
from attractor_nb.errors import AlreadyAnswered, AnswerRefused, NoSuchGate

SOURCE = """digraph g {{
    start [shape=Mdiamond] g [shape=hexagon, label="Which way?"{more}] done [shape=Msquare]
    yes [type=own] no [type=own]
    start -> g g -> yes [label="[Y] Yes"] g -> no [label="[N] No"] yes -> done no -> done
}}"""
THREADS = 50
GATES = "attractor_nb/engine/gates.py"
WRONG = ["", " ", "maybe", "Y,N", "done", "g", "start", "x" * 10_000, "\0", "\u202eY", "0", "[", "yes no"]
LATE = (AlreadyAnswered, NoSuchGate)


def waiting(root, more=""):
    """A run that waits at its gate."""
    pipeline = Pipeline(SOURCE.format(more=more), handlers={"own": lambda *_: Outcome.success()})
    run = pipeline.run(logs_root=root, interviewer="deferred", durability="fast")
    run.wait_for_gate("g", timeout=60)
    return run


def answers_in(root):
    """The answers that are on the disk."""
    return [event.answer for event in Run.load(root).events() if type(event).__name__ == "InterviewCompleted"]


@pytest.mark.protects(
    GATES,
    """            self._answered[gate.id] = event.description.removeprefix(f"{gate.stage}: ")
            self._pending.pop(gate.id, None)
""",
    instead="",
)
@pytest.mark.campaign
def test_fifty_threads_answer_one_gate_and_one_wins(tmp_path, campaign, figures):
    """Protected by: under one lock an answer is looked for, logged and noted."""
    rounds, winners = campaign.count(sample=10, full=100), []
    for number in range(rounds):
        run = waiting(tmp_path / str(number))
        begin, ends = threading.Barrier(THREADS), []

        def hand_in(key, run=run, begin=begin, ends=ends):
            begin.wait(60)
            try:
                run.answer("g", key)
            except LATE:
                ends.append("")
            else:
                ends.append(key)

        threads = [threading.Thread(target=hand_in, args=("YN"[index % 2],)) for index in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        (winner,) = filter(None, ends)
        assert len(ends) == THREADS
        assert run.result(60).completed_nodes[2] == {"Y": "yes", "N": "no"}[winner]
        assert answers_in(tmp_path / str(number)) == [winner]
        winners.append(winner)
    figures.record(
        11,
        f"{THREADS} threads answer one gate",
        f"{rounds} of {rounds} rounds: one wins, is on the disk and is followed; {THREADS - 1} are told",
    )


@pytest.mark.protects(
    "attractor_nb/decisions/gate_choices.py",
    "        raise _refused(question, given)\n    text",
    instead="        return answer\n    text",
)
def test_a_wrong_option_is_refused_and_the_gate_waits_on(tmp_path, figures):
    """Protected by: what matches no choice raises, and settles nothing."""
    run = waiting(tmp_path / "run")
    for choice in WRONG:
        with pytest.raises(AnswerRefused):
            run.answer("g", choice)
    assert [gate.stage for gate in run.gates] == ["g"]
    run.answer("g", "N")
    assert run.result(60).completed_nodes[2] == "no"
    assert answers_in(tmp_path / "run") == ["N"]
    figures.record(11, "wrong options", f"{len(WRONG)} of {len(WRONG)} refused, asked again; the right one was taken")


@pytest.mark.protects(
    GATES,
    """            self._answered[gate.id] = event.description.removeprefix(f"{gate.stage}: ")
            self._pending.pop(gate.id, None)
""",
    instead="            self._pending.pop(gate.id, None)\n",
)
def test_an_answer_that_comes_second_after_the_timeout_or_after_a_cancel_is_told_so(tmp_path, figures):
    """Protected by: what was answered is remembered when it waits no longer."""
    run = waiting(tmp_path / "twice")
    run.answer("g", "Y")
    with pytest.raises(AlreadyAnswered):
        run.answer("g", "N")
    assert run.result(60).completed_nodes[2] == "yes"
    with pytest.raises(AlreadyAnswered):
        run.answer("g", "N")
    timed = waiting(tmp_path / "timed", ', human.timeout="300ms", human.default_choice="N"')
    assert timed.result(60).completed_nodes[2] == "no"
    with pytest.raises(AlreadyAnswered):
        timed.answer("g", "Y")
    cancelled = waiting(tmp_path / "cancelled")
    cancelled.cancel()
    assert cancelled.result(60).status == "interrupted"
    with pytest.raises(NoSuchGate):
        cancelled.answer("g", "Y")
    assert answers_in(tmp_path / "cancelled") == []
    again = cancelled.resume(interviewer="deferred")
    again.wait_for_gate("g", timeout=60)
    again.answer("g", "Y")
    assert again.result(60).completed_nodes[2] == "yes"
    figures.record(11, "answers that come second, after the timeout, after a cancel", "3 of 3 told so, none recorded")
