"""The requests of a node to its models, without any library (spec 2.6, 8.5)."""

import subprocess
import sys

import pytest

from attractor_nb.backends.llm.exchange import model_settings
from attractor_nb.backends.llm.model_requests import RequestDefaults, read_request
from attractor_nb.errors import TerminalError
from attractor_nb.model.graph import Node


def request(defaults=None, **attrs):
    attrs = {name.replace("llm__", "llm."): value for name, value in attrs.items()}
    return read_request(Node("plan", attrs), defaults or RequestDefaults())


def targets(defaults=None, **attrs):
    return [f"{target} {target.base_url}".strip() for target in request(defaults, **attrs).targets]


HOME = "http://127.0.0.1:8080/v1"


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"llm_model": "gpt-5.2"}, ["openai:gpt-5.2"]),
        ({"llm_model": "claude-opus-4-6"}, ["anthropic:claude-opus-4-6"]),
        ({"llm_model": "gemini-2.5-pro"}, ["google:gemini-2.5-pro"]),
        ({"llm_model": "gemini-2.5-pro", "llm_provider": "gemini"}, ["google:gemini-2.5-pro"]),
        ({"llm_model": "openai:small", "llm_provider": "anthropic"}, ["openai:small"]),
        ({"llm_model": "qwen3:8b", "llm_provider": "ollama"}, ["ollama:qwen3:8b"]),
        ({"llm_model": "small", "llm__base_url": HOME + "/"}, [f"openai:small {HOME}"]),
        ({"llm_model": "claude-opus-4-6", "llm_provider": "openai", "llm__base_url": HOME}, [f"openai:claude-opus-4-6 {HOME}"]),
        ({"llm_model": "gpt-5.2", "llm_fallback": "claude-opus-4-6, gpt-5-mini"}, ["openai:gpt-5.2", "anthropic:claude-opus-4-6", "openai:gpt-5-mini"]),
        ({"llm_model": "gpt-5.2", "llm_fallback": "claude-opus-4-6,gpt-5-mini", "llm__base_url": HOME}, [f"openai:gpt-5.2 {HOME}", "anthropic:claude-opus-4-6", f"openai:gpt-5-mini {HOME}"]),
        ({"llm_model": "gpt-5.2", "llm_fallback": "gpt-5.2"}, ["openai:gpt-5.2"]),
    ],
)  # fmt: skip
def test_models_are_told_by_prefix_provider_name_or_address(attrs, expected):
    assert targets(**attrs) == expected


def test_the_backends_own_model_is_that_of_nodes_that_name_none():
    defaults = RequestDefaults(model="small", provider="ollama", fallback="gpt-5-mini")
    assert targets(defaults) == ["ollama:small", "openai:gpt-5-mini"]
    assert targets(defaults, llm_model="gpt-5.2", llm_fallback="o3") == ["openai:gpt-5.2", "openai:o3"]
    assert targets(defaults, llm_model="other") == ["ollama:other", "openai:gpt-5-mini"]


