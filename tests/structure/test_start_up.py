"""Modules that no entrance has loaded when it answers: a merge of modules that loads something early is found here.

Told by the names of modules, not by a clock. Of libraries the stored list is of those that may be loaded, so that a new
one is refused too; of our own folders and of Python's slow modules it is of those that may not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

import pytest

PROGRAM = """\
import contextlib, io, json, sys
before, program = sys.argv[1:]
exec(before)
known = set(sys.modules)
with contextlib.redirect_stdout(io.StringIO()):
    exec(program)
print(json.dumps(sorted(sys.modules.keys() - known)))
"""
DOT = "digraph G { start [shape=Mdiamond] a [prompt=A] b [prompt=B] done [shape=Msquare] start -> a -> b -> done }"
SHELL = "from IPython.core.interactiveshell import InteractiveShell; shell = InteractiveShell.instance()"

SLOW = frozenset({
    "asyncio", "concurrent.futures", "ctypes", "decimal", "email", "http", "logging", "multiprocessing", "sqlite3", "ssl",
    "subprocess", "unittest", "xml",
})  # fmt: skip
FACES = frozenset({"cli", "notebook", "server", "testing"})
PLUGGED_IN = frozenset({"backends", "cassettes", "interviewers", "maps", "sessions", "transforms", "workers"})
RUNNING = PLUGGED_IN | {"engine", "handlers", "languages", "lint", "processes", "storage", "studio", "views"}
FACADE = frozenset({"decisions", "pipeline", "tracing"})
COMMAND = frozenset({"annotated_doc", "shellingham", "typer", "typing_extensions"})
PIPELINE = frozenset({"msgspec", "typing_extensions"})
SERVER = PIPELINE | {
    "annotated_types", "anyio", "click", "filelock", "h11", "markupsafe", "pydantic", "pydantic_core", "python_multipart",
    "sniffio", "starlette", "typing_inspection", "uvicorn",
}  # fmt: skip


@dataclass(frozen=True)
class Entrance:
    program: str
    libraries: frozenset[str] = frozenset()
    not_ours: frozenset[str] = frozenset()
    not_pythons: frozenset[str] = SLOW
    most: int = 0
    """The number of modules of the package."""
    before: str = ""


def command(words):
    return f"from attractor_nb.cli import main; main({words.split()})"


ENTRANCES = {
    "import attractor_nb": Entrance(
        "import attractor_nb", not_ours=FACES | RUNNING | FACADE | {"model", "redaction", "runtime"}, most=2
    ),
    "Pipeline": Entrance(
        "from attractor_nb import Pipeline",
        PIPELINE,
        FACES | RUNNING,
        SLOW - {"concurrent.futures", "decimal", "logging"},
        60,
    ),
    "--help": Entrance(command("--help"), COMMAND, (FACES - {"cli"}) | RUNNING | FACADE, SLOW - {"subprocess"}, 40),
    "validate": Entrance(
        command("validate p.dot"),
        COMMAND | PIPELINE | {"markupsafe"},
        (FACES - {"cli"}) | (PLUGGED_IN - {"transforms"}) | {"engine", "processes"},
        SLOW - {"concurrent.futures", "decimal", "logging", "subprocess"},
        220,
    ),
    "run --simulate": Entrance(
        command("run p.dot --simulate -q"),
        COMMAND | PIPELINE | {"filelock", "markupsafe"},
        (FACES - {"cli"}) | {"maps", "sessions", "studio", "workers"},
        SLOW - {"asyncio", "concurrent.futures", "decimal", "logging", "ssl", "subprocess"},
        390,
    ),
    "%load_ext": Entrance(
        "shell.run_line_magic('load_ext', 'attractor_nb')",
        frozenset({"IPython"}),
        (FACES - {"notebook"}) | RUNNING | FACADE,
        most=25,
        before=SHELL,
    ),
    "a server before it listens": Entrance(
        "import attractor_nb.server.serving",
        SERVER,
        (FACES - {"server"}) | PLUGGED_IN | {"lint", "engine.runner", "pipeline.pipeline"},
        SLOW & {"ctypes", "sqlite3", "unittest", "xml"},
        260,
    ),
}


def loaded_by(program, before="", *, place):
    (place / "p.dot").write_text(DOT)
    words = [sys.executable, "-c", PROGRAM, before, program]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def too_early(entrance, loaded):
    """The loaded modules that must not be loaded."""
    libraries = {name.partition(".")[0] for name in loaded if not name.startswith("_")} - sys.stdlib_module_names
    ours = {f"attractor_nb.{name}" for name in entrance.not_ours}
    return (libraries - entrance.libraries - {"attractor_nb"}) | (loaded & (ours | entrance.not_pythons))


@pytest.mark.parametrize("entrance", ENTRANCES.values(), ids=ENTRANCES)
def test_an_entrance_loads_nothing_too_early(entrance, tmp_path):
    loaded = loaded_by(entrance.program, entrance.before, place=tmp_path)
    assert too_early(entrance, loaded) == set()
    assert 0 < sum(name.partition(".")[0] == "attractor_nb" for name in loaded) <= entrance.most


def test_what_a_merge_would_load_early_is_found(tmp_path):
    entrance = ENTRANCES["--help"]
    loaded = loaded_by("import attractor_nb.engine.runner, networkx, asyncio", place=tmp_path)
    assert {"attractor_nb.engine", "networkx", "asyncio"} <= too_early(entrance, loaded)
