"""Servers that speak OpenAI's chat interface loosely: the answer is taken, or the server's own words are the reason."""

import json

import pytest

from attractor_nb import Pipeline, ProviderBackend
from attractor_nb.backends.llm.clients import ChatEvents

COMPLETION = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "The whole answer."}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7},
}


def event(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]} | more


def sse(*events, ending=b"data: [DONE]\n\n"):
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in events) + ending


@pytest.fixture
def asked(serve, reply, monkeypatch, tmp_path):
    """A run of one stage whose model answers with these bodies."""
    monkeypatch.setenv("ATTRACTOR_CONFIG_DIR", str(tmp_path / "config"))

    def run(*bodies, content_type="application/json", more=""):
        server = serve(*(reply(raw=body, content_type=content_type) for body in bodies))
        result = Pipeline(f"""digraph g {{
            graph [endpoint.box.url="{server.base_url("openai")}", llm_model="box:m"]
            start [shape=Mdiamond] done [shape=Msquare] plan [prompt="Plan it"{more}] start -> plan -> done
        }}""").run(wait=True, backend=ProviderBackend(), logs_root=tmp_path / "run")
        return result, server

    return run


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(json.dumps(COMPLETION, indent=2).encode(), "application/json", id="one completion"),
        pytest.param(sse(COMPLETION), "text/event-stream", id="message in place of delta"),
        pytest.param(
            b"".join(
                json.dumps(each).encode() + b"\r\n"
                for each in (event({"content": "The whole "}), event({"content": "answer."}, "stop"), COMPLETION | {"choices": []})
            ),
            "application/x-ndjson",
            id="an object a line",
        ),
    ],
)  # fmt: skip
def test_an_answer_that_was_not_streamed_as_asked_is_taken(body, content_type, asked):
    result, server = asked(body, content_type=content_type)
    assert (result.status, result["plan"].response) == ("success", "The whole answer."), result.reason
    assert (result.usage.input_tokens, result.usage.output_tokens) == (4, 3)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(b'{"error": {"message": "the GPU is on fire"}}', "application/json", id="JSON with status 200"),
        pytest.param(b'error: {"message": "the GPU is on fire"}\n\n', "text/event-stream", id="a line of a stream"),
        pytest.param(b"error: the GPU is on fire\n\n", "text/event-stream", id="a line of words"),
        pytest.param(
            sse(event({"content": "The"}), ending=b'data: {"error": {"message": "the GPU is on fire"}}\n\n'),
            "text/event-stream",
            id="in the middle",
        ),
        pytest.param(b"upstream: the GPU is on fire", "text/plain", id="plain text"),
    ],
)
def test_the_servers_own_words_are_the_reason(body, content_type, asked):
    result, _ = asked(body, content_type=content_type)
    assert result.status == "fail"
    assert "the GPU is on fire" in result.reason


def test_parallel_tool_calls_with_one_index_are_two(asked):
    """Ollama numbers them all with 0."""
    calls = [
        {
            "index": 0,
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "run_command", "arguments": arguments},
        }
        for number, arguments in enumerate(['{"command": "echo one"}', '{"command": "echo two"}'])
    ]
    first = sse(*(event({"role": "assistant", "tool_calls": [call]}) for call in calls), event({}, "tool_calls"))
    last = sse(event({"role": "assistant", "content": "Done."}), event({}, "stop"))
    result, server = asked(first, last, content_type="text/event-stream", more=', allowed_tools="run"')
    assert result.status == "success", result.reason
    called = [message["content"] for message in server.asked[1].body["messages"] if message["role"] == "tool"]
    assert [word in said for word, said in zip(("one", "two"), called, strict=True)] == [True, True], called


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("counts", [(None, None), (-1, 3), (4, 3.5), (10**30, 3), ("4", 3), (0, 0)])
def test_a_usage_that_is_no_count_is_estimated(counts, asked):
    usage = dict(zip(("prompt_tokens", "completion_tokens"), counts, strict=True))
    body = sse(event({"content": "The answer."}), event({}, "stop"), event({}, usage={**usage, "total_tokens": 3}))
    result, _ = asked(body, content_type="text/event-stream")
    assert result.status == "success", result.reason
    assert result.usage.estimated_calls == 1
    assert 0 < result.usage.input_tokens < 100


def taken(*pieces):
    events = ChatEvents()
    return b"".join(events.take(piece) for piece in pieces) + events.end()


def test_a_stream_that_keeps_to_the_interface_is_passed_on_as_it_is():
    """Byte for byte, wherever it is cut."""
    stream = sse(event({"content": 'a "message" é\u2028'}), event({"content": "b"}, "stop")) + b": comment\n\n"
    assert taken(stream) == stream
    assert taken(*(stream[at : at + 7] for at in range(0, len(stream), 7))) == stream


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        pytest.param([(0, "a"), (0, None), (1, "b"), (1, None)], [0, 0, 1, 1], id="as OpenAI"),
        pytest.param([(0, "a"), (0, "b")], [0, 1], id="one index"),
        pytest.param([(0, "a"), (0, None), (0, "b"), (0, None)], [0, 0, 1, 1], id="one index, in pieces"),
        pytest.param([(1, "a"), (1, None), (2, "b"), (2, None)], [1, 1, 2, 2], id="from 1"),
        pytest.param([(None, "a"), (None, "b")], [0, 1], id="no index"),
        pytest.param([(0, "a"), (0, "a"), (1, "b")], [0, 0, 1], id="the id in each piece"),
    ],
)
def test_each_tool_call_has_an_index_of_its_own(sent, read):
    calls = [{"index": index, "id": name} for index, name in sent]
    events = [
        json.loads(line[6:])
        for line in taken(sse(*(event({"tool_calls": [call]}) for call in calls), ending=b"")).split(b"\n\n")
        if line
    ]
    assert [each["choices"][0]["delta"]["tool_calls"][0]["index"] for each in events] == read


@pytest.mark.parametrize(
    "body", [b"", b"[1, 2]", b"null", b'{"choices": [null, {"message": 3}, 4]}', b"\xff\xfe", b"[" * 100_000]
)
def test_no_body_breaks_it(body):
    assert ChatEvents().whole(body).endswith(b"data: [DONE]\n\n")
    assert ChatEvents().take(b'data: {"message": ' + body + b"\n").startswith(b"data: ")
