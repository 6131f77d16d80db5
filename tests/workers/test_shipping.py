"""Stages that are done by the workers of an executor (``executor=``)."""

import asyncio
import json
import os
import pickle
import sys
import threading
from concurrent.futures import Executor, Future
from pathlib import Path

import pytest

from attractor_nb import FunctionBackend, Outcome, RetryableError, TerminalError, Usage, current_stage
from attractor_nb.errors import OptionError
from attractor_nb.interviewers import AutoApproveInterviewer
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import ModelCallEnded, RunWarning, StageOutput, StageStarted
from attractor_nb.model.graph import Node
from attractor_nb.redaction import MARK
from attractor_nb.workers import perform, plugs, task
from attractor_nb.workers import perform as brought
from attractor_nb.workers.lifelines import NoLifeline
from attractor_nb.workers.task import plain_node
from tests.waiting import wait_until

TOOL = 'b [shape=parallelogram, tool_command="{command}"{more}] start -> b -> done'
MODEL = 'a [prompt="Say it"{more}] start -> a -> done'
OWN = "c [type=own] start -> c -> done"


def tool(command, more=""):
    return TOOL.format(command=command, more=more)


def model(more=""):
    return MODEL.format(more=more)


def test_what_a_command_leaves_comes_back_and_nothing_stays_there(make, pool, tmp_path):
    command = r"mkdir -p out/deep; printf '\\377' > plot.bin; echo r > out/deep/r.txt; pwd; echo e >&2"
    result = make(tool(command), executor=pool).run(wait=True, logs_root="run")
    assert (result.status, result.reason) == ("success", "")
    stage = tmp_path / "run" / "b"
    assert (stage / "plot.bin").read_bytes() == b"\xff"
    assert (stage / "out/deep/r.txt").read_text() == "r\n"
    assert (stage / "stderr.txt").read_text() == "e\n"
    (there,) = (stage / "stdout.txt").read_text().splitlines()
    assert there != str(stage)
    assert not Path(there).exists(), "the worker's directory is temporary"
    assert result.context["tool.output"] == f"{there}\n"
    assert sorted(path.name for path in stage.iterdir()) == [
        "context.json", "out", "plot.bin", "status.json", "stderr.txt", "stdout.txt",
    ]  # fmt: skip


def test_a_command_gets_the_key_its_own_directory_and_the_context(make, pool, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "k" * 40)
    command = "env > env.txt; cp $ATTRACTOR_CONTEXT_FILE seen.json; cat > stdin.json"
    pipeline = make(tool(command), executor=pool, params={"ticket": 42})
    run = pipeline.run(logs_root="run")
    run.result(60)
    stage = run.logs_root / "b"
    env = dict(line.split("=", 1) for line in (stage / "env.txt").read_text().splitlines() if "=" in line)
    assert env["ATTRACTOR_IDEMPOTENCY_KEY"] == f"{run.id}:b:1"
    assert env["ATTRACTOR_NODE_ID"] == "b"
    assert str(run.logs_root.absolute()) not in env["ATTRACTOR_STAGE_DIR"] + env["ATTRACTOR_LOGS_ROOT"]
    assert "OPENAI_API_KEY" not in env
    assert (stage / "seen.json").read_text() == (stage / "stdin.json").read_text()
    assert json.loads((stage / "seen.json").read_text())["ticket"] == 42


def test_a_failing_command_fails_its_stage_with_its_files(make, pool):
    result = make(tool("echo no >&2; exit 3"), executor=pool).run(wait=True, logs_root="run")
    assert result.reason.endswith("the command ended with exit code 3: no")
    assert result.context["tool.exit_code"] == 3


def test_a_command_ends_at_its_own_time_on_the_worker(make, pool, endless, commands_with):
    result = make(tool(endless, ", timeout=300ms"), executor=pool).run(wait=True, logs_root="run")
    assert "timed out after 300ms" in result.reason
    assert commands_with(endless) == []


def test_prompts_are_answered_in_another_process(make, processes):
    def answer(node, prompt, context):
        return Response(f"{os.getpid()} {node.id} {prompt} {context.get('ticket')}", usage=Usage(3, 4, 0.5, 1))

    pipeline = make(model(), executor=processes, backend=answer, params={"ticket": 42})
    result = pipeline.run(wait=True, logs_root="run")
    pid, rest = result["a"].response.split(" ", 1)
    assert (rest.startswith("a ## Context"), rest.endswith("Say it 42")) == (True, True)
    assert int(pid) != os.getpid()
    assert result.usage == Usage(3, 4, 0.5, 1)


