"""Commands that look and run nothing: ``parse``, ``validate``, ``graph``, ``handlers`` and more."""

from __future__ import annotations

import glob
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.cli.option_choices import Engine, GraphFormat
from attractor_nb.cli.reporting import (
    ExitCode,
    diagnostic_plain,
    error_plain,
    print_json,
    print_source,
    report,
    report_in_options,
)
from attractor_nb.cli.run_summary import shown_path
from attractor_nb.cli.source_inputs import STDIN, check_output, read_pipeline, read_text
from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.languages.dot import read_dot, write_dot
from attractor_nb.model.diagnostic import Diagnostic, Severity, listed, rest_line
from attractor_nb.model.states import NodeStatus
from attractor_nb.model.texts import did_you_mean
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.storage.cache_store import CacheStore
from attractor_nb.storage.files.user_files import write_bytes, write_file
from attractor_nb.storage.own_places import refuse_linked
from attractor_nb.views.table import aligned, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from attractor_nb.decisions.planning.model_choices import ValueChoice
    from attractor_nb.pipeline.pipeline import Pipeline


def show_parsed(file: str, *, is_json: bool, is_strict: bool) -> ExitCode:
    """Print what a source means: canonical DOT, or JSON. What was read out of generosity goes to stderr."""
    document = read_dot(read_text(file), strict=is_strict)
    if is_json:
        print_json(document.graph.to_plain())
        return ExitCode.SUCCESS
    print_source(redacted(write_dot(document.graph)))
    for words in _reports(document.diagnostics):
        print(words, file=sys.stderr)
    return ExitCode.SUCCESS


def matched(files: Sequence[str]) -> list[str]:
    """The files that are meant: a pattern that no shell has expanded stands for what matches it."""
    found: list[str] = []
    for file in files:
        if not glob.has_magic(file) or Path(file).exists():
            found.append(file)
        elif names := sorted(glob.glob(file, recursive=True)):  # noqa: PTH207 - a name is shown as it was given
            found += names
        else:
            raise OptionError(f"no file matches {file}", hint="check the pattern")
    return found


def worst_of(files: Sequence[str], check: Callable[[str], ExitCode]) -> ExitCode:
    """Check files one after the other; one that cannot be read does not hide the others."""
    if len(files) == 1:
        return check(files[0])
    codes: list[ExitCode] = []
    for file in files:
        try:
            codes.append(check(file))
        except AttractorError as error:
            report(error, is_json=False)
            codes.append(ExitCode.INVALID_INPUT)
    return max(codes)


def show_findings(file: str, *, is_strict: bool) -> ExitCode:
    """Print what lint finds. Errors, and with ``is_strict`` warnings too, are invalid input."""
    pipeline = read_pipeline(file)
    found = pipeline.run_diagnostics()
    for words in _reports(found):
        print(f"{words}\n")
    print(_verdict(file, pipeline, found))
    if declared := _declared(pipeline):
        print(f"inputs: {', '.join(_shown_input(each) for each in declared)}")
    return _code_of(found, is_strict=is_strict)


def show_findings_as_json(files: Sequence[str], *, is_strict: bool) -> ExitCode:
    """Print the same as JSON: an object, or a list of them for several files, each of which may be an error."""
    if len(files) == 1:
        plain = _findings_plain(files[0], is_strict=is_strict)
        print_json(plain)
        return ExitCode.SUCCESS if plain["is_valid"] else ExitCode.INVALID_INPUT
    several: list[dict[str, Any]] = []
    for file in files:
        try:
            several.append(_findings_plain(file, is_strict=is_strict))
        except AttractorError as error:
            several.append({"file": file, "is_valid": False, "error": error_plain(error)})
    print_json(several)
    return ExitCode.SUCCESS if all(each["is_valid"] for each in several) else ExitCode.INVALID_INPUT


