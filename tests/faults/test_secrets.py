"""Secrets never come out: planted through every source, searched in every sink, also in pieces."""

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import attractor_nb
from attractor_nb import AttractorError, Outcome, Pipeline, Run
from attractor_nb.cli.option_choices import GraphFormat
from attractor_nb.context import ARTIFACT_THRESHOLD_BYTES
from attractor_nb.decisions.retries import MAX_REASON_CHARACTERS
from attractor_nb.engine.gates import Gates
from attractor_nb.errors import DotSyntaxError, GraphChanged, OptionError
from attractor_nb.handlers.codergen import EXCERPT_CHARACTERS
from attractor_nb.interviewers import RecordingInterviewer
from attractor_nb.model.events import StageOutput
from attractor_nb.model.question import Answer, Question
from attractor_nb.runtime.prepare.known_secrets import learn_environment
from attractor_nb.sessions import create_session, open_agent_log
from attractor_nb.source import SourceText
from attractor_nb.stage import current_stage, stream_output
from attractor_nb.storage.stages.artifact_store import ArtifactStore
from attractor_nb.testing import ManualClock


def views_of(pipeline, run, result, seen):
    """Everything that shows a run."""
    yield from ((f"event {event.type}", f"{event!r}\n{json.dumps(event.to_plain(), default=repr)}") for event in seen)
    yield "description of an event", "\n".join(event.description for event in seen)
    yield "run", f"{run}\n{run!r}\n{run.to_svg()}\n{run._repr_mimebundle_()}\n{run.details()}"
    yield "result", f"{result}\n{result!r}\n{result.to_svg()}\n{result.reason}\n{result.outcomes!r}"
    yield ("context", json.dumps({key: result.context.get(key) for key in result.context}) + str(result.context.logs))
    yield "graph", f"{pipeline}\n{pipeline.to_svg()}\n{pipeline.to_mermaid()}\n{pipeline.lint()}"
    stored = result.logs_root.is_dir()  # the files of a command go away with a run that stores nothing
    for node_id in [node.id for node in pipeline.graph.nodes.values() if stored or not node.tool_command]:
        stage = result[node_id]
        yield (
            f"stage {node_id}",
            f"{stage}\n{stage!r}\n{stage.prompt}\n{stage.response}\n{stage.files('status.json')}",
        )


SOURCE = """digraph Planted {{
    // left over: {gitlab}
    goal="reach {google}"
    start  [shape=Mdiamond]
    ask    [shape=hexagon, label="Go on with {slack}?"]
    write  [label="Write {github}", prompt="Say {openai}"]
    large  [prompt="Say much"]
    broken [prompt="Fail"]
    own    [type=planted]
    tool   [shape=parallelogram, tool_command="cat key.txt; printf %s {aws}; head -c 30 key.txt >&2; tail -c +31 key.txt >&2; base64 -w0 key.txt"]
    agent  [shape=parallelogram, tool_command="cp status.json $ATTRACTOR_STAGE_DIR/status.json"]
    done   [shape=Msquare]
    start -> ask
    ask -> write [label="Yes, {told}"]
    ask -> done  [label="No"]
    write -> large -> broken
    broken -> own [condition="outcome=fail"]
    own -> tool   [condition="outcome=fail"]
    calm   [type=quiet]
    sum_up [prompt="What came of it?", fidelity="summary:high"]
    tool -> calm -> agent -> sum_up -> done
}}"""


RETURNED = ("environment", "quoted", "hugging_face", "anthropic", "aws", "token", "pem")
"""Keys that stages give back, and that no prompt of a later one may hold."""


