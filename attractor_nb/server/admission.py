"""Who is let in: decided from the head of a request alone, before anything else of it is looked at.

Against a page of another site that a browser of this machine shows: its requests carry its Origin, or, when
it has made its own name point here, its Host. Against everybody else: the token.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from attractor_nb.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

_SCHEMES: Final = ("http://", "https://")
_OWN_SITES: Final = frozenset({"", "same-origin", "none"})
"""``Sec-Fetch-Site``: not sent, our own page, typed by a person."""
MAX_TICKET_LENGTH: Final = 200


def header_values(head: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    """All values of a header, as they were sent."""
    return [value.decode("latin-1") for key, value in head if key.lower() == name]


def stranger(
    head: Iterable[tuple[bytes, bytes]], hosts: frozenset[str] | None, *, may_be_linked: bool = False
) -> Problem | None:
    """Why a request comes from a place that has no business here; None when it may come.

    Args:
        head: Its headers.
        hosts: What its Host may be; None for anything, but one.
        may_be_linked: What it asks for is a page without a secret: a link of another site may lead there.
    """
    named = header_values(head, b"host")
    if len(named) != 1 or (hosts is not None and named[0].lower() not in hosts):
        return Problem(
            403,
            "foreign-host",
            "The request names another host",
            f"Host is {', '.join(named)[:100] or 'missing'}, but this server has another name",
            hint=f"use one of {', '.join(sorted(hosts or ()))}",
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
    """Whether a browser asks in order to show the answer as a page of its own, in no frame."""
    said = (header_values(head, b"sec-fetch-mode"), header_values(head, b"sec-fetch-dest"))
    return said == (["navigate"], ["document"])


def has_token(head: Iterable[tuple[bytes, bytes]], token: str) -> bool:
    """Whether a request shows the token; one that says two things shows nothing."""
    given = header_values(head, b"authorization")
    scheme, _, value = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    is_bearer = scheme.lower() == "bearer"
    return hmac.compare_digest(value.strip().encode("latin-1"), token.encode()) and is_bearer


def unauthorised() -> Problem:
    """Whoever shows no token, or another one, is told nothing but that."""
    return Problem(
        401,
        "unauthorised",
        "The request has no valid token",
        hint="send it as Authorization: Bearer …; the server's first line contains it",
        headers={"WWW-Authenticate": 'Bearer realm="attractor-nb"'},
    )


def _foreign_page() -> Problem:
    return Problem(403, "foreign-origin", "The request comes from a page of another site")
