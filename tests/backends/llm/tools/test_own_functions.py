"""The caller's own functions as tools of a model (``Pipeline(…, tools=…)``)."""

import asyncio
import json
import threading

import pytest
from pydantic import BaseModel, field_validator

from attractor_nb import Pipeline
from attractor_nb.engine.handler_calls import TRACEBACK_FILE
from attractor_nb.errors import OptionError, ValidationError

SOURCE = """digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]
    work [prompt="Do it.", allowed_tools="{}" {}]
    start -> work -> exit }}"""


def lookup(order: str, limit: int = 2) -> str:
    """Look an order up.

    Args:
        order: Its number.
        limit: How many lines.
    """
    return f"order {order}, {limit} lines"


class Address(BaseModel):
    street: str
    number: int


def run(user, functions, allowed="lookup", attributes="", **options):
    events = []
    pipeline = Pipeline(SOURCE.format(allowed, attributes), tools=functions, backend=user)
    options = {"logs_root": "run", "durability": "fast", "wait": True, "trust": True, **options}
    result = pipeline.run(observers=[events.append], **options)
    return result, [event for event in events if type(event).__name__ == "ToolCallEnded"]


def told(tool_user, functions, name, arguments):
    """The result of one call, as the model receives it."""
    user = tool_user([(name, arguments)])
    result, _ = run(user, functions, name, logs_root=f"run-{name}")
    assert result.status == "success", result.reason
    return user.told[0]


def test_a_model_calls_a_function_and_the_call_is_recorded_as_any_other(tool_user, kept):
    user = tool_user([("lookup", {"order": "A-7"}), ("list_files", {})])
    result, calls = run(user, {"lookup": lookup}, "lookup, list")
    assert result.status == "success"
    assert user.told[0] == "order A-7, 2 lines"
    assert user.offered == ["list_files", "lookup"]
    assert [(event.tool, event.arguments, event.result, event.error) for event in calls[:1]] == [
        ("lookup", {"order": "A-7"}, "order A-7, 2 lines", "")
    ]
    assert kept(result.logs_root)[0]["result"] == "order A-7, 2 lines"


def test_the_schema_comes_from_signature_and_docstring():
    from attractor_nb.backends.llm.tools.catalog import function_tool

    tool = function_tool("lookup", lookup)
    assert "Look an order up." in tool.description
    assert tool.schema["required"] == ["order"]
    assert tool.schema["properties"]["order"] == {"description": "Its number.", "type": "string"}
    assert tool.schema["properties"]["limit"]["default"] == 2


async def slowly(number: int) -> int:
    """Add one."""
    await asyncio.sleep(0)
    return number + 1


def where() -> str:
    """The thread."""
    return threading.current_thread().name


def facts() -> dict:
    """Facts."""
    return {"a": [1, None], "ü": float("nan")}


def nested(place: Address) -> str:
    """A place."""
    return f"{place.street} {place.number}"


def test_functions_are_called_as_what_they_are(tool_user):
    assert told(tool_user, {"slowly": slowly}, "slowly", {"number": 1}) == "2"
    assert told(tool_user, {"where": where}, "where", {}) != threading.main_thread().name
    assert told(tool_user, {"facts": facts}, "facts", {}) == '{"a":[1,null],"ü":NaN}'
    place = {"street": "Main", "number": 3}
    assert told(tool_user, {"nested": nested}, "nested", place) == "Main 3"


def broken(order: str) -> str:
    """It fails."""
    raise LookupError(f"no order {order}\nwith a second line")


PROBLEMS = {
    "A-7": "broken failed: LookupError: no order A-7",
    "x" * 5000: "broken failed: LookupError: no order xxx",
    7: "broken: order: Input should be a valid string",
}


@pytest.mark.parametrize("order", PROBLEMS, ids=["raises", "long", "wrong type"])
def test_a_function_that_fails_is_told_to_the_model_and_fails_no_stage(order, tool_user):
    said = told(tool_user, {"broken": broken}, "broken", {"order": order})
    assert said.startswith(PROBLEMS[order])
    assert len(said) < 1200
    assert "second line" not in said
    assert "Traceback" not in said


