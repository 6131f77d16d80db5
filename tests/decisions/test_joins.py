"""The joins of a fan-out's branches (ruling 22), from tables and against the definition."""

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.decisions import branch_policies
from attractor_nb.decisions.branch_policies import Join, branch_edges, joins_of, surroundings_of
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.graph import Edge, Graph, Node


def graph_of(edges, fan_ins=(), fan_outs=("fan",)):
    """A graph of ``"fan a, fan b, a join"``; the named nodes are fan-ins and fan-outs."""
    pairs = [tuple(pair.split()) for pair in edges.split(",")]
    shapes = dict.fromkeys(fan_ins, "tripleoctagon") | dict.fromkeys(fan_outs, "component")
    names = dict.fromkeys(name for pair in pairs for name in pair)
    nodes = {name: Node(name, {"shape": shapes.get(name, "box")}) for name in names}
    return Graph("g", nodes=nodes, edges=tuple(Edge(*pair) for pair in pairs))


@pytest.mark.parametrize(
    ("edges", "fan_ins", "join"),
    [
        ("fan a, fan b, a j, b j", ["j"], "j"),
        ("fan a, fan b, a near, b near, near far", ["near", "far"], "near"),
        ("fan a, fan b, a x, b x, x j", ["j"], "j"),
        ("fan a, fan b, a z, b z, z j, a k, b k", ["j", "k"], "k"),
        ("fan a, fan b, a k, b k, a j, b j", ["j", "k"], "j"),
        ("fan a, fan b, a k, b b2, b2 k, a a2, a2 j, b j", ["j", "k"], "j"),
        ("fan a, fan b, a mine, mine j, b j", ["mine", "j"], "j"),
        ("fan a, fan b, fan c, a j, b j, c k, j k", ["j", "k"], "k"),
        ("fan a, fan b, a a2, a2 a3, a3 j, b j", ["j"], "j"),
        ("fan a, fan j, a j", ["j"], "j"),
        ("fan a, a b, b j", ["j"], "j"),
    ],
    ids=[
        "the-one",
        "nearer-of-two",
        "behind-an-ordinary-node",
        "nearer-than-behind-an-ordinary-node",
        "equally-near-by-id",
        "equally-far-by-the-farther-branch",
        "not-one-of-one-branch-alone",
        "not-one-of-some-branches-alone",
        "branches-of-different-length",
        "a-branch-that-begins-there",
        "one-branch",
    ],
)
def test_ruling_22_the_join_is_the_nearest_fan_in_that_all_branches_lead_to(edges, fan_ins, join):
    assert joins_of(graph_of(edges, fan_ins))["fan"] == Join(join, is_fan_in=True)


@pytest.mark.parametrize(
    ("edges", "fan_ins", "join"),
    [
        ("fan a, fan b, a x, b x, x y", [], "x"),
        ("fan a, fan b, a y, b y, a x, b x", [], "x"),
        ("fan a, fan b, a x, b x, fan2 j, k j", ["j"], "x"),
        ("fan a, fan b, a x, b x, a j", ["j"], "x"),
        ("fan a, fan b, a b, b x", [], "b"),
        ("fan a, a x", [], "a"),
    ],
    ids=[
        "the-nearest",
        "equally-near-by-id",
        "a-fan-in-that-none-leads-to",
        "a-fan-in-of-one-branch",
        "the-first-node-of-a-branch",
        "one-branch",
    ],
)
def test_ruling_22_without_a_common_fan_in_it_is_the_nearest_common_node(edges, fan_ins, join):
    assert joins_of(graph_of(edges, fan_ins))["fan"] == Join(join)


@pytest.mark.parametrize(
    "edges",
    ["fan a, fan b, a x, b y", "fan a, fan b, a x, b fan", "fan a, fan b, a fan, b fan", "x fan"],
    ids=["apart", "one-loops-back", "both-loop-back", "no-branches"],
)
def test_ruling_22_branches_that_have_no_node_in_common_have_no_join(edges):
    assert joins_of(graph_of(edges))["fan"] == Join("", is_fan_in=False)


def test_a_loop_back_to_the_fan_out_is_no_way_to_a_join():
    loop = "fan a, fan b, fan c, c j, a x, x fan, b x"
    assert joins_of(graph_of(loop, ["j"]))["fan"] == Join()


def test_a_loop_within_a_branch_ends_nowhere():
    assert joins_of(graph_of("fan a, fan b, a a2, a2 a, a2 j, b b, b j", ["j"]))["fan"].node_id == "j"


