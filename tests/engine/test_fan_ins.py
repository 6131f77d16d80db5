"""Fan-outs with their fan-ins as runs, and what ruling 22 leaves to rule about branches (spec 3.8, 4.8, 4.9)."""

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import OptionError, RunError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import ParallelStarted, RunWarning, StageFailed, StageStarted
from attractor_nb.model.outcome import StageStatus, Usage
from attractor_nb.testing import ScriptedBackend

FRAME = """digraph demo {{ start [shape=Mdiamond] done [shape=Msquare]
  fan [shape=component{attrs}] a b join [shape=tripleoctagon{join}] after
  start -> fan {body} join -> after -> done }}"""
TWO = "fan -> a -> join fan -> b -> join"


def outcome(name, status=StageStatus.SUCCESS, **updates):
    return Outcome(status, notes=f"{name} is done", context_updates=updates)


@pytest.fixture
def run(tmp_path):
    """Run a fan-out with scripted replies; returns the result, the backend and the events."""

    def start(body=TWO, replies=None, *, attrs="", join="", **options):
        backend = ScriptedBackend(replies or {})
        text = FRAME.format(body=body, attrs=attrs and f", {attrs}", join=join and f", {join}")
        pipeline = Pipeline(text, runs_dir=tmp_path, backend=backend)
        events = []
        pipeline.on_event(events.append)
        return pipeline.run(wait=True, **options), backend, events

    return start


def test_the_fan_in_sees_the_results_and_what_it_merges_is_there_for_the_next_stage(run):
    replies = {"a": outcome("a", design="round", score=1), "b": outcome("b", design="square", score=2, extra=True)}
    result, backend, _ = run(replies=replies, join="merge=best")
    assert result.completed_nodes == ("start", "fan", "join", "after", "done")
    assert result.outcomes["join"].notes == "Selected best candidate: b"
    last = backend.calls[-1]
    assert (last.node_id, last.context["design"], last.context["extra"]) == ("after", "square", True)
    assert last.context["parallel.fan_in.design"] == "square"
    assert last.context["parallel.fan_in.best_id"] == "b"


def test_by_default_nothing_of_a_branch_reaches_the_run(run):
    result, _, _ = run(replies={"a": outcome("a", design="round"), "b": outcome("b", design="square")})
    assert "design" not in result.context
    assert result.context["parallel.fan_in.design"] == "round"


def test_what_merge_all_brings_is_there_after_a_resume_with_its_conflicts(run, tmp_path):
    replies = {"a": outcome("a", x=1, y=1), "b": outcome("b", x=2)}
    result, _, _ = run(replies=replies, join="merge=all", stop_after=5)
    assert result.status == "paused"
    ended = (
        Pipeline(FRAME.format(body=TWO, attrs="", join=", merge=all"), backend=ScriptedBackend())
        .resume(result.logs_root)
        .result()
    )
    assert (ended.status, ended.context["x"], ended.context["y"]) == ("success", 2, 1)
    assert "join merges branches: x: the value of b replaces that of a" in ended.context.logs


def test_a_model_chooses_with_the_context_that_its_fidelity_carries(run):
    replies = {"a": "text of a", "b": "text of b", "join": "b"}
    result, backend, events = run(replies=replies, join='prompt="Which of them?"')
    assert result.context["parallel.fan_in.best_id"] == "b"
    (prompt,) = backend.prompts["join"]
    assert prompt.index("## Context") < prompt.index("Which of them?") < prompt.rindex("text of a")
    assert result["join"].response == "b"
    (started,) = [each for each in events if isinstance(each, StageStarted) and each.name == "join"]
    assert started.fidelity == "compact"


def test_the_choice_of_a_model_counts_towards_the_bounds(run):
    replies = {"a": outcome("a"), "b": outcome("b"), "join": Response("b", usage=Usage(100, 5))}
    result, _, _ = run(replies=replies, join='prompt="Which?"', max_tokens_total=50)
    assert (result.bound, result.next_node) == ("max_tokens_total", "after")
    assert result.usage_by_node["join"] == Usage(100, 5)


def test_a_bound_that_cannot_see_what_a_choice_costs_says_so(run):
    replies = {name: Outcome(StageStatus.SUCCESS, usage=Usage(1, cost_usd=0.0)) for name in ("a", "b")}
    _, _, events = run(replies={**replies, "join": "b"}, join='prompt="Which?"', max_budget_usd=1)
    warnings = [each.message for each in events if isinstance(each, RunWarning)]
    assert any("join did not report its own" in message for message in warnings)


