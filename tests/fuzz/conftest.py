"""The fuzzer is a program of its own, run as ``python tests/fuzz/fuzz.py``: only its test is collected."""

from pathlib import Path

HERE = Path(__file__).parent
collect_ignore = [path.name for path in HERE.glob("*.py") if not path.name.startswith(("test_", "conftest"))]
