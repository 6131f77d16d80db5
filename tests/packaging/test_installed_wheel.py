"""The built wheel works in a fresh environment: as a library, as a command, and in a cell."""

import json

import pytest

from attractor_nb.extras import EXTRAS

pytestmark = [pytest.mark.installs, pytest.mark.timeout(600)]

PIPELINE = """\
digraph Small {
    graph [goal="Say hello"]
    start [shape=Mdiamond]
    greet [prompt="Greet the reader: $goal"]
    done  [shape=Msquare]
    start -> greet -> done
}
"""
LIBRARY = f"""
import json
from pathlib import Path
import attractor_nb
result = attractor_nb.Pipeline({PIPELINE!r}).run(wait=True)
print(json.dumps({{"status": result.status, "home": str(Path(attractor_nb.__file__).parent)}}))
"""
CELL = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("%load_ext attractor_nb").raise_error()
shell.run_cell({"%%attractor small" + chr(10) + PIPELINE!r}).raise_error()
print("bound:", type(shell.user_ns["small"]).__name__)
"""


def test_the_wheel_runs_a_pipeline_a_command_and_a_cell(wheel, make_environment, repository, tmp_path):
    environment = make_environment()
    environment.install("-c", repository / "constraints.txt", wheel)

    said = json.loads(environment.run("python", "-c", LIBRARY, cwd=tmp_path).splitlines()[-1])
    assert said["status"] == "success"
    assert said["home"].startswith(str(environment.directory))
    assert "run" in environment.run("attractor-nb", "--help", cwd=tmp_path)
    assert "bound: Pipeline" in environment.run("python", "-c", CELL, cwd=tmp_path)


ALONE = """
import json, sys
from attractor_nb.extras import EXTRAS, missing_packages
print(json.dumps(sorted(name for name in EXTRAS if not missing_packages(name))))
"""


@pytest.mark.campaign
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_alone_brings_all_that_it_is_for(wheel, make_environment, repository, tmp_path, extra):
    environment = make_environment()
    environment.install("-c", repository / "constraints.txt", f"attractor_nb[{extra}] @ {wheel.as_uri()}")
    complete = json.loads(environment.run("python", "-c", ALONE, cwd=tmp_path))
    assert extra in complete
    packages = EXTRAS[extra].packages
    program = f"import importlib\nfor name in {packages!r}: importlib.import_module(name)"
    environment.run("python", "-c", program, cwd=tmp_path)
