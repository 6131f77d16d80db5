"""Two runs beside each other: on one drawing, as tables, as text.

The first run is A, the second B, everywhere: in words, by stroke and by colour. Times differ from run to run
and are only in what is asked for by ``has_times``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.languages.condition.evaluate import value_text
from attractor_nb.model.states import NodeStatus
from attractor_nb.views.columns import one_line
from attractor_nb.views.drawings.marks import TIMES
from attractor_nb.views.metrics import ELLIPSIS
from attractor_nb.views.summary_line import duration_text, price_text, usage_words
from attractor_nb.views.table import Column, Table
from attractor_nb.views.texts.text_diff import text_diff, word_diff

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.model.outcome import Usage
    from attractor_nb.model.states import RunStatus
    from attractor_nb.studio.compare.run_alignment import ComparedVisit, Pair, United, ValueChange
    from attractor_nb.views.texts.text_diff import Row


NOTHING: Final = "\N{EN DASH}"
VALUE_CHARS: Final = 60
MAX_ROWS: Final = 60
"""Steps in a table; of longer paths only those that differ, and of these the first."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs."""

    name: str  #: ``A`` or ``B``.
    run_id: str
    pipeline: str  #: Name of its pipeline.
    status: RunStatus  #: How it ended, or that it goes on.
    reason: str  #: Why it failed or stopped, or empty.
    stages: int  #: Stages that it committed.
    seconds: float  #: Its running time.
    usage: Usage  #: What it consumed.
    mark: str = ""  #: What must be said of its result, or empty (ruling 48).
    is_simulated: bool = False  #: At least a part of it is made up.

    @property
    def headline(self) -> str:
        """How it stands, in a line."""
        mark = f", {self.mark}" if self.mark else ""
        text = f"{self.name} {self.status.letter} {self.status}, {self.stages} stages{mark}"
        return f"{text}: {one_line(self.reason)}" if self.reason else text


@dataclass(frozen=True, slots=True)
class Compared:
    """Everything that is shown of two runs."""

    a: Side  #: The first run.
    b: Side  #: The second run.
    pairs: tuple[Pair, ...]  #: Their steps, each beside the one of the other run that it belongs to.
    united: United  #: Their graphs as one.
    graph_changes: tuple[str, ...]  #: What differs between the graphs, in words.
    context: tuple[ValueChange, ...]  #: What differs between the contexts in which they ended.


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
    """What both came to and consumed."""
    a, b = compared.a, compared.b
    rows: list[tuple[str, str, str]] = [
        ("outcome", f"{a.status.letter} {a.status}", f"{b.status.letter} {b.status}"),
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
    """Where the contexts differ in which they ended; what the stages said is among the texts."""
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
    lines: tuple[str, ...]  #: What differs (``text_diff``).
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
    """Everything as JSON values; texts are cut to so many characters."""
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
    """How a visit ended, as a drawing has it."""
    return NodeStatus.of(step.status)


def word(step: ComparedVisit) -> str:
    """How a visit ended, in a word."""
    return step.status.replace("_", " ") or "not ended"
