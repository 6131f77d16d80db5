"""The IPython extension: loads ``%load_ext attractor_nb`` into a shell, and unloads it."""

# IPython's formatter registry and its matchers have no types.
# IPython's magic decorators have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedFunctionDecorator=false
# pyright: reportUntypedClassDecorator=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

import inspect
import json
import shlex
import sys
from functools import partial
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from IPython.core.completer import SimpleCompletion, context_matcher
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments

from attractor_nb.errors import OptionError
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.option_meanings import OF_A_RUN
from attractor_nb.notebook.environment import Names, models_in
from attractor_nb.notebook.past_views import PastViews
from attractor_nb.notebook.presenting import Presenter
from attractor_nb.runtime.handles.presenters import (
    register_interviewer,
    register_namer,
    register_presenter,
    register_review,
    register_widget,
)
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from IPython.core.completer import CompletionContext, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

    from attractor_nb.runtime.handles.handle import HostedTask


_RUN: Final = ("attractor_nb.pipeline.run", "Run")
_RESULT: Final = ("attractor_nb.runtime.handles.run_result", "RunResult")
_MAP: Final = ("attractor_nb.maps.map_launch", "MapRun")
_MAP_RESULT: Final = ("attractor_nb.maps.map_launch", "MapResult")
_EVALUATION: Final = ("attractor_nb.evaluation.evaluation", "Evaluation")
_INBOX: Final = ("attractor_nb.studio.history.waiting_gates", "Inbox")
_RUNS: Final = ("attractor_nb.pipeline.runs", "RunTable")
_TIMELINE: Final = ("attractor_nb.studio.timeline.run_timeline", "RunTimeline")
_REPLAY: Final = ("attractor_nb.studio.replay_frames", "Replay")
_COMPARISON: Final = ("attractor_nb.studio.compare.compare_runs", "Comparison")
_STAGE: Final = ("attractor_nb.studio.inspect.inspection", "StageInspection")
_EVALUATION_RUN: Final = ("attractor_nb.evaluation.evaluation_run", "EvaluationRun")
_PIPELINE: Final = ("attractor_nb.pipeline.pipeline", "Pipeline")
_EDITOR: Final = ("attractor_nb.studio.edit.editor", "Editor")
_FORM: Final = ("attractor_nb.studio.edit.editor_requests", "RunForm")
_loaded: WeakKeyDictionary[Any, Callable[[], None]] = WeakKeyDictionary()

_HOSTS: Final = "attractor_nb.runtime.handles.handle"
_STOPPED: Final = "the cell that had started it was stopped; run.resume() resumes it"


def load(shell: InteractiveShell) -> None:
    """Register everything with a shell, once."""
    if shell in _loaded:
        return
    names = Names(shell)
    forget_names = register_namer(names.name_of)
    presenter = Presenter(shell, names)
    remove_presenter = register_presenter(presenter.present, presenter.check_wait, presenter.can_click)
    remove_widget = register_widget(_run_box)
    remove_review = register_review(_review_box)
    remove_interviewer = register_interviewer("widgets", _widget_interviewer)
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
        formatter.ipython_display_formatter.for_type_by_name(*_MAP_RESULT, presenter.display_map_result)
        formatter.ipython_display_formatter.for_type_by_name(*_EVALUATION, presenter.display_rows)
        past = PastViews(shell, presenter)
        formatter.ipython_display_formatter.for_type_by_name(*_RUNS, past.display_runs)
        formatter.ipython_display_formatter.for_type_by_name(*_TIMELINE, past.display_timeline)
        formatter.ipython_display_formatter.for_type_by_name(*_REPLAY, past.display_replay)
        formatter.ipython_display_formatter.for_type_by_name(*_COMPARISON, past.display_comparison)
        formatter.ipython_display_formatter.for_type_by_name(*_STAGE, past.display_stage)
        formatter.ipython_display_formatter.for_type_by_name(*_EVALUATION_RUN, presenter.display_evaluation_run)

    def take_out() -> None:
        remove_presenter()
        remove_widget()
        remove_review()
        remove_interviewer()
        forget_names()
        forget_cells()
        shell.events.unregister("post_run_cell", presenter.offer_to_reopen)
        if cell_matcher in completer.custom_matchers:
            completer.custom_matchers.remove(cell_matcher)
        for name, kind in (("cell", "attractor"), *(("line", line) for line in LINE_MAGICS)):
            shell.magics_manager.magics[name].pop(kind, None)

    _loaded[shell] = take_out


