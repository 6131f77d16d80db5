"""``evaluation.export_html`` and ``comparison.export_html``: one file each, without network, everything escaped."""

import html
import json
import re
from html.parser import HTMLParser

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import OptionError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.outcome import StageStatus, Usage

TEXT = """digraph triage { label="Triage <of> tickets"
    inputs="ticket"
    start [shape=Mdiamond]
    route [prompt="Which way? $ticket"]
    refund [prompt="Pay $ticket"]
    escalate [prompt="Pass on $ticket"]
    done [shape=Msquare]
    start -> route
    route -> refund [label="refund"]
    route -> escalate [label="escalate"]
    refund -> done
    escalate -> done
}"""
ROWS = [
    {"id": "fine", "ticket": "money", "expected": "paid money"},
    {"id": "bad", "ticket": "help <script>alert(1)</script>", "expected": "paid <img src=x>"},
    {"id": "odd", "ticket": "odd", "expected": "paid odd"},
    {"id": "broken", "ticket": "broken money", "expected": "x"},
]


def answer(node, prompt, context):
    ticket = context["ticket"]
    if node.id == "route":
        return Outcome(StageStatus.SUCCESS, preferred_label="refund" if "money" in ticket else "escalate")
    if "broken" in ticket:
        return Outcome.fail("the bank said no")
    return Response(f"{'paid' if node.id == 'refund' else 'passed on'} {ticket}", usage=Usage(10, 5, 0.01, 1))


def correct(output, expected, row):
    if row["id"] == "odd":
        raise ValueError("no <b>idea</b>")
    return output == expected


def size(output):
    return len(output)


class Page(HTMLParser):
    """The tags of a page with their attributes, and the cells of its table of rows."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.in_cell = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag == "tr" and "data-status" in attrs:
            self.rows.append({"status": attrs["data-status"]})
        self.in_cell = attrs.get("data-label", "") if tag == "td" and "data-label" in attrs else self.in_cell

    def handle_endtag(self, tag):
        if tag == "td":
            self.in_cell = ""

    def handle_data(self, data):
        if self.in_cell and self.rows:
            self.rows[-1][self.in_cell] = self.rows[-1].get(self.in_cell, "") + data


@pytest.fixture
def evaluation(tmp_path):
    pipeline = Pipeline(TEXT, backend=answer, runs_dir=tmp_path / "runs")
    return pipeline.evaluate(ROWS, {"correct": correct, "size": size}, wait=True)


def exported(thing, tmp_path, **options):
    text = thing.export_html(tmp_path / "page.html", **options).read_text()
    return Page(text), text


def test_failures_come_first_then_the_unmeasured_then_what_passed(evaluation, tmp_path):
    page, text = exported(evaluation, tmp_path)
    found = [(row["row"], row["status"].split()[-1]) for row in page.rows]
    assert found == [("bad", "failed"), ("broken", "failed"), ("odd", "unmeasured"), ("fine", "passed")]
    assert text.index(html.escape(evaluation.headline())) < text.index("<table")
    assert "<h1>Evaluation of Triage &lt;of&gt; tickets</h1>" in text


def test_a_row_has_its_scores_output_expected_answer_and_reason(evaluation, tmp_path):
    bad, broken, odd, fine = exported(evaluation, tmp_path)[0].rows
    assert (bad["correct"], bad["output"], bad["expected"]) == (
        "fail",
        "passed on help <script>alert(1)</script>",
        "paid <img src=x>",
    )
    assert (broken["correct"], broken["size"], broken["reason"]) == ("failed", "failed", "the bank said no")
    assert (odd["correct"], odd["reason"]) == ("\N{EN DASH}", "correct: ValueError: no <b>idea</b>")
    assert (fine["correct"], fine["size"], fine["ticket"], fine["cost"]) == ("pass", "10", "money", "$0.01")


def test_the_page_needs_no_network_and_runs_its_own_script_alone(evaluation, tmp_path):
    page, text = exported(evaluation, tmp_path)
    assert [attrs for tag, attrs in page.tags if tag == "script"] == [
        {"type": "application/json", "class": "am-data"},
        {"type": "module"},
    ]
    assert not [attrs for _, attrs in page.tags if {"src", "href", "srcset", "action"} & attrs.keys()]
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert "img" not in {tag for tag, _ in page.tags}
    assert str(tmp_path) not in text


def embedded(text):
    """The values of a page's rows."""
    return json.loads(text.partition('class="am-data">')[2].partition("</script>")[0])