def leave():
    """It wants to end the program."""
    raise SystemExit("leaving")


def interrupt():
    """It says what only a keyboard says."""
    raise KeyboardInterrupt("stop")


async def leave_slowly():
    """It wants to end the program, from the loop."""
    raise SystemExit(3)


async def cancel():
    """Raise a cancellation that was not asked for."""
    raise asyncio.CancelledError


class Odd(BaseException):
    """No ordinary exception."""


def odd():
    """It raises one."""
    raise Odd("unusual")


ENDINGS = {
    leave: "leave failed: SystemExit: leaving",
    interrupt: "interrupt failed: KeyboardInterrupt: stop",
    leave_slowly: "leave_slowly failed: SystemExit: 3",
    cancel: "cancel failed: CancelledError",
    odd: "odd failed: Odd: unusual",
}


@pytest.mark.parametrize("function", ENDINGS, ids=lambda function: function.__name__)
def test_what_ends_programs_is_told_to_the_model_and_ends_neither_program_nor_stage(
    function, tool_user, kept, capfd, unlogged
):
    unlogged()
    name = function.__name__
    user = tool_user([(name, {})])
    result, _ = run(user, {name: function}, name)
    assert result.status == "success", result.reason
    assert user.told == [ENDINGS[function]]
    assert kept(result.logs_root)[0]["error"] == ENDINGS[function]
    if function is not cancel:  # of which Python keeps no frame of the function's own
        assert f"in {name}" in (result.logs_root / "work" / TRACEBACK_FILE).read_text()
    assert capfd.readouterr().err == ""


