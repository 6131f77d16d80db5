"""The file of a cassette: readable, whole or not at all, without secrets, never written over by mistake."""

import asyncio
import base64
import errno
import json
import multiprocessing
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb import Context, Pipeline, current_stage, redact_also
from attractor_nb.cassettes.recorded_backends import AbsentBackend
from attractor_nb.cassettes.recorded_commands import NoProcesses, _read, restore
from attractor_nb.errors import OptionError, StorageError, TerminalError
from attractor_nb.model.calls.call_content import CallInputs, CallSite, RecordedCall
from attractor_nb.model.graph import Node
from attractor_nb.model.outcome import Outcome
from attractor_nb.storage import cassette_file
from attractor_nb.storage.cassette_file import Cassette, add_to_cassette, cassette_bytes, read_cassette, write_cassette
from attractor_nb.storage.files.disk import Disk
from attractor_nb.testing import ScriptedInterviewer

ONE = 'digraph { start [shape=Mdiamond] done [shape=Msquare] ask [prompt="Say it."] start -> ask -> done }'


def call(node="ask", visit=1, answer="said", **values):
    return RecordedCall(
        CallSite(node, visit), CallInputs("model", node, {"prompt": "Say it.", **values}), {"text": answer}
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(["$lines", "$value", "$x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.integers(1, 2), json_values, st.text()), max_size=4
    )
)
def test_every_call_comes_back_as_it_was_written(tmp_path_factory, entries):
    calls = [
        RecordedCall(
            CallSite(node, visit, attempt, branch="fan/a" if visit == 2 else ""),
            CallInputs("model", node, {"prompt": text, "tools": value}),
            {"text": text, "context": {"k": value}},
        )
        for node, visit, attempt, value, text in entries
    ]
    path = tmp_path_factory.mktemp("cassettes") / "c.json"
    write_cassette(Disk(), path, Cassette("llm", tuple(calls)))
    read = read_cassette(path)
    assert read.backend == "llm"
    assert sorted(map(repr, read.calls)) == sorted(map(repr, calls))


def test_it_can_be_reviewed(tmp_path):
    write_cassette(Disk(), tmp_path / "c.json", Cassette("llm", (call(answer="one\ntwo\n", visit=2), call())))
    lines = (tmp_path / "c.json").read_text().splitlines()
    assert lines[:3] == ["{", '  "attractor_cassette": 1,', '  "backend": "llm",']
    assert '            "two",' in lines
    visits = [line.strip() for line in lines if '"visit"' in line]
    assert visits == ['"visit": 1,', '"visit": 2,'], "in the order of the stages and visits"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ('{"attractor_cassette": 1, "calls": [', "is not JSON"),
        ('["x"]', 'has no "attractor_cassette"'),
        ('{"interactions": []}', 'has no "attractor_cassette"'),
        ('{"attractor_cassette": 2, "calls": []}', "is a cassette of version 2, and this program reads version 1"),
        ('{"attractor_cassette": 1, "calls": 3}', 'no list of "calls"'),
        ('{"attractor_cassette": 1, "calls": [{"call": "model"}]}', "entry 1 is incomplete"),
        (
            '{"attractor_cassette": 1, "calls": [{"call": "model", "node": 3, "digest": "", "inputs": {}, "answer": {}}]}',
            "entry 1 is incomplete",
        ),
        (
            '{"attractor_cassette": 1, "calls": [{"call": "dance", "node": "a", "digest": "", "inputs": {}, "answer": {}}]}',
            "entry 1 is a call of kind 'dance'",
        ),
    ],
    ids=["empty", "torn", "list", "foreign", "newer", "calls", "entry", "node", "kind"],
)
@pytest.mark.parametrize("mode", ["record", "replay", "auto"])
def test_what_cannot_be_read_is_said_and_never_written_over(tmp_path, text, message, mode):
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(OptionError, match=message):
        Pipeline(ONE).run(wait=True, cassette=path, cassette_mode=mode)
    assert path.read_text() == text
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.json"]