def _widget_interviewer() -> Any:
    from attractor_nb.notebook.widget_interviewer import WidgetInterviewer  # noqa: PLC0415 - imports widgets

    return WidgetInterviewer()


def _run_box(run: Any) -> Any:
    from attractor_nb.notebook.run_box import RunBox  # noqa: PLC0415 - as above

    return RunBox(run)


def _review_box(evaluation: Any, path: Path) -> Any:
    from attractor_nb.notebook.review_box import ReviewBox  # noqa: PLC0415 - as above

    return ReviewBox(evaluation, path)


def unload(shell: InteractiveShell) -> None:
    """Take everything out of a shell again."""
    take_out = _loaded.pop(shell, None)
    if take_out is not None:
        take_out()


def stop_runs_with_their_cell(shell: InteractiveShell) -> Callable[[], None]:
    """Have Stop end what its cell began, also a run that the cell does not await; returns the undoing.

    A run of an earlier cell continues: that cell has ended, and another one was stopped.
    """
    earlier: dict[int, frozenset[HostedTask]] = {}  # by thread: a subshell has cells of its own

    def cell_begins(_: Any = None) -> None:
        earlier[get_ident()] = _live_jobs()

    def cell_ended(result: Any = None) -> None:
        started = _live_jobs() - earlier.pop(get_ident(), frozenset())
        if started and _was_stopped(result):
            from attractor_nb.runtime.handles.handle import stop_jobs  # noqa: PLC0415 - %load_ext stays light

            stop_jobs(started, _STOPPED)

    shell.events.register("pre_run_cell", cell_begins)
    shell.events.register("post_run_cell", cell_ended)

    def take_out() -> None:
        shell.events.unregister("pre_run_cell", cell_begins)
        shell.events.unregister("post_run_cell", cell_ended)

    return take_out


def _live_jobs() -> frozenset[HostedTask]:
    """The live jobs; none as long as the module that hosts them is not imported."""
    hosts: Any = sys.modules.get(_HOSTS)
    return hosts.live_jobs() if hosts else frozenset()


def _was_stopped(result: Any) -> bool:
    """True if a cell ended by Stop; one that was cancelled as a task has no result at all."""
    import asyncio  # noqa: PLC0415 - %load_ext stays light; starting a run imports it

    return result is None or isinstance(result.error_in_exec, KeyboardInterrupt | asyncio.CancelledError)


def cell_matcher_of(shell: InteractiveShell) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """The matcher of the cells of a shell."""

    @context_matcher(identifier="attractor_nb.cell", priority=200)
    def cell_matcher(context: CompletionContext) -> SimpleMatcherResult:
        """Options, node ids, attributes and their values; Python names are left out of such cells."""
        if not context.full_text.startswith("%%"):
            return {"completions": []}
        from attractor_nb.notebook.cell_completion import MAGIC, suggest  # noqa: PLC0415 - %load_ext stays light

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
    from attractor_nb.handlers.named_models import stored_schema  # noqa: PLC0415 - as above

    names: dict[str, Any] = shell.user_ns
    held: Any = getattr(names.get(pipeline), "schemas", None)
    models: dict[str, Any] = {**models_in(names, [name]), **(held if isinstance(held, dict) else {})}
    schema = stored_schema(models, name)
    return "" if schema is None else json.dumps(schema)


def _listed_models(provider: str) -> Sequence[str]:
    from attractor_nb.backends.llm.metered_requests import listed_models  # noqa: PLC0415 - a list of a megabyte

    return listed_models(provider)


# ``%%attractor`` and its line twins.
#
# The body of the cell is DOT as written: ``$goal`` and braces are pipeline syntax, so nothing is interpolated. Its
# lines are counted from the magic's line as line 1, so that a message's ``7:24`` is the editor's cursor position.

