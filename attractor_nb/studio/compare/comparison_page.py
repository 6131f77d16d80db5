"""Two runs on one drawing, and beside each other as one piece of HTML that needs no script."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.languages.condition.parser import value_text
from attractor_nb.model.states import PAUSED, NodeStatus, RunStatus, run_state, shown_run_status, stage_word
from attractor_nb.redaction import redacted_value
from attractor_nb.views.drawings.drawing import MARK_PATHS, TIMES
from attractor_nb.views.drawings.picture import Mark, Overlay
from attractor_nb.views.drawings.svg import picture_html, render_svg
from attractor_nb.views.drawings.theme import Theme, drawing_css, drawing_rules, root_class
from attractor_nb.views.frontend import page
from attractor_nb.views.markup import element, joined, style_sheet
from attractor_nb.views.metrics import ELLIPSIS
from attractor_nb.views.output_styles import compare_css
from attractor_nb.views.state import EdgeState, NodeState
from attractor_nb.views.summary_line import duration_text, price_text, usage_words
from attractor_nb.views.table import Column, Table, one_line
from attractor_nb.views.texts.prose import prose_css, prose_of, shown_html
from attractor_nb.views.texts.prose_code import rows_node
from attractor_nb.views.texts.text_diff import Row, text_diff, word_diff

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.model.outcome import Usage
    from attractor_nb.studio.compare.run_alignment import ComparedVisit, Pair, United, ValueChange


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

MAX_TEXTS: Final = 40
MAX_LINES: Final = 80
TEXT_NAMES: Final = ("prompt", "response")
LEGEND: Final = (
    ("only-a", "A", "only A took it"),
    ("only-b", "B", "only B took it"),
    ("changed", "≠", "other outcome"),
    ("varied", "≈", "other texts, attempts or visits"),
    ("both", "", "the same in both"),
)
"""Legend of the strokes: class, sign, words."""


def legend_of(compared: Compared) -> list[tuple[str, str, str]]:
    """The part of the legend that the drawing needs."""
    nodes, edges = _node_marks(compared), _edge_marks(compared)[1]
    marks = [*(mark for mark, _ in nodes.values()), *edges.values()]
    drawn = {name for mark in marks for name in mark.css_classes}
    return [entry for entry in LEGEND if entry[0] in drawn]


def comparison_css() -> str:
    """The style sheet that the drawing brings along."""
    return drawing_css() + drawing_rules(_RULES)


def comparison_svg(compared: Compared, theme: Theme = "auto") -> str:
    """Both paths on one drawing."""
    found = _node_marks(compared)
    edges, edge_marks = _edge_marks(compared)
    return render_svg(
        compared.united.graph,
        states={node_id: state for node_id, (_, state) in found.items()},
        edges=edges,
        is_ended=True,
        theme=theme,
        overlay=Overlay({node_id: mark for node_id, (mark, _) in found.items()}, edge_marks, drawing_rules(_RULES)),
    )


def node_states_plain(compared: Compared) -> dict[str, Any]:
    """The state of each node as JSON, its sign in place of counts: for a drawing to be clicked."""
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
        mark = Mark((f"only-{name}",), name.upper(), f"only {name.upper()} visited it")
        return mark, NodeState(status(steps[-1]), visits=len(steps), note=f"only {name.upper()}")
    last_a, last_b = in_a[-1], in_b[-1]
    state = NodeState(status(last_b), visits=len(in_b))
    if last_a.status != last_b.status:
        note = f"A {status(last_a).letter}, B {status(last_b).letter}"
        tip = f"A {word(last_a)}, B {word(last_b)}"
        return Mark(("changed",), "≠", tip), state._replace(note=note)
    found = dict.fromkeys(name for pair in pairs for name in pair.differences)
    if not found:
        return Mark(("both",), tip="the same in both"), state
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
        return Mark(("both",), tip=tip) if a == b else Mark((), f"A{TIMES}{a} B{TIMES}{b}", tip)
    name, count = ("a", a) if a else ("b", b)
    words = f"{name.upper()}{TIMES}{count}" if count > 1 else name.upper()
    return Mark((f"only-{name}",), words, tip)


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")


def comparison_html(
    compared: Compared, *, theme: Theme = "auto", has_times: bool = False, is_inline: bool = False, place: str = ""
) -> str:
    """The drawing, the table, and behind it the texts that differ, folded.

    Args:
        compared: The two runs.
        theme: ``light``, ``dark``, or ``auto``.
        has_times: Whether times are told.
        is_inline: The drawing is SVG in the page, not an image; an exported page allows no images.
        place: Key of the view that stands in for the drawing and what is above it.
    """
    svg = comparison_svg(compared, theme)
    words = f"A took: {compared.a.headline}\nB took: {compared.b.headline}"
    drawing = Markup(svg if is_inline else picture_html(svg, words))  # noqa: S704 - by our own writer
    heads = [element("div", {"class": "headline"}, side.headline) for side in (compared.a, compared.b)]
    parts = [
        style_sheet(compare_css() + prose_css()),
        element("div", {"data-attractor-place": place or None}, *heads, legend_html(compared), drawing),
        _table(whole_table(compared, has_times=has_times), theme),
        *(element("div", {"class": "note"}, f"graph: {words}") for words in compared.graph_changes),
        _texts_html(compared),
    ]
    return str(element("div", {"class": f"attractor-compare {root_class()} {theme}"}, *parts))


def comparison_values(compared: Compared, *, text_chars: int) -> dict[str, Any]:
    """The values for the front-end's ``showCompare``, without secrets."""
    plain = comparison_plain(compared, text_chars=text_chars)
    for pair, step in zip(compared.pairs, plain["steps"], strict=True):
        changes = pair_changes(pair, max_lines=MAX_LINES)
        step["changes"] = [{"name": change.name, "shown": [rows_node(change.rows)]} for change in changes]
        for side in filter(None, (step["a"], step["b"])):
            side["shown"] = {name: prose_of(side.get(name)) for name in TEXT_NAMES}
    values = {
        "svg": comparison_svg(compared),
        "marks": {status.value: path for status, path in MARK_PATHS.items()},
        "states": node_states_plain(compared),
        "comparison": plain,
        "legend": [{"name": name, "sign": sign, "words": words} for name, sign, words in legend_of(compared)],
    }
    return redacted_value(values)