def test_nested_fan_outs_have_joins_of_their_own():
    edges = "fan in, fan b, in x, in y, x k, y k, k j, b j"
    graph = graph_of(edges, ["j", "k"], ["fan", "in"])
    assert joins_of(graph) == {"fan": Join("j", is_fan_in=True), "in": Join("k", is_fan_in=True)}


def test_an_edge_with_a_condition_begins_no_branch():
    graph = parse_dot(
        'digraph { fan [shape=component] a b x fan -> a fan -> x [condition="outcome=fail"] fan -> b a -> x b -> x }'
    )
    assert [edge.target for edge in branch_edges(graph, "fan")] == ["a", "b"]
    assert joins_of(graph)["fan"] == Join("x")


NAMES = "abcdefgh"
GRAPHS = st.tuples(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from([*NAMES, "fan"])), max_size=16),
    st.sets(st.sampled_from(NAMES), max_size=4),
)


def distances(graph, start):
    """Edges from a branch's first node to each node, on ways that avoid the fan-out."""
    found, level = {start: 0}, [start]
    for name in level:
        for edge in graph.outgoing_edges(name):
            if edge.target not in found and edge.target != "fan":
                found[edge.target] = found[name] + 1
                level.append(edge.target)
    return found


@given(GRAPHS)
def test_ruling_22_the_join_of_any_graph_is_the_one_of_the_definition(drawn):
    starts, pairs, fan_ins = drawn
    shapes = dict.fromkeys(fan_ins, "tripleoctagon") | {"fan": "component"}
    nodes = {name: Node(name, {"shape": shapes.get(name, "box")}) for name in [*NAMES, "fan"]}
    edges = [Edge("fan", start) for start in starts] + [Edge(*pair) for pair in pairs]
    graph = Graph("g", nodes=nodes, edges=tuple(edges))
    reached = [distances(graph, start) for start in starts]
    common = set.intersection(*(set(each) for each in reached))
    ranked = sorted((name not in fan_ins, max(each[name] for each in reached), name) for name in common)
    expected = Join(ranked[0][2], is_fan_in=not ranked[0][0]) if ranked else Join()
    assert joins_of(graph)["fan"] == expected


def wide(count):
    lines = [f"fan b{number}, b{number} c{number}, c{number} j" for number in range(count)]
    return graph_of(",".join(lines), ["j"])


def chained(count, fan_ins):
    """Fan-outs one after the other, each with two branches."""
    lines = [f"f{n} a{n}, f{n} b{n}, a{n} j{n}, b{n} j{n}, j{n} f{n + 1}" for n in range(count)]
    return graph_of(",".join(lines), fan_ins, [f"f{n}" for n in range(count)])


def effort(work):
    """Processor seconds of the fastest of three turns."""
    turns = []
    for _ in range(3):
        began = time.process_time()
        work()
        turns.append(time.process_time() - began)
    return max(min(turns), 0.001)


@pytest.mark.parametrize(
    "graphs",
    [
        pytest.param(wide, id="branches"),
        pytest.param(lambda n: chained(n, []), id="fan-outs-without-fan-in"),
        pytest.param(lambda n: chained(n, [f"j{n - 1}"]), id="fan-outs-with-one-far-fan-in"),
    ],
)
def test_joins_are_found_in_about_linear_time(graphs):
    small, large = graphs(500), graphs(8000)
    for graph in (small, large):
        assert all(join.node_id for join in joins_of(graph).values())  # what a graph keeps is there now
    assert effort(lambda: joins_of(large)) < 64 * effort(lambda: joins_of(small))  # linear: 16, square: 256


def shared_ways(count):
    """Fan-outs whose branches are side by side until the far fan-in; each begins one step further on."""
    lines = [f"f{n} x{n}, f{n} y{n}, x{n} x{n + 1}, y{n} y{n + 1}" for n in range(count)]
    return graph_of(",".join([*lines, f"x{count} j, y{count} j"]), ["j"], [f"f{n}" for n in range(count)])


def shared_tails(count):
    """Each fan-out has the next one and a tail as branches; the tails lead into one another."""
    lines = [f"f{n} f{n + 1}, f{n} x{n}, x{n} x{n + 1}" for n in range(count)]
    return graph_of(",".join([*lines, f"f{count} j, x{count} j"]), ["j"], [f"f{n}" for n in range(count)])