def test_cancelled_branches_are_no_candidates_of_the_fan_in(run):
    result, _, _ = run(attrs="join_policy=first_success, max_parallel=1", join="merge=all")
    statuses = {entry["id"]: entry["status"] for entry in result.context["parallel.results"]}
    assert statuses == {"a": "success", "b": "skipped"}
    assert result.context["parallel.fan_in.best_id"] == "a"


def test_an_empty_branch_is_a_success_that_did_nothing(run):
    result, _, _ = run("fan -> a -> join fan -> join fan -> b -> join")
    statuses = [(entry["id"], entry["status"]) for entry in result.context["parallel.results"]]
    assert statuses == [("a", "success"), ("join", "success"), ("b", "success")]
    assert result.status == "success"


def test_ruling_22_a_restart_within_a_branch_fails_the_branch_and_restarts_nothing(run):
    body = f'{TWO} a -> b [condition="outcome=fail", loop_restart=true]'
    result, backend, _ = run(body, {"a": Outcome.fail("broken")})
    assert result.status == "success"
    entry = result.context["parallel.results"][0]
    assert (entry["status"], entry["failure_reason"]) == (
        "fail",
        "a loop_restart edge leads to b, and a branch cannot restart the run",
    )
    assert not (result.logs_root / "restart-1").exists()
    assert len(backend.prompts["b"]) == 1


@pytest.mark.parametrize(
    ("edges", "status"),
    [("check -> join", "fail"), ('check -> mend [condition="outcome=fail"] check -> join mend -> join', "success")],
    ids=["let-through", "judged"],
)
def test_ruling_22_a_failure_that_only_a_diamond_let_through_stays_a_failure_of_the_branch(run, edges, status):
    body = f"fan -> b -> join fan -> a -> check check [shape=diamond] mend {edges}"
    if "mend ->" not in edges:
        body = body.replace("mend ", "")
    result, _, _ = run(body, {"a": Outcome.fail("broken")})
    assert result.context["parallel.branch.a.status"] == status
    assert result.context["parallel.fan_in.best_id"] == ("b" if status == "fail" else "a")


def test_ruling_22_fan_outs_nest_at_most_eight_deep(run):
    inner = " ".join(
        f"f{n} [shape=component] f{n} -> f{n + 1} k{n} [shape=tripleoctagon] k{n + 1} -> k{n}" for n in range(8)
    )
    body = f"{inner} f8 [shape=component] x f8 -> x -> k8 k8 [shape=tripleoctagon] k0 -> join fan -> a -> f0 fan -> b -> join"
    _, _, events = run(body, max_steps=500)
    begun = [each.branch for each in events if isinstance(each, ParallelStarted)]
    assert [branch.count("/") for branch in begun] == [max(0, 2 * depth - 1) for depth in range(8)]
    failed = next(each for each in events if isinstance(each, StageFailed) and each.name == "f7")
    assert "f7 is nested more than 8 fan-outs deep in fan/a/f0/f1" in failed.error


def test_ruling_22_stages_of_branches_have_directories_under_their_branch(run):
    body = """inner [shape=component] x y k [shape=tripleoctagon]
      fan -> a -> inner inner -> x -> k inner -> y -> k k -> join fan -> b -> join"""
    result, _, _ = run(body, {"x": "text of x"})
    assert result.status == "success", result.reason
    base = result.logs_root / "branches" / "fan"
    assert {path.name for path in base.iterdir()} == {"a", "b"}
    inner = base / "a" / "branches" / "inner"
    assert (inner / "x" / "x" / "response.md").read_text() == "text of x"
    assert (base / "a" / "k" / "status.json").exists()
    assert not (result.logs_root / "a").exists()


def test_ruling_22_a_rewind_goes_to_places_outside_of_branches(run, tmp_path):
    result, _, _ = run()
    pipeline = Pipeline(FRAME.format(body=TWO, attrs="", join=""), backend=ScriptedBackend())
    with pytest.raises(RunError, match="a was visited in a branch only, and a run goes back as a whole"):
        pipeline.resume(result.logs_root, rewind_to="a")
    again = pipeline.resume(result.logs_root, rewind_to="fan").result()
    assert again.status == "success"


def test_the_join_of_a_fan_out_can_be_asked_for(tmp_path):
    pipeline = Pipeline(FRAME.format(body=TWO, attrs="", join=""))
    assert pipeline.join_of("fan") == "join"
    assert "branches meet at join" in pipeline.to_svg()
    with pytest.raises(OptionError, match="'fam' is not a fan-out; did you mean \"fan\""):
        pipeline.join_of("fam")
