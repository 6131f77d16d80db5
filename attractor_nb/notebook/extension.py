"""What ``%load_ext attractor_nb`` puts into a shell, and how it is taken out again."""

from __future__ import annotations

import sys
from functools import partial
from threading import get_ident

# IPython's formatter registry and its matchers have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedFunctionDecorator=false
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from IPython.core.completer import SimpleCompletion, context_matcher

from attractor_nb.notebook.magics import LINE_MAGICS, AttractorMagics
from attractor_nb.notebook.past_views import PastViews
from attractor_nb.notebook.presenting import Presenter
from attractor_nb.notebook.surroundings import Names
from attractor_nb.runtime.handles.presenters import register_namer, register_presenter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from IPython.core.completer import CompletionContext, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

    from attractor_nb.runtime.handles.hosts import HostedTask

_RUN: Final = ("attractor_nb.pipeline.run", "Run")
_RESULT: Final = ("attractor_nb.runtime.handles.run_result", "RunResult")
_MAP: Final = ("attractor_nb.maps.map_result", "MapRun")
_MAP_RESULT: Final = ("attractor_nb.maps.map_result", "MapResult")
_INBOX: Final = ("attractor_nb.studio.history.waiting_gates", "Inbox")
_RUNS: Final = ("attractor_nb.pipeline.runs", "RunTable")
_TIMELINE: Final = ("attractor_nb.studio.timeline.run_timeline", "RunTimeline")
_REPLAY: Final = ("attractor_nb.studio.replay.replay_run", "Replay")
_COMPARISON: Final = ("attractor_nb.studio.compare.compare_runs", "Comparison")
_STAGE: Final = ("attractor_nb.studio.inspect.inspection", "StageInspection")
_PIPELINE: Final = ("attractor_nb.pipeline.pipeline", "Pipeline")
_EDITOR: Final = ("attractor_nb.studio.edit.editor", "Editor")
_FORM: Final = ("attractor_nb.studio.edit.run_form", "RunForm")
_loaded: WeakKeyDictionary[Any, Callable[[], None]] = WeakKeyDictionary()

_HOSTS: Final = "attractor_nb.runtime.handles.hosts"
_STOPPED: Final = "the cell that had started it was stopped; run.resume() continues it"


def load(shell: InteractiveShell) -> None:
    """Register everything with a shell, once."""
    if shell in _loaded:
        return
    names = Names(shell)
    forget_names = register_namer(names.name_of)
    presenter = Presenter(shell, names)
    remove_presenter = register_presenter(presenter.present, presenter.check_wait, presenter.can_click)
    forget_cells = stop_runs_with_their_cell(shell)
    shell.events.register("post_run_cell", presenter.offer_to_reopen)
    shell.register_magics(AttractorMagics(shell, presenter))
    completer = shell.Completer
    cell_matcher = cell_matcher_of(shell)
    completer.custom_matchers.append(cell_matcher)
    formatter: Any = shell.display_formatter
    if formatter is not None:
        # By name: the classes are imported when the first pipeline is.
        formatter.ipython_display_formatter.for_type_by_name(*_RUN, presenter.display_run)
        formatter.ipython_display_formatter.for_type_by_name(*_PIPELINE, presenter.display_pipeline)
        formatter.ipython_display_formatter.for_type_by_name(*_EDITOR, presenter.display_editor)
        formatter.ipython_display_formatter.for_type_by_name(*_FORM, presenter.display_form)
        formatter.ipython_display_formatter.for_type_by_name(*_RESULT, presenter.display_result)
        formatter.mimebundle_formatter.for_type_by_name(*_RESULT, presenter.bundle_result)
        formatter.ipython_display_formatter.for_type_by_name(*_MAP, presenter.display_map)
        formatter.ipython_display_formatter.for_type_by_name(*_INBOX, presenter.display_inbox)
        formatter.mimebundle_formatter.for_type_by_name(*_MAP_RESULT, presenter.bundle_map_result)
        past = PastViews(shell, presenter)
        formatter.ipython_display_formatter.for_type_by_name(*_RUNS, past.display_runs)
        formatter.ipython_display_formatter.for_type_by_name(*_TIMELINE, past.display_timeline)
        formatter.ipython_display_formatter.for_type_by_name(*_REPLAY, past.display_replay)
        formatter.ipython_display_formatter.for_type_by_name(*_COMPARISON, past.display_comparison)
        formatter.ipython_display_formatter.for_type_by_name(*_STAGE, past.display_stage)

    def take_out() -> None:
        remove_presenter()
        forget_names()
        forget_cells()
        shell.events.unregister("post_run_cell", presenter.offer_to_reopen)
        if cell_matcher in completer.custom_matchers:
            completer.custom_matchers.remove(cell_matcher)
        for name, kind in (("cell", "attractor"), *(("line", line) for line in LINE_MAGICS)):
            shell.magics_manager.magics[name].pop(kind, None)

    _loaded[shell] = take_out