def shared_tails_in_a_loop(count):
    """The same, and the run begins again behind the fan-in."""
    graph = shared_tails(count)
    return Graph("g", nodes=graph.nodes, edges=(*graph.edges, Edge("j", "f0")))


def ways_without_fan_in(count, end=""):
    """Fan-outs on two ways side by side; each begins one step further on."""
    lines = [f"f{n} x{n}, f{n} y{n}, x{n} x{n + 1}, y{n} y{n + 1}" for n in range(count)]
    return graph_of(
        ",".join([*lines, *end.format(n=count).split(",")] if end else lines), [], [f"f{n}" for n in range(count)]
    )


def ways_that_end_apart(count):
    """The fan-outs have no join."""
    return ways_without_fan_in(count)


def ways_that_meet_at_their_end(count):
    """The join is an ordinary node."""
    return ways_without_fan_in(count, "x{n} z,y{n} z")


def ways_that_meet_and_go_on(count):
    """Behind the join there are two ways on."""
    return ways_without_fan_in(count, "x{n} z,y{n} z,z end,z more,more end")


def ends_beside_a_way(count):
    """Each fan-out has the next one and an end of its own as branches."""
    lines = [f"f{n} f{n + 1}, f{n} e{n}" for n in range(count)]
    return graph_of(",".join(lines), [], [f"f{n}" for n in range(count)])


def lines_executed(graph, join):
    """The number of executed lines of code that find the joins."""
    count = 0

    def trace(frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename == branch_policies.__file__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert {found.node_id for found in joins_of(graph).values()} == {join}
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("graphs", "join"),
    [
        (shared_ways, "j"),
        (shared_tails, "j"),
        (shared_tails_in_a_loop, "j"),
        (ways_that_end_apart, ""),
        (ways_that_meet_at_their_end, "z"),
        (ways_that_meet_and_go_on, "z"),
        (ends_beside_a_way, ""),
    ],
)
def test_fan_outs_that_share_their_tails_take_twice_the_steps_when_they_are_twice_as_many(graphs, join):
    # A way of twice the length takes one or two jumps more, so 2.4 in place of 2; the square would be 4.
    assert lines_executed(graphs(200), join) < 2.4 * lines_executed(graphs(100), join)


BEFORE = {
    "nothing-but-itself": ("fan a, fan b, a j, b j", "start fan"),
    "what-leads-to-it": ("plan fan, fan a, a j, j done", "start plan fan"),
    "what-a-branch-leads-back-to": ("plan fan, fan a, a j, a plan", "start plan fan"),
    "all-ways-to-it": ("x fan, x y, y fan, fan a, a j, a x, a y", "start x y fan"),
    "a-way-back-beside-the-branches": ("plan fan, fan a, a j, replan plan", "start plan replan fan"),
    "a-stage-within-that-is-jumped-to": ("plan fan, fan a, a j, mend a, j plan", "start plan fan"),
    "behind-the-join-in-a-loop": ("plan fan, fan a, a j, j review, review plan", "start plan review fan"),
    "a-way-back-of-a-branch-alone": ("plan fan, fan a, a j, a fix, fix plan", "start plan fan"),
    "a-node-of-both": ("plan fan, fan a, a j, plan fix, a fix, fix plan", "start plan fix fan"),
    "a-first-node-that-is-before-it": ("plan fan, fan plan, fan a, a j, plan j", "start plan fan"),
    "a-join-that-can-be-skipped-to": ("plan fan, plan j, fan a, a j, j plan", "start plan fan"),
    "an-outer-fan-out-and-its-branch": ("out o1, o1 fan, out o2, o2 k, fan a, a j, j k", "start out o1 fan"),
    "not-another-branch-of-it": ("out o1, o1 fan, out o2, o2 k, fan a, a j, a o2, j k", "start out o1 fan"),
}


@pytest.mark.parametrize(("edges", "before"), BEFORE.values(), ids=BEFORE)
def test_ruling_36_what_lies_before_a_fan_out(edges, before):
    first = edges.partition(" ")[0]
    graph = graph_of(f"start {first}, {edges}", ["j", "k"], ("fan", "out"))
    nodes = {**graph.nodes, "start": Node("start", {"shape": "Mdiamond"})}
    graph = Graph("g", nodes=nodes, edges=graph.edges)
    found = surroundings_of(graph, "fan", joins_of(graph)["fan"].node_id)
    assert found.before == {*before.split()}
    assert not found.before & found.within
    assert "j" not in found.before | found.within
