"""A stage that an agent did is replayed from a cassette, and kept in the cache only where its node says so."""

import pytest

from attractor_nb import Outcome, Pipeline

SOURCE = """digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]
    work [prompt="Mend it.", allowed_tools="write" {}]
    start -> work -> exit }}"""


def run(backend, root, attributes="", **options):
    return Pipeline(SOURCE.format(attributes)).run(
        backend=backend, logs_root=root, durability="fast", wait=True, trust=True, **options
    )


@pytest.mark.parametrize("mode", ["report", "tool", "fail:auth"])
def test_what_an_agent_answered_and_reported_is_replayed_without_it(stubs, agent, mode):
    stubs.do(mode)
    recorded = run(agent, "first", cassette="tape.json", cassette_mode="record")
    assert len(stubs.calls) == 1
    replayed = run(agent, "second", cassette="tape.json", cassette_mode="replay")
    assert len(stubs.calls) == 1
    assert (replayed.status, replayed.reason) == (recorded.status, recorded.reason)
    assert recorded.status == ("interrupted" if mode == "fail:auth" else "success")  # ruling 51
    told = [result.outcomes.get("work", Outcome.fail("")) for result in (recorded, replayed)]
    assert (told[0].status, told[0].notes) == (told[1].status, told[1].notes)
    assert replayed.context.get("review") == recorded.context.get("review")


def test_a_long_log_of_an_agent_does_not_keep_it_from_being_recorded(stubs):
    stubs.do("flood")
    assert run("claude", "first", cassette="tape.json", cassette_mode="record").status == "success"
    assert run("claude", "second", cassette="tape.json", cassette_mode="replay").status == "success"
    assert len(stubs.calls) == 1


@pytest.mark.parametrize(("attributes", "calls"), [("", 2), (", cache=true", 1)])
def test_the_cache_takes_a_stage_of_an_agent_only_where_its_node_says_so(stubs, attributes, calls):
    for root in ("first", "second"):
        assert run("claude", root, attributes, cache="kept").status == "success"
    assert len(stubs.calls) == calls
