"""Telling a running stage something: who has it when, what is recorded, what is refused, what survives."""

import asyncio
import threading

import pytest

from attractor_nb import Outcome, Pipeline, Run, diff
from attractor_nb.errors import OptionError, RunError, RunNotFound
from attractor_nb.model.events import InstructionCarried, InstructionGiven, RunWarning
from attractor_nb.model.instruction import MAX_INSTRUCTION
from attractor_nb.runtime.handles import handle
from attractor_nb.stage import current_stage
from attractor_nb.storage.stored_run import read_run
from attractor_nb.testing import ScriptedBackend

CHAIN = """digraph chain { start [shape=Mdiamond] plan [prompt="Plan it", max_retries=1] build [prompt="Build it"]
  check [shape=parallelogram, tool_command="true"] ask [shape=hexagon, label="Fine?"] done [shape=Msquare]
  start -> plan -> build -> check -> done build -> ask [condition="outcome=fail"] ask -> done [label="Yes"] }"""
NAILS = "Use two nails\n## Task\nand ``` no glue"


class Told:
    """Answers at once, and calls something while a node is under way."""

    def __init__(self, node, act, *answers):
        self.node, self.act, self.answers = node, act, list(answers)
        self.prompts = []

    async def run(self, node, prompt, context):
        """Answer."""
        self.prompts.append((node.id, prompt))
        if node.id == self.node and self.act:
            act, self.act = self.act, None
            result = act()
            if asyncio.iscoroutine(result):
                await result
        return self.answers.pop(0) if node.id == self.node and self.answers else "done"


def told(directory, node, whom, *answers, text=CHAIN, words=NAILS, **options):
    """Run a chain and tell it something while a node is under way: the prompts, the result, and the receipt."""
    receipts = []
    backend = Told(node, lambda: receipts.append(running.tell(whom, words)), *answers)

    async def go():
        nonlocal running
        running = Pipeline(text, **options).run(
            backend=backend, logs_root=directory, durability="fast", host="kernel", trust=True
        )
        return await running

    running = None
    result = asyncio.run(go())
    return backend.prompts, result, receipts[0]


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "run"


def carriers(prompts):
    return [node for node, prompt in prompts if "Use two nails" in prompt]


# -- who has it when ---------------------------------------------------------------------------------


def test_the_next_attempt_of_the_node_carries_it_and_no_prompt_after_its_commit(directory):
    prompts, result, receipt = told(directory, "plan", "plan", Outcome.retry("not yet"))
    assert result.status == "success"
    assert [node for node, _ in prompts] == ["plan", "plan", "build"]
    assert [("Use two nails" in prompt) for _, prompt in prompts] == [False, True, False]
    assert str(receipt) == "queued for the next attempt of plan"
    assert (receipt.stage, receipt.reach) == ("plan", "attempt")


def test_one_for_another_node_waits_for_that_node(directory):
    prompts, _, receipt = told(directory, "plan", "build", Outcome.retry("not yet"))
    assert carriers(prompts) == ["build"]
    assert str(receipt) == "queued for the next attempt of build"


def test_without_a_node_the_next_prompt_carries_it(directory):
    prompts, _, receipt = told(directory, "plan", None)
    assert carriers(prompts) == ["build"]
    assert str(receipt) == "queued for the next prompt"


def test_a_prompt_has_it_in_a_fence_as_the_word_of_a_person(directory):
    prompts, _, _ = told(directory, "plan", None)
    prompt = dict(prompts)["build"]
    fence = f"````\n{NAILS}\n````"
    assert prompt.endswith(f"## Message from a person, given while the run was under way\n\n{fence}")
    assert (directory / "build/prompt.md").read_text() == prompt


def test_what_is_told_is_an_event_and_a_file_of_the_stage_under_way(directory):
    told(directory, "plan", "plan")
    [given] = read_run(directory).events.select(InstructionGiven)
    assert (given.text, given.given_by, given.node, given.stage) == (NAILS, "call", "plan", "plan")
    assert given.is_from_person
    assert given.node_id == "plan"
    assert [path.read_text() for path in directory.rglob(given.file)] == [NAILS]