CELL_NAME: Final = "<cell>"
BODY_LINE: Final = 2
RUN_SUFFIX: Final = "_run"
LINE_MAGICS: Final = ("attractor_run", "attractor_lint", "attractor_load", "attractor_runs", "attractor_watch")
_RUN_ARGUMENTS: Final = (
    argument("--param", action="append", default=[], metavar="K=V", help=OF_A_RUN["params"]),
    argument("--backend", default=None, help=OF_A_RUN["backend"]),
    argument("--auto-approve", action="store_true", help="answer every gate with its first choice"),
    argument("--gate", default="", metavar="WHO", help="who answers gates: widgets, auto, pause, deferred, refuse"),
    argument("--live", default="", metavar="MODE", help="live view: auto, on or off"),
)


def _read(magic: Any, line: str) -> Any:
    """The arguments of a magic; a wrong one raises IPython's UsageError, which shows as one line.

    Split here and not by IPython, which does not join ``--param who="the team"``.
    """
    words = shlex.shlex(line, posix=True, punctuation_chars=False)
    words.whitespace_split, words.escape, words.commenters = True, "", ""
    try:
        return magic.parser.parse_args(list(words))
    except ValueError:
        raise OptionError("a quotation mark on the magic's line is not closed", hint='as in --param who="me"') from None


def _run_arguments(function: Any) -> Any:
    for decorate in reversed(_RUN_ARGUMENTS):
        function = decorate(function)
    return function


@magics_class
class AttractorMagics(Magics):
    """The magics of one shell."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell, presenter: Presenter) -> None:
        super().__init__(shell)
        self._presenter = presenter

    @no_var_expand
    @cell_magic
    @magic_arguments()
    @argument("name", nargs="?", default="", help="variable that gets the pipeline")
    @argument("--run", action="store_true", help="run it; NAME_run is the handle")
    @argument("--quiet", action="store_true", help="show only errors")
    @argument("--write", default="", metavar="FILE", help="also write the text to a .dot file")
    @_run_arguments
    def attractor(self, line: str, cell: str) -> Any:
        """Make a pipeline of the cell's DOT text: read, lint, draw, and with --run run it."""
        options = _read(self.attractor, line)
        _check_name(options.name)
        params = read_params(options.param)
        if options.write:
            from attractor_nb.runtime.prepare.run_options import as_path  # noqa: PLC0415 - loads all that a run is
            from attractor_nb.storage.files.user_files import write_file  # noqa: PLC0415 - %load_ext stays light

            write_file(as_path(options.write, "--write"), cell)
        pipeline = self._make(SourceText(cell, CELL_NAME, first_line=BODY_LINE), options, params)
        self._register_functions(pipeline)
        self._register_models(pipeline)
        name = options.name or pipeline.name
        if name.isidentifier():
            self.shell.user_ns[name] = pipeline
        if options.run and not _has_errors(pipeline):
            run = self._run(pipeline, options, params)
            if name.isidentifier():
                self.shell.user_ns[name + RUN_SUFFIX] = run
            return None if options.quiet else run
        if options.quiet and not _has_errors(pipeline):
            return None
        return pipeline

    @line_magic
    @magic_arguments()
    @argument("name", help="variable that holds a pipeline")
    @argument("--trust", action="store_true", help="run the commands of a loaded pipeline, this once")
    @_run_arguments
    def attractor_run(self, line: str) -> Any:
        """Run a pipeline and return the run."""
        options = _read(self.attractor_run, line)
        return self._run(self._pipeline(options.name), options, read_params(options.param))

    @line_magic
    @magic_arguments()
    @argument("name", help="variable that holds a pipeline")
    def attractor_lint(self, line: str) -> Any:
        """The findings of a pipeline."""
        options = _read(self.attractor_lint, line)
        return self._pipeline(options.name).lint()

    @line_magic
    @magic_arguments()
    @argument("file", help="a .dot file")
    @argument("name", nargs="?", default="", help="variable that gets the pipeline")
    @_run_arguments
    def attractor_load(self, line: str) -> Any:
        """Make a pipeline of a file."""
        options = _read(self.attractor_load, line)
        _check_name(options.name)
        pipeline = self._make(Path(options.file), options, read_params(options.param))
        name = options.name or pipeline.name
        if name.isidentifier():
            self.shell.user_ns[name] = pipeline
        return pipeline

    @line_magic
    @magic_arguments()
    @argument("directory", nargs="?", default="", help="where runs are kept")
    def attractor_runs(self, line: str) -> Any:
        """The runs that are kept, newest first."""
        from attractor_nb.pipeline.runs import runs  # noqa: PLC0415 - %load_ext stays light

        options = _read(self.attractor_runs, line)
        return runs(options.directory) if options.directory else runs()

    @line_magic
    @magic_arguments()
    @argument("directory", nargs="?", default="", help="the session's directory; the active one here")
    @argument("--wait", action="store_true", help="return when the session has ended")
    def attractor_watch(self, line: str) -> None:
        """Show the agents of a session, until all have ended."""
        from attractor_nb.notebook.live.live_tables import watch_session  # noqa: PLC0415 - as above

        options = _read(self.attractor_watch, line)
        watch_session(options.directory or None, wait=options.wait)

    def _make(self, source: SourceText | Path, options: Any, params: dict[str, Any]) -> Any:
        from attractor_nb.pipeline.pipeline import Pipeline  # noqa: PLC0415 - %load_ext stays light

        interviewer = _interviewer(options) or None
        return Pipeline(source, backend=options.backend, interviewer=interviewer, params=params or None)

    def _register_functions(self, pipeline: Any) -> None:
        """Register the functions of the notebook that the cell names (``function=count``); not those of its imports."""
        for node in pipeline.graph.nodes.values():
            name = node.get("function", str, "")
            found = cast("object", self.shell.user_ns.get(name))
            if inspect.isfunction(found) and found.__module__ == "__main__":
                pipeline.register_function(name, found)

    def _register_models(self, pipeline: Any) -> None:
        """Register the pydantic models of the notebook that the cell names (``response_schema=Review``)."""
        graph = pipeline.graph
        named = [node.get(name, str, "") for node in graph.nodes.values() for name in ("response_schema", "human.form")]
        names: dict[str, Any] = self.shell.user_ns
        for name, model in models_in(names, {*named, graph.get("inputs_schema", str, "")}).items():
            pipeline.register_schema(name, model)

    def _run(self, pipeline: Any, options: Any, params: dict[str, Any]) -> Any:
        given: dict[str, Any] = {
            "params": params,
            "backend": options.backend,
            "interviewer": _interviewer(options),
            "trust": getattr(options, "trust", False),
        }
        before, self._presenter.live_mode = self._presenter.live_mode, options.live
        try:
            return pipeline.run(**{name: value for name, value in given.items() if value})
        finally:
            self._presenter.live_mode = before

    def _pipeline(self, name: str) -> Any:
        """The pipeline that a variable holds."""
        names: dict[str, Any] = self.shell.user_ns
        found = names.get(name)
        if hasattr(found, "lint") and hasattr(found, "run"):
            return found
        known = [key for key, value in names.items() if _is_public_pipeline(key, value)]
        what = f"`{name}` is not a pipeline" if found is not None else f"there is no pipeline `{name}`"
        raise OptionError(what + did_you_mean(name, known), hint=_known(known))


