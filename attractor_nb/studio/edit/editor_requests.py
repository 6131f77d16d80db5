"""Requests of views to an ``Editor``, and the form of one element of a graph that they show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.model.diagnostic import listed, unlisted
from attractor_nb.model.vocabulary.attribute_table import AttributeSpec, AttrType, Scope
from attractor_nb.model.vocabulary.attributes import Attributed, attributes_of, literal_text
from attractor_nb.model.vocabulary.shapes import FUNCTION_TYPE, SHAPE_TO_TYPE
from attractor_nb.redaction import redacted
from attractor_nb.runtime.launch import options_for, start_run
from attractor_nb.runtime.prepare.declared_inputs import input_of_text
from attractor_nb.studio.edit.editor import Editor, find_place, value_problem
from attractor_nb.views.drawings.drawing import kind_words
from attractor_nb.views.findings_table import can_fix, finding_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from attractor_nb.model.graph import Graph
    from attractor_nb.model.inputs import Input
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution


_LOOKS: Final = ("label", "shape", "type")
_STAGE: Final = ("max_retries", "retry_policy", "goal_gate", "retry_target", "timeout")
_MODEL: Final = ("prompt", "llm_model", "llm_provider", "reasoning_effort", "fidelity", "carry", "allowed_tools")
_OF_TYPE: Final = {
    "start": _LOOKS,
    "exit": _LOOKS,
    "conditional": _LOOKS,
    "codergen": (*_LOOKS, *_MODEL, *_STAGE),
    "tool": (*_LOOKS, "tool_command", "tool_shell", "idempotent", *_STAGE),
    "wait.human": (*_LOOKS, "human.prompt", "human.type", "human.timeout", "human.default_choice"),
    "parallel": (*_LOOKS, "join_policy", "join_k", "join_quorum", "error_policy", "max_parallel", *_STAGE),
    "parallel.fan_in": (*_LOOKS, "merge", *_MODEL, *_STAGE),
    "stack.manager_loop": (
        *_LOOKS,
        "stack.child_dotfile",
        "stack.child_pipeline",
        "manager.poll_interval",
        "manager.max_cycles",
        "manager.stop_condition",
        "manager.guard",
        "manager.escalate",
        "manager.instructions",
        *_STAGE,
    ),
    FUNCTION_TYPE: (*_LOOKS, "function", "prompt", *_STAGE),
    "pipeline": (*_LOOKS, "pipeline.dotfile", "pipeline.name", "pipeline.inputs", "pipeline.outputs", *_STAGE),
}
"""The attributes that the form of each handler type begins with; the others wait in a list below it."""
_OF_GRAPH: Final = ("goal", "inputs", "label", "model_stylesheet", "default_max_retries", "max_steps", "rankdir")
_OF_EDGE: Final = ("label", "condition", "weight", "default", "loop_restart", "max_taken")
_LONG: Final = frozenset(
    {"prompt", "human.prompt", "tool_command", "model_stylesheet", "manager.instructions", "condition", "goal"}
)

CELL: Final = "<cell>"
MOST_LEFT: Final = 3
"""Most remaining findings that are named after all fixes."""
_STALE: Final = "the text has changed since this table was shown"


def form_of(graph: Graph, target: object) -> dict[str, Any]:
    """The form of a thing as plain data: ``title``, ``kind``, ``node``, ``edge``, ``fields``, ``more``.

    A field has ``name``, ``type``, ``value`` (what the thing itself says, or None), ``inherited``,
    ``default``, ``choices``, ``meaning``, ``is_long``, ``is_prose``, and ``is_locked``: it holds a secret.

    Args:
        graph: The graph as written.
        target: What is meant, as of ``Editor.set``.
    """
    place = find_place(graph, target)
    thing = place.thing(graph)
    if place.scope is Scope.NODE:
        node, handler_type = graph.nodes[place.node_id], graph.item_types[place.node_id]
        title, kind, own = node.label, f"{node.id}, {kind_words(handler_type)}", node.explicit
        first = _OF_TYPE.get(handler_type, tuple(row.name for row in attributes_of(Scope.NODE)))
    elif place.scope is Scope.EDGE:
        edge = graph.edges[place.position]
        title, kind, first = f"{edge.source} → {edge.target}", "edge", _OF_EDGE
        own = frozenset(edge.attrs)
    else:
        title, kind, first, own = graph.label or "Graph", "graph", _OF_GRAPH, frozenset(graph.attrs)
    rows = {row.name: row for row in attributes_of(place.scope) if not row.alias_of}
    names = dict.fromkeys((*first, *sorted(thing.attrs)))
    return {
        "title": redacted(title),
        "kind": redacted(kind),
        "node": place.node_id,
        "edge": place.position if place.scope is Scope.EDGE else None,
        "fields": [_field(thing, name, rows.get(name), own, graph) for name in names],
        "more": [_field(thing, name, row, own, graph) for name, row in rows.items() if name not in names],
    }


def _field(thing: Attributed, name: str, row: AttributeSpec | None, own: Iterable[str], graph: Graph) -> dict[str, Any]:
    written = literal_text(thing.attrs[name]) if name in thing.attrs else None
    shown = None if written is None else redacted(written)
    kind = row.type if row else AttrType.STRING
    choices: tuple[str, ...] = row.choices if row else ()
    if kind is AttrType.NODE_ID:
        choices = tuple(graph.nodes)
    elif name == "shape":
        choices = tuple(SHAPE_TO_TYPE)
    is_own = name in own
    return {
        "name": redacted(name),
        "type": kind.value,
        "value": shown if is_own else None,
        "inherited": None if is_own else shown,
        "default": None if row is None or row.default is None else literal_text(row.default),
        "choices": list(choices),
        "meaning": row.meaning if row else "Not known here; kept for a custom handler.",
        "is_long": name in _LONG or "\n" in (written or ""),
        "is_prose": name in {"label", "prompt", "human.prompt", "goal", "manager.instructions"},
        "is_locked": shown != written,
    }


class EditorRequests:
    """Does what a view asks of an editor, and says what it shows then. Knows no widget and no request."""

    def __init__(self, editor: Editor) -> None:
        self.editor = editor
        self._version = 0

    def state(self) -> dict[str, Any]:
        """All that is shown, without secrets."""
        editor = self.editor
        pipeline = editor.pipeline()
        written = pipeline.source
        text = editor.source
        return {
            "svg": editor.to_svg(),
            "source": redacted(text),
            "first_line": written.first_line if written else 1,
            "changed": list(editor.changed_lines()),
            "diff": editor.diff(),
            "findings": [finding_plain(found, number) for number, found in listed(editor.diagnostics)],
            "more_findings": unlisted(editor.diagnostics),
            "can_undo": editor.can_undo,
            "can_redo": editor.can_redo,
            "nodes": [redacted(name) for name in pipeline.parsed.nodes],
            "file": editor.file.name if editor.file else "",
            "is_cell": bool(written and written.name == CELL),
            "can_offer": redacted(text) == text and redacted(editor.begun) == editor.begun,
            "before": redacted(editor.begun),
            "version": self._version,
        }

    def answer(self, message: Mapping[str, Any]) -> tuple[list[dict[str, Any]], bool]:
        """Do what a message asks; the replies, and whether the state is another one now."""
        before, edges = self.editor.pipeline(), self.editor.pipeline().parsed.edges
        try:
            replies = self._do(message)
        except AttractorError as error:
            return [{"kind": "said", "words": str(error), "is_error": True}], False
        if self.editor.pipeline() is before:
            return replies, False
        self._version += 1
        if message.get("kind") in {"set", "rename"}:
            target: object = message.get("id") if message["kind"] == "rename" else _target(message.get("target"))
            is_there = not isinstance(target, int) or len(edges) == len(self.editor.pipeline().parsed.edges)
            replies += [self._form(target, is_new=False)] if is_there else [{"kind": "gone"}]
        elif message.get("kind") == "add_node":
            replies.append(self._form(message.get("id"), is_new=True))
        elif message.get("kind") != "fix":
            replies.append({"kind": "gone"})
        return replies, True

    def _do(self, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        match message.get("kind"):
            case "form":
                return [self._form(_target(message.get("target")), is_new=True)]
            case "check":
                place = find_place(self.editor.pipeline().parsed, _target(message.get("target")))
                name = _text(message, "name")
                words = value_problem(place.scope, name, _text(message, "text"))
                return [{"kind": "checked", "name": name, "words": redacted(words)}]
            case "save":
                return [{"kind": "said", "words": f"Saved to {redacted(str(self.editor.save()))}."}]
            case "fix_all":
                return [{"kind": "said", "words": self._fix_all()}]
            case _:
                self._change(message)
                return []

    def _change(self, message: Mapping[str, Any]) -> None:
        editor, kind, value = self.editor, _text(message, "kind"), message.get("value")
        attribute = {_text(message, "name"): None if value is None else str(value)}
        changes: dict[str, Callable[[], object]] = {
            "set": lambda: editor.set(_target(message.get("target")), attribute),
            "rename": lambda: editor.rename(_text(message, "node"), _text(message, "id")),
            "add_node": lambda: editor.add_node(_text(message, "id"), after=self._declared(_text(message, "after"))),
            "add_edge": lambda: editor.add_edge(_text(message, "source"), _text(message, "target")),
            "remove": lambda: editor.remove(_target(message.get("target"))),
            "fix": lambda: self._fix(message),
            "undo": editor.undo,
            "redo": editor.redo,
        }
        if kind not in changes:
            raise OptionError(f"an editor knows no message {redacted(kind)!r}", hint="load the page again")
        changes[kind]()

    def _fix_all(self) -> str:
        """Mend what can be mended; in words what was done, and what is left."""
        before = self.editor.diagnostics
        after = self.editor.fix().diagnostics
        left = [found.message for found in after]
        still = {(found.rule, found.message) for found in after}
        fixed = [found for found in before if can_fix(found) and (found.rule, found.message) not in still]
        words = f"{len(fixed)} fixed, {len(left) or 'none'} left"
        named = "; ".join(left[:MOST_LEFT]) + ("; …" if len(left) > MOST_LEFT else "")
        return f"{words}: {named}" if left else f"{words}."

    def _fix(self, message: Mapping[str, Any]) -> None:
        number, found = message.get("number"), self.editor.diagnostics
        if message.get("version") != self._version or not isinstance(number, int) or not 0 <= number < len(found):
            raise OptionError(_STALE, hint="click the fix again")
        self.editor.fix_one(found[number])

    def _form(self, target: object, *, is_new: bool) -> dict[str, Any]:
        form = form_of(self.editor.pipeline().parsed, target)
        return {"kind": "form", "form": form, "is_new": is_new}

    def _declared(self, node_id: str) -> str:
        node = self.editor.pipeline().parsed.nodes.get(node_id)
        return "" if node is None or node.is_implicit else node_id


def _target(given: object) -> Any:
    """The target of a message, as ``Editor.set`` takes it."""
    if isinstance(given, dict):
        named: dict[str, object] = given  # pyright: ignore[reportUnknownVariableType] - of a message
        edge, node = named.get("edge"), named.get("node")
        if isinstance(edge, int):
            return edge
        return node if isinstance(node, str) else ""
    return ""


def _text(message: Mapping[str, Any], name: str) -> str:
    value = message.get(name)
    return value if isinstance(value, str) else ""


# A form for the declared inputs of a pipeline, and the run that it starts: `pipeline.form()` (ruling 34).


class RunForm:
    """The inputs that a pipeline declares, to be filled in. A notebook shows fields and a button.

    Attributes:
        options: Options of the run; see ``RunOptions``.
        run: The run that was started last; None before the first.

    >>> from attractor_nb.pipeline.pipeline import Pipeline
    >>> ends = "start [shape=Mdiamond] done [shape=Msquare]"
    >>> pipeline = Pipeline(f'digraph {{ inputs="ticket, tone=plain" {ends} start -> done }}')
    >>> form = pipeline.form(durability="none")
    >>> print(form)
    ticket  required
    tone    plain
    run it with pipeline.run(params={"ticket": …})
    >>> form.submit({"ticket": "printer", "tone": ""}).result().context["tone"]
    'plain'
    """

    def __init__(self, pipeline: Definition, options: Mapping[str, Any]) -> None:
        """Make the form; nothing is started."""
        self.pipeline = pipeline
        self.options = dict(options)
        self.run: Execution | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The declared inputs, in their order."""
        return self.pipeline.inputs

    def submit(self, values: Mapping[str, str | bool]) -> Execution:
        """Start a run with what was filled in; a field that is empty is left to its default.

        Args:
            values: By input: the text of its field, JSON for arrays and objects; or a truth value.
        """
        declared = {each.name: each for each in self.inputs}
        params: dict[str, Any] = {
            name: input_of_text(declared.get(name), given)
            for name, given in values.items()
            if not (isinstance(given, str) and not given.strip())
        }
        given: dict[str, Any] = {**self.options, "params": params}
        chosen = options_for(self.pipeline, **given)
        with held_interrupts() as interrupt:
            self.run = run = start_run(self.pipeline, chosen, interrupt, is_waited_for=False)
            return run

    def __str__(self) -> str:
        width = max((len(each.name) for each in self.inputs), default=0)
        lines = [f"{each.name:{width}}  {'required' if each.is_required else each.default}" for each in self.inputs]
        needed = ", ".join(f'"{each.name}": …' for each in self.inputs if each.is_required)
        return "\n".join([*lines, f"run it with pipeline.run(params={{{needed}}})"])

    __repr__ = __str__
