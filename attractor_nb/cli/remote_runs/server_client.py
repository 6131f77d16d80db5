"""An attractor-nb server as seen from the command line: requests, refusals and the stream of events (spec 9.5).

The token goes in a header, to the one address that the user named: no redirect is followed, and what goes to
this machine goes past every proxy. Knows HTTP and JSON; what a run is it does not know.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import urllib.error
import urllib.request
from dataclasses import dataclass, replace
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import IO, TYPE_CHECKING, Any, Final, cast
from urllib.parse import SplitResult, parse_qs, quote, urlsplit, urlunsplit

from attractor_nb.cli.option_choices import is_url
from attractor_nb.errors import (
    AlreadyAnswered,
    AnswerRefused,
    AttractorError,
    CheckpointCorrupt,
    GraphChanged,
    NoSuchGate,
    OptionError,
    RunError,
    RunLocked,
    RunNotFound,
    SourceError,
    UntrustedSource,
)
from attractor_nb.model.diagnostic import rest_words
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.network import WEB_PROXIES, certificate_fault, is_local, proxy_fault, proxy_variables
from attractor_nb.redaction import MIN_LENGTH
from attractor_nb.runtime.prepare.known_secrets import redact_also
from attractor_nb.views.markup import clean

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from http.client import HTTPMessage

RUNS_PATH: Final = "/pipelines"
TIMEOUT_SECONDS: Final = 30.0
"""A stream is never silent for so long: the server sends heartbeats."""
MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
_HOW_TO_START: Final = "start a server with `attractor-nb serve`, and pass the URL that it prints"
_REFUSALS: Final[dict[str, type[AttractorError]]] = {
    "already-answered": AlreadyAnswered,
    "answer-refused": AnswerRefused,
    "damaged": CheckpointCorrupt,
    "graph-changed": GraphChanged,
    "locked": RunLocked,
    "no-such-pipeline": RunNotFound,
    "no-such-question": NoSuchGate,
    "option": OptionError,
    "source": SourceError,
    "untrusted-source": UntrustedSource,
}
"""The errors that problems are, by the last word of their type."""
_REQUEST: Final = re.compile(r"POST /pipelines/([^/\s]+)/(resume|cancel|fork)\b")
_HASH: Final = re.compile(r"[0-9a-f]{12,64}\Z")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a server."""

    url: str  #: Scheme, host and prefix, without a slash at the end.
    token: str = ""  #: The token, or empty.
    run_id: str = ""  #: The run that the URL named, or empty.


def read_address(given: str, token: str | None = None) -> ServerAddress:
    """Parse a URL as ``attractor-nb serve`` or ``submit`` printed it.

    >>> read_address("http://127.0.0.1:8765/lab/pipelines/r1?token=abc")
    ServerAddress(url='http://127.0.0.1:8765/lab', token='abc', run_id='r1')

    Args:
        given: The URL.
        token: The token, in place of one in the URL. Where there is neither, that of ``ATTRACTOR_SERVER`` for the same
            server, else that of ``ATTRACTOR_TOKEN``.
    """
    try:
        parts = urlsplit(given)
        is_whole = is_url(given) and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise OptionError(f"{given!r} is not the address of a server", hint="such as http://127.0.0.1:8765")
    parts = urlsplit(given)
    base, run = _server_and_run(parts)
    token = (token or _token_in(parts) or _usual_token(base) or os.environ.get(environment_variables.TOKEN, "")).strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise OptionError(
            "the token must be one word of ASCII characters", hint="pass the URL or token that the server printed"
        )
    if len(token) >= MIN_LENGTH:
        redact_also(token)
    return ServerAddress(base, token, run)


def _server_and_run(parts: SplitResult) -> tuple[str, str]:
    prefix, _, run = parts.path.partition(f"{RUNS_PATH}/")
    return urlunsplit((parts.scheme, parts.netloc, prefix.rstrip("/"), "", "")), run.partition("/")[0]