def comparison_page(compared: Compared, *, text_chars: int) -> str:
    """A separate page: the drawing with both sides of each stage that is clicked, and the static form."""
    values = comparison_values(compared, text_chars=text_chars)
    static = Markup(comparison_html(compared, has_times=True, is_inline=True))  # noqa: S704 - by our own builders
    line = "\n".join(f"{side.name}: {side.pipeline}, run {side.run_id}" for side in (compared.a, compared.b))
    return page("Two runs beside each other", line, "compare", "showCompare", values, static)


def legend_html(compared: Compared) -> Markup:
    """The legend of the strokes."""
    entries = [
        element(
            "div",  # a separate line where a page takes our style sheet out
            {"class": f"entry {name}"},
            element("span", {"class": "stroke", "aria-hidden": "true"}, sign),
            f" {words}",
        )
        for name, sign, words in legend_of(compared)
    ]
    return element("div", {"class": "legend"}, joined(entries, " "))


def _table(table: Table, theme: Theme) -> Markup:
    return Markup(table.to_html(theme))  # noqa: S704 - by our own builder


def _texts_html(compared: Compared) -> Markup:
    count = text_change_count(compared)
    blocks = [
        element(
            "details",
            None,
            element("summary", None, f"{change.name} of {change.node}, visit {change.visit}"),
            shown_html([rows_node(change.rows)]),
        )
        for change in islice(text_changes(compared), MAX_TEXTS)
    ]
    if count > MAX_TEXTS:
        blocks.append(element("div", {"class": "note"}, f"{count - MAX_TEXTS} more texts differ: diff.texts()"))
    return joined(blocks)


# Two runs side by side: on one drawing, as tables, as text.
#
# The first run is A, the second B, everywhere: in words, by stroke and by colour. Times differ from run to run
# and are included only with ``has_times``.

NOTHING: Final = "\N{EN DASH}"
VALUE_CHARS: Final = 60
_IN_HEADLINE: Final = ("outcome", "stages", "mark", "reason")
MAX_ROWS: Final = 60
"""Steps in a table; of longer paths only those that differ, and of these the first."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs."""

    name: str  #: ``A`` or ``B``.
    run_id: str
    pipeline: str  #: Name of its pipeline.
    status: RunStatus  #: Its status.
    reason: str  #: Reason of the failure or stop, or empty.
    stages: int  #: Stages that it committed.
    seconds: float  #: Its running time.
    usage: Usage  #: Its usage.
    mark: str = ""  #: Mark of its result, or empty (ruling 48).
    is_simulated: bool = False  #: At least a part of it is made up.

    @property
    def shown_status(self) -> str:
        """The status that people read."""
        return shown_run_status(self.status, self.reason)

    @property
    def headline(self) -> str:
        """The status of the run in one line."""
        mark = f", {self.mark}" if self.mark else ""
        text = f"{self.name} {run_state(self.shown_status)}, {self.stages} stages{mark}"
        return f"{text}: {one_line(self.reason)}" if self.reason and self.shown_status != PAUSED else text


