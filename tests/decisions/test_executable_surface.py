"""The executable surface of a graph, and the hash by which it is trusted."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb import parse_dot
from attractor_nb.decisions.planning.executable_surface import Command, ExecutableSurface, executable_surface, is_hash
from attractor_nb.transforms.node_attributes import StylesheetApplication

texts = st.text(max_size=6)
surfaces = st.lists(st.builds(Command, texts, texts, texts), max_size=4, unique=True).map(
    lambda commands: ExecutableSurface(tuple(commands))
)


def surface(body):
    return executable_surface(parse_dot(f"digraph {{ {body} }}"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a [shape=parallelogram, tool_command=make]", ("a", "tool_command", "make")),
        ("a [tool_command=make]", ("a", "tool_command", "make")),
        ("node [tool_command=make] a", ("a", "tool_command", "make")),
        ('tool_hooks.pre="./before" a', ("", "tool_hooks.pre", "./before")),
        ('graph [tool_hooks.post="./after"] a', ("", "tool_hooks.post", "./after")),
        ('a [tool_hooks.pre="./before"]', ("a", "tool_hooks.pre", "./before")),
        ('stack.child_dotfile="child.dot" a', ("", "stack.child_dotfile", "child.dot")),
        ('stack.child_workdir="elsewhere" a', ("", "stack.child_workdir", "elsewhere")),
        ('a [stack.child_dotfile="child.dot"]', ("a", "stack.child_dotfile", "child.dot")),
        ('a [allowed_tools="read,list"]', ("a", "allowed_tools", "read,list")),
        ('a [shape=house, stack.child_run="/runs/1"]', ("a", "stack.child_run", "/runs/1")),
        ('a [llm.base_url="http://x.test"]', ("a", "llm.base_url", "http://x.test")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_command_is_found_wherever_it_stands(body, expected):
    assert surface(body).commands == (Command(*expected),)


WRITER = 'goal=Ship a [prompt="Tidy up", llm.system_prompt="Be brief", allowed_tools="%s"]'


@pytest.mark.parametrize("tools", ["run", "read, write", "lookup", "mcp:files/*", "Bash(git:*)"])
def test_what_steers_a_model_that_may_write_or_execute_is_listed_ruling_43(tools):
    assert surface(WRITER % tools).commands == (
        Command("", "goal", "Ship"),
        Command("a", "prompt", "Tidy up"),
        Command("a", "llm.system_prompt", "Be brief"),
        Command("a", "allowed_tools", tools),
    )


def test_what_steers_a_model_that_only_looks_is_no_command_ruling_43():
    assert surface(WRITER % "read, list").commands == (Command("a", "allowed_tools", "read, list"),)


def test_a_node_without_a_prompt_is_steered_by_its_label_ruling_43():
    assert Command("a", "prompt", "Delete it") in surface('a [label="Delete it", allowed_tools=run]').commands


def test_what_steers_the_models_of_a_child_is_listed_ruling_43():
    child = parse_dot("digraph { work [prompt=Work, allowed_tools=run] }")
    parent = parse_dot('digraph { boss [shape=house, manager.instructions="Hurry"] plan [prompt=Plan] }')
    found = executable_surface(replace(parent, children={"boss": child})).commands
    assert Command("boss", "manager.instructions", "Hurry") in found
    assert Command("boss/work", "prompt", "Work") in found
    assert Command("plan", "prompt", "Plan") in found  # its answer is carried to the boss


def test_the_goal_and_the_inputs_above_a_steered_child_are_listed_ruling_43():
    child = parse_dot("digraph { work [prompt=Work, allowed_tools=run] }")
    parent = parse_dot('digraph { goal=Ship inputs="topic=cats" boss [shape=house] }')
    assert executable_surface(parent).commands == ()
    found = executable_surface(replace(parent, children={"boss": child})).commands
    assert Command("", "goal", "Ship") in found
    assert Command("", "inputs", "topic=cats") in found


WITH_TEXTS = "goal=Ship note=N rankdir=LR work [prompt=Work, allowed_tools=run] %s"


@pytest.mark.parametrize(
    ("more", "entry"),
    [
        ("", ("", "note", "N")),
        ("plan [prompt=Plan]", ("plan", "prompt", "Plan")),
        ('plan [label="Plan it"]', ("plan", "prompt", "Plan it")),
        ("plan [label=L, prompt=P]", ("plan", "label", "L")),
        ('plan [prompt=P, carry="graph.note"]', ("plan", "carry", "graph.note")),
        (
            'gate [shape=hexagon, human.prompt="Go?"] gate -> work [label="[A] Approve"]',
            ("gate", "edge label", "[A] Approve"),
        ),
        ('gate [shape=hexagon, human.prompt="Go?"]', ("gate", "human.prompt", "Go?")),
        ("test [shape=parallelogram, label=Test, tool_command=make]", ("test", "prompt", "Test")),
        ("count [function=count]", ("count", "function", "count")),
    ],
)
def test_every_text_that_can_reach_a_model_that_may_execute_is_listed_ruling_43(more, entry):
    assert Command(*entry) in surface(WITH_TEXTS % more).commands
    assert not any(found.attribute == "rankdir" for found in surface(WITH_TEXTS % more).commands)


def test_a_child_that_says_for_each_of_itself_hides_no_command_ruling_43():
    child = parse_dot('digraph { for_each="item in x" b [shape=parallelogram, tool_command="rm -rf ."] }')
    parent = parse_dot("digraph { sub [type=pipeline] }")
    found = executable_surface(replace(parent, children={"sub": child})).commands
    assert Command("sub/b", "tool_command", "rm -rf .") in found


def test_functions_are_listed_wherever_they_stand_ruling_43():
    assert surface("count [function=count]").commands == (Command("count", "function", "count"),)
    boss = surface("boss [shape=house, stack.child_pipeline=worker, manager.guard_function=judge]").commands
    assert Command("boss", "manager.guard_function", "judge") in boss


def test_a_server_that_nodes_have_from_their_graph_is_listed_once():
    graph = StylesheetApplication().apply(parse_dot('digraph { llm.base_url="http://x.test" a b a -> b }'))
    assert executable_surface(graph).commands == (Command("", "llm.base_url", "http://x.test"),)


def test_a_graph_without_commands_has_no_surface():
    assert not surface('a [prompt="rm -rf", label="tool_command"] b [tool_command=" "] a -> b')


def test_a_value_that_is_no_text_is_the_text_that_the_shell_gets():
    assert surface("a [tool_command=true]").commands == (Command("a", "tool_command", "true"),)


def test_the_hash_is_that_of_the_commands_and_not_of_anything_else():
    one = surface('a [tool_command=make] b [tool_command="make test"] a -> b')
    other = surface('/* moved */ b [tool_command="make test", label=B] c a [tool_command=make] b -> a')
    assert one.commands != other.commands
    assert one.full_hash == other.full_hash


@given(surfaces, surfaces)
def test_only_the_same_commands_have_the_same_hash(one, other):
    assert (one.full_hash == other.full_hash) == (sorted(one.commands) == sorted(other.commands))


def test_a_lone_surrogate_can_be_hashed():
    assert len(ExecutableSurface((Command("a", "tool_command", "\ud800"),)).full_hash) == 64


@pytest.mark.parametrize(("digits", "is_named"), [(11, False), (12, True), (40, True), (64, True)])
def test_a_prefix_of_at_least_12_digits_names_a_surface(digits, is_named):
    found = surface("a [tool_command=make]")
    assert found.is_named_by(found.full_hash[:digits].upper()) is is_named


@pytest.mark.parametrize("text", ["*", "", "0" * 11, "0" * 65, "g" * 12, "0" * 12 + "\n", "0" * 6 + "*" * 6])
def test_what_is_no_hash_names_nothing(text):
    assert not is_hash(text)
    assert not surface("a [tool_command=make]").is_named_by(text)


def test_the_beginning_of_another_hash_names_nothing():
    one, other = surface("a [tool_command=make]"), surface("a [tool_command=made]")
    assert not one.is_named_by(other.full_hash)
    assert not one.is_named_by(other.hash)


STEERED = """inputs="task={inputs}" a [prompt="$task", allowed_tools={tools}, verdict=json, response_schema="{schema}"]
    b c a -> b [label="{label}"] a -> c [label=no]"""
PLAIN = {"inputs": "tidy up", "tools": "run", "schema": "{}", "label": "yes"}


@pytest.mark.parametrize(
    "change",
    [{"inputs": "run curl"}, {"schema": '{\\"description\\": \\"run curl\\"}'}, {"label": "run curl first"}],
    ids=["inputs", "schema", "label"],
)
def test_the_hash_covers_all_that_a_model_is_told_which_may_execute_ruling_43(change):
    assert surface(STEERED.format(**PLAIN)).full_hash != surface(STEERED.format(**PLAIN | change)).full_hash
    looks = PLAIN | {"tools": "read"}
    assert surface(STEERED.format(**looks)).full_hash == surface(STEERED.format(**looks | change)).full_hash


def test_ruling_43_any_attribute_of_a_steered_graph_may_reach_a_prompt() -> None:
    steered = 'a [prompt="work ${graph.tooltip}", allowed_tools="run"]'
    for name in ("tooltip", "URL", "bgcolor", "llm_model", "thread_id"):
        assert surface(f'{name}="one" {steered}').full_hash != surface(f'{name}="two" {steered}').full_hash
    assert surface('tooltip="one" a [prompt="work"]').commands == ()


def test_ruling_43_where_commands_work_is_part_of_what_is_trusted() -> None:
    tool = 'a [shape=parallelogram, tool_command="rm -rf ./*"]'
    assert surface(f'isolation="workspace" {tool}').full_hash != surface(tool).full_hash
    assert surface('isolation="workspace" a [prompt="work"]').commands == ()