def _findings_plain(file: str, *, is_strict: bool) -> dict[str, Any]:
    pipeline = read_pipeline(file)
    found = pipeline.run_diagnostics()
    return {
        "file": file,
        "is_valid": _is_valid(found, is_strict=is_strict),
        "nodes": len(pipeline.graph.nodes),
        "edges": len(pipeline.graph.edges),
        "inputs": _declared(pipeline),
        "diagnostics": [diagnostic_plain(entry) for entry in found],
    }


def _declared(pipeline: Pipeline) -> list[dict[str, Any]]:
    from attractor_nb.runtime.prepare.declared_inputs import plain_inputs  # noqa: PLC0415 - as ``read_pipeline`` does

    return plain_inputs(pipeline)


def _shown_input(plain: Mapping[str, Any]) -> str:
    return plain["name"] if plain["is_required"] else one_line(f"{plain['name']}={plain['default']}")


def fix_findings(file: str, *, is_written: bool, is_strict: bool) -> ExitCode:
    """Print what the fixes change; with ``is_written`` change it."""
    pipeline = read_pipeline(file)
    preview = pipeline.lint().fix()
    if not preview.diff:
        print("nothing to fix", file=sys.stderr)
        return _code_of(pipeline.run_diagnostics(), is_strict=is_strict)
    print_source(preview.diff)
    if not is_written:
        print(_count("fix", len(preview.fixed), plural="fixes") + "; --write applies", file=sys.stderr)
        return ExitCode.SUCCESS
    if file == STDIN:
        raise OptionError("--write cannot change stdin", hint="name the file")
    write_file(Path(file), preview.text)
    mended = read_pipeline(file)
    print(f"{_count('fix', len(preview.fixed), plural='fixes')} applied", file=sys.stderr)
    left = mended.run_diagnostics()
    print(_verdict(file, mended, left), file=sys.stderr)
    return _code_of(left, is_strict=is_strict)


def show_graph(file: str, given: GraphFormat | None, output: Path | None, engine: Engine | None = None) -> ExitCode:
    """Print a graph, or write it to a file. Lint errors do not keep it from being drawn.

    Args:
        file: The pipeline.
        given: The format; None for that of the suffix of ``output``.
        output: The file; None for stdout.
        engine: The layout engine of Graphviz, which draws it; None for our own drawing.
    """
    check_output(output, file)
    graph_format = _chosen_format(given, output, engine)
    if graph_format in {GraphFormat.PNG, *_OF_GRAPHVIZ} and output is None:
        raise OptionError(f"a {graph_format.upper()} picture needs a file", hint=f"-o FILE.{graph_format}")
    pipeline = read_pipeline(file)
    if engine is not None:
        picture: bytes = pipeline.to_graphviz().pipe(graph_format, engine=engine, quiet=True)
        if output is None:
            print_source(picture.decode("utf-8"))
        else:
            write_bytes(output, picture)
        return ExitCode.SUCCESS
    if graph_format is GraphFormat.PNG:
        assert output is not None, "it is binary"
        pipeline.to_png(output)
        return ExitCode.SUCCESS
    if graph_format is GraphFormat.JSON and output is None:
        print_json(pipeline.whole.to_plain())
        return ExitCode.SUCCESS
    text = _drawn(pipeline, graph_format).rstrip("\n") + "\n"
    if output is None:
        print_source(text)
    else:
        write_file(output, text)
    return ExitCode.SUCCESS


_OF_GRAPHVIZ: Final = (
    *(GraphFormat.PDF, GraphFormat.PS, GraphFormat.EPS),
    *(GraphFormat.JPG, GraphFormat.GIF, GraphFormat.WEBP),
)
_SUFFIXES: Final = {
    ".svg": GraphFormat.SVG,
    ".png": GraphFormat.PNG,
    ".dot": GraphFormat.DOT,
    ".gv": GraphFormat.DOT,
    ".json": GraphFormat.JSON,
    ".mmd": GraphFormat.MERMAID,
    ".mermaid": GraphFormat.MERMAID,
    ".txt": GraphFormat.TEXT,
    **{f".{each}": each for each in _OF_GRAPHVIZ},
}
_NOT_OF_GRAPHVIZ: Final = frozenset({GraphFormat.TEXT, GraphFormat.JSON, GraphFormat.MERMAID})


