"""``map``: one pipeline over the rows of a file, watched and summed up."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shlex
import shutil
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.text import Text

from attractor_nb.cli.option_choices import GateMode, Settings
from attractor_nb.cli.reporting import ExitCode, print_json, reason_in_options, report
from attractor_nb.cli.run_execution import SimulatedProcesses, recorded_by, settled_trust, wait_for
from attractor_nb.cli.run_summary import shown_path
from attractor_nb.cli.source_inputs import check_output, read_pipeline
from attractor_nb.cli.terminal import Line, Terminal, fitted
from attractor_nb.cli.tones import Tone
from attractor_nb.errors import OptionError, RunError, StorageError
from attractor_nb.maps.map_launch import MapResult, MapRun, unset_words
from attractor_nb.maps.map_page import failed_in, map_page
from attractor_nb.maps.map_view import (
    ROW_ORDER,
    SHOWN_ROWS,
    MapView,
    map_headline,
    rows_table,
    shown_rows,
    shown_rows_table,
)
from attractor_nb.maps.stored_map import StoredMap, read_map_record, read_stored_map
from attractor_nb.model.states import PAUSED, run_sign, run_word
from attractor_nb.model.texts import did_you_mean
from attractor_nb.pipeline.load_pipeline import load_pipeline
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.runtime.prepare.row_files import read_params_file
from attractor_nb.runtime.prepare.text_sources import changed_source
from attractor_nb.storage.files.user_files import write_file
from attractor_nb.storage.map_directory import continue_call, is_evaluation, read_map
from attractor_nb.storage.run_directory import SOURCE_NAME
from attractor_nb.storage.stored_run import read_facts
from attractor_nb.studio.history.diagnosis import MARKS, VERDICTS
from attractor_nb.views.row_table import RowQuery
from attractor_nb.views.state import first_words
from attractor_nb.views.summary_line import duration_text
from attractor_nb.views.table import cells, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from attractor_nb.evaluation.evaluation import Evaluation
    from attractor_nb.model.row_result import RowResult
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.views.row_table import RowTable


SHOWN_FAILURES: Final = 20
BAR_COLUMNS: Final = 40
REASON_CHARS: Final = 100
PATIENCE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSettings:
    """The values of the options that ``map`` has and ``run`` has not."""

    options: Mapping[str, Any] = field(default_factory=dict[str, Any])  #: Options of ``Pipeline.map`` by name.
    out: Path | None = None  #: Output for the results: a file of JSON Lines or CSV, or the map's own directory.
    common: Mapping[str, Any] = field(default_factory=dict[str, Any])  #: Values of all rows.
    #: Options of ``Pipeline.resume_map`` alone, by name.
    resume: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        """Refuse a file of results in another format: a directory of that name would surprise."""
        suffix = "" if self.out is None else self.out.suffix.lower()
        if _FILE_SUFFIX.fullmatch(suffix) and suffix not in _RESULTS:
            raise OptionError(
                f"--out {self.out}: results are not written as {suffix}{did_you_mean(suffix, _RESULTS)}",
                hint=f"name a file {' or '.join(_RESULTS)}, or a directory without a suffix for the map itself",
            )

    @property
    def results_file(self) -> Path | None:
        """The file that gets a line for each row, or None."""
        return self.out if self.out is not None and self.out.suffix.lower() in _RESULTS else None

    @property
    def map_dir(self) -> Path | None:
        """The map's own directory, or None."""
        return None if self.results_file is not None else self.out


def map_file(file: str, params: Path | None, settings: Settings, own: MapSettings) -> ExitCode:
    """Run the pipeline of a file over the rows of another."""
    if params is None:
        raise OptionError("map needs rows of inputs", hint="use --params FILE.jsonl, or --resume DIR to resume a map")
    check_output(own.results_file, file, params)
    rows = _with_common(read_params_file(params), own.common)
    pipeline = read_pipeline(file)
    handle: MapRun = pipeline.map(rows, wait=False, **first_options(pipeline, settings, own))
    return _watch(handle, settings, own)


def first_options(pipeline: Pipeline, settings: Settings, own: MapSettings) -> dict[str, Any]:
    """The options of a new map, as ``Pipeline.map`` takes them."""
    trust = settings.trust_hash or settled_trust(pipeline, is_trusted=settings.needs_no_question)
    named = {"backend": settings.made_backend or settings.first_backend, "trust": trust, "map_dir": own.map_dir}
    return _given({**_options(settings), **own.options, **named})