def test_a_backend_by_name_is_made_by_the_worker(make, processes):
    result = make(model(), executor=processes, backend="simulated").run(wait=True, durability="none")
    assert result["a"].response == "[Simulated] Response for stage: a"


def failing(kind, text):
    def answer(prompt):
        raise kind(text)

    return answer


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda prompt: Outcome.fail("no idea"), "no idea"),
        (lambda prompt: 5, "the backend returned int"),
        (lambda prompt: Outcome.success(context_updates={"s": {1}}), "context key 's' cannot keep this value"),
        (failing(TerminalError, "wrong key"), "wrong key"),
        (failing(ValueError, "odd"), "ValueError: odd"),
        (failing(RetryableError, "busy"), "busy"),
    ],
    ids=["outcome", "garbage", "unkept", "terminal", "other", "transient"],
)
def test_what_a_backend_makes_of_a_prompt_fails_the_stage_as_it_would_here(make, pool, answer, reason):
    here = make(model(), backend=answer).run(wait=True, durability="none")
    there = make(model(), backend=answer, executor=pool).run(wait=True, durability="none")
    assert reason in there.reason
    assert there.reason == here.reason
    assert there.outcomes["a"] == here.outcomes["a"]


def spends_and_fails(prompt):
    scope = current_stage()
    scope.announce(ModelCallEnded(**scope.place, model="openai:x", usage=Usage(10, 5, 0.5, 1)))
    raise TerminalError("no")


def test_calls_of_models_on_a_worker_are_announced_and_counted_here(make, pool):
    """The spending of a failed attempt counts, too."""
    seen = []
    result = make(model(), executor=pool, backend=spends_and_fails).run(wait=True, observers=[seen.append])
    (call,) = [event for event in seen if isinstance(event, ModelCallEnded)]
    assert (call.name, call.model, call.usage) == ("a", "openai:x", Usage(10, 5, 0.5, 1))
    assert (result.status, result.usage) == ("fail", Usage(10, 5, 0.5, 1))


def goes_on(node, prompt, context):
    conversation = current_stage().conversation
    conversation.save(f"{conversation.read()}{node.id}@{conversation.thread} ")
    return conversation.read()


def test_spec_5_4_a_thread_travels_to_workers_and_back(make, processes):
    body = "default_fidelity=full thread_id=t a b c start -> a -> b -> c -> done"
    result = make(body, backend=goes_on, executor=processes).run(wait=True, durability="none")
    assert result.status == "success", result.reason
    assert result["c"].response == "a@t b@t c@t "


def test_a_status_file_that_an_agent_wrote_there_counts_here(make, pool):
    def agent(prompt):
        path = current_stage().files.directory / "status.json"
        path.write_text('{"outcome": "fail", "failure_reason": "tests are red"}')
        return "All done."

    result = make(model(), backend=agent, executor=pool).run(wait=True, logs_root="run")
    assert result.status == "fail"
    assert result.outcomes["a"].failure_reason == "tests are red"


def test_what_a_backend_sets_in_the_context_comes_back(make, pool):
    def agent(node, prompt, context):
        context.set("found", [1, 2])
        context.append_log("looked around")
        return "Done."

    result = make(model(), backend=agent, executor=pool).run(wait=True, durability="none")
    assert result.context["found"] == [1, 2]
    assert result.context.logs == ("looked around",)


def test_large_values_of_the_context_travel_whole(make, pool):
    def agent(node, prompt, context):
        return str(len(context.get("big")))

    pipeline = make(model(), backend=agent, executor=pool, params={"big": "x" * 300_000})
    assert pipeline.run(wait=True, logs_root="run")["a"].response == "300000"


def own_handler():
    """Defined as in a notebook: workers cannot import it."""

    class Where:
        is_shippable = True

        def execute(self, node, context, graph, logs_root):
            context.set("pid", os.getpid())
            current_stage().files.write_text("seen.txt", " ".join(graph.nodes))
            return Outcome.success(f"timeout {node.timeout}", context_updates={"goal": graph.goal})

    return Where()


