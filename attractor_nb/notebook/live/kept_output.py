"""The saved output of a run's cell: the picture, the state, and the call that continues the run.

The live view replaces it while there is a kernel (``views/web/place.js``). A notebook that was saved, is not
trusted, or has lost its kernel shows it.
"""

from __future__ import annotations

# IPython's display has no types.
# pyright: reportUnknownVariableType=false
from typing import TYPE_CHECKING, Any, Final

from IPython.display import display
from markupsafe import Markup

from attractor_nb.model.states import RunStatus
from attractor_nb.model.vocabulary.value_forms import label_text
from attractor_nb.redaction import redacted
from attractor_nb.runtime.execution import Execution
from attractor_nb.runtime.handles.presenters import name_of
from attractor_nb.storage.stored_run import has_event_log
from attractor_nb.studio.history.waiting_gates import load_call, shown_place
from attractor_nb.studio.inspect.failure import failure_lines
from attractor_nb.studio.inspect.inspect_run import plain_failure
from attractor_nb.views.drawings.svg import SVG_TYPE, picture_bundle, render_svg
from attractor_nb.views.markup import element
from attractor_nb.views.summary_line import failed_stage, run_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from attractor_nb.model.events import InterviewStarted
    from attractor_nb.model.graph import Graph
    from attractor_nb.notebook.view_actions import Output, ShownRun
    from attractor_nb.studio.inspect.final_answer import FinalAnswer
    from attractor_nb.views.state import RunView

WIDGET_TYPE: Final = "application/vnd.jupyter.widget-view+json"
_TEXT_STYLE: Final = "white-space:pre-wrap;overflow-wrap:anywhere;margin:6px 0"


def failed_lines(run: ShownRun, view: RunView) -> list[str]:
    """The failure of the failed stage of a run in lines; empty for a run without one."""
    path = failed_stage(view, run.graph)
    failure = plain_failure(run, path) if path and isinstance(run, Execution) else None
    return list(failure_lines(failure)) if failure else []


def show_kept(run: ShownRun, place: str, answer: FinalAnswer | None, others: Sequence[str]) -> Output:
    """Display the state of a run, in the current cell.

    That comes before its live view: the first one is imported, and a browser takes longer for it, too.

    Args:
        place: The key of its live view.
        answer: As in ``run_bundle``.
        others: As there.
    """
    bundle = run_bundle(
        run.view,
        run.graph,
        run.logs_root,
        place=place,
        others=others,
        answer=answer,
        failure=failed_lines(run, run.view),
        name=name_of(run),
    )
    handle = display(bundle, raw=True, display_id=True)
    assert handle is not None, "a display id was asked for"
    return handle


def run_bundle(
    view: RunView,
    graph: Graph,
    logs_root: Path,
    *,
    place: str,
    questions: Iterable[InterviewStarted] = (),
    others: Sequence[str] = (),
    answer: FinalAnswer | None = None,
    failure: Sequence[str] = (),
    name: str = "",
) -> dict[str, str]:
    """The static output of a run.

    Args:
        view: Its current view.
        logs_root: Its run directory.
        place: The key of its live view.
        questions: The questions that wait.
        others: What is said of other runs of the pipeline that wait.
        answer: What was said last, of a run that has ended.
        failure: The failure of its failed stage, in lines (``failed_lines``).
        name: What the user calls it.
    """
    is_ended = view.status.is_ended
    svg = render_svg(graph, states=view.nodes, edges=view.edges, children=view.children, is_ended=is_ended)
    asked = [] if is_ended else [_question_words(each) for each in questions]
    summary = run_summary(view, graph, name=name, has_times=is_ended)
    lines = [summary, *asked]
    if not is_ended:
        lines += others
    if failure:
        lines += ["", *failure, ""]
    call = load_call(logs_root) if has_event_log(logs_root) else ""
    words = "\n".join([*map(redacted, lines), _next_step(call, view.status)])
    if answer:
        words += f"\n\n{answer.node} said:\n{answer.text}"
    picture = picture_bundle(svg, redacted(lines[0]))
    text = element("pre", {"style": _TEXT_STYLE}, words)
    directory = redacted(shown_place(logs_root)) if call else None
    html = element(
        "div",
        {"data-attractor-place": place, "data-attractor-run": directory},
        Markup(picture["text/html"]),  # noqa: S704 - by our own writer
        text,
    )
    return {"text/html": str(html), SVG_TYPE: picture[SVG_TYPE], "text/plain": words}


def widget_bundle(widget: Any) -> dict[str, Any]:
    """The part of an output that shows a widget in it, as Jupyter's own display of a widget has it."""
    return {WIDGET_TYPE: {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}}


def _question_words(asked: InterviewStarted) -> str:
    choices = ", ".join(f"{key} = {label_text(label)}" for key, label in asked.options)
    words = f"gate `{asked.stage}` waits for an answer: {asked.question}"
    return f"{words} ({choices})" if choices else words


def _next_step(call: str, status: RunStatus) -> str:
    """The next step for a reader of the saved output; a live run is saved as such, and may have continued since."""
    if not call:
        return "The run is not stored: without its kernel it cannot be opened again."
    if status is RunStatus.INTERRUPTED:
        return _lines("To open it again and resume it:", call, "run.resume()")
    if status.is_ended:
        return _lines("To open it again:", call)
    return _lines("It was active here. To resume it without this kernel:", call, "run.resume()")


def _lines(words: str, call: str, *more: str) -> str:
    """Words, and calls of which each line can be copied into a cell of a fresh kernel."""
    return "\n".join([words, "from attractor_nb import Run", f"run = {call}", *more])
