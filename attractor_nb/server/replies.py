"""What an endpoint gives back, and how it becomes an HTTP answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from starlette.responses import Response

from attractor_nb.server.problems import PROBLEM_TYPE
from attractor_nb.storage.files.strict_json import json_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.server.problems import Problem

JSON_TYPE: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is complete.

    Attributes:
        body: A model or plain values, sent as JSON; text and bytes are sent as they are.
        status: The HTTP status.
        media_type: What the body is.
        headers: Further headers.
    """

    body: Any
    status: int = 200
    media_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def content(self) -> bytes:
        """The body's bytes."""
        if isinstance(self.body, bytes):
            return self.body
        if isinstance(self.body, str):
            return self.body.encode("utf-8", "replace")
        plain = self.body.model_dump() if isinstance(self.body, BaseModel) else self.body
        return json_bytes(plain)

    def to_response(self) -> Response:
        """The same for the wire."""
        return Response(self.content, self.status, dict(self.headers), self.media_type)


def problem_response(problem: Problem) -> Response:
    """A problem for the wire."""
    return Response(json_bytes(problem.to_plain()), problem.status, problem.headers, PROBLEM_TYPE)
