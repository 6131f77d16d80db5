"""Failures of model calls (Appendix D; ruling 13), and normalized reasons why an answer ended.

Loads pydantic-ai. A failure is retryable when the same call may succeed later, and terminal when it will
not. Any other exception is a bug of ours or of a tool, and is left unchanged.

pydantic-ai knows the reasons of the big providers. Servers of one's own have words of their own for the same
things, and new words come; an answer whose stream is complete is not lost for an unknown word.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import httpx2
from pydantic import ValidationError
from pydantic_ai import exceptions as theirs

from attractor_nb.backends.llm.addresses import key_variables
from attractor_nb.decisions.retries import TRANSIENT_HTTP
from attractor_nb.errors import RetryableError, StageError, TerminalError
from attractor_nb.network import NetworkFault, is_local, proxy_variables
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.backends.llm.model_requests import Target


MAX_SHOWN_CHARACTERS: Final = 300
_PATIENCE: Final = "shorten the prompt, or wait longer: ProviderBackend(read_timeout_seconds=…)"
_NO_KEY_SENT: Final = (
    "no key was sent: give its server a name and a key, endpoint.NAME.url and endpoint.NAME.key_env, "
    "or the provider an address by its own variable, such as OPENAI_BASE_URL"
)
_OF_CREDENTIALS: Final = ("google.auth.", "botocore.")
"""Errors of clients that could not determine the credentials."""
UNREADABLE: Final = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    AssertionError,
    RecursionError,
    ValidationError,
)
"""Exceptions of clients for an invalid response: bad JSON, another charset, another structure."""


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """A failed call."""

    error: StageError  #: The resulting error of the stage.
    #: The next model of a chain may do what this one could not: it was busy, out of reach, unknown or closed to us. A
    #: request that is itself refused is refused elsewhere, too.
    is_next_asked: bool
    kind: str = ""  #: ``overlong`` or ``refusal``, after which the next is asked where the node says so; else empty.


class CallFailed(Exception):
    """A call failed, and it is known what that means. It goes no further than this package.

    Attributes:
        failure: What it means.
    """

    def __init__(self, failure: ProviderFailure) -> None:
        super().__init__(failure.error.message)
        self.failure = failure


def failure_of(error: Exception, target: Target, address: str) -> ProviderFailure | None:
    """The failure that an exception of a call means. None if it is not a failure of a call.

    Args:
        error: The exception.
        target: Who was asked.
        address: Where, or empty for the provider's own place.
    """
    if isinstance(error, CallFailed):
        return error.failure
    if isinstance(root := _root(error), CallFailed):  # raised within a client, which wraps what it sees
        return root.failure
    if isinstance(error, StageError):  # of a tool
        return ProviderFailure(error, is_next_asked=False)
    if isinstance(error, theirs.ModelAPIError):
        return _of_the_provider(error, target, address)
    if isinstance(error, theirs.AgentRunError | theirs.UserError):
        return _of_the_talk(error, target)
    if type(error).__module__.startswith(_OF_CREDENTIALS):
        hint = "sign in as its client requires, or check its credentials"
        return _terminal(
            f"{target} cannot be asked: {type(error).__name__}: {_first_line(error)}", hint, is_next_asked=True
        )
    if isinstance(error, httpx2.HTTPError | OSError | EOFError):
        return _retryable(f"{_placed(target, address)} broke off: {_first_line(error)}")
    return None


def error_type_of(error: Exception) -> str:
    """The kind of failure in a word, as OpenTelemetry names it: HTTP status, ``timeout``, or a class."""
    if isinstance(error, theirs.ModelHTTPError) and error.status_code >= 400:
        return str(error.status_code)
    root = _root(error)
    slow = (TimeoutError, httpx2.TimeoutException, theirs.ModelTimeoutError, theirs.ModelRequestTimeout)
    if any(isinstance(each, slow) for each in (error, error.__cause__, root)):
        return "timeout"
    if isinstance(root, CallFailed):
        return root.failure.kind or type(root.failure.error).__name__
    return type(root).__name__


def without_key(target: Target, names: tuple[str, ...]) -> ProviderFailure:
    """There is no key for a provider."""
    return _terminal(
        f"{target} needs a key, and {' and '.join(names)} {'is' if len(names) == 1 else 'are'} not set",
        f"set {names[0]} in the environment of this process (of a notebook: of its kernel)",
        is_next_asked=True,
    )


def unusable_key(target: Target, name: str, sign: str) -> ProviderFailure:
    """A key that no header can carry: nothing was asked, and the key is not shown."""
    return _terminal(
        f"{target} cannot be asked: {name} contains the character U+{ord(sign):04X}, which cannot be sent in a key",
        f"copy the key into {name} again",
        is_next_asked=True,
    )


def without_settings(target: Target, names: tuple[str, ...]) -> ProviderFailure:
    """The failure for settings of a provider that are not set."""
    return _terminal(
        f"{target} cannot be asked: {' and '.join(names)} {'is' if len(names) == 1 else 'are'} not set",
        f"set {names[0]} in the environment of this process (of a notebook: of its kernel)",
        is_next_asked=True,
    )


def without_network(target: Target, fault: NetworkFault) -> ProviderFailure:
    """The environment keeps requests from leaving."""
    return _terminal(f"{target} cannot be asked: {fault.message}", fault.hint, is_next_asked=True)


def no_interface(url: str, content_type: str) -> ProviderFailure:
    """A page for users came from where an interface was looked for."""
    hint = "check the address: for OpenAI's API it usually ends in /v1, for Anthropic's it does not"
    return _retryable(f"{redacted(url)} answered with {content_type}, which is not an API response", hint=hint)


def refused(target: Target, reason: str) -> ProviderFailure:
    """A model, or its provider's filter, will not answer. Asked again it would not, either."""
    why = f": {_cut(reason)}" if reason else ""
    hint = "change the prompt, or use another model: llm_fallback_on=refusal"
    return _terminal(f"{target} refused to answer{why}", hint, kind="refusal")


