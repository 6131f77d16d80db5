"""Fault 14: a status.json from an untrusted agent fails its stage, and is kept."""

import json
import os
import threading

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.stage import current_stage

MAX_DEPTH = 100

SOURCE = """digraph g {
    start [shape=Mdiamond] work [type=own, max_retries=0] next [type=next] done [shape=Msquare]
    start -> work work -> next [condition="outcome=fail"] work -> done [condition="outcome=success"]
    next -> done
}"""
WRONG_TYPES = [None, True, 3, 1.5, "text", [], [1], {}, {"a": 1}]
FIELDS = {
    # field: what it may be, of those
    "outcome": [],
    "status": [None],
    "preferred_next_label": [None, "text"],
    "preferred_label": [None, "text"],
    "suggested_next_ids": [None, []],
    "context_updates": [None, {}, {"a": 1}],
    "notes": [None, "text"],
    "failure_reason": [None, "text"],
    "is_terminal": [True],
    "usage": [None, {}, {"a": 1}],
}


def said(**fields):
    return json.dumps({"outcome": "success", **fields}).encode()


def texts():
    """Contents that break the contract."""
    for field, allowed in FIELDS.items():
        for value in WRONG_TYPES:
            if not any(type(value) is type(good) and value == good for good in allowed):
                yield f"{field} is {value!r}", said(**{field: value})
    for key in ("internal.x", "graph.goal", "internal.", "graph."):
        yield f"reserved {key}", said(context_updates={key: 1})
    for ids in (["nowhere"], ["start"], ["work"], ["next", "nowhere"], [""], ["../next"]):
        yield f"ids {ids}", said(suggested_next_ids=ids)
    yield "two outcomes", b'{"outcome": "fail", "outcome": "success"}'
    yield "two updates of one key", b'{"outcome": "success", "context_updates": {"a": 1, "a": 2}}'
    yield "outcome and status differ", said(status="fail")
    yield "NaN", b'{"outcome": "success", "context_updates": {"a": NaN}}'
    yield "infinity", b'{"outcome": "success", "context_updates": {"a": -Infinity}}'
    yield "1e999", b'{"outcome": "success", "context_updates": {"a": 1e999}}'
    yield "huge integer", b'{"outcome": "success", "context_updates": {"a": 1' + b"0" * 5000 + b"}}"
    yield ("deep", b'{"outcome": "success", "context_updates": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}")
    yield "too deep", said(context_updates={"a": json.loads("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))})
    yield "lone surrogate", b'{"outcome": "success", "context_updates": {"a": "\\ud800"}}'
    yield "empty", b""
    yield "cut off", said()[:-1]
    yield "two documents", said() + said()
    yield "a list", b"[]"
    yield "a text", b'"success"'
    yield "UTF-16", said().decode().encode("utf-16")
    yield "NUL", said() + b"\0"
    yield "artifact", said(context_updates={"a": {"type": "artifact_ref", "artifact_id": "0" * 64}})


def sparse(path):
    with path.open("wb") as file:
        file.write(said())
        file.truncate(1 << 30)


def plants():
    """Entries that are not plain files."""
    yield "1 GB", sparse
    yield "pipe", os.mkfifo
    yield "directory", os.mkdir
    yield "link to a file", lambda path: path.symlink_to("/etc/hostname")
    yield "link to a device", lambda path: path.symlink_to("/dev/zero")
    yield "link to itself", lambda path: path.symlink_to("status.json")
    yield "dangling link", lambda path: path.symlink_to("nowhere")
    yield "large", lambda path: path.write_bytes(said(notes="x" * 2_000_000))
    yield "no right to read", lambda path: (path.write_bytes(b"{}"), path.chmod(0))


CASES = [*((name, lambda path, text=text: path.write_bytes(text)) for name, text in texts()), *plants()]


@pytest.mark.protects(
    "attractor_nb/engine/attempt_spending.py",
    'refused = Outcome.fail(f"{planned.id}: {error.message}")',
    instead="refused = Outcome.success()",
)
@pytest.mark.protects("attractor_nb/storage/files/atomic.py", "O_NOFOLLOW | O_NONBLOCK |", instead="O_NONBLOCK |")
@pytest.mark.protects(
    "attractor_nb/storage/stages/status_file.py",
    "        if key.startswith(RESERVED_PREFIXES):",
    instead="        if False:",
)
@pytest.mark.protects(
    "attractor_nb/storage/stages/status_file.py", "        if item not in targets:", instead="        if False:"
)
def test_a_file_that_breaks_its_contract_fails_its_stage_and_is_kept(tmp_path, campaign, figures):
    """Protected by: a refused file is a failure; links are not followed; the engine's keys and ids that no edge
    leads to are refused.
    """
    chosen = CASES if campaign.is_full else [case for case in CASES if " is " not in case[0]] + CASES[:60:5]
    for number, (name, plant) in enumerate(chosen):
        root = tmp_path / str(number)

        def work(node, context, graph, logs_root, plant=plant):
            plant(logs_root / "work/status.json")
            return Outcome.success("the handler says so")

        handlers = {"own": work, "next": lambda *_: Outcome.success()}
        result = Pipeline(SOURCE, handlers=handlers).run(wait=True, logs_root=root, durability="fast")
        assert result.completed_nodes == ("start", "work", "next", "done"), name
        assert result.outcomes["work"].failure_reason.startswith("work: "), name
        assert os.path.lexists(root / "work/status.rejected.json"), name
        assert json.loads((root / "work/status.json").read_text())["outcome"] == "fail", name
    figures.record(
        14, "status.json of an untrusted agent", f"{len(chosen)} of {len(chosen)}: FAIL with the reason, file kept"
    )


@pytest.mark.protects(
    "attractor_nb/storage/stages/stage_directories.py", "self._move_aside(node_id, name)", instead="pass"
)
def test_the_file_of_an_earlier_attempt_or_visit_is_never_read(tmp_path, figures):
    """Protected by: what an earlier attempt left is moved aside before the next one begins."""

    def work(node, context, graph, logs_root):
        scope = current_stage()
        if (scope.visit, scope.attempt) == (1, 1):
            scope.files.write_text("status.json", '{"outcome": "retry"}')

    source = SOURCE.replace("max_retries=0", "max_retries=1")
    handlers = {"own": work, "next": lambda *_: Outcome.success()}
    run = Pipeline(source, handlers=handlers).run(logs_root=tmp_path / "run", durability="fast")
    result = run.result(60)
    assert "no status" in result.outcomes["work"].failure_reason
    assert (tmp_path / "run/work/visits/1.1").is_dir()
    figures.record(14, "status.json of an earlier attempt", "never read; kept under visits/")


@pytest.mark.protects("attractor_nb/storage/files/atomic.py", "O_NOFOLLOW | O_NONBLOCK |", instead="O_NONBLOCK |")
@pytest.mark.protects(
    "attractor_nb/storage/stages/status_file.py",
    "        if key.startswith(RESERVED_PREFIXES):",
    instead="        if False:",
)
@pytest.mark.campaign
def test_a_file_that_is_replaced_while_it_is_read_is_one_or_the_other(tmp_path, campaign, figures):
    """Protected by: what is opened is no link, and what is believed is the text that was checked."""
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_bytes(said(notes="elsewhere"))
    contents = [said(notes="one"), b"{", said(notes="two", context_updates={"internal.x": 1})]
    over, rounds = threading.Event(), campaign.count(sample=60, full=300)

    def replace(directory):
        number = 0
        while not over.is_set():
            number += 1
            new = directory / "new"
            if number % 4 == 3:
                new.symlink_to(elsewhere)
            else:
                new.write_bytes(contents[number % 3])
            new.replace(directory / "status.json")

    def work(node, context, graph, logs_root):
        directory = logs_root / "work"
        (directory / "status.json").write_bytes(contents[0])
        agent = threading.Thread(target=replace, args=(directory,), daemon=True)
        agent.start()
        agents.append(agent)

    seen = {"success": 0, "fail": 0}
    for number in range(rounds):
        agents = []
        over.clear()
        handlers = {"own": work, "next": lambda *_: (over.set(), Outcome.success())[1]}
        source = SOURCE.replace("work -> done", "work -> next")
        result = Pipeline(source, handlers=handlers).run(wait=True, logs_root=tmp_path / str(number), durability="fast")
        agents[0].join(60)
        outcome = result.outcomes["work"]
        seen[outcome.status.value] += 1
        if outcome.status == "success":
            assert outcome.notes == "one"
        else:
            assert outcome.failure_reason.startswith("work: ")
        assert "internal.x" not in result.context
    assert sum(seen.values()) == rounds
    figures.record(
        14, "status.json replaced while it is read", f"{rounds} of {rounds}: one of its contents, whole, or FAIL"
    )
