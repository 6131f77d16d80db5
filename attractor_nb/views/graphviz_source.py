"""A graph for Graphviz's own programs, which draw it with their layout engines in their formats.

Its text is written anew: no attribute of the author gets into it but those of the list below, and every value is a
quoted string, which Graphviz takes for text and never for markup. So no graph can make Graphviz read a file or link to
an address.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import graphviz
from graphviz.backend import dot_command

from attractor_nb.errors import OptionError
from attractor_nb.extras import find_program, install_command
from attractor_nb.model.redacted import redacted_graph
from attractor_nb.model.vocabulary.shapes import DEFAULT_SHAPE, SHAPE_TO_TYPE
from attractor_nb.model.vocabulary.value_forms import FOR_EACH_TYPE
from attractor_nb.views.drawings.drawing import bound_text, edge_tooltip, node_tooltip
from attractor_nb.views.drawings.theme import LIGHT
from attractor_nb.views.markup import clean
from attractor_nb.views.metrics import wrap
from attractor_nb.views.state import NodeState

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from attractor_nb.model.graph import Edge, Graph, Node
    from attractor_nb.model.vocabulary.attribute_table import AttrValue

PASSED_ON: Final = frozenset(
    """arrowhead arrowsize arrowtail bgcolor color constraint decorate dir fillcolor fontcolor fontname fontsize
    minlen nodesep ordering overlap pencolor penwidth peripheries rank rankdir ranksep ratio sep splines
    style""".split()  # noqa: SIM905 - as in the table of attributes
)
"""The attributes that are passed on: colours, lines, letters and distances."""
_PLAIN: Final = re.compile(r"[\w #.,:;|+-]*")
"""Values that are passed on, but ``invis``: a font that is a path is a file, and nothing that is run is hidden."""
_SHAPES: Final = {handler_type: shape for shape, handler_type in SHAPE_TO_TYPE.items()}
_COLOURS: Final = {"start": "success", "exit": "success", "wait.human": "waiting"}
_NO_STATE: Final = NodeState()
_LETTERS: Final = {"fontname": "Helvetica,Arial,sans-serif", "fontcolor": LIGHT["ink"]}
_OF_THE_GRAPH: Final = {**_LETTERS, "fontsize": "13", "labelloc": "t", "overlap": "false"}
_OF_ALL: Final = {
    "node": {**_LETTERS, "fontsize": "12"},
    "edge": {**_LETTERS, "fontsize": "10", "color": LIGHT["line"], "arrowsize": "0.7"},
}
_OF_A_PANEL: Final = {
    "style": "rounded",
    "bgcolor": LIGHT["panel"],
    "color": LIGHT["panel-line"],
    "labeljust": "l",
    "fontsize": "12",
}
_MISSING: Final = {"style": "dashed", "color": LIGHT["fail-line"], "tooltip": "not declared"}
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "&": "&amp;", "\n": r"\n", "\r": ""})
_CHARS: Final = 400
_WIDTH, _SIZE, _LINES = 160.0, 12.0, 6


class GraphvizSource(graphviz.Source):
    """A text that Graphviz draws: a ``graphviz.Source`` whose errors say what to do."""

    def pipe(self, *args: Any, **options: Any) -> Any:
        """The picture, as ``graphviz.Source.pipe`` gives it: bytes, or a text with ``encoding``.

        Raises:
            OptionError: There is no Graphviz, or it cannot draw this: another engine or format is needed.
        """
        with _explained():
            return super().pipe(*args, **options)

    def render(self, *args: Any, **options: Any) -> str:
        """Write text and picture into files, as ``graphviz.Source.render`` does; ``view`` opens the picture.

        Raises:
            OptionError: As ``pipe``.
        """
        with _explained():
            return super().render(*args, **options)  # pyright: ignore[reportUnknownMemberType] - its types are partly unknown


@contextmanager
def _explained() -> Generator[None]:
    """Use the Graphviz that is there, and say what to do where it fails."""
    if found := find_program("graphviz"):
        dot_command.DOT_BINARY = Path(found)  # what its manual names for it
    try:
        yield
    except graphviz.ExecutableNotFound:
        hint = f"{install_command('graphviz')}, or install Graphviz; to_svg() and --format svg need neither"
        raise OptionError("Graphviz is not installed: there is no program dot", hint=hint) from None
    except graphviz.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace") if isinstance(error.stderr, bytes) else error.stderr or ""
        hint = "another engine or format may do"
        raise OptionError(f"Graphviz cannot draw this: {clean(' '.join(said.split()))[:_CHARS]}", hint=hint) from None
    except ValueError as error:  # an engine or a format that it does not know
        raise OptionError(f"Graphviz: {error}", hint="pipeline.to_graphviz().pipe(engine=…, format=…)") from None


def graphviz_source(graph: Graph) -> GraphvizSource:
    """The graph for Graphviz: what a handler type is drawn as, labels, conditions, groups, colours and distances."""
    graph = redacted_graph(graph)
    return GraphvizSource("\n".join(_text(graph)), filename="pipeline.gv")


def _text(graph: Graph) -> Iterator[str]:
    yield f"digraph {_quoted(graph.name)} {{"
    yield f"  graph {_listed({**_OF_THE_GRAPH, 'label': _lines(graph.label), **_passed_on(graph.attrs)})}"
    yield from (f"  {kind} {_listed(attrs)}" for kind, attrs in _OF_ALL.items())
    home: dict[str, int | None] = dict.fromkeys(graph.nodes)
    for position, group in enumerate(graph.subgraphs):
        home.update({member: position for member in group.members if member in home})
    yield from _group(graph, home, None, "  ")
    missing = {name for edge in graph.edges for name in (edge.source, edge.target)} - graph.nodes.keys()
    yield from (f"  {_quoted(name)} {_listed({**_MISSING, 'label': _lines(name)})}" for name in sorted(missing))
    yield from (f"  {_quoted(edge.source)} -> {_quoted(edge.target)} {_listed(_edge(edge))}" for edge in graph.edges)
    yield "}"


def _group(graph: Graph, home: Mapping[str, int | None], parent: int | None, indent: str) -> Iterator[str]:
    """The nodes of a group, and the groups within it; a group with a label is drawn."""
    for node_id, group in home.items():
        if group == parent:
            yield f"{indent}{_quoted(node_id)} {_listed(_node(graph, graph.nodes[node_id]))}"
    for position, group in enumerate(graph.subgraphs):
        if group.parent == parent:
            drawn = {**_OF_A_PANEL, "label": _lines(group.label)} if group.label.strip() else {}
            yield f"{indent}subgraph {'cluster' if drawn else 'group'}_{position} {{"
            yield f"{indent}  graph {_listed({**drawn, **_passed_on(group.attrs)})}"
            yield from _group(graph, home, position, indent + "  ")
            yield f"{indent}}}"


def _node(graph: Graph, node: Node) -> dict[str, str]:
    handler_type = graph.handler_types[node.id]
    own_type = node.handler_type if handler_type == FOR_EACH_TYPE else handler_type
    colour = _COLOURS.get(own_type, "pending")
    shape = _SHAPES.get(own_type, DEFAULT_SHAPE)
    return {
        "label": _lines(node.label),
        "shape": shape,
        "style": "filled,rounded" if shape == DEFAULT_SHAPE else "filled",
        "fillcolor": LIGHT[f"{colour}-fill"],
        "color": LIGHT[f"{colour}-line"],
        "tooltip": node_tooltip(node.id, node, handler_type, _NO_STATE, None, ""),
        **({"peripheries": "2"} if node.goal_gate else {}),
        **_passed_on(node.attrs),
    }


def _edge(edge: Edge) -> dict[str, str]:
    """Label and, below it, condition: a printed page has no tooltips."""
    label = "\n".join(_lines(text) for text in (edge.label, edge.condition, bound_text(edge)) if text.strip())
    tooltip = edge_tooltip(edge, 0, "")
    return {
        **({"label": label, "labeltooltip": tooltip} if label else {}),
        "tooltip": tooltip,
        **({"style": "dashed"} if edge.loop_restart else {}),
        **_passed_on(edge.attrs),
    }


def _passed_on(attrs: Mapping[str, AttrValue]) -> dict[str, str]:
    texts = {name: str(value) for name, value in attrs.items() if name in PASSED_ON}
    return {name: text for name, text in texts.items() if _PLAIN.fullmatch(text) and "invis" not in text}


def _lines(text: AttrValue) -> str:
    return "\n".join(wrap(clean(str(text)[:_CHARS]), _WIDTH, _SIZE, max_lines=_LINES))


def _listed(attrs: Mapping[str, str]) -> str:
    return f"[{', '.join(f'{name}={_quoted(value)}' for name, value in attrs.items())}]"


def _quoted(text: str) -> str:
    """A text as a string of Graphviz, which shows its characters: backslash and ampersand begin no escape in it."""
    return f'"{clean(text).translate(_ESCAPES)}"'