def writing_handler(how):
    """Defined as in a notebook: it writes a success, and then fails in one way or another."""

    class Writes:
        is_shippable = True
        writes_status = how != "ignored"
        observes_failures = how == "observed"

        def execute(self, node, context, graph, logs_root):
            current_stage().files.write_text("status.json", '{"outcome": "success"}')
            if how == "raised":
                raise TerminalError("no credit")
            return Outcome.fail("exit code 1")

    return Writes()


@pytest.mark.parametrize(
    ("how", "status"), [("raised", "fail"), ("observed", "fail"), ("ignored", "fail"), ("own", "success")]
)
def test_ruling_42_a_status_file_of_a_worker_makes_no_success_of_what_was_observed_there(make, processes, how, status):
    body = "c [type=own] start -> c -> done"
    result = make(body, handlers={"own": writing_handler(how)}, executor=processes).run(wait=True, logs_root="run")
    assert result.status == status
    assert result.outcomes["c"].failure_reason == {"raised": "no credit", "own": ""}.get(how, "exit code 1")


def test_a_custom_handler_that_says_so_is_shipped(make, processes):
    body = 'graph [goal="Ship it"] x [prompt=p] c [type=own, timeout=9s] start -> c -> done start -> x -> done'
    pipeline = make(body, handlers={"own": own_handler()}, executor=processes)
    result = pipeline.run(wait=True, logs_root="run")
    assert (result.status, result.reason) == ("success", "")
    assert result.context["pid"] != os.getpid()
    assert result.context["goal"] == "Ship it"
    assert sorted((result.logs_root / "c/seen.txt").read_text().split()) == ["c", "done", "start"]
    assert result.outcomes["c"].notes == "timeout 9s"


def test_a_custom_handler_that_does_not_say_so_stays_here(make, processes):
    def handler(node, context, graph, logs_root):
        return Outcome.success(context_updates={"pid": os.getpid()})

    result = make(OWN, handlers={"own": handler}, executor=processes).run(wait=True, durability="none")
    assert result.context["pid"] == os.getpid()


def test_output_arrives_while_the_worker_is_at_work(make, pool, tmp_path):
    heard = threading.Event()
    said = []

    def hear(event):
        if isinstance(event, StageOutput):
            said.append(event.text)
            heard.set()

    command = f"echo begun; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo over"
    run = make(tool(command), executor=pool).run(logs_root="run", observers=[hear])
    was_heard = heard.wait(30)
    said_before = "".join(said)
    (tmp_path / "go").touch()  # whatever was heard: a pool waits for its worker
    assert was_heard, "nothing was heard before the end"
    assert said_before == "begun\n"
    assert run.result(30).status == "success"
    wait_until(lambda: "".join(said) == "begun\nover\n", what="the rest of the output")


def test_stopping_a_run_ends_its_command_on_the_worker(make, pool, tmp_path, endless, commands_with):
    run = make(tool(f"touch {tmp_path}/begun; {endless}"), executor=pool).run(logs_root="run")
    wait_until((tmp_path / "begun").exists)
    run.cancel()
    assert run.result(60).status == "interrupted"
    wait_until(lambda: not commands_with(endless), "the end of the command")


def test_files_over_the_limits_stay_there_and_are_named(make, threads, monkeypatch):
    monkeypatch.setattr(brought, "MAX_RETURNED_BYTES", 1000)
    command = "head -c 5000 /dev/zero > large.bin; echo s > small.txt; ln -s /etc/passwd link; mkfifo pipe"
    result = make(tool(command), executor=threads).run(wait=True, logs_root="run")
    stage = result.logs_root / "b"
    assert (stage / "small.txt").exists()
    assert not {"large.bin", "link", "pipe"} & {path.name for path in stage.iterdir()}
    (warning,) = [event.message for event in result_events(result) if isinstance(event, RunWarning)]
    for name in ("large.bin: ", "link: not a plain file", "pipe: not a plain file"):
        assert name in warning


def result_events(result):
    from attractor_nb.storage.stored_run import read_run

    return read_run(result.logs_root).events


# -- secrets ------------------------------------------------------------------------------------------


def test_secrets_of_the_worker_are_taken_out_of_what_comes_back(make, pool, monkeypatch):
    def agent(prompt):
        token = "-".join(["hunter2", "q" * 20])
        current_stage().files.write_bytes("raw.bin", token.encode() + b"\xff")
        return f"the token is {token}"

    pipeline = make(model(), backend=agent, executor=pool)
    result = pipeline.run(wait=True, logs_root="run", secrets=["hunter2-" + "q" * 20])
    assert result["a"].response == f"the token is {MARK}"
    assert (result.logs_root / "a/raw.bin").read_bytes() == MARK.encode() + b"\xff"


