"""Rules about who answers a prompt: providers, names of models, addresses, fallbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from attractor_nb.lint.rules.models import attributes, first_invalid_entries
from attractor_nb.lint.survey import Finding, Survey, outward, replacing, rule, value_span
from attractor_nb.model.calls.providers import (
    FIELDS,
    PREFIX,
    PROVIDER_NAMES,
    endpoint_of,
    known_provider,
    read_endpoint,
    read_model,
    written_endpoints,
)
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.texts import nearest, suggestion
from attractor_nb.model.vocabulary.attribute_table import FALLBACK_REASONS
from attractor_nb.model.vocabulary.attributes import literal_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.source import Span


_FAMILIES: Final = ("gpt", "claude", "gemini", "gemma", "deepseek", "chatgpt", "codex")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PROVIDERS: Final = f"known providers: {', '.join(PROVIDER_NAMES)}"


@rule(Severity.ERROR, is_local=True)
def fallback_valid(survey: Survey) -> Iterator[Finding]:
    """`llm_fallback` is not a comma-separated list of `model` or `provider:model`.

    An invalid entry would be noticed only after the first model has failed.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_fallback="gpt-5-mini,,openai:"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_fallback="gpt-5-mini,ollama:qwen3"]
            exit [shape=Msquare]  start -> work -> exit }
    """

    def is_model(entry: str) -> bool:
        return bool(entry) and not entry.startswith(":") and bool(read_model(entry).model)

    for written, entry in first_invalid_entries(survey, "llm_fallback", is_model):
        what = f'entry "{entry}" that is not a model' if entry else "empty entry"
        fix = Fix('write models with commas between, such as "gpt-5-mini,anthropic:claude-haiku-4-5"')
        yield Finding(f"llm_fallback has an {what}", written.span, written.node_id, fix=fix)


@rule(Severity.ERROR, is_local=True)
def base_url_valid(survey: Survey) -> Iterator[Finding]:
    """`llm.base_url` is not an address that begins with `https://` or `http://`.

    Prompts are sent there, and no key. An `http://` address of another machine is a WARNING: prompts are sent there
    unencrypted.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm.base_url="models.example.org/v1"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm.base_url="https://models.example.org/v1"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    for written in attributes(survey, "llm.base_url"):
        scheme, host = _address(written.text)
        fix = Fix('write it whole, such as "https://models.example.org/v1"')
        if scheme not in ("http", "https") or not host:
            message = f'llm.base_url "{written.text}" is not an address that begins with http:// or https://'
            yield Finding(message, written.span, written.node_id, fix=fix)
        elif scheme == "http" and host not in _LOOPBACK:
            message = f"llm.base_url sends prompts to {host} unencrypted"
            fix = Fix("use https://, or a server on this machine")
            yield Finding(message, written.span, written.node_id, fix=fix, severity=Severity.WARNING)


@rule(Severity.ERROR)
def endpoint_valid(survey: Survey) -> Iterator[Finding]:
    """An endpoint has no address, or one of its settings is unknown or invalid.

    The settings of an endpoint are `.url`, `.key_env` and `.api`. Prompts are sent to its address, with the key that
    `key_env` names. Rates (`.requests_per_minute`, `.tokens_per_minute`) are counts; a provider can have these two
    settings, and no other. An address that travels unencrypted over a network is a WARNING.

    Bad:

        digraph { endpoint.local.ulr="http://127.0.0.1:8080/v1"  llm_model="local:qwen3"
            start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { endpoint.local.url="http://127.0.0.1:8080/v1"  llm_model="local:qwen3"
            start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]  start -> work -> exit }
    """
    graph = survey.graph
    for name, facts in written_endpoints(graph.attrs).items():
        wrong = next((field for field in facts if field not in FIELDS), "")
        attribute = f"{PREFIX}{name}.{wrong or next(iter(facts))}"
        near = nearest(wrong, FIELDS) if wrong else ""
        try:
            endpoint = read_endpoint(name, {field: literal_text(value) for field, value in facts.items()})
        except ValueError as error:
            fix = Fix("see the models' page of the documentation")
            if near and near not in facts:
                fix = Fix(f'write "{PREFIX}{name}.{near}"')
            names = (f"{PREFIX}{name}.{field}" for field in facts)
            attribute = next((each for each in names if str(error).startswith(f"{each} ")), attribute)
            yield Finding(str(error), value_span(graph, attribute), "", fix=fix)
            continue
        scheme, host = _address(endpoint.url)
        if scheme == "http" and host not in _LOOPBACK:
            what = "prompts and a key" if endpoint.key_env else "prompts"
            message = f"{PREFIX}{name}.url sends {what} to {host} unencrypted"
            fix = Fix("use https://, or a server on this machine")
            span = value_span(graph, f"{PREFIX}{name}.url")
            yield Finding(message, span, "", fix=fix, severity=Severity.WARNING)


