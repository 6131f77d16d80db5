"""The web page: a shell, the front-end as one script and one sheet, an icon.

None of it holds a secret, so a browser that is not let in gets it, too; what it shows comes by the API. Its
policy lets it run its own script and nothing else, whatever texts a run holds.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response
from starlette.routing import Route

from attractor_nb.studio.compare.comparison_page import comparison_css
from attractor_nb.studio.timeline.timeline_svg import timeline_css
from attractor_nb.views.drawings.theme import drawing_css
from attractor_nb.views.frontend import script, styles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

FOLDER: Final = files("attractor_nb.server.web")
PAGE_PATH: Final = "/"
PAGE_PATHS: Final = frozenset({PAGE_PATH, "/page.js", "/page.css", "/icon.svg"})
"""Paths that need no token: the page and its parts."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page."""

    content: bytes  #: Its bytes.
    media_type: str
    tag: str  #: Differs when it has changed.


def page_routes(answering: Callable[..., Any], *, is_proxied: bool) -> list[Route]:
    """The routes of the page.

    Args:
        answering: What makes an endpoint answer in our words whatever happens.
        is_proxied: A proxy shows the token for users, and may show the page in its own frame.
    """
    served = {path: answering(_serving(path, is_proxied=is_proxied)) for path in sorted(PAGE_PATHS)}
    return [Route(path, endpoint, methods=["GET"]) for path, endpoint in served.items()]


def _serving(path: str, *, is_proxied: bool) -> Callable[[Request], object]:
    async def serve(request: Request) -> Response:
        file = page_file(path, is_proxied=is_proxied)
        headers = {
            "ETag": file.tag,
            "Cache-Control": "no-cache",
            "Content-Security-Policy": policy(is_proxied=is_proxied),
        }
        if file.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=file.media_type)

    return serve


@cache
def page_file(path: str, *, is_proxied: bool = False) -> PageFile:
    """A file of the page, by its path."""
    text, media_type = _MAKERS[path](is_proxied)
    content = text.encode()
    return PageFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


@cache
def policy(*, is_proxied: bool = False) -> str:
    """The content security policy of the page: its own script, its own sheet, those of our drawings, its server."""
    # The sheets that drawings bring along: they are ours, and the same in every drawing of a kind.
    from attractor_nb.evaluation.on_graph import evaluation_css  # noqa: PLC0415 - see serving.py

    kinds = drawing_css(), timeline_css(), comparison_css(), evaluation_css()
    sheets = " ".join(f"'sha256-{_digest(sheet)}'" for sheet in kinds)
    frames = "'self'" if is_proxied else "'none'"
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            f"style-src 'self' {sheets}",
            "img-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            f"frame-ancestors {frames}",
        )
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _shell(is_proxied: bool) -> tuple[str, str]:  # noqa: FBT001 - as all makers
    wanted = "no" if is_proxied else "yes"
    return _own("page.html").replace("TOKEN_WANTED", wanted), "text/html"


def _own(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


_MAKERS: Final[Mapping[str, Callable[[bool], tuple[str, str]]]] = {
    PAGE_PATH: _shell,
    "/page.js": lambda _: (script("page", is_widget=False, beside=FOLDER), "text/javascript"),
    "/page.css": lambda _: (styles("page", FOLDER), "text/css"),
    "/icon.svg": lambda _: (_own("icon.svg"), "image/svg+xml"),
}
