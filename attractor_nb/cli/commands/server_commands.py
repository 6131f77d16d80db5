"""Commands about servers, the local model and the shell.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from attractor_nb.cli.option_choices import Settings, Shell
from attractor_nb.cli.reporting import ExitCode
from attractor_nb.cli.shared_options import File, Json, RunsDir, Server, Token, run_params, run_settings, with_options
from attractor_nb.errors import OptionError
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.model.vocabulary.option_meanings import FLAGS

NOT_OF_A_SUBMISSION = (
    "is_simulated",
    "is_trusted",
    "is_auto_approved",
    "model",
    "gates",
    "is_cached",
    "cache_dir",
    "is_quiet",
    "is_verbose",
    *(name for name, flag in FLAGS.items() if not flag.is_remote),
)
"""Options of ``run`` that a server is not asked for: backend, bounds, hash and JSON are left."""

SERVE_HELP = """Serve runs on this machine, for programs and browsers.

\b
  attractor-nb serve
  attractor-nb serve --runs-dir out --port 0          any free port
  attractor-nb serve --json | tee server.json         its address in parts: url, server, token
  attractor-nb serve --host 0.0.0.0 --allow-remote    for other machines, by http without encryption
  attractor-nb serve --user ada --user grace          an address for each person, who is named in the record
  attractor-nb serve --prefix /lab/proxy/8765         behind a proxy
  attractor-nb serve --max-runs 4                     further requests get 429
  attractor-nb serve --edit                           the page may save the DOT files below this folder
  attractor-nb serve --no-recover                     runs of a killed server wait for a person

The only line of stdout is the whole address, with the token; stderr names a curl command for it. With --user
there is a line for each person: the name and the address.
Anyone who has the token can run pipelines here. --host takes an address that other machines reach only with
--allow-remote; a name of this machine that is not its address needs --allow-host NAME:PORT, too. Ctrl-C
stops the server: it interrupts the runs under way, and they can be resumed. On start, the server
resumes runs left behind by a server that was killed.
"""

COMMAND: Final = "attractor-nb"
VARIABLE: Final = "_ATTRACTOR_NB_COMPLETE"
"""By which a shell asks; typer makes the name of the command's."""
INSTALL_HELP = """Install the model file (93 MB) into this environment; its engine, the extra local, must be there.

\b
  attractor-nb model install
  attractor-nb model install --json | jq -r .path
"""


def serve(
    runs_dir: RunsDir = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any free one.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar=environment_variables.TOKEN,
            help="The token; by default a new one. With --user the secret from which the users' tokens are made.",
            show_default=False,
        ),
    ] = None,
    users: Annotated[
        list[str] | None,
        typer.Option(
            "--user",
            metavar="NAME",
            help="A person with a separate token, under whose name answers are recorded; repeatable.",
            show_default=False,
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="PATH", help="Serve everything under this path.", show_default=False)
    ] = "",
    is_remote_allowed: Annotated[
        bool, typer.Option("--allow-remote", help="Allow a --host that other machines can reach.")
    ] = False,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME:PORT",
            help="Also accept this host name in requests; repeatable.",
            show_default=False,
        ),
    ] = None,
    documents: Annotated[
        Path, typer.Option("--documents", metavar="DIR", help="The folder whose DOT files the page shows.")
    ] = Path(),
    is_editing: Annotated[bool, typer.Option("--edit", help="Let the page save these files.")] = False,
    is_recovering: Annotated[
        bool, typer.Option("--recover/--no-recover", help="Resume the runs of a killed server.")
    ] = True,
    max_runs: Annotated[
        int | None, typer.Option("--max-runs", min=1, help="Maximum number of active runs.", show_default="1000")
    ] = None,
    max_streams: Annotated[
        int | None,
        typer.Option("--max-streams", min=1, help="Maximum number of open event streams.", show_default="2000"),
    ] = None,
    is_json: Json = False,
) -> int:
    """Serve runs."""
    from attractor_nb.cli.serve_until_stopped import serve_runs  # noqa: PLC0415 - commands load what they need

    return serve_runs(
        runs_dir or Path(".attractor/runs"),
        is_json=is_json,
        host=host,
        port=port,
        token=token or None,
        users=users or (),
        prefix=prefix,
        allow_remote=is_remote_allowed,
        allowed_hosts=allowed_hosts or (),
        documents=documents,
        edit=is_editing,
        recover=is_recovering,
        max_runs=max_runs,
        max_streams=max_streams,
    )


