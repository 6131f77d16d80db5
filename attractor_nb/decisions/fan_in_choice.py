"""The choice of the best branch of a fan-out, and the updates of it that reach the run (spec 4.9; ruling 22).

A candidate is a branch that was walked to its end; only one that succeeded can win, and one whose stages were all
skipped has not (ruling 17a). The answer of a model is
read strictly: anything but exactly one candidate is no answer.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from attractor_nb.model.branch import IDLE_KEY
from attractor_nb.model.calls.call_content import fenced
from attractor_nb.model.outcome import StageStatus, read_status
from attractor_nb.model.texts import excerpt, fair_shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


PREFIX: Final = "parallel.fan_in."
BEST_ID_KEY: Final = f"{PREFIX}best_id"
BEST_OUTCOME_KEY: Final = f"{PREFIX}best_outcome"
MERGE_BEST, MERGE_ALL, MERGE_NONE = "best", "all", "none"
MERGES: Final = (MERGE_NONE, MERGE_BEST, MERGE_ALL)
NO_RESULTS: Final = "No parallel results to evaluate"
"""The reason in the spec's words."""
MAX_OUTPUTS_CHARACTERS: Final = 64_000
"""Of the outputs of all candidates together that a model is shown; each gets its fair share."""
MAX_NOTES_CHARACTERS: Final = 500
_RANK: Final = {StageStatus.SUCCESS: 0, StageStatus.PARTIAL_SUCCESS: 1, StageStatus.RETRY: 2, StageStatus.FAIL: 3}
_ENGINE_KEYS: Final = frozenset({"outcome", "preferred_label", "current_node", "last_stage"})
_ENGINE_PREFIXES: Final = ("internal.", "graph.", "parallel.")
_BEST_KEYS: Final = ("best_id", "best", "id")
_LEAD: Final = re.compile(r"(?:the\s+)?best(?:\s+(?:candidate|branch|id|one))*\s*(?::|=|\bis\b)\s*", re.IGNORECASE)
_MARKS: Final = " \t*`\"'#>-.:()[]“”‘’"  # noqa: RUF001 - the quotation marks that models write


class Candidate(msgspec.Struct, frozen=True):
    """A branch that was walked to its end."""

    id: str  #: Its id.
    status: StageStatus  #: Final status.
    score: float = 0.0  #: Its own estimate; higher is better.
    notes: str = ""  #: Notes of its last stage.
    failure_reason: str = ""  #: Reason of the failure, or empty.
    context_updates: Mapping[str, Any] = {}  #: Context changes of its stages.
    is_idle: bool = False  #: Each of its stages was skipped.

    @property
    def ending(self) -> str:
        """Its final status in a word."""
        return StageStatus.SKIPPED.value if self.is_idle else self.status.value


class UnreadableResults(ValueError):
    """``parallel.results`` is not what a fan-out writes."""


def candidates_of(results: object) -> tuple[Candidate, ...]:
    """The candidates among ``parallel.results``, in edge order; cancelled branches are none.

    Args:
        results: The value of the key; None or an empty list when no fan-out went before.
    """
    if not results:
        return ()
    if not isinstance(results, list):
        raise UnreadableResults(f"parallel.results is a {type(results).__name__}, not a list")
    entries = cast("list[object]", results)
    read = [_candidate(number, entry) for number, entry in enumerate(entries)]
    name, count = Counter(each.id for each in read).most_common(1)[0]
    if count > 1:
        raise UnreadableResults(f"parallel.results has {name!r} {count} times")
    return tuple(each for each in read if not each.status.is_skipped)


