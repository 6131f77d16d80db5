"""Looking into the stages and edges of a run: live, ended, loaded, restarted, rewound, stored nowhere."""

from __future__ import annotations

import json
import os
import threading

import pytest

from attractor_nb import FunctionBackend, Pipeline, Run
from attractor_nb.errors import CheckpointCorrupt, OptionError, RunNotFound
from attractor_nb.model.calls.call_content import INPUTS_FILE
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.studio.inspect.inspect_run import answer_inspection

LOOP = """digraph loop { graph [goal="ship"]
  start [shape=Mdiamond] done [shape=Msquare]
  draft [max_retries=1, prompt="Write $goal"] check
  test [shape=parallelogram, tool_command="echo hello; echo bad >&2"]
  start -> draft -> test -> check
  check -> done [condition="context.n=2"]
  check -> draft [condition="context.n!=2"]
}"""


def counting(failures):
    def answer(node, prompt, context):
        if node.id == "draft" and failures:
            return Outcome.retry(failures.pop())
        if node.id == "check":
            return Outcome.success(context_updates={"n": context.get("n") + 1})
        return f"answer to {prompt[-10:]}"

    return answer


@pytest.fixture
def run(tmp_path):
    made = Pipeline(LOOP, backend=FunctionBackend(counting(["busy"]))).run(logs_root=tmp_path / "run", params={"n": 0})
    made.result()
    return made


def test_a_stage_shows_each_visit_and_attempt_with_its_own_texts(run):
    first = run.inspect("draft", 1)
    assert [(one.number, one.status, one.reason) for one in first.attempts] == [
        (1, "retry", "busy"),
        (2, "success", ""),
    ]
    assert (first.visit, first.attempt, first.status) == (1, 2, "success")
    assert first.response == "answer to Write ship"
    failed = run.inspect("draft", 1, 1)
    assert (failed.status, failed.reason, failed.response) == ("retry", "busy", None)
    assert failed.prompt.endswith("Write ship")
    assert failed.task == "Write ship", "what the graph asks for, without the preamble before it"
    assert run.inspect("test").task is None
    assert failed.why_next is None
    assert [one.number for one in run.inspect("draft").visits] == [1, 2]
    assert run.inspect("draft").visit == 2


def test_the_context_is_told_as_what_the_visit_changed(run):
    changes = {one.key: one for one in run.inspect("check", 1).context}
    assert (changes["n"].change, changes["n"].before, changes["n"].after) == ("changed", 0, 1)
    assert changes["graph.goal"].change == "same"
    assert {one.key: one.change for one in run.inspect("draft", 1).context}["draft.response"] == "added"
    plain = run.inspect("check", 1).to_plain()
    assert plain["context"][0]["change"] == "changed"
    assert json.loads(json.dumps(plain)) == plain


def test_a_tool_shows_its_command_its_output_and_its_files(run):
    found = run.inspect("test")
    assert found.prompt == "echo hello; echo bad >&2"
    assert (found.stdout, found.stderr) == ("hello\n", "bad\n")
    assert [file.name for file in found.files] == ["context.json", "status.json", "stderr.txt", "stdout.txt"]
    assert found.read("stdout.txt") == ("hello\n", 6)
    texts = {one["name"]: one["text"] for one in found.to_plain(with_files=True)["files"]}
    assert '"n":' in texts["context.json"].replace(" ", "")
    assert found.to_plain()["files"][0]["text"] is None


def test_why_the_run_came_and_went_stands_beside_the_stage(run):
    found = run.inspect("check", 1)
    assert found.why_here == "from test, visit 1: the only unconditional edge"
    assert found.why_next.words == "to draft: the condition `context.n!=2` holds"
    assert found.why_next.mismatch == ""
    text = str(found)
    assert "check (codergen), visit 1 of 2: success" in text
    assert "~ n: 0 → 1" in text
    html = found._repr_mimebundle_()["text/html"]
    assert "visit 1 of 2" in html
    assert str(run.logs_root) not in text + html


def test_an_edge_tells_what_became_of_it_each_time(run):
    edge = run.inspect("check -> draft")
    assert (edge.passes, edge.condition) == (1, "context.n!=2")
    assert [(one.visit, one.candidate.is_taken, one.target) for one in edge.verdicts] == [
        (1, True, "draft"),
        (2, False, "done"),
    ]
    assert run.inspect(edge.edge) == edge
    assert 'does not hold: `context.n!=2` saw "2"' in str(edge)
    with pytest.raises(OptionError, match="out of check lead: check -> done"):
        run.inspect("check -> nowhere")
    with pytest.raises(OptionError, match="there is no edge 99"):
        run.inspect(99)


