"""The key of a call: every field counts, and nothing of the run does."""

from __future__ import annotations

import pytest

from attractor_nb.decisions.replays.cache_keys import (
    RunPaths,
    command_call,
    handler_call,
    model_call,
    of_stage,
    read_values,
)
from attractor_nb.model.calls.call_content import changed_inputs, with_context

RUN = RunPaths("20261122T100000Z-abcd2345", ("/work/runs/20261122T100000Z-abcd2345", "runs/20261122T100000Z-abcd2345"))
OTHER = RunPaths("20261123T110000Z-zzzz7777", ("/other/20261123T110000Z-zzzz7777",))

MODEL = {
    "prompt": "Plan it.",
    "described": {"model": "m", "provider": "p", "temperature": 0.2, "system_prompt": "Be brief."},
    "conversation": "",
}


def _model(place: RunPaths = RUN, **changes: object):
    given = {**MODEL, **changes}
    return model_call(
        "plan",
        given["prompt"],
        given["described"],
        place=place,
        preamble=given.get("preamble", ""),
        conversation=given["conversation"],
    )


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("prompt", {"prompt": "Plan it well."}),
        ("carried", {"prompt": with_context("Goal: ship", "Plan it."), "preamble": "Goal: ship"}),
        ("conversation", {"conversation": "[1]"}),
        ("model", {"described": {**MODEL["described"], "model": "n"}}),
        ("provider", {"described": {**MODEL["described"], "provider": "q"}}),
        ("temperature", {"described": {**MODEL["described"], "temperature": 0.3}}),
        ("system_prompt", {"described": {**MODEL["described"], "system_prompt": ""}}),
        ("tools", {"described": {**MODEL["described"], "tools": ["read"]}}),
        ("response_schema", {"described": {**MODEL["described"], "response_schema": "{}"}}),
    ],
)
def test_each_field_of_a_model_call_is_in_its_key(name: str, change: dict) -> None:
    before, now = _model(), _model(**change)
    assert before.digest != now.digest
    assert [entry.name for entry in changed_inputs(before.values, now.values)] == [name]


COMMAND = {"command": "make", "context": {"a": 1}}


@pytest.mark.parametrize(("name", "change"), [("command", {"command": "make all"}), ("context", {"context": {"a": 2}})])
def test_each_field_of_a_command_is_in_its_key(name: str, change: dict) -> None:
    def made(command, context):
        return command_call("t", command, context, place=RUN)

    before, now = made(**COMMAND), made(**{**COMMAND, **change})
    assert before.digest != now.digest
    assert [entry.name for entry in changed_inputs(before.values, now.values)] == [name]


HANDLER = {
    "handler_type": "my.type",
    "version": "1",
    "attrs": {"rows": 3},
    "context": {"a": 1},
    "graph": {"goal": "ship"},
}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("handler", {"handler_type": "other"}),
        ("version", {"version": "2"}),
        ("attributes", {"attrs": {"rows": 4}}),
        ("context", {"context": {}}),
        ("graph", {"graph": {"goal": "wait"}}),
    ],
)
def test_each_field_of_a_handlers_stage_is_in_its_key(name: str, change: dict) -> None:
    def made(handler_type, version, attrs, context, graph):
        return handler_call("t", handler_type, version, attrs, context, place=RUN, graph=graph)

    before, now = made(**HANDLER), made(**{**HANDLER, **change})
    assert before.digest != now.digest
    assert [entry.name for entry in changed_inputs(before.values, now.values)] == [name]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("files", {"files": {"a.txt": "02"}}),
        ("files", {"files": {"b.txt": "01"}}),
        ("visit", {"visit": 2}),
        ("workdir", {"workdir": "/w"}),
    ],
)
def test_visit_and_files_of_a_stage_are_in_its_key(name: str, change: dict) -> None:
    before = of_stage(_model(), files={"a.txt": "01"})
    now = of_stage(_model(), **{"files": {"a.txt": "01"}, **change})
    assert before.digest != now.digest
    assert [entry.name for entry in changed_inputs(before.values, now.values)] == [name]


def test_nothing_of_the_run_is_in_the_key() -> None:
    def made(place: RunPaths, tries: str):
        told = f"Goal: ship\nRun: {place.run_id}\nCompleted stages:\n- plan (Plan): success{tries} - done"
        return _model(place, prompt=with_context(told, f"Look into {place.directories[0]}/plan."), preamble=told)

    first, second = made(RUN, ""), made(OTHER, " after 3 attempts")
    assert first.values == second.values
    assert first.digest == second.digest


def test_a_context_counts_without_what_it_cost() -> None:
    def made(place: RunPaths, usage: object):
        results = [{"id": "a", "status": "success", "usage": usage, "notes": f"of {place.run_id}"}]
        return command_call("t", "make", {"parallel.results": results}, place=place)

    assert made(RUN, {"calls": 1}).digest == made(OTHER, None).digest


def test_a_node_declares_what_it_reads() -> None:
    values = {"a": 1, "b.c": 2, "b.d": 3, "internal.retry_count.x": 1, "stack.child.status": "x", "n.run_id": "r"}
    assert read_values(values, None) == {"a": 1, "b.c": 2, "b.d": 3}
    assert read_values(values, ["a", "b.*"]) == {"a": 1, "b.c": 2, "b.d": 3}
    assert read_values(values, ["b.d"]) == {"b.d": 3}
    assert read_values(values, []) == {}


def test_attributes_that_change_no_answer_are_not_in_the_key() -> None:
    def made(**attrs):
        return handler_call("t", "my", "1", attrs, {}, place=RunPaths())

    assert made(rows=3).digest == made(rows=3, cache=True, timeout="3s", max_retries=2).digest


def test_two_nodes_that_ask_the_same_share_an_answer() -> None:
    assert model_call("a", "Go.", {}, place=RUN).digest == model_call("b", "Go.", {}, place=OTHER).digest


def test_how_an_earlier_stage_came_to_its_result_is_no_input() -> None:
    told = "Goal: ship\n\n### Earlier stages\n\n- plan: success"

    def made(carried):
        return model_call("b", with_context(carried, "Go."), {}, place=RUN, preamble=carried)

    assert made(f"{told}\n\n### Attempts and tool calls\n\n- plan: read()").digest == made(told).digest


@pytest.mark.parametrize("carried", ["Goal: x\n\nRun: now\n\nRED", "Goal: x\n\n### Attempts and tool calls\n\nRED"])
def test_ruling_44_a_task_that_looks_like_a_carried_context_counts_whole(carried) -> None:
    task = with_context(carried, "Name the colour.")
    digests = {
        model_call("b", with_context(preamble, sent), {}, place=RUN, preamble=preamble).digest
        for preamble in ("", "Goal: ship")
        for sent in (task, task.replace("RED", "GREEN"))
    }
    assert len(digests) == 4