def test_the_drawing_knows_the_rows_of_its_edges_and_stages(evaluation, tmp_path):
    page, text = exported(evaluation, tmp_path)
    ways = embedded(text)["ways"]
    ids = [row["row"] for row in page.rows]
    assert [ids[place] for place in ways["edge 1"]] == ["broken", "fine"]
    assert [ids[place] for place in ways["edge 2"]] == ["bad"]
    assert [ids[place] for place in ways["stage escalate"]] == ["bad"]
    drawn = {attrs["data-edge"] for _, attrs in page.tags if "data-edge" in attrs}
    assert drawn == {"0", "1", "2", "3", "4"}


def test_the_drawing_is_left_out_where_it_is_not_wanted_or_nothing_passes(evaluation, tmp_path):
    assert not embedded(exported(evaluation, tmp_path, graph=False)[1])["ways"]
    numbers = evaluation.rescore({"size": size})
    assert not embedded(exported(numbers, tmp_path)[1])["ways"]
    with pytest.raises(OptionError, match="size is a number"):
        exported(numbers, tmp_path, graph=True)


def test_repeats_are_dots_in_one_cell(tmp_path):
    turns = []

    def alternating(node, prompt, context):
        turns.append(node.id)
        return "yes" if turns.count("write") % 2 else "no"

    text = (
        'digraph { inputs="q" start [shape=Mdiamond] write [prompt="$q"] done [shape=Msquare] start -> write -> done }'
    )
    pipeline = Pipeline(text, backend=alternating, runs_dir=tmp_path)
    rows = [{"id": "a", "q": "?"}]
    evaluation = pipeline.evaluate(rows, {"yes": lambda output: output == "yes"}, repeat=3, max_parallel=1, wait=True)
    (row,) = exported(evaluation, tmp_path)[0].rows
    assert (row["runs"], row["yes"]) == ("●○●", "2 of 3")
    assert row["output"] == "yes no" + "yes\nno"


def test_a_long_value_is_folded_and_a_secret_is_not_in_the_page(tmp_path, monkeypatch):
    from attractor_nb import redact_also

    secret = "planted-0a1b2c3d4e5f6789"
    text = (
        'digraph { inputs="q" start [shape=Mdiamond] write [prompt="$q"] done [shape=Msquare] start -> write -> done }'
    )
    pipeline = Pipeline(text, backend=lambda node, prompt, context: "word " * 400 + secret, runs_dir=tmp_path)
    evaluation = pipeline.evaluate([{"q": "?"}], {"any": lambda output: True}, wait=True)
    redact_also(secret)
    page, written = exported(evaluation, tmp_path)
    assert "planted" not in written
    assert ("details", {}) in page.tags


def test_what_a_cell_shows_has_a_sign_for_each_state_and_escapes(evaluation):
    shown = evaluation._repr_mimebundle_()["text/html"]
    assert re.search(r'<tr class="state-error"><td class="state">✕</td><td class="place">bad</td>', shown)
    assert re.search(r'<tr class="state-warn"><td class="state">\?</td><td class="place">odd</td>', shown)
    assert "<script" not in shown
    assert "<img" not in shown
    assert "no <b>" not in shown


# -- a comparison ----------------------------------------------------------------------------------------------

