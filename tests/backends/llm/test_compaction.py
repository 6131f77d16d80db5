"""A conversation that outgrows its model's window is made to fit, without asking anybody (spec 5.4)."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.backends.llm.compaction import WINDOWS, compact, history_tokens, window_tokens
from attractor_nb.model.calls.messages import message_tokens, prompt_of, texts_of, with_prompt_before

SUMMARY_TITLE = "Earlier in this conversation (shortened, the newest last):"

FORMS = ("chat", "pydantic")


def system(form, text):
    if form == "chat":
        return {"role": "system", "content": text}
    return {"kind": "request", "parts": [{"part_kind": "system-prompt", "content": text}]}


def user(form, text):
    if form == "chat":
        return {"role": "user", "content": text}
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}


def said(form, text):
    if form == "chat":
        return {"role": "assistant", "content": text}
    return {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}


def tool(form, call, output):
    """A call of a tool and its result."""
    if form == "chat":
        function = {"name": "read", "arguments": '{"path": "a.py"}'}
        return [
            {"role": "assistant", "content": None, "tool_calls": [{"id": call, "function": function}]},
            {"role": "tool", "tool_call_id": call, "content": output},
        ]
    made = {"part_kind": "tool-call", "tool_name": "read", "args": {"path": "a.py"}, "tool_call_id": call}
    came = {"part_kind": "tool-return", "tool_name": "read", "content": output, "tool_call_id": call}
    return [{"kind": "response", "parts": [made]}, {"kind": "request", "parts": [came]}]


def talk(form, turns, *, output=2000, words=40):
    """A system prompt and turns, each with a tool call."""
    messages = [system(form, "You are careful.")]
    for number in range(1, turns + 1):
        messages += [user(form, f"question {number} " + "word " * words)]
        messages += tool(form, f"c{number}", "x" * output)
        messages += [said(form, f"answer {number} " + "word " * words)]
    return messages


def whole(messages):
    return "\n".join(text for message in messages for text in texts_of(message))


def calls_and_results(messages):
    """Ids of the calls of tools, and of the results."""
    calls, results = [], []
    for message in messages:
        calls += [call["id"] for call in message.get("tool_calls") or ()]
        if message.get("role") == "tool":
            results.append(message["tool_call_id"])
        for part in message.get("parts", ()):
            if part["part_kind"] == "tool-call":
                calls.append(part["tool_call_id"])
            elif part["part_kind"] == "tool-return":
                results.append(part["tool_call_id"])
    return calls, results


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


def test_a_conversation_that_fits_is_left_alone(form):
    messages = talk(form, 3)
    made = compact(messages, 10_000)
    assert made.messages is messages
    assert not made.is_changed


def test_outputs_of_tools_in_older_turns_go_first(form):
    made = compact(talk(form, 4), 1700)
    assert (made.outputs, made.turns) == (2, 0)
    assert whole(made.messages).count("[output of 2000 characters left out]") == 2
    assert whole(made.messages).count("x" * 2000) == 2
    assert "question 1" in whole(made.messages)
    assert "about " in made.description


def test_then_the_oldest_turns_are_a_summary(form):
    made = compact(talk(form, 8), 1300)
    text = whole(made.messages)
    assert made.turns > 0
    assert "You are careful." in text
    assert text.count(SUMMARY_TITLE) == 1
    assert f"- asked: question {made.turns} word" in text
    assert f"- answered: answer {made.turns} word" in text
    assert "x" * 2000 in text, "the last turn is whole"
    assert made.tokens <= 1300


def test_a_summary_of_before_goes_on_in_the_next(form):
    first = with_prompt_before(user(form, "question 2"), f"{SUMMARY_TITLE}\n- asked: question 1")
    last = [user(form, "question 3"), said(form, "answer 3 " + "word " * 400)]
    made = compact([system(form, "You are careful."), first, said(form, "answer 2 " * 100), *last], 750)
    text = whole(made.messages)
    assert made.turns == 1
    assert text.count(SUMMARY_TITLE) == 1
    assert "- asked: question 1\n- asked: question 2\n- answered: answer 2" in text


def test_a_last_turn_that_does_not_fit_loses_its_outputs_and_only_then_itself(form):
    messages = talk(form, 2, output=40_000)
    made = compact(messages, 400)
    assert (made.outputs, made.tokens <= 400) == (2, True)
    assert "question 2" in whole(made.messages)
    tiny = compact(talk(form, 2, words=2000), 400)
    assert tiny.turns == 2
    assert tiny.tokens <= 400
    assert "You are careful." in whole(tiny.messages)


def test_pydantic_ai_takes_what_is_left_of_its_messages():
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    for tokens in (1200, 900, 400):
        plain = compact(talk("pydantic", 8), tokens).messages
        assert len(ModelMessagesTypeAdapter.validate_python(plain)) == len(plain)


TURNS = st.lists(
    st.tuples(st.integers(0, 400), st.lists(st.integers(0, 3000), max_size=3), st.integers(0, 400)), max_size=8
)


def drawn(form, turns):
    messages = [system(form, "You are careful.")]
    for number, (asked, outputs, answered) in enumerate(turns):
        messages += [user(form, f"question {number} " + "q" * asked)]
        for place, output in enumerate(outputs):
            messages += tool(form, f"{number}-{place}", "o" * output)
        messages += [said(form, f"answer {number} " + "a" * answered)]
    return messages


@given(st.sampled_from(FORMS), TURNS, st.integers(60, 4000))
def test_whatever_was_said_it_fits_and_no_call_is_without_its_result(form, turns, tokens):
    messages = drawn(form, turns)
    before = copy.deepcopy(messages)
    made = compact(messages, tokens)
    assert messages == before
    assert made.tokens == message_tokens(made.messages) <= tokens
    calls, results = calls_and_results(made.messages)
    assert calls == results
    assert "You are careful." in whole(made.messages)
    kept = [message for message in made.messages if prompt_of(message) is not None]
    if turns and kept and made.turns < len(turns):
        assert f"question {len(turns) - 1}" in whole(kept[-1:]), "the newest turn goes last"
    assert compact(made.messages, tokens).messages is made.messages


def test_the_window_is_what_the_node_says_or_its_familys():
    assert window_tokens("gpt-4o", 5000) == 5000
    assert window_tokens("openrouter/anthropic/claude-opus-4-1") == 200_000
    assert window_tokens("GPT-4-turbo") == 128_000
    assert window_tokens("some-model") == 128_000


NOT_FOR_CHATS = ("audio", "realtime", "tts", "transcribe", "vision", "image", "live", "embedding", "search")


def test_no_family_is_thought_to_have_more_than_its_models_have():
    from genai_prices.data_snapshot import get_snapshot

    known = {
        model.id: model.context_window
        for provider in get_snapshot().providers
        if provider.id in {"openai", "anthropic", "google"}
        for model in provider.models
        if model.context_window and not any(word in model.id for word in NOT_FOR_CHATS)
    }
    of_a_family = {name: size for name, size in known.items() if name.startswith(tuple(WINDOWS))}
    assert len(of_a_family) > 30
    wrong = {name: size for name, size in of_a_family.items() if window_tokens(name) > size}
    assert not wrong


def test_a_history_never_takes_all_of_a_window():
    assert history_tokens(10_000, 0) < 8_000
    assert history_tokens(10_000, 9_000) == 0
