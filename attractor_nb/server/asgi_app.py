"""The ASGI application: the table of operations behind the door."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from attractor_nb.errors import AttractorError
from attractor_nb.logs import own_logger
from attractor_nb.server.event_streams import Streams
from attractor_nb.server.events import stream_events
from attractor_nb.server.guard import Guard, Tickets, own_path
from attractor_nb.server.operations import OPERATIONS, Operation, openapi_document
from attractor_nb.server.page import page_routes
from attractor_nb.server.recovery import Recovery
from attractor_nb.server.replies import Problem, Reply, internal_problem, problem_of, problem_response
from attractor_nb.server.request_calls import (
    Call,
    KeyClaim,
    Ledger,
    ServerState,
    asked_of,
    read_body,
    read_query,
    read_values,
)
from attractor_nb.server.run_service import RunService
from attractor_nb.storage.files.document_files import DocumentFolder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from attractor_nb.server.server_settings import ServerSettings

LOGGER = own_logger(__name__)
_KINDS: Final = {404: ("not-found", "There is no such route"), 405: ("method", "The method is not allowed")}


class Server:
    """An application with what it works with.

    Attributes:
        app: What an ASGI server serves.
        state: Its runs, streams and tickets.
    """

    def __init__(self, settings: ServerSettings, *, version: str = "") -> None:
        service = RunService(settings.root, settings.max_runs)
        streams, tickets = Streams(service, settings.max_streams), Tickets(settings.ticket_seconds)
        folder = settings.documents if DocumentFolder.is_possible() else None
        documents = None if folder is None else DocumentFolder(folder)
        self.state = ServerState(settings, service, streams, tickets, documents)
        self._recovery = Recovery(service)
        self._ledger = Ledger(settings.root)
        self._version = version
        places: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            places.setdefault(operation.path, {})[operation.method] = operation
        routes = [
            *(self._route(path, operations) for path, operations in places.items()),
            _only(Route("/openapi.json", _answering(self._document), methods=["GET"])),
            *(_only(route) for route in page_routes(_answering, is_proxied=settings.is_proxied)),
        ]
        inner = Starlette(routes=routes, exception_handlers={HTTPException: _refused}, lifespan=self._lifespan)
        inner.router.redirect_slashes = False
        self.app = Guard(inner, settings, self.state.tickets)

    def end_streams(self) -> None:
        """End all streams, so that their connections end; from the server's loop."""
        self.state.streams.close()

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        del app
        if self.state.settings.is_recovering:
            self._recovery.start()
        try:
            yield
        finally:
            self._recovery.stop()
            self.state.streams.close()
            await run_in_threadpool(self.state.service.close)

    def _route(self, path: str, operations: Mapping[str, Operation]) -> Route:
        """One route for a path, so that a refused method is told all that there are."""

        async def serve(request: Request) -> Response:
            return await self._serve(operations[request.method], request)

        return _only(Route(path, _answering(serve), methods=list(operations)))

    async def _serve(self, operation: Operation, request: Request) -> Response:
        body = await read_body(request, self.state.settings) if operation.body is not None else b""
        values = read_values(operation.body, body) if operation.body is not None else None
        query = read_query(operation.query, request.query_params.multi_items())
        path: dict[str, str] = request.path_params
        last_ids = request.headers.getlist("last-event-id")
        if len(last_ids) > 1:
            raise Problem(400, "event-id", "The Last-Event-ID is given twice")
        to_root = "../" * (own_path(request.scope).count("/") - 1)

        def call(claim: KeyClaim) -> Call:
            return Call(self.state, path, query, values, claim, last_ids[0] if last_ids else "", request.user, to_root)

        serve = operation.serve
        if serve is None:
            return await stream_events(call(KeyClaim()))
        keys = request.headers.getlist("idempotency-key") if operation.is_once else []
        if len(keys) > 1:
            raise Problem(400, "idempotency-key", "The Idempotency-Key is given twice")
        asked = asked_of(operation.name, path, body)
        once = self._ledger.once
        reply = await run_in_threadpool(once, keys[0] if keys else None, asked, lambda claim: serve(call(claim)))
        return reply.to_response()

    async def _document(self, request: Request) -> Response:
        del request
        return Reply(openapi_document(self._version)).to_response()


def _answering(serve: Any) -> Any:
    """An endpoint that answers whatever happens, in our words."""

    async def endpoint(request: Request) -> Response:
        try:
            return await serve(request)
        except Problem as problem:
            return problem_response(problem)
        except AttractorError as error:
            return problem_response(problem_of(error))
        except ClientDisconnect:  # the response has no reader
            return problem_response(Problem(400, "request", "The request ended early"))
        except Exception:  # an internal error: it is logged, and the client learns only that
            LOGGER.exception("%s %s", request.method, request.url.path)
            return problem_response(internal_problem())

    return endpoint


def _only(route: Route) -> Route:
    """A route without HEAD, which would do the work and throw it away."""
    if route.methods is not None:
        route.methods.discard("HEAD")
    return route


async def _refused(request: Request, error: Exception) -> Response:
    """The reply to a path or a method that the router refuses."""
    del request
    assert isinstance(error, HTTPException), "the route is registered for those only"
    kind, title = _KINDS.get(error.status_code, ("request", error.detail))
    headers = dict(error.headers or {})
    return problem_response(Problem(error.status_code, kind, title, headers=headers))