def test_the_whole_way_and_the_reason_of_a_loop_in_words(run):
    way = run.explain()
    assert [step.target for step in way.steps][:4] == ["draft", "test", "check", "draft"]
    assert "the run completed" in str(way)
    assert run.explain_loop("draft").statement == (
        "draft was visited twice because check found n=1, and tried again once within a visit"
    )
    assert "rules, in their order" in str(run.explain("check", 1))
    assert set(run.explain_loop("draft")._repr_mimebundle_()) == {"text/html", "text/plain"}


def test_a_loaded_run_says_the_same_as_the_one_that_has_just_ended(run):
    loaded = Run.load(run.logs_root)
    for ask in (
        lambda shown: shown.inspect("draft", 1, 1).to_plain(),
        lambda shown: shown.inspect("check -> done").to_plain(),
        lambda shown: shown.explain().to_plain(),
        lambda shown: shown.explain_loop("check").to_plain(),
    ):
        assert ask(loaded) == ask(run)


def test_what_is_not_there_is_said_with_what_there_is(run):
    with pytest.raises(OptionError, match="no node 'chekc'; did you mean \"check\""):
        run.inspect("chekc")
    with pytest.raises(OptionError, match="no visit 9 of check"):
        run.inspect("check", 9)
    with pytest.raises(OptionError, match="has no attempt 5"):
        run.inspect("check", 1, 5)
    with pytest.raises(OptionError, match="a visit is one of a node"):
        run.explain(visit=2)
    with pytest.raises(RunNotFound, match="check has no child run yet"):
        run.inspect("check>inner")


def test_a_run_that_is_stored_nowhere_shows_what_is_known_and_says_why_the_rest_is_missing():
    made = Pipeline(LOOP, backend=FunctionBackend(counting([]))).run(durability="none", params={"n": 1})
    made.result()
    found = made.inspect("draft")
    assert (found.status, found.response) == ("success", "answer to Write ship")
    assert "nothing of run" in found.problems[0]
    assert 'durability="fast"' in found.problems[0]
    assert made.inspect("check -> done").passes == 1
    with pytest.raises(RunNotFound):
        made.explain()


def test_a_stage_that_was_not_reached_is_pending(tmp_path):
    text = """digraph g { start [shape=Mdiamond] a b done [shape=Msquare]
      start -> a; a -> done; a -> b [condition="outcome=fail"]; b -> done }"""
    made = Pipeline(text, backend="simulated").run(logs_root=tmp_path / "run")
    made.result()
    assert str(made.inspect("b")) == "b (codergen): pending"
    with pytest.raises(OptionError, match="was not visited yet"):
        made.inspect("b", 1)


def test_visits_that_a_rewind_set_aside_are_listed_with_their_files(run):
    again = run.rewind("check", 1)
    again.result()
    found = again.inspect("check")
    assert [(one.number, one.is_set_aside) for one in found.visits] == [(1, True), (2, True), (3, False), (4, False)]
    aside = again.inspect("check", 2)
    assert aside.is_set_aside
    assert "set aside by a rewind" in str(aside)
    assert aside.response is None
    assert {one.key: one.after for one in aside.context}["n"] == 2
    assert again.inspect("check", 3).why_here.endswith("the run was rewound to just before it")


RESTART = """digraph g { start [shape=Mdiamond] done [shape=Msquare] a b
  start -> a -> b; b -> done [condition="outcome=success"]
  b -> a [condition="outcome=fail", loop_restart=true] }"""


def test_a_run_that_was_started_over_is_followed_through_its_directories(tmp_path):
    fails = [1]
    backend = FunctionBackend(
        lambda node, prompt, context: (
            Outcome.fail("no") if node.id == "b" and fails and fails.pop() else Outcome.success()
        )
    )
    made = Pipeline(RESTART, backend=backend).run(logs_root=tmp_path / "run")
    made.result()
    for shown in (made, Run.load(tmp_path / "run")):
        assert [one.status for one in shown.inspect("b").visits] == ["fail", "success"]
        assert shown.inspect("b", 1).reason == "no"
        assert shown.inspect("a").why_here == "a loop_restart edge began the run anew here"
        told = shown.explain_loop("a")
        assert told.statement == "a was visited twice because b found outcome=fail"
        assert told.found.rounds[0].is_restart


FAN = """digraph fan { start [shape=Mdiamond] done [shape=Msquare] fork [shape=component] a b
  join [shape=tripleoctagon] start -> fork; fork -> a -> join; fork -> b -> join; join -> done }"""


