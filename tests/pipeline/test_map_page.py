"""``map.export_html``: a map as one page."""

from __future__ import annotations

import json
import re
import time
from html.parser import HTMLParser

import pytest

from attractor_nb import FunctionBackend, Outcome, Pipeline, Usage, redact_also
from attractor_nb.cli import main
from attractor_nb.errors import OptionError, StorageError
from attractor_nb.maps.map_page import export_map, map_page
from attractor_nb.maps.map_view import MapView
from attractor_nb.maps.stored_map import MapRecord, RecordedRow
from attractor_nb.model.calls.call_content import Response
from attractor_nb.views import row_table
from attractor_nb.views.frontend import table_page
from attractor_nb.views.markup import element
from attractor_nb.views.row_table import STATIC_ROWS, RowCell, RowColumn, RowQuery, RowTable
from attractor_nb.views.rows_page import RowsPage

TEXT = """digraph Triage { label="Triage of tickets"
    inputs="ticket"
    start [shape=Mdiamond] done [shape=Msquare]
    classify [prompt="Which team? $ticket"]
    start -> classify -> done
}"""
TICKETS = ["invoice", "", "parcel", "<script>alert(1)</script>", "two\nlines"]


def mapped(place, tickets=TICKETS, *, words="shipping", **options):
    def answer(node, prompt, context):
        if not context["ticket"]:
            return Outcome.fail("the ticket is <b>empty</b>")
        return Response(words, usage=Usage(90, 10, 0.5, 1))

    pipeline = Pipeline(TEXT, backend=FunctionBackend(answer))
    options = {"outputs": ["last_response"], **options}
    return pipeline.map([{"ticket": ticket} for ticket in tickets], wait=True, map_dir=place, **options)


class Page(HTMLParser):
    """The tags of a page, and the texts of the cells of its table, row by row."""

    def __init__(self, text):
        super().__init__()
        self.found, self.rows, self._is_cell = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in {"td", "th"}:
            self._is_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self._is_cell = self._is_cell and tag not in {"td", "th"}

    def handle_data(self, data):
        if self._is_cell:
            self.rows[-1][-1] += data


def embedded(text):
    """The values of a page's rows."""
    return json.loads(text.partition('class="am-data">')[2].partition("</script>")[0])


def exported(tmp_path, **options):
    result = mapped(tmp_path / "map", **options)
    return result, result.export_html(tmp_path / "page.html").read_text()


def test_a_page_has_every_row_failures_first_with_reason_inputs_outputs_time_and_cost(tmp_path):
    _, text = exported(tmp_path)
    head, *rows = Page(text).rows
    assert head[:5] == ["row", "status", "reason", "ticket", "last_response"]
    assert head[5:] == ["time", "tokens", "cost"]
    assert rows[0][:5] == ["1", "✕ failed", "classify: the ticket is <b>empty</b>", "", ""]
    assert [row[0] for row in rows] == ["1", "0", "2", "3", "4"]
    assert rows[1][1:5] == ["✓ completed", "", "invoice", "shipping"]
    assert rows[1][6:] == ["100", "$0.5"]
    assert "<h1>Map of Triage of tickets</h1>" in text
    assert "✕ failed   1 of 5 rows failed" in text
    assert "classify (1)" in text
    assert "1 of 5 failed" in text.partition("<svg")[2]
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text.partition("<svg")[2]).groups()
    assert float(width) > 2 * float(height), "a short pipeline flows to the right, beside the facts"


def test_it_loads_nothing_runs_its_own_script_only_and_escapes_what_it_holds(tmp_path):
    _, text = exported(tmp_path)
    tags = Page(text).found
    (policy,) = [attrs["content"] for tag, attrs in tags if attrs.get("http-equiv")]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert [attrs.get("type") for tag, attrs in tags if tag == "script"] == ["application/json", "module"]
    assert not [attrs for _, attrs in tags if {"src", "href", "srcset", "action"} & attrs.keys()]
    assert not [name for _, attrs in tags for name in attrs if name.startswith("on")]


