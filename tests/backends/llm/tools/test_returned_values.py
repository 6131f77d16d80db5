"""Return values of functions, as a model receives them: plain values, arrays, tables."""

import datetime as dt
import json

import pytest

from attractor_nb.backends.llm.tools import catalog
from attractor_nb.backends.llm.tools.catalog import MAX_VALUES, returned_text
from attractor_nb.backends.llm.tools.file_tools import MAX_RESULT_CHARACTERS

PLAIN = {
    "text": ("a text\n", "a text\n"),
    "numbers": ([1, 2.5, None, True], "[1,2.5,null,true]"),
    "not finite": ({"ü": float("nan")}, '{"ü":NaN}'),
    "a day": ({"day": dt.date(2026, 1, 2)}, '{"day":"2026-01-02"}'),
    "bytes": (b"abc", '"YWJj"'),
}


@pytest.mark.parametrize("case", PLAIN)
def test_a_text_is_told_as_it_is_and_a_value_as_json(case):
    value, expected = PLAIN[case]
    assert returned_text(value) == expected


def arrays(np):
    return {
        "a whole number": (np.int64(7), 7),
        "a number": (np.float32(1.5), 1.5),
        "a claim": (np.bool_(True), True),
        "a text": ([np.str_("x")], ["x"]),
        "a day": (np.datetime64("2026-01-02"), "2026-01-02"),
        "a moment in nanoseconds": (np.array(["2026-01-02"], "datetime64[ns]"), ["2026-01-02T00:00:00.000000000"]),
        "a list": (np.arange(3), [0, 1, 2]),
        "a matrix in a dict": ({"m": np.arange(4).reshape(2, 2)}, {"m": [[0, 1], [2, 3]]}),
        "objects": (np.array(["a", None], dtype=object), ["a", None]),
        "complex numbers": (np.array([1 + 2j]), ["1+2j"]),
        "a number with no plain form": (np.longdouble(1.5), "1.5"),
        "nothing": (np.zeros((0, 3)), []),
    }


NAMES = (
    "a whole number", "a number", "a claim", "a text", "a day", "a moment in nanoseconds", "a list",
    "a matrix in a dict", "objects", "complex numbers", "a number with no plain form", "nothing",
)  # fmt: skip


@pytest.mark.parametrize("case", NAMES)
def test_values_of_numpy_are_the_json_of_what_they_hold(case):
    value, expected = arrays(pytest.importorskip("numpy"))[case]
    assert json.loads(returned_text(value)) == expected


@pytest.mark.parametrize("shape", [(1_000_000,), (1000, 1000), (3, 500_000), (2, 3, 100_000)])
def test_of_a_large_array_the_model_is_told_the_shape_and_the_first_values(shape):
    np = pytest.importorskip("numpy")
    count = int(np.prod(shape))
    text = returned_text(np.arange(count).reshape(shape))
    found = json.loads(text)
    first = np.array(found["first_values"]).ravel()
    assert found["shape"] == list(shape)
    assert found["dtype"] == "int64"
    assert list(first) == list(range(len(first)))
    assert 1000 <= len(first) <= MAX_VALUES
    assert found["left_out"] == count - len(first)
    assert len(text) < MAX_RESULT_CHARACTERS


def test_a_frame_of_pandas_is_columns_and_rows():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2], "b": ["x|y", None], "when": [pd.Timestamp("2026-01-02"), pd.NaT]})
    assert json.loads(returned_text({"table": frame})) == {
        "table": {"columns": ["a", "b", "when"], "rows": [[1, "x|y", "2026-01-02T00:00:00"], [2, None, None]]}
    }


def test_an_index_that_says_something_is_a_column():
    pd = pytest.importorskip("pandas")
    series = pd.Series([3, 4], index=pd.Index(["north", "south"], name="region"), name="shops")
    assert json.loads(returned_text(series)) == {"columns": ["region", "shops"], "rows": [["north", 3], ["south", 4]]}
    frame = series.to_frame().set_index(pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))
    assert json.loads(returned_text(frame)) == {
        "columns": ["index", "index", "shops"],
        "rows": [["a", 1, 3], ["b", 2, 4]],
    }


def test_the_values_for_nothing_of_pandas_are_null():
    pd = pytest.importorskip("pandas")
    assert returned_text(pd.NaT) == returned_text(pd.NA) == "null"
    assert returned_text([pd.NA]) == "[null]"


def test_of_a_large_frame_the_first_rows_are_told_and_how_many_are_left_out():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({f"c{number}": range(10_000) for number in range(150)})
    found = json.loads(returned_text(frame))
    assert len(found["columns"]) == catalog.MAX_COLUMNS
    assert found["columns_left_out"] == 50
    assert found["rows"][0] == [0] * 100
    assert found["rows_left_out"] == 10_000 - len(found["rows"])


def test_long_cells_leave_room_for_the_others():
    pd = pytest.importorskip("pandas")
    text = returned_text(pd.DataFrame({"a": ["x" * 50_000] * 100}))
    found = json.loads(text)
    assert "characters left out" in found["rows"][0][0]
    assert 20 < len(found["rows"]) < 100
    assert len(text) < MAX_RESULT_CHARACTERS


class Rows:
    """A frame of polars, as far as it is used."""

    columns = ("a", "b")

    def __init__(self, rows):
        self.rows = rows
        self.shape = (len(rows), 2)

    def __getitem__(self, _):
        return self

    def head(self, count):
        """The first rows."""
        return Rows(self.rows[:count])

    def iter_rows(self):
        """Each as a tuple."""
        return iter(self.rows)


def test_a_frame_of_another_library_is_known_by_what_it_can_do():
    found = json.loads(returned_text(Rows([(number, None) for number in range(5000)])))
    assert (found["columns"], found["rows"][1], found["rows_left_out"]) == (["a", "b"], [1, None], 4000)


def test_what_nobody_knows_is_told_as_it_prints_itself():
    class Own:
        def __str__(self):
            return "mine"

    assert returned_text({"a": Own()}) == '{"a":"mine"}'