def test_a_command_with_a_secret_is_not_shipped(make, losing, monkeypatch):
    executor = losing(0)
    secret = "tok-" + "z" * 20
    pipeline = make(tool(f"curl -H {secret}"), executor=executor)
    result = pipeline.run(wait=True, logs_root="run", secrets=[secret])
    assert "stage b holds a secret, and secrets are not sent to workers" in result.reason
    assert executor.stages == []


def test_no_value_of_the_environment_is_in_a_task(make, losing, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-" + "w" * 40)
    monkeypatch.setenv("PLAIN_SETTING", "walrus")
    executor = losing(0)
    result = make(tool("true"), executor=executor).run(wait=True, logs_root="run")
    assert result.status == "success"
    (shipped,) = executor.stages
    text = json.dumps(shipped)  # plain data, all of it
    assert "walrus" not in text
    assert "wwww" not in text


class Client:
    """A client that keeps its key."""

    def __init__(self):
        self.key = "own-" + "s" * 30

    def run(self, node, prompt, context):
        return "hi"


def test_a_backend_that_keeps_a_key_is_refused_before_anything_is_made(make, threads, tmp_path):
    pipeline = make(model(), backend=Client(), executor=threads)
    with pytest.raises(OptionError, match="holds a secret, and secrets are not sent to workers"):
        pipeline.run(wait=True, logs_root="run", secrets=["own-" + "s" * 30])
    assert not (tmp_path / "run").exists()


# -- bad input ----------------------------------------------------------------------------------------


class Locked:
    """Cannot be pickled."""

    is_shippable = True

    def __init__(self):
        self._lock = threading.Lock()

    def run(self, node, prompt, context):
        return "hi"

    def execute(self, node, context, graph, logs_root):
        return Outcome.success()

    def __repr__(self):
        return "<Locked>"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": Locked()}, "the backend <Locked> cannot be sent to workers: cannot pickle '_thread.lock'"),
        ({"handlers": {"own": Locked()}}, "the handler of type 'own' <Locked> cannot be sent"),
    ],
    ids=["backend", "handler"],
)
def test_what_cannot_be_pickled_is_named_before_anything_is_made(make, threads, tmp_path, options, message):
    with pytest.raises(OptionError, match=message) as caught:
        make(model(), executor=threads, **options).run(wait=True, logs_root="run")
    assert "open connections, locks and files where it is called" in caught.value.hint
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("executor", "message"),
    [("threads", "not str"), (4, "not int"), (threading.Thread, "not Thread")],
    ids=["name", "number", "class"],
)
def test_what_is_no_executor_is_refused_before_anything_is_made(make, tmp_path, executor, message):
    with pytest.raises(OptionError, match=message):
        make(model(), executor=executor).run(wait=True, logs_root="run")
    assert not (tmp_path / "run").exists()


def test_a_function_that_makes_no_executor_is_refused(make):
    def nothing():
        return []

    with pytest.raises(OptionError, match="a function that returns a list, not an executor"):
        make(model(), executor=nothing).run(wait=True, durability="none")


@pytest.mark.parametrize("wait", ["soon", 0, -1, True, float("inf")], ids=str)
def test_worker_wait_is_a_duration(make, threads, wait):
    with pytest.raises(OptionError, match="worker_wait must be a duration above zero"):
        make(model(), executor=threads).run(wait=True, durability="none", worker_wait=wait)


def test_an_executor_that_was_shut_down_fails_the_run_at_once(make, threads):
    threads.shutdown()
    result = make(model(), executor=threads).run(wait=True, logs_root="run")
    assert result.reason == (
        "the executor did not start: the executor accepts no task:  cannot schedule new futures after shutdown"
        " (pass an open executor, or none)"
    )


def test_an_executor_that_never_answers_fails_the_run_in_bounded_time(make, threads):
    hold = threading.Event()
    busy = [threads.submit(hold.wait, 60) for _ in range(2)]
    try:
        result = make(model(), executor=threads).run(wait=True, logs_root="run", worker_wait="200ms")
    finally:
        hold.set()
        [future.result() for future in busy]
    assert "no worker answered within 0.2 s" in result.reason
    assert result.visits == {}