@rule(Severity.ERROR, is_local=True)
def fallback_on_known(survey: Survey) -> Iterator[Finding]:
    """`llm_fallback_on` has a word other than `overlong` and `refusal`.

    With a misspelt word the stage would fail instead of asking the next model.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_fallback="o3", llm_fallback_on="refusel"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_fallback="o3", llm_fallback_on="refusal"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    for written, word in first_invalid_entries(survey, "llm_fallback_on", FALLBACK_REASONS.__contains__):
        near = nearest(word, FALLBACK_REASONS)
        message = f'llm_fallback_on "{word}" is not one of {", ".join(FALLBACK_REASONS)}'
        fix = Fix(f"use {', '.join(FALLBACK_REASONS)}, with commas between")
        if near:
            message += suggestion(near)
            fix = _respelled(written.span, word, near) or Fix(f'write "{near}"')
        yield Finding(message, written.span, written.node_id, fix=fix)


@rule(Severity.WARNING)
def provider_known(survey: Survey) -> Iterator[Finding]:
    """`llm_provider` names an unknown provider.

    A name within two slips of a known one is a WARNING. Any other is an INFO: a backend of your own may know it, the
    backend `llm` does not. No fix inserts the name of another company (ruling 40); a fix may insert the name of an
    endpoint of the graph.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_provider="antropic", llm_model="small"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_provider="anthropic", llm_model="small"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    endpoints = written_endpoints(survey.graph.attrs)
    for choice in survey.model_choices:
        name = choice.provider.value
        if not name or known_provider(name) or name in endpoints:
            continue
        message = f'provider "{name}" is not known'
        near = nearest(name, endpoints) or nearest(name.lower(), PROVIDER_NAMES)
        severity = Severity.WARNING if near else Severity.INFO
        fix = Fix(f"{_PROVIDERS}; or keep it for a custom backend")
        if near:
            message += suggestion(near)
            mended = _respelled(choice.provider.span, name, near) if near in endpoints else None
            fix = mended or Fix(f'write "{near}" if it is meant')
        yield Finding(message, choice.provider.span, choice.node_id, fix=fix, severity=severity)


@rule(Severity.INFO)
def model_provider(survey: Survey) -> Iterator[Finding]:
    """The provider of a model is unknown: its name does not tell it, and `llm_provider` is missing.

    The backend `llm` must know which provider to ask. Reported only if the graph also has models of known providers, or
    if the name is almost one of theirs (a WARNING): a backend of your own may know any name.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_model="cluade-opus-4-6"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", llm_model="claude-opus-4-6"]
            exit [shape=Msquare]  start -> work -> exit }
    """
    choices, endpoints = survey.model_choices, written_endpoints(survey.graph.attrs)
    are_providers_told = any(known_provider(choice.name.provider) for choice in choices)
    for choice in choices:
        name = choice.name
        if not name.model or name.provider or endpoint_of(name.model, "", endpoints):
            continue
        before, colon, after = name.model.partition(":")
        if colon and (near := nearest(before, endpoints)):
            message = f'there is no endpoint "{before}"; did you mean "{near}"?'
            fix = _respelled(choice.model.span, name.model, f"{near}:{after}") or Fix(f'write "{near}:{after}"')
            yield Finding(message, choice.model.span, choice.node_id, fix=fix, severity=Severity.WARNING)
            continue
        family = name.model.split("-")[0].lower()
        near = nearest(family, _FAMILIES) if "-" in name.model else ""
        if not near and not are_providers_told:
            continue
        message = f'the provider of model "{name.model}" is unknown'
        fix = Fix("set llm_provider, or write provider:model")
        if near:
            meant = near + name.model[len(family) :]
            message += suggestion(meant)
            fix = Fix(f'write "{meant}" if it is meant')  # no edit: it would be another model (ruling 40)
        severity = Severity.WARNING if near else Severity.INFO
        yield Finding(message, choice.model.span, choice.node_id, fix=fix, severity=severity)


def _address(text: str) -> tuple[str, str]:
    """Scheme and host of an address; empty ones for what is none."""
    try:
        parts = urlsplit(text.strip())
        return parts.scheme.lower(), (parts.hostname or "").lower()
    except ValueError:
        return "", ""


def _respelled(span: Span | None, name: str, meant: str) -> Fix | None:
    """The fix that writes a name rightly in its place, in a declaration or an attribute's value."""
    if span is None or name not in span.text:
        return None
    start = span.start + span.text.rindex(name)
    fix = replacing(span.source.span(start, start + len(name)), meant, f'write "{meant}"')
    return outward(fix) if span.source.host else fix


RULES: Final = (fallback_valid, base_url_valid, endpoint_valid, fallback_on_known, provider_known, model_provider)
