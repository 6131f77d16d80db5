"""The command line: its commands, in the order in which help lists them.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

import inspect
import os
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, cast

import typer
import typer.core
import typer.main

from attractor_nb.cli.commands import (
    directory_commands,
    evaluation_commands,
    graph_commands,
    map_commands,
    run_commands,
    server_commands,
)
from attractor_nb.cli.reporting import ExitCode
from attractor_nb.model.texts import did_you_mean

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
  attractor-nb evaluate review.dot --rows FILE --scorers equals    score it on data
  attractor-nb watch DIR                      watch it run
  attractor-nb serve                          the same over HTTP, for programs and browsers

\b
Exit codes: 0 success, 1 pipeline failed, 2 invalid input, 130 interrupted.
"""

_UNKNOWN: Final = object()
_CONVERTER: Final = "_runtime_param"
"""Attribute of an option that holds its value converter, once typer has built that."""


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
    """A command whose options typer reads when they are asked for: help lists all commands, and one is run."""

    def __init__(self, name: str, function: Callable[..., int], words: str) -> None:
        super().__init__(name, help=inspect.cleandoc(words), rich_markup_mode=None)
        self._function = function

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, ``--help`` included."""
        if self.callback is None:
            alone = typer.Typer(add_completion=False)
            alone.command()(self._function)
            read = typer.main.get_command(alone)
            self.callback, self.params = read.callback, read.params
        return super().get_params(ctx)


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
        if is_several and annotation == list[str]:
            return list(value)
        setattr(param, _CONVERTER, None)
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _no_choice(value: str, choices: type[Enum]) -> str:
    """The error for a value that is none of an option's choices."""
    words = [str(each.value) for each in choices]
    return f'"{value}" is not one of {", ".join(words)}{did_you_mean(value, words)}'


def _plain(value: Any, annotation: object) -> Any:
    """The value as the option means it; ``_UNKNOWN`` where typer has to judge it."""
    if value is None or (annotation is str and isinstance(value, str)):
        return value
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return next((each for each in annotation if value in (each, each.value)), _UNKNOWN)
    if annotation is Path:
        value = os.path.expanduser(value)  # noqa: PTH111 - the shell does it for a word alone, not for --option=~/x
    if annotation is Path and (not os.path.exists(value) or os.access(value, os.R_OK)):  # noqa: PTH110 - as given
        return Path(value)
    return _UNKNOWN


class Commands(QuickValues, typer.core.TyperGroup):
    """A group of commands. A reader of stdout that goes away is no error; typer would end the program with 1."""

    own: ClassVar[Sequence[QuickCommand]] = ()
    """Its commands, in the order of help; the groups in it follow."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {**{str(each.name): each for each in self.own}, **self.commands}

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


class RootCommands(Commands):
    """The commands beside the groups."""

    own = (
        QuickCommand("parse", graph_commands.parse, graph_commands.PARSE_HELP),
        QuickCommand("validate", graph_commands.validate, graph_commands.VALIDATE_HELP),
        QuickCommand("lint", graph_commands.validate, graph_commands.LINT_HELP),
        QuickCommand("run", run_commands.run, run_commands.RUN_HELP),
        QuickCommand("resume", run_commands.resume, run_commands.RESUME_HELP),
        QuickCommand("fork", run_commands.fork, run_commands.FORK_HELP),
        QuickCommand("map", map_commands.map_, map_commands.MAP_HELP),
        QuickCommand("evaluate", evaluation_commands.evaluate, evaluation_commands.EVALUATE_HELP),
        QuickCommand("commands", graph_commands.commands, graph_commands.COMMANDS_HELP),
        QuickCommand("models", graph_commands.models, graph_commands.MODELS_HELP),
        QuickCommand("estimate", graph_commands.estimate, graph_commands.ESTIMATE_HELP),
        QuickCommand("analyse", graph_commands.analyse, graph_commands.ANALYSE_HELP),
        QuickCommand("graph", graph_commands.graph, graph_commands.GRAPH_HELP),
        QuickCommand("handlers", graph_commands.handlers, graph_commands.HANDLERS_HELP),
        QuickCommand("runs", directory_commands.runs, directory_commands.RUNS_HELP),
        QuickCommand("watch", directory_commands.watch, directory_commands.WATCH_HELP),
        QuickCommand("answer", directory_commands.answer, directory_commands.ANSWER_HELP),
        QuickCommand("tell", directory_commands.tell, directory_commands.TELL_HELP),
        QuickCommand("doctor", directory_commands.doctor, directory_commands.DOCTOR_HELP),
        QuickCommand("cache", directory_commands.cache, directory_commands.CACHE_HELP),
        QuickCommand("diff", directory_commands.diff, directory_commands.DIFF_HELP),
        QuickCommand("export", directory_commands.export, directory_commands.EXPORT_HELP),
        QuickCommand("serve", server_commands.serve, server_commands.SERVE_HELP),
        QuickCommand("submit", server_commands.submit, server_commands.SUBMIT_HELP),
        QuickCommand("cancel", server_commands.cancel, server_commands.CANCEL_HELP),
        QuickCommand("lsp", server_commands.lsp, server_commands.LSP_HELP),
        QuickCommand("demo", run_commands.demo, run_commands.DEMO_HELP),
        QuickCommand("completion", server_commands.completion, server_commands.COMPLETION_HELP),
    )


class ModelCommands(Commands):
    """Of ``attractor-nb model``."""

    own = (QuickCommand("install", server_commands.install_model, server_commands.INSTALL_HELP),)


class SkillCommands(Commands):
    """Of ``attractor-nb skill``."""

    own = (QuickCommand("install", directory_commands.install_skill, directory_commands.SKILL_HELP),)


app = typer.Typer(
    name="attractor-nb",
    cls=RootCommands,
    help=HELP,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
model_app = typer.Typer(
    cls=ModelCommands,
    help="Manage the language model that runs on this machine.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
app.add_typer(model_app, name="model")
skill_app = typer.Typer(
    cls=SkillCommands, help="Help an assistant to write pipelines.", rich_markup_mode=None, no_args_is_help=True
)
app.add_typer(skill_app, name="skill")


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