def _chosen_format(given: GraphFormat | None, output: Path | None, engine: Engine | None) -> GraphFormat:
    """The format that the option or the suffix of the file names; text, or Graphviz's SVG, where neither does."""
    chosen = _named_format(given, output) or (GraphFormat.TEXT if engine is None else GraphFormat.SVG)
    if engine is None and chosen in _OF_GRAPHVIZ:
        raise OptionError(f"Graphviz alone writes {chosen}", hint=f"name its layout engine: --engine {Engine.DOT}")
    if engine is not None and chosen in _NOT_OF_GRAPHVIZ:
        raise OptionError(f"--engine and --format {chosen} contradict each other", hint="leave --engine out")
    return chosen


def _named_format(given: GraphFormat | None, output: Path | None) -> GraphFormat | None:
    suffix = "" if output is None else output.suffix.lower()
    named = _SUFFIXES.get(suffix)
    if given is None and suffix and named is None:
        raise OptionError(
            f"-o {output}: {suffix} is the suffix of no format{did_you_mean(suffix, _SUFFIXES)}",
            hint=f"use one of {', '.join(_SUFFIXES)}, or name the format: --format svg",
        )
    if given is not None and named not in {None, given, GraphFormat.TEXT}:
        raise OptionError(f"--format {given} and -o {output} contradict each other", hint="leave --format out")
    return given or named


def _drawn(pipeline: Pipeline, graph_format: GraphFormat) -> str:
    import json  # noqa: PLC0415 - one of several formats

    from attractor_nb.views.text_table import headline, text_table, text_tree  # noqa: PLC0415 - likewise

    match graph_format:
        case GraphFormat.SVG:
            return pipeline.to_svg()
        case GraphFormat.DOT:
            return redacted(write_dot(pipeline.whole))
        case GraphFormat.MERMAID:
            return pipeline.to_mermaid()
        case GraphFormat.JSON:
            return json.dumps(redacted_value(pipeline.whole.to_plain()), indent=2, ensure_ascii=False)
        case _:
            graph = pipeline.graph
            return f"{headline(graph)}\n\n{text_tree(graph)}\n\n{text_table(graph)}"


def _reports(diagnostics: Sequence[Diagnostic]) -> list[str]:
    """The findings that are listed as texts, and the number of the others."""
    reports = ["\n".join(report_in_options(found.report_lines())) for _, found in listed(diagnostics)]
    return [*reports, *filter(None, [rest_line(diagnostics)])]


def _code_of(found: Iterable[Diagnostic], *, is_strict: bool) -> ExitCode:
    return ExitCode.SUCCESS if _is_valid(found, is_strict=is_strict) else ExitCode.INVALID_INPUT


def _is_valid(found: Iterable[Diagnostic], *, is_strict: bool) -> bool:
    refused = {Severity.ERROR, Severity.WARNING} if is_strict else {Severity.ERROR}
    return not any(entry.severity in refused for entry in found)


def _verdict(file: str, pipeline: Pipeline, found: Iterable[Diagnostic]) -> str:
    """``review.dot: 1 error, 2 warnings (8 nodes, 9 edges)``."""
    counts = Counter(entry.severity for entry in found)
    words = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
    listed = ", ".join(_count(word, counts[severity]) for severity, word in words.items() if counts[severity])
    size = f"{_count('node', len(pipeline.graph.nodes))}, {_count('edge', len(pipeline.graph.edges))}"
    mark = (NodeStatus.FAIL if counts[Severity.ERROR] else NodeStatus.SUCCESS).letter
    return f"{mark} {'stdin' if file == STDIN else file}: {listed or 'no findings'} ({size})"


