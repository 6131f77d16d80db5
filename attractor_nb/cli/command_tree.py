"""The command line: its commands, in the order in which help lists them.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from typing import Annotated, Any

import typer
import typer.core

from attractor_nb.cli.commands import directory_commands as directories
from attractor_nb.cli.commands import fork_commands as forking
from attractor_nb.cli.commands import graph_commands as looking
from attractor_nb.cli.commands import machine_commands as equipping
from attractor_nb.cli.commands import map_commands as mapping
from attractor_nb.cli.commands import run_commands as running
from attractor_nb.cli.commands import server_commands as serving
from attractor_nb.cli.commands import share_commands as sharing
from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.quick_values import QuickCommand, QuickValues

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


app.command("parse", cls=QuickCommand, help=looking.PARSE_HELP)(looking.parse)
app.command("validate", cls=QuickCommand, help=looking.VALIDATE_HELP)(looking.validate)
app.command("lint", cls=QuickCommand, help=looking.LINT_HELP)(looking.validate)
app.command("run", cls=QuickCommand, help=running.RUN_HELP)(running.run)
app.command("resume", cls=QuickCommand, help=running.RESUME_HELP)(running.resume)
app.command("fork", cls=QuickCommand, help=forking.FORK_HELP)(forking.fork)
app.command("map", cls=QuickCommand, help=mapping.MAP_HELP)(mapping.map_)
app.command("commands", cls=QuickCommand, help=looking.COMMANDS_HELP)(looking.commands)
app.command("models", cls=QuickCommand, help=looking.MODELS_HELP)(looking.models)
app.command("estimate", cls=QuickCommand, help=looking.ESTIMATE_HELP)(looking.estimate)
app.command("graph", cls=QuickCommand, help=looking.GRAPH_HELP)(looking.graph)
app.command("handlers", cls=QuickCommand, help=looking.HANDLERS_HELP)(looking.handlers)
app.command("runs", cls=QuickCommand, help=directories.RUNS_HELP)(directories.runs)
app.command("watch", cls=QuickCommand, help=directories.WATCH_HELP)(directories.watch)
app.command("answer", cls=QuickCommand, help=directories.ANSWER_HELP)(directories.answer)
app.command("doctor", cls=QuickCommand, help=directories.DOCTOR_HELP)(directories.doctor)
app.command("cache", cls=QuickCommand, help=directories.CACHE_HELP)(directories.cache)
app.command("diff", cls=QuickCommand, help=sharing.DIFF_HELP)(sharing.diff)
app.command("export", cls=QuickCommand, help=sharing.EXPORT_HELP)(sharing.export)
app.command("serve", cls=QuickCommand, help=serving.SERVE_HELP)(serving.serve)
app.command("submit", cls=QuickCommand, help=serving.SUBMIT_HELP)(serving.submit)
app.command("cancel", cls=QuickCommand, help=serving.CANCEL_HELP)(serving.cancel)
app.command("demo", cls=QuickCommand, help=running.DEMO_HELP)(running.demo)
app.command("completion", cls=QuickCommand, help=equipping.COMPLETION_HELP)(equipping.completion)
model_app.command("install", cls=QuickCommand, help=equipping.INSTALL_HELP)(equipping.install_model)


@model_app.callback()
def _model() -> None:
    pass
