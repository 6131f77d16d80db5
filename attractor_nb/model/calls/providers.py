"""The providers of models that are known by name, and which of them a model's name belongs to.

Pure: lint, estimates, preflight and the backend that calls them agree by this one table. A provider that is
not in it is no mistake: a backend of the user's own may know it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from attractor_nb.model.texts import did_you_mean
from attractor_nb.redaction import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_Form = tuple[tuple[type, ...], str]
"""Types of an option, and their description."""
_NUMBER: Final = ((int, float), "a number")
_COUNT: Final = ((int,), "a whole number")
_WORD: Final = ((str,), "a word")
_FLAG: Final = ((bool,), "true or false")
_SAMPLING: Final[dict[str, _Form]] = {
    "min_p": _NUMBER,
    "top_a": _NUMBER,
    "typical_p": _NUMBER,
    "repetition_penalty": _NUMBER,
    "repeat_penalty": _NUMBER,
    "repeat_last_n": _COUNT,
    "mirostat": _COUNT,
    "mirostat_tau": _NUMBER,
    "mirostat_eta": _NUMBER,
    "enable_thinking": _FLAG,
}
_OPENAI: Final[dict[str, _Form]] = {
    "verbosity": _WORD,
    "prompt_cache_key": _WORD,
    "safety_identifier": _WORD,
    "user": _WORD,
}


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
    is_single_maker: bool = False  #: It provides models of its own alone.
    is_cool_thinker: bool = False  #: Its models take no temperature while they think.
    is_marking: bool = False  #: It caches the parts of a prompt that are marked.
    traced_as: str = ""  #: Its name in OpenTelemetry's conventions, where that is another.
    body: dict[str, _Form] = {}  #: Options that the body of a request to it takes beside those of all providers.

    @property
    def is_placed(self) -> bool:
        """True if it has a usual address."""
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
        is_single_maker=True,
        is_cool_thinker=True,
        body={**_SAMPLING, **_OPENAI},  # private servers speak its language and take its options
    ),
    Provider(
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        "anthropic",
        re.compile(r"claude-"),
        ("claude",),
        address="ANTHROPIC_BASE_URL",
        official_url="https://api.anthropic.com",
        is_single_maker=True,
        is_cool_thinker=True,
        is_marking=True,
    ),
    Provider(
        "google",
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "google.genai",
        re.compile(r"(gemini-|gemma-)"),
        ("gemini", "google-gla", "google-genai"),
        official_url="https://generativelanguage.googleapis.com",
        is_single_maker=True,
        traced_as="gcp.gemini",
    ),
    Provider(
        "deepseek",
        ("DEEPSEEK_API_KEY",),
        "openai",
        re.compile(r"deepseek-"),
        url="https://api.deepseek.com",
        is_single_maker=True,
        body=_SAMPLING,
    ),
    Provider(
        "mistral",
        ("MISTRAL_API_KEY",),
        "openai",
        re.compile(r"(mi|magi|code|mini)stral-"),
        url="https://api.mistral.ai/v1",
        traced_as="mistral_ai",
        body={"random_seed": _COUNT, "safe_prompt": _FLAG},
    ),
    Provider("groq", ("GROQ_API_KEY",), "openai", url="https://api.groq.com/openai/v1", body=_SAMPLING),
    Provider(
        "xai",
        ("XAI_API_KEY",),
        "openai",
        re.compile(r"grok-"),
        ("grok", "x-ai"),
        url="https://api.x.ai/v1",
        traced_as="x_ai",
        body=_SAMPLING,
    ),
    Provider("openrouter", ("OPENROUTER_API_KEY",), "openai", url="https://openrouter.ai/api/v1", body=_SAMPLING),
    Provider("ollama", (), "openai", address="OLLAMA_BASE_URL", url="http://localhost:11434/v1", body=_SAMPLING),
    Provider(
        "azure",
        ("AZURE_OPENAI_API_KEY",),
        "openai",
        aliases=("azure-openai",),
        address="AZURE_OPENAI_ENDPOINT",
        is_cool_thinker=True,
        traced_as="azure.ai.openai",
        body=_OPENAI,
    ),
    Provider(
        "vertex",
        (),
        "google.genai",
        aliases=("google-vertex", "google-cloud", "vertexai"),
        settings=("GOOGLE_CLOUD_PROJECT",),
        is_signed_in=True,
        traced_as="gcp.vertex_ai",
    ),
    Provider(
        "bedrock",
        ("AWS_BEARER_TOKEN_BEDROCK",),
        "boto3",
        aliases=("aws", "amazon-bedrock"),
        settings=("AWS_DEFAULT_REGION",),
        extra="bedrock",
        is_signed_in=True,
        is_cool_thinker=True,
        traced_as="aws.bedrock",
    ),
)
COMPATIBLE: Final = "openai"
"""Provider whose API most private servers offer."""
_BY_NAME: Final = {name: entry for entry in PROVIDERS for name in (entry.name, *entry.aliases)}
PROVIDER_NAMES: Final = tuple(_BY_NAME)
"""All names that mean a known provider, aliases included."""


class ModelName(msgspec.Struct, frozen=True):
    """A model and who provides it."""

    model: str  #: The provider's own name of the model; empty by default.
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
    """Resolve `llm_model` and `llm_provider` together.

    A known provider before a colon is taken off the model's name, and counts for more than ``provider``. When
    no provider is named, the model's name tells it, if it can (spec 2.6).

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
    """Owner of the address beside a model, or empty: a private server.

    An address belongs to the provider of the model that it is beside, and other providers' models are not
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


# Rate limits of a provider, per minute. Pure.

RATE_FIELDS: Final = ("requests_per_minute", "tokens_per_minute")


class Rates(msgspec.Struct, frozen=True):
    """Bounds of what is asked in any minute; None for no bound."""

    requests_per_minute: int | None = None  #: Number of requests.
    tokens_per_minute: int | None = None  #: Number of tokens, sent and received.

    def __bool__(self) -> bool:
        return self.requests_per_minute is not None or self.tokens_per_minute is not None

    def __str__(self) -> str:
        """In words.

        >>> str(Rates(60)), str(Rates(60, 30_000))
        ('60 requests a minute', '60 requests, 30,000 tokens a minute')
        """
        bounds = ((self.requests_per_minute, "requests"), (self.tokens_per_minute, "tokens"))
        bounds_text = ", ".join(f"{bound:,} {what}" for bound, what in bounds if bound is not None)
        return f"{bounds_text} a minute" if bounds_text else "no bound"


def read_rates(where: str, facts: Mapping[str, Any]) -> Rates:
    """The bounds among what is written of an endpoint or a provider.

    >>> read_rates("endpoint.local", {"requests_per_minute": "60"})
    Rates(requests_per_minute=60, tokens_per_minute=None)
    """
    return Rates(*(_count(f"{where}.{field}", facts.get(field)) for field in RATE_FIELDS))


def _count(name: str, value: object) -> int | None:
    if value is None:
        return None
    text = "" if isinstance(value, bool) else str(value).strip().replace("_", "")
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise ValueError(f"{name} {value!r} is not a count: write a whole number above 0, such as 60")
    return int(text)


# Named endpoints: servers of models with their address, protocol and key.
#
# Pure. They come from a graph (``endpoint.local.url="http://127.0.0.1:8080/v1"``), from Python
# (``ProviderBackend(endpoints={"local": {"url": …}})``) and from a settings file of the user.

PREFIX: Final = "endpoint."
_OWN_FIELDS: Final = ("url", "key_env", "api")
FIELDS: Final = (*_OWN_FIELDS, *RATE_FIELDS)
APIS: Final = ("chat", "responses")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Endpoint(msgspec.Struct, frozen=True):
    """A server that speaks OpenAI's language; without an address: rates of a provider that is known by name."""

    name: str  #: Its name in ``llm_provider``, and before the name of a model.
    url: str  #: Its address, without a slash at the end; empty for a provider.
    key_env: str = ""  #: The environment variable that holds its key; empty when it asks for none.
    api: str = "chat"  #: ``chat`` (``/chat/completions``) or ``responses``.
    rates: Rates = msgspec.field(default_factory=Rates)  #: Its rate limits in a minute.


