"""The declared inputs of a pipeline: `inputs="ticket, product, tone=plain"` on the graph (ruling 34).

A comma-separated list of names; one with a default may be left out by the caller. A default
is a text, in quotation marks where it has a comma. `inputs_schema` names a registered model whose fields are
inputs, with their types. A graph that declares nothing takes any values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from attractor_nb.errors import InputsSyntaxError, OptionError
from attractor_nb.model.texts import in_order, nearest, suggestion
from attractor_nb.model.vocabulary.value_forms import FOR_EACH, LIST_KEYS, QUOTED, EntryReader
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from attractor_nb.model.graph import Graph

INPUTS: Final = "inputs"
INPUTS_SCHEMA: Final = "inputs_schema"
ENGINE_PREFIXES: Final = ("context.", "graph.", "human.gate.", "internal.", "parallel.", "stack.", "tool.")
"""Beginnings of context keys that the engine and its stages set (spec 5.1)."""
RESERVED_PREFIXES: Final = ("internal.", "graph.")
"""Those of keys that belong to the engine alone, and are refused from anybody else (spec 5.1, ruling 27)."""
ENGINE_KEYS: Final = {
    "current_node": "the node that runs",
    "last_response": "the beginning of the last response",
    "last_stage": "the node of the last stage",
    "outcome": "the status of the last stage",
    "preferred_label": "the label of the edge that the last stage prefers",
}
"""Context keys that the engine sets (spec 5.1), each with what it holds."""
STAGE_KEYS: Final = {
    "human.gate.form": "the form values of the last gate",
    "human.gate.label": "the label of the answer at the last gate",
    "human.gate.selected": "the key of the answer at the last gate",
    "human.gate.text": "the text that a person entered at the last gate",
    "parallel.results": "the results of the last fan-out, as JSON",
    "tool.exit_code": "the exit code of the last command",
    "tool.last_line": "the last line of output of the last command",
    "tool.output": "the output of the last command",
    "tool.stderr": "the error output of the last command",
}
"""Context keys that stages set, each with what it holds."""
_STAGE_NAMES: Final = frozenset({"logs_root", "response", "run_id", "verdict"})
"""Names below a node's id under which the engine keeps what its stage left."""
_ENGINE_ROOTS: Final = frozenset({"context", "graph", "human", "human.gate", "internal", "parallel", "stack", "tool"})
"""Keys whose fields, were one of them an object, would be keys of the engine (ruling 50)."""
_NAME: Final = re.compile(r"[^\W\d]\w*(?:[.-]\w+)*")
_BARE: Final = re.compile(r"[^,]*")
_FORM: Final = 'write names with commas between, such as inputs="ticket, product, tone=plain"'


def is_engine_key(key: str, node_ids: Container[str] | None = None) -> bool:
    """True if the engine alone sets a context key: no model, status file or input may say what it holds.

    >>> is_engine_key("tool.exit_code"), is_engine_key("context.tool.exit_code"), is_engine_key("review.response")
    (True, True, True)
    >>> is_engine_key("review.verdict.ok"), is_engine_key("verdict"), is_engine_key("review.score")
    (True, False, False)
    >>> is_engine_key("review.verdict.ok", {"review"}), is_engine_key("letter.response", {"review"})
    (True, False)

    Args:
        key: The key.
        node_ids: Ids of the graph's nodes, whose responses and verdicts are the engine's; None for any id. Where
            they are the keys of nodes, the outputs and results of those with `for_each` are the engine's, too.
    """
    if key in ENGINE_KEYS or key.startswith(ENGINE_PREFIXES):
        return True
    names = key.split(".")
    return any(
        (name in _STAGE_NAMES and (node_ids is None or ".".join(names[:at]) in node_ids))
        or (name in LIST_KEYS and _has_lists(node_ids, ".".join(names[:at])))
        for at, name in enumerate(names[1:], 1)
    )


