"""``studio.estimate.hindsight``: past runs on a changed graph."""

from __future__ import annotations

import pytest

from attractor_nb import FunctionBackend, Outcome, Pipeline, StageStatus
from attractor_nb.errors import OptionError, ValidationError

ENDS = "start [shape=Mdiamond] done [shape=Msquare] "
SCORES = f"""digraph {{ {ENDS} check polish [prompt="p"]
  start -> check
  check -> done [condition="context.score=5"]
  check -> polish [condition="context.score!=5"]
  polish -> done }}"""


def scored(text, tmp_path, name, **updates):
    backend = FunctionBackend(
        lambda node, prompt, context: Outcome.success(context_updates=updates if node.id == "check" else {})
    )
    return Pipeline(text, backend=backend).run(wait=True, logs_root=tmp_path / name)


def ask(text, *runs):
    return Pipeline(text).hindsight(runs)


def turn_of(found):
    (verdict,) = found
    return verdict.expected.turn


def test_a_run_that_the_changed_condition_sends_elsewhere_is_told_with_where_and_why(tmp_path):
    five = scored(SCORES, tmp_path, "five", score="5")
    four = scored(SCORES, tmp_path, "four", score="4")
    found = ask(SCORES.replace("=5", "=4"), five, four)
    assert [verdict.verdict for verdict in found] == ["elsewhere", "elsewhere"]
    away, home = (verdict.expected.turn for verdict in found)
    assert (away.node, away.before, away.now) == ("check", "done", "polish")
    assert away.now_why == 'the condition `context.score!=4` holds; `context.score=4` to done saw "5"'
    assert away.before_why == "the condition `context.score=5` holds"
    assert away.known == "not known from polish on"
    assert (home.now, home.known) == ("done", "the run would end at done")
    assert found.headline == "2 of 2 runs would go elsewhere"


def test_the_graph_that_ran_sends_nobody_elsewhere(tmp_path):
    found = ask(SCORES, scored(SCORES, tmp_path, "five", score="5"), tmp_path / "five")
    assert [verdict.verdict for verdict in found] == ["same", "same"]
    assert found.headline == "none of 2 runs would go elsewhere"
    assert found.verdicts[0].expected.steps == 3


def test_a_changed_stage_is_taken_as_it_was_and_that_is_said(tmp_path):
    found = ask(SCORES.replace('prompt="p"', 'prompt="q"'), scored(SCORES, tmp_path, "four", score="4"))
    assert found.verdicts[0].expected.assumed == ("polish",)
    assert "recorded outcomes are used anyway: polish" in str(found)


def test_a_condition_that_fits_nothing_any_more_ends_the_run(tmp_path):
    text = SCORES.replace("score!=5", "score=7")
    turn = turn_of(ask(text, scored(SCORES, tmp_path, "four", score="4")))
    assert (turn.now, turn.known) == ("", "the run would fail here")
    assert "no matching edge from check" in turn.now_why


def test_a_node_that_is_gone_and_a_start_that_is_another(tmp_path):
    run = scored(SCORES, tmp_path, "four", score="4")
    gone = SCORES.replace("polish", "finish")
    assert "no edge leads to polish any more" in turn_of(ask(gone, run)).now_why
    begins = turn_of(ask(SCORES.replace("start", "begin"), run))
    assert (begins.node, begins.now) == ("", "begin")


DIAMOND = f"""digraph {{ {ENDS} check gate [shape=diamond] polish
  start -> check -> gate
  gate -> done [condition="context.score=5"]
  gate -> polish [condition="context.score!=5"]
  polish -> done }}"""


def test_diamonds_execute_nothing_so_what_lies_behind_them_is_known(tmp_path):
    straight = f"digraph {{ {ENDS} check polish start -> check -> polish -> done }}"
    turn = turn_of(ask(DIAMOND, scored(straight, tmp_path, "run", score="5")))
    assert (turn.node, turn.before, turn.now, turn.known) == ("check", "polish", "gate", "the run would end at done")
    five = scored(DIAMOND, tmp_path, "five", score="5")
    turn = turn_of(ask(DIAMOND.replace("=5", "=6"), five))
    assert (turn.node, turn.now) == ("gate", "polish")


GATED = f"""digraph {{ {ENDS} test [goal_gate=true, retry_target="fix"] fix
  start -> test -> done [condition="outcome=success"]
  test -> done [condition="outcome=fail"] fix -> test }}""".replace(
    'start -> test -> done [condition="outcome=success"]', 'start -> test test -> done [condition="outcome=success"]'
)


