"""A request on its way to an endpoint: read within limits, checked against its model, handed on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError as ShapeError

from attractor_nb.server.replies import JSON_TYPE, Problem
from attractor_nb.storage.files.strict_json import JsonProblem, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import BaseModel
    from starlette.requests import Request

    from attractor_nb.server.desk import RunDesk
    from attractor_nb.server.guard import Tickets
    from attractor_nb.server.idempotency import KeyClaim
    from attractor_nb.server.server_settings import ServerSettings
    from attractor_nb.server.streams.event_streams import Streams
    from attractor_nb.storage.files.document_files import DocumentFolder

_MAX_ERRORS: Final = 20


@dataclass(frozen=True, slots=True)
class House:
    """What endpoints work with."""

    settings: ServerSettings
    desk: RunDesk
    streams: Streams
    tickets: Tickets
    documents: DocumentFolder | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was read."""

    house: House  #: What the endpoint works with.
    path: Mapping[str, str]  #: The parameters of its path.
    query: Any  #: Its query, of the operation's model.
    body: Any  #: Its body, of the operation's model.
    claim: KeyClaim  #: What is known of its Idempotency-Key.
    last_event_id: str = ""  #: The header of that name, or empty.
    to_root: str = ""  #: The way from its path to the server's root, as a relative address: ``../../``.


async def read_body(request: Request, settings: ServerSettings) -> bytes:
    """The bytes of a body of JSON."""
    types = request.headers.getlist("content-type")
    essence, _, parameters = (types[0] if len(types) == 1 else "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if essence.strip().lower() != JSON_TYPE or charset not in {"", "charset=utf-8"}:
        raise Problem(
            415,
            "media-type",
            "The body is not JSON",
            hint="send Content-Type: application/json, also with an empty body",
        )
    most = settings.max_body_bytes
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:  # said before it is sent; see ``serving``
        raise _too_long(settings)
    body = bytearray()
    try:
        async with asyncio.timeout(settings.body_seconds):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    raise _too_long(settings)
    except TimeoutError:
        raise Problem(408, "timeout", "The body did not arrive in time") from None
    return bytes(body)


def read_values(model: type[BaseModel], body: bytes) -> BaseModel:
    """The body as what it shall be; an empty one is an empty object."""
    try:
        plain: Any = read_json(body) if body.strip() else {}
    except JsonProblem as problem:
        raise Problem(400, "json", "The body is not valid JSON", f"the body {problem}") from None
    return _checked(model, plain, "body")


def read_query(model: type[BaseModel], given: Iterable[tuple[str, str]]) -> BaseModel:
    """The query as what it shall be."""
    plain: dict[str, str] = {}
    for name, value in given:
        if name in plain:
            raise Problem(422, "query", "The query is invalid", f"{name[:80]} is given twice")
        plain[name] = value
    return _checked(model, plain, "query")


def asked_of(operation: str, path: Mapping[str, str], body: bytes) -> bytes:
    """What identifies a request, for its Idempotency-Key."""
    return b"\0".join([operation.encode(), repr(sorted(path.items())).encode(), body])


def _checked(model: type[BaseModel], plain: Any, what: str) -> BaseModel:
    try:
        return model.model_validate(plain)
    except ShapeError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        errors = [{"place": "/".join(map(str, one["loc"])), "message": one["msg"]} for one in found[:_MAX_ERRORS]]
        first = f"{errors[0]['place'] or what}: {errors[0]['message']}"
        raise Problem(
            422, what, f"The {what} is invalid", first, hint="GET /openapi.json describes it", more={"errors": errors}
        ) from None


def _too_long(settings: ServerSettings) -> Problem:
    return Problem(
        413,
        "too-large",
        "The body is too large",
        f"it has more than {settings.max_body_bytes} bytes",
        headers={"Connection": "close"},
    )