@pytest.mark.parametrize(
    ("attrs", "message", "hint"),
    [
        ({}, "names no model", "or give backend=ProviderBackend("),
        ({"llm_provider": "anthropic"}, "names no model", "llm_model"),
        ({"llm_model": "small"}, "the provider is unknown for the model 'small'", "llm.base_url"),
        ({"llm_model": "small", "llm_provider": "opnai"}, "no provider 'opnai'.*did you mean .openai.", "openai, anthropic"),
        ({"llm_model": "gpt-5.2", "llm_provider": "anthropic"}, "a model of openai, and the provider is anthropic", "llm_provider=openai"),
        ({"llm_model": "gpt-5.2", "llm__base_url": "localhost:8080"}, "is no address", "https://"),
        ({"llm_model": "gpt-5.2", "llm__base_url": "http://host:port/"}, "is no address", "https://"),
        ({"llm_model": "gpt-5.2", "llm__base_url": "https://me:secret@host/"}, "user's name or password", "environment"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_said_with_what_to_write(attrs, message, hint):
    with pytest.raises(TerminalError, match=message) as caught:
        request(**attrs)
    assert hint in caught.value.hint
    assert "plan" in caught.value.message
    assert "secret" not in str(caught.value)


def test_a_provider_without_a_model_of_it_is_no_wish_for_the_backends_own():
    with pytest.raises(TerminalError, match="names the provider 'anthropic' but no model"):
        request(RequestDefaults(model="gpt-5.2"), llm_provider="anthropic")


def test_what_goes_into_a_call_is_said_by_name_and_nothing_else_is():
    asked = request(
        llm_model="gpt-5.2",
        llm__system_prompt="Be brief.",
        llm__temperature=0.5,
        response_schema='{"type": "object"}',
        llm_fallback="o3",
    )
    assert asked.to_plain() == {
        "model": "openai:gpt-5.2",
        "fallback": ["openai:o3"],
        "reasoning_effort": "high",
        "temperature": 0.5,
        "system_prompt": "Be brief.",
        "response_schema": {"type": "object"},
    }
    assert request(llm_model="gpt-5.2", llm__temperature=0.0).to_plain()["temperature"] == 0.0


@pytest.mark.parametrize("schema", ["{", "3", '{"type": "array"}', '{"$ref": "x"}'])
def test_a_provider_is_bound_to_schemas_of_objects_alone(schema):
    assert request(llm_model="gpt-5.2", response_schema=schema).schema is None


THINKS = {"supports_thinking": True}
ALWAYS = {**THINKS, "thinking_always_enabled": True}
ADAPTS = {**THINKS, "anthropic_supports_adaptive_thinking": True}


@pytest.mark.parametrize(
    ("provider", "profile", "attrs", "thinking", "temperature"),
    [
        ("openai", {}, {"llm__temperature": 0.0}, None, 0.0),
        ("openai", THINKS, {}, "high", None),
        ("openai", THINKS, {"reasoning_effort": "low"}, "low", None),
        ("openai", THINKS, {"llm__temperature": 0.2}, False, 0.2),
        ("openai", THINKS, {"llm__temperature": 0.2, "reasoning_effort": "low"}, "low", None),
        ("openai", ALWAYS, {"llm__temperature": 0.2}, "high", None),
        ("google", THINKS, {"llm__temperature": 0.2}, "high", 0.2),
        ("anthropic", ADAPTS, {"llm__max_tokens": 100}, "high", None),
        ("anthropic", THINKS, {"llm__max_tokens": 100}, False, None),
        ("anthropic", THINKS, {"llm__max_tokens": 4000}, "low", None),
        ("anthropic", THINKS, {"llm__max_tokens": 40_000, "reasoning_effort": "medium"}, "medium", None),
        ("anthropic", THINKS, {}, "high", None),
    ],
)
def test_effort_temperature_and_limit_go_together_as_a_provider_takes_them(
    provider, profile, attrs, thinking, temperature
):
    asked = request(llm_model="any", llm_provider=provider, **attrs)
    settings = model_settings(asked, provider, profile, read_seconds=3.0)
    assert (settings.get("thinking"), settings.get("temperature")) == (thinking, temperature)
    assert settings.get("max_tokens") == attrs.get("llm__max_tokens")
    assert (settings["max_retries"], settings["timeout"]) == (0, 3.0)


def test_nothing_slow_is_loaded_before_a_model_is_asked():
    """Naming the backend loads no library of a provider; so does reading what nodes ask for."""
    code = (
        "import sys\n"
        "from attractor_nb import Pipeline, ProviderBackend\n"
        "ProviderBackend('gpt-5.2').check_graph(Pipeline('digraph g { s [shape=Mdiamond] p [prompt=x] d [shape=Msquare] s -> p -> d }').graph)\n"
        "print(sorted({'pydantic_ai', 'openai', 'anthropic', 'httpx', 'httpx2', 'genai_prices', 'opentelemetry'} & sys.modules.keys()))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
