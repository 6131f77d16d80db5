"""A bound on money or tokens of one node holds over all its attempts and visits, and fails its stage (ruling 18)."""

import pytest

from attractor_nb import Outcome, Pipeline, Usage, current_stage
from attractor_nb.errors import OptionError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import ModelCallEnded, RunWarning, StageStarted

FRAME = """digraph {
    start [shape=Mdiamond] plan [prompt=x] work [%s] failed [prompt=x] done [shape=Msquare]
    start -> plan -> work
    work -> done
    work -> failed [condition="outcome=fail"]
    failed -> done
}"""
LOOP = """digraph {
    start [shape=Mdiamond] work [prompt=x, %s] gave_up [prompt=x] done [shape=Msquare]
    start -> work
    work -> work [condition="context.again=true"]
    work -> gave_up [condition="outcome=fail"]
    work -> done
    gave_up -> done
}"""


class Spender:
    """A backend whose answers cost 0.1 USD and 20 tokens each.

    Attributes:
        asked: The nodes that were asked, in order.
    """

    def __init__(self, answer="done"):
        self.answer, self.asked = answer, []

    def run(self, node, prompt, context):
        """Answer."""
        self.asked.append(node.id)
        answer = self.answer(node) if callable(self.answer) else self.answer
        usage = Usage(10, 10, 0.1, 1)
        if isinstance(answer, Outcome):
            return Outcome(
                answer.status, failure_reason=answer.failure_reason, context_updates=answer.context_updates, usage=usage
            )
        return Response(answer, usage=usage)


class Agent(Spender):
    """One that makes ten requests in a stage, and asks before each whether it may."""

    def run(self, node, prompt, context):
        """Answer."""
        scope = current_stage()
        for _ in range(10 if node.id == "work" else 1):
            scope.check_spending()
            self.asked.append(node.id)
            scope.announce(ModelCallEnded(**scope.place, model="m", usage=Usage(10, 10, 0.1, 1)))
        return "done"


def run(text, backend, tmp_path, **options):
    return Pipeline(text).run(wait=True, backend=backend, logs_root=tmp_path / "run", durability="fast", **options)


@pytest.mark.parametrize(
    ("bound", "made"), [("max_budget_usd=0.35", 4), ("max_tokens_total=60", 3)], ids=["money", "tokens"]
)
def test_a_stage_ends_within_one_request_of_its_bound_and_fails_with_its_name(bound, made, tmp_path):
    agent = Agent()
    result = run(FRAME % f"prompt=x, max_retries=3, {bound}", agent, tmp_path)
    assert agent.asked.count("work") == made
    assert f"{bound} reached" in result["work"].outcome.failure_reason
    assert "in all attempts of work" in result["work"].outcome.failure_reason
    assert (result.status, result.bound) == ("success", "")
    assert agent.asked[-1] == "failed", "the graph routes the failure"
    assert result["work"].usage.calls == made


def test_attempts_are_counted_together(tmp_path):
    backend = Spender(lambda node: Outcome.retry("no") if node.id == "work" else "done")
    result = run(FRAME % "prompt=x, max_retries=9, retry_policy=none, max_budget_usd=0.25", backend, tmp_path)
    assert backend.asked.count("work") <= 3
    assert "failed" in backend.asked
    assert result.status == "success"


def test_visits_are_counted_together_and_other_nodes_are_not(tmp_path):
    backend = Spender(lambda node: Outcome.success(context_updates={"again": True}))
    result = run(LOOP % "max_budget_usd=0.25", backend, tmp_path)
    assert backend.asked == ["work"] * 3 + ["gave_up"]
    assert "$0.3000 spent" in result["work"].outcome.failure_reason
    assert result.status == "success"


def test_without_a_way_for_the_failure_the_run_fails_with_it(tmp_path):
    text = "digraph { start [shape=Mdiamond] work [prompt=x, max_tokens_total=60] done [shape=Msquare] start -> work -> done }"
    result = run(text, Agent(), tmp_path)
    assert (result.status, result.bound) == ("fail", "")
    assert "max_tokens_total=60 reached" in result.reason


def test_what_was_spent_before_a_resume_counts(tmp_path):
    backend = Spender(lambda node: Outcome.success(context_updates={"again": True}))
    pipeline = Pipeline(LOOP % "max_budget_usd=0.25")
    pipeline.run(wait=True, backend=backend, logs_root=tmp_path / "run", stop_after=3)
    assert backend.asked == ["work"] * 2
    pipeline.resume(tmp_path / "run", backend=backend).result(60)
    assert backend.asked == ["work"] * 3 + ["gave_up"]


