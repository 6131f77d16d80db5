"""A budget in USD is no bound for a model with an unknown price (ruling 18)."""

import pytest

from attractor_nb import Pipeline
from attractor_nb.backends import ProviderBackend
from attractor_nb.errors import OptionError

ENDS = "start [shape=Mdiamond] done [shape=Msquare]"


def run(body, backend=None, **options):
    pipeline = Pipeline(f"digraph {{ {ENDS} {body} start -> a -> done }}")
    return pipeline.run(wait=True, durability="none", backend=backend or ProviderBackend(), **options)


@pytest.mark.parametrize(
    ("body", "options", "name"),
    [
        ('a [prompt=x, llm_model="openai:house"]', {"max_budget_usd": 1.0}, "openai:house"),
        ('max_budget_usd=1 a [prompt=x, llm_model="openai:house"]', {}, "openai:house"),
        ('a [prompt=x, llm_model="gpt-5.2", llm_fallback="ollama:qwen3"]', {"max_budget_usd": 1.0}, "ollama:qwen3"),
    ],
)
def test_ruling_18_an_unpriced_model_under_a_price_alone_is_refused_before_the_run(body, options, name, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with pytest.raises(OptionError, match=f"the price of {name}, which a asks, is not known") as refused:
        run(body, **options)
    assert "max_tokens_total" in refused.value.hint


def test_of_a_backend_that_is_no_provider_s_nothing_is_known_by_name():
    answered = run('a [prompt=x, llm_model="openai:house"]', lambda prompt: "ok", max_budget_usd=1.0)
    assert answered.status == "success"


@pytest.mark.parametrize("options", [{}, {"max_tokens_total": 5000, "max_budget_usd": 1.0}])
def test_with_a_bound_on_tokens_or_none_on_the_price_it_runs(options, monkeypatch):
    asked = []
    monkeypatch.setattr(ProviderBackend, "run", lambda self, node, prompt, context: asked.append(node.id) or "ok")
    assert run('a [prompt=x, llm_model="openai:house"]', **options).status == "success"
    assert asked == ["a"]


def test_a_child_pipeline_s_models_count():
    inner = f'digraph {{ {ENDS} x [prompt=x, llm_model="openai:house"] start -> x -> done }}'
    outer = Pipeline(
        f"digraph {{ {ENDS} s [type=pipeline, pipeline.name=inner] start -> s -> done }}", pipelines={"inner": inner}
    )
    with pytest.raises(OptionError, match="openai:house, which x asks"):
        outer.run(wait=True, durability="none", backend=ProviderBackend(), max_budget_usd=1.0)
