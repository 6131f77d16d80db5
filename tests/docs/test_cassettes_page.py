"""The page of cassettes: its example is a test that records and replays, its options and numbers are true."""

import re
from pathlib import Path

from attractor_nb.cassettes import MODES
from attractor_nb.cassettes.recorded_commands import MAX_FILE_BYTES, MAX_FILES
from attractor_nb.cassettes.tape import KEEP_SECONDS, MAX_ANSWER_BYTES
from attractor_nb.model.vocabulary.option_meanings import CASSETTE_MODES

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cassettes.md").read_text("utf-8")
PLUGIN = ("-p", "attractor_nb.pytest_plugin", "-p", "no:randomly", "-p", "no:cacheprovider")


def section(title):
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_example_records_where_it_may_and_replays_in_ci(pytester, monkeypatch):
    code = re.search(r"^```python\n(.*?)^```", section("A test"), re.DOTALL | re.MULTILINE)[1]
    pytester.makepyfile(test_review=code)
    monkeypatch.delenv("CI", raising=False)
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)
    recording = pytester.path / "cassettes" / "test_review.test_review_path.json"
    recorded = recording.read_bytes()
    monkeypatch.setenv("CI", "1")
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)
    assert recording.read_bytes() == recorded


def test_the_modes_on_the_page_are_those_that_there_are():
    named = re.findall(r"^\| `(\w+)`", section("Modes"), re.MULTILINE)
    assert sorted(named[1:]) == sorted(MODES) == sorted(CASSETTE_MODES)


def test_the_numbers_on_the_page_are_those_of_the_code():
    assert KEEP_SECONDS == 1.0
    assert "at most once a second" in section("Modes")
    assert (MAX_FILES, MAX_FILE_BYTES, MAX_ANSWER_BYTES) == (50, 1024 * 1024, 4 * 1024 * 1024)
    assert "50 files of 1 MB each, and 4 MB in total" in section("What is recorded of an answer")
