"""Any program of the command line as an agent, through a pipeline."""

import json
import sys

import pytest

from attractor_nb import CommandLineBackend, Pipeline
from attractor_nb.errors import OptionError

SOURCE = """digraph g {{ {} start [shape=Mdiamond]; exit [shape=Msquare]
    work [prompt="Mend it.", {}]
    start -> work -> exit }}"""
ECHO = "import sys; print('I was told:', sys.stdin.read().splitlines()[0])"
ARGUMENTS = "import sys; print('|'.join(sys.argv[1:]))"
READS = "import sys; print('read ' + open(sys.argv[1]).read())"


def program(code, *words, **options):
    return CommandLineBackend([sys.executable, "-c", code, *words], **options)


def run(backend, attributes="", graph=""):
    events = []
    pipeline = Pipeline(SOURCE.format(graph, attributes))
    result = pipeline.run(backend=backend, observers=[events.append], logs_root="run", durability="fast", wait=True)
    return result, events


def answer(backend, attributes=""):
    result, _ = run(backend, attributes)
    assert result.status == "success", result.reason
    return result.context["work.response"]


def test_a_program_gets_the_task_on_stdin_and_what_it_prints_is_the_answer():
    result, events = run(program(ECHO))
    assert result.context["work.response"] == "I was told: Mend it."
    assert "".join(event.text for event in events if type(event).__name__ == "StageOutput") == "I was told: Mend it.\n"
    usage = result.usage_by_node["work"]
    assert (usage.calls, usage.unpriced_calls, usage.cost_usd) == (1, 1, None)


PLACES = {
    ("-p", "{prompt}"): "-p|Mend it.",
    ("--task={prompt}", "--model={model}"): "--task=Mend it.|--model=m-5",
    ("{prompt}{model}{prompt}",): "Mend it.m-5Mend it.",
}


@pytest.mark.parametrize("words", PLACES)
def test_words_of_the_command_say_where_task_and_model_go(words):
    assert answer(program(ARGUMENTS, *words), 'llm_model="m-5"') == PLACES[words]


def test_a_word_for_the_model_is_left_out_where_nobody_names_one():
    assert answer(program(ARGUMENTS, "--model={model}", "x")) == "x"


def test_a_task_can_be_given_as_a_file():
    assert answer(program(READS, "{prompt_file}")) == "read Mend it."


@pytest.mark.parametrize("prompt", ["--yolo", "-x {model} {prompt_file}"])
def test_no_task_becomes_a_flag_and_none_is_filled_in_itself(prompt):
    result, _ = run(program(ARGUMENTS, "{prompt}"), f'prompt="{prompt}", llm_model="m"')
    assert result.context["work.response"].endswith(prompt)
    assert result.context["work.response"].startswith("Task:")


def test_a_task_that_is_too_long_for_an_argument_says_what_to_do():
    result, _ = run(program(ARGUMENTS, "{prompt}"), f'prompt="{"x" * 200_000}"')
    assert result.status == "fail"
    assert "{prompt_file}" in result.reason


OUTPUTS = {
    'print(\'{"result": "Done."}\')': "Done.",
    'print(\'log\\n{"type": "x"}\\n{"result": "Done."}\\nbye\')': "Done.",
    'print(\'{\\n "result":\\n "Done."\\n}\')': "Done.",
}


@pytest.mark.parametrize("code", OUTPUTS)
def test_the_answer_is_found_in_json(code):
    assert answer(program(code, output="json")) == OUTPUTS[code]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"], ids=ascii)
def test_an_answer_with_a_line_break_of_unicode_is_taken_whole(mark):
    printed = json.dumps({"result": f"one{mark}two"}, ensure_ascii=False)
    code = f"import sys; sys.stdout.buffer.write({f'log{mark}line' + chr(10) + printed + chr(10)!r}.encode())"
    assert answer(program(code, output="json")) == f"one{mark}two"


def test_the_answer_can_lie_deeper():
    code = f"print({json.dumps(json.dumps({'data': {'text': 'Deep.'}}))})"
    assert answer(program(code, output="json", answer="data.text")) == "Deep."


@pytest.mark.parametrize("code", ["print('no json')", "print('{\"result\": 3}')", "pass"])
def test_json_without_an_answer_is_no_success(code):
    result, _ = run(program(code, output="json"), "max_retries=0")
    assert result.status == "fail"


def test_an_empty_answer_is_no_success():
    assert run(program("pass"))[0].status == "fail"


def test_a_program_that_fails_says_why():
    result, _ = run(program("import sys; print('half'); sys.exit('the moon is wrong')"))
    assert result.status == "fail"
    assert "ended with exit code 1: the moon is wrong" in result.reason


def test_it_gets_no_keys_but_those_that_are_named(monkeypatch):
    monkeypatch.setenv("MY_TOOL_API_KEY", "value-of-my-tool")
    code = "import os; print('MY_TOOL_API_KEY' in os.environ)"
    assert answer(program(code)) == "False"


def test_it_gets_the_keys_that_are_named(monkeypatch):
    monkeypatch.setenv("MY_TOOL_API_KEY", "value-of-my-tool")
    code = "import os; print('MY_TOOL_API_KEY' in os.environ)"
    assert answer(program(code, variables=["MY_TOOL_API_KEY"])) == "True"


def test_a_thread_that_it_cannot_go_on_with_is_a_warning():
    _, events = run(program(ECHO), 'fidelity="full", thread_id="t"')
    warnings = [event.message for event in events if type(event).__name__ == "RunWarning"]
    assert any("keeps no sessions" in message for message in warnings)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ("aider --yes", {}, "command must be a list of texts"),
        ([], {}, "command is empty"),
        (["/no/such/program"], {}, "there is no program '/no/such/program'"),
        (["cat"], {"output": "xml"}, "output is 'xml'"),
    ],
)
def test_a_command_that_cannot_be_is_refused(arguments, options, message):
    with pytest.raises(OptionError, match=message):
        CommandLineBackend(arguments, **options)