def not_shown(target: Target, kind: str) -> ProviderFailure:
    """A model is not shown what is attached; another may be."""
    hint = "attach something else, or use another model"
    error = TerminalError(f"{target} is not shown {kind}; no request was sent", hint=hint)
    return ProviderFailure(error, is_next_asked=True)


def unreadable(target: Target, error: Exception) -> ProviderFailure:
    """The failure for a response that cannot be read; ``error``, one of ``UNREADABLE``, is the reason."""
    what = f"{type(error).__name__}: {_first_line(error)}"
    return _retryable(f"{target} gave a response that cannot be read: {what}")


def too_slow(target: Target, address: str, seconds: float) -> ProviderFailure:
    """A request took longer than one may take in all."""
    hint = "shorten the prompt, or wait longer: ProviderBackend(request_timeout_seconds=…)"
    return _retryable(f"{_placed(target, address)} took too long: more than {seconds:g} s", hint=hint)


_NOT_CONNECTED: Final = frozenset({"ConnectError", "ConnectTimeout", "ProxyError"})
"""Exceptions of httpx and similar clients before a request was sent."""


def cut_short(target: Target) -> ProviderFailure:
    """A stream ended without its end: a part of an answer is no answer."""
    return _retryable(f"{target} broke off: the answer has no end")


def thought_too_long(target: Target) -> ProviderFailure:
    """The limit of tokens was reached before anything was answered; another model may think less."""
    hint = "raise llm.max_tokens, lower reasoning_effort, or name another model in llm_fallback"
    return _terminal(f"{target} reached its token limit before an answer", hint, is_next_asked=True)


def _of_the_talk(error: Exception, target: Target) -> ProviderFailure:
    """The failure of a conversation that ended without an error of the provider."""
    if isinstance(error, theirs.UsageLimitExceeded):
        return _terminal(
            f"{target} kept calling tools:  {_first_line(error)}",
            "give the node a smaller task, or allow more requests:  ProviderBackend(max_requests=…)",
        )
    if isinstance(error, theirs.ContentFilterError):
        return refused(target, "")
    if isinstance(error, theirs.OutputTokenLimitExceeded | theirs.IncompleteToolCall):
        return _terminal(
            f"{target} reached its token limit before a usable answer",
            "raise llm.max_tokens, or lower reasoning_effort",
        )
    if isinstance(error, theirs.UserError):
        return _terminal(f"{target} cannot be asked like this: {_first_line(error)}", "")
    return _retryable(f"{target} gave an invalid response: {_first_line(error)}")


