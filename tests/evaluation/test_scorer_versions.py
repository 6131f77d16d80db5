"""A stored score is reused only while nothing that its scorer depends on has changed."""

from collections import Counter
from functools import partial

import pytest

from attractor_nb import Pipeline
from attractor_nb.evaluation.versions import version_of

LIMIT = 1
COUNTED = Counter()
WORDS = ["a", "b"]


class Shorter:
    def __init__(self, than):
        self.than = than

    def __call__(self, output):
        return len(output) < self.than

    def check(self, output):
        return len(output) < self.than


class Slotted:
    __slots__ = ("than",)

    def __init__(self, than):
        self.than = than

    def __call__(self, output):
        return len(output) < self.than


def with_default(than):
    def is_short(output, limit=than):
        return len(output) < limit

    return is_short


def closing_over(judge):
    def is_short(output):
        return judge(output)

    return is_short


def by_size(output, than):
    return len(output) < than


@pytest.mark.parametrize(
    "made",
    [
        Shorter,
        Slotted,
        lambda than: Shorter(than).check,
        lambda than: partial(by_size, than=than),
        with_default,
        lambda than: closing_over(Shorter(than)),
        lambda than: closing_over(with_default(than)),
    ],
    ids=["object", "object with slots", "method", "partial", "default", "closed-over object", "closed-over function"],
)
def test_another_limit_is_another_version(made):
    assert version_of(made(1)) == version_of(made(1)) != ""
    assert version_of(made(1)) != version_of(made(100))


def limited(output):
    return any(len(word) < LIMIT for word in output)


def helper(output):
    return limited(output)


def test_a_global_of_a_helper_is_a_part_of_the_version(monkeypatch):
    before = version_of(helper)
    monkeypatch.setitem(globals(), "LIMIT", 100)
    assert version_of(helper) != before


def listed(output):
    COUNTED["calls"] += 1
    return output in WORDS


def test_a_list_counts_and_a_counter_that_the_scorer_fills_does_not(monkeypatch):
    before = version_of(listed)
    listed("a")
    assert version_of(listed) == before
    monkeypatch.setitem(globals(), "WORDS", ["a"])
    assert version_of(listed) != before


class Client:
    def __init__(self):
        self.lock, self.me = object(), self


CLIENT = Client()


def asking(output):
    return CLIENT is not None


def test_an_address_is_no_part_of_a_version(monkeypatch):
    before = version_of(asking)
    monkeypatch.setitem(globals(), "CLIENT", Client())
    assert version_of(asking) == before


class Unshown(Shorter):
    def __repr__(self):
        raise ValueError("no words")


def test_an_object_whose_repr_raises_counts_by_what_it_holds():
    assert version_of(Unshown(1)) == version_of(Unshown(1)) != ""
    assert version_of(Unshown(1)) != version_of(Unshown(100))


def test_a_changed_global_is_no_stale_score(monkeypatch, tmp_path):
    text = 'digraph { inputs="t" start [shape=Mdiamond] a [prompt="$t"] done [shape=Msquare] start -> a -> done }'
    pipeline = Pipeline(text, backend=lambda node, prompt, context: "abc", runs_dir=tmp_path)
    evaluation = pipeline.evaluate([{"t": "x"}], helper, wait=True)
    assert evaluation.scores["helper"].estimate.value == 0.0
    monkeypatch.setitem(globals(), "LIMIT", 100)
    assert evaluation.rescore(helper).scores["helper"].estimate.value == 1.0