def test_the_bound_of_the_run_ends_the_run_where_both_are(tmp_path):
    result = run(FRAME % "prompt=x, max_budget_usd=5", Agent(), tmp_path, max_budget_usd=0.35)
    assert (result.status, result.bound) == ("fail", "max_budget_usd")
    assert "work" in result.reason


def test_visits_in_branches_share_the_bound(tmp_path):
    text = """digraph { start [shape=Mdiamond] fan [shape=component] a [prompt=x] b [prompt=x] c [prompt=x]
        work [prompt=x, max_budget_usd=0.15] join [shape=tripleoctagon] done [shape=Msquare]
        start -> fan fan -> a -> work fan -> b -> work fan -> c -> work work -> join -> done }"""
    backend = Spender()
    result = run(text, backend, tmp_path)
    assert backend.asked.count("work") == 2
    assert (result.status, result.context["parallel.fail_count"]) == ("success", 1)


def test_all_items_of_a_list_share_the_bound(tmp_path):
    text = """digraph { inputs="names" start [shape=Mdiamond] done [shape=Msquare]
        work [prompt="${item}", for_each="item in names", max_parallel=1, max_budget_usd=0.25]
        failed [prompt=x] start -> work -> done work -> failed [condition="outcome=fail"] failed -> done }"""
    backend = Spender()
    result = run(text, backend, tmp_path, params={"names": list("abcdefgh")})
    assert backend.asked.count("work") == 3
    assert "max_budget_usd=0.25 reached" in result["work"].outcome.failure_reason
    assert result.status == "success"


@pytest.mark.parametrize("child", ["type=pipeline, pipeline.name=c", "shape=house, stack.child_pipeline=c"])
def test_child_runs_count_for_their_node(child, tmp_path):
    inner = "digraph { start [shape=Mdiamond] a [prompt=x] b [prompt=x] c [prompt=x] done [shape=Msquare] start -> a -> b -> c -> done }"
    backend = Spender()
    pipeline = Pipeline(FRAME % f"{child}, max_budget_usd=0.15", pipelines={"c": inner})
    result = pipeline.run(wait=True, backend=backend, logs_root=tmp_path / "run")
    assert backend.asked == ["plan", "a", "b", "failed"]
    assert "max_budget_usd=0.15 reached" in result["work"].outcome.failure_reason
    assert "in all attempts of work" in result["work"].outcome.failure_reason


def test_a_bound_that_cannot_see_what_is_spent_says_so(tmp_path):
    run = Pipeline(FRAME % "prompt=x, max_budget_usd=1").run(backend=lambda *_: "done", logs_root=tmp_path / "run")
    assert run.result(60).status == "success"
    (warning,) = [event.message for event in run.events() if isinstance(event, RunWarning)]
    assert warning.startswith("max_budget_usd=1 of work counts known prices only")


def test_a_price_that_nobody_knows_is_refused_as_the_only_bound_of_a_node():
    pipeline = Pipeline(FRAME.replace("{", '{ llm_model="ollama:own"', 1) % "prompt=x, max_budget_usd=1")
    with pytest.raises(OptionError, match="max_budget_usd=1 of work cannot hold: the price of ollama:own"):
        pipeline.run(backend="llm", durability="none")


def test_a_model_at_an_endpoint_is_named_as_the_graph_names_it():
    text = """digraph g { graph [llm_model="box:m", endpoint.box.url="http://127.0.0.1:9/v1"]
        start [shape=Mdiamond] work [prompt="W", max_budget_usd=1] done [shape=Msquare] start -> work -> done }"""
    with pytest.raises(OptionError, match="the price of box:m, which work asks, is not known"):
        Pipeline(text).run(wait=True, backend="llm", trust=True)


@pytest.mark.parametrize(
    "attribute", ["max_budget_usd=-1", 'max_budget_usd="5 dollars"', "max_tokens_total=1.5", "max_tokens_total=-3"]
)
def test_lint_refuses_a_bound_that_is_none(attribute):
    found = Pipeline(FRAME % f"prompt=x, {attribute}").diagnostics
    assert [each.node_id for each in found] == ["work"]


def test_lint_warns_of_a_bound_where_nothing_is_spent():
    (found,) = Pipeline(FRAME % 'shape=parallelogram, tool_command="true", max_budget_usd=1').diagnostics
    assert found.rule == "bound_unused"
    assert "changes nothing" in found.message


def test_a_node_without_a_bound_costs_nothing_more(tmp_path):
    run = Pipeline(FRAME % "prompt=x").run(backend=Spender(), logs_root=tmp_path / "run")
    assert run.result(60).status == "success"
    assert [event.name for event in run.events() if isinstance(event, StageStarted)].count("work") == 1