SUBMIT_HELP = """Submit a pipeline to a server; prints the run's id and URL.

\b
  attractor-nb submit review.dot --server http://127.0.0.1:8765 --token TOKEN
  attractor-nb submit review.dot --server "$URL" --param ticket=42 --backend llm --max-budget-usd 2
  attractor-nb submit review.dot --server "$URL" --trust-hash 3f2a9c01b7de     allow these commands
  cat review.dot | attractor-nb submit - --server "$URL" --json | jq -r .id

Commands of a pipeline are run only where their hash is allowed: `attractor-nb commands FILE` prints it.
"""


@with_options("settings", run_settings, without=NOT_OF_A_SUBMISSION)
@with_options("params", run_params)
def submit(
    file: File,
    *,
    server: Annotated[
        str,
        typer.Option(
            "--server",
            metavar="URL",
            envvar=environment_variables.SERVER,
            help="The server, as `attractor-nb serve` printed it.",
            show_default=False,
        ),
    ],
    token: Token = None,
    params: dict[str, Any],
    settings: "Settings",
) -> int:
    """Have a server run a pipeline."""
    from attractor_nb.cli.remote_runs.remote import submit_file  # noqa: PLC0415 - commands load what they need
    from attractor_nb.cli.remote_runs.server_client import read_address  # noqa: PLC0415 - as above

    return submit_file(file, read_address(server, token), settings, params=params)


CANCEL_HELP = """Stop a run on a server. Committed stages stay, and `attractor-nb resume` resumes it.

\b
  attractor-nb cancel RUN_ID --server http://127.0.0.1:8765 --token TOKEN
  attractor-nb cancel http://127.0.0.1:8765/pipelines/RUN_ID --json

A run that a terminal works at is stopped there, by Ctrl-C.
"""


def cancel(
    place: Annotated[str, typer.Argument(metavar="RUN_ID|URL", help="The run's id or URL.", show_default=False)],
    server: Server = None,
    token: Token = None,
    is_json: Json = False,
) -> int:
    """Stop a run on a server."""
    from attractor_nb.cli.run_places import run_address  # noqa: PLC0415 - as above

    address = run_address(place, server, token)
    if address is None:
        raise typer.BadParameter(
            "no server is given; stop a local run by Ctrl-C in its own terminal", param_hint="--server"
        )
    from attractor_nb.cli.remote_runs.remote import cancel_on  # noqa: PLC0415 - as above

    return cancel_on(address, is_json=is_json)


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


LSP_HELP = """Serve an editor: findings, completion, renaming.

It speaks the Language Server Protocol over stdin and stdout; see docs/editors.md. It needs the extra lsp.

\b
  attractor-nb lsp                    the command for your editor's settings

Nothing of an opened file is executed. It ends when the editor closes its stdin.
"""


def lsp(is_json: Json = False) -> int:
    """Serve an editor. With ``--json`` errors are JSON, too, as all that it says."""
    del is_json
    from attractor_nb.extras import install_command, missing_packages  # noqa: PLC0415 - as above

    if missing := missing_packages("lsp"):
        raise OptionError(f"`attractor-nb lsp` needs {missing[0]}, which is not installed", hint=install_command("lsp"))
    from attractor_nb.cli.language_server import serve_editor  # noqa: PLC0415 - its library is an extra

    return serve_editor()
