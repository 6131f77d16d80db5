"""Images and documents that a model is shown beside its prompt: `attach="${photo}, report.pdf"`.

What one is its first bytes say, never its name. In the context it is a JSON value, which large as it is lies
among the artifacts of the run (spec 5.5): it survives a resume, and goes along into maps and child runs.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import ContextValueError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ATTACH: Final = "attach"
"""The node attribute that names them."""
TYPE: Final = "attachment"
MAX_ATTACHMENT_BYTES: Final = 20 * 1024 * 1024
MAX_ATTACHED_BYTES: Final = 30 * 1024 * 1024
"""Of all attachments of a stage; providers take about so much in a request."""
KINDS: Final = "png, jpeg, webp or pdf"
PDF: Final = "application/pdf"
ATTACHMENT_TOKENS: Final = 1600
"""About what a large image costs, or a page of a document."""
_PAGE_BYTES: Final = 50_000
"""A guess at a page of a document."""
_SHOWN_DIGITS: Final = 16
_PARTS: Final = re.compile(r"(?>(?:\{[^{}]*\}|[^,])+)")
"""What stands between commas; those within braces separate nothing."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image or a document.

    ``params={"photo": Attachment(data, "photo.png")}``, or just bytes or a ``Path``.

    Attributes:
        data: Its bytes.
        name: What to call it.

    Raises:
        ContextValueError: It is of no kind that models are shown, or too large.
    """

    data: bytes = field(repr=False)
    name: str = ""

    def __post_init__(self) -> None:
        """Check what it is."""
        if not isinstance(self.data, bytes):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise ContextValueError(f"an attachment is made of bytes, not of {type(self.data).__name__}")
        shown = f"the attachment {self.name}".rstrip()
        if len(self.data) > MAX_ATTACHMENT_BYTES:
            raise ContextValueError(
                f"{shown} has {len(self.data):,} bytes; one may have {MAX_ATTACHMENT_BYTES:,}",
                hint="attach a smaller one",
            )
        if not media_type_of(self.data):
            raise ContextValueError(
                f"{shown} is neither {KINDS}: its first bytes are {self.data[:8]!r}",
                hint="text belongs into the prompt; convert another image into one of these",
            )

    @property
    def media_type(self) -> str:
        """What it is, as ``image/png``."""
        return media_type_of(self.data)

    @property
    def shown_name(self) -> str:
        """What to call it, on one line, and without the signs by which texts are marked up."""
        kept = "".join(char if char.isprintable() and char not in "`<>|*[]" else "_" for char in self.name)
        return kept[:200] or f"attachment.{self.media_type.partition('/')[2]}"

    @property
    def digest(self) -> str:
        """SHA-256 of its bytes."""
        return sha256(self.data).hexdigest()

    def facts(self) -> dict[str, Any]:
        """What there is to say of it without its bytes."""
        return {
            "name": self.shown_name,
            "media_type": self.media_type,
            "size_bytes": len(self.data),
            "sha256": self.digest,
        }

    def to_plain(self) -> dict[str, Any]:
        """The JSON value that a context keeps."""
        return {"type": TYPE, **self.facts(), "data": base64.b64encode(self.data).decode()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Attachment:
        """The attachment that a value of the context is.

        Raises:
            ContextValueError: It is none, or not what was attached.
        """
        name = str(plain.get("name", ""))
        try:
            found = cls(base64.b64decode(str(plain.get("data", "")), validate=True), name)
        except ValueError:  # wrong characters, or too few
            raise ContextValueError(f"the attachment {name} cannot be read: it is not base64") from None
        if found.digest != plain.get("sha256", found.digest):
            raise ContextValueError(f"the attachment {name} is not what was attached: its SHA-256 differs")
        return found

    def __str__(self) -> str:
        return described(self.facts())


def media_type_of(data: bytes) -> str:
    """What the first bytes of a file say that it is; empty for what no model is shown.

    >>> media_type_of(b"%PDF-1.7"), media_type_of(b"<svg>")
    ('application/pdf', '')
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return PDF if data.startswith(b"%PDF-") else ""


def is_attachment(value: object) -> bool:
    """Whether a value of the context is an attachment."""
    if not isinstance(value, dict):
        return False
    entries = cast("dict[str, Any]", value)
    return entries.get("type") == TYPE and "data" in entries and "media_type" in entries


def without_bytes(value: Any) -> Any:
    """A JSON value in which attachments are only named."""
    if is_attachment(value):
        return {name: each for name, each in value.items() if name != "data"}
    if isinstance(value, dict):
        return {key: without_bytes(each) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [without_bytes(each) for each in cast("list[Any]", value)]
    return value


def described(facts: Mapping[str, Any]) -> str:
    """An attachment in a line of text."""
    size, digest = int(facts.get("size_bytes", 0)), str(facts.get("sha256", ""))[:_SHOWN_DIGITS]
    name = " ".join(str(facts.get("name")).split())  # a file name may have line breaks
    return f"{name} ({facts.get('media_type')}, {size:,} bytes, sha256 {digest})"


def attached_names(text: str) -> list[str]:
    """The parts of an `attach`: variables, and paths.

    >>> attached_names("${photo}, report.pdf,")
    ['${photo}', 'report.pdf']
    """
    return [part for each in _PARTS.findall(text) if (part := each.strip())]


def attachment_tokens(media_type: str, size_bytes: int) -> int:
    """A guess at what an attachment costs in tokens."""
    return ATTACHMENT_TOKENS * (max(1, size_bytes // _PAGE_BYTES) if media_type == PDF else 1)


def attachments_section(attachments: Sequence[Attachment]) -> str:
    """The section of a prompt that names what is attached; empty for nothing."""
    if not attachments:
        return ""
    return "\n".join(["## Attached", "", *(f"{place}. {each}" for place, each in enumerate(attachments, 1))])
