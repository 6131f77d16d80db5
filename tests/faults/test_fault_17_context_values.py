"""Fault 17: a context value is refused when it is set, or a resumed run sees exactly what a live one saw."""

import collections
import decimal
import enum
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor_nb import Outcome, Pipeline

SOURCE = """digraph g {
    start [shape=Mdiamond] put [type=put] see [type=see] done [shape=Msquare]
    start -> put -> see -> done
}"""


class Word(str):
    """A text that is more than one."""

    __slots__ = ()


class Colour(enum.IntEnum):
    """A number that is more than one."""

    RED = 1


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def cyclic(kind):
    value = kind()
    value.append(value) if kind is list else value.update(a=value)
    return value


def refused():
    yield from [{1}, frozenset(), (1, 2), b"x", bytearray(b"x"), 1j, object(), Word("x"), Colour.RED, range(3)]
    yield from [math.nan, math.inf, -math.inf, 1e308 * 10, 2**64, -(2**63) - 1, 10**5000]
    yield from ["\ud800", {"\udfff": 1}, ["a\udc80"], {1: 2}, {None: 1}, {(1,): 2}, {True: 1}]
    yield from [cyclic(list), cyclic(dict), nested(10_000), nested(65)]
    yield from [
        collections.OrderedDict(a=1),
        collections.Counter("a"),
        collections.defaultdict(list),
        decimal.Decimal(1),
    ]
    yield from [len, int, Path("x"), Exception("x"), {"a": [{"b": {1}}]}, {"type": "artifact_ref", "artifact_id": "x"}]
    numpy = pytest.importorskip("numpy")
    yield from [numpy.float64(1), numpy.int64(1), numpy.bool_(True), numpy.zeros(3), numpy.str_("x")]


def put_by(way, value):
    """A handler that puts a value into the context, in one of the ways there are."""

    def put(node, context, graph, logs_root):
        if way == "set":
            context.set("answer", value)
        elif way == "updates":
            context.apply_updates({"fine": 1, "answer": value})
        return Outcome.success(context_updates={"answer": value} if way == "outcome" else {})

    return put


@pytest.mark.protects(
    "attractor_nb/model/redacted.py",
    '        raise _refused(key, f"{value} has no JSON form"',
    instead='        str(f"{value} has no JSON form"',
)
def test_what_json_cannot_keep_is_refused_naming_the_key_and_the_stage(figures):
    """Protected by: each value is looked at when it is set."""
    values = list(refused())
    for way in ("set", "updates", "outcome"):
        for value in values:
            result = Pipeline(SOURCE, handlers={"put": put_by(way, value), "see": lambda *_: Outcome.success()}).run(
                wait=True, durability="none"
            )
            assert result.status == "fail", type(value)
            assert "'answer'" in result.reason, type(value)
            assert "put" in result.reason, type(value)
            assert "answer" not in result.context
            assert "fine" not in result.context
    figures.record(
        17, "values that JSON cannot keep", f"{3 * len(values)} of {3 * len(values)} refused, naming key and stage"
    )


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([-0.0, 0.0, 1.0, 1, True, "\0", "a\0b", "\u2028", "\ufeff", "x" * 150_000, 5e-324, 2**53 + 1])
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def exactly(value):
    """A value with the types of all that is in it; -0.0 is not 0.0, nor 1 True."""
    if isinstance(value, dict):
        return [(name, exactly(item)) for name, item in value.items()]
    if isinstance(value, list):
        return ["list", *map(exactly, value)]
    return type(value).__name__, repr(value)


@pytest.mark.protects(
    "attractor_nb/context.py", "key: value if is_plain(key, value) else self._checked(key, value)", instead="key: value"
)
@pytest.mark.campaign
def test_a_resumed_run_sees_what_a_live_one_saw(figures, campaign):
    """Protected by: what is kept is a checked copy, never the caller's own object."""
    examples = campaign.count(sample=40, full=300)

    @settings(max_examples=examples, deadline=None, database=None)
    @given(plain)
    def check(value):
        with tempfile.TemporaryDirectory() as place:
            seen = {}

            def see(node, context, graph, logs_root):
                seen[logs_root.name] = exactly(context.get("answer"))
                return Outcome.success()

            def put(node, context, graph, logs_root):
                own = [value]
                context.set("answer", own)
                own.append("changed behind its back")
                return Outcome.success()

            pipeline = Pipeline(SOURCE, handlers={"put": put, "see": see})
            options = {"durability": "fast", "wait": True}
            pipeline.run(logs_root=Path(place) / "live", **options)
            pipeline.run(logs_root=Path(place) / "resumed", stop_after=2, **options)
            pipeline.resume(Path(place) / "resumed", durability="fast").result(60)
            assert seen["live"] == seen["resumed"] == exactly([value])

    check()
    figures.record(
        17, "values that JSON can keep", f"{examples} of {examples}: a resumed run saw the same, types included"
    )