def _of_the_provider(error: theirs.ModelAPIError, target: Target, address: str) -> ProviderFailure:
    status = error.status_code if isinstance(error, theirs.ModelHTTPError) else 0
    message = _message_of(error)
    number = f" ({status})" if status else ""
    if isinstance(error, theirs.ModelQuotaExceededError):
        return _terminal(
            f"the account for {target} has no credit left{number}: {message}",
            "",
            is_next_asked=True,
            is_unmeasured=True,
        )
    if isinstance(error, theirs.ModelAuthenticationError):
        keys = " or ".join(key_variables(target))
        hint = f"check {keys} and the permissions of its account" if keys else _NO_KEY_SENT
        return _terminal(f"{target} refused the key{number}: {message}", hint, is_next_asked=True, is_unmeasured=True)
    if isinstance(error, theirs.ModelNotFoundError):
        near = error.suggested_model_id if isinstance(error, theirs.ModelHTTPError) else None
        hint = f"did you mean {near}?" if near else f"check llm_model{_ending_hint(target, address)}"
        return _terminal(f"{_placed(target, address)} is not known{number}: {message}", hint, is_next_asked=True)
    if isinstance(error, theirs.ModelContextWindowExceededError) or is_overlong(status, str(error)):
        return _terminal(
            f"the prompt does not fit {target}{number}: {message}",
            "shorten it, carry less with fidelity, or use a larger model: llm_fallback_on=overlong",
            kind="overlong",
        )
    if isinstance(error, theirs.ModelTimeoutError | theirs.ModelRequestTimeout):
        return _retryable(f"{_placed(target, address)} took too long: {message}", error, _PATIENCE)
    if isinstance(error, theirs.ModelConnectionError):
        why = _first_line(_root(error))
        message = f"{_placed(target, address)} cannot be reached, or broke off: {why}"
        return _retryable(message, error, _way_hint(address), is_unmeasured=_was_not_reached(error))
    if not status:
        return _retryable(f"{target} gave an invalid response: {message}", error)
    if status in TRANSIENT_HTTP or status >= 500:
        return _retryable(f"{target} is busy or failing{number}: {message}", error)
    return _terminal(f"{target} refused the request{number}: {message}", "")


def _terminal(
    message: str, hint: str, *, is_next_asked: bool = False, kind: str = "", is_unmeasured: bool = False
) -> ProviderFailure:
    return ProviderFailure(TerminalError(message, hint=hint, is_unmeasured=is_unmeasured), is_next_asked, kind)


def _retryable(
    message: str, error: theirs.ModelAPIError | None = None, hint: str = "", *, is_unmeasured: bool = False
) -> ProviderFailure:
    wait = None if error is None else error.retry_after
    failure = RetryableError(message, hint=hint, retry_after_seconds=wait, is_unmeasured=is_unmeasured)
    return ProviderFailure(failure, is_next_asked=True)


def _ending_hint(target: Target, address: str) -> str:
    """The hint on the ending of an address; empty without an address or for one that is fine."""
    if not address:
        return ""
    path = address.rstrip("/")
    if target.provider == "anthropic":
        return f", and the address: {path.removesuffix('/v1')}, without /v1" if path.endswith("/v1") else ""
    if re.search(r"/v\d+(beta)?\Z", path) or target.provider == "google":
        return ", and the address"
    return f", and the address, which usually ends in /v1:  {path}/v1"


def _way_hint(address: str) -> str:
    """The hint on the proxy that requests go through; empty without one."""
    scheme = "http" if address.startswith("http://") else "https"
    proxies = [] if is_local(address) else proxy_variables(os.environ, (scheme, "all"))
    what = "requests go through the proxy that {} names, unless no_proxy lists the host"
    return what.format(proxies[0][0]) if proxies else ""


def _placed(target: Target, address: str) -> str:
    return f"{target} at {address}" if address else str(target)


def _message_of(error: theirs.ModelAPIError) -> str:
    """The provider's message, without what wraps it."""
    body: object = error.body
    for _ in range(2):
        if isinstance(body, dict):
            fields = cast("Mapping[str, Any]", body)
            body = fields.get("error") or fields.get("message") or ""
    return _cut(body) if isinstance(body, str) and body else _first_line(error)


def _root(error: BaseException) -> BaseException:
    """The root cause of an error: clients wrap the informative one in others."""
    for _ in range(10):
        if error.__cause__ is None:
            break
        error = error.__cause__
    return error


def _was_not_reached(error: BaseException) -> bool:
    """True if there was no connection at all: nothing was asked (ruling 51)."""
    behind: BaseException | None = error
    for _ in range(10):
        if behind is None or type(behind).__name__ in _NOT_CONNECTED:
            break
        behind = behind.__cause__
    else:
        return False
    return behind is not None


def _first_line(error: BaseException) -> str:
    return _cut((str(error).strip().splitlines() or [""])[0]) or type(error).__name__


def _cut(text: str) -> str:
    text = " ".join(redacted(text).split())  # before it is cut: half a secret has no form
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "…"


class Ending(Enum):
    """The normalized reason why an answer ended."""

    WHOLE = "whole"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    """It is taken for whole, with a warning."""


