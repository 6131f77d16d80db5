"""Options that several commands share, as typer reads them."""

from pathlib import Path
from typing import Annotated

import typer

from attractor_nb.cli.choices import BackendName, Durability, GateMode

File = Annotated[str, typer.Argument(metavar="FILE", help="A .dot file, or - for stdin.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, errors included.")]
Strict = Annotated[bool, typer.Option("--strict", help="Read DOT to the letter.")]
Simulate = Annotated[bool, typer.Option("--simulate", help="Ask no model and run no command.")]
AutoApprove = Annotated[bool, typer.Option("--auto-approve", help="Answer gates with their first choice.")]
Gates = Annotated[
    GateMode | None,
    typer.Option(
        "--gates",
        help="Who answers gates: the console (also one line of piped stdin each), auto, or nobody (refuse). "
        "Without it the console at a terminal, else nobody.",
        show_default=False,
    ),
]
Backend = Annotated[
    BackendName | None,
    typer.Option("--backend", help="What answers prompts; simulated by default.", show_default=False),
]
MaxSteps = Annotated[
    int | None, typer.Option("--max-steps", min=1, help="Stop after so many stages.", show_default=False)
]
DurabilityOption = Annotated[
    Durability,
    typer.Option("--durability", help="Commits survive a power loss, a killed process, or nothing."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the result.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show each response under its stage.")]
RunsDir = Annotated[
    Path | None,
    typer.Option(
        "--runs-dir", help="Where run directories are made; .attractor/runs by default.", show_default=False
    ),
]
