"""The door: each request and each stream passes it, with a token or a ticket, before any route.

Who is let in is decided from the head of a request alone. Against a page of another site that a browser of
this machine shows: its requests carry its Origin, or, when it has made its own name point here, its Host.
Against everybody else: the token. Every answer carries headers by which a browser shows nothing of it to
anybody else.

A ticket opens one stream, once, soon: in a browser's history or a proxy's log it is worth nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from starlette.responses import Response

from attractor_nb.server.page import PAGE_PATH, PAGE_PATHS
from attractor_nb.server.replies import Problem, problem_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from attractor_nb.server.server_settings import ServerSettings

HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
DEFAULT_HEADERS: Final = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; sandbox"),
    (b"cache-control", b"no-store"),
)
"""Those that an answer may have in words of its own."""
_STREAM_SUFFIX: Final = "/events"
_POLICY_VIOLATION: Final = 1008
_SCHEMES: Final = ("http://", "https://")
_OWN_SITES: Final = frozenset({"", "same-origin", "none"})
"""``Sec-Fetch-Site``: not sent, our own page, typed by a person."""
MAX_TICKET_LENGTH: Final = 200

MAX_TICKETS: Final = 4_096


class Guard:
    """Lets requests through to ``app``, or answers them itself."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, tickets: Tickets) -> None:
        self._app = app
        self._settings = settings
        self._tickets = tickets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection (ASGI)."""
        if scope["type"] == "websocket":  # nothing here speaks it
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        user = holder(scope["headers"], self._settings.tokens)
        scope = {**self._without_prefix(scope), "user": user or ""}
        refused = self._refusal(scope, is_token_valid=user is not None)
        answer: ASGIApp = self._app if refused is None else problem_response(refused)
        if refused is None and not own_path(scope) and scope["method"] == "GET":  # links would lead elsewhere
            place = self._settings.prefix.rpartition("/")[2]
            answer = Response(status_code=307, headers={"Location": f"{place}/"})
        await answer(scope, receive, self._with_headers(send))

    def _refusal(self, scope: Scope, *, is_token_valid: bool) -> Problem | None:
        head, path = scope["headers"], own_path(scope)
        if problem := stranger(head, self._settings.hosts, may_be_linked=path in {"", PAGE_PATH}):
            return problem
        if is_token_valid or self._has_ticket(scope) or self._is_page(scope):
            return None
        return unauthorised()

    def _is_page(self, scope: Scope) -> bool:
        """True if it asks for the page, which is shown to anybody who may come at all."""
        is_open = own_path(scope) in {"", *PAGE_PATHS} and scope["method"] == "GET"
        return is_open and not self._settings.is_proxied

    def _has_ticket(self, scope: Scope) -> bool:
        path = own_path(scope)
        if scope["method"] != "GET" or not path.endswith(_STREAM_SUFFIX):
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("ticket", [])
        return len(given) == 1 and len(given[0]) <= MAX_TICKET_LENGTH and self._tickets.redeem(given[0], path)

    def _with_headers(self, send: Send) -> Send:
        frames = b"SAMEORIGIN" if self._settings.is_proxied else b"DENY"

        async def send_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                present: list[Any] = list(message.get("headers", ()))
                names = {name.lower() for name, _ in present}
                more = [pair for pair in DEFAULT_HEADERS if pair[0] not in names]
                headers = [*present, *HEADERS, (b"x-frame-options", frames), *more]
                message = {**message, "headers": headers}
            await send(message)

        return send_with

    def _without_prefix(self, scope: Scope) -> Scope:
        """The request as it would be at the top; a proxy may have taken the prefix off already."""
        prefix = self._settings.prefix
        if prefix and (scope["path"] + "/").startswith(prefix + "/"):
            return {**scope, "root_path": prefix}
        return scope


def own_path(scope: Scope) -> str:
    """The path below the prefix."""
    return scope["path"].removeprefix(scope.get("root_path", ""))


def header_values(head: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    """All values of a header, as they were sent."""
    return [value.decode("latin-1") for key, value in head if key.lower() == name]


def stranger(
    head: Iterable[tuple[bytes, bytes]], hosts: frozenset[str] | None, *, may_be_linked: bool = False
) -> Problem | None:
    """The problem for a request from a foreign host or origin; None for an allowed request.

    Args:
        head: Its headers.
        hosts: The allowed values of its Host; None for any single value.
        may_be_linked: The request is for a page without a secret: a link of another site may lead there.
    """
    named = header_values(head, b"host")
    if len(named) != 1 or (hosts is not None and named[0].lower() not in hosts):
        return Problem(
            403,
            "foreign-host",
            "The request names another host",
            f"Host is {', '.join(named)[:100] or 'missing'}, but this server has another name",
            hint=f"use one of {', '.join(sorted(hosts or ()))}, or start the server with --allow-host NAME:PORT",
        )
    origins = header_values(head, b"origin")
    own = {f"{scheme}{named[0].lower()}" for scheme in _SCHEMES}
    if len(origins) > 1 or any(origin.lower() not in own for origin in origins):
        return _foreign_page()
    sites = header_values(head, b"sec-fetch-site")
    is_foreign = any(site.lower() not in _OWN_SITES for site in sites)
    if not origins and is_foreign and not (may_be_linked and _is_navigation(head)):
        return _foreign_page()
    return None


def _is_navigation(head: Iterable[tuple[bytes, bytes]]) -> bool:
    """True if a browser asks in order to show the answer as a separate page, in no frame."""
    fetch_headers = (header_values(head, b"sec-fetch-mode"), header_values(head, b"sec-fetch-dest"))
    return fetch_headers == (["navigate"], ["document"])


def holder(head: Iterable[tuple[bytes, bytes]], tokens: Mapping[str, str]) -> str | None:
    """The user whose token a request shows, or None; one that says two things shows nothing.

    Every token is compared in constant time, so that the time of an answer tells nothing of them.
    """
    given = header_values(head, b"authorization")
    scheme, _, value = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    is_bearer = scheme.lower() == "bearer"
    shown = value.strip().encode("latin-1")
    found = [user for user, token in tokens.items() if hmac.compare_digest(shown, token.encode())]
    return found[0] if found and is_bearer else None


def unauthorised() -> Problem:
    """The problem for a request without a valid token, which receives no other information."""
    return Problem(
        401,
        "unauthorised",
        "The request has no valid token",
        hint="send it as Authorization: Bearer …; the server's first line contains it",
        headers={"WWW-Authenticate": 'Bearer realm="attractor-nb"'},
    )


def _foreign_page() -> Problem:
    return Problem(403, "foreign-origin", "The request comes from a page of another site")


class Tickets:
    """The tickets that were given out and not yet shown; only their hashes are kept."""

    def __init__(self, seconds: float, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._open: dict[bytes, tuple[str, float]] = {}

    def issue(self, path: str) -> str:
        """A ticket for one path."""
        ticket = secrets.token_urlsafe(32)
        now = self._monotonic()
        with self._lock:
            self._open = {key: kept for key, kept in self._open.items() if kept[1] > now}
            if len(self._open) >= MAX_TICKETS:
                raise Problem(429, "too-many-tickets", "Too many tickets are unused", headers={"Retry-After": "30"})
            self._open[_key(ticket)] = path, now + self._seconds
        return ticket

    def redeem(self, ticket: str, path: str) -> bool:
        """True if a ticket opens a path; whatever it opens, it is used up."""
        with self._lock:
            kept = self._open.pop(_key(ticket), None)
        return kept is not None and kept[0] == path and kept[1] > self._monotonic()


def _key(ticket: str) -> bytes:
    """Looked up by hash, so that the time of a look tells nothing of the tickets there are."""
    return hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).digest()
