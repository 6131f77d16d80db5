"""``diff(a, b)`` of two runs: what they did differently, and on what graph."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.redacted import redacted_graph
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.runtime.past import RecordedVisit, read_history
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.runtime.stored_execution import resolve_run, texts_of, without_places
from attractor_nb.storage.files.user_files import write_file
from attractor_nb.studio.compare.comparison_page import (
    Compared,
    Side,
    TextChange,
    comparison_plain,
    comparison_svg,
    context_table,
    steps_table,
    text_changes,
    totals_table,
)
from attractor_nb.studio.compare.run_alignment import (
    ComparedVisit,
    Pair,
    United,
    ValueChange,
    align,
    changed_values,
    step_of,
    unite,
)
from attractor_nb.views.display import Displayed
from attractor_nb.views.state import so_far

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike
    from pathlib import Path

    from attractor_nb.model.graph import Edge, Graph
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.handles.run_result import RunResult

PLAIN_TEXT_CHARS: Final = 20_000
MAX_TEXTS: Final = 6
"""Texts whose differences are in the printed form; all are in ``texts()``."""
MAX_TEXT_LINES: Final = 8


class Comparison(Displayed):
    """Two runs beside each other. Its ``repr`` is a table; in a notebook it is both paths on one drawing.

    Attributes:
        a: The first run: how it ended and what it consumed.
        b: The second run.
        steps: Each step beside the one of the other run that it belongs to, with what differs in it.
        graph: What differs between the graphs, in words.
        context: What differs between the contexts in which they ended: ``key``, ``a``, ``b``.
    """

    def __init__(self, compared: Compared) -> None:
        self.compared = compared
        self.a: Side = compared.a
        self.b: Side = compared.b
        self.steps: tuple[Pair, ...] = compared.pairs
        self.graph: tuple[str, ...] = compared.graph_changes
        self.context: tuple[ValueChange, ...] = compared.context

    @property
    def is_same(self) -> bool:
        """True if nothing differs but times, ids and what it cost."""
        ends = self.a.status is self.b.status and self.a.reason == self.b.reason
        return ends and not self.graph and not self.context and self.first_difference is None

    @property
    def first_difference(self) -> Pair | None:
        """The first step at which they are not alike; None when all are."""
        return next((pair for pair in self.steps if pair.differences), None)

    def texts(self, node: str = "", *, max_lines: int = 40) -> list[TextChange]:
        """The prompts and responses that differ.

        Args:
            node: Only those of this node.
            max_lines: Lines of each.
        """
        return list(text_changes(self.compared, node, max_lines=max_lines))

    def to_svg(self) -> str:
        """Both paths on one drawing."""
        return comparison_svg(self.compared)

    def to_html(self) -> str:
        """Drawing, tables and texts as one piece of HTML without script."""
        from attractor_nb.studio.compare.comparison_page import comparison_html  # noqa: PLC0415 - for pages only

        return comparison_html(self.compared)

    def export_html(self, path: str | PathLike[str] = "comparison.html") -> Path:
        """Write both as one page, where a click on a stage shows both sides; no kernel, no network."""
        from attractor_nb.studio.compare.comparison_page import comparison_page  # noqa: PLC0415 - for pages only

        place = as_path(path, "the page")
        write_file(place, redacted(comparison_page(self.compared, text_chars=PLAIN_TEXT_CHARS)))
        return place

    def to_plain(self) -> dict[str, Any]:
        """Everything as JSON values, times too; texts of more than 20,000 characters are cut."""
        return {"is_same": self.is_same, **comparison_plain(self.compared, text_chars=PLAIN_TEXT_CHARS)}

    def details(self) -> str:
        """The tables with times, and all texts."""
        return self._text(has_times=True, max_texts=10**6)

    def _text(self, *, has_times: bool, max_texts: int) -> str:
        compared = self.compared
        first = self.first_difference
        where = "no step differs" if first is None else f"first difference at {first.node}"
        parts = [
            f"{self.a.headline}\n{self.b.headline}",
            "\n".join([*(f"graph: {words}" for words in self.graph), where]),
            str(steps_table(compared, has_times=has_times)),
            str(totals_table(compared, has_times=has_times)),
        ]
        if (context := context_table(compared)).rows:
            parts.append(str(context))
        changes = self.texts(max_lines=MAX_TEXT_LINES)
        parts += [str(change) for change in changes[:max_texts]]
        if len(changes) > max_texts:
            parts.append(f"{len(changes) - max_texts} more texts differ: diff(…).texts()")
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return self._text(has_times=False, max_texts=MAX_TEXTS)

    def _html(self) -> str:
        return self.to_html()


def run_diff(
    a: Execution | RunResult | str | PathLike[str], b: Execution | RunResult | str | PathLike[str]
) -> Comparison:
    """Compare two runs: path, outcomes, prompts, responses, context, cost, time.

    They may be of the same graph or of two; an active run is compared as far as it has come.

    Args:
        a: A run, its result, or its directory.
        b: The other.
    """
    runs = resolve_run(a, "the first run"), resolve_run(b, "the second run")
    graphs = redacted_graph(runs[0].graph), redacted_graph(runs[1].graph)
    united = unite(*graphs)
    paths = [tuple(_steps(run)) for run in runs]
    ends = [_context(run) for run in runs]
    return Comparison(
        Compared(
            _side("A", runs[0]),
            _side("B", runs[1]),
            align(*paths),
            united,
            tuple(graph_changes(*graphs, united)),
            changed_values(*ends),
        )
    )


def _side(name: str, run: Execution) -> Side:
    view = run.view
    label = redacted(run.pipeline.title)
    reason = without_places(run, read_history(run).directories[-1].journal, redacted(view.reason))
    return Side(
        name,
        run.id,
        label,
        view.status,
        reason,
        view.stages,
        view.duration,
        so_far(view),
        run.mark,
        view.marks.marks.is_simulated,
    )


def _steps(run: Execution) -> Iterator[ComparedVisit]:
    """The visits that count, over all directories of the run."""
    for known in read_history(run).visits:
        if not known.is_set_aside:
            texts = texts_of(run, known)
            if messages := _messages(known):
                texts["messages"] = without_places(run, known.journal, redacted(messages))
            step = step_of(known.record, texts)
            yield replace(step, reason=without_places(run, known.journal, step.reason))


def _messages(known: RecordedVisit) -> str:
    """The instructions that a visit received from users and supervisors, each once."""
    record, heard = known.record, known.journal.heard
    if not heard:
        return ""
    keys = ((record.branch, record.node_id, record.number, attempt.number) for attempt in record.attempts)
    found = {number: one.text for key in keys for number, one in heard.get(key, {}).items() if one.reach}
    return "\n\n".join(found[number] for number in sorted(found))


def _context(run: Execution) -> dict[str, Any]:
    """The context as it is now: recorded values, large ones as references that say their digest."""
    journal = read_history(run).directories[-1].journal
    last = journal.counted[-1].sequence if journal.counted else 0
    clean: dict[str, Any] = redacted_value(journal.values_at(last))
    return without_places(run, journal, clean)


def graph_changes(a: Graph, b: Graph, united: United) -> Iterator[str]:
    """The differences of two graphs. Positions in the source do not count."""
    for word, names in (("A", united.only_a), ("B", united.only_b)):
        yield from (f"node {name} only in {word}" for name in sorted(names))
    for name in a.nodes.keys() & b.nodes.keys():
        if changed := _changed_names(a.nodes[name].attrs, b.nodes[name].attrs):
            yield f"node {name}: {changed}"
    yield from _edge_changes(a, united)
    if changed := _changed_names(a.attrs, b.attrs):
        yield f"graph attributes: {changed}"


def _edge_changes(a: Graph, united: United) -> Iterator[str]:
    """The differences of the edges; a changed condition between the same nodes is one change."""
    in_a, in_b = set(united.edges_a), set(united.edges_b)
    alone: dict[tuple[str, str], tuple[list[Edge], list[Edge]]] = {}
    for index, edge in enumerate(united.graph.edges):
        if (index in in_a) != (index in in_b):
            alone.setdefault((edge.source, edge.target), ([], []))[index in in_b].append(edge)
    for (source, target), (only_a, only_b) in alone.items():
        for before, now in zip(only_a, only_b, strict=False):
            yield f"edge {source} -> {target}: {_guard(before)} in A, {_guard(now)} in B"
        paired = min(len(only_a), len(only_b))
        yield from (f"edge {source} -> {target}, {_guard(edge)}, only in A" for edge in only_a[paired:])
        yield from (f"edge {source} -> {target}, {_guard(edge)}, only in B" for edge in only_b[paired:])
    for edge, index in zip(a.edges, united.edges_a, strict=True):
        if index in in_b and (changed := _changed_names(edge.attrs, united.graph.edges[index].attrs)):
            yield f"edge {edge.source} -> {edge.target}: {changed}"


def _guard(edge: Edge) -> str:
    parts = [f'label "{edge.label}"'] if edge.label else []
    return ", ".join([*parts, f"when {edge.condition}"] if edge.condition else parts) or "unconditional"


def _changed_names(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    return ", ".join(sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name)))