def test_it_is_the_same_each_time_and_says_nothing_of_its_place(tmp_path, monkeypatch):
    result, text = exported(tmp_path)
    monkeypatch.chdir(tmp_path)
    path = result.export_html()
    assert path.name == f"map-{result.map_id}.html"
    assert path.read_text() == text
    assert str(tmp_path) not in text
    assert "attractor-nb export MAP_DIR/row-00000" in text


def test_secrets_made_known_later_are_not_in_it(tmp_path):
    key = "planted-0a1b2c3d4e5f6789"
    result = mapped(tmp_path / "map", [key, "x"], words=f"the key is {key}")
    redact_also(key)
    text = result.export_html(tmp_path / "page.html", rows="all").read_text()
    assert "planted" not in text
    assert "planted" not in (tmp_path / "page-rows" / "row-00000.html").read_text()


@pytest.mark.parametrize(("rows", "expected"), [("failed", [1]), ("all", [0, 1, 2, 3, 4])])
def test_rows_have_pages_of_their_own_beside_it_if_asked_for(tmp_path, rows, expected):
    result = mapped(tmp_path / "map")
    path = result.export_html(tmp_path / "my page.html", rows=rows)
    links = [attrs["href"] for tag, attrs in Page(path.read_text()).found if tag == "a"]
    assert sorted(links) == [f"my page-rows/row-0000{row}.html" for row in expected]
    assert all("<h1>Run of Triage of tickets</h1>" in (tmp_path / link).read_text() for link in links)
    assert "attractor-nb export" not in path.read_text()


def test_a_row_that_cannot_be_read_keeps_nobody_from_the_others(tmp_path):
    result = mapped(tmp_path / "map")
    (tmp_path / "map" / "row-00000" / "events.jsonl").write_text("no log\n")
    text = result.export_html(tmp_path / "page.html", rows="all").read_text()
    assert "page-rows/row-00000.html" not in text
    assert "page-rows/row-00001.html" in text


def test_a_map_without_outputs_shows_the_last_response_and_one_without_directory_its_result(tmp_path):
    _, text = exported(tmp_path, outputs=None)
    assert Page(text).rows[0][4] == "last_response"
    loose = mapped(None, durability="none")
    text = loose.export_html(tmp_path / "loose.html").read_text()
    assert Page(text).rows[2][3:5] == ["invoice", "shipping"]
    assert "attractor-nb export" not in text
    with pytest.raises(OptionError, match="nothing is kept of the rows"):
        loose.export_html(tmp_path / "loose.html", rows="all")


def test_an_interrupted_map_shows_the_rows_that_were_not_started(tmp_path):
    mapped(tmp_path / "map", on_failure="stop", max_parallel=1)
    rows = Page(export_map(tmp_path / "map", tmp_path / "page.html").read_text()).rows[1:]
    assert sum("not started" in row[1] for row in rows) == 3


def test_long_values_are_folded_and_cut_and_the_page_says_so(tmp_path, monkeypatch):
    _, text = exported(tmp_path, words="word " * 2_000, outputs=["classify.response"])
    cell = Page(text).rows[2][4]
    assert text.count("<details>") == 5  # and the one of two lines
    assert "more characters" in cell
    (column,) = [place for place, (title, *_) in enumerate(embedded(text)["columns"]) if title == "classify.response"]
    assert embedded(text)["rows"][1][4 + column].endswith("… 6,000 more characters")
    monkeypatch.setattr(row_table, "MAX_CHARS", 2_000)
    (tmp_path / "small").mkdir()
    _, text = exported(tmp_path / "small", words="word " * 2_000, outputs=["classify.response"])
    assert "To keep this page small, values are cut to 300 characters." in text
    monkeypatch.setattr(row_table, "MAX_ROWS", 2)
    (tmp_path / "few").mkdir()
    assert "and 3 more rows, which are not shown" in exported(tmp_path / "few")[1]


def test_many_inputs_share_a_column(tmp_path):
    row = RecordedRow(0, "success", {f"name{n}": n for n in range(9)}, "")
    text = map_page(MapRecord("m", None, MapView("m", 1), (row,), (), None, {})).to_html()
    assert Page(text).rows[0] == ["row", "status", "inputs"]
    assert "name0: 0\nname1: 1" in text