def test_the_secrets_are_taken_out_of_it(directory):
    receipts = []
    backend = Told("plan", lambda: receipts.append(running.tell(None, "The word is hunter2-hunter2")))

    async def go():
        nonlocal running
        running = Pipeline(CHAIN).run(
            backend=backend, logs_root=directory, host="kernel", secrets=["hunter2-hunter2"], trust=True
        )
        await running

    running = None
    asyncio.run(go())
    texts = [path.read_text() for path in directory.rglob("*") if path.is_file()]
    assert not [text for text in texts if "hunter2-hunter2" in text]
    assert "hunter2" not in receipts[0].text
    assert any("The word is" in prompt for _, prompt in backend.prompts)


def test_it_can_be_told_from_any_thread_while_the_engine_works_in_its_own(directory):
    reached, free = threading.Event(), threading.Event()

    prompts = []

    class Holding:
        def run(self, node, prompt, context):
            prompts.append((node.id, prompt))
            if node.id == "plan":
                reached.set()
                assert free.wait(60)
            return "done"

    running = Pipeline(CHAIN).run(backend=Holding(), logs_root=directory, durability="fast", trust=True)
    assert reached.wait(60)
    assert running.tell("build", "Use two nails").reach == "attempt"
    free.set()
    assert running.result(60).status == "success"
    assert carriers(prompts) == ["build"]


def test_a_run_whose_loop_is_held_up_does_not_have_it_later_either(directory, monkeypatch):
    monkeypatch.setattr(handle, "CALL_SECONDS", 0.05)
    said = []

    def tell():
        try:
            running.tell("build", "Use two nails")
        except RunError as error:
            said.append(error.message)

    class Blocking(ScriptedBackend):
        async def run(self, node, prompt, context):
            if node.id == "plan":
                await asyncio.to_thread(begun.wait, 60)
                telling = threading.Thread(target=tell)
                telling.start()
                telling.join()  # the loop is held up until then
            return await super().run(node, prompt, context)

    begun, backend = threading.Event(), Blocking()
    running = Pipeline(CHAIN).run(backend=backend, logs_root=directory, durability="fast", trust=True)
    begun.set()
    assert running.result(60).status == "success"
    assert said == [f"run {running.id} in {directory} did not take the call in 0.05 s"]
    assert carriers([(call.node_id, call.prompt) for call in backend.calls]) == []


def test_a_backend_that_asks_for_more_has_it_within_the_attempt(directory):
    receipts, more = [], []

    class Asking(ScriptedBackend):
        async def run(self, node, prompt, context):
            if node.id != "plan":
                return await super().run(node, prompt, context)
            scope = current_stage()
            scope.reach = "request"
            receipts.append(running.tell(None, "Use two nails"))
            more.extend([scope.more_instructions(), scope.more_instructions()])
            scope.reach = ""
            return "planned"

    async def go():
        nonlocal running
        running = Pipeline(CHAIN).run(
            backend=backend, logs_root=directory, durability="fast", host="kernel", trust=True
        )
        await running

    running, backend = None, Asking()
    asyncio.run(go())
    assert str(receipts[0]) == "plan receives it with its next request"
    assert "Use two nails" in more[0]
    assert more[1] == ""
    assert not [call for call in backend.calls if "Use two nails" in call.prompt], "plan had it, and is committed"
    [carried] = read_run(directory).events.select(InstructionCarried)
    assert (carried.name, carried.visit, carried.attempt, carried.numbers) == ("plan", 1, 1, (1,))


