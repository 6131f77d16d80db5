"""Writers: what is written reads back as the same, and plain Graphviz takes it."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor_nb.languages.dot import parse_dot, read_dot, write_dot
from attractor_nb.languages.dot.writer import quote, spell, text_of, value_of
from attractor_nb.model.graph import Edge, Graph, Node

IDS = st.sampled_from(["a", "b", "implement", "implment", "ship_it", "fixes", "Review2", "_x", "start"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
STRINGS = st.one_of(
    TEXTS,
    st.text(alphabet='\\"nt\n\t\rl x', max_size=10),
    st.sampled_from(["true", "3", "900s", "Loop A", "node", "a_b", "", "x.y", "-1.5"]),
)
BARE = st.sampled_from(
    [
        "true",
        "false",
        "box",
        "Mdiamond",
        "3",
        "-1",
        "007",
        "0.5",
        "-.25",
        "15m",
        "0s",
        "1d",
        "gpt-5.2",
        "True",
        "1e5",
        "9" * 18,
        "0.0000001",
        "123456789.125",
    ]
)
LITERALS = st.one_of(STRINGS.map(quote), BARE)
NAMES = st.sampled_from(
    [
        "label",
        "shape",
        "class",
        "timeout",
        "max_retries",
        "goal_gate",
        "weight",
        "condition",
        "join_quorum",
        "human.timeout",
        '"human.default_choice"',
        "my_own",
        "x.y.z",
        "default_max_retry",
        "goal",
        "rank",
    ]
)
SEPARATORS = st.sampled_from([", ", ",\n", "; ", "\n", " ", " /* c */ ", " /* c */ , ", ", // c\n", "\n# c\n"])
BETWEEN = st.sampled_from([" ", "\n", ";\n", " // c\n", "\n\n/* c */\n", "; # c\n"])


@st.composite
def blocks(draw: st.DrawFn) -> str:
    attrs = [f"{draw(NAMES)}={draw(LITERALS)}" for _ in range(draw(st.integers(0, 3)))]
    return "[" + "".join(attr + draw(SEPARATORS) for attr in attrs[:-1]) + "".join(attrs[-1:]) + "]"


@st.composite
def statements(draw: st.DrawFn, depth: int) -> str:
    kind = draw(st.sampled_from(["node", "node", "edge", "defaults", "edge defaults", "graph", "decl", "group"]))
    optional = st.one_of(st.just(""), blocks())
    if kind == "node":
        return f"{draw(IDS)} {draw(optional)}"
    if kind == "edge":
        return " -> ".join(draw(st.lists(IDS, min_size=2, max_size=4))) + draw(optional)
    if kind == "defaults":
        return f"node {draw(blocks())}"
    if kind == "edge defaults":
        return f"edge {draw(blocks())}"
    if kind == "graph":
        return f"graph {draw(blocks())}"
    if kind == "decl" or depth == 0:
        return f"{draw(NAMES)} = {draw(LITERALS)}"
    head = draw(st.sampled_from(["subgraph cluster_1 ", "subgraph x ", "subgraph ", ""]))
    return f"{head}{{ {draw(bodies(depth - 1))} }}"


@st.composite
def bodies(draw: st.DrawFn, depth: int) -> str:
    return "".join(draw(statements(depth)) + draw(BETWEEN) for _ in range(draw(st.integers(0, 5))))


@st.composite
def sources(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(["G ", "", '"My graph" ']))
    return f"// head\ndigraph {name}{{ {draw(bodies(2))} }} // foot\n"


def exact(graph: Graph) -> object:
    """The graph with the types of its values, which ``==`` alone does not tell apart (1 and True)."""

    def typed(attrs: object) -> object:
        return {name: (type(value), value) for name, value in dict(attrs).items()}  # type: ignore[call-overload]

    return (
        graph,
        list(graph.nodes),
        typed(graph.attrs),
        [(node.explicit, node.is_implicit, typed(node.attrs)) for node in graph.nodes.values()],
        [typed(edge.attrs) for edge in graph.edges],
        [(group, typed(group.attrs)) for group in graph.subgraphs],
    )


@given(sources())
@settings(max_examples=300)
def test_a_graph_written_and_read_is_the_same_graph(source: str) -> None:
    graph = parse_dot(source)
    written = read_dot(write_dot(graph))

    assert exact(written.graph) == exact(graph)
    assert written.diagnostics == ()
    assert write_dot(written.graph) == write_dot(graph)


@given(STRINGS)
def test_a_quoted_text_reads_back_as_itself(text: str) -> None:
    assert text_of(quote(text)) == text


@given(
    st.one_of(STRINGS, st.booleans(), st.integers(-(10**17), 10**17), st.floats(allow_nan=False, allow_infinity=False))
)
def test_a_spelled_value_reads_back_as_itself(value: object) -> None:
    again = value_of(spell(value))  # type: ignore[arg-type]

    assert (type(again), again) == (type(value), value)


def take_by_graphviz(text: str, *options: str) -> subprocess.CompletedProcess[str]:
    dot = shutil.which("dot")
    if dot is None:
        pytest.skip("Graphviz is not installed")
    return subprocess.run([dot, *options], input=text, capture_output=True, text=True, check=False, timeout=30)


@given(sources())
@settings(max_examples=25)
def test_plain_graphviz_takes_what_we_write(source: str) -> None:
    taken = take_by_graphviz(write_dot(parse_dot(source)), "-Tcanon")

    assert taken.returncode == 0
    # Not by lines: a shape's name, which Graphviz repeats, may hold a line end.
    warnings = re.split(r"^(?=Warning: |Error: )", taken.stderr, flags=re.MULTILINE)
    assert [warning for warning in warnings if warning and "unknown shape" not in warning] == []


DEMO = """// head
digraph Demo { // main
    graph [goal="Build \\"it\\"\\nnow", default_max_retry=3]

    # old comment
    node [timeout="900s"]
    start [shape=Mdiamond]; exit [shape=Msquare]
    a [ // attributes
        label="A" // the label
        human.timeout=5m /* both
        lines */
        # last
    ]


    subgraph cluster_x { label="Loop A"
        { rank=same; "plan" }
        // nothing more
    }
    node [llm_model=gpt-5.2]
    b
    start /* in the head */ -> a -> b -> exit [label="to exit"] // why
    b -> plan -> a
    // end
}
// foot
"""


def test_the_demo_is_drawn_by_plain_graphviz_without_a_warning() -> None:
    taken = take_by_graphviz(write_dot(parse_dot(DEMO)), "-Tsvg")

    assert (taken.returncode, taken.stderr) == (0, "")
    assert "<svg" in taken.stdout


def test_the_canonical_text_of_the_demo() -> None:
    assert (
        write_dot(parse_dot(DEMO))
        == """digraph Demo {
    graph [goal="Build \\"it\\"\\nnow", default_max_retries=3]
    node [timeout="15m"]
    start [shape=Mdiamond]
    exit [shape=Msquare]
    a [label=A, "human.timeout"="5m"]
    subgraph cluster_x {
        graph [label="Loop A"]
        subgraph {
            graph [rank=same]
            plan
        }
    }
    subgraph {
        node [llm_model="gpt-5.2"]
        b
    }

    start -> a [label="to exit"]
    a -> b [label="to exit"]
    b -> exit [label="to exit"]
    b -> plan
    plan -> a
}
"""
    )


def test_long_attribute_lists_are_written_one_a_line() -> None:
    graph = parse_dot('digraph G { a [label="' + "long " * 20 + '", shape=box] }')

    assert write_dot(graph).splitlines()[1:-1] == [
        "    a [",
        f'        label="{"long " * 20}",',
        "        shape=box",
        "    ]",
    ]


def test_nodes_that_inherit_different_defaults_get_a_scope_each() -> None:
    graph = parse_dot("digraph G { n; node [class=a] x; y; node [class=b] z [label=Z] }")

    assert write_dot(graph).splitlines()[1:-1] == [
        "    n",
        "    subgraph {",
        "        node [class=a]",
        "        x",
        "        y",
        "    }",
        "    subgraph {",
        "        node [class=b]",
        "        z [label=Z]",
        "    }",
    ]


def test_a_graph_made_by_hand_with_a_wild_id_is_still_well_formed() -> None:
    graph = Graph("g h", nodes={"my node": Node("my node")}, edges=(Edge("my node", "x"),))

    assert take_by_graphviz(write_dot(graph), "-Tcanon").returncode == 0


def test_an_implicit_node_that_a_transform_gave_attributes_is_declared() -> None:
    graph = parse_dot("digraph G { start; finish; start -> implied -> finish }")
    changed = graph.with_nodes([graph.nodes["implied"].with_attrs({"prompt": "go"}, explicit=True)])
    written = parse_dot(write_dot(changed))

    assert written.nodes["implied"].prompt == "go"
    assert written.nodes["implied"].is_implicit is False


def test_members_that_no_longer_match_the_order_of_nodes_are_still_members() -> None:
    graph = parse_dot("digraph G { subgraph x { a; b } c }")
    shuffled = replace(graph, nodes={name: graph.nodes[name] for name in ("b", "c", "a")})

    assert parse_dot(write_dot(shuffled)) == graph
