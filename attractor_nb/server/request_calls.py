"""A request on its way to an endpoint: read within limits, checked against its model, handed on."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import os
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from filelock import FileLock, Timeout
from pydantic import ValidationError as ShapeError

from attractor_nb.errors import AttractorError
from attractor_nb.server.map_pages import MapPages
from attractor_nb.server.replies import JSON_TYPE, Problem, Reply
from attractor_nb.server.server_runs import made_server_place
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file, write_whole
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.files.strict_json import JsonProblem, json_bytes, read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from pathlib import Path

    from pydantic import BaseModel
    from starlette.requests import Request

    from attractor_nb.server.event_streams import Streams
    from attractor_nb.server.guard import Tickets
    from attractor_nb.server.run_service import RunService
    from attractor_nb.server.server_settings import ServerSettings
    from attractor_nb.storage.files.document_files import DocumentFolder


_MAX_ERRORS: Final = 20


@dataclass(frozen=True, slots=True)
class ServerState:
    """The services that endpoints use."""

    settings: ServerSettings
    service: RunService
    streams: Streams
    tickets: Tickets
    documents: DocumentFolder | None = None
    pages: MapPages = field(default_factory=MapPages)  #: The pages of maps that were read last.


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was read."""

    server: ServerState  #: State of the server.
    path: Mapping[str, str]  #: The parameters of its path.
    query: Any  #: Its query, of the operation's model.
    body: Any  #: Its body, of the operation's model.
    claim: KeyClaim  #: Claim of its Idempotency-Key.
    last_event_id: str = ""  #: The header of that name, or empty.
    user: str = ""  #: The user whose token the request shows; empty for a user without a known name.
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
    """The identity of a request, for its Idempotency-Key."""
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


# ``Idempotency-Key``: a request that is sent twice is done once, also when the server died between.
#
# For each key a small file beside the runs says what was asked, which run it began, and what was answered. A
# kernel lock on it keeps a second request of the same key out while the first one works, in another server of
# the same root too.

KEPT_SECONDS: Final = 24 * 3600.0
KEYS_PLACE: Final = ".server/keys"
_RECORD: Final = re.compile(rf"[0-9a-f]{{64}}\.(?:json|lock)|{re.escape(TEMPORARY_PREFIX)}.*")
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}\Z")
MAX_KEPT_BYTES: Final = 1024 * 1024
"""A longer answer is not kept: only what lint finds can be so long, and that is found again."""
_MAX_RECORD_BYTES: Final = 2 * MAX_KEPT_BYTES
_SWEEP_EVERY: Final = 200


def _nothing(run_id: str) -> None:
    """Keep no record: the request has no key."""
    del run_id


@dataclass(slots=True)
class KeyClaim:
    """The state of an idempotency key while its request is served."""

    run_id: str = ""  #: The run that an earlier try of the same request has begun; empty for none.
    note: Callable[[str], None] = _nothing  #: Called with the id of the run that is about to begin, before it does.


class Ledger:
    """The keys that were used, and what came of them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._place = root / KEYS_PLACE
        self._uses = 0

    def once(self, key: str | None, asked: bytes, serve: Callable[[KeyClaim], Reply]) -> Reply:
        """Serve a request, unless the same one was served; blocks.

        Args:
            key: The request's key; None for none.
            asked: What identifies the request: who has the key again must ask for the same.
            serve: Does it. What it raises is not kept: the request may be sent again.
        """
        if key is None:
            return serve(KeyClaim())
        if _KEY.match(key) is None:
            raise Problem(
                400,
                "idempotency-key",
                "The Idempotency-Key header is not valid",
                "it must have 1 to 255 ASCII characters",
            )
        name = hashlib.sha256(key.encode()).hexdigest()
        fingerprint = hashlib.sha256(asked).hexdigest()
        with self._held(name):
            record = self._read(name)
            if record and record.get("asked") != fingerprint:
                raise Problem(
                    422,
                    "idempotency-key-reused",
                    "The Idempotency-Key belongs to another request",
                    hint="use a new key for each request",
                )
            if "status" in record:
                return _reply_of(record)
            begun: dict[str, Any] = {"asked": fingerprint}

            def note(run_id: str) -> None:
                self._write(name, {**begun, "run": run_id})

            try:
                reply = serve(KeyClaim(str(record.get("run", "")), note))
            except (AttractorError, Problem):
                if not record:  # it was refused: the key is free for the request that is mended
                    self._forget(name)
                raise
            if len(reply.content) <= MAX_KEPT_BYTES:
                self._write(name, {**begun, **_plain_reply(reply)})
            return reply

    @contextlib.contextmanager
    def _held(self, name: str) -> Generator[None]:
        made_server_place(self._root, KEYS_PLACE, is_synced=True)
        self._uses += 1
        if self._uses % _SWEEP_EVERY == 1:
            self._sweep()
        lock = FileLock(self._place / f"{name}.lock", timeout=0, mode=0o600, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            raise Problem(
                409,
                "idempotency-key-in-use",
                "The same request is in progress",
                hint="wait for its response, or send it again later",
                headers={"Retry-After": "1"},
            ) from None
        except OSError as error:
            raise storage_error(error, "lock", self._place / f"{name}.lock") from error
        try:
            yield
        finally:
            lock.release()

    def _sweep(self) -> None:
        """Forget keys that are too old to be sent again."""
        oldest = time.time() - KEPT_SECONDS
        with contextlib.suppress(OSError), os.scandir(self._place) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    is_record = _RECORD.fullmatch(entry.name) is not None
                    if is_record and entry.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(entry.path)  # noqa: PTH108 - an entry is no Path

    def _read(self, name: str) -> dict[str, Any]:
        data = read_plain_file(self._place / f"{name}.json", max_bytes=_MAX_RECORD_BYTES)
        try:
            plain: Any = read_json(data) if data else {}
        except JsonProblem:  # not ours: the request is served again
            return {}
        return cast("dict[str, Any]", plain) if isinstance(plain, dict) else {}

    def _forget(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self._place / f"{name}.json").unlink(missing_ok=True)

    def _write(self, name: str, plain: dict[str, Any]) -> None:
        disk = Disk()
        try:
            parent = disk.open_directory(self._place)
        except OSError as error:
            raise storage_error(error, "open", self._place) from error
        try:
            data = json_bytes(plain)
            write_whole(disk, parent, f"{name}.json", data, directory=self._place, is_synced=True)
        finally:
            disk.close(parent)


def _plain_reply(reply: Reply) -> dict[str, Any]:
    return {
        "status": reply.status,
        "media_type": reply.media_type,
        "headers": dict(reply.headers),
        "body": base64.b64encode(reply.content).decode(),
    }


def _reply_of(record: dict[str, Any]) -> Reply:
    body = base64.b64decode(str(record.get("body", "")))
    headers = {**record.get("headers", {}), "Idempotent-Replayed": "true"}
    return Reply(body, int(record["status"]), str(record.get("media_type", "")), headers)