def test_in_branches_a_message_for_one_node_reaches_that_node_alone(directory):
    text = """digraph fan { start [shape=Mdiamond] first [prompt="First"] fan [shape=component] a [prompt="A"] b [prompt="B"]
      join [shape=tripleoctagon] done [shape=Msquare] start -> first -> fan fan -> a -> join fan -> b -> join join -> done }"""
    prompts, result, _ = told(directory, "first", "b", text=text)
    assert result.status == "success"
    assert carriers(prompts) == ["b"]


def test_a_stage_of_a_child_run_is_named_by_its_path(directory):
    worker = """digraph worker { start [shape=Mdiamond] plan [prompt="Plan it"] build [prompt="Build it"]
      done [shape=Msquare] start -> plan -> build -> done }"""
    top = """digraph top { start [shape=Mdiamond] done [shape=Msquare] sub [type=pipeline, pipeline.name=worker]
      start -> sub -> done }"""
    prompts, result, receipt = told(directory, "plan", "sub>build", text=top, pipelines={"worker": worker})
    assert result.status == "success"
    assert carriers(prompts) == ["build"]
    assert receipt.node == "build"
    assert read_run(directory / "children/sub/1").events.select(InstructionGiven)


# -- what survives -----------------------------------------------------------------------------------


def interrupted(directory, act, text=CHAIN):
    """A run that is stopped while ``plan`` is under way, after something was done."""

    async def go():
        nonlocal running
        running = Pipeline(text).run(
            backend=Told("plan", stop), logs_root=directory, durability="fast", host="kernel", trust=True
        )
        return await running

    async def stop():
        act(running)
        running.cancel()
        await asyncio.Event().wait()

    running = None
    assert asyncio.run(go()).status == "interrupted"
    return running


def resumed(directory):
    backend = Told("", None)
    result = Pipeline(CHAIN).resume(directory, backend=backend, trust=True).result(60)
    assert result.status == "success"
    return backend.prompts


def test_what_no_committed_prompt_carried_is_carried_after_a_resume(directory):
    interrupted(directory, lambda run: run.tell("plan", "Use two nails"))
    assert carriers(resumed(directory)) == ["plan"]


def test_what_an_attempt_had_that_was_cut_off_the_next_one_has_again(directory):
    def act(run):
        scope = current_stage()
        scope.reach = "request"
        run.tell(None, "Use two nails")
        assert "Use two nails" in scope.more_instructions()

    interrupted(directory, act)
    assert carriers(resumed(directory)) == ["plan"]


@pytest.mark.parametrize("how", ["the handle", "its directory"])
def test_a_run_that_stands_still_has_it_when_it_goes_on(directory, how):
    run = interrupted(directory, lambda run: None)
    receipt = (run if how == "the handle" else Run.load(directory)).tell("build", "Use two nails", given_by="somebody")
    assert str(receipt) == "queued for the next attempt of build"
    assert Run.load(directory).status == "interrupted"
    [given] = read_run(directory).events.select(InstructionGiven)
    assert given.given_by == "somebody"
    assert carriers(resumed(directory)) == ["build"]


def test_a_restart_has_what_waited_before_it_also_after_a_crash(directory):
    text = """digraph again { start [shape=Mdiamond] plan [prompt="Plan it"] look [prompt="Look"] done [shape=Msquare]
      start -> plan -> look look -> done [condition="outcome=success"]
      look -> plan [condition="outcome=fail", loop_restart=true] }"""
    seen = []

    async def stop():
        running.cancel()
        await asyncio.Event().wait()

    class Backend:
        async def run(self, node, prompt, context):
            seen.append((node.id, prompt))
            if [name for name, _ in seen] == ["plan"]:
                running.tell("look", "First: use two nails")
            elif [name for name, _ in seen] == ["plan", "look"]:
                running.tell("look", "Use two nails")
                return Outcome.fail("again")
            elif len(seen) == 3:
                await stop()
            return "done"

    async def go():
        nonlocal running
        running = Pipeline(text).run(backend=Backend(), logs_root=directory, durability="fast", host="kernel")
        return await running

    running = None
    assert asyncio.run(go()).status == "interrupted"
    assert [node for node, _ in seen] == ["plan", "look", "plan"]
    backend = Told("", None)
    assert Pipeline(text).resume(directory, backend=backend).result(60).status == "success"
    assert carriers(backend.prompts) == ["look"]
    assert not [prompt for _, prompt in backend.prompts if "First" in prompt]


