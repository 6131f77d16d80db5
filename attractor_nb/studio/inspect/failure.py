"""The failure of a stage on one screen: the reason, the user's own line, the last output, what a resume would do.

The values are made from an inspection. Every front end shows them: the inspector of the live view, the saved output of
a cell, ``run.inspect``, the server's page, and the command line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.branch import parts_of
from attractor_nb.model.child import CHILD_SEPARATOR
from attractor_nb.redaction import redacted
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from attractor_nb.views.state import RunView

TAIL_LINES: Final = 8
"""Lines of an output that are shown."""
TAIL_CHARS: Final = 1500
_HEAD: Final = re.compile(r"(?P<file>.*):(?P<line>\d+), in (?P<function>.*)")
_LINE: Final = re.compile(r"(?P<mark>[> ]) (?P<number>\d+)  ?(?P<text>.*)")
_OUTPUT, _ERRORS, _RESPONSE = "Output", "Errors", "Response"


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of the user's source."""

    number: int
    text: str
    is_failed: bool = False  #: The line that raised the exception.


@dataclass(frozen=True, slots=True)
class OutputTail:
    """The last lines of an output."""

    name: str  #: ``Output``, ``Errors`` or ``Response``.
    text: str
    is_cut: bool  #: Lines before them are left out.


@dataclass(frozen=True, slots=True)
class StageFailure:
    """The failure of a stage."""

    sentence: str  #: ``load failed: KeyError: 'items'``.
    place: str = ""  #: Place of the user's line: ``load.py:4, in parse``; empty without one.
    code: tuple[CodeLine, ...] = ()  #: That line between the lines around it.
    outputs: tuple[OutputTail, ...] = ()  #: The last lines of what it wrote, or of its response.
    resume: str = ""  #: What a resume of the run would do, in words; empty while the run is active.
    rewind_to: str = ""  #: Node where a rewind runs the stage again; empty where a resume does.

    def to_plain(self, *, with_place: bool = True) -> dict[str, Any]:
        """JSON values without secrets; without ``with_place`` no folder of this machine."""
        place = self.place if with_place else re.split(r"[/\\\\]", self.place)[-1]
        return {
            "sentence": redacted(self.sentence),
            "place": redacted(place),
            "code": [[line.number, redacted(line.text), line.is_failed] for line in self.code],
            "outputs": [[one.name, redacted(one.text), one.is_cut] for one in self.outputs],
            "resume": redacted(self.resume),
            "rewind_to": self.rewind_to,
        }


def failure_lines(plain: Mapping[str, Any]) -> Iterator[str]:
    """The plain form of a failure as text."""
    yield plain["sentence"]
    if plain["place"]:
        yield f"  {plain['place']}"
    width = max((len(str(number)) for number, _, _ in plain["code"]), default=0)
    for number, text, is_failed in plain["code"]:
        yield f"  {'>' if is_failed else ' '} {number:>{width}}  {text}".rstrip()
    for name, text, is_cut in plain["outputs"]:
        yield f"  {name.lower()}{', last lines' if is_cut else ''}:"
        yield from (f"    {line}" for line in text.splitlines())
    if plain["resume"]:
        yield plain["resume"]


def read_user_line(text: str) -> tuple[str, tuple[CodeLine, ...]]:
    r"""The place and the lines of ``failed_line.txt``; of a file that is not of this form, nothing.

    >>> read_user_line("/home/ada/load.py:4, in parse\n  3  x = 1\n> 4  y = z\n")[1][1]
    CodeLine(number=4, text='y = z', is_failed=True)
    """
    head, *rest = text.splitlines() or [""]
    if _HEAD.fullmatch(head) is None:
        return "", ()
    found = [_LINE.fullmatch(line) for line in rest]
    return head, tuple(CodeLine(int(one["number"]), one["text"], one["mark"] == ">") for one in found if one)


def output_tails(stdout: str | None, stderr: str | None, response: str | None) -> tuple[OutputTail, ...]:
    """The last lines of what a stage wrote; of its response, if it wrote nothing."""
    written = [(_OUTPUT, stdout), (_ERRORS, stderr)] if stdout or stderr else [(_RESPONSE, response)]
    found: list[OutputTail] = []
    for name, text in written:
        whole = (text or "").rstrip()
        tail = "\n".join(whole[-TAIL_CHARS:].splitlines()[-TAIL_LINES:])
        if tail.strip():
            found.append(OutputTail(name, tail, len(tail) < len(whole)))
    return tuple(found)


def failure_of(
    node: str,
    reason: str,
    *,
    branch: str = "",
    user_line: str = "",
    outputs: Sequence[str | None] = (None, None, None),
    view: RunView | None = None,
) -> StageFailure:
    """The failure of a stage.

    Args:
        node: Its node, with the path through child runs.
        reason: Reason of the failure.
        branch: Path of its branch, or empty.
        user_line: Text of ``failed_line.txt``, or empty.
        outputs: Its standard output, its errors, its response.
        view: The run, if that has ended.
    """
    place, code = read_user_line(user_line)
    resume, rewind_to = ("", "") if view is None else resume_words(view, back_to(node, branch))
    sentence = f"{node} failed: {one_line(reason)}" if reason else f"{node} failed"
    return StageFailure(sentence, place, code, output_tails(*outputs), resume, rewind_to)


def back_to(node: str, branch: str) -> str:
    """The node where a run goes back for a stage: the stage, or what has its branch or child run."""
    top = node.partition(CHILD_SEPARATOR)[0]
    return parts_of(branch)[0] if branch and top == node else top


def resume_words(view: RunView, node: str) -> tuple[str, str]:
    """The effect of a resume after a failure, in words, and the node of the rewind that is needed; or empty texts."""
    if view.bound:
        return f"A resume with a higher {view.bound} runs the next stage.", ""
    if view.is_unmeasured or view.next_node:
        return f"A resume runs {view.next_node or node} again and continues; completed stages keep their results.", ""
    if view.status.value != "fail":
        return "", ""
    words = f"A resume would run nothing: every stage is committed. A rewind to {node} runs it again; "
    return f"{words}the stages before it keep their results.", node