def test_a_validator_that_ends_programs_is_told_to_the_model(tool_user):
    class Order(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def leaving(cls, value):
            raise SystemExit("leaving")

    def find(order: Order) -> str:
        return str(order)

    find.__annotations__["order"] = Order
    assert told(tool_user, {"find": find}, "find", {"order": {"number": 1}}) == "find failed: SystemExit: leaving"


def test_a_call_whose_stage_is_cancelled_is_no_failure_of_the_function(tool_user):
    async def for_ever() -> str:
        await asyncio.Event().wait()
        return ""

    result, _ = run(tool_user([("wait", {})]), {"wait": for_ever}, "wait", ", timeout=200ms, max_retries=0")
    assert (result.status, "took more than" in result.reason) == ("fail", True)


HALVES = {
    "text": (lambda: "a\ud800b", "a\ufffdb"),
    "value": (lambda: {"x": "a\ud800b"}, '{"x":"a\ufffdb"}'),
    "whole in two": (lambda: "a\ud83d\ude00b", "a\U0001f600b"),
}


@pytest.mark.parametrize("case", HALVES)
def test_half_a_character_is_replaced_in_what_a_model_is_told(case, tool_user, kept):
    function, expected = HALVES[case]
    user = tool_user([("get", {})])
    result, _ = run(user, {"get": function}, "get")
    assert result.status == "success", result.reason
    assert user.told == [expected]
    assert kept(result.logs_root)[0]["result"] == expected


def test_half_a_character_in_an_error_is_replaced(tool_user):
    def fail() -> str:
        raise ValueError("a\ud800b")

    assert told(tool_user, {"fail": fail}, "fail", {}) == "fail failed: ValueError: a\ufffdb"


def test_a_result_that_is_too_long_is_cut_and_that_is_said(tool_user):
    def much() -> str:
        return "x" * 200_000

    said = told(tool_user, {"much": much}, "much", {})
    assert len(said) < 51_100
    assert "characters left out" in said


def test_secrets_in_a_result_reach_nobody(tool_user, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "^~s3cret" + "value0123456789")

    def keys() -> str:
        return "the key is " + "^~s3cret" + "value0123456789"

    assert "s3cret" not in told(tool_user, {"keys": keys}, "keys", {})


def test_hooks_stand_around_a_function(tool_user):
    hook = 'tool_hooks.pre="exit 1"'
    calls = []

    def note(text: str) -> None:
        calls.append(text)

    user = tool_user([("note", {"text": "a"})])
    run(user, {"note": note}, "note", f", {hook}")
    assert calls == []
    assert "skipped" in user.told[0]


REFUSED = {
    "a name that is none": ({"look up": lookup}, "a tool's name must be a word, not 'look up'"),
    "a name that is taken": ({"read": lookup}, "there is a tool 'read' already"),
    "the name of a built-in": ({"read_file": lookup}, "there is a tool 'read_file' already"),
    "no function": ({"lookup": "lookup"}, "not a function"),
    "a class": ({"lookup": Address}, "not a function"),
    "any number of arguments": ({"lookup": lambda *names: ""}, "models name each argument"),
    "no signature": ({"lookup": min}, "has parameters that cannot be read"),
    "positional alone": ({"lookup": lambda a, /: ""}, "models name each argument"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_a_tool_is_refused_at_once(case):
    functions, message = REFUSED[case]
    with pytest.raises(OptionError, match=message):
        Pipeline(SOURCE.format("read", ""), tools=functions)


def test_a_type_that_no_json_can_be_is_a_clear_failure(tool_user):
    def odd(lock: threading.Lock) -> str:
        return ""

    result, _ = run(tool_user([]), {"odd": odd}, "odd")
    assert result.status == "fail"
    assert "tool 'odd' has no schema" in result.reason


@pytest.mark.parametrize(("allowed", "meant"), [("lookpu", "lookup"), ("raed", "read")])
def test_a_word_that_names_no_tool_is_refused_before_the_run_with_the_nearest(allowed, meant, tool_user):
    with pytest.raises(ValidationError) as caught:
        run(tool_user([]), {"lookup": lookup}, allowed)
    assert f'did you mean "{meant}"?' in str(caught.value.diagnostics[0].message)


def severities(source):
    return [
        str(found.severity).lower().rpartition(".")[2]
        for found in Pipeline(source).diagnostics
        if found.rule == "tools_known"
    ]


def test_lint_that_knows_no_functions_warns_of_what_may_be_one():
    assert severities(SOURCE.format("lookup", "")) == ["warning"]
    assert severities(SOURCE.format("raed", "")) == ["error"]


def test_a_description_of_the_call_changes_with_the_function(tool_user):
    from attractor_nb.backends.llm.tools.catalog import function_inputs

    def other(order: str) -> str:
        """Look an order up."""
        return order

    assert json.dumps(function_inputs("lookup", lookup)) != json.dumps(function_inputs("lookup", other))


def test_whole_rows_with_functions_stay_here():
    from attractor_nb.maps.row_run import _why_not
    from attractor_nb.runtime.prepare.run_options import RunOptions

    pipeline = Pipeline(SOURCE.format("lookup", ""), tools={"lookup": lookup})
    from attractor_nb.decisions.planning.plan import compile_plan

    assert "functions that models or stages call stay here" in _why_not(
        pipeline, RunOptions(cache=False), compile_plan(pipeline.graph)
    )


@pytest.mark.parametrize("options", [{}, {"tools": {"other": lookup}}])
def test_a_function_that_nobody_gives_is_refused_before_anything_is_asked(options, tmp_path):
    from attractor_nb import ProviderBackend

    with pytest.raises((OptionError, ValidationError), match=r"lookup|1 error"):
        Pipeline(SOURCE.format("lookup", 'llm_model="openai:m"'), **options).run(
            backend=ProviderBackend(), trust=True, logs_root="run"
        )
    assert not (tmp_path / "run").exists()


def test_an_agent_cannot_be_given_a_function(tmp_path):
    import sys

    from attractor_nb import CommandLineBackend

    with pytest.raises(OptionError, match="work allows your functions"):
        Pipeline(SOURCE.format("lookup", ""), tools={"lookup": lookup}).run(
            backend=CommandLineBackend([sys.executable]), trust=True, logs_root="run"
        )