class Leaking:
    """A backend that says what it should not."""

    def __init__(self, keys):
        self.keys = keys
        self.summary = ""

    def run(self, node, prompt, context):
        if node.id == "sum_up":
            self.summary = prompt
            return "nothing"
        if node.id == "broken":
            # In front of it just so much that the message is cut off in the middle of the key.
            text = "x" * (MAX_REASON_CHARACTERS - 20) + " " + self.keys["environment"]
            raise ValueError(text) from RuntimeError(self.keys["token"])
        if node.id == "large":
            return "much " * (ARTIFACT_THRESHOLD_BYTES // 4) + self.keys["anthropic"]
        key = self.keys["environment"]
        for at in range(len(key)):  # split at every place
            stream_output(key[:at])
            stream_output(key[at:] + " ")
        for char in self.keys["pem"]:
            stream_output(char)
        current_stage().files.append_text("notes.txt", key[:9])
        current_stage().files.append_text("notes.txt", key[9:])
        context.append_log(f"logged {key}")
        return "y" * (EXCERPT_CHARACTERS - 20) + key + " and " + self.keys["hugging_face"]


def leak(node, context, graph, logs_root, *, keys):
    context.set("by.the.handler", {"list": ["a " + keys["github_fine"]], "pem": keys["pem"]})
    return Outcome.fail(f"no way in with {keys['quoted']}").with_updates({"seen.key": keys["environment"]})


@pytest.fixture
def leaking(planted):
    return Leaking(planted)


@pytest.fixture
def leaky(planted, leaking, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key.txt").write_text(planted["environment"])
    escaped = "".join(f"\\u{ord(char):04x}" for char in planted["token"])
    agent = {"outcome": "success", "context_updates": {"by.agent": planted["slack"]}, "notes": "ESCAPED"}
    (tmp_path / "status.json").write_text(json.dumps(agent).replace("ESCAPED", escaped))

    async def own(node, context, graph, logs_root):
        return leak(node, context, graph, logs_root, keys=planted)

    async def quiet(node, context, graph, logs_root):
        return Outcome.success(context_updates={"only.here": planted["told"]})

    return Pipeline(SOURCE.format(**planted.keys), backend=leaking, handlers={"planted": own, "quiet": quiet})


def run_leaky(pipeline, planted, **options):
    """Run it, answer its gate with a key, and let an observer raise one."""
    seen = []

    def raising(event):
        seen.append(event)
        raise RuntimeError(f"observed with {planted['environment']}")

    run = pipeline.run(params={"ticket": planted["github"]}, observers=[raising], interviewer="deferred", **options)
    asked = run.wait_for_gate("ask", timeout=60)
    run.answer("ask", asked.question.options[0].key, text=f"take {planted['environment']}")
    return run, run.result(timeout=60), seen, asked


@pytest.mark.protects("attractor_nb/storage/log/event_lines.py", "redact_event(event)")
@pytest.mark.protects("attractor_nb/storage/sealed_file.py", "return seal(clean)", instead="pass")
@pytest.mark.protects("attractor_nb/context.py", "kept = redacted_value(kept)", instead="pass")
@pytest.mark.protects("attractor_nb/model/redacted.py", " and not may_hold(value)", instead="")
@pytest.mark.protects("attractor_nb/context.py", "entry = redacted(str(entry))", instead="entry = str(entry)")
@pytest.mark.protects(
    "attractor_nb/storage/attempt_files.py", "data = redacted(text).encode", instead="data = text.encode"
)
@pytest.mark.protects("attractor_nb/storage/attempt_files.py", "if holds_secret(recent):", instead="if False:")
@pytest.mark.protects(
    "attractor_nb/storage/stages/status_file.py",
    'return text if clean is plain else json_page(clean) + "\\n"',
    instead="return text",
)
@pytest.mark.protects("attractor_nb/engine/attempt_spending.py", "outcome = redacted_outcome(outcome)", instead="pass")
@pytest.mark.protects(
    "attractor_nb/engine/gates.py",
    "question = redacted_question(replace(question, id=question.id or question.stage))",
    instead="question = replace(question, id=question.id or question.stage)",
)
@pytest.mark.protects(
    "attractor_nb/decisions/retries.py",
    "text = redacted(_message_of(error).strip())",
    instead="text = _message_of(error).strip()",
)
@pytest.mark.protects(
    "attractor_nb/handlers/codergen.py", "clean = redacted_response(response)", instead="clean = response"
)
@pytest.mark.protects(
    "attractor_nb/processes/local.py", 'self._redactor.feed(data.decode("latin-1")).encode("latin-1")', instead="data"
)
@pytest.mark.protects(
    "attractor_nb/stage.py",
    "self._announce_output(stream.feed(text), channel)",
    instead="self._announce_output(text, channel)",
)
@pytest.mark.protects(
    "attractor_nb/runtime/begin.py",
    "source_text, is_redacted = stored_source(pipeline.to_dot(), pipeline.whole)",
    instead="source_text, is_redacted = pipeline.to_dot(), False",
)
@pytest.mark.protects("attractor_nb/runtime/prepare/known_secrets.py", "    learn(secrets_among(os.environ))")
@pytest.mark.protects("attractor_nb/logs.py", "logger.addFilter(_Redaction())")
@pytest.mark.kind("a planted key")
def test_no_planted_key_is_in_the_files_events_logs_and_views_of_a_run(
    leaky, leaking, planted, tmp_path, caplog, capfd, figures
):
    """Each place that takes text in or gives it out has its hook, and no other hook makes up for it."""
    run, result, seen, asked = run_leaky(leaky, planted, logs_root=tmp_path / "run", durability="fast")
    assert result.status == "success", result.reason
    files = planted.files_below(tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    output = capfd.readouterr()
    formatter = logging.Formatter()
    sinks = [
        *files,
        *views_of(leaky, run, result, seen),
        ("loaded run", f"{loaded}\n{loaded.to_svg()}\n{list(loaded.events())}"),
        ("gate", repr(asked)),
        ("log", "\n".join(formatter.format(record) for record in caplog.records)),
        ("output", output.out + output.err),
    ]
    assert len(caplog.records) >= len(seen)  # the observer raised, and that was logged
    assert any(isinstance(event, StageOutput) for event in seen)
    assert {"pipeline.dot", "manifest.json", "checkpoint.json", "tool/stdout.txt", "agent/status.json"} <= {
        name for name, _ in files
    }
    assert any(name.startswith("artifacts/") for name, _ in files)
    assert planted.found_in(sinks) == []
    # A prompt has the goal and the labels as their author wrote them, and of what stages said no key.
    assert "no way in with [redacted]" in leaking.summary
    assert not [name for name in RETURNED if planted[name] in leaking.summary]
    assert any("[redacted]" in text for _, text in sinks)
    figures.record(
        0,
        "planted keys in a run's files, events, logs and views",
        f"{len(planted.keys)} keys, {len(sinks)} sinks: 0 hits",
    )


@pytest.mark.protects("attractor_nb/storage/memory_store.py", "redact_event(event)", instead="pass")
@pytest.mark.protects("attractor_nb/storage/memory_store.py", "text = redacted(text)", instead="pass")
@pytest.mark.protects(
    "attractor_nb/runtime/stored_execution.py", "reason=redacted(ended.reason)", instead="reason=ended.reason"
)
@pytest.mark.campaign
def test_a_run_that_stores_nothing_lets_no_key_out_either(planted, leaky, figures):
    run, result, seen, _ = run_leaky(leaky, planted, durability="none")
    broken = Pipeline(
        'digraph { start [shape=Mdiamond] a [prompt="x"] done [shape=Msquare] start -> a\n a -> done [condition="context.x=KEY"] }'.replace(
            "KEY", planted["aws"]
        )
    ).run(wait=True, durability="none")
    assert broken.status == "fail"
    sinks = [*views_of(leaky, run, result, seen), ("reason", broken.reason)]
    assert planted.found_in(sinks) == []
    figures.record(0, "planted keys in a run without a directory", f"{len(sinks)} sinks: 0 hits")


@pytest.mark.protects(
    "attractor_nb/runtime/resume.py",
    '_REDACTED if stored.manifest.get("is_source_redacted") else _CHANGED',
    instead="_CHANGED",
)
@pytest.mark.protects(
    "attractor_nb/runtime/resume.py", "check_own_source(pipeline, logs_root, on_graph_change)", instead="pass"
)
def test_a_source_with_a_key_is_resumed_with_the_callers_own_pipeline_only(planted, tmp_path):
    """The protections are the remedy that names the reason, the stored source is not the one that ran, and
    that it is said before anybody is asked to trust commands with a hole in them."""
    text = """digraph { start [shape=Mdiamond] a [prompt="use KEY"] done [shape=Msquare]
        t [shape=parallelogram, tool_command="echo KEY"] start -> a -> t -> done }"""
    own = Pipeline(text.replace("KEY", planted["openai"]))
    assert [found.rule for found in own.diagnostics].count("secret_in_source") == 2
    own.run(wait=True, logs_root=tmp_path / "run", durability="fast", stop_after=1)
    with pytest.raises(GraphChanged, match=r"your own\s+pipeline"):
        Run.load(tmp_path / "run").resume()
    copied = Pipeline((tmp_path / "run/pipeline.dot").read_text())
    with pytest.raises(GraphChanged, match=r"your own\s+pipeline"):
        copied.resume(tmp_path / "run")
    assert own.resume(tmp_path / "run").result(timeout=60).status == "success"


@pytest.mark.protects("attractor_nb/runtime/prepare/known_secrets.py", "clean = write_dot(redacted_graph(whole))")
def test_a_stored_source_can_be_read_wherever_the_key_stood(planted, tmp_path):
    source = f"digraph {{ start [shape=Mdiamond, note={planted['aws']}] done [shape=Msquare] start -> done }}"
    Pipeline(source).run(wait=True, logs_root=tmp_path / "run", durability="fast")
    loaded = Run.load(tmp_path / "run")
    assert "[redacted]" in loaded.pipeline.to_dot()
    assert planted.found_in(planted.files_below(tmp_path / "run")) == []


@pytest.mark.protects("attractor_nb/errors.py", "self.message = redacted(message)", instead="self.message = message")
@pytest.mark.protects("attractor_nb/errors.py", "self.hint = redacted(hint)", instead="self.hint = hint")
@pytest.mark.protects("attractor_nb/errors.py", "super().add_note(redacted(note))", instead="super().add_note(note)")
@pytest.mark.protects(
    "attractor_nb/source.py",
    "shown, start = outer.source.without_secrets(outer.start)",
    instead="shown, start = outer.source, outer.start",
)
@pytest.mark.protects(
    "attractor_nb/model/diagnostic.py", 'for name in ("message", "node_id"):', instead="for name in ():"
)
def test_errors_and_findings_hold_no_key(planted, figures):
    """An excerpt that is cut in the middle of a key shows no piece of it."""
    learn_environment()
    sinks = []
    for name, key in planted.keys.items():
        error = OptionError(f"{key} is wrong", hint=f"try {key}")
        error.add_note(f"seen beside {key}")
        error.__cause__ = AttractorError(f"because of {key}")
        sinks.append(
            (name, "".join(traceback.format_exception(error)) + repr(error) + "".join(error._render_traceback_()))
        )
        for before in (1, 40, 100, 150, 170):
            line = "z" * 200 + "!" + " " * before + key.replace("\n", " ") + " end"
            if name != "pem":
                shown = DotSyntaxError("wrong", SourceText(line, "x.dot").span(200, 201))
                assert "^" in str(shown)
                sinks.append((f"excerpt of {name}", str(shown)))
    pipeline = Pipeline(
        f'digraph {{ start [shape=Mdiamond] a [type="{planted["github"]}"] start -> a -> {planted["github"]} }}'
    )
    sinks.append(("findings", "\n".join(line for found in pipeline.diagnostics for line in found.report_lines())))
    sinks.append(("finding", repr(pipeline.diagnostics)))
    assert planted.found_in(sinks) == []
    figures.record(0, "planted keys in errors, notes, causes, excerpts and findings", f"{len(sinks)} reports: 0 hits")


LABELLED = 'digraph {{ goal="{told}" label="{slack}" start [shape=Mdiamond] a [label="{aws} {environment}", prompt="x"] subgraph cluster_b {{ label="{hugging_face}" b [label="is {google}"] }} done [shape=Msquare] start -> a -> b\n b -> done [label="{github}"] }}'


@pytest.mark.protects("attractor_nb/views/drawings/svg.py", "shown = redacted_graph(graph)", instead="shown = graph")
@pytest.mark.protects("attractor_nb/views/mermaid.py", "    graph = redacted_graph(graph)\n", instead="")
@pytest.mark.protects(
    "attractor_nb/views/text_table.py",
    "    graph = redacted_graph(graph)\n    nodes, edges",
    instead="    nodes, edges",
)
@pytest.mark.protects(
    "attractor_nb/views/text_table.py", "    graph = redacted_graph(graph)\n    routes", instead="    routes"
)
@pytest.mark.protects(
    "attractor_nb/views/text_table.py", "    graph = redacted_graph(graph)\n    lines", instead="    lines"
)
def test_drawings_and_tables_of_a_graph_hold_no_key(planted, figures):
    from attractor_nb.views.text_table import graph_text, text_tree

    pipeline = Pipeline(LABELLED.format(**planted.keys))
    sinks = [
        ("svg", pipeline.to_svg()),
        ("mermaid", pipeline.to_mermaid()),
        ("graphviz", pipeline.to_graphviz().source),
        ("table", graph_text(pipeline.graph)),
        ("tree", text_tree(pipeline.graph)),
        ("bundle", repr(pipeline._repr_mimebundle_())),
    ]
    assert planted.found_in(sinks) == []
    assert all("redacted" in text for _, text in sinks)
    figures.record(0, "planted keys in drawings and tables", f"{len(sinks)} forms: 0 hits")


@pytest.mark.protects(
    "attractor_nb/cli/reporting.py", "json.dumps(redacted_value(value), indent", instead="json.dumps(value, indent"
)
@pytest.mark.protects(
    "attractor_nb/cli/graph_reports.py",
    "print_source(redacted(write_dot(document.graph))",
    instead="print_source((write_dot(document.graph))",
)
@pytest.mark.protects(
    "attractor_nb/cli/graph_reports.py",
    "return redacted(write_dot(pipeline.whole))",
    instead="return write_dot(pipeline.whole)",
)
@pytest.mark.protects(
    "attractor_nb/cli/run_execution.py",
    'one_line(redacted(pipeline.graph.get("label", str, "")))',
    instead='one_line(pipeline.graph.get("label", str, ""))',
)
@pytest.mark.protects(
    "attractor_nb/cli/progress.py", "self._graph = redacted_graph(graph)", instead="self._graph = graph"
)
@pytest.mark.protects("attractor_nb/cli/entry.py", "    learn_environment()\n", instead="")
@pytest.mark.campaign
def test_the_command_line_prints_no_key(planted, tmp_path, figures):
    keys = {**planted.keys, "told": planted["environment"]}
    (tmp_path / "x.dot").write_text(LABELLED.format(**keys))
    sinks = []
    root = Path(attractor_nb.__file__).parents[1]
    commands = (
        "run x.dot --logs-root out --verbose",
        "run x.dot --logs-root other --json",
        "parse x.dot",
        "parse x.dot --json",
        "validate x.dot",
        *(f"graph x.dot --format {name}" for name in GraphFormat),
        f"run {planted['environment']}",
    )
    for arguments in commands:
        command = [sys.executable, "-P", "-m", "attractor_nb", *arguments.split()]
        ended = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)}
        )
        assert "Traceback" not in ended.stderr
        sinks.append((arguments.replace(planted["environment"], "KEY"), ended.stdout + ended.stderr))
    sinks += planted.files_below(tmp_path / "out")
    assert planted.found_in(sinks) == []
    figures.record(0, "planted keys on the command line", f"{len(commands)} commands, stdout and stderr: 0 hits")


