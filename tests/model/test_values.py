"""The frozen values: durations, shapes, attributes, graph, outcome, events."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from attractor_nb.languages.dot import parse_dot
from attractor_nb.model import events
from attractor_nb.model.checkpoint import SurvivingTotals
from attractor_nb.model.events import EVENT_TYPES, InterviewInformed, event_from_plain
from attractor_nb.model.graph import Edge, Graph, Node
from attractor_nb.model.instruction import Instruction
from attractor_nb.model.outcome import Outcome, ResultMarks, StageStatus, Usage, read_status, usage_problem
from attractor_nb.model.vocabulary.attribute_table import TABLE, AttrType, Scope
from attractor_nb.model.vocabulary.attributes import attribute, coerce
from attractor_nb.model.vocabulary.shapes import SHAPE_TO_TYPE, type_of_shape
from attractor_nb.model.vocabulary.value_forms import Duration, parse_duration


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("900s", 900_000),
        ("15m", 900_000),
        ("2h", 7_200_000),
        ("250ms", 250),
        ("1d", 86_400_000),
        ("5", 5000),
        ("0.5", 500),
        ("0.5s", 500),
        (".5s", 500),
        ("1.5h", 5_400_000),
        ("-0.25m", -15_000),
    ],
)
def test_ruling_2_durations_and_bare_seconds(text, milliseconds):
    assert parse_duration(text) == Duration(milliseconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "5 s",
        "s",
        "1.5.h",
        "1.h",
        ".s",
        "1,5h",
        "5w",
        "9" * 17 + ".5d",
        "999999999999999999",
        "1000000000000d",
        "9" * 5000,
        "9" * 5000 + "s",
    ],
)
def test_other_texts_are_no_duration(text):
    assert parse_duration(text) is None


@given(st.integers(-(10**15) + 1, 10**15 - 1))
def test_a_duration_reads_back_from_its_text(milliseconds):
    assert parse_duration(str(Duration(milliseconds))) == Duration(milliseconds)


@pytest.mark.parametrize(("shape", "kind"), SHAPE_TO_TYPE.items())
def test_every_shape_of_spec_2_8_has_its_type(shape, kind):
    assert type_of_shape(shape) == kind


@pytest.mark.parametrize(
    ("shape", "kind"), [("circle", "codergen"), ("doublecircle", "codergen"), ("star", "codergen")]
)
def test_ruling_6_other_shapes(shape, kind):
    assert type_of_shape(shape) == kind


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.scope}.{row.name}")
def test_a_default_has_the_type_of_its_attribute(row):
    assert row.default is None or coerce(row, row.default) == row.default
    assert row.meaning.endswith(".")
    assert (row.type is AttrType.CHOICE) == bool(row.choices)


@pytest.mark.parametrize(
    ("scope", "name", "value", "typed"),
    [
        (Scope.NODE, "goal_gate", "true", True),
        (Scope.NODE, "max_retries", "3", 3),
        (Scope.NODE, "max_retries", "many", None),
        (Scope.NODE, "max_retries", True, None),
        (Scope.NODE, "timeout", "900s", Duration(900_000)),
        (Scope.NODE, "label", 42, "42"),
        (Scope.GRAPH, "max_budget_usd", "1.5", 1.5),
        (Scope.NODE, "llm_model", True, "true"),
    ],
)
def test_ruling_2_a_literal_gets_the_type_its_attribute_asks_for(scope, name, value, typed):
    assert coerce(attribute(scope, name), value) == typed


def _graph(*nodes, edges=()):
    return Graph("G", nodes={node.id: node for node in nodes}, edges=tuple(Edge(*edge) for edge in edges))


def test_ruling_7_the_shape_decides_before_the_id():
    graph = _graph(Node("start"), Node("begin", {"shape": "Mdiamond"}), Node("end"))
    assert [node.id for node in graph.start_nodes] == ["begin"]
    assert [node.id for node in graph.exit_nodes] == ["end"]


def test_edges_are_found_from_both_ends_in_source_order():
    graph = _graph(Node("a"), Node("b"), edges=[("a", "b"), ("b", "a"), ("a", "a")])
    assert [edge.target for edge in graph.outgoing_edges("a")] == ["b", "a"]
    assert [edge.source for edge in graph.incoming_edges("a")] == ["b", "a"]
    assert graph.outgoing_edges("nobody") == ()


def test_classes_are_the_nodes_own_then_those_of_its_groups():
    assert Node("a", {"class": "code, critical,"}, derived_classes=("loop-a", "code")).classes == (
        "code",
        "critical",
        "loop-a",
    )


def test_the_content_hash_knows_meaning_only():
    one, two = _graph(Node("a", {"label": "A"})), _graph(Node("a", {"label": "A"}))
    assert one.content_hash == two.content_hash
    assert one.content_hash != _graph(Node("a", {"label": "B"})).content_hash


@pytest.mark.parametrize(
    "text",
    [
        *(file.read_text() for file in sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.dot"))),
        'digraph g { a [label="Größe\\n\\"☃\\"", timeout=90s, ratio=1e22, class="x,y"] a -> b [weight=2] }',
    ],
    ids=lambda text: text.split(" {")[0].split()[-1],
)
def test_the_content_hash_is_of_the_same_text_as_ever(text):
    graph = parse_dot(text)
    plain = json.dumps(graph.to_plain(), sort_keys=True, separators=(",", ":"))
    assert graph.content_hash == hashlib.sha256(plain.encode()).hexdigest()


def test_an_attribute_of_the_wrong_kind_counts_as_unset():
    assert Node("a", {"max_retries": "many"}).max_retries is None
    assert Node("a", {"goal_gate": 1}).goal_gate is False


def test_changing_a_node_leaves_the_graph_as_it_was():
    graph = _graph(Node("a"))
    changed = graph.with_nodes([graph.nodes["a"].with_attrs({"llm_model": "m"}, explicit=True)])
    assert graph.nodes["a"].llm_model == ""
    assert changed.nodes["a"].llm_model == "m"
    assert changed.nodes["a"].explicit == {"llm_model"}


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("SUCCESS", "success"),
        ("succeeded", "success"),
        ("Failed", "fail"),
        ("failure", "fail"),
        ("partial-success", "partial_success"),
        ("skip", "skipped"),
    ],
)
def test_ruling_11_outcome_aliases(word, status):
    assert read_status(word) is StageStatus(status)


def test_an_unknown_word_is_no_status():
    assert read_status("maybe") is None


def test_usage_adds_up_and_unknown_cost_is_not_free():
    assert Usage(1, 2, None, 1) + Usage(3, 4, None, 1) == Usage(4, 6, None, 2)
    assert Usage(1, 2, 0.5, 1) + Usage(0, 0, None, 1) == Usage(1, 2, 0.5, 2, unpriced=1)


def _usages():
    counts = st.integers(0, 1000)
    eighths = st.none() | st.integers(0, 80).map(lambda number: number / 8)  # sums of them are exact
    return st.builds(Usage, counts, counts, eighths, st.integers(0, 5))


@given(st.lists(_usages(), max_size=6), st.randoms())
def test_a_sum_of_usages_hides_no_missing_price_in_whatever_order_it_is_made(usages, order):
    total = sum(usages, Usage())
    order.shuffle(usages)
    while len(usages) > 1:
        at = order.randrange(len(usages) - 1)
        usages[at : at + 2] = [usages[at] + usages[at + 1]]
    assert sum(usages, Usage()) == total == Usage.from_plain(json.loads(json.dumps(total.to_plain())))


@given(st.lists(_usages(), max_size=6))
def test_a_sum_counts_the_calls_whose_price_nobody_knows(usages):
    total = sum(usages, Usage())
    unknown = [usage for usage in usages if usage.cost_usd is None and usage != Usage()]
    assert (total.unpriced_calls > 0) == bool(unknown)
    assert total.unpriced_calls >= sum(usage.calls for usage in unknown)
    assert total.unpriced_calls <= total.calls or any(usage.calls == 0 for usage in unknown)
    assert not usage_problem(total)


def test_what_has_tokens_and_no_price_is_an_unpriced_call_though_nobody_counted_it():
    assert Usage(900, 100).unpriced_calls == 1
    assert Usage().unpriced_calls == Usage(900, 100, 0.0).unpriced_calls == 0
    assert Usage(900, 100, None, 3).with_price(0.5) == Usage(900, 100, 0.5, 3)


def test_a_record_of_before_unpriced_calls_is_read_as_it_was_written():
    """And one that has nothing to add to what it said is written as before."""
    for plain in ({"input_tokens": 5}, {"input_tokens": 5, "cost_usd": 0.5, "calls": 2}, {"calls": 2}, {}):
        assert Usage.from_plain(plain).to_plain() == plain
    assert Usage.from_plain({"input_tokens": 5, "calls": 2}).unpriced_calls == 2


def _sample(kind):
    usage = Usage(1, 2, 0.1, 1)
    ready = {
        "outcome": Outcome(StageStatus.FAIL, "Fix", ("a",), failure_reason="why", usage=usage),
        "options": (("A", "Approve"),),
        "numbers": (1, 2),
        "hooks": (("pre", 1, "no"),),
        "event": InterviewInformed(message="x"),
        "deadline": 1.0,
        "edge": 1,
        "answers": "partly simulated",
        "marks": ResultMarks("simulated", ["simulated"], {"check": "pinned"}),
        "carried": SurvivingTotals(
            1, 2.5, usage, {"a": usage}, {"a": 3}, {"fan/a": {"b": 2}}, 4, instructions=(Instruction("x", "a"),)
        ),
    } | dict.fromkeys(("usage", "node_usage", "run_usage", "saved", "spent"), usage)
    values = {str: "x", float: 0.5, bool: True, tuple: ("x", "y"), Mapping: {"k": 1}}
    made = {}
    for entry in fields(kind):
        plain = get_origin(entry.type) or entry.type
        made[entry.name] = ready[entry.name] if entry.name in ready else values.get(plain, 2)
    return kind(**made)


@pytest.mark.parametrize("kind", EVENT_TYPES.values(), ids=lambda kind: kind.__name__)
def test_every_event_survives_its_record(kind):
    event = _sample(kind)
    assert event_from_plain(json.loads(json.dumps(event.to_plain()))) == event
    assert event.description
    assert isinstance(event.node_id, str)


@pytest.mark.parametrize(
    ("carried", "place"),
    [
        ({"restarts": "x"}, "carried.restarts"),
        ({"visits": {"a": -1}}, "carried.visits"),
        ({"usage_by_node": {"a": {"calls": "many"}}}, "carried.usage_by_node"),
        (5, "carried"),
    ],
)
def test_what_a_restart_carries_is_read_with_its_types_checked(carried, place):
    plain = {"type": "PipelineRewound", "visit": 1, "to_sequence": 1, "carried": carried}
    with pytest.raises(ValueError, match=place):
        event_from_plain(plain)


@pytest.mark.parametrize("kind", EVENT_TYPES.values(), ids=lambda kind: kind.__name__)
def test_every_event_survives_its_record_with_empty_texts(kind):
    texts = [entry.name for entry in fields(kind) if entry.type is str]
    event = replace(_sample(kind), **dict.fromkeys(texts, ""))
    assert event_from_plain(json.loads(json.dumps(event.to_plain()))) == event


def test_every_event_of_spec_9_6_is_there():
    named = [
        "PipelineStarted",
        "PipelineCompleted",
        "PipelineFailed",
        "StageStarted",
        "StageCompleted",
        "StageFailed",
        "StageRetrying",
        "ParallelStarted",
        "ParallelBranchStarted",
        "ParallelBranchCompleted",
        "ParallelCompleted",
        "InterviewStarted",
        "InterviewCompleted",
        "InterviewTimeout",
        "CheckpointSaved",
    ]
    assert set(named) <= set(EVENT_TYPES)
    assert all(issubclass(getattr(events, name), events.Event) for name in named)


@pytest.mark.parametrize(
    "usage", [Usage(), Usage(5), Usage(5, cost_usd=0.0), Usage(1, 2, 0.5, 3), Usage(1, 2, 0.5, 3, unpriced=1)]
)
def test_usage_survives_being_stored_and_free_is_not_unknown(usage):
    assert Usage.from_plain(usage.to_plain()) == usage
