"""A talk with one model, without its provider: what ends it, and what is never sent or called."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from pydantic_ai.exceptions import IncompleteToolCall
from pydantic_ai.messages import ModelResponse, ToolCallPart

from attractor_nb.backends.llm import exchange
from attractor_nb.backends.llm.exchange import Exchange
from attractor_nb.backends.llm.metered_requests import MeteredRequests
from attractor_nb.backends.llm.provider_failures import CallFailed


def requests_of(**more):
    given = {
        "target": "openai:gpt-5.2",
        "address": "",
        "request": SimpleNamespace(system_prompt="", max_tokens=None),
        "limits": SimpleNamespace(requests=5, request_seconds=60.0),
        "scope": None,
        "stream": lambda text: None,
        "gates": None,
    }
    return MeteredRequests(**{**given, **more})


class Bare(Exchange):
    """One without settings of a provider."""

    def _settings(self, model, *, is_talk):
        return None


def test_a_talk_that_ends_before_the_model_has_answered_is_cut_short():
    class Ended:
        model = None

        @asynccontextmanager
        async def iter(self, *_, **__):
            async def nodes():
                return
                yield

            yield nodes()

    with pytest.raises(CallFailed) as told:
        asyncio.run(Bare(requests_of()).ask_with_tools(Ended(), "Say it.", (), None))
    assert "gpt-5.2" in str(told.value.args[0])


def test_a_model_that_is_not_shown_such_things_is_not_asked(monkeypatch):
    monkeypatch.setattr(exchange, "refused_kind", lambda profile, types: ",".join(types))
    scope = SimpleNamespace(attachments=(SimpleNamespace(media_type="image/png", data=b""),))
    talk = Bare(requests_of(scope=scope))
    with pytest.raises(CallFailed) as told:
        talk._with_attachments("Look.", SimpleNamespace(profile=None))
    assert "image/png" in str(told.value.args[0])


def test_a_call_of_a_tool_that_the_limit_cut_off_is_not_made():
    call = ModelResponse([ToolCallPart("read_file", '{"path": "a')], finish_reason="length")
    with pytest.raises(IncompleteToolCall, match="the limit of tokens was reached within a call of a tool"):
        requests_of()._check(call)


def test_a_time_that_ran_out_elsewhere_is_not_taken_for_the_limit_of_the_request():
    @asynccontextmanager
    async def opened():
        raise TimeoutError("of a proxy")
        yield

    with pytest.raises(TimeoutError, match="of a proxy"):
        asyncio.run(requests_of()._received(opened(), lambda stream: None))
