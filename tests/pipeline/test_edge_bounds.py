"""``max_taken``: an edge that a run took that often is not eligible any more."""

from pathlib import Path

import pytest

from attractor_nb import Outcome, Pipeline, Run
from attractor_nb.model.events import PipelineStarted, StageEnd
from attractor_nb.storage.stored_run import read_run
from attractor_nb.testing import ScriptedInterviewer

EXAMPLES = Path(__file__).parents[2] / "examples"
ENDS = 'start [shape=Mdiamond] done [shape=Msquare] work [prompt="Work"] review [prompt="Review"] person [prompt="P"]'
LOOP = f"""digraph {{ {ENDS}
    start -> work -> review  person -> done
    review -> work [label="Again", max_taken=2]
    review -> person [label="Hand over", default=true] }}"""
THREE_ROUNDS = ("start", "work", "review", "work", "review", "work", "review", "person", "done")
GATE = f"""digraph {{ {ENDS} gate [shape=hexagon, label="Good?"ATTRS]
    start -> work -> review -> gate  person -> done
    gate -> work [label="[A] Again", max_taken=1]  gate -> person [label="[H] Hand over"] }}"""


def asking(label="Again", prompts=None):
    """A backend whose review always asks for a label."""

    def answer(node, prompt, context):
        if prompts is not None:
            prompts.append((node.id, prompt))
        return Outcome("success", preferred_label=label if node.id == "review" else "")

    return answer


def made(text=LOOP, **options):
    return Pipeline(text, **{"backend": asking(), **options})


def commits(root):
    return [event for event in read_run(root).events if isinstance(event, StageEnd) and event.is_commit]


def test_a_spent_edge_is_passed_over(tmp_path):
    result = made().run(wait=True, logs_root=tmp_path / "run")
    assert (result.status, result.completed_nodes) == ("success", THREE_ROUNDS)
    assert [event.route for event in commits(tmp_path / "run") if event.name == "review"] == [
        "preferred_label",
        "preferred_label",
        "default",
    ]


@pytest.mark.parametrize("stages", range(1, 9))
def test_a_resume_counts_what_was_taken_before(tmp_path, stages):
    made().run(wait=True, logs_root=tmp_path / "run", stop_after=stages)
    assert made().resume(tmp_path / "run").result(60).completed_nodes == THREE_ROUNDS


def test_the_log_alone_says_how_often_an_edge_was_taken(tmp_path):
    made().run(wait=True, logs_root=tmp_path / "run", stop_after=6)
    (tmp_path / "run" / "checkpoint.json").unlink()
    assert made().resume(tmp_path / "run").result(60).completed_nodes == THREE_ROUNDS


@pytest.mark.parametrize("how", ["rewind", "fork"])
@pytest.mark.parametrize(("visit", "rounds"), [(1, 3), (2, 3), (3, 3)])
def test_a_way_back_counts_the_part_that_is_kept(tmp_path, how, visit, rounds):
    made().run(wait=True, logs_root=tmp_path / "run")
    run = Run.load(tmp_path / "run", pipeline=made())
    again = getattr(run, how)("review", visit=visit).result(60)
    assert again.status == "success"
    assert again.visits["review"] == rounds


@pytest.mark.parametrize("stages", [None, 3, 6])
def test_a_restart_goes_on_counting(tmp_path, stages):
    text = LOOP.replace("max_taken=2", "max_taken=2, loop_restart=true")
    result = made(text).run(wait=True, logs_root=tmp_path / "run", stop_after=stages)
    if stages is not None:
        result = made(text).resume(tmp_path / "run").result(60)
    assert (result.status, result.completed_nodes) == ("success", ("work", "review", "person", "done"))
    last = read_run(tmp_path / "run" / "restart-2").events[0]
    assert isinstance(last, PipelineStarted)
    assert last.carried.taken[-1] == ("review", "work", 3, 2)


def test_without_another_edge_it_is_as_if_none_matched(tmp_path):
    text = f"""digraph {{ {ENDS} start -> work -> review  person -> done
        review -> work [max_taken=2]  review -> person [condition="context.x=1"] }}"""
    pipeline = made(text)
    result = pipeline.run(wait=True, logs_root=tmp_path / "run")
    assert (result.status, result.visits["review"]) == ("fail", 3)
    assert "no matching edge from review (outcome success" in result.reason
    assert "work was taken 2 of 2 times" in result.reason


