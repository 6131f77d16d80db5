"""The meaning of the word at a place of a text, and the node that it names."""

import pytest

from attractor_nb import Pipeline
from attractor_nb.languages.dot import parse_syntax
from attractor_nb.source import SourceText
from attractor_nb.studio.edit.editor import edits_between, references
from attractor_nb.studio.edit.word_meanings import meaning_at, node_at
from tests.word_meanings import BEGINNINGS, MEANINGS, PROSE, TEXT

PIPELINE = Pipeline(TEXT)


def meaning(text, graph=PIPELINE.graph, inputs=PIPELINE.inputs):
    found = meaning_at(TEXT, TEXT.index(text) + 1, graph, inputs)
    return list(found.lines) if found else []


@pytest.mark.parametrize("text", MEANINGS)
def test_a_word_means_what_it_means_in_jupyterlab(text):
    assert meaning(text) == MEANINGS[text]


@pytest.mark.parametrize("text", BEGINNINGS)
def test_an_attribute_has_the_meaning_of_the_table(text):
    name, words = meaning(text)
    assert name.startswith(BEGINNINGS[text])
    assert words


@pytest.mark.parametrize("text", PROSE)
def test_words_of_a_prompt_are_prose(text):
    assert meaning(text) == []


def test_the_place_of_a_meaning_is_the_word():
    found = meaning_at(TEXT, TEXT.index("${plan"), PIPELINE.graph)
    assert TEXT[found.start : found.end] == "${plan.response:tail 400}"


def test_a_text_that_does_not_parse_has_the_meanings_of_the_language():
    assert meaning("Mdiamond", graph=None) == MEANINGS["Mdiamond"]
    assert meaning("${tool", graph=None) == MEANINGS["${tool"]
    assert meaning("plan ->", graph=None) == []
    assert meaning_at('digraph { a [prompt="Say $goal', 29).lines == ("goal (variable)", "the goal of the graph")


def test_a_meaning_repeats_no_secret():
    key = "sk-" + "a1B2" * 10
    pipeline = Pipeline(f'digraph {{ start [shape=Mdiamond, label="{key}"] done [shape=Msquare] start -> done }}')
    found = meaning_at(pipeline.written, 10, pipeline.graph)
    assert found.lines[1:] == ("to done",)
    assert key not in found.lines[0]


@pytest.mark.parametrize(
    ("text", "named"),
    [("plan ->", "plan"), ("plan {", "plan"), ("${plan", None), ("write, class", "write"), ("fast {", None), ("goal=", None)],
)  # fmt: skip
def test_a_node_is_named_by_its_id(text, named):
    found = node_at(TEXT, TEXT.index(text), PIPELINE.graph)
    assert (found and found.node_id) == (named or ("plan" if text == "${plan" else None))
    assert found is None or TEXT[found.start : found.end] == found.node_id


def test_references_are_the_places_that_a_renaming_changes():
    places = references(parse_syntax(SourceText(TEXT)), "plan")
    assert [span.text for span in places] == ["plan"] * 5
    renamed = PIPELINE.edit().rename("plan", "think").source
    assert [edit.span for edit in edits_between(SourceText(TEXT), renamed)] == places
    shifted = "".join(
        TEXT[start:end] + ("think" if end < len(TEXT) else "")
        for start, end in zip([0, *(at.end for at in places)], [*(at.start for at in places), len(TEXT)], strict=True)
    )
    assert shifted == renamed