def test_a_worker_of_another_version_refuses_and_nothing_is_done(make, threads, monkeypatch):
    monkeypatch.setattr("attractor_nb.workers.shipping.FORM", task.FORM + 1)
    result = make(model(), executor=threads).run(wait=True, logs_root="run")
    assert f"reads tasks of form {task.FORM}, not {task.FORM + 1}" in result.reason
    report = perform.perform({"form": task.FORM + 1})
    assert f"reads tasks of form {task.FORM}, not {task.FORM + 1}" in report["refused"]


# -- lost workers -------------------------------------------------------------------------------------


def attempts(result):
    return [event.attempt for event in result_events(result) if isinstance(event, StageStarted) and event.name in "ab"]


def test_a_stage_whose_worker_was_lost_is_run_again_under_the_same_key(make, losing):
    executor = losing(2)
    result = make(model(), executor=executor).run(wait=True, logs_root="run")
    assert result.status == "success"
    assert attempts(result) == [1, 2, 3]
    assert len({stage["idempotency_key"] for stage in executor.stages}) == 1
    assert "worker lost, and run again" in result.outcomes["a"].notes
    messages = [event.message for event in result_events(result) if isinstance(event, RunWarning)]
    assert messages == [f"a, attempt {n}: the worker of stage a was lost: a process ended abruptly" for n in (1, 2)]


def test_a_stage_that_ends_every_worker_fails_for_good(make, losing):
    executor = losing(99)
    result = make(model(", max_retries=5"), executor=executor).run(wait=True, logs_root="run")
    assert len(executor.stages) == 3
    assert result.outcomes["a"].failure_reason.startswith(
        "3 workers were lost with it; the last: the worker of stage a"
    )
    assert result.outcomes["a"].is_terminal


def test_a_lost_command_is_not_run_again_when_its_rule_is_fail(make, losing):
    executor = losing(1)
    result = make(tool("true", ", on_interrupted=fail"), executor=executor).run(wait=True, logs_root="run")
    assert len(executor.stages) == 1
    assert "is not run again (on_interrupted=fail)" in result.outcomes["b"].failure_reason


def test_a_person_is_asked_about_a_lost_command(make, losing):
    asked = []

    def answer(question):
        asked.append(question.text)
        return "R"

    executor = losing(1)
    result = make(tool("true"), executor=executor, interviewer=answer).run(wait=True, logs_root="run")
    assert asked == ["Stage b was cut off and may have taken effect already."]
    assert (result.status, len(executor.stages)) == ("success", 2)
    assert "run again" in result.outcomes["b"].notes


def test_the_safe_answer_about_a_lost_command_is_to_record_it_as_failed(make, losing):
    executor = losing(1)
    pipeline = make(tool("true"), executor=executor, interviewer=AutoApproveInterviewer())
    result = pipeline.run(wait=True, logs_root="run")
    assert (result.status, len(executor.stages)) == ("fail", 1)
    assert "it was cut off, and recorded as failed" in result.outcomes["b"].failure_reason


def test_the_stages_of_a_mapped_run_are_shipped_too(make, processes):
    def answer(prompt):
        return str(os.getpid())

    pipeline = make(model(), backend=answer, executor=processes)
    result = pipeline.map([{"n": 1}, {"n": 2}], wait=True, map_dir="map", outputs=["a.response"])
    pids = {int(row.outputs["a.response"]) for row in result}
    assert os.getpid() not in pids


class LettingGo(Executor):
    """Gives every task up at once, as a Dask client does whose workers have just gone."""

    def submit(self, function, /, *arguments, **options):
        future = Future()
        try:
            "the reason".with_traceback(None)
        except AttributeError as error:
            future.set_exception(error)
        return future


def test_an_executor_that_gives_the_probe_up_is_one_that_does_not_answer(make):
    result = make(model(), executor=LettingGo()).run(wait=True, logs_root="run", worker_wait="200ms")
    assert "no worker answered within 0.2 s" in result.reason
    assert "AttributeError" not in result.reason


# -- answers that are none ----------------------------------------------------------------------------


class Answering(Executor):
    """Does its tasks in this thread, and gives another answer to the probe, or to a stage."""

    def __init__(self, probe=None, stage=None):
        self.probe, self.stage = probe, stage

    def submit(self, function, /, *arguments, **options):
        future, change = Future(), self.stage if arguments else self.probe
        try:
            found = function(*arguments)
            future.set_result(found if change is None else change(found))
        except Exception as error:  # noqa: BLE001 - as any executor
            future.set_exception(error)
        return future