def forged_keys(keys: Iterable[str], node_id: str, prefixes: tuple[str, ...] = ()) -> list[str]:
    """The engine keys that the stored result of a stage sets, and that its stage would not.

    >>> forged_keys(["tool.exit_code", "plan.response", "last_response", "topic"], "plan")
    ['tool.exit_code']
    >>> forged_keys(["tool.exit_code"], "test", ("tool.",))
    []

    Args:
        keys: Context keys.
        node_id: The stage's node, whose response and verdict are its own.
        prefixes: How the keys begin that stages of its type set.
    """
    own = (f"{node_id}.", *prefixes)
    return [
        key
        for key in keys
        if is_engine_key(key) and not key.startswith(own) and key not in ("last_stage", "last_response")
    ]


def _has_lists(node_ids: Container[str] | None, stage: str) -> bool:
    """True if a node is run for each item of a list, as far as the nodes are known."""
    if not isinstance(node_ids, Mapping) or stage not in node_ids:
        return False
    found = cast("Mapping[str, Any]", node_ids)[stage]
    return FOR_EACH in getattr(found, "node", found).attrs  # planned, or of a graph


def sets_engine_key(key: str, value: object, node_ids: Container[str] | None = None) -> bool:
    """True if a value under a key would be read as that of a key of the engine.

    An object counts, too, when one of its fields can be taken for such a key.

    >>> sets_engine_key("human", {"gate": {"label": "Approve"}}), sets_engine_key("tool", "a hammer")
    (True, False)
    >>> sets_engine_key("review", {"verdict": {"ok": True}}, {"review"}), sets_engine_key("review", {"score": 1})
    (True, False)

    Args:
        key: The key.
        value: The value.
        node_ids: Ids of the graph's nodes; None where they are not known.
    """
    if is_engine_key(key, node_ids):
        return True
    if not isinstance(value, dict):
        return False
    is_stage = node_ids is not None and key in node_ids
    fields = cast("dict[str, Any]", value)
    return (
        key in _ENGINE_ROOTS
        or (is_stage and not _STAGE_NAMES.isdisjoint(fields))
        or (_has_lists(node_ids, key) and not fields.keys().isdisjoint(LIST_KEYS))
    )


class Input(msgspec.Struct, frozen=True):
    """One input of a pipeline."""

    name: str  #: The context key that gets the value.
    is_required: bool = True  #: The caller must give it.
    default: Any = None  #: Its default.
    #: JSON name of its type: ``string``, ``integer``, ``number``, ``boolean``, ``array``, ``object``; empty for any.
    type: str = "string"
    description: str = ""  #: Its description, or empty.

    def __str__(self) -> str:
        return self.name if self.is_required else f"{self.name}={self.default}"

    def to_plain(self) -> dict[str, Any]:
        """As JSON values; ``default`` only where there is one."""
        plain = {"name": self.name, "is_required": self.is_required, "type": self.type}
        given = {} if self.is_required else {"default": self.default}
        return {**plain, **given, "description": self.description}


def parse_inputs(text: str | SourceText) -> tuple[Input, ...]:
    """Read a declaration of inputs.

    >>> [str(each) for each in parse_inputs("ticket, tone=plain, note='a, b'")]
    ['ticket', 'tone=plain', 'note=a, b']
    """
    source = text if isinstance(text, SourceText) else SourceText(text)
    reader = EntryReader(source, partial(InputsSyntaxError, hint=_FORM))
    found: dict[str, Input] = {}
    for declared, position in reader.entries(partial(_one, reader)):
        span = source.span(position, position + len(declared.name))
        if declared.name in found:
            raise InputsSyntaxError(f'"{declared.name}" occurs twice', span, hint="leave one of them out")
        if declared.name in ENGINE_KEYS or declared.name.startswith(ENGINE_PREFIXES):
            raise InputsSyntaxError(
                f'"{declared.name}" is a key that the engine sets', span, hint="name the input otherwise"
            )
        found[declared.name] = declared
    return tuple(found.values())


