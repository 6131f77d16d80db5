"""Attributes that other runners define, in their files (issue 35; ruling 5)."""

from pathlib import Path

import pytest

from attractor_nb import Pipeline
from attractor_nb.languages.dot import parse_dot
from attractor_nb.transforms import ForeignSubPipelines

TEXT = "digraph {{ start [shape=Mdiamond] sub [{attributes}] exit [shape=Msquare] start -> sub -> exit }}"
CHILD = "digraph { start [shape=Mdiamond] inner [prompt=Work] exit [shape=Msquare] start -> inner -> exit }"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("child.dot").write_text(CHILD)


def read(attributes):
    node = ForeignSubPipelines().apply(parse_dot(TEXT.format(attributes=attributes))).nodes["sub"]
    return node.handler_type, node.get("pipeline.dotfile", str, "")


@pytest.mark.parametrize(
    "attributes",
    [
        'shape=folder, dot_file="child.dot"',
        'dotfile="child.dot"',
        'label="A child", dot_file="child.dot"',
        'pipeline.dotfile="", dot_file="child.dot"',
    ],
)
def test_a_sub_pipeline_of_another_dialect_is_read_as_one(attributes):
    assert read(attributes) == ("pipeline", "child.dot")


@pytest.mark.parametrize(
    ("attributes", "handler_type"),
    [
        ('dot_file="child.dot", prompt="Describe it"', "codergen"),
        ('dot_file="child.dot", type="team.own"', "team.own"),
        ('dot_file="child.dot", shape=parallelogram', "tool"),
        ('dot_file=" "', "codergen"),
        ("shape=folder", "codergen"),
    ],
    ids=["a prompt", "a type", "a shape with a handler", "no name", "no file"],
)
def test_a_node_that_says_what_it_is_stays_that(attributes, handler_type):
    assert read(attributes) == (handler_type, "")


def test_it_runs_and_the_finding_offers_our_words():
    pipeline = Pipeline(TEXT.format(attributes='shape=folder, dot_file="child.dot"'))
    (finding,) = pipeline.diagnostics
    assert (finding.rule, finding.severity.name) == ("foreign_attribute", "WARNING")
    assert finding.message == '"dot_file" is read as "pipeline.dotfile": "sub" runs that pipeline'
    result = pipeline.run(wait=True, logs_root="run")
    assert result.status == "success"
    assert list(Path("run").glob("children/**/inner"))
    assert 'type=pipeline, pipeline.dotfile="child.dot"' in pipeline.fixed().to_dot()


def test_a_file_that_is_not_there_is_an_error_at_its_name():
    text = TEXT.format(attributes='shape=folder, dot_file="other.dot"')
    (finding,) = [found for found in Pipeline(text).diagnostics if found.is_error]
    assert finding.rule == "child_pipeline"
    assert finding.span.text == '"other.dot"'
