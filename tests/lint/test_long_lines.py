"""Lint of a graph on one very long line: work grows with the text, not with its square."""

from attractor_nb.languages.dot import parse_dot
from attractor_nb.languages.dot.writer import embed_value
from attractor_nb.lint import survey, validate
from attractor_nb.lint.rules import language_rules


def test_the_classes_of_a_node_are_placed_once(monkeypatch):
    """Each place was searched from the beginning, in a text that was read anew: 23 kB of classes took 5 s."""
    read = []
    monkeypatch.setattr(language_rules, "embed_value", lambda span: read.append(span) or embed_value(span))
    names = ", ".join(f"c{number}" for number in range(500))
    text = f'digraph {{ model_stylesheet=".used {{ llm_model: m }}" a [prompt=x, class="used, {names}"] }}'
    findings = [finding for finding in validate(parse_dot(text)) if finding.rule == "unused_class"]
    assert [finding.span.text for finding in findings] == [f"c{number}" for number in range(500)]
    assert len(read) == 1


def test_the_end_of_the_text_is_looked_up_once_for_all_findings():
    chain = " -> ".join(f"n{number}" for number in range(2_000))
    survey._end_of_graph.cache_clear()
    findings = validate(
        parse_dot(f"digraph {{ start [shape=Mdiamond] exit [shape=Msquare] start -> {chain} -> exit }}")
    )
    implicit = [finding for finding in findings if finding.rule == "implicit_node"]
    assert len(implicit) == 2_000
    assert all(finding.fix.edits for finding in implicit)
    assert survey._end_of_graph.cache_info().misses == 1
