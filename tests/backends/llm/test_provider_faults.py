"""Every answer of a provider, and its absence, is classed (Appendix D); a part of an answer is never one."""

import asyncio
import re
import socket

import pytest
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError

from attractor_nb import Context, Pipeline, ProviderBackend
from attractor_nb.backends.llm.model_requests import Target
from attractor_nb.backends.llm.provider_failures import failure_of
from attractor_nb.errors import RetryableError, TerminalError
from attractor_nb.model.graph import Node
from attractor_nb.testing import ManualClock

SHAPES = ("openai", "anthropic", "google")
BUSY, REFUSED = RetryableError, TerminalError
SAID = "half of what was to be said in so many words"
FAULTS = {
    # name: the reply, what becomes of it, what its message says
    "429": ({"status": 429, "error": "slow down", "headers": {"retry-after": "7"}}, BUSY, r"\(429\): slow down"),
    "500": ({"status": 500, "error": "oops"}, BUSY, r"\(500\): oops"),
    "503": ({"status": 503, "error": "overloaded"}, BUSY, r"\(503\)"),
    "a page of a proxy": ({"status": 502, "raw": b"<html>bad gateway</html>"}, BUSY, r"\(502\)"),
    "silence": ({"ends": "hang", "after": 0}, BUSY, "took too long"),
    "silence in the middle": ({"text": SAID, "ends": "hang"}, BUSY, "took too long|broke off|Timeout"),
    "a reset": ({"ends": "reset", "after": 0}, BUSY, "cannot be reached, or broke off"),
    "a reset in the middle": ({"text": SAID, "ends": "reset"}, BUSY, "cannot be reached, or broke off"),
    "a cut stream": ({"text": SAID, "ends": "cut"}, BUSY, "cannot be reached, or broke off"),
    "a stream without its last events": ({"text": SAID, "ends": "short"}, BUSY, "no end|finish_reason"),
    "a stream that does not say why it ends": ({"text": SAID, "finish": ""}, BUSY, "no end|finish_reason"),
    "malformed JSON": ({"raw": b"event: message_start\ndata: {not json}\n\n"}, BUSY, "invalid response"),
    "another shape": ({"raw": b"event: message_start\ndata: []\n\n"}, BUSY, "invalid response|cannot be read"),
    "another charset": ({"raw": 'event: message_start\ndata: {"ä": 1}\n\n'.encode("latin-1")}, BUSY, "invalid response|no end"),
    "another content type": ({"raw": b"<html>hello</html>", "content_type": "text/html"}, BUSY, "which is not an API response"),
    "nothing": ({"raw": b""}, BUSY, "invalid response"),
    "a refusal": ({"text": "I will not", "finish": "refusal"}, REFUSED, "refused to answer"),
    "400": ({"status": 400, "error": "bad"}, REFUSED, r"refused the request \(400\): bad"),
    "401": ({"status": 401, "error": "who"}, REFUSED, r"refused the key \(401\)"),
    "403": ({"status": 403, "error": "not you"}, REFUSED, r"refused the key \(403\)"),
    "404": ({"status": 404, "error": "no such model"}, REFUSED, r"is not known \(404\)"),
    "422": ({"status": 422, "error": "bad"}, REFUSED, r"refused the request \(422\)"),
}  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("shape", SHAPES)
def test_each_fault_has_its_class_and_is_asked_once(shape, serve, reply, backend_for, asked):
    wrong = {}
    for name, (facts, kind, said) in FAULTS.items():
        server = serve(reply(**facts))
        patience = 0.5 if facts.get("ends") == "hang" else 3.0  # what answers may be slow to do so
        backend = backend_for(server, shape, read_timeout_seconds=patience)
        try:
            came = asked(backend)
        except Exception as error:  # noqa: BLE001 - what is not classed is what the test looks for
            came = error
        if type(came) is not kind or not re.search(said, str(came)) or len(server.asked) != 1:
            wrong[name] = (repr(came), str(came)[:200], len(server.asked))
        if name == "429":
            assert came.retry_after_seconds == 7.0
    assert not wrong


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (UserError("no such setting\n at line 3"), REFUSED, "openai:gpt-5.2 cannot be asked like this: no such setting"),
        (UnexpectedModelBehavior("gibberish"), BUSY, "openai:gpt-5.2 gave an invalid response: gibberish"),
    ],
    ids=["a request that cannot be made", "an answer that is none"],
)  # fmt: skip
def test_what_the_client_library_says_has_its_class(error, kind, said):
    """A request that the library does not make would not be made at another attempt either."""
    failure = failure_of(error, Target("openai", "gpt-5.2"), "")
    assert (type(failure.error), failure.error.message, failure.is_next_asked) == (kind, said, kind is BUSY)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_dead_server_is_retryable(shape, models, asked):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with pytest.raises(RetryableError, match=f"127.0.0.1:{port}.* cannot be reached") as told:
        asked(ProviderBackend(models[shape], base_url=f"http://127.0.0.1:{port}"))
    assert told.value.is_unmeasured  # ruling 51: nothing was asked


@pytest.mark.parametrize("shape", SHAPES)
def test_an_empty_answer_is_an_empty_response(shape, serve, reply, backend_for, asked):
    response = asked(backend_for(serve(reply("")), shape))
    assert (response, response.usage.total_tokens) == ("", 18)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_at_the_token_limit_is_cut_off(shape, serve, reply, backend_for, asked):
    response = asked(backend_for(serve(reply("As far as", finish="length")), shape))
    assert (response, response.is_truncated) == ("As far as", True)


