"""``evaluation.graph`` and ``evaluation.confusion``: rows by edge and stage, counted once, with their ids."""

import itertools
import re
import shutil

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import OptionError
from attractor_nb.evaluation import route, visits
from attractor_nb.model.outcome import StageStatus

TEXT = """digraph triage {
    inputs="ticket"
    start [shape=Mdiamond]
    triage [prompt="Which way? $ticket"]
    refund [prompt="refund"]
    escalate [prompt="escalate"]
    check [prompt="check"]
    done [shape=Msquare]
    start -> triage
    triage -> refund [label="refund"]
    triage -> escalate [label="escalate"]
    refund -> check
    escalate -> check
    check -> triage [label="again"]
    check -> done [label="fine"]
}"""


def answering(rounds):
    """Routes by the words of the ticket; a "loop" goes around ``rounds`` times."""
    checks = {}

    def answer(node, prompt, context):
        ticket = context["ticket"]
        if node.id == "triage":
            return Outcome(StageStatus.SUCCESS, preferred_label="refund" if "money" in ticket else "escalate")
        if node.id == "check":
            checks[ticket] = checks.get(ticket, 0) + 1
            if "broken" in ticket:
                return Outcome.fail("no answer")
            is_again = "loop" in ticket and checks[ticket] < rounds
            return Outcome(StageStatus.SUCCESS, preferred_label="again" if is_again else "fine")
        return ticket

    return answer


def good(row):
    return "good" in row["ticket"]


def evaluated(tmp_path, tickets, scorers=None, text=TEXT, backend=None, **options):
    pipeline = Pipeline(text, backend=backend or answering(3), runs_dir=tmp_path)
    rows = [{"id": f"r{number}", "ticket": f"{ticket} {number}"} for number, ticket in enumerate(tickets)]
    return pipeline.evaluate(rows, scorers or {"good": good}, wait=True, durability="fast", **options)


def by_ends(graph):
    return {(each.source, each.target): (each.passed, each.failed) for each in graph.edges}


def test_each_edge_has_the_rows_that_took_it_by_id(tmp_path):
    graph = evaluated(tmp_path, ["good money", "money", "good", "good money"]).graph()
    found = by_ends(graph)
    assert found["triage", "refund"] == (("r0", "r3"), ("r1",))
    assert found["triage", "escalate"] == (("r2",), ())
    assert found["check", "triage"] == ((), ())
    assert (graph["refund"].passed, graph["refund"].failed) == (("r0", "r3"), ("r1",))
    edge = graph.edges[1]
    assert (edge.words, edge.share) == ("2 of 3", pytest.approx(2 / 3))
    assert graph.edges[5].share is None


def test_a_loop_counts_a_row_once(tmp_path):
    found = by_ends(evaluated(tmp_path, ["good money loop", "money"]).graph())
    assert found["check", "triage"] == (("r0",), ())
    assert found["triage", "refund"] == (("r0",), ("r1",))


def test_branches_count_a_row_once_on_each_edge(tmp_path):
    text = """digraph both { inputs="ticket"
        start [shape=Mdiamond] fan [shape=component] a [prompt=a] b [prompt=b] join [shape=tripleoctagon]
        done [shape=Msquare]
        start -> fan; fan -> a -> join; fan -> b -> join; join -> done }"""
    found = by_ends(evaluated(tmp_path, ["good", "bad"], text=text).graph())
    assert set(found.values()) == {(("r0",), ("r1",))}
    assert len(found) == 6


def test_the_first_stage_at_which_rows_part_is_named_with_its_shares(tmp_path):
    graph = evaluated(tmp_path, ["good money"] * 8 + ["bad"] * 7 + ["good"]).graph()
    parting = graph.parting
    assert (parting.node, parting.passed, parting.failed, parting.is_decided) == ("triage", 9, 7, True)
    assert [(way.target, len(way.passed), len(way.failed)) for way in parting.ways] == [
        ("escalate", 1, 7),
        ("refund", 8, 0),
    ]
    assert graph.words.startswith(
        "Passing and failing rows first part at triage: 7 of 7 failing rows and 1 of 9 passing rows took escalate (p = "
    )
    assert re.search(r'class="node [^"]*parting[^"]*" data-node="triage"', graph.to_svg())
    assert graph.to_svg().count("parting") > graph.to_svg().count("none parting")


