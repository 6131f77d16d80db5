"""Python functions as stages: what they are given, what their return values mean, and what refuses them."""

import functools
import inspect
import time

import pytest

from attractor_nb import Outcome, Pipeline, Run
from attractor_nb.errors import OptionError, ValidationError

TEXT = """digraph G { inputs="topic=cats" goal="Ship" start [shape=Mdiamond] exit [shape=Msquare]
    work [function=work, prompt="About $topic", rank=3] start -> work -> exit }"""


def run(function, text=TEXT, **options):
    return Pipeline(text, functions={"work": function}).run(wait=True, **options)


def test_a_function_takes_what_it_names():
    taken = {}

    def work(node, prompt, context, inputs, stage):
        taken.update(node=node.id, prompt=prompt, goal=context.get("graph.goal"), inputs=inputs, stage=stage.node_id)

    assert run(work, params={"topic": "dogs"}).status == "success"
    assert taken == {
        "node": "work",
        "prompt": "About dogs",
        "goal": "Ship",
        "inputs": {"topic": "dogs"},
        "stage": "work",
    }


@pytest.mark.parametrize(
    "function",
    [
        lambda: "done",
        lambda prompt: f"done{prompt[:0]}",
        lambda *, prompt, limit=3: f"done{prompt[:0]}",
        lambda *others, **given: f"done{given['prompt'][:0]}{others or ''}",
        functools.partial(lambda how, prompt: f"{how}{prompt[:0]}", "done"),
    ],
    ids=["nothing", "one", "keywords and defaults", "any", "partial"],
)
def test_a_signature_may_be_of_any_kind_that_names_what_it_takes(function):
    assert run(function).context["work.response"] == "done"


def test_an_async_function_is_awaited_and_a_method_is_bound():
    class Counter:
        async def work(self, prompt):
            return f"{len(prompt)} characters"

    assert run(Counter().work).context["last_response"] == "10 characters"


@pytest.mark.parametrize(
    ("returned", "status", "reason"),
    [
        ("a text", "success", ""),
        ({"words": 2}, "success", ""),
        ({}, "success", ""),
        (True, "success", ""),
        (None, "success", ""),
        (Outcome.success("fine"), "success", ""),
        (False, "fail", "work() returned False"),
        (Outcome.fail("broken"), "fail", "broken"),
        (3, "fail", "work() returned int; return a text, a dict of context values"),
        ([1], "fail", "work() returned list; return a text"),
        ({3: "x"}, "fail", "work() returned the key 3; the keys are texts"),
        ({"response": "x"}, "fail", "work() returned work.response, which the engine sets"),
        ({"run_id": "x"}, "fail", "work() returned work.run_id, which the engine sets"),
        ({"file": object()}, "fail", "work.file"),
    ],
    ids=lambda value: "file" if isinstance(value, dict) and "file" in value else repr(value),
)
def test_what_a_return_value_means(returned, status, reason):
    result = run(lambda: returned)
    assert (str(result.node_outcomes["work"]), result.status) == (status, status)
    assert reason in (result.reason or "")


def test_the_values_of_a_dict_are_read_below_the_node_by_conditions_and_prompts():
    text = """digraph { start [shape=Mdiamond] exit [shape=Msquare] work [function=work]
        long [prompt="${work.words} words, first ${work.found.first}"] short [prompt=short]
        start -> work; work -> long [condition="context.work.words=3"]; work -> short [default=true]
        long -> exit; short -> exit }"""
    result = run(lambda: {"words": 3, "found": {"first": "a"}}, text, logs_root="run")
    assert "long" in result.node_outcomes
    assert "3 words, first a" in (result.logs_root / "long" / "prompt.md").read_text()


def test_what_a_function_raises_fails_its_stage_with_the_place():
    def work():
        raise KeyError("nothing there")

    result = run(work, logs_root="run")
    assert result.status == "fail"
    assert "KeyError: 'nothing there'" in result.reason
    assert "test_function_stages.py" in (result.logs_root / "work" / "traceback.txt").read_text()


def test_a_function_that_does_not_return_ends_at_the_time_limit_of_its_stage():
    began = time.process_time()
    result = run(lambda: time.sleep(30), TEXT.replace("rank=3", 'timeout="100ms"'))
    assert (result.status, "timed out" in result.reason or "timeout" in result.reason) == ("fail", True)
    assert time.process_time() - began < 20