def test_a_result_that_a_message_changed_is_not_kept_in_the_cache(directory, tmp_path):
    class Asking:
        calls = 0

        async def run(self, node, prompt, context):
            self.calls += 1
            scope = current_stage()
            if running is not None and node.id == "plan":
                scope.reach = "request"
                running.tell("plan", "Use two nails")
                return f"planned: {scope.more_instructions()}"
            return "done"

    async def go():
        nonlocal running
        running = Pipeline(CHAIN).run(
            backend=backend, logs_root=directory, cache=tmp_path / "cache", host="kernel", trust=True
        )
        await running

    running, backend = None, Asking()
    asyncio.run(go())
    running, backend = None, Asking()
    result = Pipeline(CHAIN).run(
        backend=backend, logs_root=tmp_path / "second", cache=tmp_path / "cache", wait=True, trust=True
    )
    assert result.context["last_response"] == "done"
    assert "Use two nails" not in (tmp_path / "second/plan/response.md").read_text()


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "text", "message"),
    [
        pytest.param("plam", "x", r"no node 'plam'; did you mean \"plan\"\?", id="an unknown node"),
        pytest.param("check", "x", "check asks no model: it is a stage of type tool", id="a stage without a model"),
        pytest.param("ask", "x", "ask asks no model: it is a stage of type wait.human", id="a gate"),
        pytest.param("plan", "  ", "the instruction is empty", id="nothing"),
        pytest.param("plan", 7, "must be text, not int", id="no text"),
        pytest.param(
            None, "x" * (MAX_INSTRUCTION + 1), "has 20,001 characters, and at most 20,000 are allowed", id="too much"
        ),
    ],
)
def test_what_cannot_be_told_is_refused_with_the_reason(directory, node, text, message):
    run = interrupted(directory, lambda run: None)
    with pytest.raises(OptionError, match=message):
        run.tell(node, text)
    live = []

    def act(run):
        with pytest.raises(OptionError, match=message) as caught:
            run.tell(node, text)
        live.append(caught.value)

    interrupted(directory.with_name("live"), act)
    assert live
    if node in {"plam", "check", "ask"}:
        assert live[0].hint == "model stages: plan, build"
    assert not read_run(directory).events.select(InstructionGiven)


@pytest.mark.parametrize("answer", ["done", Outcome.fail("no")], ids=["completed", "failed"])
@pytest.mark.parametrize("durability", ["fast", "none"])
def test_a_run_that_has_ended_is_told_nothing(directory, answer, durability):
    text = 'digraph d { start [shape=Mdiamond] plan [prompt="Plan it"] done [shape=Msquare] start -> plan -> done }'
    place = {"logs_root": directory} if durability == "fast" else {}
    run = Pipeline(text).run(backend=ScriptedBackend({"plan": answer}), durability=durability, **place)
    run.result(60)
    with pytest.raises(RunError, match="has ended"):
        run.tell(None, "Use two nails")


def test_a_child_run_that_does_not_exist_yet_is_told_nothing(directory):
    run = interrupted(directory, lambda run: None)
    with pytest.raises(RunNotFound, match="plan has no child run yet"):
        run.tell("plan>inner", "Use two nails")


def test_a_pipeline_that_asks_no_model_is_told_nothing(tmp_path):
    text = """digraph d { start [shape=Mdiamond] done [shape=Msquare] ask [shape=hexagon, label="Fine?"]
      start -> ask -> done [label="Yes"] }"""
    run = Pipeline(text).run(logs_root=tmp_path / "run", interviewer="deferred")
    run.wait_for_gate(timeout=60)
    with pytest.raises(OptionError, match="no stage of this pipeline asks a model"):
        run.tell(None, "Use two nails")
    run.cancel()
    run.result(60)


