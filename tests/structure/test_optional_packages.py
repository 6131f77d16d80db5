"""An installation without extras: each feature that needs one says which, before it does anything."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from attractor_nb.extras import EXTRAS, install_command

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NOT_OURS = {
    "cloudpickle": "used where a library of workers brings it",
    "jupyter_server": "imports us",
    "marimo": "imported only where it runs",
    "pydantic_evals": "whoever gives an evaluator or a dataset of it has it",
    "nest_asyncio": "used where only the original of nest-asyncio2 is installed",
    "pytest": "imports us",
    "pandas": "to_frame() says how to install it",
}
COME_WITH = {
    "anyio": "mcp",
    "h11": "uvicorn",
    "mcp_types": "mcp",
    "prompt_toolkit": "questionary",
    "pydantic_core": "pydantic",
    "traitlets": "ipywidgets",
}
"""Packages that another one always brings."""
DOT = "digraph G { start [shape=Mdiamond] a [prompt=x] done [shape=Msquare] start -> a -> done }"


def imported_packages():
    found = {}
    for path in sorted((ROOT / "attractor_nb").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            for name in names:
                found.setdefault(name.partition(".")[0], path.relative_to(ROOT).as_posix())
    return {name: place for name, place in found.items() if name not in {*sys.stdlib_module_names, "attractor_nb"}}


def distributions(requirements):
    return {re.split(r"[\[><=;\s]", each)[0].lower().replace("_", "-") for each in requirements}


def test_each_package_that_is_imported_is_a_dependency_or_part_of_an_extra():
    base = distributions(PROJECT["dependencies"])
    extra = {name.partition(".")[0] for each in EXTRAS.values() for name in each.packages}
    brought = {name.lower().replace("_", "-") for name in COME_WITH}
    known = packages_distributions()
    unknown = {
        name: place
        for name, place in imported_packages().items()
        if name not in {*extra, *NOT_OURS, *COME_WITH}
        and not {each.lower().replace("_", "-") for each in known.get(name, [])} & (base | brought)
    }
    assert not unknown, "name its extra in attractor_nb/extras.py, and look for it before it is imported"


def test_each_extra_is_one_of_the_project():
    assert set(EXTRAS) == set(PROJECT["optional-dependencies"]) - {"lab"}


COMMANDS = {
    "serve --port 0": "server",
    "demo": "local",
    "model install": "local",
    "run a.dot --backend local": "local",
    "run a.dot --backend llm": "llm",
    "map a.dot --params rows.csv --backend llm": "llm",
    "doctor a.dot --backend llm": "llm",
    "graph a.dot -o a.png": "png",
    "lsp": "lsp",
}
FUNCTIONS = {
    "serve('runs')": "server",
    "proxy.main(['0', 'runs', '1'])": "server",
    "pipeline.to_png('a.png')": "png",
    "pipeline.run(wait=True, tracer=True)": "tracing",
    "pipeline.run(wait=True, backend='llm')": "llm",
    "pipeline.run(wait=True, backend='local')": "local",
    "pipeline.map([{}], wait=True, backend='llm')": "llm",
}
PROGRAM = """\
import contextlib, io, json, sys
from attractor_nb.extras import EXTRAS

commands, functions, brought = json.loads(sys.argv[1])
for name in [*brought, *(name for extra in EXTRAS.values() for name in extra.packages)]:
    sys.modules[name] = None

from attractor_nb import Pipeline
from attractor_nb.cli import main
from attractor_nb.errors import OptionError
from attractor_nb.server import proxy, serve

pipeline = Pipeline(open("a.dot").read())
said = {}
for words in commands:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        code = main(words.split())
    said[words] = f"{int(code)} {shown.getvalue()}"
for call in functions:
    try:
        eval(call)
    except OptionError as error:
        said[call] = error.hint
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said_without_extras(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    (folder / "a.dot").write_text(DOT)
    (folder / "rows.csv").write_text("x\n1\n")
    asked = json.dumps([list(COMMANDS), list(FUNCTIONS), ["anyio", "h11", "mcp_types"]])
    done = subprocess.run([sys.executable, "-c", PROGRAM, asked], capture_output=True, text=True, cwd=folder)
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_names_the_extra_that_it_needs(said_without_extras, words):
    said = said_without_extras[words]
    assert install_command(COMMANDS[words]) in said
    assert said[0] in "12"
    assert "internal error" not in said


@pytest.mark.parametrize("call", FUNCTIONS)
def test_a_function_names_the_extra_that_it_needs(said_without_extras, call):
    assert said_without_extras[call] == install_command(FUNCTIONS[call])