def test_a_failure_takes_the_other_edges_for_failures(tmp_path):
    text = f"""digraph {{ {ENDS} start -> work -> review  person -> done
        review -> done [condition="outcome=success"]  review -> work [condition="outcome=fail", max_taken=1, weight=5]
        review -> person [condition="outcome=fail"] }}"""
    failing = made(text, backend=lambda node, prompt, context: Outcome.fail("no") if node.id == "review" else "ok")
    result = failing.run(wait=True, logs_root=tmp_path / "run")
    assert result.completed_nodes == ("start", "work", "review", "work", "review", "person", "done")


def test_a_gate_offers_no_spent_choice(tmp_path):
    interviewer = ScriptedInterviewer({"gate": ["A", "H"]})
    result = made(GATE.replace("ATTRS", ""), interviewer=interviewer).run(wait=True, logs_root=tmp_path / "run")
    assert result.status == "success"
    assert [[option.label for option in asked.options] for asked in interviewer.questions] == [
        ["[A] Again", "[H] Hand over"],
        ["[H] Hand over"],
    ]


def test_a_gate_without_its_default_waits_for_an_answer(tmp_path):
    text = GATE.replace("ATTRS", ', human.default_choice="A"')
    interviewer = ScriptedInterviewer({"gate": ["A", "H"]})
    result = made(text, interviewer=interviewer).run(wait=True, logs_root=tmp_path / "run")
    assert result.status == "success"
    assert [asked.default is not None for asked in interviewer.questions] == [True, False]


def test_a_gate_without_a_choice_says_so(tmp_path):
    text = GATE.replace("ATTRS", "").replace("-> done", "-> gate  review -> done")
    text = text.replace('"[H] Hand over"', '"[H] Hand over", max_taken=1').replace(
        "review -> gate", "review -> gate [weight=1]"
    )
    interviewer = ScriptedInterviewer({"gate": ["A", "H"]})
    result = made(text, interviewer=interviewer).run(wait=True, logs_root=tmp_path / "run")
    assert result.reason == "Every choice of the gate was taken as often as its max_taken allows"


def test_explain_names_the_spent_edge(tmp_path):
    made().run(wait=True, logs_root=tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    words = {visit: str(loaded.explain("review", visit=visit)) for visit in (2, 3)}
    assert "not eligible" not in words[2]
    assert "work is not eligible: taken 2 of 2 times" in words[3]
    assert "the graph was changed" not in words[3]


def test_each_branch_counts_in_each_pass_of_its_fan_out(tmp_path):
    text = """digraph { start [shape=Mdiamond] done [shape=Msquare] fan [shape=component] join [shape=tripleoctagon]
        a [prompt="A"] b [prompt="B"] again [prompt="Again"]
        start -> fan  fan -> a  fan -> b  b -> join  join -> again
        a -> a [label="More", max_taken=1]  a -> join [default=true]
        again -> fan [label="More", max_taken=1]  again -> done [default=true] }"""
    pipeline = Pipeline(text, backend=lambda node, prompt, context: Outcome("success", preferred_label="More"))
    result = pipeline.run(wait=True, logs_root=tmp_path / "run")
    assert (result.status, result.visits["fan"]) == ("success", 2)
    taken = [event.branch for event in commits(tmp_path / "run") if event.name == "a"]
    assert taken == ["fan/a"] * 4


def test_the_example_hands_over_after_two_rounds(tmp_path):
    result = Pipeline(
        EXAMPLES / "hand_over.dot",
        backend=lambda node, prompt, context: Outcome.fail("no") if node.id == "review" else "An answer",
        interviewer=ScriptedInterviewer({"person": ["S"]}),
    ).run(wait=True, logs_root=tmp_path / "run")
    assert result.completed_nodes == ("start", *("answer", "review") * 3, "person", "done")


def test_a_drawing_shows_the_bound_on_its_edge():
    pipeline, bound = made(), "≤ 2\N{MULTIPLICATION SIGN}"
    assert f">{bound}</tspan>" in pipeline.to_svg()
    assert "at most 2 times</title>" in pipeline.to_svg()
    assert f'work "Again" {bound}' in str(pipeline)


def test_a_changed_graph_goes_on_counting(tmp_path):
    made().run(wait=True, logs_root=tmp_path / "run", stop_after=6)
    text = LOOP.replace(
        "start -> work", 'look [prompt="Look"] work -> look [condition="outcome=fail"] look -> review start -> work'
    )
    result = made(text).resume(tmp_path / "run", on_graph_change="accept").result(60)
    assert (result.status, result.completed_nodes) == ("success", THREE_ROUNDS)
