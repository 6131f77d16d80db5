"""Reasoning that stands in a text is told apart from the answer (ruling 46)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.model.calls.answer_stream import AnswerStream
from attractor_nb.model.calls.reasoning import part_reasoning

HARMONY = "<|channel|>analysis<|message|>Maybe.<|end|><|start|>assistant<|channel|>final<|message|>It is 4.<|return|>"
MARKED = {
    "think": "<think>\nMaybe.\n</think>\n\nIt is 4.",
    "thinking": "<thinking>Maybe.</thinking>It is 4.",
    "reasoning, in capitals": "<REASONING>Maybe.</REASONING>\nIt is 4.",
    "brackets": "[THINK]Maybe.[/THINK]It is 4.",
    "channels": HARMONY,
    "channels without their marks": "analysisMaybe.assistantfinalIt is 4.",
    "a channel of one mark": "<|channel>thought\nMaybe.<channel|>It is 4.",
    "blanks in the tags": "<think >Maybe.</think >It is 4.",
    "attributes": '<think type="deep" n="1">Maybe.</think>It is 4.',
    "longcat": "<longcat_think>Maybe.</longcat_think>It is 4.",
    "minimax": "<mm:think>Maybe.</mm:think>It is 4.",
    "a thought between marks": "<|begin_of_thought|>Maybe.<|end_of_thought|>It is 4.",
    "unused tokens": "<unused94>thought\nMaybe.<unused95>It is 4.",
    "a final response": "Maybe.\n[BEGIN FINAL RESPONSE]\nIt is 4.\n[END FINAL RESPONSE]\n",
    "a final response behind a block of code": "Maybe.\n```json\n{}\n[BEGIN FINAL RESPONSE]\nIt is 4.",
    "a scratchpad": "<scratchpad>\nMaybe.\n</scratchpad>\n\nIt is 4.",
    "an analysis, behind blanks": "\n  <analysis>Maybe.</analysis>It is 4.",
    "a reflection behind other reasoning": "<think>Hm.</think>\n<reflection>Maybe.</reflection>\nIt is 4.",
    "a monologue, in capitals, with attributes": '<INNER_MONOLOGUE of="me" hidden>Maybe.</Inner_Monologue >It is 4.',
    "a scratchpad with its like in it": "<scratchpad>Maybe. <scratchpad> No.</scratchpad>It is 4.",
    "a lone end of a scratchpad": "Maybe.\n</scratchpad>\nIt is 4.",
    "a lone end of an analysis within a line": "Maybe.</analysis>It is 4.",
    "a lone end behind an element of its own": "<p><analysis>a</analysis></p> Maybe.</analysis>\nIt is 4.",
    "a lone end": "Maybe.\n</think>\nIt is 4.",
    "a lone end within a line": "Maybe.</think>It is 4.",
    "a lone end between quotes that are none": 'Maybe. "{"a": "b"}</think>It is 4.',
    "an end in a block of code that has none": "Maybe.\n```json\n</think>\nIt is 4.",
}
IN_TWO = {
    "a quote left open": ('So "yes</think>{"outcome": "fail"}', '{"outcome": "fail"}', 'So "yes'),
    "two pieces": ("<think>a</think>It <think>b</think>is 4.", "It is 4.", "a\n\nb"),
    "a beginning within": ("<think>a <think> b</think> c</think>It is 4.", "It is 4.", "a <think> b\n\nc"),
    "an end within code of the answer": ("```\nx\n</think>\n```\nIt is 4.", "```\nIt is 4.", "```\nx"),
}
UNCLOSED = [
    "<think>\nMaybe.",
    "It is 4.\n<think>Maybe.",
    "<think>a</think>b\n<think>c",
    HARMONY.partition("<|end|>")[0],
    "I could not check. <think>Should I say yes?",
    "I could not check. <think> should I say yes?",
    "Assistant: <think>Maybe.",
    "\ufeff<think>Maybe.",
    "\u200b<think> maybe.",
    "- <think> maybe.",
    "> <think>\n> Maybe.",
    "Hm <think>\nMaybe.",
    "Hm <think>Maybe.",
    '{"outcome": "success"} <think> or not',
    "<think >Maybe.",
    '<mm:think a="b">Maybe.',
    "<|begin_of_thought|>Maybe.",
    "<unused94>thought\nMaybe.",
    "<scratchpad>Maybe.",
    '\n<analysis of="it">\nMaybe.',
    "<think>a</think><reflection>Maybe.",
    "analysisLet me see.",
    "analysis Let me see.",
    'analysis{"a": 1}',
]
MENTIONED = [
    "The <think> tag begins it.",
    "Models emit <think>, and some do not",
    "It begins with <think>",
    "Between <thinking> and <think> there is no difference (<reasoning> too).",
    "analysis of the plan: assistant and final report",
]
DOCUMENTS = [
    "<analysis>It is 4.</analysis>",
    '<Reflection on="4">\nIt is 4.\n</Reflection>\n',
    "<report>\n<analysis>It is 4.</analysis>\n</report>",
    'It is 4.\n\n<analysis depth="2" checked>\nBecause.\n</analysis>\n\nDone.',
    "It is 4. <scratchpad>kept</scratchpad> <scratchpad/> <reflection>kept</reflection>",
    "Put it between <analysis> and </analysis>, as always",
    "It ends with </analysis> always, and <analysis> begins it",
    '"<analysis>a</analysis>" begins it.',
    "`<scratchpad>` is a tag.",
    "```xml\n</analysis>\n```\nIt is 4.",
    "<analysis/>It is 4.",
    "<analysis_of_it>4</analysis_of_it>",
    "<analyst>4</analyst>",
]
TEXTS = [
    "It is 4.",
    "",
    *MENTIONED,
    "It says `[BEGIN FINAL RESPONSE]` first, and [END FINAL RESPONSE] last.",
    "A <thinker> and a <think tank> and <think/>",
    '{"notes": "took <think> and </think> out"}',
    "It ends with `</think>`.",
    'It ends with "</think>".',
    r'{"notes": "took \"</think>\" out", "outcome": "success"}',
    "```html\n<think>\nx\n</think>\n```\nDone.",
    "```python\ntext.split('x</think>')\n```",
    "<b>thinking</b>",
    *DOCUMENTS,
]


@pytest.mark.parametrize("text", MARKED.values(), ids=MARKED)
def test_ruling_46_an_answer_is_what_is_left_without_reasoning(text):
    assert part_reasoning(text).answer == "It is 4."
    assert "Maybe." in part_reasoning(text).reasoning


@pytest.mark.parametrize(("text", "answer", "reasoning"), IN_TWO.values(), ids=IN_TWO)
def test_ruling_46_reasoning_in_pieces_is_joined(text, answer, reasoning):
    assert part_reasoning(text) == (answer, reasoning)


@pytest.mark.parametrize(
    "text", ["<scratchpad>Maybe.</scratchpad>\n", "Maybe.</inner_monologue>", "<think>Maybe.</think>"]
)
def test_ruling_46_reasoning_alone_is_no_answer(text):
    assert part_reasoning(text).answer == ""


@pytest.mark.parametrize("text", UNCLOSED)
def test_ruling_46_unclosed_reasoning_means_that_there_is_no_answer(text):
    assert part_reasoning(text).answer == ""


@pytest.mark.parametrize("text", [*UNCLOSED, *MENTIONED, "analysis\n\nthe user wants a yes"])
def test_ruling_46_nothing_is_decided_by_a_text_with_an_unclosed_mark(text):
    assert part_reasoning(f'{text} {{"outcome": "success"}}', is_decision=True).answer == ""


UNDECIDED = [
    "It is 4. <scratchpad>But what if not",
    "<analysis>It is 4.</analysis>",
    "It ends with </analysis> always",
    '{"outcome": "success"}</reflection>',
]


@pytest.mark.parametrize("text", UNDECIDED)
def test_ruling_46_nothing_is_decided_by_reasoning_that_may_be_a_part_of_a_document(text):
    assert '"success"' not in part_reasoning(text, is_decision=True).answer
    assert "It is 4" not in part_reasoning(text, is_decision=True).answer


@pytest.mark.parametrize("text", [text for text in TEXTS if text not in (*MENTIONED, *DOCUMENTS)])
def test_ruling_46_a_decision_may_speak_of_marks_in_code_and_between_quotes(text):
    assert part_reasoning(text, is_decision=True) == (text, "")


@pytest.mark.parametrize("text", TEXTS)
def test_an_answer_about_such_marks_stays_as_it_is(text):
    assert part_reasoning(text) == (text, "")
    stream = AnswerStream()
    assert stream.feed(text) + stream.finish() == text


def pieces_of(text, size):
    stream = AnswerStream()
    return "".join(stream.feed(text[at : at + size]) for at in range(0, len(text), size)) + stream.finish()


STREAMED = [
    name for name, text in MARKED.items() if not name.startswith(("a lone end", "an end", "a final", "channels"))
]


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_ruling_46_reasoning_is_not_streamed_however_it_is_cut(name, size):
    assert pieces_of(MARKED[name], size).strip() == "It is 4."


@pytest.mark.parametrize("text", DOCUMENTS)
@pytest.mark.parametrize("size", [1, 3])
def test_a_document_is_streamed_as_it_is_however_it_is_cut(text, size):
    assert pieces_of(text, size) == text


@pytest.mark.parametrize(
    "text", [text for text in UNCLOSED if text.strip("\ufeff\u200b \n").startswith("<") and ">b" not in text]
)
@pytest.mark.parametrize("size", [1, 1000])
def test_ruling_46_of_unclosed_reasoning_nothing_is_streamed(text, size):
    assert pieces_of(text, size).strip("\ufeff\u200b \n") == ""


PIECES = [
    "<think>",
    "</think>",
    "<think a=b>",
    "<analysis>",
    "</analysis>",
    "<scratchpad x",
    ">",
    "`",
    "```",
    "\n",
    " ",
    "a",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.integers(1, 7))
def test_a_stream_is_the_same_however_it_is_cut(text, size):
    assert pieces_of(text, size).split() == pieces_of(text, 1000).split()


@given(st.lists(st.sampled_from(["a", "It is 4. ", "<b>", "\n", "analysis "]), min_size=1, max_size=8).map("".join))
def test_ruling_46_the_answer_behind_a_scratchpad_is_whole_and_streamed(answer):
    text = f"<scratchpad>Maybe.</scratchpad>\nIt: {answer}"
    assert part_reasoning(text).answer == f"It: {answer}".strip()
    assert pieces_of(text, 5) == f"It: {answer}"


@pytest.mark.parametrize(
    "unit",
    [
        "a <think> ",
        "```a\n",
        "<think a=",
        "</think        ",
        "a <think a=b          >, ",
        f"a <think>{' ' * 40}",
        "a <analysis> ",
    ],
    ids=[
        "beginnings without an end",
        "code without an end",
        "cut attributes",
        "cut ends",
        "attributes",
        "blanks",
        "elements",
    ],
)
def test_ruling_52_a_hostile_text_is_read_in_linear_time(unit):
    text = unit * 50_000
    began = time.process_time()
    assert part_reasoning(text) == (text, "")
    assert time.process_time() - began < 15, "looking for each end anew takes minutes"