def inputs_of_schema(schema: Mapping[str, Any]) -> tuple[Input, ...]:
    """The inputs that a model's JSON Schema declares: its properties."""
    required = set(cast("Iterable[str]", schema.get("required", ())))
    properties = cast("Mapping[str, Mapping[str, Any]]", schema.get("properties", {}))
    return tuple(
        Input(
            name,
            is_required=name in required,
            default=entry.get("default"),
            type=kind if isinstance(kind := entry.get("type", ""), str) else "",
            description=str(entry.get("description", "")),
        )
        for name, entry in properties.items()
    )


def inputs_of(graph: Graph, of_schema: Callable[[str], Sequence[Input] | None]) -> tuple[Input, ...]:
    """The inputs that a graph declares; none for a graph that takes any values.

    Args:
        graph: The graph.
        of_schema: Gives the inputs of a registered model by its name; None where there is none.
    """
    named = graph.get(INPUTS_SCHEMA, str, "").strip()
    typed = {each.name: each for each in (of_schema(named) if named else None) or ()}
    written = {each.name: each for each in parse_inputs(graph.get(INPUTS, str, ""))}
    for name, each in written.items():
        if name not in typed:
            typed[name] = each
        elif not each.is_required:
            own = typed[name]
            typed[name] = Input(
                name, is_required=False, default=each.default, type=own.type, description=own.description
            )
    return tuple(typed.values())


def input_problems(declared: Sequence[Input], given: Iterable[str], *, is_whole: bool = True) -> list[str]:
    """The problems with the names of the values given to a pipeline; empty if it can run with them.

    Args:
        declared: Its inputs; of none, any name will do.
        given: The names.
        is_whole: Nothing more will be given, so that what is missing is wrong.

    >>> input_problems([Input("ticket"), Input("tone", False, "plain")], ["tikcet"])
    ['"tikcet" is no input; did you mean "ticket"?']
    >>> input_problems([Input("ticket")], [])
    ['the input "ticket" is missing']
    """
    if not declared:
        return []
    names, there = [each.name for each in declared], list(in_order(given))
    open_names = [name for name in names if name not in there]
    problems: list[str] = []
    meant: set[str] = set()
    for name in there:
        if name in names:
            continue
        near = nearest(name, open_names) or nearest(name, names)
        meant.add(near)
        problems.append(f'"{name}" is no input' + suggestion(near))
    missing = [each.name for each in declared if each.is_required and each.name in open_names]
    if is_whole:
        problems += [f'the input "{name}" is missing' for name in missing if name not in meant]
    return problems


def completed(
    pipeline: str, declared: Sequence[Input], given: Mapping[str, Any], *, is_whole: bool = True
) -> dict[str, Any]:
    """The values that a pipeline is given, and the defaults of those that it is not given.

    Declared ones come first, in the order of their declaration: however they were given, prompts begin alike.

    Args:
        pipeline: Its name, for messages.
        declared: Its inputs.
        given: The values by name.
        is_whole: What is missing is refused.
    """
    if problems := input_problems(declared, given, is_whole=is_whole):
        listed = ", ".join(map(str, declared))
        raise OptionError(f"inputs of {pipeline}: {'; '.join(problems)}", hint=f"its inputs: {listed}")
    known = (each for each in declared if not each.is_required or each.name in given)
    return {**{each.name: given.get(each.name, each.default) for each in known}, **given}


def _one(reader: EntryReader, position: int) -> tuple[Input, int]:
    text = reader.source.text
    name = _NAME.match(text, position)
    if name is None:
        raise reader.unexpected(position, "a name")
    equals = reader.after_space(name.end())
    if text[equals : equals + 1] != "=":
        return Input(name.group()), name.end()
    start = reader.after_space(equals + 1)
    if quoted := QUOTED.match(text, start):
        return Input(name.group(), is_required=False, default=quoted.group()[1:-1]), quoted.end()
    bare = cast("re.Match[str]", _BARE.match(text, start))
    return Input(name.group(), is_required=False, default=bare.group().rstrip()), bare.end()