def test_an_answer_without_end_is_given_up(serve, reply, backend_for, asked, monkeypatch):
    from attractor_nb.backends.llm import clients

    monkeypatch.setattr(clients, "MAX_ANSWER_BYTES", 10_000)
    with pytest.raises(RetryableError, match="over 10000 bytes"):
        asked(backend_for(serve(reply(raw=b": nothing\n\n" * 2000))))


def test_a_missing_key_is_terminal_and_names_its_variable(asked):
    for model, variable in (
        ("gpt-5.2", "OPENAI_API_KEY"),
        ("claude-opus-4-6", "ANTHROPIC_API_KEY"),
        ("gemini-2.5-pro", "GOOGLE_API_KEY"),
    ):
        with pytest.raises(TerminalError, match=f"needs a key, and .*{variable}.* not set") as caught:
            asked(ProviderBackend(model))
        assert variable in caught.value.hint


STAGES = """digraph faults {{
    graph [llm_model="{model}", llm.base_url="{url}", default_max_retries={retries}]
    start [shape=Mdiamond]  plan [prompt="Plan"]  write [prompt="Write"]  done [shape=Msquare]
    start -> plan -> write -> done
}}"""


def run_dot(server, shape, models, *, retries=0, **options):
    text = STAGES.format(model=models[shape], url=server.base_url(shape), retries=retries)
    backend = ProviderBackend(read_timeout_seconds=2.5)
    return Pipeline(text).run(wait=True, backend=backend, clock=ManualClock(), **options)


def result_of(run):
    return run.result(timeout=60)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("shape", ["openai", "anthropic"])
@pytest.mark.parametrize("name", ["429", "a cut stream", "a stream without its last events", "401", "a refusal"])
def test_a_fault_fails_its_stage_keeps_the_prompt_and_can_be_resumed(name, shape, serve, reply, models, tmp_path):
    """No part of an answer is stored as one; what was done is not asked again."""
    server = serve(reply("The plan"), reply(**FAULTS[name][0]), reply("The text"))
    result = run_dot(server, shape, models, logs_root=tmp_path / "run")
    assert result.status == ("interrupted" if name == "401" else "fail")  # a refused key: ruling 51
    assert result.node_outcomes["plan"].is_success
    assert name == "401" or not result.node_outcomes["write"].is_success
    assert (tmp_path / "run/write/prompt.md").read_text().endswith("Write")
    assert not (tmp_path / "run/write/response.md").exists()
    assert (tmp_path / "run/plan/response.md").read_text() == "The plan"
    backend = ProviderBackend(read_timeout_seconds=2.5)
    again = result_of(
        Pipeline(tmp_path / "run/pipeline.dot").resume(tmp_path / "run", rewind_to="write", backend=backend)
    )
    assert (again.status, len(server.asked)) == ("success", 3)
    assert (tmp_path / "run/write/response.md").read_text() == "The text"


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_a_stage_that_was_told_to_wait_waits_so_long_and_is_tried_again(shape, serve, reply, models, tmp_path):
    server = serve(reply(**FAULTS["429"][0]), reply("The plan"), reply("The text"))
    clock = ManualClock()
    text = STAGES.format(model=models[shape], url=server.base_url(shape), retries=1)
    seen = []
    result = Pipeline(text).run(
        wait=True, backend=ProviderBackend(), clock=clock, observers=[seen.append], logs_root=tmp_path / "run"
    )
    assert result.status == "success"
    assert [event.delay for event in seen if type(event).__name__ == "StageRetrying"] == [7.0]


@pytest.mark.parametrize("name", ["401", "404", "a refusal"])
def test_what_stays_wrong_is_not_tried_again(name, serve, reply, models, tmp_path):
    server = serve(reply(**FAULTS[name][0]))
    result = run_dot(server, "openai", models, retries=3, logs_root=tmp_path / "run")
    status = "interrupted" if name == "401" else "fail"  # a refused key: ruling 51
    assert (result.status, len(server.asked)) == (status, 1)


def test_cancelling_ends_the_request_at_once(serve, reply, backend_for):
    """The server is told: its connection is closed."""
    server = serve(reply("half", ends="hang", after=1))

    async def cancelled():
        backend = backend_for(server)
        task = asyncio.ensure_future(backend.run(Node("plan", {}), "Say", Context()))
        came = await asyncio.get_running_loop().run_in_executor(None, server.wait_for, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return came

    assert asyncio.run(cancelled()).gone.wait(30)


class ServedClock(ManualClock):
    """Its time goes on when a server has been asked, and not before."""

    def __init__(self, server):
        super().__init__()
        self._server = server

    async def sleep(self, seconds):
        await asyncio.get_running_loop().run_in_executor(None, self._server.wait_for, 1)
        await super().sleep(seconds)


def test_a_nodes_timeout_ends_its_request(serve, reply, models, tmp_path):
    server = serve(reply("half", ends="hang", after=1))
    text = STAGES.format(model=models["openai"], url=server.base_url("openai"), retries=0)
    text = text.replace('[prompt="Plan"]', '[prompt="Plan", timeout="200ms"]')
    result = Pipeline(text).run(
        wait=True, backend=ProviderBackend(), clock=ServedClock(server), logs_root=tmp_path / "run"
    )
    assert result.status == "fail"
    assert "timeout: plan took more than 200ms" in result.reason
    assert server.asked[0].gone.wait(30)
