"""The text a model answered, with what the caller should know about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from attractor_nb.model.outcome import Usage


class Response(str):
    """A response text that carries its usage, for backends that know it (spec 4.5).

    It is a ``str``, so that a backend returning it keeps the spec's interface.

    >>> Response("Done.", is_truncated=True) == "Done."
    True
    """

    __slots__ = ("is_truncated", "note", "usage")
    usage: Usage | None  #: What the call consumed, or None.
    is_truncated: bool  #: The model was cut off by a token limit: the text is not all that it had to say.
    note: str  #: What people should know of how it came, such as a model that was asked in place of another; or empty.

    def __new__(cls, text: str, *, usage: Usage | None = None, is_truncated: bool = False, note: str = "") -> Self:
        """A text with its facts."""
        response = super().__new__(cls, text)
        response.usage = usage
        response.is_truncated = is_truncated
        response.note = note
        return response

    def behind(self, before: Response) -> Self:
        """This response, which followed another one in the same call, with what both consumed.

        >>> Response("Done.", note="b").behind(Response("Wait.", note="a")).note
        'a; b'
        """
        consumed = [usage for usage in (before.usage, self.usage) if usage is not None]
        usage = consumed[0] + consumed[1] if len(consumed) > 1 else consumed[0] if consumed else None
        note = "; ".join(dict.fromkeys(filter(None, (before.note, self.note))))
        return type(self)(str(self), usage=usage, is_truncated=self.is_truncated, note=note)


def with_text(response: str, text: str) -> str:
    """Another text in place of a response's, with what the response carries beside it.

    >>> with_text(Response("All of it.", is_truncated=True), "Of it.").is_truncated
    True
    """
    if text == response:
        return response
    if not isinstance(response, Response):
        return text
    return Response(text, usage=response.usage, is_truncated=response.is_truncated, note=response.note)
