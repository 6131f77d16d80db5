"""A language server, by what an editor sends it and is sent."""

import asyncio
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types
from pygls.exceptions import FeatureNotificationError, FeatureRequestError, JsonRpcContentModified, JsonRpcException

from attractor_nb.cli.language_server import LONGEST, REQUEST_FAILED, DotServer, EditorText, OpenText, read
from attractor_nb.extras import install_command
from tests import warm

COMMAND = [sys.executable, "-m", "attractor_nb", "lsp"]
REVIEW = """digraph Review {
    start [shape=Mdiamond]
    plan [label="🔨🔨 Plan", promt="Plan it"]
    write [prompt="Write: ${plan.response}"]
    done [shape=Msquare]
    start -> plan -> write -> done
}
"""
CAPABILITIES = {"textDocument": {"rename": {"prepareSupport": True}}, "workspace": {"workspaceEdit": {"documentChanges": True}}}  # fmt: skip


class Editor:
    """The other end: sends messages, and takes those that come."""

    def __init__(self, process, root=None, capabilities=CAPABILITIES):
        self.process = process
        self.notes = []
        self.number = 0
        uri = root and root.as_uri()
        self.answer = self.ask("initialize", processId=None, rootUri=uri, capabilities=capabilities)
        self.tell("initialized")

    def send(self, **message):
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        self.process.stdin.flush()

    def take(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.process.stdout.readline()
            assert line, "the server has ended"
            head += line
        size = next(int(line.split(b":")[1]) for line in head.splitlines() if line.startswith(b"Content-Length"))
        return json.loads(self.process.stdout.read(size))

    def tell(self, method, **params):
        self.send(method=method, params=params)

    def begin(self, method, **params):
        self.number += 1
        self.send(id=self.number, method=method, params=params)
        return self.number

    def whole_answer(self, number):
        while True:
            message = self.take()
            if message.get("id") == number:
                return message
            self.notes.append(message)

    def ask(self, method, **params):
        answer = self.whole_answer(self.begin(method, **params))
        assert "error" not in answer, answer
        return answer["result"]

    def refusal(self, method, **params):
        return self.whole_answer(self.begin(method, **params))["error"]["message"]

    def findings(self, uri, version=None):
        """The findings that are sent for a version of a text."""
        while True:
            for note in self.notes:
                params = note.get("params", {})
                if params.get("uri") == uri and params.get("version") == version:
                    self.notes.remove(note)
                    return params["diagnostics"]
            self.notes.append(self.take())

    def open(self, uri, text):
        self.tell("textDocument/didOpen", textDocument={"uri": uri, "languageId": "dot", "version": 1, "text": text})
        return self.findings(uri, 1)

    def change(self, uri, version, *changes):
        self.tell(
            "textDocument/didChange",
            textDocument={"uri": uri, "version": version},
            contentChanges=[{"range": place, "text": text} for place, text in changes],
        )

    def end(self):
        self.ask("shutdown")
        self.tell("exit")
        return self.closed()

    def closed(self):
        """Its exit code, and what it has written to stderr, when the editor has closed its streams."""
        self.process.stdin.close()
        with self.process.stdout, self.process.stderr:
            said = self.process.stderr.read()
            return self.process.wait(), said


def started(root=None, capabilities=CAPABILITIES):
    process = warm.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return Editor(process, root, capabilities)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("opened").resolve()


@pytest.fixture(scope="module")
def editor(folder):
    editor = started(folder)
    yield editor
    assert editor.end() == (0, b"")


@pytest.fixture
def uri(folder, request):
    return (folder / f"{request.node.name.replace('[', '-').replace(']', '')}.dot").as_uri()


def at(text, piece, offset=0, nth=0):
    """The position of a piece of a text, in UTF-16."""
    start = -1
    for _ in range(nth + 1):
        start = text.index(piece, start + 1)
    before = text[: start + offset].replace("\r\n", "\n")
    line = before.rpartition("\n")[2]
    return {"line": before.count("\n"), "character": len(line.encode("utf-16-le")) // 2}


def place_of(text, piece, nth=0):
    return {"start": at(text, piece, nth=nth), "end": at(text, piece, len(piece), nth=nth)}


def cursor(uri, text, piece, offset=0, nth=0):
    return {"textDocument": {"uri": uri}, "position": at(text, piece, offset, nth)}


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_finding_has_its_place_in_code_units_its_rule_and_its_severity(editor, uri, newline):
    text = REVIEW.replace("\n", newline)
    (found,) = editor.open(uri, text)
    assert found == {
        "range": place_of(text, "promt"),
        "message": '"promt" is not an attribute of a node; did you mean "prompt"? As it stands, the label of "plan" would'
        ' be its prompt: "🔨🔨 Plan"',
        "severity": 2,
        "code": "attribute_typo",
        "source": "attractor-nb",
    }


def test_a_fix_is_an_action_at_its_finding(editor, uri):
    (found,) = editor.open(uri, REVIEW)
    where = {"textDocument": {"uri": uri}, "range": found["range"], "context": {"diagnostics": [found]}}
    (action,) = editor.ask("textDocument/codeAction", **where)
    assert (action["title"], action["kind"]) == ('Fix: write "prompt"', "quickfix")
    (change,) = action["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 1}
    assert change["edits"] == [{"range": place_of(REVIEW, "promt"), "newText": "prompt"}]
    where["range"] = place_of(REVIEW, "done")
    assert editor.ask("textDocument/codeAction", **where) == []
    where["context"]["only"] = ["source.fixAll"]
    (action,) = editor.ask("textDocument/codeAction", **where)
    assert action["edit"]["documentChanges"][0]["edits"][0]["newText"] == "p"
    where["context"]["only"] = ["refactor"]
    assert editor.ask("textDocument/codeAction", **where) == []


def test_edits_that_are_not_saved_are_what_is_read(editor, uri):
    editor.open(uri, REVIEW)
    place = place_of(REVIEW, "promt")
    broken = {"start": place["end"], "end": {**place["end"], "character": place["end"]["character"] + 10}}
    editor.change(uri, 2, (broken, ""))
    (found,) = editor.findings(uri, 2)
    assert (found["code"], found["severity"]) == ("syntax", 1)
    assert found["message"].endswith('\nwrite promt="..."'), "the remedy is told, for no edit makes it"
    editor.change(uri, 3, ({"start": place["start"], "end": place["end"]}, 'prompt="🔨"'))
    assert editor.findings(uri, 3) == []


def test_of_quick_edits_the_latest_is_told_and_none_that_is_older(editor, uri):
    editor.open(uri, REVIEW)
    place = place_of(REVIEW, "promt")
    for version in range(2, 12):
        start = {**place["end"], "character": place["end"]["character"] + version - 2}
        editor.change(uri, version, ({"start": start, "end": start}, "x"))
    editor.change(uri, 12, ({"start": place["start"], "end": {**start, "character": start["character"] + 1}}, "prompt"))
    assert editor.findings(uri, 12) == []
    told = [note["params"]["version"] for note in editor.notes if note["params"].get("uri") == uri]
    assert told == sorted(told), "a slow machine makes pauses"


def test_completion_replaces_what_is_written(editor, uri):
    text = REVIEW.replace("promt=", "max_re")
    editor.open(uri, text)
    found = editor.ask("textDocument/completion", **cursor(uri, text, "max_re", 6))
    assert [item["label"] for item in found["items"]] == ["max_retries"]
    (item,) = found["items"]
    assert item["textEdit"] == {"range": place_of(text, "max_re"), "newText": "max_retries"}
    assert item["detail"].startswith("Additional attempts")


def test_a_word_tells_its_meaning_as_plain_text(editor, uri):
    text = REVIEW.replace("🔨🔨 Plan", "![🔨](http://example.invalid/x.png)")
    editor.open(uri, text)
    told = editor.ask("textDocument/hover", **cursor(uri, text, "plan -> write", 1))
    assert told["range"] == place_of(text, "plan", nth=2)
    assert told["contents"] == {
        "kind": "plaintext",
        "value": "plan: ![🔨](http://example.invalid/x.png) (codergen)\nfrom start\nto write",
    }
    rule = editor.ask("textDocument/hover", **cursor(uri, text, "promt", 1))["contents"]["value"]
    assert rule.startswith("attribute_typo: ")
    assert editor.ask("textDocument/hover", **cursor(uri, text, "digraph", 1)) is None


def test_definition_and_references_of_a_node(editor, uri):
    editor.open(uri, REVIEW)
    declared = {"uri": uri, "range": place_of(REVIEW, "plan")}
    variable = {"uri": uri, "range": place_of(REVIEW, "plan", nth=1)}
    edge = {"uri": uri, "range": place_of(REVIEW, "plan", nth=2)}
    for piece, offset in (("plan -> write", 0), ("plan.response", 2)):
        assert editor.ask("textDocument/definition", **cursor(uri, REVIEW, piece, offset)) == declared
    for context, places in ((True, [declared, variable, edge]), (False, [variable, edge])):
        asked = {**cursor(uri, REVIEW, "plan"), "context": {"includeDeclaration": context}}
        assert editor.ask("textDocument/references", **asked) == places
    assert editor.ask("textDocument/definition", **cursor(uri, REVIEW, "prompt")) is None


def test_renaming_changes_all_names_of_a_node(editor, uri):
    text = REVIEW.replace("\n", "\r\n")
    editor.open(uri, text)
    where = cursor(uri, text, "plan -> write", 1)
    assert editor.ask("textDocument/prepareRename", **where) == {
        "range": place_of(text, "plan", nth=2),
        "placeholder": "plan",
    }
    (change,) = editor.ask("textDocument/rename", **where, newName="draft")["documentChanges"]
    assert [(edit["range"], edit["newText"]) for edit in change["edits"]] == [
        (place_of(text, "plan", nth=nth), "draft") for nth in range(3)
    ]
    assert editor.refusal("textDocument/rename", **where, newName="1x").startswith('"1x" cannot be a node\'s id; ')
    assert "already exists" in editor.refusal("textDocument/rename", **where, newName="done")
    assert "no node here" in editor.refusal("textDocument/rename", **cursor(uri, text, "digraph"), newName="x")
    assert editor.ask("textDocument/prepareRename", **cursor(uri, text, "digraph")) is None


def test_symbols_are_the_nodes(editor, uri):
    editor.open(uri, REVIEW)
    found = editor.ask("textDocument/documentSymbol", textDocument={"uri": uri})
    assert [(each["name"], each["detail"]) for each in found] == [
        ("start", "start"),
        ("plan", "🔨🔨 Plan"),
        ("write", "codergen"),
        ("done", "exit"),
    ]
    assert found[1]["selectionRange"] == place_of(REVIEW, "plan")
    assert found[1]["range"] == place_of(REVIEW, 'plan [label="🔨🔨 Plan", promt="Plan it"')


def test_two_documents_have_findings_of_their_own(editor, uri):
    other = uri.replace(".dot", "-2.gv")
    assert len(editor.open(uri, REVIEW)) == 1
    assert editor.open(other, REVIEW.replace("promt", "prompt")) == []
    editor.tell("textDocument/didClose", textDocument={"uri": uri})
    assert editor.findings(uri) == []
    assert editor.ask("textDocument/hover", **cursor(uri, REVIEW, "plan")) is None, "it is not open"
    assert editor.ask("textDocument/hover", **cursor(other, REVIEW, "plan"))


PARENT = REVIEW.replace('promt="Plan it"', 'type=pipeline, "pipeline.dotfile"="%s"')


def test_a_child_pipeline_is_read_again_when_it_is_saved(editor, uri, folder):
    (folder / "shared").mkdir()
    child = folder / "shared" / "child.dot"
    child.write_text("digraph { start [shape=Mdiamond] }")
    text = PARENT % "shared/child.dot"
    (found,) = editor.open(uri, text)
    assert found["code"] == "child_pipeline"
    assert "child.dot has" in found["message"]
    child.write_text(REVIEW.replace("promt", "prompt"))
    editor.tell("textDocument/didSave", textDocument={"uri": child.as_uri()})
    assert editor.findings(uri, 1) == []


def test_files_outside_of_the_opened_folder_are_not_read(editor, folder, tmp_path):
    secret = tmp_path / "child.dot"
    secret.write_text(REVIEW)
    below = folder / "below"
    below.mkdir()
    (folder / "beside.dot").write_text(REVIEW.replace("promt", "prompt"))
    own = (below / "a.dot").as_uri()
    assert editor.open(own, PARENT % "../beside.dot") == [], "the folder that is open has it"
    (found,) = editor.open((below / "b.dot").as_uri(), PARENT % os.path.relpath(secret, below))
    assert "outside of the directories of this pipeline" in found["message"]
    stray = (tmp_path / "sub" / "c.dot").as_uri()
    (found,) = editor.open(stray, PARENT % "../child.dot")
    assert "outside of the directories of this pipeline" in found["message"]
    (found,) = editor.open("untitled:Untitled-1", PARENT % secret)
    assert "is not read: the pipeline came from a text that is not saved" in found["message"]


def test_a_huge_text_keeps_nobody_waiting(editor, uri):
    huge = uri.replace(".dot", "-huge.dot")
    text = "digraph {\n" + '  a [prompt="🔨 and so on"]\n' * 150_000 + "}"
    assert len(text) > 4_000_000
    (found,) = editor.open(huge, text)
    assert (found["code"], found["severity"]) == ("not_checked", 3)
    assert "attractor-nb validate" in found["message"]
    for version in range(2, 40):
        editor.change(huge, version, (place_of(text, "digraph"), "digraph"))
    assert editor.ask("textDocument/completion", **cursor(huge, text, "digraph")) is None
    slow = uri.replace(".dot", "-slow.dot")
    nodes = "".join(f'  n{number} [prompt="🔨", promt=x]\n  n{number} -> n{number + 1}\n' for number in range(2_000))
    item = {"uri": slow, "languageId": "dot", "version": 1, "text": f"digraph {{\n{nodes}}}"}
    assert len(item["text"]) < LONGEST
    editor.tell("textDocument/didOpen", textDocument=item)
    editor.open(uri, REVIEW)
    assert editor.ask("textDocument/hover", **cursor(uri, REVIEW, "plan"))
    assert not [note for note in editor.notes if note["params"].get("uri") == slow], "that one is still being read"
    found = editor.findings(slow, 1)
    assert len(found) == 501
    assert found[-1]["message"].endswith("more findings")


def test_what_is_no_request_ends_nothing(editor, uri):
    editor.open(uri, REVIEW)
    assert editor.refusal(
        "textDocument/formatting", textDocument={"uri": uri}, options={"tabSize": 2, "insertSpaces": True}
    )
    editor.begin("textDocument/hover", textDocument=3)  # pygls does not answer it
    editor.tell("textDocument/didChange", textDocument={"uri": "file:///not/open.dot", "version": 2}, contentChanges=[])
    editor.send(method="textDocument/didOpen", params=None)
    far = {"textDocument": {"uri": uri}, "position": {"line": 10_000, "character": 10_000}}
    assert editor.ask("textDocument/hover", **far) is None
    editor.open(uri.replace(".dot", "-2.dot"), 'digraph { a [label="\ud83d"] \0 }')
    editor.notes.clear()
    assert editor.ask("textDocument/hover", **cursor(uri, REVIEW, "plan"))


def test_a_client_without_versions_gets_plain_changes_and_the_end_of_stdin_ends_the_server(tmp_path):
    editor = started(capabilities={"general": {"positionEncodings": ["utf-32", "utf-16"]}})
    assert editor.answer["capabilities"]["positionEncoding"] == "utf-32"
    uri = (tmp_path / "a.dot").as_uri()
    (found,) = editor.open(uri, REVIEW)
    line = next(line for line in REVIEW.splitlines() if "promt" in line)
    assert found["range"]["start"]["character"] == line.index("promt")
    where = {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 4}}
    assert editor.ask("textDocument/rename", **where, newName="end")["changes"][uri]
    assert editor.closed() == (0, b"")


PLANTED = "import pathlib; pathlib.Path({marker!r}).touch()\n"


def test_opening_a_folder_of_a_stranger_executes_nothing_of_it(tmp_path):
    stranger, marker = tmp_path / "stranger", tmp_path / "executed"
    stranger.mkdir()
    for name in ("pygls", "lsprotocol", "attractor_nb", "sitecustomize", "json", "conftest"):
        (stranger / f"{name}.py").write_text(PLANTED.format(marker=str(marker)))
    text = REVIEW.replace('promt="Plan it"', f'shape=parallelogram, tool_command="touch {marker}"')
    text = text.replace('"Write: ${plan.response}"', '"@../../../../etc/passwd"')
    command = Path(sys.executable).with_name("attractor-nb")
    process = subprocess.Popen(
        [command, "lsp"], cwd=stranger, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    editor = Editor(process, stranger)
    found = editor.open((stranger / "a.dot").as_uri(), text)
    assert [each["code"] for each in found] == ["text_file"]
    assert "root:" not in json.dumps(found)
    assert editor.end() == (0, b"")
    assert not marker.exists()
    assert list(stranger.glob("**/.attractor")) == []


ENDS = st.sampled_from(["\n", "\r\n", "\r", "a", "b🔨", "é", "\f", "\u2028", "", "\ud83d"])
TEXTS = st.lists(ENDS, max_size=12).map("".join)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@given(before=TEXTS, new=TEXTS, data=st.data())
def test_a_change_of_a_range_is_that_of_its_characters(encoding, before, new, data):
    text = EditorText.of(before, encoding=encoding)
    # between the two characters of one line end there is no position
    offsets = [each for each in range(len(before) + 1) if before[each - 1 : each + 1] != "\r\n"]
    start, end = sorted(data.draw(st.tuples(st.sampled_from(offsets), st.sampled_from(offsets))))
    place = text.range(start, end)
    assert (text.offset(place.start), text.offset(place.end)) == (start, end)
    changed = text.changed(types.TextDocumentContentChangePartial(range=place, text=new))
    after = before[:start] + new + before[end:]
    assert changed.text == after
    assert changed._lines == EditorText.of(after)._lines


# The server as an object of this process: what goes wrong in it.


def test_the_command_without_its_extra_says_how_to_install_it(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygls", None)
    ended = command("lsp")
    assert (ended.code, ended.out) == (2, "")
    assert "error: `attractor-nb lsp` needs pygls, which is not installed" in ended.err
    assert f"hint: {install_command('lsp')}" in ended.err


def test_a_text_that_does_not_parse_has_its_mistakes_as_findings():
    reading = read(EditorText.of("digraph {\n  a -- b\n  c [label=]\n}"), None)
    assert reading.pipeline is None
    assert [(found.rule, found.message) for found in reading.findings] == [
        ("syntax", "undirected edges are not supported"),
        ("syntax", "a value is missing after label ="),
    ]


def test_a_declaration_of_inputs_that_cannot_be_read_is_a_finding_and_declares_none():
    reading = read(EditorText.of('digraph { inputs="3x!" start [shape=Mdiamond] }'), None)
    assert reading.inputs == ()
    assert reading.findings[0].rule == "inputs_valid"


def in_a_loop(test):
    """Run an async test."""

    @functools.wraps(test)
    def wrapped(**given):
        asyncio.run(test(**given))

    return wrapped


class Served:
    """A server that sends what it says to lists, and the one text that is open in it."""

    def __init__(self, text=REVIEW):
        self.server = DotServer()
        self.logged, self.published = [], []
        self.server.window_log_message = self.logged.append
        self.server.text_document_publish_diagnostics = self.published.append
        self.document = OpenText("file:///a.dot", EditorText.of(text, 1), None, list)
        self.server.documents["file:///a.dot"] = self.document

    async def ask(self, method, kind, **params):
        place = {"text_document": types.TextDocumentIdentifier("file:///a.dot"), "position": types.Position(0, 0)}
        return await self.server.protocol.fm.features[method](kind(**{**place, **params}))


@pytest.fixture
def served():
    served = Served()
    yield served
    served.document.close()


PLANTED_KEY = "sk-ant-api03-" + "a1B2c3D4" * 11 + "-Qw4xYzAA"


def broken(*_):
    raise RuntimeError(f"oh {PLANTED_KEY}")


def test_an_error_of_the_protocol_is_told_to_the_log_and_one_of_a_request_is_its_answer(served):
    served.server.report_server_error(ValueError("no such thing"), FeatureNotificationError)
    (logged,) = served.logged
    assert (logged.type, logged.message) == (types.MessageType.Error, "internal error: ValueError: no such thing")
    served.server.report_server_error(ValueError("no such thing"), FeatureRequestError)
    assert len(served.logged) == 1


@in_a_loop
async def test_a_text_whose_reading_fails_is_told_to_the_log_without_secrets_and_has_no_findings(served, monkeypatch):
    monkeypatch.setattr("attractor_nb.cli.language_server.read", broken)
    await served.server._publish(served.document)
    (logged,) = served.logged
    assert logged.message.startswith("internal error: RuntimeError: oh ")
    assert PLANTED_KEY not in logged.message
    assert served.published == []


@in_a_loop
async def test_a_request_that_fails_is_told_to_the_log_and_has_no_answer(served, monkeypatch):
    monkeypatch.setattr("attractor_nb.cli.language_server.read", broken)
    assert await served.ask(types.TEXT_DOCUMENT_HOVER, types.HoverParams) is None
    (logged,) = served.logged
    assert logged.message.startswith("internal error: RuntimeError: oh ")
    assert PLANTED_KEY not in logged.message


@in_a_loop
async def test_a_request_about_a_text_that_has_changed_since_is_refused(served):
    free = asyncio.Event()
    loop = asyncio.get_running_loop()
    held = served.document.worker.submit(lambda: asyncio.run_coroutine_threadsafe(free.wait(), loop).result(60))
    asked = asyncio.ensure_future(served.ask(types.TEXT_DOCUMENT_HOVER, types.HoverParams))
    await asyncio.sleep(0)  # it is taken, and waits for the thread
    served.document.text = served.document.text.again()
    free.set()
    with pytest.raises(JsonRpcContentModified, match="the text has changed since"):
        await asked
    assert held.result(60)
    assert served.logged == []


@in_a_loop
async def test_what_cannot_be_renamed_is_refused_with_what_to_do(served):
    with pytest.raises(JsonRpcException) as refused:
        await served.ask(types.TEXT_DOCUMENT_RENAME, types.RenameParams, new_name="x")
    assert refused.value.code == REQUEST_FAILED
    assert refused.value.message == "there is no node here; put the cursor on the id of a node"
    assert served.logged == []
