"""``run.export_html()``: a whole run as one file that opens anywhere, without a kernel and without a network.

It holds the replay, what is known of every visit, and the same as picture and tables without script.
It is for sending away, so everything in it is looked through for secrets once more, and nothing in it says
where on this machine the run lies. Long texts are cut until the page is small enough, and the page says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from markupsafe import Markup

from attractor_nb.decisions.replays.cache_keys import RunPaths
from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.extras import install_command, missing_packages
from attractor_nb.model.states import row_look, stage_state
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.runtime.past import read_history
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.files.user_files import write_bytes, write_file
from attractor_nb.studio.inspect.inspect_run import inspect_visit
from attractor_nb.studio.inspect.stage_records import visit_line
from attractor_nb.studio.replay_frames import replay_run
from attractor_nb.views.drawings.flat_svg import flat_svg
from attractor_nb.views.frontend import json_text, page
from attractor_nb.views.markup import element
from attractor_nb.views.metrics import ELLIPSIS
from attractor_nb.views.summary_line import run_summary
from attractor_nb.views.table import Column, Table, one_line
from attractor_nb.views.texts.prose import shown_stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

    from attractor_nb.runtime.execution import Execution


MAX_BYTES: Final = 1_800_000
"""Most bytes of the values of a page; drawing, script and styles are added to it."""
TEXT_LIMITS: Final = (20_000, 8_000, 3_000, 1_000, 300)
"""Characters of a text, tried one after the other until the page is small enough."""
VALUE_LIMITS: Final = (2_000, 2_000, 800, 200, 80)
"""The same for a context value of a frame."""
FILE_SHARE: Final = 2
"""The texts of files are left out from this limit on: they are looked at least."""

MAX_ROWS: Final = 500
WORDS: Final = 160


def export_html(run: Execution, path: str | PathLike[str] | None = None) -> Path:
    """Write a run as one HTML file.

    Args:
        run: The run: live as far as it has come, ended, or loaded.
        path: Where; by default ``run-<id>.html`` in the current directory. A file that is there is replaced.

    Returns:
        The file.
    """
    place = Path(f"run-{run.id}.html") if path is None else as_path(path, "the page")
    text = run_page(run)
    write_file(place, text)
    return place


def run_page(run: Execution) -> str:
    """The text of the page."""
    values, notes = fitting_values(run)
    title = redacted(run.pipeline.title) or "a run"
    line = redacted(run_summary(run.view, run.graph, has_times=True).partition("   next: ")[0])
    picture = Markup(run.to_svg())  # noqa: S704 - by our own writer
    table = Markup(stages_table(values["stages"].values()).to_html())  # noqa: S704 - by our own builder
    static = element("div", None, picture, table, *(element("p", {"class": "page-line"}, note) for note in notes))
    text = page(f"Run of {title}", "\n".join([line, *notes]), "replay", "showReplay", values, static)
    clean = redacted(text)
    assert clean == text, "a secret was left in a page; every part of it should have been looked through"
    return text


def fitting_values(run: Execution) -> tuple[dict[str, Any], list[str]]:
    """The values of the page, cut until they fit, and what was cut in words."""
    replay: dict[str, Any] = replay_run(run).values()
    place = RunPaths("", (str(run.logs_root), str(run.logs_root.absolute())))  # its id stays
    replay = redacted_value(place.without_in(replay))
    visits, stages = _stages(run)
    visits, stages = redacted_value(place.without_in(visits)), redacted_value(place.without_in(stages))
    values: dict[str, Any] = {}
    longest = _longest(stages)
    shorter: dict[str, Any] = {}
    for step, limit in enumerate(TEXT_LIMITS):
        if longest > limit or step in (0, FILE_SHARE):  # else they stay as they were
            with_files = step < FILE_SHARE
            shorter = {name: _shortened(stage, limit, with_files=with_files) for name, stage in stages.items()}
        values = {
            **replay,
            "visits": visits,
            "replay": _with_short_values(replay["replay"], VALUE_LIMITS[step]),
            "stages": shorter,
        }
        if len(json_text(values)) <= MAX_BYTES:
            return values, [*_notes(step, limit), *_rendered(values)]
    return _with_fewer_stages(values)


def _notes(step: int, limit: int) -> list[str]:
    notes: list[str] = []
    if step:
        notes.append(f"To keep this page small, texts are cut to {limit:,} characters.")
    if step >= FILE_SHARE:
        notes.append("The texts of other files are left out.")
    return notes


def _rendered(values: dict[str, Any]) -> list[str]:
    """Add the trees of texts while there is room, of the newest visits first; whether some are left out."""
    stages: dict[str, Any] = values["stages"]
    left = MAX_BYTES - len(json_text(values))
    for count, (name, stage) in enumerate(reversed(list(stages.items()))):
        shown = shown_stage(stage)
        left -= len(json_text(shown)) - len(json_text(stage))
        if left < 0:
            return [f"The texts of the first {len(stages) - count:,} visits are shown as they were written."]
        stages[name] = shown
    return []


def _with_fewer_stages(values: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The newest visits only, and then the newest events, where even short texts are too many."""
    notes = [*_notes(len(TEXT_LIMITS) - 1, TEXT_LIMITS[-1])]
    stages: dict[str, Any] = values["stages"]
    count, size = len(stages), len(json_text(values))
    while stages and size > MAX_BYTES:
        dropped = list(stages)[: max(1, len(stages) // 8)]
        size -= sum(len(json_text(stages.pop(name))) for name in dropped)
    if len(stages) < count:
        notes.append(f"The texts of the first {count - len(stages):,} of {count:,} visits are left out.")
    if size > MAX_BYTES:
        values["visits"] = {}
        for frame in values["replay"]["frames"]:
            frame.pop("context", None)
        notes.append("The context is left out.")
    return values, notes


def _stages(run: Execution) -> tuple[dict[str, Any], dict[str, Any]]:
    """The visits of each node, and every visit by ``node@visit``.

    Of the context a visit has what it changed, for the frames have the whole; and of the other visits of its node
    it has nothing, for they are the same in each.
    """
    past = read_history(run)
    visits: dict[str, Any] = {}
    stages: dict[str, Any] = {}
    for known in past.visits:
        record = known.record
        node, visit = record.node_id, record.number
        try:
            plain = inspect_visit(run, past, known).to_plain(TEXT_LIMITS[0], with_files=True, with_place=False)
        except AttractorError as error:  # one stage that cannot be read does not hide the others
            plain = {"node": node, "visit": visit, "status": "", "problems": [error.message]}
        visits.setdefault(node, []).append(visit_line(known, run).to_plain())
        plain.pop("visits", None)
        stages[f"{node}@{visit}"] = plain
    return visits, stages


def _shortened(stage: dict[str, Any], limit: int, *, with_files: bool) -> dict[str, Any]:
    """A stage with texts of at most a number of characters; ``cut`` says how long those were."""
    cut = dict(stage.get("cut", {}))
    output: dict[str, Any] = stage.get("output", {})
    for name, text in (*stage.items(), *output.items()):
        if isinstance(text, str) and len(text) > limit:
            cut.setdefault(name, len(text))
    shorter: dict[str, Any] = _cut_texts(stage, limit)
    if not with_files and "files" in stage:
        shorter["files"] = [{**file, "text": None} for file in stage["files"]]
    return {**shorter, "cut": cut}


def _longest(value: Any) -> int:
    """Characters of the longest text in a JSON value."""
    longest, pending = 0, [value]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            longest = max(longest, len(part))
        elif isinstance(part, dict):
            pending.extend(cast("dict[str, Any]", part).values())
        elif isinstance(part, list):
            pending.extend(cast("list[Any]", part))
    return longest


def _cut_texts(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= limit else value[:limit] + ELLIPSIS
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {key: _cut_texts(item, limit) for key, item in entries.items()}
    if isinstance(value, list):
        return [_cut_texts(item, limit) for item in cast("list[Any]", value)]
    return value


def _with_short_values(replay: dict[str, Any], limit: int) -> dict[str, Any]:
    """The frames with shorter context values."""
    frames = [
        {**frame, "context": {key: _short(value, limit) for key, value in frame["context"].items()}}
        if "context" in frame
        else frame
        for frame in replay["frames"]
    ]
    return {**replay, "frames": frames}


def _short(value: Any, limit: int) -> Any:
    text = value if isinstance(value, str) else json_text(value)
    return value if len(text) <= limit else text[:limit] + ELLIPSIS


def stages_table(stages: Iterable[Mapping[str, Any]]) -> Table:
    """The table of visits.

    Args:
        stages: Plain forms of inspections (``studio.inspect.inspection``), in order.
    """
    stages = list(stages)
    more = len(stages) - MAX_ROWS
    return Table(
        "Stages",
        (
            Column("stage", "place"),
            Column("status", "state"),
            Column("attempts", "number"),
            Column("used"),
            Column("said"),
            Column("why on"),
        ),
        [_row(stage) for stage in stages[:MAX_ROWS]],
        states=[row_look(str(stage.get("status"))) for stage in stages[:MAX_ROWS]],
        notes=[f"and {more:,} more visits"] if more > 0 else [],
    )


def _row(stage: Mapping[str, Any]) -> tuple[str, ...]:
    status = str(stage.get("status", ""))
    visit = stage.get("visit") or 1
    text = stage.get("reason") or stage.get("response") or stage.get("notes") or ""
    why: Mapping[str, Any] = stage.get("why_next") or {}
    return (
        f"{stage['node']}" + (f", visit {visit}" if visit > 1 else ""),
        stage_state(status) if status else "",
        str(len(stage.get("attempts", ())) or 1),
        str(stage.get("usage_words", "")),
        _cut(str(text)),
        _cut(str(why.get("words", ""))),
    )


def _cut(text: str) -> str:
    line = one_line(text[: 4 * WORDS])
    return line if len(line) <= WORDS else line[: WORDS - 1] + ELLIPSIS


# ``to_png``: a drawing as a bitmap, for places that take no SVG.

MAX_SCALE = 8


def write_png(svg: str, path: str | PathLike[str], *, theme: str = "light", scale: float = 2.0) -> Path:
    """Write one of our drawings as PNG.

    Args:
        svg: The drawing.
        path: Where; a file that is there is replaced.
        theme: ``light`` or ``dark``.
        scale: Pixels for one unit of the drawing, up to 8.

    Returns:
        The file.
    """
    place = as_path(path, "the picture")
    write_bytes(place, png_of(svg, theme=theme, scale=scale))
    return place


def png_of(svg: str, *, theme: str = "light", scale: float = 2.0) -> bytes:
    """One of our drawings as the bytes of a PNG; arguments and refusals as of ``write_png``."""
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale <= MAX_SCALE:  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(f"scale {scale!r:.40} is none", hint=f"a number above 0, up to {MAX_SCALE}")
    if missing_packages("png"):
        raise OptionError("PNG pictures need resvg-py, which is not installed", hint=install_command("png"))
    import resvg_py  # noqa: PLC0415 - an extra

    draw: Any = resvg_py.svg_to_bytes
    return bytes(draw(svg_string=flat_svg(svg, theme), zoom=scale))
