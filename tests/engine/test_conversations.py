"""Stages with ``full`` fidelity go on with what their thread has said, and with nothing that does not count."""

import asyncio
import json
import threading

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import StorageError, TerminalError
from attractor_nb.model.events import RunWarning, StageEnd, StageStarted
from attractor_nb.stage import current_stage
from attractor_nb.storage.stored_run import read_run
from tests.engine.carried import carried

LINE = "default_fidelity=full thread_id=t a b c start -> a -> b -> c -> done"


class Talker:
    """Says its node's id in its thread, and remembers what each stage heard there: None without one."""

    def __init__(self, replies=None):
        self.heard = []
        self.late = []
        self._replies = {node: list(replies[node]) for node in replies or {}}

    async def run(self, node, prompt, context):
        conversation = current_stage().conversation
        left = self._replies.get(node.id)
        reply = left.pop(0) if left else "done"
        before = None if conversation is None else conversation.read()
        self.heard.append((node.id, before))
        if conversation is not None and reply != "silent":
            conversation.save(f"{before} {node.id}".strip())
            self.late.append(conversation)
        if callable(reply):
            await reply()
        return reply if isinstance(reply, Outcome) else "done"

    def of(self, node_id):
        return [heard for node, heard in self.heard if node == node_id]


@pytest.fixture
def talk(make, tmp_path):
    """Run statements with a talker; gives it and the run, which has ended."""

    def start(body=LINE, replies=None, **options):
        talker = Talker(replies)
        run = make(body, backend=talker).run(logs_root=tmp_path / "run", **options)
        run.result(60)
        return talker, run

    return start


@pytest.mark.parametrize("durability", ["full", "fast", "none"])
def test_a_stage_goes_on_with_what_its_thread_has_said(make, durability):
    talker = Talker()
    make(LINE, backend=talker).run(wait=True, durability=durability)
    assert talker.heard == [("a", ""), ("b", "a"), ("c", "a b")]


def test_spec_5_4_nodes_with_different_threads_start_fresh(talk):
    body = "default_fidelity=full a [thread_id=x] b [thread_id=y] c [thread_id=x] start -> a -> b -> c -> done"
    talker, run = talk(body)
    assert talker.heard == [("a", ""), ("b", ""), ("c", "a")]
    assert sorted(path.name for path in (run.logs_root / "threads").iterdir()) == ["x.json", "y.json"]


def test_stages_with_another_mode_have_no_conversation_and_are_not_in_it(talk):
    talker, _ = talk("thread_id=t a [fidelity=full] b c [fidelity=full] start -> a -> b -> c -> done")
    assert talker.heard == [("a", ""), ("b", None), ("c", "a")]


def test_an_attempt_that_is_tried_again_does_not_hear_itself(talk):
    talker, _ = talk(replies={"b": [Outcome.retry("not yet"), "done"]}, body=f"{LINE} b [max_retries=1]")
    assert talker.of("b") == ["a", "a"]
    assert talker.of("c") == ["a b"]


def test_what_a_failed_stage_said_counts_once_it_is_committed(talk):
    talker, _ = talk(
        'default_fidelity=full thread_id=t a b start -> a a -> b [condition="outcome=fail"] a -> done b -> done',
        {"a": [Outcome.fail("no")]},
    )
    assert talker.heard == [("a", ""), ("b", "a")]


def test_a_stage_that_saved_nothing_leaves_the_thread_as_it_was(talk):
    talker, _ = talk(replies={"b": ["silent"]})
    assert talker.heard == [("a", ""), ("b", "a"), ("c", "a")]


def test_a_loop_hears_its_earlier_visits(talk):
    talker, _ = talk(
        'default_fidelity=full thread_id=t a start -> a a -> a [condition="outcome=fail"] a -> done',
        {"a": [Outcome.fail("no"), Outcome.fail("no"), "done"]},
    )
    assert talker.of("a") == ["", "a", "a a"]


def test_ruling_21_threads_start_anew_after_a_restart(make, tmp_path):
    talker = Talker({"b": [Outcome.success(context_updates={"round": 1}), Outcome.success()]})
    body = """default_fidelity=full thread_id=t a b start -> a -> b
        b -> a [condition="context.round=1", loop_restart=true] b -> done"""
    make(body, backend=talker).run(wait=True, logs_root=tmp_path / "run")
    assert talker.heard == [("a", ""), ("b", "a"), ("a", ""), ("b", "a")]


