"""A watched run as a block of text: how it stands, a line for each stage, the questions that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from attractor_nb.cli.command_words import reason_in_options
from attractor_nb.cli.terminal import fitted
from attractor_nb.cli.tones import Tone
from attractor_nb.model.diagnostic import Severity
from attractor_nb.model.states import PAUSED, NodeStatus
from attractor_nb.model.vocabulary.labels import label_text, normalize_label
from attractor_nb.redaction import redacted
from attractor_nb.views.columns import cells, one_line
from attractor_nb.views.drawings.marks import AGAIN, SEVERITY_LETTERS, TIMES
from attractor_nb.views.spending_fold import so_far
from attractor_nb.views.state import NodeState, first_words
from attractor_nb.views.summary_line import duration_text, usage_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.cli.watching.run_watched import WatchedRun
    from attractor_nb.model.events import InterviewStarted

FEWEST_STAGES: Final = 3
"""So many are shown in the smallest window."""
REASON_CHARS: Final = 60
FEWEST_WORDS: Final = 16
"""Where the words would have less room, what was used is left out."""
_GAP: Final = "   "
_INDENT: Final = "    "
_WORDS, _TIME, _USED = 2, 3, 4
"""Places in a row."""
_PENDING: Final = NodeState()


def drawn_run(
    run: WatchedRun, how: Callable[[InterviewStarted], str], *, now: float, columns: int, lines: int = 0
) -> Text:
    """The block.

    Args:
        how: How a question is answered, in words.
        now: Seconds since 1970.
        columns: Width to fill, what is longer is cut; 0 for as much as it takes.
        lines: Height to fill, 0 for as much as it takes: of many stages those that matter now are shown.
    """
    questions = [line for gate in tuple(run.gates.values()) for line in question_lines(gate, how(gate), columns)]
    room = max(FEWEST_STAGES, lines - len(questions) - bool(run.trouble) - 3) if lines else len(run.node_ids)
    shown = _chosen(run, room)
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(run_headline(run, now, columns), style=Tone.of(run.view.status).value)
    for name, line in zip(shown, _lines([_row(run, name, now) for name in shown], columns), strict=True):
        text.append("\n")
        _append_line(text, _cut(line, columns), Tone.of(run.view.nodes.get(name, _PENDING).status))
    if hidden := len(run.node_ids) - len(shown):
        text.append(f"\n  + {hidden} more", style=Tone.QUIET.value)
    if run.trouble:
        text.append("\n" + _cut(f"{SEVERITY_LETTERS[Severity.WARNING]} {run.trouble}", columns), style=Tone.BAD.value)
    for line in questions:
        text.append("\n" + line, style=Tone.WAITING.value)
    return text


def run_headline(run: WatchedRun, now: float, columns: int = 0) -> str:
    """``● running   Review   4 stages   12.4 s   1,240 tokens   $0.0031``, or as much of it as fits."""
    view = run.view
    stages = f"{view.stages} stage{'s' * (view.stages != 1)}"
    time_text = duration_text(run.elapsed(now))
    parts = [
        f"{view.status.letter} {PAUSED if view.is_paused else view.status}",
        one_line(redacted(run.title)),
        stages,
        time_text,
    ]
    if run.mark:
        parts.append(one_line(redacted(run.mark)))
    parts += usage_words(so_far(view))
    if view.reason:
        parts.append(first_words(one_line(redacted(reason_in_options(view.reason))), REASON_CHARS))
    parts = [part for part in parts if part]
    while columns and len(parts) > 1 and cells(_GAP.join(parts)) > columns:
        parts.pop()
    return _cut(_GAP.join(parts), columns)


def question_lines(gate: InterviewStarted, how: str, columns: int = 0) -> list[str]:
    """A question that waits, its choices, and how it is answered; in a narrow place on lines of their own."""
    choices = redacted("   ".join(f"{key}: {one_line(label_text(label))}" for key, label in gate.options))
    words = one_line(gate.question) or gate.stage
    first = redacted(f"{NodeStatus.WAITING.letter} {one_line(gate.stage)}   {words}")
    lines = [f"{first}   {choices}".rstrip()]
    if columns and choices and cells(lines[0]) > columns:
        lines = [_cut(first, columns), _cut(f"{_INDENT}{choices}", columns)]
    return [*lines, *_folded(how, columns)]


def _folded(how: str, columns: int) -> list[str]:
    """A command on as many lines as it takes, so that it can be copied whole."""
    if not how:
        return []
    if not columns or len(_INDENT + how) <= columns or "'" in how:
        return [_INDENT + how]
    lines = [_INDENT]
    for word in how.split(" "):
        if lines[-1].strip() and len(lines[-1]) + len(word) + 3 > columns:
            lines[-1] += " \\"
            lines.append(2 * _INDENT)
        lines[-1] += word if not lines[-1].strip() else f" {word}"
    return lines


def _cut(line: str, columns: int) -> str:
    return fitted(line, columns) if columns else line


def _lines(rows: list[list[str]], columns: int) -> list[str]:
    """Stages in columns. The words give way to what stands behind them: time, and what was used."""
    if not rows:
        return []
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    room = columns - sum(widths) + widths[_WORDS] - 2 * len(widths)
    if columns and room < FEWEST_WORDS:
        widths[_USED] = 0
        room = columns - sum(widths) + widths[_WORDS] - 2 * len(widths)
    if columns:
        widths[_WORDS] = max(0, min(widths[_WORDS], room))
    return [_line(row, widths) for row in rows]


def _line(row: list[str], widths: list[int]) -> str:
    state, name, words, time_text, used = (
        fitted(part, width) if width else "" for part, width in zip(row, widths, strict=True)
    )
    state, name, words = (
        part + " " * (width - cells(part)) for part, width in zip((state, name, words), widths, strict=False)
    )
    parts = [state, name, *([words] if widths[_WORDS] else []), time_text.rjust(widths[_TIME]), used]
    return "  ".join(parts).rstrip()


def _append_line(text: Text, line: str, tone: Tone) -> None:
    """A line whose mark and state have their colour; one that fails is coloured whole."""
    end = len(line) if tone in {Tone.BAD, Tone.QUIET} else (line.find("  ") + 1 or len(line))
    text.append(line[:end], style=tone.value)
    text.append(line[end:])


def _chosen(run: WatchedRun, room: int) -> list[str]:
    """The nodes that are shown, as the graph has them: those that go on, the latest, those to come."""
    names = run.node_ids
    if len(names) <= room:
        return names
    states = {name: run.view.nodes.get(name, _PENDING) for name in names}

    def rank(name: str) -> tuple[bool, bool, float]:
        state = states[name]
        return not state.status.is_active, state.status is NodeStatus.PENDING, -state.since

    kept = set(sorted(names, key=rank)[:room])
    return [name for name in names if name in kept]


def _row(run: WatchedRun, name: str, now: float) -> list[str]:
    state = run.view.nodes.get(name, _PENDING)
    seconds = run.seconds_of(name, now)
    return [
        f"{state.status.letter} {state.status.replace('_', ' ')}",
        one_line(name),
        _words(run, name, state),
        "" if seconds is None else duration_text(seconds),
        _used(run, name),
    ]


def _words(run: WatchedRun, name: str, state: NodeState) -> str:
    """Why it failed, or what it is called and how far it is; how often it was tried."""
    node = run.graph.nodes.get(name)
    label = node.label if node and normalize_label(node.label) != normalize_label(name) else ""
    progress = state.progress if state.status.is_active else ""
    parts = [first_words(one_line(reason_in_options(state.reason) or label), REASON_CHARS), progress, state.note]
    if state.attempt > 1:
        parts.append(f"{TIMES}{state.attempt}")
    if state.visits > 1:
        parts.append(f"{AGAIN}{state.visits}")
    return redacted(" ".join(part for part in parts if part))


def _used(run: WatchedRun, name: str) -> str:
    usage = run.view.usage_by_node.get(name)
    for (_, node), part in tuple(run.view.under_way.items()):
        if node == name:
            now = part.usage + part.child
            usage = now if usage is None else usage + now
    return ", ".join(usage_words(usage)) if usage else ""
