"""Options that several commands share, as typer reads them, each spelled once; and sets of them.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.

typer reads options from a command's signature, and knows no parameter that stands for several. So the set is
the signature of a function that makes a value of them, and ``with_options`` writes that into the command's own.
"""

import inspect
from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from attractor_nb.cli.option_choices import BackendName, GateMode, Settings
from attractor_nb.model.vocabulary.option_meanings import FLAGS, OF_A_RUN

File = Annotated[str, typer.Argument(metavar="FILE", help="A .dot file, or - for stdin.", show_default=False)]
Files = Annotated[list[str], typer.Argument(metavar="FILE...", help=".dot files, or - for stdin.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, errors included.")]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse attributes without commas between them.")]
Simulate = Annotated[bool, typer.Option("--simulate", help="Call no model and run no command.")]
AutoApprove = Annotated[bool, typer.Option("--auto-approve", help="Answer gates with their first choice.")]
Gates = Annotated[
    GateMode | None,
    typer.Option(
        "--gates",
        help="How gates are answered: at the console (or by one piped line each), auto, later by `answer` (pause: the "
        "run stops there), or not (refuse). Default: console at a terminal, otherwise refuse.",
        show_default=False,
    ),
]
Backend = Annotated[
    BackendName | None,
    typer.Option(
        "--backend",
        help="The backend for prompts; simulated by default, for a resume that of its run.",
        show_default=False,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="With --backend llm: the model of nodes that name none, such as gpt-5.2.",
        show_default=False,
    ),
]
Cache = Annotated[
    bool, typer.Option("--cache", help="Reuse results of unchanged stages from .attractor/cache, and store new ones.")
]
CacheDir = Annotated[
    Path | None,
    typer.Option("--cache-dir", metavar="DIR", help="As --cache, in another directory.", show_default=False),
]
Trust = Annotated[bool, typer.Option("--trust", help="Run the commands of this pipeline, this time, without asking.")]
TrustHash = Annotated[
    str | None,
    typer.Option(
        "--trust-hash",
        metavar="HASH",
        help="Run only the commands with this hash; `attractor-nb commands` prints it.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the result.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show responses, and the output of commands as it arrives.")
]
RunsDir = Annotated[Path | None, typer.Option("--runs-dir", help=OF_A_RUN["runs_dir"], show_default=False)]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="The server's URL, as `attractor-nb serve` printed it; default ATTRACTOR_SERVER.",
        show_default=False,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token", help="The server's token, if neither the URL nor ATTRACTOR_TOKEN contains it.", show_default=False
    ),
]


def complete_inputs(context: typer.Context, incomplete: str) -> list[str]:
    """Names of inputs with an equals sign; nothing where the file cannot be read or declares none."""
    from attractor_nb.cli.source_inputs import STDIN, read_text  # noqa: PLC0415 - loaded only when a shell asks
    from attractor_nb.errors import AttractorError  # noqa: PLC0415 - likewise
    from attractor_nb.languages.dot import parse_dot  # noqa: PLC0415 - likewise
    from attractor_nb.model.inputs import INPUTS, parse_inputs  # noqa: PLC0415 - likewise

    # An option without its value ends the reading of a line: what is before it is left among the rest.
    file = context.params.get("file") or next(iter(context.args), STDIN)
    if file == STDIN:
        return []
    try:
        declared = parse_inputs(parse_dot(read_text(file)).get(INPUTS, str, ""))
    except AttractorError:
        return []
    return [f"{each.name}=" for each in declared if each.name.startswith(incomplete)]


def complete_runs(incomplete: str) -> list[str]:
    """Directories of runs and maps: of the runs base, or of a folder that is begun, which may be a map."""
    return _directories(incomplete, is_map_wanted=False)


def complete_maps(incomplete: str) -> list[str]:
    """Directories of maps, as ``complete_runs``."""
    return _directories(incomplete, is_map_wanted=True)