def test_an_answer_may_be_edited_by_hand_and_an_input_may_not(tmp_path):
    path = tmp_path / "c.json"
    Pipeline(ONE).run(wait=True, cassette=path, cassette_mode="record", durability="none")
    recorded = path.read_text()
    path.write_text(recorded.replace("[Simulated] Response for stage: ask", "By hand."))
    assert Pipeline(ONE).check(path).context["ask.response"] == "By hand."
    path.write_text(recorded.replace("Say it.", "Say that."))
    with pytest.raises(OptionError, match=r"the inputs of entry 1 .*ask, visit 1.* are not those of its digest"):
        Pipeline(ONE).check(path)


def test_a_full_disk_leaves_the_old_cassette_and_is_told(tmp_path, monkeypatch):
    path = tmp_path / "out" / "c.json"
    Pipeline(ONE).run(wait=True, cassette=path, durability="none")
    before = path.read_bytes()

    def full(disk, descriptor, data):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Disk, "write", full)
    with pytest.raises(
        StorageError, match=r"the run has ended, and its cassette was not written: cannot write .*c\.json"
    ):
        Pipeline(ONE).run(wait=True, cassette=path, cassette_mode="record", durability="none")
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["c.json"]


KILLED = """
import os, signal, sys
from pathlib import Path
from attractor_nb import Pipeline
Pipeline(sys.argv[1]).run(
    wait=True, backend=lambda prompt: os.kill(os.getpid(), signal.SIGKILL), cassette="c.json",
    cassette_mode=sys.argv[2], durability="none",
)
"""


@pytest.mark.parametrize("mode", ["record", "auto"])
def test_a_recording_that_is_killed_leaves_the_old_cassette(tmp_path, mode):
    path = tmp_path / "c.json"
    write_cassette(Disk(), path, Cassette("kill (own)", (call("other"),)))
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, ONE, mode], cwd=tmp_path, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert path.read_bytes() == before


def test_an_interrupted_recording_replaces_no_cassette_and_is_kept_where_there_is_none(tmp_path):
    path = tmp_path / "c.json"
    source = ONE.replace("start -> ask", 'more [prompt="More."] start -> more -> ask')

    def interrupted():
        is_there = threading.Event()

        async def ask(prompt):
            if "Say it." in prompt:
                await asyncio.to_thread(is_there.wait)
                run.cancel()
                await asyncio.Event().wait()
            return "said"

        run = Pipeline(source).run(backend=ask, cassette=path, cassette_mode="record", durability="none")
        is_there.set()
        return run.result()

    assert interrupted().status == "interrupted"
    first = read_cassette(path)
    assert [entry.place.node_id for entry in first.calls] == ["more"]
    Pipeline(source).run(wait=True, backend=str.upper, cassette=path, cassette_mode="record", durability="none")
    whole = path.read_bytes()
    assert interrupted().status == "interrupted"
    assert path.read_bytes() == whole


def _add(path, number):
    for visit in range(5):
        add_to_cassette(Disk(), path, Cassette("llm", (call(f"n{number}", visit + 1),)))