def resume_map(directory: Path, file: str, params: Path | None, settings: Settings, own: MapSettings) -> ExitCode:
    """Resume the map of a directory, with its own pipeline or that of a file."""
    if own.map_dir is not None:
        raise OptionError(
            "a map is resumed in its own directory", hint="--out FILE.jsonl or FILE.csv writes its results"
        )
    check_output(own.results_file, file or None, params)
    pipeline = read_pipeline(file) if file else load_pipeline(directory)
    settings = resumed_settings(directory, settings)
    options = resumed_options(pipeline, directory, settings, own)
    if params is None and own.common:
        raise OptionError("a map is resumed with its own inputs", hint="leave --param out")
    rows = None if params is None else _with_common(read_params_file(params), own.common)
    run: MapRun = pipeline.resume_map(directory, wait=False, params=rows, **options)
    warn_of_change(pipeline, directory, settings)
    return _watch(run, settings, own)


def resumed_settings(directory: Path, settings: Settings) -> Settings:
    """The same; gates of a map that paused at some pause again: one that fails there would end its row for good."""
    if settings.gates is None and _has_paused_rows(directory):
        return replace(settings, gates=GateMode.PAUSE)
    return settings


def resumed_options(pipeline: Pipeline, directory: Path, settings: Settings, own: MapSettings) -> dict[str, Any]:
    """The options of a map that continues, as ``Pipeline.resume_map`` takes them."""
    trust = settings.trust_hash or settled_trust(
        pipeline,
        is_trusted=settings.needs_no_question,
        logs_root=directory,
        recorded=recorded_by(directory, pipeline, settings),
    )
    return _given({**_options(settings), **own.options, "trust": trust, **own.resume})


def warn_of_change(pipeline: Pipeline, directory: Path, settings: Settings) -> None:
    """Say that the file of a map was edited, and that the stored graph is what continues."""
    changed = changed_source(pipeline, directory / SOURCE_NAME, read_map(directory))
    if changed is not None and not settings.is_quiet:
        print(_stored_goes_on(changed, directory), file=sys.stderr)


def _has_paused_rows(directory: Path) -> bool:
    for place in directory.glob("row-*"):
        with contextlib.suppress(RunError):
            if read_facts(place).get("status") == PAUSED:
                return True
    return False


