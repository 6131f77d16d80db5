"""A stage that is run once for each item of a list: `for_each="item in plan.verdict.files"`.

Which attributes such a node has, how its list is named, and what its items are called. What becomes of the
items is not known here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attractor_nb.model.vocabulary.shapes import HUMAN_TYPE
from attractor_nb.model.vocabulary.value_paths import CONTEXT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

FOR_EACH: Final = "for_each"
MAX_ITEMS: Final = "max_items"
DEFAULT_MAX_ITEMS: Final = 100
ITEM: Final = "item"
ITEM_INDEX: Final = "item_index"
ITEM_KEYS: Final = (ITEM, ITEM_INDEX)
"""Context keys that the run of an item begins with beside those of the run around it."""
OUTPUTS: Final = "outputs"
RESULTS: Final = "results"
LIST_KEYS: Final = (OUTPUTS, RESULTS)
"""What such a stage leaves under its own id: ``<node>.outputs``, ``<node>.results``."""
FOR_EACH_TYPE: Final = "for_each"
"""What executes such a node, whatever its own type is. No built-in type: the attribute says it."""
UNREPEATABLE: Final = frozenset({"start", "exit", "conditional", "parallel", "parallel.fan_in", HUMAN_TYPE})
"""The handler types whose nodes cannot be run once for each item."""
_KEY: Final = r"[A-Za-z_]\w*(?:\.[\w-]+)*"
_FORM: Final = re.compile(rf"\s*{ITEM}\s+in\s+({_KEY})\s*", re.ASCII)
_NAMED: Final = re.compile(rf"\s*(?:[A-Za-z_]\w*\s+in\s+)?(?:\$\{{({_KEY})\}}|\$?({_KEY}))\s*", re.ASCII)


def is_repeated(attrs: Mapping[str, object], handler_type: str) -> bool:
    """Whether a node of these attributes and this own type is run once for each item."""
    return FOR_EACH in attrs and handler_type not in UNREPEATABLE


def list_key(text: str) -> str:
    """The context key of the list, without ``context.``; empty for a text of another form.

    >>> list_key("item in plan.verdict.files"), list_key("item in context.files"), list_key("plan.verdict.files")
    ('plan.verdict.files', 'files', '')
    """
    found = _FORM.fullmatch(text)
    return found.group(1).removeprefix(CONTEXT_PREFIX) if found else ""


def meant_form(text: str) -> str:
    """The text that somebody meant who wrote the list in another form; empty where nobody can tell.

    >>> meant_form("${plan.verdict.files}"), meant_form("file in files"), meant_form("1 to 3")
    ('item in plan.verdict.files', 'item in files', '')
    """
    found = _NAMED.fullmatch(text)
    return f"{ITEM} in {found.group(1) or found.group(2)}" if found else ""