@pytest.mark.campaign
def test_processes_that_record_at_the_same_time_lose_nothing_of_each_other(tmp_path):
    path = tmp_path / "c.json"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_add, args=(path, number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(read_cassette(path).calls) == 15


KEY = "sk-ant-api03-" + "Zq7" * 20
OTHER_KEY = "sk-ant-api03-" + "Xr8" * 20
TOLD = "^~correct horse battery staple 4711"


class Leaky:
    """Says a key in every place that a recording has."""

    def __init__(self, key):
        self.key = key

    def call_inputs(self, node, context):
        return {"model": "m", "system_prompt": f"Use {self.key}."}

    def run(self, node, prompt, context):
        from attractor_nb import current_stage

        files = current_stage().files
        files.write_bytes("text.txt", f"the key is {self.key}".encode())
        files.write_bytes("binary.bin", b"\0" + self.key.encode())
        context.set("seen", self.key)
        return Outcome.success(f"noted {self.key}", context_updates={"a": [self.key, TOLD]})


LEAKY = """digraph {
    start [shape=Mdiamond]
    done [shape=Msquare]
    ask [prompt="The key is $KEY."]
    tool [shape=parallelogram, tool_command="echo $KEY; echo $KEY > \\"$ATTRACTOR_STAGE_DIR/key.txt\\""]
    gate [shape=hexagon, label="Is it $KEY?", human.type="freeform"]
    start -> ask -> tool -> gate -> done
}"""


def test_planted_keys_are_in_no_cassette_and_other_keys_replay_it(tmp_path):
    redact_also(TOLD)
    path = tmp_path / "c.json"

    def run(key, **options):
        from attractor_nb.model.question import Answer

        return Pipeline(LEAKY.replace("$KEY", key)).run(
            wait=True,
            backend=Leaky(key),
            interviewer=ScriptedInterviewer({"gate": Answer(text=f"no, {TOLD} and {key}")}),
            cassette=path,
            **options,
        )

    recorded = run(KEY, cassette_mode="record")
    assert recorded.is_success, recorded.reason
    stored = path.read_text()
    plain = json.loads(stored)
    assert KEY not in stored
    assert TOLD not in stored
    assert "[redacted]" in stored
    binary = next(entry for entry in plain["calls"] if entry["node"] == "ask")["answer"]["files"]["binary.bin"]
    assert base64.b64decode(binary["base64"]) == b"\0[redacted]"
    replayed = run(OTHER_KEY, cassette_mode="replay")
    assert replayed.is_success, replayed.reason
    assert replayed.cassette.replayed == 3


def test_a_secret_that_is_learnt_later_is_not_written_either():
    secret = "^~tomorrow's pass phrase 0815"
    recorded = call(answer=f"it is {secret}", system_prompt=secret)
    redact_also(secret)
    data = cassette_bytes(Cassette("", (recorded,)))
    assert secret.encode() not in data


def test_an_answer_with_half_a_character_comes_back_as_it_was(tmp_path):
    write_cassette(Disk(), tmp_path / "c.json", Cassette("llm", (call(answer="half \ud83d"),)))
    assert read_cassette(tmp_path / "c.json").calls[0].answer == {"text": "half \ud83d"}


def test_a_cassette_that_grows_too_large_keeps_what_it_has(tmp_path, monkeypatch):
    path = tmp_path / "c.json"
    write_cassette(Disk(), path, Cassette("llm", (call(),)))
    before = path.read_bytes()
    monkeypatch.setattr(cassette_file, "MAX_BYTES", len(before) + 10)
    with pytest.raises(
        StorageError, match=rf"c\.json would have \d+ bytes, more than the {len(before) + 10}"
    ) as caught:
        add_to_cassette(Disk(), path, Cassette("llm", (call(visit=2),)))
    assert "use several cassettes" in caught.value.hint
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.json"]


def test_files_that_are_too_large_are_told_of_and_a_replay_says_why(tmp_path):
    source = ONE.replace(
        'ask [prompt="Say it."]',
        'ask [shape=parallelogram, tool_command="head -c 2000000 /dev/zero > \\"$ATTRACTOR_STAGE_DIR/big\\""]',
    )
    events = []
    place = {"cassette": tmp_path / "c.json", "durability": "fast"}
    recorded = Pipeline(source).run(wait=True, cassette_mode="record", observers=[events.append], **place)
    assert recorded.is_success
    told = [event.message for event in events if type(event).__name__ == "RunWarning"]
    assert len(told) == 1
    assert "ask is not on the cassette: it wrote a file that a cassette cannot store" in told[0]
    replayed = Pipeline(source).run(wait=True, cassette_mode="replay", **place)
    assert replayed.status == "fail"
    assert "2000000 bytes are more than the 1048576 allowed" in replayed.reason
    again = Pipeline(source).run(wait=True, **place)
    assert again.is_success, "auto calls it again"


ALL_KINDS = """digraph {
    start [shape=Mdiamond]
    done [shape=Msquare]
    ask [prompt="Say it."]
    tool [shape=parallelogram, tool_command="echo hello"]
    gate [shape=hexagon, label="Is it?"]
    start -> ask -> tool -> gate
    gate -> done [label="[Y] Yes"]
}"""
REMEDY = "record it again"


@pytest.mark.parametrize(
    ("node", "answer", "message"),
    [
        ("ask", {}, f"the recorded answer of ask has no text ({REMEDY})"),
        ("tool", {"stdout": "hello"}, f"the recorded command of tool has no exit code ({REMEDY})"),
        ("tool", {"exit_code": True}, f"the recorded command of tool has no exit code ({REMEDY})"),
        ("gate", {}, f"the recorded answer of gate is incomplete ({REMEDY})"),
        ("gate", {"selected": 5}, f"the recorded answer of gate is incomplete ({REMEDY})"),
        *(
            ("ask", {"text": "hi", "files": {"a.bin": plain}}, "the recording of the file 'a.bin' is damaged")
            for plain in ({}, 5, {"text": 5}, {"base64": "?"}, {"base64": "ü"}, {"base64": 5})
        ),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_an_answer_that_was_damaged_by_hand_fails_its_stage_with_what_is_missing(tmp_path, node, answer, message):
    path = tmp_path / "c.json"
    options = {"cassette": path, "durability": "fast", "backend": "simulated"}
    answers = ScriptedInterviewer({"gate": "Y"})
    recorded = Pipeline(ALL_KINDS).run(wait=True, cassette_mode="record", interviewer=answers, **options)
    assert recorded.is_success, recorded.reason
    plain = json.loads(path.read_text())
    next(entry for entry in plain["calls"] if entry["node"] == node)["answer"] = answer
    path.write_text(json.dumps(plain))
    replayed = Pipeline(ALL_KINDS).run(wait=True, cassette_mode="replay", **options)
    assert replayed.status == "fail"
    assert message in replayed.reason


def test_a_model_call_that_leaves_too_many_files_is_told_of_and_not_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr("attractor_nb.cassettes.recorded_commands.MAX_FILES", 1)

    def agent(node, prompt, context):
        for name in ("one", "two"):
            current_stage().files.write_text(name, name)
        return "done"

    events = []
    place = {"cassette": tmp_path / "c.json", "durability": "fast"}
    recorded = Pipeline(ONE).run(wait=True, backend=agent, cassette_mode="record", observers=[events.append], **place)
    assert recorded.is_success, recorded.reason
    told = [event.message for event in events if type(event).__name__ == "RunWarning"]
    assert told == ["ask is not on the cassette: it wrote 2 files, more than the 1 that a cassette accepts"]
    replayed = Pipeline(ONE).run(wait=True, cassette_mode="replay", **place)
    assert "wrote 2 files, more than the 1" in replayed.reason


def test_a_status_file_that_is_no_json_is_put_there_again_as_it_was():
    written = {}
    restore(SimpleNamespace(write_bytes=written.__setitem__), {"status.json": {"text": '{"usage": '}})
    assert written == {"status.json": b'{"usage": '}


def test_a_command_that_could_not_be_started_is_replayed_as_one(tmp_path):
    class Refusing:
        calls = 0

        async def run(self, command, **options):
            Refusing.calls += 1
            raise TerminalError("no such shell", hint="install one")

    place = {
        "cassette": tmp_path / "c.json",
        "durability": "fast",
        "interviewer": ScriptedInterviewer({}),
        "backend": "simulated",
    }
    recorded = Pipeline(ALL_KINDS).run(wait=True, cassette_mode="record", processes=Refusing(), **place)
    replayed = Pipeline(ALL_KINDS).run(wait=True, cassette_mode="replay", **place)
    assert (Refusing.calls, recorded.status, replayed.status) == (1, "fail", "fail")
    assert "no such shell" in recorded.reason
    assert replayed.reason == recorded.reason


@pytest.mark.parametrize(
    ("stdin", "read"),
    [
        (b"", ({}, "")),
        (b'{"a": 1}', ({"a": 1}, "")),
        (b"{", ({}, "{")),
        (b"[1]", ({}, "[1]")),
        (b"\xff\0", ({}, "/wA=")),
    ],
)
def test_what_a_command_is_given_is_part_of_its_call_whatever_it_is(stdin, read):
    assert _read(stdin) == read


@pytest.mark.parametrize(
    ("call_it", "message"),
    [
        (
            lambda: AbsentBackend(None).run(Node("ask"), "Say it.", Context()),
            "a replay calls no model, but ask needs one",
        ),
        (lambda: NoProcesses().run("make all"), "a replay runs no commands, but this stage needs: make all"),
        (lambda: NoProcesses().run(["git", "log"]), "a replay runs no commands, but this stage needs: git"),
    ],
    ids=["model", "shell", "program"],
)
def test_a_replay_has_neither_a_model_nor_processes(call_it, message):
    with pytest.raises(TerminalError, match=message):
        asyncio.run(call_it())