def _with_common(rows: list[dict[str, Any]], common: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows with the values that all have."""
    for row, inputs in enumerate(rows):
        if taken := next((key for key in common if key in inputs), None):
            raise OptionError(f"row {row} has a value for {taken}, and so has --param", hint="remove one of them")
    return [{**common, **inputs} for inputs in rows]


def _stored_goes_on(changed: Path, directory: Path) -> str:
    """That an edited file is not what a resume runs, and how it would be."""
    command = resume_map_command(directory, "--on-graph-change", "accept", file=shown_path(changed))
    return (
        f"warning: {shown_path(changed)} has changed since this map began, or a file of its texts; "
        f"the map is resumed with the graph stored in {shown_path(directory / SOURCE_NAME)}\n"
        f" hint: `{command}` uses the new one"
    )


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _options(settings: Settings) -> dict[str, Any]:
    if settings.gates is GateMode.CONSOLE:
        raise OptionError(
            "the console cannot ask the gates of many rows", hint="--auto-approve, --gates pause or --gates refuse"
        )
    return {
        "backend": settings.made_backend,
        "interviewer": "refuse" if settings.gates is None else settings.gates.value,
        "cache": settings.cache,
        **settings.options,
        "processes": SimulatedProcesses() if settings.is_simulated else None,
    }


def _watch(handle: MapRun, settings: Settings, own: MapSettings) -> ExitCode:
    """Show a map until it has ended, and sum it up."""
    result = watched(handle, settings, f"{handle.view.row_count:,} rows")
    if isinstance(result, ExitCode):
        return result
    if own.results_file is not None:
        _write_results(own.results_file, result)
    _show(result, settings)
    return map_code(result)


def watched(handle: MapRun, settings: Settings, size: str) -> MapResult | ExitCode:
    """Show a map until it has ended; returns its result, or the exit code where there is none.

    Args:
        handle: The map.
        settings: How it is shown.
        size: Its size in words.
    """
    progress = MapProgress(handle.view, is_quiet=settings.is_quiet)
    progress.say(f"{redacted(handle.pipeline.name)}   {size}", Tone.STRONG)
    handle.on_row(progress.take)
    progress.begin()
    try:
        result = wait_for(handle)
        for entry in result.rows if result else ():  # those that had ended before the display was attached
            if entry.status != "not_started":
                progress.take(entry)
    except StorageError as error:
        report(error, is_json=settings.is_json)
        return ExitCode.FAILED
    finally:
        progress.close()
    if result is None:
        return ExitCode.INTERRUPTED
    if result.cassette is not None:
        progress.say(f"cassette: {result.cassette}")
    return result


def map_code(result: MapResult) -> ExitCode:
    """The exit code of a map that has ended."""
    if result.status == "interrupted" and any(row.reason == PAUSED for row in result.rows):
        return ExitCode.PAUSED
    return ExitCode.of(result.status, is_unmeasured=any(row.is_unmeasured for row in result.rows))


def _write_results(path: Path, result: MapResult) -> None:
    """Write a line for each row; CSV has the columns of ``MapResult.to_frame``."""
    if path.suffix.lower() == ".csv":
        write_lines(path, [{"row": number, **line} for number, line in enumerate(result.lines())])
    else:
        write_lines(path, [_row_plain(result, row) for row in result])


def write_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write objects, each on its line, in the format of the file's suffix."""
    write_file(path, _RESULTS[path.suffix.lower()]([redacted_value(line) for line in lines]))


def _as_json_lines(lines: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _as_csv(lines: Sequence[Mapping[str, Any]]) -> str:
    """A column of each key; what is no text is JSON, and nothing where a line has no value.

    A text that a spreadsheet would execute as a formula begins with an apostrophe: models, tools and rows wrote it.
    """
    columns = list(dict.fromkeys(name for line in lines for name in line))
    rows = ([_cell(line.get(name)) for name in columns] for line in lines)
    return "".join(map(_csv_line, [list(map(_cell, columns)), *rows]))


def _csv_line(cells: Sequence[str]) -> str:
    """A line of CSV. Python before 3.13 quotes only the line breaks that it writes itself, and any ends a row."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if value[:1] in _FORMULA_SIGNS and not _NUMBER.fullmatch(value) else value


_FORMULA_SIGNS: Final = frozenset("=+-@\t\r＝＋－＠")  # noqa: RUF001 - spreadsheets read the wide signs so, too
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_RESULTS: Final[Mapping[str, Callable[[Sequence[Mapping[str, Any]]], str]]] = {
    ".jsonl": _as_json_lines,
    ".ndjson": _as_json_lines,
    ".csv": _as_csv,
}
"""The formats of a file of results, by its suffix."""
_FILE_SUFFIX: Final = re.compile(r"\.[a-z][a-z0-9]{0,9}")
"""The suffix of a file; the directory v1.2 has none."""


def _row_plain(result: MapResult, row: RowResult) -> dict[str, Any]:
    plain: dict[str, Any] = redacted_value({**row.to_plain(), "mark": row.mark, "inputs": dict(result.inputs[row.row])})
    return plain


def _show(result: MapResult, settings: Settings) -> None:
    """The outcome on stdout; how to continue, which is no result, on stderr."""
    if settings.is_json:
        print_json(_result_plain(result))
    else:
        print(map_headline(result.view))
        failures = list(result.failures.values())
        if failures:
            print(rows_table(failures[:SHOWN_FAILURES], left=len(failures) - SHOWN_FAILURES))
        if result.directory is not None:
            print(f"  map directory  {shown_path(result.directory)}")
    sys.stdout.flush()
    for words in unset_words(result):
        print(f"warning: {words}", file=sys.stderr)
    if result.directory is None:
        return
    command = resume_map_command(result.directory, *settings.kept_options())
    if result.unfinished:
        print(f"Resume with `{command}`", file=sys.stderr)
    elif result.failures:
        print(f"Try the failed rows again with `{command} --failed retry`", file=sys.stderr)


def resume_map_command(directory: Path, *options: str, file: str = "", scorers: Sequence[str] = ()) -> str:
    """The command that continues a map, or an evaluation.

    Args:
        directory: Its directory.
        *options: Further options.
        file: The pipeline's file; empty for the stored pipeline.
        scorers: The scorers of an evaluation, where they are known.
    """
    command, given = "map", list[str]()
    if is_evaluation(directory):
        command, given = "evaluate", [word for each in scorers or ["MODULE:NAME"] for word in ("--scorers", each)]
    named = [file] if file else []
    return shlex.join(["attractor-nb", command, *named, "--resume", shown_path(directory), *given, *options])


def result_facts(result: MapResult) -> dict[str, Any]:
    """Name, status, marks and place of a map as JSON values, which an evaluation has, too."""
    return {
        "pipeline": result.pipeline.name,
        "status": result.status,
        "reason": result.reason,
        "is_simulated": result.is_simulated,
        "mark": result.mark,
        "map_id": result.map_id,
        "directory": None if result.directory is None else str(result.directory),
    }


def _result_plain(result: MapResult) -> dict[str, Any]:
    return {
        **result_facts(result),
        "counts": dict(result.counts),
        "duration_seconds": round(result.duration, 3),
        "usage": result.usage.to_plain(),
        "unset_outputs": result.unset_outputs,
        "rows": [_row_plain(result, row) for row in result],
    }


class MapProgress:
    """Shows the state of a map: at a terminal a bar that moves and a line for each failure, else a line a row.

    Lines are written by their own thread: a reader that is slow holds up no row.

    Args:
        is_quiet: Show nothing.
        terminal: Where to; stderr by default.
    """

    def __init__(self, view: MapView, *, is_quiet: bool = False, terminal: Terminal | None = None) -> None:
        self._view = view
        self._is_quiet = is_quiet
        self._terminal = terminal or Terminal(name_columns=len(str(view.row_count)))
        self._shown_rows: set[int] = set()
        self._ended: SimpleQueue[RowResult | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._follow, name="attractor-progress", daemon=True)

    def begin(self) -> None:
        """Show the bar, where one can move, and the rows that end."""
        if not self._is_quiet:
            self._terminal.begin(self._block)
            self._thread.start()

    def follow(self, view: MapView) -> None:
        """Show a newer state of the same map."""
        self._view = view

    def take(self, result: RowResult) -> None:
        """Take a row that has ended; never waits."""
        self._ended.put(result)

    def _follow(self) -> None:
        while (result := self._ended.get()) is not None:
            if result.row not in self._shown_rows:
                self._shown_rows.add(result.row)
                self._show(result)

    def _show(self, result: RowResult) -> None:
        """Write a row's line; at a terminal the bar says what succeeds."""
        if self._terminal.is_live and result.is_success:
            return
        words = reason_in_options(result.reason) or ("read, had ended before" if result.was_finished else "")
        words = first_words(one_line("; ".join(filter(None, (result.mark, words)))), REASON_CHARS)
        time = duration_text(result.duration)
        tone = Tone.of(result.status)
        self._terminal.write(Line(run_sign(result.shown_status), str(result.row), words, time, tone))

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Write text, unless quiet."""
        if not self._is_quiet:
            self._terminal.say(text, tone)

    def close(self) -> None:
        """Take the bar away, when all lines are written, or have not been read for a while."""
        if self._thread.is_alive():
            self._ended.put(None)
            self._thread.join(PATIENCE_SECONDS)
        self._terminal.end()

    def _block(self) -> RenderableType:
        view = self._view
        bar = ProgressBar(total=view.row_count, completed=view.ended_count, width=BAR_COLUMNS)
        return Group(bar, Text(fitted(map_headline(view), self._terminal.columns - 1), no_wrap=True))


# A map of a directory: watched until it is inactive, and what is wrong with it.

INTERVAL_SECONDS: Final = 0.5
VALUE_CHARS: Final = (48, 32, 20, 12, 8)
"""Characters of a value of a row, tried one after the other until the row fits the terminal."""
LOOK_FACTOR: Final = 10
"""A look that takes long is repeated as much less often."""


ROW_WORDS: Final = tuple(map(run_word, ROW_ORDER))
"""The words by which rows are chosen."""


def watch_map(directory: Path, query: RowQuery, *, is_once: bool, is_json: bool) -> ExitCode:
    """Show a map until it is inactive.

    Args:
        directory: Its directory.
        query: The rows that the table at the end has; with ``is_once`` the table now.
        is_once: Show the current state and return.
        is_json: Print JSON, which has all rows.
    """
    query = _checked_query(query, is_json=is_json)
    found = read_stored_map(directory)
    if is_once:
        if is_json:
            print_json(found.to_plain())
        else:
            _show_map(found, query)
        return ExitCode.SUCCESS if found.is_live else ExitCode.of(found.view.status, is_unmeasured=False)
    progress = MapProgress(found.view, is_quiet=is_json)
    progress.say(f"{found.view.name}   {found.view.row_count:,} rows", Tone.STRONG)
    progress.begin()
    told: set[int] = set()
    try:
        while True:
            begun = time.monotonic()
            for row in found.rows:
                if row.status in {"success", "fail"} and row.row not in told:
                    told.add(row.row)
                    progress.take(row)
                    if is_json:
                        print_json(row.to_plain(), indent=None)
            sys.stdout.flush()
            if not found.is_live:
                break
            time.sleep(max(INTERVAL_SECONDS, LOOK_FACTOR * (time.monotonic() - begun)))
            found = read_stored_map(directory)
            progress.follow(found.view)
    finally:
        progress.close()
    if is_json:
        print_json({name: value for name, value in found.to_plain().items() if name != "rows"}, indent=None)
    else:
        _show_map(found, query)
    return ExitCode.of(found.view.status, is_unmeasured=False)


def _checked_query(query: RowQuery, *, is_json: bool) -> RowQuery:
    """The query with the word that people read for its status; the value in JSON is accepted too."""
    word = run_word(query.status)
    if word and word not in ROW_WORDS:
        raise OptionError(
            f"no row has the status {query.status!r}{did_you_mean(query.status, ROW_WORDS)}",
            hint="--status is one of " + ", ".join(ROW_WORDS),
        )
    if is_json and query != RowQuery():
        raise OptionError("--status and --filter choose rows of the table; --json has all rows", hint="use jq")
    return replace(query, status=word)


def diagnose_map(directory: Path, *, is_json: bool) -> ExitCode:
    """Print the problems of a map and how to resume it."""
    found = read_stored_map(directory)
    verdict = "damaged" if found.damages else "healthy"
    code = ExitCode.FAILED if found.damages else ExitCode.SUCCESS
    if is_json:
        print_json({"verdict": verdict, "damages": dict(found.damages), **found.to_plain()})
        return code
    kind = "an evaluation" if is_evaluation(directory) else "a map"
    print(f"{VERDICTS[verdict]}: {shown_path(directory)}, {kind}\n\n{_text(found)}")
    for name, problem in found.damages.items():
        print(f"{MARKS['damaged']} damaged   {name}   {one_line(problem)}")
    advice = _advice(found)
    if found.damages:
        advice.append(f"a row is a run: attractor-nb doctor {shown_path(directory)}/row-00000 says what can be saved")
    if advice:
        print("\n" + "\n".join(advice))
    return code


def _show_map(found: StoredMap, query: RowQuery) -> None:
    print(_whole_text(found, query))
    sys.stdout.flush()
    for line in _advice(found):
        print(line, file=sys.stderr)


def _whole_text(found: StoredMap, query: RowQuery) -> str:
    """Totals, stages with failures, and the wanted rows with inputs, outputs and cost; of an evaluation its verdict."""
    if is_evaluation(found.directory) and query == RowQuery():
        from attractor_nb.evaluation.stored_evaluation import read_evaluation  # noqa: PLC0415 - few maps are scored

        return f"{map_headline(found.view)}\n\n{evaluation_text(read_evaluation(found.directory, found))}"
    record = read_map_record(found.directory, found)
    table = map_page(record).table
    assert table is not None, "a map has rows"
    places = failed_in(record)
    lines = [map_headline(found.view), *([f"failed in {places}"] if places else [])]
    if query != RowQuery():
        wanted = table.find(query)
        lines.append(f"{len(wanted):,} of {len(table.rows):,} rows fit")
        table = replace(table, rows=[table.rows[place] for place in wanted], ways=None)
    if table.rows:
        lines += ["", _fitting_text(table)]
    return "\n".join(lines)


def evaluation_text(evaluation: Evaluation) -> str:
    """A stored evaluation in words, without the Python call that continues it: stderr has the command."""
    assert evaluation.directory is not None, "it is stored"
    return str(evaluation).replace(f": {continue_call(evaluation.directory)}", "")


def _fitting_text(table: RowTable[Any]) -> str:
    """The rows as text, with values short enough for the terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    text = ""
    for chars in VALUE_CHARS:
        text = str(table.text_table(SHOWN_ROWS, chars))
        if not width or max(map(cells, text.split("\n"))) <= width:
            break
    return text


def _text(found: StoredMap) -> str:
    """Totals, and the rows that are worth a look: failures first."""
    rows = shown_rows(found.view)
    return f"{map_headline(found.view)}\n{shown_rows_table(rows, left=found.view.row_count - len(rows))}".rstrip()


def _advice(found: StoredMap) -> list[str]:
    if found.is_live:
        return []
    command = resume_map_command(found.directory)
    if found.has_unfinished_rows:
        return [f"Resume with `{command}`"]
    return [f"Try the failed rows again with `{command} --failed retry`"] if found.view.failures else []
