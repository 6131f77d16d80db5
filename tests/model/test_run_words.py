"""One word for each state of a run and of a stage, on all surfaces (docs/conformance.md, "Views, notebook, command line")."""

from __future__ import annotations

import ast
import re
from itertools import chain
from pathlib import Path
from typing import get_args

import pytest

import attractor_nb
from attractor_nb import Outcome, Pipeline, Run, diff, lineage, runs
from attractor_nb.cli.map_execution import ROW_WORDS
from attractor_nb.cli.run_summary import in_words
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.row_result import ROW_STATUSES
from attractor_nb.model.states import RUN_WORDS, STAGE_WORDS, NodeStatus, RecordedStatus, RunStatus, run_state, run_word
from attractor_nb.storage.run_listing import UNREADABLE
from attractor_nb.studio.history.history_table import STATUSES, run_plain

PACKAGE = Path(attractor_nb.__file__).parent
TEXT = 'digraph { start [shape=Mdiamond] work [prompt="Work"] done [shape=Msquare] start -> work -> done }'
GATED = TEXT.replace('work [prompt="Work"]', "work [shape=hexagon]")

WORDS_OF_RUNS = {"ready", "not started", "running", "waiting", "paused", "stopped", "failed", "completed"}
WORDS_OF_STAGES = {"pending", "running", "waiting", "retrying", "success", "partial success", "failed", "skipped"}
FURTHER_WORDS_OF_STAGES = {"cached", "cut off", "retry"}
"""Of a success from the cache, and of an attempt that did not end or asked to be tried again."""

OWN_TABLES = {"model/states.py": "the table", "studio/explanation.py": "colours of rows"}
VALUES_IN_TEXTS = {
    "decisions": "texts of models, and messages about conditions: they have the value that a condition compares",
    "handlers": "texts of models, likewise",
    "engine": "log lines and commit messages for programs",
    "backends": "statuses of HTTP and of other programs",
    "workers": "statuses of a scheduler",
    "sessions": "status files of agents",
    "languages": "conditions, which compare values",
    "views/session_table.py": "status files of agents",
    "model/session.py": "status files of agents",
    "cli/map_execution.py": "the word that was given",
    "runtime/pins.py": "the value that was given",
    "runtime/execution.py": "'had completed', 'had failed': the recorded value is the word",
    "runtime/telling.py": "'it completed', 'it failed', likewise",
    "studio/estimate/hindsight.py": "the values of check(outcome=…)",
}


def sources(suffix, *folders):
    for folder in folders or ("",):
        yield from sorted((PACKAGE / folder).rglob(f"*{suffix}"))


def place_of(path):
    return path.relative_to(PACKAGE).as_posix()


def failing(node, prompt, context):
    return Outcome.fail("no")


# -- the table ----------------------------------------------------------------------------------------------


def test_the_table_has_the_words_of_the_ruling_and_no_others():
    assert set(RUN_WORDS.values()) == WORDS_OF_RUNS
    assert set(STAGE_WORDS.values()) == WORDS_OF_STAGES | FURTHER_WORDS_OF_STAGES


def test_every_status_has_a_word():
    values = {*RunStatus, *get_args(RecordedStatus), *ROW_STATUSES, *STATUSES}
    assert {value for value in values if value not in RUN_WORDS} == UNREADABLE
    assert {value for value in (*NodeStatus, *StageStatus) if value not in STAGE_WORDS} == set()


def test_the_front_end_has_the_words_of_the_table():
    text = (PACKAGE / "views" / "web" / "state_words.js").read_text()
    for name, words in (("RUN_WORDS", RUN_WORDS), ("STAGE_WORDS", STAGE_WORDS)):
        block = text.partition(f"const {name} = {{")[2].partition("}")[0]
        found = re.findall(r'(\w+): __\("([\w ]+)"\)', block)
        assert dict(found) == {value.replace(" ", "_"): word for value, word in words.items()}
        assert len(found) == block.count("__(")


# -- no surface has words of its own ------------------------------------------------------------------------