def failing_once(text, tmp_path, name):
    tries = []

    def answer(node, prompt, context):
        if node.id == "test":
            tries.append(node.id)
            return Outcome.fail("red") if len(tries) == 1 else Outcome.success()
        return "text"

    return Pipeline(text, backend=FunctionBackend(answer)).run(wait=True, logs_root=tmp_path / name)


def test_goal_gates_are_asked_again(tmp_path):
    open_ = (
        GATED.replace(', retry_target="fix"', "")
        .replace("goal_gate=true", 'comment="no gate"')
        .replace("fix -> test", 'fix -> test start -> fix [condition="context.x=1"]')
    )
    gated = failing_once(GATED, tmp_path, "gated")
    assert gated.completed_nodes == ("start", "test", "fix", "test", "done")
    assert ask(GATED, gated).elsewhere == ()
    freed = turn_of(ask(open_, gated))
    assert (freed.node, freed.known) == ("test", "the run would end in success")
    ended = failing_once(open_, tmp_path, "open")
    assert ended.completed_nodes == ("start", "test", "done")
    held = turn_of(ask(GATED, ended))
    assert (held.now, held.now_why) == ("fix", "goal gate `test` has not succeeded: retry_target of test")


FAN = f"""digraph {{ {ENDS} fork [shape=component] join [shape=tripleoctagon] a b MORE
  start -> fork; fork -> a -> join; fork -> b -> join; join -> done }}"""


def test_branches_are_asked_and_other_branches_are_told(tmp_path):
    fan = FAN.replace("MORE", "")
    run = Pipeline(fan, backend="simulated").run(wait=True, logs_root=tmp_path / "fan")
    assert ask(fan, run).elsewhere == ()
    wider = FAN.replace("MORE", "c fork -> c -> join")
    turn = turn_of(ask(wider, run))
    assert (turn.node, turn.now_why) == ("fork", "its branches are others: c")
    longer = fan.replace("a b", "a b x").replace("fork -> a -> join", "fork -> a -> x -> join")
    turn = turn_of(ask(longer, run))
    assert (turn.node, turn.branch, turn.now) == ("a", "fork/a", "x")


def test_runs_that_stand_still_are_asked_as_far_as_they_went(tmp_path):
    stopped = Pipeline(SCORES, backend="simulated").run(wait=True, stop_after=1, logs_root=tmp_path / "stopped")
    (verdict,) = Pipeline(SCORES).hindsight(stopped)
    assert (verdict.verdict, verdict.expected.steps) == ("same", 1)


def test_a_damaged_run_keeps_nobody_from_the_others(tmp_path):
    good = scored(SCORES, tmp_path, "good", score="5")
    log = tmp_path / "bad" / "events.jsonl"
    log.parent.mkdir()
    log.write_text('{"type": "StageStarted"\n{"x": 1}\n')
    found = ask(SCORES, good, tmp_path / "bad")
    assert [verdict.verdict for verdict in found] == ["same", "unreadable"]
    assert "1 could not be read" in found.headline
    assert found.to_plain()[1]["problem"]


def test_what_is_no_run_and_a_graph_with_errors_are_refused(tmp_path):
    with pytest.raises(OptionError, match="run 1 must be a run, its result or its directory, not int"):
        ask(SCORES, 3)
    with pytest.raises(OptionError, match="hindsight is asked of runs"):
        Pipeline(SCORES).hindsight(3)
    with pytest.raises(ValidationError):
        Pipeline(f"digraph {{ {ENDS} start -> nowhere }}").hindsight([])


def test_the_static_forms_tell_neither_ids_nor_places(tmp_path):
    run = scored(SCORES, tmp_path, "five", score="5")
    found = ask(SCORES.replace("=5", "=4"), run)
    bundle = found._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert run.run_id not in bundle["text/html"] + bundle["text/plain"]
    assert run.run_id in found.details()
    assert ">1/1</text>" in found.to_svg()


def test_no_model_is_called(tmp_path):
    run = scored(SCORES, tmp_path, "five", score="5")

    def never(node, prompt, context):
        raise AssertionError

    assert Pipeline(SCORES.replace("=5", "=4"), backend=FunctionBackend(never)).hindsight([run]).elsewhere


def test_large_values_are_seen_as_they_were(tmp_path):
    text = SCORES.replace("context.score=5", "context.big=x").replace("context.score!=5", "context.big!=x")
    run = scored(text, tmp_path, "big", big="y" * 200_000)
    assert run.status == "success"
    assert ask(text, run).elsewhere == ()
    assert StageStatus.SUCCESS in run.node_outcomes.values()
