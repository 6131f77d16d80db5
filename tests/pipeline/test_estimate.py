"""``pipeline.estimate()``: what a run will cost, before it runs."""

import json
import sys
from xml.etree import ElementTree as ET

import pytest
from pydantic import BaseModel

from attractor_nb import Pipeline
from attractor_nb.errors import OptionError, ValidationError
from attractor_nb.extras import install_command
from attractor_nb.studio.estimate.estimated_usage import Assumptions

ENDS = "start [shape=Mdiamond] done [shape=Msquare]"


def pipeline(body, **options):
    return Pipeline(f"digraph priced {{ {ENDS} {body} }}", **options)


def test_prices_are_those_of_the_price_list():
    found = pipeline('a [prompt="Plan it", llm_model=claude-sonnet-4-5] start -> a -> done').estimate()
    assert found["a"].expected.cost_usd == pytest.approx((2 * 3 + 500 * 15) / 1e6)
    assert (found.expected, found.worst.calls) == (found["a"].expected, 1)
    with pytest.raises(KeyError, match="done"):
        found["done"]  # it asks no model


def test_a_model_without_a_price_is_unpriced_and_the_total_says_so():
    found = pipeline(
        "a [prompt=x, llm_model=claude-sonnet-4-5] b [prompt=x, llm_model=small] start -> a -> b -> done"
    ).estimate()
    assert found["b"].expected.cost_usd is None
    text = str(found)
    assert "unpriced" in text
    assert "≥ $" in text.splitlines()[3]
    assert found.to_plain()["nodes"][1]["cost_usd"] is None


def test_the_system_prompt_and_the_asked_for_verdict_are_part_of_a_prompt():
    plain = pipeline("a [prompt=x] start -> a -> done").estimate()["a"].expected.input_tokens
    system = pipeline(f'a [prompt=x, llm.system_prompt="{"y" * 400}"] start -> a -> done').estimate()
    verdict = pipeline("a [prompt=x, verdict=json] start -> a -> done").estimate()
    assert system["a"].expected.input_tokens == plain + 100
    assert verdict["a"].expected.input_tokens > plain + 10


class Order(BaseModel):
    count: int
    note: str


def test_a_prompt_has_the_text_of_a_schema_that_is_named():
    named = pipeline("a [prompt=x, response_schema=Order] start -> a -> done", schemas={"Order": Order})
    text = json.dumps(Order.model_json_schema()).replace('"', '\\"')
    written = pipeline(f'a [prompt=x, response_schema="{text}"] start -> a -> done')
    assert named.estimate()["a"].expected.input_tokens == written.estimate()["a"].expected.input_tokens


def test_the_likely_path_sees_the_parameters():
    body = (
        'a [prompt=x] b [prompt=x] start -> a a -> b [condition="context.deep=true"] a -> done [default=true] b -> done'
    )
    assert pipeline(body).estimate().expected.calls == 1
    assert pipeline(body).estimate({"deep": "true"}).expected.calls == 2
    assert pipeline(body, params={"deep": "true"}).estimate().expected.calls == 2


def test_bounds_and_assumptions_can_be_given():
    looping = pipeline("a [prompt=x] start -> a a -> a [weight=2] a -> done")
    assert looping.estimate().worst.calls == 1000
    assert "max_node_visits bounds it closer" in str(looping.estimate())
    assert looping.estimate(max_node_visits=3).worst.calls == 3
    assert looping.estimate(assumptions=Assumptions(response_tokens=7)).expected.output_tokens == 7
    with pytest.raises(OptionError, match="max_visits"):
        looping.estimate(max_visits=3)


def test_a_child_run_is_part_of_the_estimate():
    inner = f'digraph inner {{ {ENDS} x [prompt="In it", llm_model="gpt-5.2"] start -> x -> done }}'
    outer = pipeline(
        "s [type=pipeline, pipeline.name=inner, max_retries=1] start -> s -> done", pipelines={"inner": inner}
    )
    alone = Pipeline(inner).estimate()
    found = outer.estimate()
    assert found.expected == alone.expected
    assert found.worst.calls == 2 * alone.worst.calls
    assert "child run" in str(found)


def test_a_stage_is_counted_for_each_item_of_a_list_that_is_known_and_at_worst_for_as_many_as_it_may_have():
    alone = pipeline('x [prompt="Read", llm_model="gpt-5.2"] start -> x -> done').estimate()
    text = 'x [for_each="item in files", prompt="Read", llm_model="gpt-5.2", max_items=7] start -> x -> done'
    known, unknown = (pipeline(text).estimate(**options) for options in ({"params": {"files": [1, 2, 3]}}, {}))
    assert (known.expected.calls, unknown.expected.calls) == (3, 1)
    assert known.worst.calls == 7 * alone.worst.calls


def test_errors_of_lint_are_refused():
    with pytest.raises(ValidationError):
        Pipeline("digraph { a -> b }").estimate()


def test_without_prompts_a_run_costs_nothing():
    assert str(pipeline("start -> done").estimate()) == "No node asks a model: a run costs nothing."


def test_a_frame_has_a_line_for_each_node():
    pandas = pytest.importorskip("pandas")
    frame = pipeline("a [prompt=x] b [prompt=y] start -> a -> b -> done").estimate().to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.index) == ["a", "b"]
    assert {"cost_usd", "worst_cost_usd", "calls"} <= set(frame.columns)


def test_a_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(OptionError, match="pip install pandas"):
        pipeline("a [prompt=x] start -> a -> done").estimate().to_frame()


def test_without_a_price_list_everything_is_unpriced_and_the_remedy_is_said(monkeypatch):
    for name in (
        "attractor_nb.backends.llm.metered_requests.has_prices",
        "attractor_nb.studio.estimate.run_estimate.has_prices",
    ):
        monkeypatch.setattr(name, lambda: False)
    found = pipeline('a [prompt=x, llm_model="gpt-5.2"] start -> a -> done').estimate()
    assert found.expected.cost_usd is None
    assert install_command("llm") in str(found)


def test_the_html_is_well_formed_and_has_all_nodes():
    bundle = pipeline("a [prompt=x] b [prompt=y] start -> a -> b -> done").estimate()._repr_mimebundle_()
    rows = list(ET.fromstring(bundle["text/html"]).iter("tr"))
    assert [row[0].text for row in rows] == ["node", "a", "b", "total"]
