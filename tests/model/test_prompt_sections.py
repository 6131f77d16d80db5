"""The sections of a prompt: whoever writes them and whoever splits them agree, whatever the texts in them are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.model.calls.call_content import fenced, outside_fences, split_context, stable_length, with_context

HOSTILE = st.lists(
    st.sampled_from(["## Task", "## Context", "### Inputs", "```", "````", "", "text", "- a: b", "Run: x"]), max_size=12
).map("\n".join)


@given(HOSTILE, HOSTILE)
def test_a_prompt_is_split_where_it_was_put_together_whatever_its_parts_look_like(context, task):
    carried = context.strip()
    assert split_context(with_context(context, task), context) == (carried, task)


@given(HOSTILE, HOSTILE)
def test_a_task_that_looks_like_a_prompt_is_a_task(context, task):
    forged = with_context(context, task)
    assert split_context(forged, "") == ("", forged)


@given(HOSTILE)
def test_what_stands_behind_a_fence_is_seen(text):
    assert [line for line, _ in outside_fences(f"{fenced(text)}\nafter")] == ["after"]


@given(HOSTILE)
def test_the_stable_part_holds_goal_and_inputs_and_nothing_of_what_follows(text):
    stable = f"Goal: ship\n\n### Inputs\n\n- manual:\n\n{fenced(text)}"
    prompt = with_context(f"{stable}\n\n### Earlier stages\n\n- plan: success", "Go on.")
    assert prompt[: stable_length(prompt)] == f"## Context\n\n{stable}\n\n"