SPLITTING = """
import os, sys
for line in sys.stdin.read().split("\\f"):
    for at in range(1, len(line), 7):
        os.write(1, line[:at].encode())
        os.write(2, line[at:].encode() + b"\\n")
os.write(1, b"\\xff the end")
os.kill(os.getpid(), 9)
"""


@pytest.mark.protects(
    "attractor_nb/sessions/recorder.py", 'self._redactor.feed(data.decode("latin-1"))', instead='data.decode("latin-1")'
)
def test_the_log_of_an_agent_holds_no_key(planted, tmp_path, figures):
    """Each key in two writes, split at many places, by a process that is killed in the end: nothing else of
    what it wrote is missing."""
    directory = create_session(tmp_path, "orchestrate", "x.dot", [{"id": "001"}])
    command = [sys.executable, "-c", SPLITTING]
    with open_agent_log(directory, "001") as log:
        subprocess.run(command, input="\f".join(planted.keys.values()).encode(), stdout=log, stderr=log, check=False)
    written = (directory / "001.log").read_bytes()
    pieces = sum(len(range(1, len(key), 7)) for key in planted.keys.values())
    assert planted.found_in(planted.files_below(directory)) == []
    # What every key of a kind begins with tells nothing of it, and is given out when it arrives alone.
    line = rb"(?:[\w -]{0,31}\[redacted\]\n)"
    assert re.fullmatch(line + b"{%d}\xff the end" % pieces, written), written
    figures.record(0, "planted keys in the log of an agent", f"{pieces} keys in two pieces each: 0 hits")


