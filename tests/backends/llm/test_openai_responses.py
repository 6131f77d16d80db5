"""OpenAI's own models are asked at OpenAI, over its Responses interface; nothing leaves the process here."""

import json

import pytest

from attractor_nb import ProviderBackend, Usage
from attractor_nb.backends.llm.metered_requests import price_of
from attractor_nb.errors import RetryableError, TerminalError
from attractor_nb.model.calls.providers import read_model

MODEL = "gpt-5.2"


def event(number, kind, **facts):
    plain = {"type": kind, "sequence_number": number, **facts}
    return f"event: {kind}\ndata: {json.dumps(plain)}\n\n".encode()


def page(status, output, **more):
    return {
        "id": "resp-1", "object": "response", "created_at": 0, "model": MODEL, "status": status, "output": output,
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], **more,
    }  # fmt: skip


def stream(text, *, status="completed", ends=True):
    """A streamed response that says a text, in two pieces."""
    part = {"type": "output_text", "text": "", "annotations": []}
    item = {"id": "msg-1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    place = {"item_id": "msg-1", "output_index": 0, "content_index": 0}
    whole = {**part, "text": text}
    done = {**item, "status": "completed", "content": [whole]}
    usage = {
        "input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    more = {"incomplete_details": {"reason": "max_output_tokens"}} if status == "incomplete" else {}
    events = [
        event(0, "response.created", response=page("in_progress", [])),
        event(1, "response.output_item.added", output_index=0, item=item),
        event(2, "response.content_part.added", part=part, **place),
        event(3, "response.output_text.delta", delta=text[:3], logprobs=[], **place),
        event(4, "response.output_text.delta", delta=text[3:], logprobs=[], **place),
    ]
    if ends:
        events += [
            event(5, "response.output_text.done", text=text, logprobs=[], **place),
            event(6, "response.content_part.done", part=whole, **place),
            event(7, "response.output_item.done", output_index=0, item=done),
            event(8, f"response.{status}", response=page(status, [done], usage=usage, **more)),
        ]
    return b"".join(events)


@pytest.fixture
def openai(monkeypatch):
    """Answer in OpenAI's place with what ``answers`` gives; the requests that came."""
    import httpx2

    from attractor_nb.backends.llm import clients

    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789abcdefghij")

    def install(status, body, **headers):
        came = []

        def answer(request):
            came.append(request)
            return httpx2.Response(status, content=body, headers={"content-type": "text/event-stream", **headers})

        def client(timeout, **_):
            return httpx2.AsyncClient(transport=httpx2.MockTransport(answer), timeout=timeout)

        monkeypatch.setattr(clients, "http_client", client)
        return came

    return install


def test_a_model_of_openai_answers_over_its_own_interface(openai, asked):
    came = openai(200, stream("Hello there"))
    response = asked(ProviderBackend(MODEL), **{"llm.max_tokens": 50, "reasoning_effort": "low"})
    assert (response, response.is_truncated) == ("Hello there", False)
    assert response.usage == Usage(100, 10, price_of(read_model(MODEL), Usage(100, 10)), 1)
    (request,) = came
    assert str(request.url) == "https://api.openai.com/v1/responses"
    body = json.loads(request.content)
    assert (body["model"], body["max_output_tokens"], body["reasoning"]["effort"]) == (MODEL, 50, "low")


def test_a_response_that_is_cut_off_is_truncated(openai, asked):
    openai(200, stream("Hello there", status="incomplete"))
    assert asked(ProviderBackend(MODEL)).is_truncated


def test_a_stream_without_its_end_is_no_answer(openai, asked):
    openai(200, stream("Hello there", ends=False))
    with pytest.raises(RetryableError):
        asked(ProviderBackend(MODEL))


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [(429, RetryableError, ""), (429, TerminalError, "insufficient_quota"), (503, RetryableError, ""), (401, TerminalError, "")],
)  # fmt: skip
def test_a_refusal_of_openai_has_its_class_and_is_not_asked_again(status, kind, code, openai, asked):
    came = openai(
        status,
        json.dumps({"error": {"message": "no", "code": code, "type": code}}).encode(),
        **{"content-type": "application/json"},
    )
    with pytest.raises(kind, match=rf"\({status}\): no"):
        asked(ProviderBackend(MODEL))
    assert len(came) == 1
