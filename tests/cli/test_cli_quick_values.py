"""Options are converted without pydantic where nothing has to be judged, and as typer does it everywhere."""

import json
import subprocess
import sys

import pytest

PROGRAM = """\
import json, sys
from attractor_nb.cli import main

code = main(sys.argv[1:])
print(json.dumps({"code": code, "pydantic": "pydantic" in sys.modules}))
"""
STRAIGHT = "digraph { start [shape=Mdiamond] done [shape=Msquare] a [prompt=x] start -> a -> done }"


def told(*arguments):
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.fixture(autouse=True)
def _source(tmp_path):
    (tmp_path / "straight.dot").write_text(STRAIGHT)


@pytest.mark.parametrize(
    "words",
    [
        "validate straight.dot --strict",
        "run straight.dot --simulate -q --logs-root out/one",
        "run straight.dot --simulate --durability fast --gates refuse -q",
    ],
)
@pytest.mark.campaign
def test_plain_values_need_no_pydantic(words):
    said, _ = told(*words.split())
    assert said == {"code": 0, "pydantic": False}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("run straight.dot --durability soft", '"soft" is not one of full'),
        ("run straight.dot --max-steps none", "--max-steps"),
        ("run straight.dot --max-steps 0", "--max-steps"),
        ("run straight.dot --backend", "--backend"),
        ("run", "FILE"),
    ],
)
def test_what_is_wrong_is_said_with_the_option_or_the_choices(words, reason):
    said, err = told(*words.split())
    assert said["code"] == 2
    assert reason in err
