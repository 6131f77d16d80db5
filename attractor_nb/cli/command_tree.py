"""The command line: its commands, in the order in which help lists them.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

import os
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer
import typer.core

from attractor_nb.cli.commands import directory_commands, graph_commands, map_commands, run_commands, server_commands
from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.model.nearest_name import did_you_mean

HELP = """Author and run AI pipelines as directed graphs in Graphviz DOT.

\b
  attractor-nb demo                           a real pipeline on a real model, offline
  attractor-nb validate review.dot            its mistakes, and how to fix them
  attractor-nb run review.dot --simulate      simulate it: no model, no command
  attractor-nb commands review.dot            the commands that it would run
  attractor-nb estimate review.dot            what it will cost
  attractor-nb run review.dot                 run it
  attractor-nb resume DIR                     continue a stopped run
  attractor-nb map review.dot --params FILE   run it over many inputs
  attractor-nb watch DIR                      watch it run
  attractor-nb serve                          the same over HTTP, for programs and browsers

\b
Exit codes: 0 success, 1 pipeline failed, 2 invalid input, 130 interrupted.
"""

_UNKNOWN: Final = object()
_CONVERTER: Final = "_runtime_param"
"""Where an option keeps what converts its values, once typer has built that."""


class QuickValues:
    """A command or a group of them that asks typer to convert only what is not plain.

    typer builds a pydantic adapter for every option of a command, even for one that is not given: 50 ms of
    each command. Absent options, text, paths and choices are most of what is given, and need none.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, ``--help`` included."""
        params: list[Any] = cast("Any", super()).get_params(ctx)
        for param in params:
            if getattr(param, _CONVERTER, None) is None:
                setattr(param, _CONVERTER, _QuickValue())
        return params


class QuickCommand(QuickValues, typer.core.TyperCommand):
    """A command that does."""


class _QuickValue:
    """Stands in for typer's converter of one option until a value needs that."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        annotation = param.type_descriptor.annotation
        plain = _plain(value, annotation)
        is_several = param.multiple or param.nargs == -1
        if plain is _UNKNOWN and isinstance(annotation, type) and issubclass(annotation, Enum):
            raise typer.BadParameter(_no_choice(str(value), annotation), ctx, param)
        if plain is not _UNKNOWN and not is_several:
            return plain
        if value is None:
            return ()
        setattr(param, _CONVERTER, None)
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _no_choice(value: str, choices: type[Enum]) -> str:
    """What is wrong with a value that is none of an option's choices."""
    words = [str(each.value) for each in choices]
    return f'"{value}" is not one of {", ".join(words)}{did_you_mean(value, words)}'


def _plain(value: Any, annotation: object) -> Any:
    """The value as the option means it; ``_UNKNOWN`` where typer has to judge it."""
    if value is None or (annotation is str and isinstance(value, str)):
        return value
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return next((each for each in annotation if value in (each, each.value)), _UNKNOWN)
    if annotation is Path and (not os.path.exists(value) or os.access(value, os.R_OK)):  # noqa: PTH110 - as given
        return Path(value)
    return _UNKNOWN


class Commands(QuickValues, typer.core.TyperGroup):
    """The commands. A reader of stdout that goes away is no error; typer would end the program with 1."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read the arguments; here ``--help`` prints."""
        try:
            return super().make_context(*args, **options)
        except BrokenPipeError:
            raise typer.Exit from None

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command; returns its exit code."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return ExitCode.SUCCESS


app = typer.Typer(
    name="attractor-nb",
    cls=Commands,
    help=HELP,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
model_app = typer.Typer(
    help="Manage the language model that runs on this machine.", rich_markup_mode=None, no_args_is_help=True
)
app.add_typer(model_app, name="model")


def _show_version(value: bool) -> None:
    if value:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and for one option

        print(f"attractor-nb {version('attractor_nb')}")
        raise typer.Exit


@app.callback()
def _frame(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command("parse", cls=QuickCommand, help=graph_commands.PARSE_HELP)(graph_commands.parse)
app.command("validate", cls=QuickCommand, help=graph_commands.VALIDATE_HELP)(graph_commands.validate)
app.command("lint", cls=QuickCommand, help=graph_commands.LINT_HELP)(graph_commands.validate)
app.command("run", cls=QuickCommand, help=run_commands.RUN_HELP)(run_commands.run)
app.command("resume", cls=QuickCommand, help=run_commands.RESUME_HELP)(run_commands.resume)
app.command("fork", cls=QuickCommand, help=run_commands.FORK_HELP)(run_commands.fork)
app.command("map", cls=QuickCommand, help=map_commands.MAP_HELP)(map_commands.map_)
app.command("commands", cls=QuickCommand, help=graph_commands.COMMANDS_HELP)(graph_commands.commands)
app.command("models", cls=QuickCommand, help=graph_commands.MODELS_HELP)(graph_commands.models)
app.command("estimate", cls=QuickCommand, help=graph_commands.ESTIMATE_HELP)(graph_commands.estimate)
app.command("graph", cls=QuickCommand, help=graph_commands.GRAPH_HELP)(graph_commands.graph)
app.command("handlers", cls=QuickCommand, help=graph_commands.HANDLERS_HELP)(graph_commands.handlers)
app.command("runs", cls=QuickCommand, help=directory_commands.RUNS_HELP)(directory_commands.runs)
app.command("watch", cls=QuickCommand, help=directory_commands.WATCH_HELP)(directory_commands.watch)
app.command("answer", cls=QuickCommand, help=directory_commands.ANSWER_HELP)(directory_commands.answer)
app.command("doctor", cls=QuickCommand, help=directory_commands.DOCTOR_HELP)(directory_commands.doctor)
app.command("cache", cls=QuickCommand, help=directory_commands.CACHE_HELP)(directory_commands.cache)
app.command("diff", cls=QuickCommand, help=directory_commands.DIFF_HELP)(directory_commands.diff)
app.command("export", cls=QuickCommand, help=directory_commands.EXPORT_HELP)(directory_commands.export)
app.command("serve", cls=QuickCommand, help=server_commands.SERVE_HELP)(server_commands.serve)
app.command("submit", cls=QuickCommand, help=server_commands.SUBMIT_HELP)(server_commands.submit)
app.command("cancel", cls=QuickCommand, help=server_commands.CANCEL_HELP)(server_commands.cancel)
app.command("demo", cls=QuickCommand, help=run_commands.DEMO_HELP)(run_commands.demo)
app.command("completion", cls=QuickCommand, help=server_commands.COMPLETION_HELP)(server_commands.completion)
model_app.command("install", cls=QuickCommand, help=server_commands.INSTALL_HELP)(server_commands.install_model)


@model_app.callback()
def _model() -> None:
    pass