@pytest.mark.protects(
    "attractor_nb/storage/stages/artifact_store.py", "json_bytes(redacted_value(data))", instead="json_bytes(data)"
)
@pytest.mark.protects(
    "attractor_nb/interviewers/unattended.py",
    "self.recordings.append((question, redacted_answer(answer)))",
    instead="self.recordings.append((question, answer))",
)
@pytest.mark.protects("attractor_nb/engine/gates.py", "message = redacted(message)")
@pytest.mark.protects("attractor_nb/studio/edit/lint_report.py", 'redacted("".join(diff))', instead='"".join(diff)')
def test_artifacts_recordings_news_and_fixes_hold_no_key(planted, tmp_path):
    store = ArtifactStore(ManualClock())
    store.store("kept", planted["aws"], {"a": [planted["told"]]})

    told = []

    class Telling:
        def ask(self, question):
            return Answer(text=planted["told"])

        def inform(self, message, stage):
            told.append(message)

    recording = RecordingInterviewer(Telling())
    pipeline = Pipeline(
        f'digraph {{ start [shape=Mdiamond, label="{planted["told"]}"] a [promt="x"] done [shape=Msquare] start -> a -> done }}'
    )
    sinks = [("artifact", repr(store.retrieve("kept")) + repr(store.list())), ("diff", str(pipeline.lint().fix()))]
    asyncio.run(recording.ask(Question("?")))
    gates = Gates(recording, told.append, ManualClock())
    asyncio.run(gates.inform(f"now {planted['github']}", "ask"))
    sinks.append(("news", repr(told)))
    sinks.append(("recording", repr(recording.recordings)))
    assert planted.found_in(sinks) == []