_KNOWN: Final = {
    "stop": Ending.WHOLE,
    "tool_call": Ending.WHOLE,
    "length": Ending.TRUNCATED,
    "content_filter": Ending.REFUSED,
    "error": Ending.BROKEN,
}
"""pydantic-ai's own words."""
_TRUNCATED: Final = frozenset(
    {"length", "incomplete", "model_length", "token_limit"}
    | {"max_tokens", "max_output_tokens", "max_new_tokens", "max_length", "max_completion_tokens"}
    | {"model_context_window_exceeded", "context_length_exceeded"}
)
_REFUSED: Final = frozenset(
    {"content_filter", "content_filtered", "refusal", "refused", "safety", "blocked", "blocklist", "recitation"}
    | {"prohibited_content", "spii", "guardrail_intervened", "moderation"}
)
_BROKEN: Final = frozenset(
    {"error", "failed", "failure", "cancelled", "canceled", "abort", "aborted", "timeout", "overloaded"}
    | {"in_progress", "queued", "pause_turn", "network_error", "insufficient_system_resource"}
)


def ending_of(reason: str | None, raw: str) -> Ending:
    """The ending that a finished stream reports.

    Args:
        reason: pydantic-ai's word, or None when it knows none for it.
        raw: The provider's own word, or empty.

    >>> ending_of("stop", "end_turn").name, ending_of(None, "MAX_TOKENS").name, ending_of(None, "").name
    ('WHOLE', 'TRUNCATED', 'BROKEN')
    >>> ending_of(None, "eos_token").name
    'UNKNOWN'
    """
    if reason is not None:
        return _KNOWN.get(reason, Ending.UNKNOWN)
    word = raw.strip().lower().replace("-", "_").replace(" ", "_")
    if not word or word in _BROKEN:
        return Ending.BROKEN
    if word in _TRUNCATED:
        return Ending.TRUNCATED
    return Ending.REFUSED if word in _REFUSED else Ending.UNKNOWN


# Refusals of a prompt that is too long, in the words of each server (``llm_fallback_on=overlong``).
#
# pydantic-ai knows the words of the big providers. Self-hosted servers and gateways have others, and most of them
# send no code: each row of the table has one server's words, and their source.


class Wording(NamedTuple):
    """Words in which a server refuses a prompt that is too long."""

    server: str  #: The server that says so.
    statuses: frozenset[int]  #: The HTTP statuses that it sends them with.
    pattern: str  #: An expression for the message or the error's type, in any case; empty for any message.
    source: str  #: Source of the quotation.


_BAD_REQUEST: Final = frozenset({400, 422, 500})
"""llama.cpp sent 500 before it sent 400."""
WORDINGS: Final = (
    Wording(
        "llama.cpp",
        _BAD_REQUEST,
        r"exceed_context_size_error|exceeds? the available context size|context size has been exceeded",
        "https://github.com/ggml-org/llama.cpp/issues/19774",
    ),
    Wording(
        "llama-cpp-python",
        _BAD_REQUEST,
        r"requested tokens \(\d+\) exceed context window",
        "https://github.com/abetlen/llama-cpp-python/issues/416",
    ),
    Wording(
        "LM Studio",
        _BAD_REQUEST,
        r"loaded with (?:a )?context length of only",
        "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546",
    ),
    Wording(
        "Ollama",
        _BAD_REQUEST,
        r"input (?:length )?exceeds (?:the )?(?:maximum )?context length",
        "https://github.com/nano-step/nano-brain/issues/208",
    ),
    Wording(
        "SGLang",
        _BAD_REQUEST,
        r"longer than the model\\?'s context length|input length \(\d+ tokens\) exceeds the maximum allowed length",
        "https://github.com/sgl-project/sglang/issues/8096, /4048",
    ),
    Wording(
        "TGI",
        _BAD_REQUEST,
        r"`inputs` (?:tokens \+ `max_new_tokens` must be <=|must have less than)",
        "https://github.com/huggingface/text-generation-inference/issues/628, /695",
    ),
    Wording(
        "vLLM", _BAD_REQUEST, r"longer than the maximum model length of", "https://github.com/thu-coai/Glyph/issues/9"
    ),
    Wording("any server or proxy", frozenset({413}), "", "RFC 9110, 15.5.14: content too large"),
)


def is_overlong(status: int, message: str) -> bool:
    """True if a server refuses a prompt because it is too long.

    >>> is_overlong(400, "The input (9000 tokens) is longer than the model's context length (8192 tokens).")
    True

    Args:
        status: The HTTP status.
        message: What the server said, with the type of its error.
    """
    return any(status in each.statuses and re.search(each.pattern, message, re.IGNORECASE) for each in WORDINGS)
