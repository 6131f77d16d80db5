"""The claims that ``make prove`` reads are true: each line that a test claims to need is in its file, once."""

import inspect
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def mistake(path, snippet, *, instead="pass"):
    """The fault of a claim, or empty."""
    count = (REPOSITORY / path).read_text("utf-8").count(snippet)
    if count != 1:
        return f"{path} has it {count} times: {snippet!r}"
    return "the snippet stays as it is" if instead == snippet else ""


class Collected:
    """All tests of this folder, whichever are run."""

    def pytest_collection_finish(self, session):
        self.items = session.items


def test_each_claim_names_a_snippet_that_is_there_once():
    collected = Collected()
    options = ["--collect-only", "-qq", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "no:randomly"]
    assert pytest.main([*options, str(Path(__file__).parent)], plugins=[collected]) == pytest.ExitCode.OK
    claims = {
        (item.nodeid.partition("[")[0], mark.args, tuple(mark.kwargs.items()))
        for item in collected.items
        for mark in item.iter_markers("protects")
    }
    assert len(claims) > 150
    wrong = []
    for test, arguments, more in sorted(claims, key=str):
        try:
            inspect.signature(mistake).bind(*arguments, **dict(more))
        except TypeError as error:
            wrong.append(f"{test}: {error}")
            continue
        if told := mistake(*arguments, **dict(more)):
            wrong.append(f"{test}: {told}")
    assert wrong == []


@pytest.mark.parametrize(
    ("snippet", "instead", "told"),
    [
        ("no such line in there", "", "attractor_nb/stage.py has it 0 times: 'no such line in there'"),
        ("def current_stage() -> StageScope:", "pass", ""),
        ("def current_stage() -> StageScope:", "def current_stage() -> StageScope:", "the snippet stays as it is"),
    ],
)  # fmt: skip
def test_a_stale_claim_is_told(snippet, instead, told):
    assert mistake("attractor_nb/stage.py", snippet, instead=instead) == told
