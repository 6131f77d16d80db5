"""A map in a notebook: a table that follows it while the kernel is free, and stays at its end."""

import pytest

PIPELINE = """
%load_ext attractor_nb
import threading
from attractor_nb import FunctionBackend, Outcome, Pipeline
door = threading.Event()
def answer(node, prompt, context):
    door.wait(60)
    return Outcome.fail("<b>no luck</b>") if context["n"] == 1 else "x"
pipeline = Pipeline('digraph demo { start [shape=Mdiamond] plan [prompt="P"] done [shape=Msquare] start -> plan -> done }', backend=FunctionBackend(answer))
"""
MAP = 'mapped = pipeline.map([{"n": n} for n in range(6)], durability="none", max_parallel=2)'


def tables(cell):
    """The HTML that the cell's output had, one after the other."""
    return [content["data"]["text/html"] for content in cell.outputs("display_data", "update_display_data")]


def test_the_table_follows_the_map_and_stays_at_its_end(kernel):
    assert not kernel.run(PIPELINE).error
    cell = kernel.run(MAP)
    assert "0 of 6 rows" in tables(cell)[0]
    kernel.wait_until(lambda: tables(cell)[-1].count("● running") == 3, "two rows under way")
    assert ">plan<" in tables(cell)[-1]
    assert kernel.run("print(6 * 7)").text == "42\n"
    kernel.run("door.set()")
    kernel.wait_until(lambda: "6 of 6 rows" in tables(cell)[-1], "the end")
    last = tables(cell)[-1]
    assert "6 of 6 rows" in last
    assert "&lt;b&gt;no luck&lt;/b&gt;" in last
    assert "<b>no" not in last
    assert last.index("no luck") < last.index("completed</td>")
    ids = {content["transient"]["display_id"] for content in cell.outputs("display_data", "update_display_data")}
    assert len(ids) == 1
    (rows,) = [state for state in kernel.widgets.values() if "place" in state]
    assert f'data-attractor-place="{rows["place"]}"' in last, "the rows stand in for the table"
    kernel.wait_until(lambda: rows["is_ready"], "the rows can be asked for")


def test_a_map_that_nobody_holds_is_gone(kernel):
    kernel.run(PIPELINE + "door.set()")
    cell = kernel.run(MAP)
    kernel.wait_until(lambda: "6 of 6 rows" in tables(cell)[-1], "the end")
    kernel.run("mapped.result(60); import gc, weakref; kept = weakref.ref(mapped); del mapped")
    gone = "import time; until = time.monotonic() + 10\nwhile kept() and time.monotonic() < until: gc.collect()\nprint(kept())"
    assert kernel.run(gone).text == "None\n"


def test_a_result_in_the_cell_that_showed_it_live_is_words_alone(kernel):
    kernel.run(PIPELINE + "door.set()")
    cell = kernel.run('pipeline.map([{"n": 0}, {"n": 1}], wait=True, durability="none")')
    kernel.wait_until(lambda: "2 of 2 rows" in tables(cell)[-1], "the end")
    (result,) = cell.outputs("execute_result")
    words = "✕ failed   2 of 2 rows   1 completed, 1 failed   1 of 2 rows failed"
    assert result["data"] == {"text/plain": words}, "the table has its rows"


def test_where_nobody_looks_on_the_result_alone_is_shown(kernel):
    kernel.run(PIPELINE + "door.set()", is_attended=False)
    cell = kernel.run('pipeline.map([{"n": 0}], wait=True, durability="none")', is_attended=False)
    assert cell.outputs("display_data") == []
    (content,) = cell.outputs("execute_result")
    assert "1 of 1 rows" in content["data"]["text/html"]
    assert "1 of 1 rows" in content["data"]["text/plain"]
    assert "data-attractor-place" not in content["data"]["text/html"]


@pytest.mark.parametrize("count", [10_000])
def test_pictures_are_few_however_many_rows_there_are(count):
    """The table is as long as a screen, and is painted a few times a second at most."""
    import threading

    from attractor_nb.maps.map_view import MapView, map_html
    from attractor_nb.model.row_result import RowResult
    from attractor_nb.notebook.live import live_tables

    before = threading.active_count()
    view = MapView("demo", count)
    painted = []

    class Handle:
        def update(self, bundle, *, raw):
            painted.append(bundle)

    class Shown:
        done = None

        def when_done(self, function):
            self.done = function

        def _repr_mimebundle_(self):
            return {"text/html": map_html(view)}

    shown = Shown()
    table = live_tables.LiveMap(interval_seconds=60)
    table._handles.append(Handle())
    table.follow(shown)
    for row in range(count):
        view.take(RowResult(row, "fail" if row % 3 else "success", reason="no"))
    view.end("fail", "")
    shown.done()
    assert table.wait(30)
    assert len(painted) == 1
    html = painted[0]["text/html"]
    shown_count = html.count("<tr") - 1
    assert 12 < shown_count <= 20
    assert f"{count - shown_count:,} more rows" in html
    assert threading.active_count() < before + 20