def address_problem(text: str) -> str:
    """The reason why a text is not the address of a server, or empty.

    >>> address_problem("http://127.0.0.1:8080/v1"), address_problem("localhost:8080")
    ('', 'is no address')
    """
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        return "is no address"
    if not is_address:
        return "is no address"
    return "holds a user's name or password" if parts.username or parts.password else ""


def read_endpoint(name: str, facts: Mapping[str, Any]) -> Endpoint:
    """An endpoint from what is written of it; of a provider that is known by name its rates alone."""
    where = f"{PREFIX}{name}"
    if not _NAME.match(name):
        raise ValueError(f"endpoint {name!r} has to have a name of letters, digits, - and _")
    provider = known_provider(name)
    if provider and any(word in _OWN_FIELDS for word in facts):
        raise ValueError(
            f"{where} has the name of a provider: give the endpoint one of its own; of a provider only its "
            f"{' and '.join(RATE_FIELDS)} can be said"
        )
    for word in facts:
        if word not in FIELDS:
            raise ValueError(f"{where}.{word} is none of {', '.join(FIELDS)}{did_you_mean(word, FIELDS)}")
    rates = read_rates(where, facts)
    if provider:
        return Endpoint(provider.name, "", rates=rates)
    url, key_env, api = (str(facts.get(word, "")).strip() for word in _OWN_FIELDS)
    if not url:
        raise ValueError(f"{where}.url is missing: write the address of its server")
    if problem := address_problem(url):
        shown = f" {url!r}" if "password" not in problem else ""
        raise ValueError(f"{where}.url{shown} {problem}: write it whole, such as http://127.0.0.1:8080/v1")
    if key_env and not (_VARIABLE.match(key_env) and is_secret_name(key_env)):
        raise ValueError(
            f"{where}.key_env {key_env!r} is not called a key, and only keys are sent: name a variable "
            "such as LOCAL_API_KEY or LOCAL_TOKEN"
        )
    if api and api not in APIS:
        raise ValueError(f"{where}.api {api!r} is not one of {', '.join(APIS)}{did_you_mean(api, APIS)}")
    return Endpoint(name, url.rstrip("/"), key_env, api or "chat", rates)


def written_endpoints(attrs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The endpoints among attributes, and what is written of each.

    >>> written_endpoints({"endpoint.local.url": "http://127.0.0.1", "label": "x"})
    {'local': {'url': 'http://127.0.0.1'}}
    """
    found: dict[str, dict[str, Any]] = {}
    for attribute, value in attrs.items():
        if attribute.startswith(PREFIX):
            name, _, field = attribute.removeprefix(PREFIX).rpartition(".")
            found.setdefault(name, {})[field] = value
    return found


def endpoint_of(model: str, provider: str, names: Iterable[str]) -> ModelName | None:
    """The model and the endpoint that ``llm_model`` and ``llm_provider`` name, or None.

    >>> endpoint_of("local:qwen3:8b", "", ["local"]), endpoint_of("gpt-5.2", "", ["local"])
    (ModelName(model='qwen3:8b', provider='local'), None)
    """
    before, colon, after = model.strip().partition(":")
    known = {name for name in names if not known_provider(name)}
    if colon and before in known:
        return ModelName(after.strip(), before)
    if provider.strip() in known and not (colon and known_provider(before)):
        return ModelName(model.strip(), provider.strip())
    return None