def test_a_difference_that_may_be_chance_is_no_parting(tmp_path):
    graph = evaluated(tmp_path, ["good money", "good money", "bad"]).graph()
    assert graph.parting is not None
    assert not graph.parting.is_decided
    assert graph.words.startswith(
        "No stage clearly parts passing and failing rows. The largest difference is at triage"
    )
    assert not re.search(r'class="node [^"]*parting', graph.to_svg())


def test_rows_whose_pipeline_failed_part_where_they_ended(tmp_path):
    graph = evaluated(tmp_path, ["good money"] * 8 + ["money broken"] * 8).graph()
    assert graph.parting.node == "check"
    assert graph.parting.ways[0].target == ""
    assert "8 of 8 failing rows and 0 of 8 passing rows ended there" in graph.words
    assert graph["done"].failed == ()


@pytest.mark.parametrize(
    ("tickets", "words"),
    [(["good", "good"], "No row fails."), (["bad"], "No row passes."), (["good", "bad"], "took the same ways.")],
)
def test_nothing_parts_where_nothing_differs(tmp_path, tickets, words):
    graph = evaluated(tmp_path, tickets).graph()
    assert graph.parting is None
    assert graph.words.endswith(words)


def test_unmeasured_rows_are_left_out_and_said(tmp_path):
    def picky(row):
        if row["id"] == "r1":
            raise ValueError("no idea")
        return True

    graph = evaluated(tmp_path, ["money"] * 3, picky).graph()
    assert graph.passed == ("r0", "r2")
    assert graph.notes == ("left out, without a score: r1",)
    assert "left out" in str(graph)


def test_a_row_whose_run_is_gone_is_left_out_and_said(tmp_path):
    evaluation = evaluated(tmp_path, ["good money", "good", "money"])
    shutil.rmtree(evaluation.directory / "row-00001")
    graph = evaluation.graph()
    assert (graph.passed, graph.failed) == (("r0",), ("r2",))
    assert graph["escalate"].passed == ()
    assert graph.notes == ("left out, without a run that can be read: r1",)


def test_of_a_failing_row_only_the_failing_runs_show_their_way(tmp_path):
    turns = itertools.count()

    def answer(node, prompt, context):
        if node.id == "triage":
            return Outcome(StageStatus.SUCCESS, preferred_label="refund" if next(turns) % 2 else "escalate")
        return Outcome(StageStatus.SUCCESS, preferred_label="fine")

    def refunded(run):
        return "refund" in run.result(0.0).completed_nodes

    evaluation = evaluated(tmp_path, ["a"], {"refunded": refunded}, backend=answer, repeat=4, max_parallel=1)
    found = by_ends(evaluation.graph())
    assert found["triage", "escalate"] == ((), ("r0",))
    assert found["triage", "refund"] == ((), ())


def test_the_score_is_chosen_by_name_and_must_be_pass_or_fail(tmp_path):
    evaluation = evaluated(
        tmp_path, ["good", "bad"], {"size": lambda output: 3.5, "good": good, "never": lambda: False}
    )
    assert evaluation.graph().score == "good"
    assert evaluation.graph("never").passed == ()
    with pytest.raises(OptionError, match="size is a number, and a graph shows which rows pass"):
        evaluation.graph("size")
    with pytest.raises(OptionError, match="has no score 'goof'; did you mean \"good\""):
        evaluation.graph("goof")


def test_a_node_that_is_not_there_has_no_rows(tmp_path):
    graph = evaluated(tmp_path, ["good"]).graph()
    with pytest.raises(OptionError, match=r"^the pipeline has no node 'refnud'; did you mean \"refund\"\?"):
        graph["refnud"]


def test_each_run_is_read_once(tmp_path, monkeypatch):
    from attractor_nb.maps import map_launch

    evaluation = evaluated(tmp_path, ["good money loop"] * 5 + ["bad"] * 5)
    read = []
    load = map_launch.load_execution
    monkeypatch.setattr(map_launch, "load_execution", lambda place, *of: read.append(place.name) or load(place, *of))
    evaluation.graph()
    assert sorted(read) == [f"row-{number:05}" for number in range(10)]


