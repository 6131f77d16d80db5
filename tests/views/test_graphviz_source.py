"""A graph for Graphviz: real `dot` draws it, and a hostile graph gets nothing read, linked or hidden."""

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from xml.etree import ElementTree as ET

import graphviz
import pytest
from graphviz.backend import dot_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attractor_nb import Pipeline
from attractor_nb.cli.option_choices import Engine
from attractor_nb.errors import OptionError
from attractor_nb.extras import install_command
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.graph import with_texts
from attractor_nb.views import graphviz_source as module
from attractor_nb.views.graphviz_source import PASSED_ON, graphviz_source

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.dot"))
REVIEW = """digraph Review {
    graph [label="Review of texts"]
    start [shape=Mdiamond] done [shape=Msquare]
    subgraph cluster_a { label="Writing"  plan [prompt="Plan it"] test [shape=parallelogram, tool_command="make", goal_gate=true] }
    gate [shape=hexagon, label="Is it good?"]
    start -> plan -> test -> gate
    test -> plan [condition="outcome=fail", loop_restart=true]
    gate -> done [label="[Y] Yes", color=red]  gate -> plan [label="[N] No"]
}"""
NAMES = {
    *("label", "shape", "style", "fillcolor", "color", "tooltip", "labeltooltip", "peripheries"),
    *("fontname", "fontcolor", "fontsize", "labelloc", "labeljust", "overlap", "arrowsize", "bgcolor"),
}
"""The attributes that this package writes itself."""


