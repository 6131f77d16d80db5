"""``completion``: the few lines that make a shell ask this command what could come next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from typer.completion import get_completion_script  # pyright: ignore[reportPrivateImportUsage] - typer offers it as an option alone, for the shell that it guesses

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.reporting import print_json

if TYPE_CHECKING:
    from attractor_nb.cli.option_choices import Shell

COMMAND: Final = "attractor-nb"
VARIABLE: Final = "_ATTRACTOR_NB_COMPLETE"
"""By which a shell asks; typer makes the name of the command's."""


def show_completion(shell: Shell, *, is_json: bool) -> ExitCode:
    """Print the script of a shell."""
    script = get_completion_script(prog_name=COMMAND, complete_var=VARIABLE, shell=shell.value)
    if is_json:
        print_json({"shell": shell.value, "script": script})
    else:
        print(script)
    return ExitCode.SUCCESS
