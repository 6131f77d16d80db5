"""A streamed chat completion over plain HTTP on loopback, in the wire form of OpenAI.

Cancelling closes the connection, and by that ends the generation. It knows nothing of nodes or runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import RetryableError, TerminalError
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.outcome import Usage, usage_problem
from attractor_nb.model.surrogates import whole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    import httpx2

CHAT_PATH = "/v1/chat/completions"
DATA_PREFIX = b"data: "
LINE_LIMIT_BYTES = 1 << 20
MAX_ANSWER_BYTES = 16 << 20
"""Of a whole answer, its wrapping included: no server is read for ever."""
CONNECT_SECONDS = 10.0
READ_SECONDS = 300.0
"""A small model on a busy machine may think for minutes about a long prompt before its first word."""
TRANSIENT = frozenset({408, 409, 425, 429})
"""Refusals that may pass (Appendix D); every 5xx may too."""
_REFUSALS: Final = frozenset({"content_filter", "refusal", "refused", "safety"})
_FAILURES: Final = frozenset({"error", "abort", "aborted", "cancelled", "timeout"})


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished completion."""

    text: str
    is_truncated: bool  #: It ended at the token limit.
    usage: Usage  #: What it consumed.


async def complete_chat(
    address: str,
    request: Mapping[str, Any],
    on_text: Callable[[str], None],
    *,
    key: str = "",
    connect_seconds: float = CONNECT_SECONDS,
    read_seconds: float = READ_SECONDS,
) -> Completion:
    """Post a chat completion request and read its stream to the end.

    Args:
        address: Base URL of the server, such as ``http://127.0.0.1:8080``.
        request: The body, without the fields about streaming.
        on_text: Given each piece of text as it arrives.
        key: What the server asks for; empty for nothing.
        connect_seconds: How long the connection may take.
        read_seconds: How long nothing may arrive: counted anew from each byte.
    """
    import httpx2  # noqa: PLC0415 - the extra "local"

    body = {**request, "stream": True, "stream_options": {"include_usage": True}}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    times = httpx2.Timeout(read_seconds, connect=connect_seconds)
    try:
        async with (
            httpx2.AsyncClient(timeout=times, trust_env=False) as client,
            client.stream("POST", f"{address}{CHAT_PATH}", json=body, headers=headers) as response,
        ):
            if not response.is_success:
                raise _refusal(await _page(response), response.status_code)
            return await _read_stream(response, on_text)
    except (httpx2.ConnectTimeout, httpx2.PoolTimeout):
        raise RetryableError(
            f"the model server at {address} took no connection within {connect_seconds:g} s",
            hint="try again; LocalModelBackend(connect_timeout_seconds=…) waits longer",
            is_unmeasured=True,
        ) from None
    except httpx2.ConnectError as error:
        raise RetryableError(
            f"the model server at {address} cannot be reached: {str(error) or type(error).__name__}", is_unmeasured=True
        ) from error
    except httpx2.TimeoutException:
        raise RetryableError(
            f"the model server sent nothing for {read_seconds:g} s",
            hint="shorten the prompt, or wait longer: LocalModelBackend(read_timeout_seconds=…)",
        ) from None
    except (httpx2.HTTPError, EOFError, ValueError, TypeError, AttributeError, RecursionError) as error:
        # The last three: valid JSON of another shape, or so deep that it cannot be read.
        raise RetryableError(f"the model server broke off: {str(error) or type(error).__name__}") from error


async def _read_stream(response: httpx2.Response, on_text: Callable[[str], None]) -> Completion:
    parts: list[str] = []
    finish_reason, usage = "", Usage(calls=1)
    async for event in _events(response):
        if "error" in event:
            raise _refusal(event, 500)
        if counted := event.get("usage"):
            usage = _counted(counted)
        for choice in event.get("choices", ()):
            finish_reason = choice.get("finish_reason") or finish_reason
            delta: dict[str, Any] = choice.get("delta") or {}
            if refusal := delta.get("refusal"):
                raise _refused(refusal)
            if text := delta.get("content"):
                if not isinstance(text, str):
                    raise ValueError("its content is not text")
                parts.append(text)
                on_text(text)
    _check_end(finish_reason)
    return Completion(whole("".join(parts)), finish_reason == "length", usage)


def _check_end(reason: object) -> None:
    """Refuse an answer that is none, by why its server says that it ended (ruling 47)."""
    if not reason or not isinstance(reason, str):
        raise EOFError("the answer has no end")
    word = reason.strip().lower()
    if word in _REFUSALS:
        raise _refused(reason)
    if word in _FAILURES:
        raise EOFError(f"the answer ended with {reason}")


def _refused(words: object) -> TerminalError:
    return TerminalError(f"the model refused to answer: {words}", hint="change the prompt, or use another model")


def _counted(counted: Mapping[str, Any]) -> Usage:
    """What a server says of its tokens; what counts nothing is none."""
    sent, received = (counted.get(name) for name in ("prompt_tokens", "completion_tokens"))
    usage = Usage(sent or 0, received or 0, 0.0, 1)
    return Usage(calls=1) if usage_problem(usage) else usage


async def _events(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in _lines(response):
        if line.startswith(DATA_PREFIX):
            data = line[len(DATA_PREFIX) :].strip()
            if data == b"[DONE]":
                return
            yield json.loads(data)


async def _lines(response: httpx2.Response) -> AsyncIterator[bytes]:
    rest, left = b"", MAX_ANSWER_BYTES
    async for chunk in response.aiter_bytes():
        left -= len(chunk)
        if left < 0 or len(rest) > LINE_LIMIT_BYTES:
            raise ValueError(f"the answer or a line of it is over {MAX_ANSWER_BYTES} bytes")
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


async def _page(response: httpx2.Response) -> Any:
    """The JSON of an answer that is no stream; None when there is none: its status says enough."""
    content = b""
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > LINE_LIMIT_BYTES:
            return None
    try:
        return read_bounded_json(content)
    except ValueError:
        return None


def _refusal(answer: Any, status: int) -> Exception:
    found = cast("dict[str, Any]", answer).get("error") if isinstance(answer, dict) else None
    error = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    message = str(error.get("message", "no reason given"))
    if error.get("type") == "exceed_context_size_error":
        return TerminalError(
            f"the prompt does not fit the local model: {message}",
            hint="shorten the prompt, set fidelity=truncate, or give the backend more context_tokens",
        )
    if status >= 500 or status in TRANSIENT:
        return RetryableError(f"the model server answered {status}: {message}")
    return TerminalError(f"the model server refused the request ({status}): {message}")
