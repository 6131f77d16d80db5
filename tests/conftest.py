"""Fixtures of every test: Hypothesis profiles, and a directory of its own to work in.

Nothing heavy is imported here: a single test must start at once.
"""

import gc
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from attractor_nb.redaction.redactor import REDACTOR
from attractor_nb.runtime.handles import presenters

pytest_plugins = ["tests.costs", "tests.hung_tests", "tests.selection", "tests.warm"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A job of a script's background ignores Ctrl-C, and so would every process that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How Python was told to run here is this machine's own: the processes of the tests run as a stranger's do.
for _name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(_name, None)

# Wall time says nothing on a shared machine, so no example has a deadline.
# The same examples everywhere: chance is for the campaigns, whose findings become tests.
settings.register_profile(
    "tests", deadline=None, max_examples=50, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")


def pytest_collection_finish(session):
    """Take what was collected out of the garbage collector's sight: it is there to the end, and large."""
    del session
    gc.collect()
    gc.freeze()


PROVIDER_KEY_SUFFIXES = ("_API_KEY", "_ACCESS_TOKEN")


@pytest.fixture(autouse=True)
def _own_directory(monkeypatch, tmp_path):
    """Run in an empty directory, so that the default runs base `.attractor/runs` is the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _own_main(monkeypatch):
    """A shell of IPython puts a module of its own there, and processes that are spawned ask it where it comes from."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture
def pytester(pytester, monkeypatch):
    """A run of pytest in this process forgets its own tests behind it, and not all else that was imported meanwhile.

    A module that is imported a second time has other classes than those that the first one gave away.
    """

    def forget_own(snapshot):
        del snapshot
        here = str(pytester.path)
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(here):
                del sys.modules[name]

    monkeypatch.setattr("_pytest.pytester.SysModulesSnapshot.restore", forget_own)
    return pytester


@pytest.fixture(scope="session", autouse=True)
def _own_state_of_servers(tmp_path_factory):
    """Keep the trust that servers of a whole session record out of the developer's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTRACTOR_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _own_state(monkeypatch, tmp_path_factory):
    """Keep the trust that a test records for that test alone, in its processes, too."""
    monkeypatch.setenv("ATTRACTOR_STATE_DIR", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(autouse=True)
def _own_secrets():
    """Forget the secrets that a test makes known: others would see the letters held back that it begins with."""
    before = dict(REDACTOR._values)
    yield
    if REDACTOR._values != before:
        REDACTOR._values = before
        REDACTOR._compile()


@pytest.fixture(autouse=True)
def _own_presenters():
    """A shell in which a test loads the extension shows the runs of that test only: it would take the others' gates."""
    registered = (presenters._presenters, presenters._waiting_rules, presenters._click_rules, presenters._namers)
    before = [list(each) for each in registered]
    yield
    for each, earlier in zip(registered, before, strict=True):
        each[:] = earlier


@pytest.fixture(autouse=True)
def _no_provider_keys(monkeypatch):
    """Take provider keys away, so that no test can reach a paid model by accident."""
    for name in list(os.environ):
        if name.endswith(PROVIDER_KEY_SUFFIXES):
            monkeypatch.delenv(name)
