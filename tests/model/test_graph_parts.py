"""Nodes, edges and spans as values: compared by what they mean, never changed, copied whole."""

from __future__ import annotations

import copy
import pickle

import pytest
from msgspec import structs

from attractor_nb.model.graph import Edge, Node
from attractor_nb.model.vocabulary.attributes import AttrSpan
from attractor_nb.source import SourceText, Span

SPAN = SourceText("a -> b").span(0, 6)
PARTS = [
    Edge("a", "b", {"label": "x"}, SPAN, {"label": AttrSpan(SPAN, SPAN)}),
    Node("a", {"label": "x"}, frozenset({"label"}), ("c",), is_implicit=True, span=SPAN, attr_spans={}),
]


@pytest.mark.parametrize("part", PARTS, ids=["edge", "node"])
def test_where_a_part_stands_counts_in_no_comparison_and_is_not_shown(part: Node | Edge) -> None:
    elsewhere = structs.replace(part, span=None, attr_spans={})
    assert (elsewhere, repr(elsewhere)) == (part, repr(part))
    assert "span" not in repr(part)
    assert structs.replace(part, attrs={}) != part
    assert part != "a"


@pytest.mark.parametrize("part", PARTS, ids=["edge", "node"])
def test_a_part_is_copied_with_its_place_and_never_changed(part: Node | Edge) -> None:
    for again in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part), copy.copy(part)):
        assert type(again) is type(part)
        assert structs.astuple(again) == structs.astuple(part)
    with pytest.raises(AttributeError):
        part.attrs = {}  # type: ignore[misc]


def test_a_span_is_copied_with_its_text_and_shown_without_it() -> None:
    for again in (pickle.loads(pickle.dumps(SPAN)), copy.deepcopy(SPAN)):
        assert (type(again), again, hash(again)) == (Span, SPAN, hash(SPAN))
    assert repr(SPAN) == "Span(start=0, end=6)"
    assert SourceText("a -> c").span(0, 6) != SPAN
    with pytest.raises(AttributeError):
        SPAN.start = 1  # type: ignore[misc]


def test_a_node_and_an_edge_are_not_the_same() -> None:
    assert Node("a") != Edge("a", "b")
    assert Node("a") == Node("a", {})
