"""A session as a table: what a reader sees of it, as text and as HTML."""

from xml.etree import ElementTree as ET

import pytest

from attractor_nb.sessions.fold import AgentUpdate, SessionCancelled, apply_change, begin_session
from attractor_nb.views.session_table import session_headline, session_html, session_text

START = 1_769_956_222.0


def a_session(*, waves=None, **names):
    agents = [{"id": agent_id, "name": name} for agent_id, name in names.items()]
    return begin_session("20260201-143022-abc12345", "orchestrate", "review.dot", agents, waves, at=START)


def after(session, agent_id, at, **updates):
    return apply_change(session, AgentUpdate(agent_id, updates), at=START + at)


@pytest.fixture
def session():
    waves = [{"wave": 1, "agents": ["a"]}, {"wave": 2, "agents": ["b", "c"]}]
    made = a_session(a="schema", b="writer", c="renderer", d="of no wave", waves=waves)
    made = after(made, "a", 3, status="running", model="claude")
    made = after(made, "a", 157, status="complete")
    made = after(made, "b", 160, status="running", pid=77)
    made = after(made, "c", 160, status="running")
    return after(made, "c", 161.5, status="failed", error="Exit code 1:\nno <b>input</b>")


def test_the_text_says_everything_wave_by_wave(session):
    assert session_text(session, now=START + 225).splitlines() == [
        "● running   1 queued, 1 running, 1 complete, 1 failed   3 min 45 s   review.dot",
        "",
        "wave 1   complete   1 of 1 ended",
        "✓ complete  a  schema      2 min 34 s  claude",
        "wave 2   running   1 of 2 ended",
        "● running   b  writer       1 min 5 s",
        "✕ failed    c  renderer        1.50 s  Exit code 1: no <b>input</b>",
        "\N{EN DASH} queued    d  of no wave",
    ]


def test_a_single_wave_of_all_agents_is_not_named():
    made = a_session(a="one", waves=[{"wave": 1, "agents": ["a"]}])
    assert "wave" not in session_text(made, now=START)


def test_a_session_without_agents_is_its_headline():
    assert session_text(a_session(), now=START + 2) == "● running   no agents   2 s   review.dot"


def test_an_agent_whose_process_is_gone_says_so(session):
    assert "writer       1 min 5 s  process 77 is gone" in session_text(session, now=START + 225, gone={"b"})
    assert 'class="status-running is-gone"' in session_html(session, now=START, gone={"b"})


def test_an_ended_session_does_not_depend_on_the_clock(session):
    done = apply_change(session, SessionCancelled(), at=START + 300)
    assert session_text(done, now=START + 301) == session_text(done, now=START + 9999)
    assert session_headline(done, now=0) == "‖ cancelled   1 complete, 1 failed, 2 cancelled   5 min 0 s   review.dot"


def test_the_html_is_well_formed_and_shows_texts_as_text(session):
    html = session_html(session, now=START + 225)
    root = ET.fromstring(html)
    rows = [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]
    assert rows == [
        ["wave 1   complete   1 of 1 ended"],
        ["✓ complete", "a", "schema", "2 min 34 s", "claude"],
        ["wave 2   running   1 of 2 ended"],
        ["● running", "b", "writer", "1 min 5 s", ""],
        ["✕ failed", "c", "renderer", "1.50 s", "Exit code 1: no <b>input</b>"],
        ["\N{EN DASH} queued", "d", "of no wave", "", ""],
    ]
    assert "<script" not in html


@pytest.mark.parametrize("text", ["<script>x</script>", '" onload="x', "\x1b[31m", "a\u202eb", "&amp;"])
def test_no_name_leaves_its_cell(text):
    made = a_session(a=text)
    ET.fromstring(session_html(made, now=START))
    assert "\x1b" not in session_text(made, now=START)
    assert "\u202e" not in session_text(made, now=START)