def _interviewer(options: Any) -> str:
    """The interviewer that a magic names; empty for none."""
    if options.auto_approve and options.gate not in {"", "auto"}:
        raise OptionError(f"--auto-approve and --gate {options.gate} exclude each other", hint="leave one of them out")
    return "auto" if options.auto_approve else options.gate


def read_params(texts: Iterable[str]) -> dict[str, Any]:
    """``k=v`` texts as values: JSON where they are JSON, else text.

    >>> read_params(["retries=3", "goal=ship it", "tags=[1, 2]"])
    {'retries': 3, 'goal': 'ship it', 'tags': [1, 2]}
    """
    values: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise OptionError(f"--param {text} is not of the form name=value", hint="for example --param goal=ship")
        try:
            values[key.strip()] = read_bounded_json(value)
        except ValueError:
            values[key.strip()] = value
    return values


def _check_name(name: str) -> None:
    if name and not name.isidentifier():
        raise OptionError(f"`{name}` cannot be a variable's name", hint="use letters, digits and underscores")


def _has_errors(pipeline: Any) -> bool:
    return any(found.is_error for found in pipeline.diagnostics)


def _is_public_pipeline(key: str, value: object) -> bool:
    return not key.startswith("_") and hasattr(type(value), "lint") and hasattr(type(value), "run")


def _known(names: Sequence[str]) -> str:
    return f"existing pipelines: {', '.join(names)}" if names else "make one with %%attractor NAME"
