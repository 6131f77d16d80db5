"""The provider of a model, by its name."""

import pytest

from attractor_nb.model.calls.providers import PROVIDER_NAMES, PROVIDERS, known_provider, read_fallbacks, read_model
from attractor_nb.processes.local import PROVIDER_VARIABLES
from attractor_nb.redaction import is_secret_name


@pytest.mark.parametrize(
    ("model", "provider", "told"),
    [
        ("gpt-5.2", "", "openai:gpt-5.2"),
        ("o3", "", "openai:o3"),
        ("o4-mini", "", "openai:o4-mini"),
        ("claude-sonnet-4-5", "", "anthropic:claude-sonnet-4-5"),
        ("Claude-Opus-4-6", "", "anthropic:Claude-Opus-4-6"),
        ("gemini-2.5-pro", "", "google:gemini-2.5-pro"),
        ("gemini-2.5-pro", "gemini", "google:gemini-2.5-pro"),
        ("gpt-5.2", "openrouter", "openrouter:gpt-5.2"),
        ("anthropic/claude-opus-4-6", "openrouter", "openrouter:anthropic/claude-opus-4-6"),
        ("openai:gpt-5.2", "anthropic", "openai:gpt-5.2"),
        ("house-model", "ours", "ours:house-model"),
        ("house:model", "", "house:model"),
        ("octopus", "", "octopus"),
        ("o32", "", "o32"),
        (" gpt-5.2 ", " ", "openai:gpt-5.2"),
        ("", "openai", "openai"),
        ("", "", ""),
    ],
)
def test_auto_detected_provider_of_a_model(model, provider, told):
    assert str(read_model(model, provider)) == told


def test_every_name_of_a_provider_is_its_own():
    assert len(set(PROVIDER_NAMES)) == len(PROVIDER_NAMES)
    assert all(known_provider(name.upper()) for name in PROVIDER_NAMES)
    assert known_provider("nobody") is None


def test_fallbacks_keep_their_order_and_leave_out_what_names_no_model():
    assert [str(name) for name in read_fallbacks("b, openai:, ,claude-x,a")] == ["b", "anthropic:claude-x", "a"]
    assert read_fallbacks("") == ()


def test_no_command_inherits_the_key_of_a_known_provider():
    withheld = [
        name
        for each in PROVIDERS
        for name in each.keys
        if not (is_secret_name(name) or PROVIDER_VARIABLES.fullmatch(name))
    ]
    assert withheld == []


def test_a_provider_has_an_address_or_a_variable_for_one_or_finds_it_itself():
    assert [each.name for each in PROVIDERS if not (each.is_placed or each.address or each.is_signed_in)] == []
    assert [each.name for each in PROVIDERS if each.url and each.official_url] == []