def _token_in(parts: SplitResult) -> str:
    return (parse_qs(parts.query).get("token") or parse_qs(parts.fragment).get("token") or [""])[0]


def _usual_token(base: str) -> str:
    """The token of ``ATTRACTOR_SERVER`` where that is the server that is named: URLs are printed without theirs."""
    try:
        usual = urlsplit(os.environ.get(environment_variables.SERVER, ""))
    except ValueError:
        return ""
    return _token_in(usual) if _server_and_run(usual)[0] == base else ""


def read_run_address(place: str, server: str | None, token: str | None = None) -> ServerAddress:
    """The address of a run: its own URL, or its id and a server."""
    if is_url(place):
        if server is not None:
            raise OptionError("the URL of the run already names its server", hint="remove --server")
        address = read_address(place, token)
    else:
        address = replace(read_address(server or "", token), run_id=place)
    if not address.run_id:
        raise OptionError("no run is given", hint="`attractor-nb runs --server URL` lists them")
    return address


class Client:
    """Talks to one server.

    Args:
        timeout_seconds: How long it may be silent.
    """

    def __init__(self, address: ServerAddress, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self.address = address
        self._timeout_seconds = timeout_seconds
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        scheme = urlsplit(address.url).scheme
        if is_local(address.url):
            handlers.append(urllib.request.ProxyHandler({}))
            fault = None
        else:
            fault = proxy_fault(os.environ, (scheme,), WEB_PROXIES)
        fault = fault or (certificate_fault(os.environ) if scheme == "https" else None)
        if fault is not None:
            raise OptionError(f"{address.url} cannot be asked: {fault.message}", hint=fault.hint)
        self._opener = urllib.request.build_opener(*handlers)

    def url_of(self, *names: str) -> str:
        """The URL of a run, or of something of it."""
        return self.address.url + "/".join([RUNS_PATH, *(quote(name, safe="") for name in names)])

    def get(self, *names: str, query: str = "") -> Any:
        """Get a run, or a part of it, from the server as JSON values."""
        return _as_json(self._read(self._request(names, query=query)), self.address.url)

    def get_text(self, *names: str, query: str = "") -> str:
        """The same as text."""
        return self._read(self._request(names, query=query)).decode("utf-8", "replace")

    def post(self, *names: str, body: Mapping[str, Any]) -> Any:
        """Send something; what the server answers. Sent twice it counts once."""
        request = self._request(names, data=json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        request.add_header("Idempotency-Key", secrets.token_hex(16))
        return _as_json(self._read(request), self.address.url)

    @contextlib.contextmanager
    def stream(self, *names: str, last_id: str = "") -> Generator[HTTPResponse]:
        """The lines of a stream of events, behind the one with that id."""
        request = self._request(names)
        request.add_header("Accept", "text/event-stream")
        if last_id:
            request.add_header("Last-Event-ID", last_id)
        with self._open(request) as answer:
            yield answer

    def _request(self, names: tuple[str, ...], *, query: str = "", data: bytes | None = None) -> urllib.request.Request:
        url = self.url_of(*names) + (f"?{query}" if query else "")
        request = urllib.request.Request(url, data=data)  # noqa: S310 - read_address takes http and https only
        request.add_header("Accept", "application/json")
        if self.address.token:
            request.add_header("Authorization", f"Bearer {self.address.token}")
        return request

    def _open(self, request: urllib.request.Request) -> HTTPResponse:
        """Send a request."""
        try:
            return cast("HTTPResponse", self._opener.open(request, timeout=self._timeout_seconds))
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error.code, _beginning(error), self.address.url) from None
        except urllib.error.URLError as error:
            raise _unreachable(self.address.url, error.reason) from None
        except (OSError, HTTPException) as error:  # while it was read
            raise _unreachable(self.address.url, error) from None

    def _read(self, request: urllib.request.Request) -> bytes:
        with self._open(request) as answer:
            try:
                content = answer.read(MAX_ANSWER_BYTES + 1)
                if len(content) > MAX_ANSWER_BYTES:
                    raise RunError(f"the answer of {self.address.url} exceeds {MAX_ANSWER_BYTES:,} bytes")
                if answer.length:  # a read with a limit does not say that there should be more
                    raise IncompleteRead(content, answer.length)
            except (OSError, HTTPException) as error:
                raise _broken_off(self.address.url, error) from None
        return content


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token is for the server that was named, and for no other."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        del req, fp, code, msg, headers, newurl


def _beginning(answer: IO[bytes]) -> bytes:
    with contextlib.suppress(OSError, HTTPException):
        return answer.read(64 * 1024)
    return b""


def _as_json(content: bytes, url: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise RunError(f"what answers at {url} is not a server of attractor-nb", hint=_HOW_TO_START) from None


def _refusal(code: int, content: bytes, url: str) -> AttractorError:
    """The error that a refusal is (problem details, RFC 9457)."""
    problem: dict[str, Any] = {}
    with contextlib.suppress(ValueError, RecursionError):
        problem = as_mapping(json.loads(content))
    kind = str(problem.get("type", "")).rpartition(":")[2]
    words = clean(str(problem.get("detail") or problem.get("title") or ""))
    if not words:
        return RunError(f"what answers at {url} is not a server of attractor-nb ({code})", hint=_HOW_TO_START)
    if kind == "unauthorised":
        return OptionError(
            f"the server at {url} refused the token",
            hint="--token, or ATTRACTOR_TOKEN, with the token of the URL that `attractor-nb serve` printed",
        )
    reports = [str(found.get("report", "")) for found in as_mappings(problem.get("diagnostics"))]
    more = problem.get("more_diagnostics")
    rest = rest_words(more if isinstance(more, int) else 0)
    report = "\n\n".join(text for text in [*reports, rest, str(problem.get("report", ""))] if text)
    hint = "" if report else in_commands(clean(str(problem.get("hint", ""))), url)
    surface = str(problem.get("surface_hash", ""))
    if kind == "untrusted-source" and _HASH.match(surface):
        hint = f"read them (`attractor-nb commands FILE` prints them), then pass --trust-hash {surface[:12]}"
    return _REFUSALS.get(kind, RunError)(clean(report) or words, hint=hint)


def in_commands(hint: str, url: str) -> str:
    """A hint that names requests, in commands.

    >>> in_commands("POST /pipelines/r1/resume asks it again", "http://127.0.0.1:8765")
    '`attractor-nb resume r1 --server http://127.0.0.1:8765` asks it again'
    """
    return _REQUEST.sub(lambda match: f"`attractor-nb {match[2]} {match[1]} --server {url}`", hint)


def as_mapping(found: object) -> dict[str, Any]:
    """A JSON object; nothing in place of anything else."""
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def as_mappings(found: object) -> list[dict[str, Any]]:
    """The objects of a JSON array; nothing in place of anything else."""
    return [as_mapping(entry) for entry in cast("list[Any]", found)] if isinstance(found, list) else []


def _broken_off(url: str, error: OSError | HTTPException) -> RunError:
    """An answer of which only the beginning came: whatever was asked for may have been done."""
    words = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, IncompleteRead):
        words = "the connection was closed"
    return RunError(
        f"the answer of {url} is incomplete: {words.lower()}",
        hint=f"`attractor-nb runs --server {url}` shows whether the server has acted",
    )


def _unreachable(url: str, reason: object) -> OptionError:
    words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    parts = urlsplit(url)
    is_direct = is_local(url) or urllib.request.proxy_bypass(parts.hostname or "")
    proxies = [] if is_direct else proxy_variables(os.environ, (parts.scheme,))
    way = f" (through the proxy that {proxies[0][0]} names)" if proxies else ""
    return OptionError(f"no server answers at {url}{way}: {str(words).lower()}", hint=_HOW_TO_START)