def test_a_rewound_run_does_not_hear_what_was_set_aside(talk):
    talker, run = talk()
    again = run.rewind("b")
    again.result(60)
    # the first stage has a summary in place of the conversation (5.3, step 6), so it is not in it either
    assert talker.heard[3:] == [("b", None), ("c", "a")]
    again.rewind("c", visit=2).result(60)
    assert talker.heard[5:] == [("c", "a")], "the stage before it had a summary: nothing degrades twice"


def test_a_visit_that_was_cut_off_does_not_hear_itself_when_it_is_run_again(make, tmp_path):
    root = tmp_path / "run"

    async def scenario():
        reached = asyncio.Event()

        async def hang():
            reached.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(make(LINE, backend=Talker({"a": [hang]})).run_async(logs_root=root))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    talker = Talker()
    make(LINE, backend=talker).resume(root).result(60)
    assert talker.heard == [("a", ""), ("b", "a"), ("c", "a b")]
    assert "a:1.1" in json.loads((root / "threads/t.json").read_text())["entries"], "it stays as evidence"


def test_spec_5_3_after_a_resume_one_stage_is_degraded_and_the_next_finds_its_thread(make, tmp_path):
    talker = Talker()
    pipeline = make(LINE, backend=talker)
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=2)
    pipeline.resume(tmp_path / "run").result(60)
    assert talker.heard == [("a", ""), ("b", None), ("c", "a")]


def test_spec_5_3_a_degraded_stage_that_is_cut_off_again_is_degraded_again(make, tmp_path):
    root = tmp_path / "run"
    make(LINE, backend=Talker()).run(wait=True, logs_root=root, stop_after=2)

    reached = threading.Event()

    async def hang():
        reached.set()
        await asyncio.Event().wait()

    run = make(LINE, backend=Talker({"b": [hang]})).resume(root)
    assert reached.wait(60)
    run.cancel()
    assert run.result(60).status == "interrupted"
    talker = Talker()
    make(LINE, backend=talker).resume(root).result(60)
    modes = [event.fidelity for event in read_run(root).events if isinstance(event, StageStarted)]
    assert talker.heard == [("b", None), ("c", "a")]
    assert [mode for mode in modes if mode] == ["full", "summary:high", "summary:high", "full"]


FAN = """default_fidelity=full thread_id=t
fan [shape=component] join [shape=tripleoctagon] a b c d e start -> a -> fan
fan -> b -> c -> join fan -> d -> join join -> e -> done"""


def test_branches_go_on_from_before_the_fan_out_and_none_hears_another(talk):
    talker, run = talk(FAN)
    assert talker.of("b") == talker.of("d") == ["a"]
    assert talker.of("c") == ["a b"]
    assert talker.of("e") == ["a"], "what branches said stays theirs: what follows goes on from before them"
    assert [path.name for path in (run.logs_root / "threads").iterdir()] == ["t.json"]


def test_a_branch_that_was_stopped_finds_what_it_had_said(make, tmp_path):
    talker = Talker()
    pipeline = make(FAN, backend=talker)
    result = pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=2)
    while result.status == "paused":
        result = pipeline.resume(tmp_path / "run", stop_after=1).result(60)
    assert result.status == "success"
    heard = [entry for entry in talker.heard if entry[1]]
    assert set(heard) <= {("b", "a"), ("c", "a b"), ("c", "a"), ("d", "a"), ("e", "a")}


def test_the_first_stage_of_a_branch_falls_back_to_its_fan_out(talk):
    _, run = talk("""default_fidelity=full fan [shape=component] join [shape=tripleoctagon] a b
        start -> fan fan -> a -> join fan -> b -> join join -> done""")
    started = [event for event in run.events() if isinstance(event, StageStarted) and event.thread]
    assert {(event.name, event.thread) for event in started} == {("a", "fan"), ("b", "fan")}


def test_the_commit_names_the_thread_that_went_on(talk):
    _, run = talk(replies={"b": ["silent"]})
    threads = {event.name: event.thread for event in run.events() if isinstance(event, StageEnd)}
    assert threads == {"start": "", "a": "t", "b": "", "c": "t", "done": ""}