def test_the_drawing_has_counts_and_ids_and_escapes_them(tmp_path):
    pipeline = Pipeline(TEXT, backend=answering(1), runs_dir=tmp_path)
    rows = [{"id": "<b>1</b>", "ticket": "money"}, {"id": "2", "ticket": "good money"}]
    bundle = pipeline.evaluate(rows, {"good": good}, wait=True).graph()._repr_mimebundle_()
    assert "<b>" not in bundle["text/html"]
    assert "<b>" not in bundle["image/svg+xml"]
    assert "&lt;b&gt;1&lt;/b&gt;" in bundle["image/svg+xml"]
    assert "1 of 2" in bundle["image/svg+xml"]
    assert "triage  refund" in bundle["text/plain"]


# -- what a router chose ---------------------------------------------------------------------------------------


def routed(tmp_path, rows, **options):
    pipeline = Pipeline(TEXT, backend=answering(1), runs_dir=tmp_path)
    return pipeline.evaluate(rows, {"any": lambda output: True}, wait=True, **options)


ROUTED = [
    {"id": "a", "ticket": "money", "expected": "refund"},
    {"id": "b", "ticket": "money", "expected": "escalate"},
    {"id": "c", "ticket": "help", "expected": "escalate"},
    {"id": "d", "ticket": "money back", "expected": "refund"},
    {"id": "e", "ticket": "?"},
]


def test_a_confusion_counts_chosen_by_right_ways_and_has_the_ids(tmp_path):
    confusion = routed(tmp_path, ROUTED).confusion("triage")
    assert confusion["refund", "refund"] == ("a", "d")
    assert confusion["refund", "escalate"] == ("b",)
    assert confusion["escalate", "refund"] == ()
    assert (confusion.right, confusion.count) == (3, 4)
    assert str(confusion).split("\n\n") == [
        "3 of 4 runs took the right way at triage",
        "right     escalate  refund\nescalate         1       1\nrefund                   2",
        'left out, without "expected": e',
    ]


def test_a_confusion_counts_each_repeat_and_takes_another_column(tmp_path):
    rows = [{**row, "way": row.get("expected", "escalate")} for row in ROUTED]
    confusion = routed(tmp_path, rows, repeat=2).confusion("triage", "way")
    assert confusion["refund", "refund"] == ("a", "a", "d", "d")
    assert confusion.count == 10


def test_ways_within_branches_are_seen(tmp_path):
    """Nodes of branches are not among the completed nodes of a run, which are those of its own path."""
    text = """digraph both {
        inputs="ticket"
        start [shape=Mdiamond]
        split [shape=component]
        triage [prompt="Which way? $ticket"]
        refund [prompt="Refund."]
        escalate [prompt="Escalate."]
        other [prompt="Something else"]
        join [shape=tripleoctagon]
        done [shape=Msquare]
        start -> split
        split -> triage
        split -> other
        triage -> refund [label="refund"]
        triage -> escalate [label="escalate"]
        refund -> join
        escalate -> join
        other -> join
        join -> done
    }"""
    rows = [{**row, "team": row["expected"], "expected": "join"} for row in ROUTED if "expected" in row]
    pipeline = Pipeline(text, backend=answering(1), runs_dir=tmp_path)
    at = {"way": route("triage", "team"), "end": route("other"), "split": route("split")}
    scorers = {**at, "visits": visits("triage")}
    evaluation = pipeline.evaluate(rows, scorers, wait=True)
    assert [row.scores["way"][0].value for row in evaluation] == [True, False, True, True]
    assert [row.scores["end"][0].value for row in evaluation] == [True] * 4
    assert [row.scores["split"][0].value for row in evaluation] == [True] * 4
    assert [row.scores["visits"][0].value for row in evaluation] == [1] * 4
    confusion = evaluation.confusion("triage", "team")
    assert confusion["refund", "escalate"] == ("b",)
    assert (confusion.right, confusion.count) == (3, 4)
    graph = evaluation.graph("way")
    assert [edge.words for edge in graph.edges if edge.source == "triage"] == ["2 of 3", "1 of 1"]


def test_a_confusion_of_an_unknown_node_or_column_is_refused(tmp_path):
    evaluation = routed(tmp_path, ROUTED)
    with pytest.raises(OptionError, match="has no node 'traige'; did you mean \"triage\""):
        evaluation.confusion("traige")
    with pytest.raises(OptionError, match="has no column 'expectd'; did you mean \"expected\""):
        evaluation.confusion("triage", "expectd")
