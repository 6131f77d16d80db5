"""The providers of models that are known by name, and which of them a model's name belongs to.

Pure: lint, estimates, preflight and the backend that calls them agree by this one table. A provider that is
not in it is no mistake: a backend of the user's own may know it.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec


class Provider(msgspec.Struct, frozen=True):
    """A provider of models."""

    name: str  #: Its key, as `llm_provider` says it.
    #: Environment variables that can hold its key, the first that is set; none when none is needed.
    keys: tuple[str, ...]
    package: str  #: The Python package of its client, as it is imported.
    models: re.Pattern[str] | None = None  #: Matches the names of models that are told to be its own.
    aliases: tuple[str, ...] = ()  #: Other keys that mean it.
    address: str = ""  #: Environment variable that holds its server's address, in place of the usual one if it has one.
    url: str = ""  #: Its usual address, where it speaks OpenAI's language.
    official_url: str = ""  #: Its usual address, where its client goes by itself.
    settings: tuple[str, ...] = ()  #: Environment variables without which it cannot be asked, beside key and address.
    extra: str = "llm"  #: The extra of this package that installs its client.
    is_signed_in: bool = False  #: Its own client finds out who asks, beside the keys: profiles, roles, files.

    @property
    def is_placed(self) -> bool:
        """Whether it has a usual address."""
        return bool(self.url or self.official_url)


PROVIDERS: Final = (
    Provider(
        "openai",
        ("OPENAI_API_KEY",),
        "openai",
        re.compile(r"(gpt-|chatgpt-|codex-|o[134](-|\Z))"),
        ("open_ai",),
        address="OPENAI_BASE_URL",
        official_url="https://api.openai.com/v1",
    ),
    Provider(
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        "anthropic",
        re.compile(r"claude-"),
        ("claude",),
        address="ANTHROPIC_BASE_URL",
        official_url="https://api.anthropic.com",
    ),
    Provider(
        "google",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "google.genai",
        re.compile(r"(gemini-|gemma-)"),
        ("gemini", "google-gla", "google-genai"),
        official_url="https://generativelanguage.googleapis.com",
    ),
    Provider("deepseek", ("DEEPSEEK_API_KEY",), "openai", re.compile(r"deepseek-"), url="https://api.deepseek.com"),
    Provider(
        "mistral",
        ("MISTRAL_API_KEY",),
        "openai",
        re.compile(r"(mi|magi|code|mini)stral-"),
        url="https://api.mistral.ai/v1",
    ),
    Provider("groq", ("GROQ_API_KEY",), "openai", url="https://api.groq.com/openai/v1"),
    Provider("xai", ("XAI_API_KEY",), "openai", re.compile(r"grok-"), ("grok", "x-ai"), url="https://api.x.ai/v1"),
    Provider("openrouter", ("OPENROUTER_API_KEY",), "openai", url="https://openrouter.ai/api/v1"),
    Provider("ollama", (), "openai", address="OLLAMA_BASE_URL", url="http://localhost:11434/v1"),
    Provider("azure", ("AZURE_OPENAI_API_KEY",), "openai", None, ("azure-openai",), address="AZURE_OPENAI_ENDPOINT"),
    Provider(
        "vertex",
        (),
        "google.genai",
        aliases=("google-vertex", "google-cloud", "vertexai"),
        settings=("GOOGLE_CLOUD_PROJECT",),
        is_signed_in=True,
    ),
    Provider(
        "bedrock",
        ("AWS_BEARER_TOKEN_BEDROCK",),
        "boto3",
        aliases=("aws", "amazon-bedrock"),
        settings=("AWS_DEFAULT_REGION",),
        extra="bedrock",
        is_signed_in=True,
    ),
)
COMPATIBLE: Final = "openai"
"""Whose language most servers of one's own speak."""
_BY_NAME: Final = {name: entry for entry in PROVIDERS for name in (entry.name, *entry.aliases)}
PROVIDER_NAMES: Final = tuple(_BY_NAME)
"""All names that mean a known provider, aliases included."""


class ModelName(msgspec.Struct, frozen=True):
    """A model and who provides it."""

    model: str  #: The provider's own name of the model; empty when nobody names one.
    provider: str = ""  #: The provider's key, an alias resolved; empty when it cannot be told.

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}" if self.provider and self.model else self.provider or self.model


def known_provider(name: str) -> Provider | None:
    """The provider that a key or an alias means, whatever its case; None for one that is not known.

    >>> known_provider("Gemini").name
    'google'
    """
    return _BY_NAME.get(name.strip().lower())


def read_model(model: str, provider: str = "") -> ModelName:
    """What `llm_model` and `llm_provider` mean together.

    A known provider before a colon is taken off the model's name, and counts for more than ``provider``. When
    nobody names the provider, the model's name tells it, if it can (spec 2.6).

    >>> str(read_model("claude-opus-4-6")), str(read_model("gpt-5.2", "openrouter")), str(read_model("small"))
    ('anthropic:claude-opus-4-6', 'openrouter:gpt-5.2', 'small')
    >>> str(read_model("gemini:gemini-2.5-pro")), str(read_model("llama3:8b", "ollama"))
    ('google:gemini-2.5-pro', 'ollama:llama3:8b')
    """
    model, provider = model.strip(), provider.strip()
    before, colon, after = model.partition(":")
    if colon and (named := known_provider(before)):
        return ModelName(after.strip(), named.name)
    if provider:
        named = known_provider(provider)
        return ModelName(model, named.name if named else provider)
    found = (entry.name for entry in PROVIDERS if entry.models and entry.models.match(model.lower()))
    return ModelName(model, next(found, ""))


def address_owner(name: ModelName) -> str:
    """Whose address an address is that stands beside a model, or empty: a server of one's own.

    An address belongs to the provider of the model that it stands beside, and other providers' models are not
    asked there. A model that OpenAI does not have is none of OpenAI's because a server speaks its language.

    >>> address_owner(read_model("gpt-5.2")), address_owner(read_model("qwen3", "openai"))
    ('openai', '')
    """
    if name.provider == COMPATIBLE and name.model and read_model(name.model).provider != COMPATIBLE:
        return ""
    return name.provider


def read_fallbacks(text: str) -> tuple[ModelName, ...]:
    """The models of `llm_fallback` in their order; entries that name none, which lint reports, are left out.

    >>> [str(name) for name in read_fallbacks("gpt-5-mini, ollama:qwen3:8b,")]
    ['openai:gpt-5-mini', 'ollama:qwen3:8b']
    """
    names = (read_model(entry) for entry in text.split(","))
    return tuple(name for name in names if name.model)