def test_a_function_that_fails_is_tried_again():
    tries = []

    def work():
        tries.append(1)
        return len(tries) > 1

    assert run(work, TEXT.replace("rank=3", "max_retries=2")).status == "success"
    assert len(tries) == 2


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda promt: promt, "takes 'promt', which a stage does not give; did you mean \"prompt\"?"),
        (lambda prompt, /: prompt, "takes 'prompt', which a stage does not give by position"),
        (dict, "is the class dict, not a function"),
        (3, "is int, not a function"),
    ],
    ids=["another name", "by position", "a class", "a number"],
)
def test_a_function_that_cannot_be_called_is_refused_when_the_pipeline_is_made(function, message):
    with pytest.raises(OptionError) as caught:
        Pipeline(TEXT, functions={"work": function})
    assert message in caught.value.message
    assert "def count(" in caught.value.hint
    with pytest.raises(OptionError):
        Pipeline(TEXT).register_function("work", function)


def test_a_handler_of_the_specification_is_told_where_it_belongs():
    with pytest.raises(OptionError) as caught:
        Pipeline(TEXT, functions={"work": lambda node, context, graph, logs_root: None})
    assert """as the handler of a type, handlers={"team.work": work}""" in caught.value.hint


@pytest.mark.parametrize("name", [3, "", " ", None], ids=repr)
def test_a_name_of_a_function_that_is_no_text_is_refused(name):
    with pytest.raises(OptionError, match="the name of a function is a text, not") as caught:
        Pipeline(TEXT, functions={name: lambda: True})
    assert caught.value.hint == 'functions={"count": count}'


def test_a_function_whose_parameters_cannot_be_read_is_refused():
    def work():
        """Have a signature that cannot be read."""

    work.__signature__ = 3
    with pytest.raises(OptionError, match="function 'work' has parameters that cannot be read") as caught:
        Pipeline(TEXT, functions={"work": work})
    assert caught.value.hint == "wrap it in a function of your own"


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("type=function", "work names no function (count [function=count])"),
        ("function=wrok", 'work calls the function "wrok", which is not registered; did you mean "work"?'),
    ],
    ids=["none", "unknown"],
)
def test_a_stage_without_its_function_fails_where_lint_lets_it_pass(attributes, message):
    text = TEXT.replace("function=work", attributes)
    pipeline = Pipeline(text, functions={"work": lambda: True}, severity={"function_known": "warning"})
    result = pipeline.run(wait=True)
    assert result.status == "fail"
    assert message in result.reason


def test_a_function_that_is_not_registered_is_an_error_before_the_run():
    pipeline = Pipeline(TEXT, functions={"wrok": lambda: True})
    (finding,) = [found for found in pipeline.diagnostics if found.rule == "function_known"]
    assert (finding.is_error, finding.node_id) == (True, "work")
    assert 'did you mean "wrok"?' in finding.message
    with pytest.raises(ValidationError):
        pipeline.run()
    pipeline.register_function("work", lambda: True)
    assert pipeline.run(wait=True).status == "success"


@pytest.mark.parametrize(
    ("attributes", "place"),
    [("type=function", "function"), ('type=function, function=""', '""'), ('function=" "', '" "')],
    ids=["absent", "empty", "blank"],
)
@pytest.mark.parametrize("functions", [{}, {"work": lambda: True}], ids=["none registered", "one registered"])
def test_a_stage_that_names_no_function_is_an_error_before_the_run(functions, attributes, place):
    pipeline = Pipeline(TEXT.replace("function=work", attributes), functions=functions)
    (finding,) = [found for found in pipeline.diagnostics if found.is_error]
    assert (finding.rule, finding.node_id, finding.span.text) == ("function_known", "work", place)
    assert finding.message == 'the function stage "work" names no function'
    assert finding.fix.title == "add function=NAME"
    with pytest.raises(ValidationError):
        pipeline.run()


def test_a_handler_of_the_callers_own_for_the_type_needs_no_function():
    def handler(node, context, graph, logs_root):
        del node, context, graph, logs_root
        return Outcome.success()

    pipeline = Pipeline(TEXT.replace("function=work", "type=function"), handlers={"function": handler})
    assert not [found for found in pipeline.diagnostics if found.is_error]
    assert pipeline.run(wait=True).status == "success"


def test_each_item_of_a_list_names_a_function_too():
    text = TEXT.replace("function=work", 'type=function, for_each="item in files"')
    assert [found.rule for found in Pipeline(text).diagnostics if found.is_error] == ["function_known"]


