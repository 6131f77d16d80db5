"""What a shell is offered after ``--param``: the inputs that the file on the line declares."""

import typer


def complete_inputs(context: typer.Context, incomplete: str) -> list[str]:
    """Names of inputs with an equals sign; nothing where the file cannot be read or declares none."""
    from attractor_nb.cli.source_inputs import STDIN, read_text  # noqa: PLC0415 - loaded only when a shell asks
    from attractor_nb.errors import AttractorError  # noqa: PLC0415 - likewise
    from attractor_nb.languages.dot import parse_dot  # noqa: PLC0415 - likewise
    from attractor_nb.model.inputs import INPUTS, parse_inputs  # noqa: PLC0415 - likewise

    # An option without its value ends the reading of a line: what stands before it is left among the rest.
    file = context.params.get("file") or next(iter(context.args), STDIN)
    if file == STDIN:
        return []
    try:
        declared = parse_inputs(parse_dot(read_text(file)).get(INPUTS, str, ""))
    except AttractorError:
        return []
    return [f"{each.name}=" for each in declared if each.name.startswith(incomplete)]