def test_stages_of_branches_are_found_in_their_branch(tmp_path):
    made = Pipeline(FAN, backend=FunctionBackend(lambda node, prompt, context: f"I am {node.id}")).run(
        logs_root=tmp_path / "run"
    )
    made.result()
    found = made.inspect("a")
    assert (found.branch, found.response) == ("fork/a", "I am a")
    assert "in branch fork/a" in str(found)
    assert made.explain("fork").stage.why_next.route == "join"


def test_stages_of_child_runs_are_reached_through_their_stage(tmp_path):
    inner = "digraph inner { start [shape=Mdiamond] deep done [shape=Msquare] start -> deep -> done }"
    text = """digraph g { start [shape=Mdiamond] sub [type=pipeline, pipeline.name=worker] done [shape=Msquare]
      start -> sub -> done }"""
    backend = FunctionBackend(lambda *_: "from below")
    made = Pipeline(text, backend=backend, pipelines={"worker": inner}).run(logs_root=tmp_path / "run")
    made.result()
    assert made.inspect("sub>deep").response == "from below"
    answer = answer_inspection(made, {"node": "sub>deep"})
    assert (answer["node"], answer["response"]) == ("sub>deep", "from below")
    assert answer_inspection(made, {"edge": "sub>1"})["target"] == "done"


def test_what_a_stage_planted_in_its_directory_is_not_opened(run):
    directory = run.inspect("draft").directory
    (directory / "response.md").unlink()
    (directory / "response.md").symlink_to("/etc/passwd")
    os.mkfifo(directory / "pipe")
    found = run.inspect("draft")
    assert found.response is None
    assert any("response.md" in problem for problem in found.problems)
    assert {file.name: file.problem for file in found.files}["pipe"] == "not a plain file; it is not opened"
    answered = answer_inspection(run, {"node": "draft", "file": "../../pipeline.dot"})
    assert answered["text"] is None
    assert "not a file of a stage" in answered["problem"]


def test_texts_leave_without_secrets_and_are_cut_with_their_length_said(run):
    directory = run.inspect("draft").directory
    secret = "sk-ant-" + "api03-" + "A1b2C3d4" * 12
    (directory / "response.md").write_text(f"{secret} " + "x" * 50_000)
    (directory / "notes.txt").write_text(f"my key is {secret}")
    plain = run.inspect("draft").to_plain(with_files=True)
    assert len(plain["response"]) == 20_000
    assert plain["cut"]["response"] == 50_001 + len(secret)
    assert secret not in json.dumps(plain) + str(run.inspect("draft"))
    assert secret not in json.dumps(answer_inspection(run, {"node": "draft", "file": "notes.txt"}))


def test_the_front_end_is_answered_and_told_when_it_asks_for_nothing_that_is_there(run):
    stage = answer_inspection(run, {"node": "draft", "visit": 1, "attempt": 1})
    assert (stage["kind"], stage["node"], stage["visit"], stage["attempt"]) == ("stage", "draft", 1, 1)
    edge = answer_inspection(run, {"edge": "4"})
    assert (edge["kind"], edge["edge"], edge["target"]) == ("edge", "4", "draft")
    file = answer_inspection(run, {"node": "test", "file": "stdout.txt"})
    assert (file["kind"], file["text"], file["bytes"]) == ("file", "hello\n", 6)
    for request in ({"node": "nobody"}, {"edge": "99"}, {"edge": "x"}, {"node": "draft", "visit": 77}):
        answer = answer_inspection(run, request)
        assert answer["problems"]
        assert answer["kind"] == ("edge" if "edge" in request else "stage")
    assert answer_inspection(run, {"node": "draft", "file": "gone.txt"})["problem"] == "the file is gone"


def test_what_was_consumed_is_summed_over_the_attempts(tmp_path):
    usage = [Usage(100, 10, 0.5, 1), Usage(200, 20, 0.25, 1)]
    outcomes = [Outcome.retry("busy"), Outcome.success()]

    def answer(node, prompt, context):
        from msgspec.structs import replace

        return replace(outcomes.pop(0), usage=usage.pop(0)) if node.id == "draft" else Outcome.success()

    text = "digraph g { start [shape=Mdiamond] draft [max_retries=1] done [shape=Msquare] start -> draft -> done }"
    made = Pipeline(text, backend=FunctionBackend(answer)).run(logs_root=tmp_path / "run")
    made.result()
    plain = made.inspect("draft").to_plain()
    assert (plain["cost_usd"], plain["usage_words"]) == (0.75, "330 tokens, $0.75")
    assert plain["attempts"][0]["usage"]["input_tokens"] == 100


def test_a_directory_without_a_log_shows_its_files_and_says_so(run):
    loaded = Run.load(run.logs_root)
    (run.logs_root / "events.jsonl").unlink()
    found = loaded.inspect("draft")
    assert found.response == "answer to Write ship"
    assert "has no events.jsonl" in found.problems[0]


