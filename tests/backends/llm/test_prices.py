"""The models that the installed price list has of a provider."""

import re

import pytest

from attractor_nb.backends.llm import metered_requests
from attractor_nb.backends.llm.metered_requests import listed_models
from attractor_nb.model.calls.providers import ModelName
from attractor_nb.model.outcome import Usage


@pytest.mark.parametrize(
    ("provider", "one", "form"),
    [
        ("openai", "gpt-4o", r"(gpt-|chatgpt-|codex-|o\d)"),
        ("anthropic", "claude-3-5-sonnet", r"claude-"),
        ("google", "gemini-2.5-pro", r"(gemini-|gemma-)"),
        ("bedrock", "amazon.nova-micro-v1:0", r"[a-z0-9-]+\."),
    ],
    ids=["openai", "anthropic", "google", "bedrock"],
)
def test_the_models_of_a_provider_are_those_that_it_serves(provider, one, form):
    listed = listed_models(provider)
    assert one in listed
    assert [model for model in listed if not re.match(form, model)] == []
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize(("alias", "name"), [("gemini", "google"), ("Claude", "anthropic"), ("aws", "bedrock")])
def test_an_alias_has_the_models_of_its_provider(alias, name):
    assert listed_models(alias) == listed_models(name) != ()


def test_without_a_provider_all_models_are_listed_that_their_names_tell():
    listed = listed_models("")
    assert {"gpt-4o", "claude-3-5-sonnet", "gemini-2.5-pro"} <= set(listed)
    assert "amazon.nova-micro-v1:0" not in listed


def test_a_provider_that_nobody_knows_has_no_listed_models():
    assert listed_models("nobody") == ()


def test_without_a_price_list_no_models_are_listed(monkeypatch):
    monkeypatch.setattr(metered_requests, "has_prices", lambda: False)
    listed_models.cache_clear()
    try:
        assert listed_models("openai") == ()
    finally:
        listed_models.cache_clear()


@pytest.mark.parametrize("error", [LookupError("no tier"), ValueError("more cached than sent")])
def test_counts_that_the_list_has_no_price_for_are_unpriced(monkeypatch, error):
    class Odd:
        def calc_price(self, *_, **__):
            raise error

    usage = Usage(10, 5, None, 1, cached_tokens=20)
    monkeypatch.setattr(metered_requests, "_listed", lambda *_: (None, Odd(), None))
    assert metered_requests.price_of(ModelName("gpt-5.2", "openai"), usage) is None
