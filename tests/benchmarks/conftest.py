"""The benchmark is a program of its own, run as ``python tests/benchmarks``: only its test is collected."""

from pathlib import Path

HERE = Path(__file__).parent
collect_ignore = [
    "workers",
    *(path.name for path in HERE.glob("*.py") if not path.name.startswith(("test_", "conftest"))),
]