def test_two_thousand_rows_take_less_than_five_seconds(tmp_path):
    rows = [
        RecordedRow(n, "fail" if n % 9 == 0 else "success", {"ticket": f"ticket {n} " * 5}, "", {"answer": "word " * 60},
                    "no team" if n % 9 == 0 else "", seconds=1.5, usage=Usage(900, 100, 0.01, 1))
        for n in range(2_000)
    ]  # fmt: skip
    began = time.process_time()
    text = map_page(MapRecord("m", None, MapView("m", 2_000), tuple(rows), ("answer",), None, {})).to_html()
    assert time.process_time() - began < 5
    assert len(text) < 4_000_000
    assert len(Page(text).rows) == 1 + STATIC_ROWS
    assert len(embedded(text)["rows"]) == 2_000
    assert "and 1,500 more rows, which this page shows with JavaScript switched on" in text


def test_a_disk_that_refuses_and_a_word_that_means_nothing_are_errors(tmp_path):
    result = mapped(tmp_path / "map")
    with pytest.raises(StorageError):
        result.export_html(tmp_path / "none" / "page.html")
    with pytest.raises(OptionError, match="failed or all"):
        result.export_html(tmp_path / "page.html", rows="some")


def test_the_command_exports_maps(tmp_path, capsys, monkeypatch):
    mapped(tmp_path / "map")
    monkeypatch.chdir(tmp_path)
    assert main(["export", "map", "-o", "page.html", "--rows", "failed"]) == 0
    assert re.match(r"page\.html: [\d,]+ bytes", capsys.readouterr().out)
    assert [path.name for path in (tmp_path / "page-rows").iterdir()] == ["row-00001.html"]
    assert main(["export", "map/row-00000", "--rows", "all"]) == 2
    assert "--rows needs the directory of a map" in capsys.readouterr().err


def test_a_page_cannot_be_ended_by_its_content():
    text = table_page("</title>", "</p>", element("p", None, "</main></script>"))
    assert text.count("</script>") == text.count("</main>") == 1


# -- the table of rows -----------------------------------------------------------------------------------------


def table_of(rows):
    """A table of rows that are a name, a status and a number."""
    return RowTable(
        (
            RowColumn("row", "is-row", lambda row: row[0]),
            RowColumn("size", "is-number", lambda row: RowCell(f"{row[2]:,}", row[2])),
        ),
        rows,
        lambda row: (f"is-{row[1]}", row[1]),
        ways={"stage plan": [0, 2]},
    )


ROWS = [("r10 Parcel", "failed", 900), ("r9 invoice", "passed", 1_000), ("r2 parcel", "passed", 20)]


@pytest.mark.parametrize(
    ("query", "places"),
    [
        (RowQuery(), [0, 1, 2]),
        (RowQuery(words="PARCEL 2"), [2]),
        (RowQuery(words="passed"), [1, 2]),
        (RowQuery(words="1,000"), [1]),
        (RowQuery(status="failed"), [0]),
        (RowQuery(way="stage plan", status="passed"), [2]),
        (RowQuery(way="edge 7"), []),
        (RowQuery(sort=0), [2, 1, 0]),
        (RowQuery(sort=1), [2, 0, 1]),
        (RowQuery(sort=1, descending=True, words="parcel"), [0, 2]),
        (RowQuery(sort=9), [0, 1, 2]),
    ],
    ids=str,
)
def test_rows_are_found_by_words_status_and_way_and_sorted_by_value(query, places):
    assert table_of(ROWS).find(query) == places


def test_a_part_of_the_rows_says_how_many_there_are_and_where_it_begins():
    part = RowsPage("t", "l", element("p", None, ""), table_of(ROWS)).part(RowQuery(words="r"), 1, 1)
    assert (part["found"], part["total"], part["offset"]) == (3, 3, 1)
    assert part["choices"] == {"failed": 1, "passed": 2}
    assert part["rows"] == [[1, 1, "", "", "r9 invoice", ["1,000", 1_000, "", []]]]


def test_values_that_are_sent_hold_no_secret():
    key = "planted-1a1b2c3d4e5f6789"
    redact_also(key)
    table = table_of([(key, "failed", 1)])
    assert "planted" not in json.dumps(table.values([0], 100))
    assert "planted" not in table.embedded()