def refuses(report):
    raise ValueError("not for you")


def test_a_probe_that_raises_fails_the_run_in_its_words(make):
    result = make(model(), executor=Answering(probe=refuses)).run(wait=True, logs_root="run")
    assert (result.status, result.visits) == ("fail", {})
    assert "not for you" in result.reason
    assert "the probe" in result.reason


def test_a_worker_of_another_version_that_comes_later_refuses_its_stage_with_the_remedy(make):
    def refused(report):
        return {**report, "refused": "worker w reads tasks of form 0, not 9"}

    result = make(model(), executor=Answering(stage=refused)).run(wait=True, logs_root="run")
    outcome = result.outcomes["a"]
    assert "worker w reads tasks of form 0, not 9" in outcome.failure_reason
    assert "install the same version of attractor_nb everywhere" in outcome.failure_reason
    assert outcome.is_terminal


def test_a_command_that_could_not_be_started_there_fails_its_stage_as_it_would_here(make):
    def not_started(report):
        return {**report, "value": {}, "outcome": Outcome.fail("no such shell", is_terminal=True).to_plain()}

    result = make(tool("true"), executor=Answering(stage=not_started)).run(wait=True, logs_root="run")
    assert "no such shell" in result.outcomes["b"].failure_reason
    assert result.outcomes["b"].is_terminal


def test_without_cloudpickle_what_a_module_has_travels_and_a_lambda_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    assert pickle.loads(plugs.packed(own_handler, "the handler")) is own_handler
    with pytest.raises(OptionError, match=r"the backend <function .* cannot be sent to workers: ") as told:
        plugs.packed(lambda prompt: prompt, "the backend")
    assert "a function of a module" in told.value.hint


# -- the worker's own side ----------------------------------------------------------------------------


async def waits_for_ever(node, prompt, context):
    await asyncio.Event().wait()


def times_out(prompt):
    raise TimeoutError("of its own")


@pytest.mark.parametrize(
    ("answer", "seconds"), [(waits_for_ever, 0.01), (times_out, None)], ids=["time limit", "its own"]
)
def test_work_that_takes_too_long_is_a_failure_that_may_be_tried_again(answer, seconds):
    plain = task.StageTask(
        id="t1",
        form=task.FORM,
        kind=task.PROMPT,
        work={"node": plain_node(Node("a")), "prompt": "Say it", "backend": "", "attachments": ()},
        scope={"run_id": "r", "node_id": "a", "visit": 1, "attempt": 1},
        timeout_seconds=seconds,
    ).to_plain()
    report = perform.perform(plain, plugs.packed(FunctionBackend(answer), "the backend"))
    assert report["outcome"]["outcome"] == "retry"
    assert report["outcome"]["failure_reason"] == "timeout: a took more than its time"
    assert report["is_failure"]


def test_work_that_is_cancelled_here_is_cancelled_and_not_lost():
    async def main():
        work = asyncio.ensure_future(perform._held(asyncio.Event().wait(), NoLifeline()))
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())


def test_whoever_interrupts_the_wait_for_a_task_ends_it(monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    async def work():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def interrupted():
        assert begun.wait(60)
        raise KeyboardInterrupt

    def submit(work, loop, begin=asyncio.run_coroutine_threadsafe):
        future = begin(work, loop)
        future.result = interrupted
        return future

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", submit)
    with pytest.raises(KeyboardInterrupt):
        perform.run_in_loop(work())
    assert ended.wait(60)


def test_a_named_backend_that_does_not_start_is_made_anew_for_the_next_task(monkeypatch):
    made = []

    class Down:
        async def open(self):
            made.append(self)
            if len(made) == 1:
                raise ConnectionRefusedError("port 9")

        async def close(self):
            made.remove(self)
            made.append("closed")

        async def run(self, node, prompt, context):
            return "here"

    monkeypatch.setattr(perform, "resolve_backend", lambda name: Down())
    monkeypatch.setattr(perform, "_KEPT", {})

    async def main():
        with pytest.raises(ConnectionRefusedError):
            async with perform.named_backend("one"):
                raise AssertionError
        async with perform.named_backend("one") as backend:
            return await backend.run(None, "", None), made[-1] is backend or backend in made

    assert asyncio.run(main()) == ("here", True)
    assert "closed" in made
