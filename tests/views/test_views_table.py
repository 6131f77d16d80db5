"""A table of facts, as text and as HTML."""

from xml.etree import ElementTree as ET

from attractor_nb.views.table import Column, Table

COLUMNS = (Column("node", "place"), Column("tokens", "number"), Column("words"))
TABLE = Table(
    "Tokens",
    COLUMNS,
    [["plan", "1,200", "first\nline"], ["計画", "8", "<b>"]],
    states=["ok", "error"],
    total=["all", "1,208", ""],
    headline="Spent",
    notes=["A note."],
)


def test_numbers_stand_right_and_cells_stay_on_their_line():
    assert str(TABLE).splitlines() == [
        "Spent",
        "",
        "node  tokens  words",
        "plan   1,200  first line",
        "計画       8  <b>",
        "all    1,208",
        "",
        "A note.",
    ]


def test_the_html_says_the_same_and_escapes_what_it_is_given():
    root = ET.fromstring(TABLE.to_html())
    table = root.find("table")
    rows = [[cell.text or "" for cell in row] for row in table.iter("tr")]
    assert rows[0] == ["node", "tokens", "words"]
    assert rows[2] == ["計画", "8", "<b>"]
    assert [row.get("class") for row in table.iter("tr")] == [None, "state-ok", "state-error", "total"]
    assert [part.text for part in root.findall("div")] == ["Spent", "A note."]


def test_without_rows_there_is_no_table():
    empty = Table("Nothing", COLUMNS, [], headline="None", notes=["why"])
    assert str(empty) == "None\n\nwhy"
    assert ET.fromstring(empty.to_html()).find("table") is None


def test_a_table_is_shown_as_text_in_a_terminal_and_as_html_in_a_notebook():
    bundle = TABLE._repr_mimebundle_()
    assert bundle == {"text/html": TABLE.to_html(), "text/plain": str(TABLE)}
    assert repr(TABLE) == str(TABLE)
