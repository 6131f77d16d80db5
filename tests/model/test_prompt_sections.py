"""The sections of a prompt: whoever writes them and whoever splits them agree, whatever the texts in them are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.model.calls.prompt_sections import fenced, outside_fences, split_context, stable_length, with_context

HOSTILE = st.lists(
    st.sampled_from(["## Task", "## Context", "### Inputs", "```", "````", "", "text", "- a: b", "Run: x"]), max_size=12
).map("\n".join)


@given(HOSTILE, HOSTILE)
def test_a_fenced_text_is_never_taken_for_a_section(text, task):
    context = f"Goal: ship\n\n- plan:\n\n{fenced(text)}"
    assert split_context(with_context(context, task)) == (context, task)


@given(HOSTILE)
def test_what_stands_behind_a_fence_is_seen(text):
    assert [line for line, _ in outside_fences(f"{fenced(text)}\nafter")] == ["after"]


@given(HOSTILE)
def test_the_stable_part_holds_goal_and_inputs_and_nothing_of_what_follows(text):
    stable = f"Goal: ship\n\n### Inputs\n\n- manual:\n\n{fenced(text)}"
    prompt = with_context(f"{stable}\n\n### Earlier stages\n\n- plan: success", "Go on.")
    assert prompt[: stable_length(prompt)] == f"## Context\n\n{stable}\n\n"


def test_a_context_of_somebody_elses_with_an_open_fence_is_split_all_the_same():
    assert split_context(with_context("```\nopen", "Go on.")) == ("```\nopen", "Go on.")
