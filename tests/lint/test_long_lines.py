"""Lint of a graph on one very long line: work grows with the text, not with its square."""

from attractor_nb.languages.dot import parse_dot
from attractor_nb.lint import source_places, validate


def test_the_end_of_the_text_is_looked_up_once_for_all_findings():
    chain = " -> ".join(f"n{number}" for number in range(2_000))
    source_places._end_of_graph.cache_clear()
    findings = validate(
        parse_dot(f"digraph {{ start [shape=Mdiamond] exit [shape=Msquare] start -> {chain} -> exit }}")
    )
    implicit = [finding for finding in findings if finding.rule == "implicit_node"]
    assert len(implicit) == 2_000
    assert all(finding.fix.edits for finding in implicit)
    assert source_places._end_of_graph.cache_info().misses == 1
