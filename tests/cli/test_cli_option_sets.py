"""Sets of options: spelled once, taken by several commands."""

import inspect
from typing import Annotated

import pytest
import typer

from attractor_nb.cli.commands import evaluation_commands as evaluating
from attractor_nb.cli.commands import map_commands as mapping
from attractor_nb.cli.commands import run_commands as forking
from attractor_nb.cli.commands import run_commands as running
from attractor_nb.cli.shared_options import option_parameters, run_settings, with_options
from attractor_nb.runtime.prepare.run_options import BOUNDS


def drink(
    *, sugar: Annotated[int, typer.Option("--sugar")] = 0, has_milk: Annotated[bool, typer.Option("--milk")] = False
):
    return f"{sugar} {has_milk}"


def test_a_command_takes_the_options_of_a_set_as_one_value():
    @with_options("taste", drink)
    def serve(cup: str, *, taste: str, is_hot: bool = True) -> int:
        """Serve a cup."""
        return f"{cup}: {taste} {is_hot}"

    assert list(inspect.signature(serve).parameters) == ["cup", "sugar", "has_milk", "is_hot"]
    assert (serve.__name__, serve.__doc__) == ("serve", "Serve a cup.")
    assert serve(cup="blue", sugar=2, has_milk=True, is_hot=False) == "blue: 2 True False"


def test_options_that_a_command_does_not_have_keep_their_defaults():
    @with_options("taste", drink, without={"has_milk"})
    def serve(*, taste: str) -> int:
        return taste

    assert list(inspect.signature(serve).parameters) == ["sugar"]
    assert serve(sugar=1) == "1 False"


def test_every_bound_of_a_run_is_an_option_of_it():
    assert set(BOUNDS) <= set(option_parameters(run_settings))


def test_an_option_reaches_the_run_by_its_row_in_the_table_alone():
    settings = run_settings(max_steps=3, workdir=None, durability="fast")
    assert settings.options == {"max_steps": 3, "durability": "fast"}
    assert settings.kept_options() == ("--max-steps", "3")


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        (running.run, set()),
        (running.resume, set()),
        (forking.fork, {"is_cached", "cassette"}),
        (mapping.map_, {"is_verbose"}),
        (evaluating.evaluate, {"is_verbose"}),
    ],
    ids=["run", "resume", "fork", "map", "evaluate"],
)
def test_commands_that_run_share_their_options(command, missing):
    shared = set(option_parameters(run_settings))
    own = set(inspect.signature(command).parameters)
    assert {"is_simulated", "backend", "max_steps", "durability", "is_json"} <= own
    assert missing <= shared - own
    assert "settings" not in own