def test_no_module_of_python_has_a_table_of_its_own():
    known = {*RUN_WORDS, *STAGE_WORDS}
    found = set()
    for path in sources(".py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):
                keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
                values = [value.value for value in node.values if isinstance(value, ast.Constant)]
                if len(keys & known) > 1 and any(isinstance(value, str) for value in values):
                    found.add(place_of(path))
    assert found == OWN_TABLES.keys(), "use run_word or stage_word of model/states.py"


def test_no_text_of_python_has_the_bare_value_of_a_status():
    found = []
    for path in sources(".py"):
        place = place_of(path)
        if place in VALUES_IN_TEXTS or place.partition("/")[0] in VALUES_IN_TEXTS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found += [f"{place}:{node.lineno}" for before, value in pieces(node) if is_shown(before, value)]
    assert not found, "put run_word or stage_word of model/states.py around it"


def pieces(text):
    before = ""
    for piece in text.values:
        if isinstance(piece, ast.FormattedValue):
            yield before, piece.value
            before = ""
        else:
            before = piece.value


def is_shown(before, value):
    """True for ``{x.status}`` and ``{x.status.value}``, unless it ends the name of a class."""
    while isinstance(value, ast.Attribute) and value.attr == "value":
        value = value.value
    return isinstance(value, ast.Attribute) and value.attr == "status" and not before.endswith("-")


def test_no_text_is_made_of_a_value_without_the_table():
    spelled = re.compile(r"""status\w*\)?\.replace\(["']_["'], ["'] ["']\)""")
    found = [place_of(path) for path in chain(sources(".py"), sources(".js")) if spelled.search(path.read_text())]
    assert not found, "a status with a blank for its underscore is a word of its own"


def test_no_module_of_the_front_end_has_a_table_of_its_own():
    values = "|".join({*RUN_WORDS, *STAGE_WORDS})
    entry = re.compile(rf"""["']?({values})["']?: (?:__\()?["'][a-z ]+["']""")
    found = [
        place_of(path)
        for path in sources(".js", "views/web", "server/web", "labextension/static")
        if path.name not in {"state_words.js", "words.js", "examples.js"}
        and len(entry.findall(re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8")))) > 1
    ]
    assert not found, "use runWord or stageWord of state_words.js"


def test_the_command_line_takes_the_words_of_rows():
    assert set(ROW_WORDS) == WORDS_OF_RUNS - {"ready"}


# -- what people read ---------------------------------------------------------------------------------------


def ended(base, name, text=TEXT, backend="simulated", **options):
    Pipeline(text, backend=backend).run(wait=True, logs_root=base / name, **options)


@pytest.mark.parametrize(
    ("backend", "options", "status", "recorded"),
    [
        pytest.param("simulated", {}, "success", "completed", id="completed"),
        pytest.param(failing, {}, "fail", "failed", id="failed"),
        pytest.param("simulated", {"stop_after": 1}, "paused", "paused", id="paused"),
    ],
)
def test_all_surfaces_say_the_same_of_an_ended_run(tmp_path, backend, options, status, recorded):
    result = Pipeline(TEXT, backend=backend).run(wait=True, logs_root=tmp_path / "run", **options)
    loaded, [row] = Run.load(tmp_path / "run"), runs(tmp_path)
    assert (result.status, loaded.status, row.status) == (status, recorded, recorded), "values are not words for people"
    state = run_state(status)
    word = run_word(status)
    for text in (result, loaded, in_words(result)):
        assert str(text).startswith(f"{state}   ")
    assert f"{state} " in str(runs(tmp_path))
    assert f"status {word}" in re.sub(" +", " ", str(loaded.details()))
    assert run_plain(0, row, "run")["status"] == word
    assert word in str(lineage(tmp_path / "run"))
    assert str(diff(tmp_path / "run", tmp_path / "run")).startswith(f"A {state}, ")
    assert [len(runs(tmp_path).where(status=wanted)) for wanted in (word, recorded)] == [1, 1]
    assert str(loaded.explain()).splitlines()[-1].startswith(f"the run {word}")


def test_a_cancelled_run_is_stopped(tmp_path):
    run = Pipeline(GATED, backend="simulated", interviewer="deferred").run(logs_root=tmp_path / "run")
    run.wait_for_gate()
    run.cancel()
    result = run.result(60)
    assert result.status == "interrupted"
    assert str(result).split()[1] == in_words(result).split()[1] == "stopped"
    assert [row.status for row in runs(tmp_path).where(status="stopped")] == ["interrupted"]
    assert "‖ stopped" in str(runs(tmp_path))


def test_a_live_run_at_a_gate_is_waiting(tmp_path):
    run = Pipeline(GATED, backend="simulated", interviewer="deferred").run(logs_root=tmp_path / "run")
    run.wait_for_gate()
    try:
        [row] = runs(tmp_path)
        assert run.status == row.status == "waiting"
        assert str(run).startswith("? waiting   ")
        assert "? waiting" in str(runs(tmp_path))
        shown = run_plain(0, row, "run")
        assert (shown["status"], shown["mark"], shown["state"]) == ("waiting", "?", "warn")
        assert len(runs(tmp_path).where(status="waiting")) == 1
    finally:
        run.cancel()
        run.result(60)
