"""The executable surface of a graph: all that it can make this machine do (RELIABILITY, "Trust before run").

The surface lists every attribute by which a graph's author, and not its user, decides about this machine: the
commands that it runs, the tools that a model has, the texts for a model that may write or execute, and the
servers that receive prompts and keys. It lists nothing else (ruling 43).
Trust is given to the hash of the list. The list must not depend on the origin of a graph, nor on its user.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.model.allowed_tools import SERVER_AUTHORITY, read_allowed_tools, server_attribute
from attractor_nb.model.calls.providers import PREFIX, RATE_FIELDS
from attractor_nb.model.vocabulary.attribute_table import TABLE, AttrType, Scope
from attractor_nb.model.vocabulary.value_forms import FOR_EACH_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.model.vocabulary.attributes import Attributed

SHOWN_DIGITS: Final = 12
"""Digits of a hash that are shown, and the fewest that name one."""
_SERVER: Final = "llm.base_url"
_RATES: Final = tuple(f".{field}" for field in RATE_FIELDS)
"""Settings that only slow down requests are no commands."""
COMMAND: Final = "command"
"""The kind of an entry that a shell or the system runs unchanged."""
_KINDS: Final = {
    "stack.child_dotfile": "child pipeline",
    "stack.child_run": "child pipeline",
    "stack.child_workdir": "setting of commands",
    "pipeline.dotfile": "child pipeline",
    "allowed_tools": "list of tools",
    "attach": "attached file",
    "function": "function",
    "tool_shell": "setting of commands",
    "manager.guard_function": "function",
    _SERVER: "server setting",
}
"""Attributes that are no commands and do as much as one, and what each is."""
_OTHER_NAMES: Final = frozenset(_KINDS)
RECORDED: Final = "manifest."
"""Prefix of attributes of entries that come from a manifest and not from the graph."""
FOREIGN: Final = "directory."
"""Prefix of attributes of entries that only the directory of another user needs."""
OF_A_DIRECTORY: Final = (RECORDED, FOREIGN)
_LOOKING: Final = frozenset({"read", "list"})
"""Built-in tools that change nothing."""
_STEERING: Final = (
    "prompt",
    "llm.system_prompt",
    "response_schema",
    "carry",
    "for_each",
    "human.prompt",
    "human.form",
    "manager.instructions",
    "pipeline.inputs",
)
"""Texts of a node that reach a model, its own or one after it: by the context, a thread, an answer at a gate."""
_ASKING: Final = frozenset({"codergen", FOR_EACH_TYPE, "parallel.fan_in", "stack.manager_loop"})
"""Types of nodes that may ask a model."""
_CHOSEN: Final = frozenset(row.name for row in TABLE if row.choices)
"""Attributes whose value is one of a few words: no text that could steer."""
_GRAPH_TEXTS: Final = ("goal", "inputs", "label")
_FORM: Final = "attractor-nb executable surface 1"
"""Part of what is hashed: another canonical form must never yield the same hash."""
_HASH: Final = re.compile(rf"[0-9a-f]{{{SHOWN_DIGITS},64}}\Z")


_COMMANDS: Final = frozenset(row.name for row in TABLE if row.type is AttrType.COMMAND)


def _names(scope: Scope) -> tuple[str, ...]:
    return tuple(
        row.name for row in TABLE if row.scope is scope and (row.type is AttrType.COMMAND or row.name in _OTHER_NAMES)
    )


_GRAPH_NAMES: Final = _names(Scope.GRAPH)
_NODE_NAMES: Final = _names(Scope.NODE)


class Command(msgspec.Struct, frozen=True, order=True):
    """One entry of a surface."""

    node_id: str  #: The node that it belongs to, in a child pipeline its path; empty for the graph.
    attribute: str  #: The attribute that holds it.
    text: str  #: The command, child file, tools or address, as it will be used.

    @property
    def kind(self) -> str:
        """A word for what it is, in the singular: ``command``, ``server setting``.

        >>> [Command("", name, "x").kind for name in ("mcp.git.command", "llm.base_url", "goal")]
        ['command', 'server setting', 'text for models']
        """
        name = self.attribute
        if name in _COMMANDS or (name.startswith("mcp.") and name.endswith(".command")):
            return COMMAND
        if name.startswith(PREFIX) or _is_of_server(name):
            return "server setting"
        if name.startswith(OF_A_DIRECTORY):
            return "choice of the run directory"
        return _KINDS.get(name, "text for models")


@dataclass(frozen=True)
class ExecutableSurface:
    """All commands of a graph, in the order of its text."""

    commands: tuple[Command, ...]

    @cached_property
    def full_hash(self) -> str:
        """SHA-256 of the commands and whose they are; their order in the text does not count."""
        rows = [[entry.node_id, entry.attribute, entry.text] for entry in sorted(self.commands)]
        return hashlib.sha256(json.dumps([_FORM, rows]).encode()).hexdigest()

    @property
    def hash(self) -> str:
        """The hash as users see it."""
        return self.full_hash[:SHOWN_DIGITS]

    def is_named_by(self, text: str) -> bool:
        """True if a text is this surface's hash, or the beginning of it with at least 12 digits."""
        return is_hash(text) and self.full_hash.startswith(text.lower())

    def __bool__(self) -> bool:
        return bool(self.commands)


