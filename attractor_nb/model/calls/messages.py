"""Prompts, answers, system prompts and attachments of messages, in the two plain forms in which backends keep them.

Messages of chats (``role`` and ``content``) and of pydantic-ai (``kind`` and ``parts``), as JSON values. A
form that is not known has no text: it is left as it is.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import ContextValueError
from attractor_nb.model.bounded_json import read_bounded_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


Message = dict[str, Any]
MESSAGE_TOKENS: Final = 4
"""Tokens of a message beside its text."""
OMITTED: Final = "[output of {count} characters left out]"
_SYSTEM_ROLES: Final = frozenset({"system", "developer"})


def prompt_of(message: Mapping[str, Any]) -> str | None:
    """The text of a person or a stage in a message. None if the message begins no turn."""
    if "kind" in message:
        prompts = [part for part in _parts(message) if part.get("part_kind") == "user-prompt"]
        return "\n\n".join(_text(part.get("content")) for part in prompts) if prompts else None
    return _text(message.get("content")) if message.get("role") == "user" else None


def answer_of(message: Mapping[str, Any]) -> str:
    """The text of the model in a message; empty if it has none."""
    if "kind" in message:
        texts = [part for part in _parts(message) if part.get("part_kind") == "text"]
        return "\n".join(_text(part.get("content")) for part in texts)
    return _text(message.get("content")) if message.get("role") == "assistant" else ""


def system_of(message: Mapping[str, Any]) -> Message | None:
    """The part of it that is a system prompt, as a separate message; None without one."""
    if "kind" in message:
        parts = [part for part in _parts(message) if part.get("part_kind") == "system-prompt"]
        return {**message, "parts": parts} if parts else None
    return dict(message) if message.get("role") in _SYSTEM_ROLES else None


def without_system(message: Message) -> Message | None:
    """It without its system prompt; None when nothing else is in it."""
    if "kind" in message:
        parts = [part for part in _parts(message) if part.get("part_kind") != "system-prompt"]
        return {**message, "parts": parts} if parts else None
    return None if message.get("role") in _SYSTEM_ROLES else message


def without_outputs(message: Message) -> tuple[Message, int]:
    """It with a short line in place of each output of a tool that is longer, and how many those were."""
    if "kind" in message:
        count, parts = 0, list[Message]()
        for part in _parts(message):
            is_output = part.get("part_kind") == "tool-return"
            short = _omitted(part.get("content")) if is_output else None
            count += short is not None
            parts.append(part if short is None else {**part, "content": short})
        return ({**message, "parts": parts}, count) if count else (message, 0)
    short = _omitted(message.get("content")) if message.get("role") == "tool" else None
    return (message, 0) if short is None else ({**message, "content": short}, 1)


def with_prompt_before(message: Message, text: str) -> Message:
    """It with a text before what is said in it, for a message that begins a turn."""
    if "kind" in message:
        return {**message, "parts": [{"part_kind": "user-prompt", "content": text}, *_parts(message)]}
    return {**message, "content": f"{text}\n\n{_text(message.get('content'))}"}


def prompt_like(message: Mapping[str, Any], text: str) -> Message:
    """A message of the form of another one that says a text."""
    if "kind" in message:
        return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}
    return {"role": "user", "content": text}


def message_tokens(messages: Iterable[Message]) -> int:
    """Estimate of what messages take of a window.

    >>> message_tokens([{"role": "user", "content": "Four words are here."}])
    9
    """
    return sum(MESSAGE_TOKENS + sum(map(estimated_tokens, texts_of(message))) for message in messages)


def messages_of(text: str) -> list[Message] | None:
    """The messages of a conversation that is kept as a JSON list of them; None when it is something else."""
    try:
        found: Any = read_bounded_json(text)
    except ValueError:
        return None
    is_list = isinstance(found, list) and all(isinstance(item, dict) for item in cast("list[Any]", found))
    return cast("list[Message]", found) if is_list else None


def texts_of(message: Mapping[str, Any]) -> Iterator[str]:
    """All that a model reads of it."""
    if "kind" in message:
        for part in _parts(message):
            yield from (_text(part[name]) for name in ("content", "args", "tool_name") if part.get(name))
        return
    yield _text(message.get("content"))
    if calls := message.get("tool_calls"):
        yield _text(calls)


def _parts(message: Mapping[str, Any]) -> list[Message]:
    return cast("list[Message]", message.get("parts") or [])


def _omitted(content: Any) -> str | None:
    """The line in place of an output; None when that is no shorter."""
    text = _text(content)
    short = OMITTED.format(count=len(text))
    return short if len(short) < len(text) else None


def _text(content: Any) -> str:
    """A content as text: pieces of a list one after the other, other values as JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        pieces = cast("list[Any]", content)
        if all(isinstance(piece, str) or (isinstance(piece, dict) and "text" in piece) for piece in pieces):
            return "\n".join(piece if isinstance(piece, str) else str(piece["text"]) for piece in pieces)
    return json.dumps(content, ensure_ascii=False, default=str)


# Token estimates without a tokenizer: four characters count as one (spec 5.4).
#
# English prose has about that many; code and other scripts have more tokens per character. All models share the
# estimate, so budgets and windows mean the same for each.

CHARACTERS_PER_TOKEN: Final = 4


def estimated_tokens(text: str) -> int:
    """The estimate for a text, rounded up.

    >>> estimated_tokens(""), estimated_tokens("four"), estimated_tokens("fives")
    (0, 1, 2)
    """
    return -(-len(text) // CHARACTERS_PER_TOKEN)


# Images and documents that a model receives beside its prompt: `attach="${photo}, report.pdf"`.
#
# The first bytes decide the type, never the name. The context holds a JSON value, stored among the artifacts of the
# run because of its size (spec 5.5): it survives a resume, and is passed to maps and child runs.

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
"""Parts between commas; commas within braces do not separate."""


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
        """The media type, such as ``image/png``."""
        return media_type_of(self.data)

    @property
    def shown_name(self) -> str:
        """The name for display, on one line and without the signs of markup."""
        kept = "".join(char if char.isprintable() and char not in "`<>|*[]" else "_" for char in self.name)
        return kept[:200] or f"attachment.{self.media_type.partition('/')[2]}"

    @property
    def digest(self) -> str:
        """SHA-256 of its bytes."""
        return sha256(self.data).hexdigest()

    def facts(self) -> dict[str, Any]:
        """The metadata of the attachment, without its bytes."""
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
    """The media type by the first bytes of a file; empty for a type that no model accepts.

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
    """True if a value of the context is an attachment."""
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