@dataclass(frozen=True, slots=True)
class Compared:
    """Everything that is shown of two runs."""

    a: Side  #: The first run.
    b: Side  #: The second run.
    pairs: tuple[Pair, ...]  #: Their steps, each beside the one of the other run that it belongs to.
    united: United  #: Their graphs as one.
    graph_changes: tuple[str, ...]  #: Differences between the graphs, in words.
    context: tuple[ValueChange, ...]  #: Differences between the contexts in which they ended.


# -- tables ------------------------------------------------------------------------------------------------


def steps_table(compared: Compared, *, has_times: bool = False) -> Table:
    """The steps of both runs beside each other."""
    pairs = compared.pairs
    is_long = len(pairs) > MAX_ROWS
    shown = [pair for pair in pairs if pair.differences][:MAX_ROWS] if is_long else list(pairs)
    notes = [f"{len(pairs) - len(shown)} of {len(pairs)} steps are not shown"] if is_long else []
    return Table(
        "Steps of both runs",
        (Column("", "state"), Column("stage", "place"), Column("A"), Column("B"), Column("differs", "state")),
        [
            (
                _sign(pair),
                _place(pair),
                _step_words(pair.a, has_times=has_times),
                _step_words(pair.b, has_times=has_times),
                ", ".join(pair.differences),
            )
            for pair in shown
        ],
        states=[_row_state(pair) for pair in shown],
        notes=notes,
    )


def whole_table(compared: Compared, *, has_times: bool = False) -> Table:
    """Steps, usage and context in one table; outcomes and numbers of stages are in the lines above it."""
    steps, context = steps_table(compared, has_times=has_times), context_table(compared)
    totals = [row for row in totals_table(compared, has_times=has_times).rows if row[0] not in _IN_HEADLINE]
    groups = [
        *((("", "whole run", "", "", ""), "group") for _ in totals[:1]),
        *((("", *row, ""), "") for row in totals),
        *((("", "context at the end", "", "", ""), "group") for _ in context.rows[:1]),
        *((("", *row, ""), "") for row in context.rows),
    ]
    return Table(
        "Both runs",
        steps.columns,
        [*steps.rows, *(row for row, _ in groups)],
        states=[*steps.states, *(state for _, state in groups)],
        notes=[*steps.notes, *context.notes],
    )


def _sign(pair: Pair) -> str:
    if pair.b is None:
        return "A"
    if pair.a is None:
        return "B"
    if pair.a.status != pair.b.status:
        return "≠"
    return "≈" if pair.differences else ""


def _row_state(pair: Pair) -> str:
    return {"": "", "≈": "warn", "≠": "error"}.get(_sign(pair), "warn")


def _place(pair: Pair) -> str:
    numbers = [step.number for step in (pair.a, pair.b) if step]
    visit = f" {TIMES}{'/'.join(map(str, dict.fromkeys(numbers)))}" if max(numbers) > 1 else ""
    return f"{pair.branch}: {pair.node}{visit}" if pair.branch else f"{pair.node}{visit}"


def _step_words(step: ComparedVisit | None, *, has_times: bool) -> str:
    if step is None:
        return NOTHING
    parts = [f"{status(step).letter} {word(step)}"]
    if step.attempts > 1:
        parts.append(f"{step.attempts} attempts")
    parts += usage_words(step.usage)
    if has_times:
        parts.append(duration_text(step.seconds))
    return ", ".join(parts)


def totals_table(compared: Compared, *, has_times: bool = False) -> Table:
    """The outcome and the usage of both runs."""
    a, b = compared.a, compared.b
    rows: list[tuple[str, str, str]] = [
        ("outcome", run_state(a.shown_status), run_state(b.shown_status)),
        ("stages", str(a.stages), str(b.stages)),
    ]
    if a.mark or b.mark:
        rows.append(("mark", a.mark or NOTHING, b.mark or NOTHING))
    if a.reason or b.reason:
        rows.append(("reason", _short(a.reason), _short(b.reason)))
    if a.usage.total_tokens or b.usage.total_tokens:
        rows.append(("tokens", f"{a.usage.total_tokens:,}", f"{b.usage.total_tokens:,}"))
    if price_text(a.usage) or price_text(b.usage):
        rows.append(("cost", price_text(a.usage) or NOTHING, price_text(b.usage) or NOTHING))
    if has_times:
        rows.append(("time", duration_text(a.seconds), duration_text(b.seconds)))
    return Table("Both runs", (Column("", "place"), Column("A"), Column("B")), rows)