def _directories(incomplete: str, *, is_map_wanted: bool) -> list[str]:
    from attractor_nb.errors import StorageError  # noqa: PLC0415 - as above
    from attractor_nb.storage.map_directory import is_map  # noqa: PLC0415 - as above
    from attractor_nb.storage.own_places import refuse_linked  # noqa: PLC0415 - as above
    from attractor_nb.storage.run_directory import DEFAULT_RUNS_BASE  # noqa: PLC0415 - as above
    from attractor_nb.storage.stored_run import has_event_log  # noqa: PLC0415 - as above

    folder, slash, _ = incomplete.rpartition("/")
    base = Path(folder + slash).expanduser() if slash else DEFAULT_RUNS_BASE
    shown = folder + slash if slash else f"{DEFAULT_RUNS_BASE.as_posix()}/"
    try:
        entries = sorted(refuse_linked(base).iterdir(), reverse=True)
    except (OSError, StorageError):
        return []  # the shell then offers files
    begun = [entry for entry in entries if f"{shown}{entry.name}".startswith(incomplete)]
    return [shown + entry.name for entry in begun if is_map(entry) or (not is_map_wanted and has_event_log(entry))]


Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="KEY=TEXT",
        help="An input, or a value for the context: KEY=TEXT, KEY=@FILE for the text of a file, KEY:=JSON.",
        show_default=False,
        autocompletion=complete_inputs,
    ),
]
ParamsFile = Annotated[
    Path | None,
    typer.Option(
        "--params",
        metavar="FILE",
        help="Inputs from a .json or .toml file; --param replaces some of them.",
        show_default=False,
    ),
]


def run_params(*, params: Param = None, params_file: ParamsFile = None) -> dict[str, Any]:
    """The inputs of one run."""
    from attractor_nb.cli.source_inputs import read_params  # noqa: PLC0415 - commands load what they need

    values = read_params(params or ())
    if params_file is None:
        return values
    from attractor_nb.runtime.prepare.row_files import read_params_object  # noqa: PLC0415 - as above

    return {**read_params_object(params_file), **values}


def run_settings(
    *,
    is_simulated: Simulate = False,
    is_trusted: Trust = False,
    trust_hash: TrustHash = None,
    is_auto_approved: AutoApprove = False,
    gates: Gates = None,
    backend: Backend = None,
    model: Model = None,
    is_cached: Cache = False,
    cache_dir: CacheDir = None,
    is_quiet: Quiet = False,
    is_verbose: Verbose = False,
    is_json: Json = False,
    **options: Any,
) -> "Settings":
    """The settings of a command that runs a pipeline; ``options`` are those of ``FLAGS``."""
    from attractor_nb.cli.option_choices import Settings  # noqa: PLC0415 - commands load what they need

    if is_auto_approved and gates not in {None, GateMode.AUTO}:
        raise typer.BadParameter(f"--auto-approve and --gates {gates} contradict each other")
    return Settings(
        backend=backend,
        model=model,
        is_simulated=is_simulated,
        is_trusted=is_trusted,
        trust_hash=trust_hash,
        gates=GateMode.AUTO if is_auto_approved else gates,
        options=run_flags(**options),
        cache=cache_dir or is_cached,
        is_quiet=is_quiet,
        is_verbose=is_verbose,
        is_json=is_json,
    )


def run_flags(**options: Any) -> dict[str, Any]:
    """The options of a run that were given, of those in ``FLAGS``."""
    return {name: value for name, value in options.items() if value is not None}


def _flag_parameters() -> Iterator[inspect.Parameter]:
    for name, flag in FLAGS.items():
        kind = StrEnum(name, {word.upper(): word for word in flag.choices}) if flag.choices else flag.kind
        option = typer.Option(
            f"--{name.replace('_', '-')}",
            metavar=flag.metavar or None,
            min=flag.minimum,
            help=OF_A_RUN[name],
            show_default=flag.default is not None,
        )
        read = Annotated[kind, option] if flag.default is not None else Annotated[kind | None, option]
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=flag.default, annotation=read)


def option_parameters(source: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """The parameters of a function that makes a value of options; its ``**`` stands for those of ``FLAGS``."""
    found: dict[str, inspect.Parameter] = {}
    for each in inspect.signature(source).parameters.values():
        found |= {one.name: one for one in (_flag_parameters() if each.kind is each.VAR_KEYWORD else (each,))}
    return found


def with_options(
    parameter: str, source: Callable[..., object], *, without: Collection[str] = (), only: Collection[str] = ()
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Let a command take the options of ``source``, and give it what ``source`` makes of them.

    Args:
        parameter: The command's parameter, keyword-only, that the options replace.
        source: Makes its value; all its parameters are options with defaults.
        without: Options that this command does not have: they keep their defaults.
        only: The options that it has; empty for all.
    """
    known = option_parameters(source)
    options = {name: each for name, each in known.items() if name not in without and (not only or name in only)}

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        def invoke(**given: Any) -> int:
            value = source(**{name: given.pop(name) for name in options})
            return command(**given, **{parameter: value})

        parameters: list[inspect.Parameter] = []
        for name, each in inspect.signature(command).parameters.items():
            parameters += options.values() if name == parameter else [each]
        invoke.__name__, invoke.__doc__, invoke.__module__ = (command.__name__, command.__doc__, command.__module__)
        invoke.__annotations__ = {each.name: each.annotation for each in parameters}
        invoke.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess] - inspect asks for it
        return invoke

    return decorate