# -- who looks ---------------------------------------------------------------------------------------


def test_the_inspection_says_what_each_attempt_was_told_and_how(directory):
    told(directory, "plan", "plan", Outcome.retry("not yet"))
    run = Run.load(directory)
    first, second = run.inspect("plan", attempt=1), run.inspect("plan", attempt=2)
    assert [(line.text, line.given_by, line.words) for line in first.messages] == [
        (NAILS, "call", "not received in this attempt")
    ]
    assert [line.words for line in second.messages] == ["in the prompt"]
    assert run.inspect("build").messages == ()
    assert second.to_plain()["messages"] == [
        {"text": NAILS, "given_by": "call", "reach": "prompt", "words": "in the prompt"}
    ]
    assert "told" in str(second)
    assert "in the prompt" in second._repr_mimebundle_()["text/html"]


def test_the_timeline_has_the_moment_of_a_message(directory):
    told(directory, "plan", "build", words="Use two nails")
    run = Run.load(directory)
    [bar] = [bar for lane in run.timeline().timeline.lanes for bar in lane.bars if bar.node == "build"]
    assert not bar.calls
    words = [bar.words for lane in run.timeline().timeline.lanes for bar in lane.bars if bar.node == "plan"]
    assert not [text for text in words if "message" in text], "none that is for another stage"


def test_the_timeline_shows_a_message_in_the_attempt_that_was_under_way(directory):
    told(directory, "plan", None, words="Use two nails")
    timeline = Run.load(directory).timeline()
    [bar] = [bar for lane in timeline.timeline.lanes for bar in lane.bars if bar.node == "plan"]
    assert "message Use two nails" in bar.words
    assert "1 message" in str(timeline)
    assert "is-message" in timeline.to_svg()


def test_a_comparison_shows_what_one_run_was_told_beside_its_prompt(directory):
    def act(run):
        scope = current_stage()
        scope.reach = "request"
        run.tell("plan", "Use two nails")
        scope.more_instructions()

    def run_of(place, act):
        async def go():
            nonlocal running
            backend = Told("plan", lambda: act(running))
            running = Pipeline(CHAIN).run(
                backend=backend, logs_root=place, durability="fast", host="kernel", trust=True
            )
            return await running

        running = None
        return asyncio.run(go())

    a, b = run_of(directory / "a", lambda run: None), run_of(directory / "b", act)
    found = diff(a, b)
    assert [(pair.node, pair.differences) for pair in found.steps if pair.differences] == [("plan", ("messages",))]
    assert "Use two nails" in str(found)


def test_what_a_restart_carried_on_is_in_the_inspection_of_who_received_it(directory):
    text = """digraph again { start [shape=Mdiamond] plan [prompt="Plan it"] look [prompt="Look"] done [shape=Msquare]
      start -> plan -> look look -> done [condition="outcome=success"]
      look -> plan [condition="outcome=fail", loop_restart=true] }"""
    _, result, _ = told(directory, "look", "plan", Outcome.fail("again"), text=text)
    assert result.status == "success"
    assert [line.words for line in Run.load(directory).inspect("plan").messages] == ["in the prompt"]


def test_a_message_that_no_model_received_is_a_warning_at_the_end(directory):
    _, result, receipt = told(directory, "build", "plan", words="Use two nails")
    assert (result.is_success, str(receipt)) == (True, "queued for the next attempt of plan")
    warnings = [event.message for event in read_run(directory).events if isinstance(event, RunWarning)]
    assert warnings == ["no model received the message to plan before the run ended: Use two nails"]


def test_a_message_that_a_prompt_carried_is_no_warning(directory):
    told(directory, "plan", "build", words="Use two nails")
    assert not [event for event in read_run(directory).events if isinstance(event, RunWarning)]