def _count(word: str, number: int, *, plural: str = "") -> str:
    return f"{number} {word if number == 1 else plural or word + 's'}"


_MEANINGS: Final = {
    "start": "Where the pipeline begins; exactly one.",
    "exit": "Where it ends, once its goal gates are satisfied; exactly one.",
    "codergen": "Puts its prompt to the backend: a model, a function, or a simulation.",
    "wait.human": "Asks a person; the choices are its outgoing edges.",
    "conditional": "Chooses an edge by the outcome of the previous stage.",
    "tool": "Runs its tool_command in a shell; exit code 0 is success.",
    "parallel": "Runs its branches at the same time.",
    "parallel.fan_in": "Chooses the best branch of a parallel stage.",
    "stack.manager_loop": "Supervises a child pipeline.",
}


def handler_rows() -> list[dict[str, Any]]:
    """Each handler type with its shape and meaning."""
    from attractor_nb.model.vocabulary.shapes import SHAPE_TO_TYPE  # noqa: PLC0415 - for this command only

    return [
        {"type": handler_type, "shape": shape, "meaning": _MEANINGS[handler_type]}
        for shape, handler_type in SHAPE_TO_TYPE.items()
    ]


def show_handlers(*, is_json: bool) -> ExitCode:
    """Print the handler types."""
    rows = handler_rows()
    if is_json:
        print_json(rows)
        return ExitCode.SUCCESS
    print(aligned([["type", "shape", "meaning"], *([row["type"], row["shape"], row["meaning"]] for row in rows)]))
    return ExitCode.SUCCESS


def show_cache(directory: Path, *, is_cleared: bool, is_json: bool) -> ExitCode:
    """Print how many results a cache holds and how large they are, after removing them if that is asked."""
    store = CacheStore(refuse_linked(directory, option="--cache-dir DIR"))
    held = store.clear() if is_cleared else store.size()
    if is_json:
        name = "removed" if is_cleared else "held"
        print_json({"directory": str(directory), name: {"entries": held.entries, "bytes": held.size_bytes}})
        return ExitCode.SUCCESS
    results = f"{held.entries:,} result{'s' * (held.entries != 1)}, {held.size_bytes:,} bytes"
    print(f"{shown_path(directory)}: {f'removed {results}' if is_cleared else results}")
    return ExitCode.SUCCESS


def show_estimate(file: str, *, params: Mapping[str, Any], bounds: Mapping[str, Any], is_json: bool) -> ExitCode:
    """Print what a run will consume."""
    found = read_pipeline(file).estimate(params, **bounds)
    if is_json:
        print_json(found.to_plain())
    else:
        print(found)
    return ExitCode.SUCCESS


def show_analysis(file: str, *, params: Mapping[str, Any], is_json: bool) -> ExitCode:
    """Print what holds for all runs, and what the rules on demand find."""
    found = read_pipeline(file).analyse(params)
    if is_json:
        print_json({**found.to_plain(), "diagnostics": [diagnostic_plain(entry) for entry in found.findings]})
    else:
        print(found)
    return ExitCode.SUCCESS


def show_models(file: str, *, is_json: bool) -> ExitCode:
    """Print who answers each prompt, and which rule says so."""
    found = read_pipeline(file).models()
    if is_json:
        plain = [
            {
                "node": choice.node_id,
                "model": _plain(choice.model, choice.name.model),
                "provider": _plain(choice.provider, choice.name.provider),
                "reasoning_effort": _plain(choice.effort, choice.effort.value),
            }
            for choice in found
        ]
        print_json({"file": file, "nodes": plain})
    else:
        print(found)
    return ExitCode.SUCCESS


def _plain(choice: ValueChoice, value: str) -> dict[str, Any]:
    plain = {"value": value or None, "from": choice.origin, "selector": choice.selector or None}
    return {**plain, "line": choice.line}
