"""A warm process cannot be told from one that `subprocess` starts, but by its imports."""

import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from tests import warm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems start every process as ever")

PROGRAMS = {
    "exit code": "import sys; sys.exit(3)",
    "exit with words": "import sys; print('out'); sys.exit('words')",
    "kill": "import os; os.kill(os.getpid(), 9)",
    "Ctrl-C": "import os, signal; os.kill(os.getpid(), signal.SIGINT); signal.pause()",
    "reader gone": "import os; os.close(1); print('lost')",
    "main": "import sys; print(sys.argv, sys.path, sys.orig_argv, __name__, sys.modules['__main__'].__dict__ is globals())",
    "streams": "import sys; print('é', sys.stdin.read(), sys.stdout, sys.stderr, sys.stdin, sys.stdout.line_buffering, sys.stdout.write_through)",
    "descriptors": "import os; print(sorted(os.listdir('/proc/self/fd')))",
    "directory": "import os; print(os.getcwd(), sorted(os.environ.items()))",
    "leader": "import os; print(os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid(), os.getppid())",
    "threads": "import threading; print(len(threading.enumerate()), threading.current_thread() is threading.main_thread())",
    "signals": "import signal; print(signal.pthread_sigmask(0, []), signal.getsignal(2), signal.getsignal(15))",
    "atexit": "import atexit; atexit.register(print, 'bye'); raise SystemExit(4)",
    "a late thread": "import threading, time; threading.Timer(0.1, print, ['late']).start()",
}


def told(run, program, folder, **options):
    command = [sys.executable, "-c", program, "one", "two"]
    ended = run(command, input="in", capture_output=True, text=True, cwd=folder, **options)
    return ended.returncode, ended.stdout, ended.stderr.splitlines()[-1:]


@pytest.mark.parametrize(
    "options",
    [{"env": {"PATH": os.defpath}}, {"env": {**os.environ, "PYTHONUNBUFFERED": "1"}, "start_new_session": True}],
    ids=["in our session", "unbuffered in its own session"],
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_sees_and_says_the_same(tmp_path, name, options):
    cold = told(subprocess.run, PROGRAMS[name], tmp_path, **options)
    assert told(warm.run, PROGRAMS[name], tmp_path, **options) == cold


def test_at_a_terminal_it_writes_each_line_at_once():
    said = []
    for start in (subprocess.Popen, warm.Popen):
        end, other = os.openpty()
        with start([sys.executable, "-c", "import sys; print(sys.stdout.line_buffering)"], stdout=other) as process:
            os.close(other)
            assert process.wait(60) == 0
        said.append(os.read(end, 100))
        os.close(end)
    assert said == [b"True\r\n"] * 2


def test_it_has_no_variable_of_those_before_it(tmp_path):
    shown = "import os; print(sorted(os.environ.keys() - {'LC_CTYPE'}))"
    for own in ("FIRST", "SECOND"):
        said = told(warm.run, shown, tmp_path, env={own: "1", "TZ": "Etc/GMT+7"})  # a parent of their own
        assert said == (0, f"['{own}', 'TZ']\n", [])


def test_a_script_and_a_module_run_as_main(tmp_path):
    (tmp_path / "script.py").write_text("import sys, other; print(__name__, __file__, sys.argv, sys.path[0], other.x)")
    (tmp_path / "other.py").write_text("x = 'beside it'")
    for start in (["script.py"], [tmp_path / "script.py"], ["-m", "script"]):
        said = [
            run([sys.executable, *start, "a"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
            for run in (subprocess.run, warm.run)
        ]
        assert said[0] == said[1]
        assert "beside it" in said[0]


def test_it_has_imported_the_package_and_pays_nothing_for_it(tmp_path):
    if any(name.startswith("COV") for name in os.environ):
        pytest.skip("measured coverage: its processes start in the ordinary way")
    seen = "import sys; print('attractor_nb.engine.walking' in sys.modules)"
    assert told(warm.run, seen, tmp_path)[1] == "True\n"
    assert told(subprocess.run, seen, tmp_path)[1] == "False\n"


def test_a_signal_reaches_it_and_its_end_leaves_no_process():
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with warm.Popen([sys.executable, "-c", "print('began', flush=True); input()"], stdin=-1, stdout=-1) as process:
        assert process.stdout.readline() == b"began\n"
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    after = {child.pid for child in psutil.Process().children(recursive=True)}
    assert process.pid not in after
    assert len(after - before) <= 1  # the parent, if this was its first child


def test_threads_may_start_processes_at_once():
    codes = []

    def start(number):
        codes.append(warm.run([sys.executable, "-c", f"raise SystemExit({number})"]).returncode)

    threads = [threading.Thread(target=start, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == list(range(8))


@pytest.mark.parametrize(
    ("command", "variables", "options"),
    [
        ([sys.executable, "-P", "-c", "pass"], {}, {}),
        (["/bin/true", "x"], {}, {}),
        ([sys.executable, "-c", "pass"], {"LD_PRELOAD": "x.so"}, {}),
        ([sys.executable, "-c", "pass"], {"COVERAGE_OF_OURS": "x"}, {}),
        ([sys.executable, "-c", "pass"], {}, {"umask": 0o77}),
        ([sys.executable, "-c", "pass"], {}, {"pass_fds": (0,)}),
    ],
    ids=["option", "program", "preloaded", "coverage", "umask", "descriptors"],
)
def test_what_a_parent_cannot_give_is_started_as_ever(monkeypatch, command, variables, options):
    monkeypatch.setattr(warm, "parent_of", lambda *_: pytest.fail("it was forked"))
    with warm.Popen(command, env=os.environ | variables, **options) as process:
        assert process.wait(60) == 0
