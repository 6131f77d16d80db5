"""U1: what a process costs before it does anything, against ``import IPython``, which every notebook pays."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from goals import Goal, Row, Scale, compared
from measuring import cpu_of, in_turns, surroundings

SIX_NODES = """digraph six { start [shape=Mdiamond] done [shape=Msquare]
  a [prompt="one"] b [prompt="two"] c [prompt="three"] d [prompt="four"]
  start -> a -> b -> c -> d -> done }
"""
COMMAND = "import sys; from attractor_nb.cli import main; sys.exit(main(sys.argv[1:]))"


def starting(scale: Scale) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "six.dot"
        source.write_text(SIX_NODES)
        programs: dict[str, Callable[[int], list[str]]] = {
            "ipython": lambda _: ["import IPython"],
            "pipeline": lambda _: ["from attractor_nb import Pipeline"],
            "help": lambda _: [COMMAND, "--help"],
            "validate": lambda _: [COMMAND, "validate", str(source)],
            "simulate": lambda number: [
                *(COMMAND, "run", str(source), "--simulate", "-q"),
                *("--logs-root", str(Path(folder) / f"run-{number}")),
            ],
        }

        def contender(program: Callable[[int], list[str]]) -> Callable[[int], float]:
            return lambda number: cpu_of(lambda: _run(program(number)))

        figures = in_turns({name: contender(each) for name, each in programs.items()}, 2 * scale.rounds)
    goals = {"pipeline": 1.5, "help": 1, "validate": 2.5, "simulate": 3}
    subjects = {
        "pipeline": "from attractor_nb import Pipeline",
        "help": "attractor-nb --help",
        "validate": "attractor-nb validate, six nodes",
        "simulate": "attractor-nb run --simulate, six nodes",
    }
    return [
        compared(f"{subjects[name]}, CPU of the process", goal, figures[name], figures["ipython"], unit="ms")
        for name, goal in goals.items()
    ]


def _run(arguments: list[str]) -> None:
    subprocess.run([sys.executable, "-c", *arguments], check=True, capture_output=True, env=surroundings())


GOALS = [Goal("U1", "starting a process", starting)]