def test_words_after_the_attempt_are_refused(talk):
    talker, _ = talk()
    with pytest.raises(TerminalError, match="the attempt of a is over"):
        talker.late[0].save("more")


def test_a_thread_whose_file_is_gone_begins_anew_and_says_so(make, tmp_path):
    root = tmp_path / "run"
    pipeline = make(LINE, backend=Talker())
    pipeline.run(wait=True, logs_root=root, stop_after=2)
    (root / "threads/t.json").unlink()
    talker = Talker()
    run = make(LINE, backend=talker).resume(root)
    run.result(60)
    assert talker.heard == [("b", None), ("c", "")]
    (warning,) = [event for event in run.events() if isinstance(event, RunWarning)]
    assert warning.message == "thread t starts again: its entry a:1.1 is not in the run directory"


def test_a_damaged_thread_stops_the_run_which_can_go_on_without_it(make, tmp_path):
    root = tmp_path / "run"
    make(LINE, backend=Talker()).run(wait=True, logs_root=root, stop_after=2)
    (root / "threads/t.json").write_text("{}")
    with pytest.raises(StorageError, match="is damaged") as caught:
        make(LINE, backend=Talker()).resume(root).result(60)
    assert "remove it" in caught.value.hint
    (root / "threads/t.json").unlink()
    assert make(LINE, backend=Talker()).resume(root).result(60).status == "success"


def test_a_thread_says_the_same_whether_it_is_read_from_the_checkpoint_or_the_log(make, tmp_path):
    for name in ("checkpoint", "log"):
        root = tmp_path / name
        talker = Talker()
        pipeline = Pipeline(make(LINE).to_dot(), backend=talker)
        pipeline.run(wait=True, logs_root=root, stop_after=2)
        if name == "log":
            for path in root.glob("checkpoint*.json"):
                path.unlink()
        pipeline.resume(root).result(60)
        assert talker.heard == [("a", ""), ("b", None), ("c", "a")]


class Chatter:
    """Keeps its conversation as messages of a chat, as a model's backend does."""

    async def run(self, node, prompt, context):
        conversation = current_stage().conversation
        if conversation is not None:
            messages = json.loads(conversation.read() or "[]")
            asked = {"role": "user", "content": f"Do {node.id}."}
            said = {"role": "assistant", "content": f"{node.id} is done"}
            conversation.save(json.dumps([*messages, asked, said]))
        return f"{node.id} is done"


@pytest.mark.parametrize("durability", ["fast", "none"])
def test_what_a_thread_had_said_is_kept_beside_the_prompt_and_shown(make, durability):
    result = make(LINE, backend=Chatter()).run(wait=True, durability=durability)
    assert result["a"].carried is None, "nothing was carried into the first stage"
    page = result["c"].carried
    assert page == (
        "# Carried into c\n\n- Fidelity: full\n- Thread: t, as b:1.1 left it\n"
        "- Size: 4 messages, about 26 tokens\n\n"
        "- asked: Do a.\n- answered: a is done\n- asked: Do b.\n- answered: b is done\n"
    )
    assert f"--- carried\n{page.rstrip()}" in str(result["c"])


def test_a_conversation_that_is_no_list_of_messages_is_told_in_short(talk):
    _, run = talk()
    assert run["c"].carried.endswith("- Size: 3 characters, which are the backend's own\n\na b\n")


@pytest.mark.parametrize("durability", ["fast", "none"])
def test_a_preamble_is_kept_with_its_size(make, durability):
    result = make("goal=Ship a b start -> a -> b -> done").run(wait=True, durability=durability)
    preamble = carried(result["b"].prompt)
    assert result["b"].carried == (
        f"# Carried into b\n\n- Fidelity: compact\n- Size: about {-(-len(preamble) // 4)} tokens, at four "
        f"characters each\n\n{preamble}\n"
    )
    assert "--- carried" not in str(result["b"]), "the prompt shows it already"


def test_a_long_conversation_is_told_by_its_newest_lines(make):
    body = 'default_fidelity=full thread_id=t a start -> a a -> a [condition="context.n!=30"] a -> done'

    async def answer(node, prompt, context):
        context.set("n", context.get("n", 0) + 1)
        return await Chatter().run(node, prompt, context)

    page = make(body, backend=answer).run(wait=True)["a"].carried
    assert page.count("- answered: a is done") == 20
    assert "- … 18 lines before\n" in page
