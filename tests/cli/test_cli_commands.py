"""All commands, one by one: each has examples in its help that parse, and speaks JSON."""

import json
import re
import shlex

import pytest
import typer.main

from attractor_nb.cli.command_tree import app

ROOT = typer.main.get_command(app)
EXAMPLE = re.compile(r"attractor-nb (?:(?! \| | > |\s{3,}|\)\").)*")
"""A command in a line of help: up to a pipe, a redirection, an explanation, or the end of a substitution."""
WANTED = {
    "serve", "submit", "runs", "watch", "answer", "tell", "resume", "fork", "diff", "lint", "graph", "estimate", "analyse", "doctor",
    "export", "map", "evaluate", "completion",
}  # fmt: skip


def walk(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from walk(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(walk(ROOT))
CONTEXT = ROOT.make_context("attractor-nb", [], resilient_parsing=True)


def examples(command, name):
    """The commands in the help's example lines, as lists of words."""
    lines = [line for line in command.help.splitlines() if line.startswith("  ") and "attractor-nb" in line]
    found = [shlex.split(match.group()) for line in lines for match in EXAMPLE.finditer(line)]
    return [words for words in found if words[1 : 1 + len(name.split())] == name.split()]


def test_nothing_that_was_promised_is_missing():
    assert set(COMMANDS) >= WANTED


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_examples_and_all_of_them_parse(name):
    found = examples(COMMANDS[name], name)
    assert found, f"the help of {name} has no example"
    for words in found:
        context = ROOT.make_context("attractor-nb", words[1:])
        chosen, command, rest = ROOT.resolve_command(context, words[1:])
        while hasattr(command, "commands"):
            chosen, command, rest = command.resolve_command(context, rest)
        with command.make_context(chosen, rest, parent=context) as parsed:
            assert parsed.params is not None, words


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_speaks_json(name):
    assert "--json" in {option for parameter in COMMANDS[name].get_params(CONTEXT) for option in parameter.opts}


SPOKEN = {
    "parse": ("straight.dot",),
    "validate": ("straight.dot",),
    "lint": ("broken.dot",),
    "run": ("straight.dot", "--simulate", "-q"),
    "resume": ("out", "--auto-approve", "-q"),
    "fork": ("out", "plan", "--auto-approve", "-q"),
    "map": ("straight.dot", "--params", "rows.jsonl", "-q"),
    "evaluate": ("straight.dot", "--rows", "rows.jsonl", "--inputs", "n", "--scorers", "cost", "-q"),
    "commands": ("failing.dot",),
    "models": ("straight.dot",),
    "estimate": ("straight.dot",),
    "analyse": ("straight.dot",),
    "graph": ("straight.dot",),
    "handlers": (),
    "runs": ("--runs-dir", "."),
    "watch": ("out", "--once"),
    "answer": ("out", "gate", "approve"),
    "tell": ("out", "Use two nails"),
    "doctor": ("straight.dot",),
    "cache": (),
    "diff": ("out", "out"),
    "export": ("out", "-o", "page.html"),
    "submit": ("straight.dot", "--server", "{url}"),
    "cancel": ("r1", "--server", "{url}"),
    "demo": ("--simulate", "--auto-approve"),
    "completion": ("bash",),
}
"""A call of each command, with a result; ``out`` is a run that waits at its gate."""
ELSEWHERE = {
    "serve": "test_cli_remote.py",
    "model install": "test_cli_demo.py",
    "lsp": "test_language_server.py",
    "skill install": "test_cli_skill.py",
}
"""The module of the entrances that need more than a directory."""


def test_every_command_is_called():
    assert set(SPOKEN) | set(ELSEWHERE) == set(COMMANDS)


@pytest.mark.parametrize("name", SPOKEN)
def test_the_json_of_each_command_is_all_of_stdout(command, waiting, stub, name):
    (waiting.parent / "rows.jsonl").write_text('{"n": 1}\n')
    stub.says("POST", "/pipelines", {"id": "r1", "status": "running"}, status=201)
    stub.says("POST", "/pipelines/r1/cancel", {"id": "r1", "status": "cancelling"}, status=202)
    stub.says("GET", "/pipelines/r1/events", "event: end\ndata: {}\n\n", kind="text/event-stream")
    stub.says("GET", "/pipelines/r1", {"id": "r1", "status": "interrupted"})
    ended = command(name, *(word.format(url=stub.url) for word in SPOKEN[name]), "--json")
    documents = ended.out.splitlines() if name == "watch" else [ended.out]  # of a run: an event on each line
    found = [json.loads(document) for document in documents]
    assert found
    assert all("error" not in document for document in found)
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_wrong_with_a_command_line_is_json_too(command, name):
    ended = command(*name.split(), "--no-such-option", "--json")
    assert (ended.code, ended.err) == (2, "")
    assert json.loads(ended.out)["error"]["type"] == "OptionError"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_says_what_it_is_for(name):
    silent = [each.name for each in COMMANDS[name].get_params(CONTEXT) if not getattr(each, "help", "")]
    assert silent == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_command_is_printed(command, name):
    ended = command(*name.split(), "--help")
    assert (ended.code, ended.err) == (0, "")
    assert f"    attractor-nb {name}" in ended.out


def test_the_walk_sees_an_example_that_is_wrong():
    parsed = EXAMPLE.search('  cat x | attractor-nb run - --no-such "a b"   three words | jq .').group()
    assert shlex.split(parsed) == ["attractor-nb", "run", "-", "--no-such", "a b"]
    context = ROOT.make_context("attractor-nb", ["run", "-", "--no-such"])
    name, command, rest = ROOT.resolve_command(context, ["run", "-", "--no-such"])
    with pytest.raises(typer.BadParameter.__mro__[2], match="no-such"):
        command.make_context(name, rest, parent=context)