def context_table(compared: Compared) -> Table:
    """The differences of the final contexts; responses of stages are among the texts."""
    nodes = compared.united.graph.nodes
    shown_elsewhere = {"last_response", "last_stage", *(f"{node_id}.response" for node_id in nodes)}
    rows = [(c.key, _value(c.a), _value(c.b)) for c in compared.context if c.key not in shown_elsewhere]
    left = len(rows) - MAX_ROWS
    notes = [f"{left} more keys differ"] if left > 0 else []
    columns = (Column("context", "place"), Column("A"), Column("B"))
    return Table("Context at the end", columns, rows[:MAX_ROWS], notes=notes)


def _value(value: Any) -> str:
    return NOTHING if value is None else _short(value_text(value))


def _short(text: str) -> str:
    line = one_line(text[: 4 * VALUE_CHARS])
    return line if len(line) <= VALUE_CHARS else line[: VALUE_CHARS - 1] + ELLIPSIS


# -- texts and plain values ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextChange:
    """A text of a step that both runs took, and that is not the same."""

    node: str
    visit: int  #: Number of its visit in the first run.
    name: str  #: ``prompt`` or ``response``.
    lines: tuple[str, ...]  #: The differing lines (``text_diff``).
    rows: tuple[Row, ...] = ()  #: The same with the words that differ (``word_diff``).

    def __str__(self) -> str:
        return "\n".join([f"{self.name} of {self.node}, visit {self.visit}", *self.lines])


def text_changes(compared: Compared, node: str = "", *, max_lines: int = 40) -> Iterator[TextChange]:
    """The texts that differ, of one node or of all, in the order of the steps."""
    for pair in compared.pairs:
        if node in {"", pair.node}:
            yield from pair_changes(pair, max_lines=max_lines)


def text_change_count(compared: Compared) -> int:
    """The number of texts that differ."""
    return sum(1 for pair in compared.pairs for _ in _differing(pair))


def pair_changes(pair: Pair, *, max_lines: int) -> Iterator[TextChange]:
    """The texts of one step that differ."""
    for number, name, before, after in _differing(pair):
        lines = tuple(text_diff(before, after, max_lines=max_lines))
        yield TextChange(pair.node, number, name, lines, tuple(word_diff(before, after, max_lines=max_lines)))


def _differing(pair: Pair) -> Iterator[tuple[int, str, str, str]]:
    """The texts of one step that are not the same: the first run's visit, the name, and both texts."""
    if pair.a is None or pair.b is None:
        return
    for name in dict.fromkeys((*pair.a.texts, *pair.b.texts)):
        before, after = pair.a.texts.get(name, ""), pair.b.texts.get(name, "")
        if before != after:
            yield pair.a.number, name, before, after


def comparison_plain(compared: Compared, *, text_chars: int) -> dict[str, Any]:
    """Everything as JSON values; texts are cut to ``text_chars`` characters."""
    return {
        "a": _side_plain(compared.a),
        "b": _side_plain(compared.b),
        "graph": list(compared.graph_changes),
        "steps": [
            {
                "node": pair.node,
                **({"branch": pair.branch} if pair.branch else {}),
                "differs": list(pair.differences),
                "a": _step_plain(pair.a, text_chars),
                "b": _step_plain(pair.b, text_chars),
            }
            for pair in compared.pairs
        ],
        "context": [{"key": change.key, "a": change.a, "b": change.b} for change in compared.context],
    }


def _side_plain(side: Side) -> dict[str, Any]:
    return {
        "run": side.run_id,
        "pipeline": side.pipeline,
        "status": side.status.value,
        "shown_status": side.shown_status,
        "is_simulated": side.is_simulated,
        "mark": side.mark,
        **({"reason": side.reason} if side.reason else {}),
        "stages": side.stages,
        "seconds": round(side.seconds, 3),
        "usage": side.usage.to_plain(),
    }


def _step_plain(step: ComparedVisit | None, text_chars: int) -> dict[str, Any] | None:
    if step is None:
        return None
    texts = {name: _cut(text, text_chars) for name, text in step.texts.items()}
    plain: Mapping[str, Any] = {
        "visit": step.number,
        "status": step.status or None,
        "reason": step.reason,
        "label": step.label,
        "attempts": step.attempts,
        "seconds": round(step.seconds, 3),
        "usage": step.usage.to_plain(),
        "next": step.next_node,
        **texts,
    }
    return {key: value for key, value in plain.items() if value not in ("", {})}


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[:chars]}\n… {len(text) - chars:,} more characters"


def status(step: ComparedVisit) -> NodeStatus:
    """The status of a visit, as a drawing shows it."""
    return NodeStatus.of(step.status)


def word(step: ComparedVisit) -> str:
    """The status of a visit, in a word."""
    return stage_word(step.status or "cut off")
