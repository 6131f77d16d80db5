"""The handler that executes a node (spec 4.2, 4.12)."""

import asyncio

import pytest

from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.handlers.handler_registry import ConditionalHandler, ExitHandler, HandlerRegistry, StartHandler
from attractor_nb.model.graph import Node
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.testing import try_stage, verify_handler


class Named:
    def __init__(self, name):
        self.name = name

    async def execute(self, node, context, graph, logs_root):
        return Outcome.success(self.name)


@pytest.fixture
def registry():
    registry = HandlerRegistry()
    for handler_type in ("start", "exit", "codergen", "tool", "wait.human", "conditional", "my.own"):
        registry.register(handler_type, Named(handler_type))
    return registry


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"type": "my.own", "shape": "hexagon"}, "my.own"),
        ({"type": "wait.human"}, "wait.human"),
        ({"shape": "parallelogram"}, "tool"),
        ({"shape": "star"}, "codergen"),
        ({"type": "not.registered", "shape": "diamond"}, "conditional"),
        ({"type": "not.registered"}, "codergen"),
        ({}, "codergen"),
    ],
    ids=[
        "explicit-type",
        "built-in-type",
        "shape",
        "unknown-shape",
        "type-falls-to-shape",
        "type-falls-to-default",
        "default",
    ],
)
def test_a_handler_is_found_by_type_then_shape_then_default(registry, attrs, expected):
    assert registry.resolve(Node("n", attrs)).name == expected


@pytest.mark.parametrize(
    "attrs",
    [
        {"shape": "component"},
        {"shape": "tripleoctagon"},
        {"shape": "house"},
        {"type": "parallel"},
        {"type": "stack.manager_loop"},
    ],
    ids=lambda attrs: next(iter(attrs.values())),
)
def test_a_built_in_type_without_a_handler_is_a_terminal_error_and_never_a_models_task(registry, attrs):
    with pytest.raises(TerminalError, match="node 'fan' needs a handler of type"):
        registry.resolve(Node("fan", attrs))


def test_an_empty_registry_says_what_to_register():
    with pytest.raises(TerminalError) as caught:
        HandlerRegistry().resolve(Node("n"))
    assert "'codergen'" in caught.value.hint


def test_registering_a_type_again_replaces_its_handler(registry):
    registry.register("tool", Named("mine"))
    assert registry.resolve(Node("n", {"shape": "parallelogram"})).name == "mine"


def test_a_copy_does_not_change_the_original(registry):
    copy = registry.copy()
    copy.register("extra", Named("extra"))
    assert "extra" in copy.known_types
    assert "extra" not in registry.known_types


def test_a_function_can_be_a_handler(registry, tmp_path):
    registry.register("lambda", lambda node, context, graph, logs_root: Outcome.success(f"did {node.id}"))
    node = Node("n", {"type": "lambda"})
    trial = asyncio.run(try_stage(registry.resolve(node), node, tmp_path))
    assert trial.outcome.notes == "did n"
    assert "lambda" in repr(registry.resolve(node))


@pytest.mark.parametrize(
    ("handler_type", "handler", "message"),
    [
        ("", Named("x"), "a handler type is a non-empty text"),
        ("mine", Named, "handler 'mine' is the class Named, not an object of it"),
        ("mine", 3, "handler 'mine' is a int without an execute method"),
    ],
    ids=["empty-type", "class", "number"],
)
def test_what_is_no_handler_is_refused(registry, handler_type, handler, message):
    with pytest.raises(OptionError) as caught:
        registry.register(handler_type, handler)
    assert caught.value.message == message
    assert caught.value.hint


def test_the_registry_shows_its_types(registry):
    assert repr(registry).startswith("HandlerRegistry(codergen, conditional")


@pytest.mark.parametrize(
    "handler", [StartHandler(), ExitHandler(), ConditionalHandler()], ids=lambda handler: type(handler).__name__
)
def test_start_exit_and_diamond_do_nothing_successfully(handler):
    assert asyncio.run(verify_handler(handler)).status is StageStatus.SUCCESS
