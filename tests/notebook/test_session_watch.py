"""`%attractor_watch`: a table that follows a session, in a real kernel; its last state stays."""

import pytest

from attractor_nb.errors import SessionNotFound
from attractor_nb.notebook.live.live_tables import watch_session
from attractor_nb.sessions import cancel_session, complete_agent, complete_session, create_session, start_agent

WATCH = "%load_ext attractor_nb\n%attractor_watch"


@pytest.fixture
def session_dir(tmp_path):
    return create_session(tmp_path, "orchestrate", "review.dot", [{"id": "001", "name": "<b>plan</b>"}])


def tables(cell):
    """The HTML that the cell's output had, one after the other."""
    return [content["data"]["text/html"] for content in cell.outputs("display_data", "update_display_data")]


def test_the_table_follows_the_session_while_the_kernel_is_free(kernel, session_dir):
    cell = kernel.run(WATCH)
    assert "1 queued" in tables(cell)[0]
    start_agent(session_dir, "001")
    kernel.wait_until(lambda: "1 running" in tables(cell)[-1], "the agent to run")
    assert kernel.run("print(6 * 7)").text == "42\n"
    complete_agent(session_dir, "001")
    complete_session(session_dir)
    kernel.wait_until(lambda: "✓ complete" in tables(cell)[-1], "the end")
    assert (
        len({content["transient"]["display_id"] for content in cell.outputs("display_data", "update_display_data")})
        == 1
    )
    assert "&lt;b&gt;plan&lt;/b&gt;" in tables(cell)[-1]
    assert not [state for state in kernel.widgets.values() if "place" in state]


def test_where_nobody_looks_on_it_is_shown_as_it_stands(kernel, session_dir):
    cell = kernel.run(WATCH, is_attended=False)
    start_agent(session_dir, "001")
    names = "import threading; print([thread.name for thread in threading.enumerate()])"
    assert "attractor-watch" not in kernel.run(names, is_attended=False).text
    assert len(tables(cell)) == 1
    assert "1 queued" in tables(cell)[0]


def test_with_wait_the_cell_ends_with_the_session(kernel, session_dir):
    cell = kernel.start(f"{WATCH} --wait")
    kernel.wait_until(lambda: tables(cell), "the table")
    cancel_session(session_dir)
    kernel.wait(cell)
    assert not cell.error
    assert "‖ cancelled" in tables(cell)[-1]


def test_a_session_that_goes_away_is_told_in_its_place(kernel, session_dir):
    cell = kernel.run(WATCH)
    (session_dir / "status.json").unlink()

    def words():
        return [content["data"]["text/plain"] for content in cell.outputs("update_display_data")]

    kernel.wait_until(words, "the table to be replaced")
    assert "there is no status.json" in words()[-1]


def test_outside_of_a_kernel_it_is_printed(session_dir, capsys):
    watch_session()
    assert capsys.readouterr().out.startswith("● running   1 queued")
    watch_session(session_dir, wait=True, pause=lambda _: cancel_session(session_dir))
    assert capsys.readouterr().out.startswith("‖ cancelled   1 cancelled")


def test_without_an_active_session_it_says_so(tmp_path):
    with pytest.raises(SessionNotFound, match="no session is active"):
        watch_session()
