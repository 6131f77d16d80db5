"""One word for the status of a run on the surfaces that read it from one table."""

import re
from pathlib import Path

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.cli.run_summary import in_words
from attractor_nb.model.states import RUN_WORDS, RunStatus, run_word

STATUS_LINE = Path(__file__).parents[2] / "attractor_nb" / "views" / "web" / "status_line.js"
TEXT = 'digraph { start [shape=Mdiamond] work [prompt="Work"] done [shape=Msquare] start -> work -> done }'


def failing(node, prompt, context):
    return Outcome.fail("no")


def test_the_status_line_in_javascript_has_the_words_of_the_table():
    block = STATUS_LINE.read_text().partition("const RUN_WORDS = {")[2].partition("}")[0]
    words = dict(re.findall(r'(\w+): __\("(\w+)"\)', block))
    assert words == {status: word for status, word in RUN_WORDS.items() if status in words}
    assert words.keys() >= {status.value for status in RunStatus}


@pytest.mark.parametrize(
    ("backend", "options", "status"),
    [
        pytest.param("simulated", {}, "success", id="success"),
        pytest.param(failing, {}, "fail", id="failure"),
        pytest.param("simulated", {"stop_after": 1}, "paused", id="pause"),
    ],
)
def test_cell_and_terminal_say_the_word_of_the_status(tmp_path, backend, options, status):
    result = Pipeline(TEXT, backend=backend).run(wait=True, logs_root=tmp_path / "run", **options)
    assert result.status == status, "the value in Python is not a word for people"
    assert str(result).split()[1] == in_words(result).split()[1] == run_word(status)


def test_a_cancelled_run_is_stopped(tmp_path):
    text = TEXT.replace('work [prompt="Work"]', "work [shape=hexagon]")
    run = Pipeline(text, backend="simulated", interviewer="deferred").run(logs_root=tmp_path / "run")
    run.wait_for_gate()
    run.cancel()
    result = run.result(60)
    assert result.status == "interrupted"
    assert str(result).split()[1] == in_words(result).split()[1] == "stopped"
