"""Two runs on one drawing: what each did with a node or an edge, as marks and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.studio.compare.comparison_view import Compared, status, word
from attractor_nb.views.drawings.marks import TIMES
from attractor_nb.views.drawings.overlay import Dress, Mark
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.drawings.theme import drawing_rules
from attractor_nb.views.state import EdgeState, NodeState

if TYPE_CHECKING:
    from attractor_nb.studio.compare.run_alignment import ComparedVisit, Pair, United
    from attractor_nb.views.drawings.theme import Theme


_RULES: Final = """
& .only-a .outline,& .only-a .line{stroke:var(--running-line);stroke-dasharray:7 4}
& .only-b .outline,& .only-b .line{stroke:var(--retrying-line);stroke-dasharray:2 3}
& .only-a .line,& .only-b .line{stroke-width:2.25}
& .node.only-a.only-a.only-a .outline,& .node.only-b.only-b.only-b .outline{stroke-width:2.5}
& .only-a .head{fill:var(--running-line);stroke:var(--running-line)}
& .only-b .head{fill:var(--retrying-line);stroke:var(--retrying-line)}
& .only-a text.counts,& .only-a text.passes{fill:var(--running-line)}
& .only-b text.counts,& .only-b text.passes{fill:var(--retrying-line)}
& .node.changed.changed.changed .outline{stroke:var(--cached-line);stroke-width:3.5}
& .changed text.counts,& .varied text.counts{fill:var(--cached-line);font-size:13px}
& .node.varied.varied.varied .outline{stroke-width:2.5}
"""


def comparison_svg(compared: Compared, theme: Theme = "auto") -> str:
    """Both ways on one drawing."""
    found = _node_marks(compared)
    edges, edge_marks = _edge_marks(compared)
    return render_svg(
        compared.united.graph,
        states={node_id: state for node_id, (_, state) in found.items()},
        edges=edges,
        is_ended=True,
        theme=theme,
        dress=Dress(
            {node_id: mark for node_id, (mark, _) in found.items()}, edge_marks, drawing_rules(_RULES)
        ),
    )


def node_states_plain(compared: Compared) -> dict[str, Any]:
    """The state of each node as JSON, its sign where counts stand: for a drawing to be clicked."""
    return {
        node_id: {**state.to_plain(), "progress": mark.words}
        for node_id, (mark, state) in _node_marks(compared).items()
    }


def _node_marks(compared: Compared) -> dict[str, tuple[Mark, NodeState]]:
    of_node: dict[str, list[Pair]] = {}
    for pair in compared.pairs:
        of_node.setdefault(pair.node, []).append(pair)
    united = compared.united
    return {node_id: _node_mark(node_id, of_node.get(node_id, []), united) for node_id in united.graph.nodes}


def _node_mark(node_id: str, pairs: list[Pair], united: United) -> tuple[Mark, NodeState]:
    in_a = [pair.a for pair in pairs if pair.a]
    in_b = [pair.b for pair in pairs if pair.b]
    if not pairs:
        for name, only in (("a", united.only_a), ("b", united.only_b)):
            if node_id in only:
                tip = f"only in the graph of {name.upper()}"
                return Mark((f"only-{name}",), name.upper(), tip), NodeState()
        return Mark(tip="in neither run"), NodeState()
    if not in_a or not in_b:
        name, steps = ("a", in_a) if in_a else ("b", in_b)
        mark = Mark((f"only-{name}",), name.upper(), f"only {name.upper()} came here")
        return mark, NodeState(status(steps[-1]), visits=len(steps), note=f"only {name.upper()}")
    last_a, last_b = in_a[-1], in_b[-1]
    state = NodeState(status(last_b), visits=len(in_b))
    if last_a.status != last_b.status:
        note = f"A {_short_word(last_a)}, B {_short_word(last_b)}"
        tip = f"A {word(last_a)}, B {word(last_b)}"
        return Mark(("changed",), "≠", tip), state._replace(note=note)
    found = dict.fromkeys(name for pair in pairs for name in pair.differences)
    if not found:
        return Mark(tip="the same in both"), state
    if len(in_a) != len(in_b):
        found = {f"{len(in_a)} and {len(in_b)} visits": None, **found}
    return Mark(("varied",), "≈", f"differs: {', '.join(found)}"), state


def _edge_marks(compared: Compared) -> tuple[dict[int, EdgeState], dict[int, Mark]]:
    passes: dict[int, list[int]] = {}
    for pair in compared.pairs:
        for side, step in enumerate((pair.a, pair.b)):
            places = (compared.united.edges_a, compared.united.edges_b)[side]
            if step is not None and step.edge is not None and step.edge < len(places):
                passes.setdefault(places[step.edge], [0, 0])[side] += 1
    marks = {index: _edge_mark(*counts) for index, counts in passes.items()}
    return {index: EdgeState(max(counts)) for index, counts in passes.items()}, marks


def _edge_mark(a: int, b: int) -> Mark:
    tip = f"A took it {_times(a)}, B {_times(b)}"
    if a and b:
        return Mark((), "" if a == b else f"A{TIMES}{a} B{TIMES}{b}", tip)
    name, count = ("a", a) if a else ("b", b)
    words = f"{name.upper()}{TIMES}{count}" if count > 1 else name.upper()
    return Mark((f"only-{name}",), words, tip)


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")


def _short_word(step: ComparedVisit) -> str:
    """A status for the small line of a node, where every letter counts."""
    return {"success": "ok", "partial_success": "partly", "skipped": "skip", "": "open"}.get(
        step.status, step.status
    )
