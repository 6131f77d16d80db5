"""A test whose fixtures never end does not hold up all the others."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
HUNG = """import time, pytest
from tests import hung_tests
hung_tests.GRACE_SECONDS = 0.5

@pytest.fixture
def unending():
    yield
    time.sleep(100)

@pytest.mark.timeout(0.5)
def test_fails_and_waits(unending):
    assert False
"""


@pytest.mark.campaign
def test_a_failed_test_whose_fixture_never_ends_is_ended_with_the_place_where_it_waits(tmp_path):
    file = tmp_path / "test_hung.py"
    file.write_text(HUNG)
    command = [sys.executable, "-m", "pytest", "-p", "tests.hung_tests", "-p", "no:cacheprovider", str(file)]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "Timeout (0:00:01)!" in ended.stderr
    assert 'test_hung.py", line 8 in unending' in ended.stderr