def test_a_damaged_log_leaves_what_the_files_say(run):
    loaded = Run.load(run.logs_root)
    log = run.logs_root / "events.jsonl"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    found = loaded.inspect("draft")
    assert (found.status, found.response) == ("success", "answer to Write ship")
    assert "events.jsonl" in found.problems[0]
    with pytest.raises(CheckpointCorrupt):
        loaded.explain()


def test_a_stage_that_goes_on_is_running_and_shows_what_it_sent(tmp_path):
    has_begun, may_end = threading.Event(), threading.Event()

    def answer(node, prompt, context):
        has_begun.set()
        assert may_end.wait(30)
        return "done"

    text = "digraph g { start [shape=Mdiamond] draft done [shape=Msquare] start -> draft -> done }"
    made = Pipeline(text, backend=FunctionBackend(answer)).run(logs_root=tmp_path / "run")
    try:
        assert has_begun.wait(30)
        found = made.inspect("draft")
        assert (found.status, found.prompt, found.response, found.why_next) == ("running", "draft", None, None)
        assert [step.node for step in made.explain().steps] == ["start"]
        assert made.explain().ending == "the run is still active"
    finally:
        may_end.set()
    made.result()
    assert made.inspect("draft").status == "success"


def test_a_directory_that_became_something_else_is_a_problem_and_the_log_still_speaks(run):
    directory = run.inspect("draft", 1, 1).directory
    for file in sorted(directory.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    directory.rmdir()
    directory.write_text("no directory")
    found = run.inspect("draft", 1, 1)
    assert (found.status, found.reason, found.response, found.files) == ("retry", "busy", None, ())
    assert any(problem.startswith(f"cannot list {directory}") for problem in found.problems), found.problems
    assert any(str(directory / INPUTS_FILE) in problem for problem in found.problems), found.problems


def test_a_file_that_cannot_be_read_is_not_shown_and_says_why(run):
    shown = run.inspect("test")
    (shown.directory / "own.txt").write_text("mine")
    shown = run.inspect("test")
    (shown.directory / "own.txt").unlink()
    (shown.directory / "own.txt").symlink_to("/etc/passwd")
    (text,) = [file["text"] for file in shown.to_plain(with_files=True)["files"] if file["name"] == "own.txt"]
    assert text.startswith("(not shown: ")
    assert "own.txt" in text


def test_a_stage_without_a_log_says_which_of_its_files_cannot_be_read(run):
    loaded = Run.load(run.logs_root)
    directory = run.inspect("draft").directory
    (run.logs_root / "events.jsonl").unlink()
    (directory / "prompt.md").unlink()
    (directory / "prompt.md").symlink_to("/etc/passwd")
    found = loaded.inspect("draft")
    assert (found.prompt, found.response) == (None, "answer to Write ship")
    assert any("prompt.md" in problem for problem in found.problems), found.problems


def test_an_error_is_asked_for_of_a_stage_that_is_there(run):
    with pytest.raises(OptionError, match="draft has no child run") as refused:
        run.error("draft>inner")
    assert refused.value.hint == "see run.children"
    with pytest.raises(OptionError, match="no node 'chekc'"):
        run.error("chekc")


def test_an_event_of_a_replay_is_named_by_its_number(run):
    replay = run.replay()
    assert replay.at(-1).number == len(replay)
    for number in (len(replay) + 1, -len(replay) - 2, True, "1"):
        with pytest.raises(OptionError, match=f"the run has no event {number!r}") as refused:
            replay.at(number)
        assert refused.value.hint == f"its events are 1 to {len(replay)}"


def test_a_value_whose_artifact_is_gone_is_shown_as_it_was_recorded(tmp_path):
    text = "digraph g { start [shape=Mdiamond] draft done [shape=Msquare] start -> draft -> done }"
    backend = FunctionBackend(lambda node, prompt, context: Outcome.success(context_updates={"big": "x" * 200_000}))
    made = Pipeline(text, backend=backend).run(logs_root=tmp_path / "run")
    made.result()
    (artifact,) = (tmp_path / "run" / "artifacts").iterdir()
    artifact.unlink()
    found = Run.load(tmp_path / "run").inspect("draft")
    (change,) = [one for one in found.context if one.key == "big"]
    assert change.after["artifact_id"] == artifact.stem
    assert found.problems == (f"the file of artifact {artifact.stem[:8]} is gone",)
    assert found.status == "success"


def test_a_loop_is_explained_of_a_node_that_is_there(run):
    with pytest.raises(OptionError, match="there is no node 'chekc'; did you mean \"check\""):
        run.explain_loop("chekc")