def test_a_type_of_its_own_makes_the_function_a_finding():
    pipeline = Pipeline(TEXT.replace("rank=3", "type=codergen"), functions={"work": lambda: True})
    messages = [found.message for found in pipeline.diagnostics if found.rule == "function_known"]
    assert messages == ['"work" has the type "codergen", so its function "work" is not called']


def test_the_spec_handler_of_four_parameters_still_executes_its_type():
    def handler(node, context, graph, logs_root):
        del context, graph, logs_root
        return Outcome.success(node.id)

    text = TEXT.replace("function=work", 'type="my.type"')
    assert Pipeline(text, handlers={"my.type": handler}).run(wait=True).node_outcomes["work"] == "success"


def test_a_cached_result_counts_until_the_source_changes(tmp_path):
    calls = []

    def one(prompt):
        calls.append("one")
        return prompt

    def two(prompt):
        calls.append("two")
        return prompt

    cached = TEXT.replace("rank=3", "cache=true")
    for function in (one, one, two):
        run(function, cached, cache=tmp_path / "cache")
    assert calls == ["one", "two"]
    run(two, cached.replace("About", "On"), cache=tmp_path / "cache")
    assert calls == ["one", "two", "two"]
    found = Pipeline(TEXT, functions={"work": one}).run(wait=True, cache=tmp_path / "cache")
    assert calls == ["one", "two", "two", "one"]
    assert (
        "a function may change more than its result says; write cache=true"
        in (found.logs_root / "work" / "inputs.json").read_text()
    )


def test_a_function_without_source_is_cached_by_its_version_alone(tmp_path):
    made = {}
    exec("def work():\n    calls.append(1)\n    return True", made)
    made["calls"] = []
    for _ in range(2):
        run(made["work"], cache=tmp_path / "cache")
    assert len(made["calls"]) == 2
    made["work"].version = "1"
    for _ in range(2):
        run(made["work"], cache=tmp_path / "cache")
    assert len(made["calls"]) == 3


def test_the_source_is_in_the_inspection_of_the_stage():
    def work(prompt):
        return prompt.upper()

    result = run(work, logs_root="run")
    stage = Run.load(result.logs_root).inspect("work")
    assert stage.handler == "function"
    assert stage.prompt == inspect.getsource(work)
    assert stage.response == "ABOUT CATS"


def test_a_resume_without_the_pipeline_says_which_call_has_its_functions():
    pipeline = Pipeline(TEXT, functions={"work": lambda prompt: prompt})
    stopped = pipeline.run(logs_root="run", stop_after=1).result(60)
    with pytest.raises(ValidationError, match="is not registered") as refused:
        Run.load("run").resume()
    *_, hint = str(refused.value).splitlines()
    call = f'pipeline.resume("{stopped.logs_root.as_posix()}")'
    assert hint == f" hint: a run directory keeps no Python; resume it from the pipeline that has it: {call}"
    assert eval(call, {"pipeline": pipeline}).result(60).status == "success"
    with pytest.raises(ValidationError) as refused:
        Pipeline(TEXT).run(wait=True)
    assert "hint" not in str(refused.value), "which is no stored run"


def test_children_rows_and_forks_have_the_functions_of_their_pipeline(tmp_path):
    text = TEXT.replace("start -> work", "note [function=work, prompt=note] start -> note -> work")
    pipeline = Pipeline(text, functions={"work": lambda prompt: prompt})
    rows = pipeline.map([{"topic": "dogs"}, {"topic": "cats"}], outputs=["work.response"], map_dir=tmp_path / "map")
    assert [row.outputs["work.response"] for row in rows.result().rows] == ["About dogs", "About cats"]
    first = pipeline.run(logs_root="run", stop_after=2)
    first.result(60)
    assert pipeline.resume("run").result(60).status == "success"
    assert first.fork("work").result(60).context["work.response"] == "About cats"
    parent = Pipeline(
        "digraph { start [shape=Mdiamond] sub [type=pipeline, pipeline.name=child] exit [shape=Msquare] start -> sub -> exit }",
        pipelines={"child": TEXT},
        functions={"work": lambda prompt: prompt},
    )
    assert parent.run(wait=True).status == "success"
    assert Pipeline(TEXT).with_source(TEXT, pipeline).functions.keys() == {"work"}