WRITING = """digraph writing {
    inputs="ticket"
    start [shape=Mdiamond]
    plan [prompt="Plan $ticket"]
    write [prompt="Write at length"]
    done [shape=Msquare]
    start -> plan -> write -> done
}"""


def write(node, prompt, context):
    if node.id == "plan":
        return Response("plan", usage=Usage(10, 5, 0.01, 1))
    number, is_short = int(context["ticket"].split()[-1]), "shortly" in prompt
    is_right = number != 1 if is_short else number != 2
    text = f"<i>{context['ticket']}</i> is {'solved' if is_right else 'open'} and closed"
    return Response(text, usage=Usage(10, 5, 0.002 if is_short else 0.006, 1))


def solved(output):
    return "solved" in output


@pytest.fixture
def comparison(tmp_path):
    pipeline = Pipeline(WRITING, backend=write, runs_dir=tmp_path / "runs")
    rows = [{"id": f"r{number}", "ticket": f"ticket {number}"} for number in range(4)]
    return pipeline.compare({"short": {"write.prompt": "Write shortly"}}, rows, solved)


def test_wins_and_losses_are_side_by_side_with_the_words_that_differ(comparison, tmp_path):
    page, text = exported(comparison, tmp_path)
    assert [(row["row"], row["status"], row["result"][2:]) for row in page.rows] == [
        ("r1", "short lost", "lost"),
        ("r2", "short won", "won"),
    ]
    assert "&lt;i&gt;ticket 1&lt;/i&gt; is <del>solved</del> and closed" in text
    assert "&lt;i&gt;ticket 1&lt;/i&gt; is <ins>open</ins> and closed" in text
    assert page.rows[0]["baseline"] == "<i>ticket 1</i> is solved and closed"
    assert "i" not in {tag for tag, _ in page.tags}
    assert text.count(html.escape(comparison.words[0])) == 1


def test_cost_is_that_of_the_whole_pipeline_though_stages_came_from_the_cache(comparison):
    assert [(point.name, pytest.approx(point.cost_usd)) for point in comparison.points] == [
        ("baseline", 0.016),
        ("short", 0.012),
    ]
    assert [point.value for point in comparison.points] == [0.75, 0.75]
    assert all(point.low < point.value < point.high for point in comparison.points)


def test_the_plot_is_in_the_cell_below_the_table_and_in_the_page(comparison, tmp_path):
    shown = comparison._repr_mimebundle_()["text/html"]
    assert shown.index("</table>") < shown.index("<img")
    assert 'alt="Cost and solved. baseline: $0.016 a row, 75 % (30 to 95 %); short: ' in shown
    svg = comparison.to_svg()
    assert svg.count('<circle class="point"') == 2
    assert svg in exported(comparison, tmp_path)[1]


def test_without_costs_there_is_no_plot(tmp_path):
    pipeline = Pipeline(WRITING, backend=lambda node, prompt, context: "solved", runs_dir=tmp_path)
    comparison = pipeline.compare({"a": {"write.prompt": "x"}}, [{"ticket": "1"}], solved)
    assert comparison.to_svg() == ""
    assert "<img" not in comparison._repr_mimebundle_()["text/html"]
    assert "No row differs." in exported(comparison, tmp_path)[1]


def test_a_baseline_from_a_file_has_ids_and_no_outputs(comparison, tmp_path):
    from attractor_nb.evaluation import compare_scored, read_baseline

    stored = read_baseline(comparison.evaluations["baseline"].save_baseline(tmp_path / "base.jsonl"))
    after = comparison.evaluations["short"]
    bare = compare_scored(stored, [after.scored("short")])
    assert [(row["row"], row["result"][2:]) for row in exported(bare, tmp_path)[0].rows] == [
        ("r1", "lost"),
        ("r2", "won"),
    ]
    half = compare_scored(stored, [after.scored("short")], evaluations={"short": after})
    assert exported(half, tmp_path)[0].rows[0]["the variant's"] == "<i>ticket 1</i> is open and closed"
