"""The events of a run are folded on demand, and kept small otherwise."""

from attractor_nb.model.events import CheckpointSaved, StageCompleted, StageOutput, StageStarted
from attractor_nb.model.outcome import Outcome
from attractor_nb.runtime.handles.run_result import MOST_WAITING, FollowedRun
from attractor_nb.views.folding import take_event
from attractor_nb.views.state import RunView


def stages(count):
    for number in range(count):
        name = f"n{number % 7}"
        yield StageStarted(name=name, visit=number // 7 + 1)
        yield StageOutput(name=name, text="a piece")
        yield StageCompleted(name=name, visit=number // 7 + 1, outcome=Outcome.success(), edge=number % 7)
        yield CheckpointSaved(saved_node=name)


def test_who_looks_sees_the_same_as_if_each_event_had_been_folded_at_once():
    followed, view = FollowedRun(), RunView()
    for number, event in enumerate(stages(1200)):
        followed.take(event)
        take_event(view, event)
        if number % 97 == 0:
            assert followed.known.view.to_plain() == view.to_plain()
    assert followed.known.view.to_plain() == view.to_plain()
    assert followed.known.visits == {f"n{number}": 172 if number < 3 else 171 for number in range(7)}


def test_where_nobody_looks_no_more_than_so_many_events_wait():
    followed = FollowedRun()
    for event in stages(2 * MOST_WAITING):
        followed.take(event)
        assert len(followed._waiting) < MOST_WAITING


def test_nothing_is_folded_while_nobody_looks():
    followed = FollowedRun()
    for event in stages(10):
        followed.take(event)
    assert not followed._known.view.nodes
    assert len(followed.known.view.nodes) == 7


def test_what_was_recorded_before_is_folded_first_and_when_somebody_looks():
    followed = FollowedRun()
    followed.recall(stages(7), {"n1": "n1/visits/1.1"}, {"n0": 5})
    followed.take(StageStarted(name="n8"))
    assert not followed._known.view.nodes
    assert list(followed.known.view.nodes) == [*(f"n{number}" for number in range(7)), "n8"]
    assert followed.known.kept == {"n1": "n1/visits/1.1"}
    assert followed.known.visits == {"n0": 5, **{f"n{number}": 1 for number in range(1, 7)}}