def is_hash(text: str) -> bool:
    """True if a text can be the hash of a surface.

    >>> is_hash("3F2A9C01B7DE"), is_hash("3f2a"), is_hash("*")
    (True, False, False)
    """
    return _HASH.match(text.lower()) is not None


def executable_surface(graph: Graph, *, acts_unasked: bool = False) -> ExecutableSurface:
    """The commands of a graph as it will run, after its transforms.

    A command counts on any node: a handler of the user's own may run it. Those of its child
    pipelines count, too; their nodes are named by their path, such as ``boss/test``.

    Args:
        graph: The graph.
        acts_unasked: Its backend may write or execute for every model stage, as ``protocols.acts_unasked`` says.
    """
    has_texts = is_steered(graph, acts_unasked=acts_unasked)
    commands = tuple(_all_commands(graph, "", has_texts=has_texts))
    return ExecutableSurface((*commands, *_place_of(graph, commands)))


def _place_of(graph: Graph, commands: tuple[Command, ...]) -> Iterator[Command]:
    """The isolation of commands, which is part of the surface: a folder of the run's own, or the user's."""
    isolation = graph.get("isolation", str, "").strip()
    if commands and isolation and not any(entry.attribute == "isolation" for entry in commands):
        yield Command("", "isolation", isolation)


def _all_commands(graph: Graph, within: str, *, has_texts: bool) -> Iterator[Command]:
    """The commands, and where a model of the whole family may write or execute, every text that can reach it."""
    yield from _commands_of(graph, within.rstrip("/"), _GRAPH_NAMES)
    if has_texts:
        yield from _texts_of_graph(graph, within.rstrip("/"))
    for node in graph.nodes.values():
        if has_texts:
            yield from _texts_of_node(graph, node, within + node.id)
        for command in _commands_of(node, within + node.id, _NODE_NAMES):
            is_server = command.attribute == _SERVER or command.attribute.startswith(PREFIX)
            if not is_server or command.text != graph.get(command.attribute, str, ""):  # else from their graph
                yield command
    for node_id, child in graph.children.items():
        # The pipeline of an item has what the node itself has, which is listed; and the child of that node.
        below = child.children.values() if graph.handler_types[node_id] == FOR_EACH_TYPE else (child,)
        for each in below:
            yield from _all_commands(each, f"{within}{node_id}/", has_texts=has_texts)


def _may_execute(node: Node) -> bool:
    """True if the model of a node gets tools that write or execute: all but those that only look."""
    tools = read_allowed_tools(node.get("allowed_tools", str, ""))
    return bool(tools.own or tools.served or tools.wrong or tools.agents or not _LOOKING.issuperset(tools.built_in))


def is_steered(graph: Graph, *, acts_unasked: bool) -> bool:
    """True if a model of a graph or of one below it may write or execute; arguments as above."""
    return (
        any(map(_may_execute, graph.nodes.values()))
        or (acts_unasked and any(graph.handler_types[node_id] in _ASKING for node_id in graph.nodes))
        or any(is_steered(child, acts_unasked=acts_unasked) for child in graph.children.values())
    )


def _texts_of_graph(graph: Graph, graph_id: str) -> Iterator[Command]:
    """The texts of a graph that prompts contain, or may: `${graph.note}` is any attribute."""
    for name in dict.fromkeys((*_GRAPH_TEXTS, *sorted(graph.attrs))):
        is_listed = name in _CHOSEN or name in _GRAPH_NAMES or _is_of_server(name) or name.startswith(PREFIX)
        if not is_listed and (text := graph.get(name, str, "")).strip():
            yield Command(graph_id, name, text)


def _texts_of_node(graph: Graph, node: Node, node_id: str) -> Iterator[Command]:
    """The texts of a node, and the labels of its edges, which are the answers at a gate and the ways of a verdict."""
    if "label" in node.attrs and node.prompt:
        yield Command(node_id, "label", node.label)
    for name in _STEERING:
        text = node.get(name, str, "") or (node.label if name == "prompt" else "")
        if text.strip() and (name != "prompt" or "prompt" in node.attrs or "label" in node.attrs):
            yield Command(node_id, name, text)
    for label in dict.fromkeys(edge.label for edge in graph.outgoing_edges(node.id) if edge.label):
        yield Command(node_id, "edge label", label)


def _is_of_server(name: str) -> bool:
    """True if an attribute says which MCP server is started or asked, or which variables it gets."""
    return (found := server_attribute(name)) is not None and found[1] in SERVER_AUTHORITY


def _commands_of(holder: Attributed, node_id: str, names: tuple[str, ...]) -> Iterator[Command]:
    others = {name for name in holder.attrs if name.startswith(PREFIX) and not name.endswith(_RATES)}
    if names is _GRAPH_NAMES:
        others |= {name for name in holder.attrs if _is_of_server(name)}
    for name in (*names, *sorted(others.difference(names))):
        if name in holder.attrs and (text := holder.get(name, str, "")).strip():
            yield Command(node_id, name, text)
