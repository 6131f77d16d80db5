"""What an attribute is: where it may stand, the type of its value, and its row in the table."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from attractor_nb.model.vocabulary.duration import Duration

AttrValue = str | int | float | bool | Duration
"""What an attribute may hold once its type is known."""


class Scope(StrEnum):
    """Where an attribute may stand."""

    GRAPH = "graph"
    NODE = "node"
    EDGE = "edge"
    SUBGRAPH = "subgraph"


class AttrType(StrEnum):
    """The type of an attribute's value (spec 2.4), and three closer readings of a string."""

    STRING = "string"
    INTEGER = "integer"
    FLOAT = "number"
    BOOLEAN = "boolean"
    DURATION = "duration"
    CHOICE = "choice"
    NODE_ID = "node id"
    COMMAND = "command"


class AttributeSpec(msgspec.Struct, frozen=True):
    """One row of the table."""

    name: str  #: The attribute's name, dots included.
    scope: Scope  #: Where it stands.
    type: AttrType  #: How its value is read.
    default: AttrValue | None  #: Its value when nobody says otherwise; None for "unset".
    meaning: str  #: One sentence for completion, lint and the docs.
    choices: tuple[str, ...] = ()  #: The values of a CHOICE.
    alias_of: str = ""  #: The canonical name, for a second spelling.
    minimum: int | None = None  #: The least number allowed, for numbers and durations (in milliseconds).
