"""``pipeline.check`` and the fixture ``cassette``: a recording is a test."""

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import AttractorError, CheckFailed, OptionError
from attractor_nb.testing import ScriptedBackend, ScriptedInterviewer

pytest_plugins = ["pytester"]

SOURCE = """digraph review {
    start [shape=Mdiamond]
    done [shape=Msquare]
    draft [prompt="Write."]
    gate [shape=hexagon, label="Good?"]
    start -> draft -> gate
    gate -> done [label="[A] Approve"]
    gate -> draft [label="[R] Redo"]
}"""
PATH = ["start", "draft", "gate", "draft", "gate", "done"]


@pytest.fixture
def recording(tmp_path):
    Pipeline(SOURCE).run(
        wait=True,
        backend=ScriptedBackend(),
        interviewer=ScriptedInterviewer({"gate": ["R", "A"]}),
        cassette=tmp_path / "review.json",
        cassette_mode="record",
        durability="none",
    )
    return tmp_path / "review.json"


def test_a_check_that_holds_gives_the_result_and_leaves_nothing(recording, tmp_path):
    result = Pipeline(SOURCE).check(recording, path=PATH, outcome="success")
    assert result["draft"].response == "done"
    assert [entry.name for entry in tmp_path.iterdir()] == ["review.json"]


def test_a_check_shows_where_the_paths_part(recording):
    with pytest.raises(CheckFailed) as caught:
        Pipeline(SOURCE).check(recording, path=["start", "draft", "gate", "done"], outcome="fail")
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, AttractorError)
    message = caught.value.message
    assert "outcome: expected fail, was success" in message
    assert "path: parts at step 4 (- expected, + taken)" in message
    assert "    + draft" in message


def test_a_miss_fails_every_check_whatever_it_expects(recording):
    changed = Pipeline(SOURCE.replace("Write.", "Write well."))
    with pytest.raises(CheckFailed) as caught:
        changed.check(recording, outcome="fail")
    message = caught.value.message
    assert "the cassette had no answer for the model call of draft, visit 1" in message
    assert '"Write." → "Write well."' in message


def test_recorded_calls_that_are_not_made_are_told_of(recording):
    short = Pipeline(SOURCE.replace('gate [shape=hexagon, label="Good?"]', "gate [shape=diamond]"))
    with pytest.raises(CheckFailed) as caught:
        short.check(recording, outcome="success")
    assert "recorded, and not called now" in caught.value.message
    assert "question call of gate, visit 2" in caught.value.message
    assert short.check(recording, outcome="success", allow_unused=True).is_success


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outcome": "sucess"}, "there is no outcome 'sucess', did you mean 'success'"),
        ({"path": "start"}, "path must be a list"),
        ({"path": [1]}, "path must be a list of node ids"),
    ],
)
def test_what_cannot_be_expected_is_refused(recording, options, message):
    with pytest.raises(OptionError, match=message.split(",")[0]):
        Pipeline(SOURCE).check(recording, **options)


TESTS = '''
from attractor_nb import Pipeline
from attractor_nb.testing import ScriptedBackend

SOURCE = """digraph { start [shape=Mdiamond] done [shape=Msquare] ask [prompt="Say it."] start -> ask -> done }"""
CALLS = []

def ask(prompt):
    CALLS.append(prompt)
    return "said"

def test_it(cassette):
    result = Pipeline(SOURCE).check(cassette=cassette, path=["start", "ask", "done"], outcome="success", backend=ask)
    assert result.context["ask.response"] == "said"

def test_run(cassette):
    result = Pipeline(SOURCE).run(wait=True, cassette=cassette, backend=ask)
    print("calls", len(CALLS), cassette.mode)
    assert result.is_success, result.reason
'''
PLUGIN = ("-p", "attractor_nb.pytest_plugin", "-p", "no:randomly", "-p", "no:cacheprovider", "-s")


def test_the_fixture_records_once_and_replays_from_then_on(pytester, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(test_pipelines=TESTS)
    first = pytester.runpytest_inprocess(*PLUGIN)
    first.assert_outcomes(passed=2)
    first.stdout.fnmatch_lines(["*calls 2 auto*"])
    files = sorted(path.name for path in (pytester.path / "cassettes").iterdir())
    assert files == ["test_pipelines.test_it.json", "test_pipelines.test_run.json"]
    monkeypatch.setenv("CI", "1")
    second = pytester.runpytest_inprocess(*PLUGIN)
    second.assert_outcomes(passed=2)
    second.stdout.fnmatch_lines(["*calls 0 replay*"])
    third = pytester.runpytest_inprocess(*PLUGIN, "--cassette-mode=record", "-k", "test_run")
    third.stdout.fnmatch_lines(["*calls 1 record*"])


def test_in_ci_a_test_without_a_recording_fails_and_calls_nothing(pytester, monkeypatch):
    monkeypatch.setenv("CI", "1")
    pytester.makepyfile(test_pipelines=TESTS)
    result = pytester.runpytest_inprocess(*PLUGIN)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*there is no cassette *test_pipelines.test_it.json to replay*"])
    assert not (pytester.path / "cassettes").exists()


def test_a_changed_prompt_fails_the_test_with_the_difference(pytester, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(test_pipelines=TESTS)
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=2)
    pytester.makepyfile(test_pipelines=TESTS.replace("Say it.", "Say that."))
    result = pytester.runpytest_inprocess(*PLUGIN, "--cassette-mode=replay", "-k", "test_it")
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(['*prompt: "Say it." → "Say that."*'])


def test_the_plugin_imports_nothing_heavy():
    import subprocess
    import sys

    seen = "import sys, attractor_nb.pytest_plugin; print([m for m in sys.modules if m.startswith('attractor_nb.')])"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['attractor_nb.lazy_imports', 'attractor_nb.pytest_plugin']"