def unload(shell: InteractiveShell) -> None:
    """Take everything out of a shell again."""
    take_out = _loaded.pop(shell, None)
    if take_out is not None:
        take_out()


def stop_runs_with_their_cell(shell: InteractiveShell) -> Callable[[], None]:
    """Have Stop end what its cell began, also a run that the cell does not await; returns the undoing.

    A run of an earlier cell goes on: that cell has ended, and another one was stopped.
    """
    earlier: dict[int, frozenset[HostedTask]] = {}  # by thread: a subshell has cells of its own

    def cell_begins(_: Any = None) -> None:
        earlier[get_ident()] = _live_jobs()

    def cell_ended(result: Any = None) -> None:
        started = _live_jobs() - earlier.pop(get_ident(), frozenset())
        if started and _was_stopped(result):
            from attractor_nb.runtime.handles.hosts import stop_jobs  # noqa: PLC0415 - %load_ext stays light

            stop_jobs(started, _STOPPED)

    shell.events.register("pre_run_cell", cell_begins)
    shell.events.register("post_run_cell", cell_ended)

    def take_out() -> None:
        shell.events.unregister("pre_run_cell", cell_begins)
        shell.events.unregister("post_run_cell", cell_ended)

    return take_out


def _live_jobs() -> frozenset[HostedTask]:
    """What runs now; nothing, as long as nobody has imported what runs it."""
    hosts: Any = sys.modules.get(_HOSTS)
    return hosts.live_jobs() if hosts else frozenset()


def _was_stopped(result: Any) -> bool:
    """Whether a cell ended by Stop; one that was cancelled as a task has no result at all."""
    import asyncio  # noqa: PLC0415 - %load_ext stays light; whoever has started a run has imported it

    return result is None or isinstance(result.error_in_exec, KeyboardInterrupt | asyncio.CancelledError)


def cell_matcher_of(shell: InteractiveShell) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """The matcher of the cells of a shell."""

    @context_matcher(identifier="attractor_nb.cell", priority=200)
    def cell_matcher(context: CompletionContext) -> SimpleMatcherResult:
        """Options, node ids, attributes and their values; Python names are left out of such cells."""
        if not context.full_text.startswith("%%"):
            return {"completions": []}
        from attractor_nb.notebook.completion import MAGIC, suggest  # noqa: PLC0415 - %load_ext stays light

        if not context.full_text.startswith(MAGIC):
            return {"completions": []}
        lines = context.full_text.split("\n")
        offset = sum(len(line) + 1 for line in lines[: context.cursor_line]) + context.cursor_position
        found = suggest(context.full_text, offset, _listed_models, partial(_registered, shell))
        return {
            "completions": [SimpleCompletion(text=item.text, type=item.kind) for item in found.items],
            "matched_fragment": found.fragment,
            "ordered": True,
            "suppress": context.cursor_line > 0 or bool(found.items),
        }

    return cell_matcher


def _registered(shell: InteractiveShell, pipeline: str, name: str) -> str:
    """The JSON Schema of the model that a cell knows by a name: that of its pipeline, else of the notebook."""
    from attractor_nb.handlers.named_models import schema_text  # noqa: PLC0415 - as above
    from attractor_nb.notebook.surroundings import models_in  # noqa: PLC0415 - as above

    names: dict[str, Any] = shell.user_ns
    held: Any = getattr(names.get(pipeline), "schemas", None)
    models: dict[str, Any] = {**models_in(names, [name]), **(held if isinstance(held, dict) else {})}
    model: Any = models.get(name)
    try:
        return schema_text(model) if model is not None else ""
    except Exception:  # noqa: BLE001 - whatever the model's own hooks raise; nothing is offered then
        return ""


def _listed_models(provider: str) -> Sequence[str]:
    from attractor_nb.backends.llm.prices import listed_models  # noqa: PLC0415 - a list of a megabyte

    return listed_models(provider)
