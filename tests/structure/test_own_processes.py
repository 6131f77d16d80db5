"""Modules that start programs or Python (ruling 43): no file of a working directory becomes a part of ours."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "attractor_nb"
STARTING = {
    "processes/descendants.py": "commands of graphs, and whatever goes through LocalProcesses",
    "processes/git.py": "git, which is told to run nothing of the repository",
}
"""The modules that start a program; a new one needs to be looked at, and a line here."""
STARTERS = {
    "Popen",
    "check_call",
    "check_output",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "popen",
    "system",
}
PROCESS_MODULES = {"multiprocessing", "pty", "runpy"}
NAMING = {"own_python.py": 2, "backends/local_model.py": 2}
"""Times that a module names this Python: where command lines are made; in a hint, and for uv."""


def faults_of(source):
    """The programs that a source starts, and the times that it names this Python."""
    starts, names = [], 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            names += (owner, node.attr) in {("sys", "executable"), ("sys", "_base_executable")}
            is_own = (owner, node.attr) == ("subprocess", "run")
            is_of_os = owner == "os" and node.attr.startswith(("exec", "spawn", "posix_spawn", "fork"))
            if is_own or is_of_os or node.attr in STARTERS or node.attr == "ProcessPoolExecutor":
                starts.append(f"{owner}.{node.attr}")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found = [alias.name for alias in node.names]
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else found
            starts += [name for name in modules if name.partition(".")[0] in PROCESS_MODULES]
            if isinstance(node, ast.ImportFrom) and node.module in {"subprocess", "os", "sys", "concurrent.futures"}:
                starts += [name for name in found if name in {*STARTERS, "run", "executable", "ProcessPoolExecutor"}]
        elif isinstance(node, ast.List | ast.Tuple):
            words = [str(part.value) if isinstance(part, ast.Constant) else "" for part in node.elts]
            if len(words) > 1 and words[0].rpartition("/")[2].startswith("python") and words[1].startswith("-"):
                starts.append(words[0])
    return starts, names


def test_ruling_43_programs_are_started_in_the_modules_that_are_known_for_it():
    starting, naming = {}, {}
    for path in sorted(PACKAGE.rglob("*.py")):
        starts, names = faults_of(path.read_text("utf-8"))
        place = path.relative_to(PACKAGE).as_posix()
        if starts:
            starting[place] = starts
        if names:
            naming[place] = names
    assert set(starting) == set(STARTING), starting
    assert naming == NAMING, "start Python with own_python(…)"


@pytest.mark.parametrize(
    "source",
    [
        "subprocess.run([sys.executable, '-m', 'x'])",
        "from sys import executable",
        "from subprocess import Popen",
        "asyncio.create_subprocess_exec('x')",
        "os.posix_spawn('x', [], {})",
        "run(['python3', '-m', 'x'])",
        "import multiprocessing.pool",
    ],
)
def test_the_guard_sees_a_start(source):
    starts, names = faults_of(source)
    assert starts or names