def drawn(source):
    """What Graphviz has read: its own JSON, without places."""
    done = subprocess.run(["dot", "-Tdot_json"], input=source.source, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


def texts(picture):
    return ["".join(each.itertext()) for each in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


def test_a_source_of_the_graphviz_package_is_returned():
    source = Pipeline(REVIEW).to_graphviz()
    assert isinstance(source, graphviz.Source)
    assert source.pipe("svg", encoding="utf-8").startswith("<?xml")
    assert source._repr_mimebundle_().keys() == {"image/svg+xml"}


@pytest.mark.parametrize("engine", [each.value for each in Engine])
def test_each_engine_draws_each_node(engine):
    shown = texts(Pipeline(REVIEW).to_graphviz().pipe("svg", engine=engine))
    assert {"start", "plan", "test", "Is it good?", "done"} <= set(shown)


def test_the_command_line_offers_every_engine_of_the_package_that_lays_out():
    assert {each.value for each in Engine} == graphviz.ENGINES


def test_attributes_are_those_of_graphviz():
    read = drawn(Pipeline(REVIEW).to_graphviz())
    nodes = {each["name"]: each for each in read["objects"] if "nodes" not in each}
    assert read["label"] == "Review of texts"
    assert {name: node["shape"] for name, node in nodes.items()} == {
        "start": "Mdiamond",
        "plan": "box",
        "test": "parallelogram",
        "gate": "hexagon",
        "done": "Msquare",
    }
    assert nodes["test"]["peripheries"] == "2"
    assert "peripheries" not in nodes["plan"]
    assert "Plan it" in nodes["plan"]["tooltip"]
    assert [each["label"] for each in read["objects"] if each["name"] == "cluster_0"] == ["Writing"]
    edges = [(each.get("label", ""), each.get("style", ""), each["color"]) for each in read["edges"]]
    assert ("outcome=fail", "dashed", "#848d97") in edges
    assert ("[Y] Yes", "", "red") in edges


def test_a_label_and_a_condition_are_both_shown():
    text = 'digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done [label="Go", condition="outcome=success"] }'
    assert [each["label"] for each in drawn(Pipeline(text).to_graphviz())["edges"]] == [r"Go\noutcome=success"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_graphviz_draws_every_example_without_a_warning(path):
    source = Pipeline(path).to_graphviz()
    done = subprocess.run(["dot", "-Tsvg"], input=source.source, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_an_undeclared_target_is_drawn_as_such():
    read = drawn(graphviz_source(parse_dot("digraph { start [shape=Mdiamond] start -> gone }")))
    assert [each["tooltip"] for each in read["objects"] if each["name"] == "gone"] == ["not declared"]


# -- hostile graphs ------------------------------------------------------------------------------------

HOSTILE = r"""digraph "../../../tmp/x" {
    graph [imagepath="/etc", fontpath="/etc", stylesheet="http://evil.example/x.css", layout=neato, URL="http://evil.example"]
    node [image="/etc/passwd", shapefile="/etc/passwd", URL="http://evil.example", href="javascript:alert(1)", target=_top]
    start [shape=Mdiamond, label="<<IMG SRC=\"/etc/passwd\"/>>"]
    plan [shape=custom, label="<b>\"] evil [image=\"/etc/passwd\"] //", fontname="/etc/passwd", style=invis]
    other [shape=epsf, label="\\N \\G & &lt; \\", color="red\" URL=\"x", penwidth=2]
    done [shape=Msquare, xlabel="<<IMG SRC=\"/etc/passwd\"/>>"]
    start -> plan -> other -> done [edgeURL="http://evil.example", headhref="x", labelURL="x", label="<<U>x</U>>"]
}"""


def test_no_attribute_of_a_foreign_graph_reads_a_file_links_or_hides():
    source = Pipeline(HOSTILE).to_graphviz()
    read = drawn(source)
    written = [read, *read["objects"], *read["edges"]]
    ours = {"name", "_gvid", "directed", "strict", "_subgraph_cnt", "objects", "edges", "head", "tail"}
    names = {name for each in written for name in each if each[name] != ""} - ours
    assert names <= NAMES | PASSED_ON
    assert not {"image", "shapefile", "URL", "href", "imagepath", "fontpath", "layout", "xlabel"} & names
    assert [each["name"] for each in read["objects"]] == ["start", "plan", "other", "done"]
    assert not any(each.get("style") == "invis" or "/etc" in each.get("fontname", "") for each in read["objects"])
    assert {each["shape"] for each in read["objects"]} == {"Mdiamond", "box", "Msquare"}
    picture = source.pipe("svg", encoding="utf-8")
    links = [each.get("{http://www.w3.org/1999/xlink}href") for each in ET.fromstring(picture).iter()]
    assert set(links) == {None}
    assert "<image" not in picture


def test_graphviz_opens_no_file_that_a_hostile_graph_names(tmp_path):
    hostile = HOSTILE.replace("/etc/passwd", f"{tmp_path}/bait.png")
    (tmp_path / "bait.png").write_bytes(b"\x89PNG")
    opened = tmp_path / "opened"
    text = Pipeline(hostile).to_graphviz().source
    subprocess.run(
        ["strace", "-f", "-e", "trace=open,openat,stat,access,newfstatat", "-o", opened, "dot", "-Tpng"],
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    assert "bait" not in opened.read_text()
    assert "libgvc" in opened.read_text()


def test_the_labels_of_a_hostile_graph_are_shown_as_they_are():
    shown = " ".join(texts(Pipeline(HOSTILE).to_graphviz().pipe("svg"))).replace("\N{NO-BREAK SPACE}", " ")
    assert '<<IMG SRC="/etc/passwd"/>>' in shown
    assert "\\N \\G & &lt; \\" in shown
    assert "<<U>x</U>>" in shown


LABELS = st.text(st.sampled_from("ab \\\"<>&;#lNG{}|\n/'[]=-") | st.characters(exclude_categories=["Cs"]), max_size=40)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(LABELS, min_size=8, max_size=8))
def test_any_label_is_shown_with_its_characters(labels):
    graph = parse_dot(f"digraph {{ {' '.join(f'n{number}' for number in range(len(labels)))} }}")
    graph = with_texts(graph, {(f"n{number}", "label"): label for number, label in enumerate(labels)})
    read = drawn(graphviz_source(graph))
    for each, label in zip(read["objects"], labels, strict=True):
        assert each["label"] == module._lines(label or each["name"]).replace("\\", "\\\\").replace("\n", "\\n").replace(
            "&", "&amp;"
        )


def test_files_are_written_under_a_name_that_the_graph_does_not_choose(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written = Pipeline(HOSTILE).to_graphviz().render(format="svg")
    assert written == "pipeline.gv.svg"
    assert {path.name for path in tmp_path.iterdir()} == {"pipeline.gv", "pipeline.gv.svg"}


def test_secrets_are_not_drawn():
    text = 'digraph { start [shape=Mdiamond] a [prompt="use sk-proj-Zx8vQ2mN4kLp9RtY7wBc3DfG5hJ1"] done [shape=Msquare] start -> a -> done }'
    assert "sk-proj" not in Pipeline(text).to_graphviz().source


# -- where Graphviz is missing, or fails ---------------------------------------------------------------


@pytest.fixture
def binary(monkeypatch):
    monkeypatch.setattr(dot_command, "DOT_BINARY", dot_command.DOT_BINARY)


@pytest.mark.parametrize(
    "use",
    [
        lambda source: source.pipe("svg"),
        lambda source: source.render(),
        lambda source: source.view(),
        lambda source: source._repr_mimebundle_(),
    ],
    ids=["pipe", "render", "view", "display in a notebook"],
)
def test_without_graphviz_the_error_names_the_extra(use, binary, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(dot_command, "DOT_BINARY", Path("dot"))
    with pytest.raises(OptionError, match="Graphviz is not installed") as caught:
        use(Pipeline(REVIEW).to_graphviz())
    assert install_command("graphviz") in caught.value.hint


def test_without_dot_the_program_of_the_extra_beside_this_python_draws(binary, monkeypatch, tmp_path):
    (tmp_path / "graphviz-pure").symlink_to(shutil.which("dot"))
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert Pipeline(REVIEW).to_graphviz().pipe("svg").startswith(b"<?xml")
    assert dot_command.DOT_BINARY.name == "graphviz-pure"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "pcl"}, "unknown format"),
        ({"engine": "dott"}, "unknown engine"),
        ({"format": "cgimage"}, "cannot draw"),
    ],
)
def test_what_graphviz_refuses_is_our_error(options, words):
    with pytest.raises(OptionError, match=words):
        Pipeline(REVIEW).to_graphviz().pipe(**{"format": "svg", **options})