def _candidate(number: int, entry: object) -> Candidate:
    plain = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    name, status = plain.get("id"), read_status(str(plain.get("status", "")))
    if not isinstance(name, str) or not name or status is None:
        raise UnreadableResults(f"entry {number} of parallel.results has no id and status")
    score, updates = plain.get("score"), plain.get("context_updates")
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    return Candidate(
        name,
        status,
        float(cast("float", score)) if is_number else 0.0,
        str(plain.get("notes") or ""),
        str(plain.get("failure_reason") or ""),
        cast("dict[str, Any]", updates) if isinstance(updates, dict) else {},
        plain.get(IDLE_KEY) is True and status.is_success,
    )


def eligible(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Those that can win: a failed branch is never the best of them (spec 4.9), nor a skipped one (ruling 17a)."""
    return tuple(each for each in candidates if each.status.is_success and not each.is_idle)


def ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    """By status, then by score, then by id: the heuristic of spec 4.9.

    >>> b = Candidate("b", StageStatus.SUCCESS, 0.5)
    >>> [each.id for each in ranked([Candidate("c", StageStatus.FAIL, 9.0), b])]
    ['b', 'c']
    """
    return sorted(candidates, key=lambda each: (_RANK[each.status], -each.score, each.id))


class CandidateChoice(msgspec.Struct, frozen=True):
    """The candidate that a model's answer names."""

    best_id: str = ""  #: The candidate that it names; empty when it names none, or several.
    problem: str = ""  #: Reason why it is not an answer, or empty.
    notes: str = ""  #: Its reason, if it gave one in a JSON answer.


def read_choice(text: str, values: Iterable[object], ids: Sequence[str]) -> CandidateChoice:
    r"""Read which candidate a model named: by JSON objects, else by a line that is nothing but its id.

    >>> read_choice("Both are fine.\n\n**B**", [], ["a", "b"]).best_id
    'b'
    >>> read_choice("a\nb", [], ["a", "b"]).problem
    'it names a and b; exactly one was asked for'
    """
    objects = [cast("dict[str, Any]", value) for value in values if isinstance(value, dict)]
    named = [found for each in objects for key in _BEST_KEYS if isinstance(found := each.get(key), str)]
    if not named:
        named = text.splitlines()
    found = list(dict.fromkeys(each for name in named if (each := _meant(name, ids))))
    if len(found) == 1:
        notes = [note for each in objects if isinstance(note := each.get("notes"), str)]
        return CandidateChoice(found[0], notes=notes[-1] if notes else "")
    if found:
        return CandidateChoice(problem=f"it names {' and '.join(found[:5])}; exactly one was asked for")
    return CandidateChoice(
        problem="it is empty" if not text.strip() else "it names none of the candidates on a line of its own"
    )


def _meant(line: str, ids: Sequence[str]) -> str:
    """The candidate that a line is, marks and the words that lead up to it aside; or empty."""
    inner = line.strip(_MARKS)
    bare = _LEAD.sub("", inner, count=1)
    for text in (line.strip(), inner, inner.strip("_"), bare.strip(_MARKS), bare.strip(_MARKS + "_")):
        if text in ids:
            return text
        alike = [each for each in ids if each.casefold() == text.casefold()]
        if len(alike) == 1:
            return alike[0]
    return ""


def output_of(candidate: Candidate, limit: int = MAX_OUTPUTS_CHARACTERS) -> str:
    """The output of a candidate: its last response and its last command's output, each an excerpt.

    >>> output_of(Candidate("a", StageStatus.SUCCESS, context_updates={"tool.output": "12 passed"}))
    '12 passed'
    """
    updates = candidate.context_updates
    last = updates.get("last_response")
    whole = [
        value
        for key, value in updates.items()
        if key.endswith(".response") and isinstance(value, str) and isinstance(last, str) and value.startswith(last)
    ]
    texts = [whole[-1] if whole else last, updates.get("tool.output")]
    found = [text.strip() for text in texts if isinstance(text, str) and text.strip()]
    return "\n\n".join(excerpt(text, limit // len(found)) for text in found)


def ranking_request(task: str, candidates: Sequence[Candidate], failed: Sequence[Candidate] = ()) -> str:
    """The task of a model that ranks: what the node says, the candidates, and how to answer.

    Args:
        task: The node's prompt.
        candidates: Those that it can choose, each with status, notes and output.
        failed: Those that failed; named, so that the model knows what is missing.
    """
    outputs = [output_of(each, MAX_OUTPUTS_CHARACTERS) for each in candidates]
    shares = fair_shares(MAX_OUTPUTS_CHARACTERS, [len(output) for output in outputs])
    sections = [task, "## Candidates"]
    for each, share in zip(candidates, shares, strict=True):
        lines = [f"### {each.id}", "", f"Status: {each.status.value}"]
        if each.score:
            lines.append(f"Score: {each.score:g}")
        if each.notes:
            lines.append(_told("Notes", excerpt(each.notes, MAX_NOTES_CHARACTERS)))
        if output := output_of(each, max(200, share)):
            lines += ["", "Output:", "", fenced(output)]
        sections.append("\n".join(lines))
    if failed:
        reasons = (_told(f"- {each.id}", excerpt(each.failure_reason, 200)) for each in failed[:20])
        sections.append("\n".join(["These branches failed and cannot be chosen:", "", *reasons]))
    names = ", ".join(each.id for each in candidates)
    sections.append(
        "## Response format\n\nAnswer with the id of the best candidate alone, on one line. "
        f"It is one of: {names}.\n"
        'A JSON object will do, too: {"best_id": "…", "notes": "why, in one sentence"}'
    )
    return "\n\n".join(sections)


def _told(label: str, text: str) -> str:
    """A text of a branch behind its label: in a fence, unless it is one line."""
    return f"{label}: {text}" if len(text.splitlines()) <= 1 else f"{label}:\n\n{fenced(text)}"


def own_updates(candidate: Candidate) -> dict[str, Any]:
    """The updates of a branch, without the keys that belong to the engine and to fan-outs."""
    return {
        key: value
        for key, value in candidate.context_updates.items()
        if key not in _ENGINE_KEYS and not key.startswith(_ENGINE_PREFIXES)
    }


def without_winner(present: Iterable[str]) -> dict[str, Any]:
    """The updates that remove the winner of an earlier fan-in from the keys that are in the context now."""
    return {key: None for key in present if key.startswith(PREFIX)}


def winner_updates(best: Candidate, present: Iterable[str] = ()) -> dict[str, Any]:
    """The keys ``parallel.fan_in.*`` of a winner; those of an earlier fan-in are replaced, never mixed.

    A key ``best_id`` or ``best_outcome`` that the winner itself changed is not copied: these two belong to
    the fan-in. It is still in ``parallel.results``.

    Args:
        best: The winner.
        present: The keys that are in the context now.
    """
    updates = without_winner(present)
    updates.update((f"{PREFIX}{key}", value) for key, value in own_updates(best).items())
    return {**updates, BEST_ID_KEY: best.id, BEST_OUTCOME_KEY: best.status.value}


def merged(merge: str, candidates: Sequence[Candidate], best: Candidate) -> tuple[dict[str, Any], list[str]]:
    """The updates that reach the run's own context, and the keys that branches had set to different values.

    Args:
        merge: ``none``, ``best`` (the winner's), or ``all`` (of all branches that succeeded, in edge
            order: a later one wins).
        candidates: Those that succeeded, in edge order.
        best: The winner.

    Returns:
        The updates, and one line for each conflict.
    """
    if merge == MERGE_NONE:
        return {}, []
    updates: dict[str, Any] = {}
    source: dict[str, str] = {}
    conflicts: list[str] = []
    for each in candidates if merge == MERGE_ALL else [best]:
        for key, value in own_updates(each).items():
            if key in updates and updates[key] != value:
                conflicts.append(f"{key}: the value of {each.id} replaces that of {source[key]}")
            updates[key], source[key] = value, each.id
    return updates, conflicts
