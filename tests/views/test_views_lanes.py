"""Lanes: what stands between a fan-out and its join, branch by branch."""

from attractor_nb.decisions.branch_policies import joins_of
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.states import NodeStatus
from attractor_nb.views.drawings.branch_stacks import lanes_of
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.state import NodeState

MAX_LANES = 16

FRAME = "start [shape=Mdiamond] done [shape=Msquare] fan [shape=component] join [shape=tripleoctagon]"


def graph(text):
    return parse_dot(f"digraph g {{ {FRAME} start -> fan join -> done {text} }}")


def found_lanes(drawn):
    return lanes_of(drawn, joins_of(drawn))


def lanes(text):
    return {f"{lane.fan_out}/{lane.id}": sorted(lane.members) for lane in found_lanes(graph(text))}


def test_a_lane_holds_all_stages_of_its_branch_and_nothing_outside():
    found = lanes("a [prompt=x] b [prompt=x] c [prompt=x] fan -> a -> c -> join fan -> b -> join")
    assert found == {"fan/a": ["a", "c"], "fan/b": ["b"]}


def test_what_two_branches_lead_to_is_in_no_lane():
    found = lanes("a [prompt=x] b [prompt=x] x [prompt=x] fan -> a -> x -> join fan -> b -> x")
    assert found == {"fan/a": ["a"], "fan/b": ["b"]}


def test_a_fan_out_within_a_branch_has_lanes_within_its_lane():
    inner = "in [shape=component] p [prompt=x] q [prompt=x] meet [shape=tripleoctagon] b [prompt=x]"
    found = lanes(f"{inner} fan -> in -> p -> meet in -> q -> meet -> join fan -> b -> join")
    assert found == {"fan/in": ["in", "meet", "p", "q"], "fan/b": ["b"], "in/p": ["p"], "in/q": ["q"]}


def test_branches_that_run_to_their_ends_have_lanes_without_the_exit():
    text = "start [shape=Mdiamond] done [shape=Msquare] fan [shape=component] a [prompt=x] b [prompt=x]"
    found = found_lanes(parse_dot(f"digraph g {{ {text} start -> fan fan -> a -> done fan -> b }}"))
    assert [sorted(lane.members) for lane in found] == [["a"], ["b"]]


def many(count):
    return "".join(f"b{number} [prompt=x] fan -> b{number} -> join " for number in range(count))


def test_many_branches_have_no_lanes():
    assert len(lanes(many(MAX_LANES))) == MAX_LANES
    assert lanes(many(MAX_LANES + 1)) == {}


def test_lanes_are_drawn_behind_the_nodes_with_their_branch_as_tooltip():
    svg = render_svg(graph(many(4)))
    assert svg.count('class="lane"') == 4
    assert "<title>branch b2 of fan</title>" in svg
    assert svg.index('class="lane"') < svg.index('class="edge"')
    assert "panel-title" not in svg.split("</style>")[1]


def test_a_lane_that_a_subgraph_cuts_is_left_out():
    cut = 'a [prompt=x] b [prompt=x] c [prompt=x] subgraph s { label="Part" c b } '
    svg = render_svg(graph(cut + "fan -> a -> c -> join fan -> b -> join"))
    assert (svg.count('class="lane"'), svg.count('class="panel"')) == (1, 1)


def test_a_label_cannot_leave_the_tooltip_of_its_lane():
    svg = render_svg(graph('fan -> a -> join fan -> b -> join a [label="<script>"] b [prompt=x]'))
    assert "<script>" not in svg


def test_a_fan_out_shows_progress_policy_and_join():
    state = NodeState(NodeStatus.RUNNING, progress="2/4", note="wait_all: 1 of 4, 1 failed")
    svg = render_svg(graph(many(4)), states={"fan": state})
    assert ">2/4</text>" in svg
    assert ">wait_all: 1 of 4, 1 failed</text>" in svg
    assert "branches meet at join" in svg


def test_a_fan_out_without_a_join_says_so():
    text = "start [shape=Mdiamond] done [shape=Msquare] fan [shape=component] a [prompt=x] b [prompt=x]"
    svg = render_svg(parse_dot(f"digraph g {{ {text} start -> fan fan -> a -> done fan -> b }}"))
    assert "no join: branches run to their ends" in svg
