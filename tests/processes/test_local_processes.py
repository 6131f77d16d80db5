"""Commands: what they see, how they end, and that nothing of them is left (ruling 25; fault 9)."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb.errors import StorageError, TerminalError
from attractor_nb.processes import LocalProcesses, command_environment, descendants, process_table
from attractor_nb.processes import local as local_module
from attractor_nb.processes import local as output_module
from attractor_nb.processes.process_table import PROC, ProcTable
from attractor_nb.runtime.prepare.known_secrets import redact_also
from tests.waiting import is_alive, wait_for_end, wait_until

NO_PROC = Path("/no/proc")
LONG_SECONDS = 600
"""Longer than any test may take: who waits for the end of such a command hangs."""


def run(command, **options):
    return asyncio.run(LocalProcesses().run(command, **options))


def test_a_command_gives_its_outputs_and_exit_code():
    result = run("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr, result.is_timed_out) == (3, "out\n", "err\n", False)


def test_an_argument_list_needs_no_shell():
    assert run([sys.executable, "-c", "import sys; print(sys.argv[1])", "$HOME; *"]).stdout == "$HOME; *\n"


@pytest.mark.parametrize("size", [0, 3, 1_000_000])
def test_a_command_reads_its_input_to_the_end(size):
    assert run("wc -c", stdin=b"x" * size).stdout.strip() == str(size)


def test_a_command_that_does_not_read_its_input_ends_all_the_same():
    assert run("true", stdin=b"x" * 1_000_000).exit_code == 0


def test_a_command_that_is_ended_by_a_signal_says_which():
    assert run("kill -9 $$").exit_code == -9


def test_a_command_runs_in_its_directory(tmp_path):
    assert run("pwd", cwd=tmp_path).stdout.strip() == str(tmp_path)


def test_values_reach_a_command_as_environment():
    assert run('echo "$ATTRACTOR_NODE_ID"', env={"ATTRACTOR_NODE_ID": "plan; rm -rf /"}).stdout == "plan; rm -rf /\n"


SECRETS = [
    "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "AZURE_OPENAI_KEY", "HF_TOKEN",
    "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "MY_SECRET", "DB_PASSWORD",
    "API_KEY", "apikey", "SERVICE_API_KEYS", "GOOGLE_APPLICATION_CREDENTIALS",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
def test_provider_keys_and_other_secrets_are_not_inherited(name):
    assert command_environment({name: "planted", "PATH": "/bin"}) == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LANG", "TOKENIZERS_PARALLELISM", "KEYBOARD", "SECRETARY", "OPEN_FILES"]
)
def test_everything_else_is_inherited(name):
    assert command_environment({name: "x"}) == {name: "x"}


ADDRESSES = {
    "a server of ours": "http://127.0.0.1:8765/#token=short",
    "a page of it": "http://127.0.0.1:8765/#sidebar&token=aBc-dEf_0123456789",
    "a ticket": "see http://h/lab?x=1&access_token=planted.",
    "a password": "postgres://ann:pw@db/x",
    "a known key": "--key sk-planted-0123456789abcdefghij",
}


@pytest.mark.parametrize("value", ADDRESSES.values(), ids=ADDRESSES)
def test_ruling_43_a_value_that_holds_a_secret_is_not_inherited_whatever_its_name(value):
    assert command_environment({"ATTRACTOR_SERVER": value, "LAST_URL": value, "PATH": "/bin"}) == {"PATH": "/bin"}


def test_ruling_43_a_token_that_is_known_to_be_ours_is_not_inherited_in_any_value():
    redact_also("aTokenOfThisServer_0123456789")
    assert command_environment({"WATCHED": "at 8765: aTokenOfThisServer_0123456789"}) == {}


@pytest.mark.parametrize(
    "value", ["http://127.0.0.1:8765/", "http://h/?token=", "http://ann@h/", "ssh://git@h:22/x", "x?token=y", "12:30"]
)
def test_an_address_without_a_secret_is_inherited(value):
    assert command_environment({"ATTRACTOR_SERVER": value}) == {"ATTRACTOR_SERVER": value}


@pytest.mark.parametrize("name", ["https_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_is_inherited_with_its_password_without_which_a_command_reaches_nothing(name):
    assert command_environment({name: "http://ann:pw@proxy:3128"}) == {name: "http://ann:pw@proxy:3128"}


def test_a_planted_key_does_not_reach_a_command(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    assert "sk-0123456789" not in run("env").stdout


def test_a_value_given_for_this_command_reaches_it_whatever_its_name():
    assert run("echo $MY_TOKEN", env={"MY_TOKEN": "meant"}).stdout == "meant\n"


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        pytest.param(["no-such-program"], {}, "'no-such-program' cannot be started", id="no such program"),
        pytest.param("true", {"cwd": Path("/no/such/place")}, "the working directory /no/such/place does not exist", id="no such directory"),
        pytest.param(["true", "a\0b"], {}, "'true' cannot be started", id="nul"),
        pytest.param(["x" * 10_000], {}, "cannot be started", id="name too long"),
    ],
)  # fmt: skip
def test_a_command_that_cannot_be_started_is_a_terminal_error(command, options, message):
    with pytest.raises(TerminalError) as caught:
        run(command, **options)
    assert message in caught.value.message


def test_a_missing_shell_is_a_terminal_error():
    with pytest.raises(TerminalError, match="'/no/shell' cannot be started"):
        asyncio.run(LocalProcesses(shell="/no/shell").run("true"))


def test_without_a_watchdog_no_command_is_started(monkeypatch, tmp_path):
    monkeypatch.setattr("attractor_nb.processes.descendants._SHELL", "/no/shell")
    with pytest.raises(TerminalError, match="'/bin/sh' cannot be started"):
        run("touch here", cwd=tmp_path)
    assert not (tmp_path / "here").exists()


def test_a_watchdog_that_somebody_ended_does_not_end_the_command(monkeypatch):
    monkeypatch.setattr("attractor_nb.processes.descendants.Watchdog._SCRIPT", "exit 0")
    assert run("sleep 0.05; echo done").stdout == "done\n"


def test_binary_output_is_decoded_with_replacement():
    assert run(r"printf 'a\377b'").stdout == "a\ufffdb"


def test_output_is_passed_on_as_it_arrives_and_characters_stay_whole():
    pieces = []
    run(r"printf 'na\303'; sleep 0.05; printf '\257ve'; echo e >&2", on_output=lambda *piece: pieces.append(piece))
    assert "".join(text for channel, text in pieces if channel == "stdout") == "naïve"
    assert ("stderr", "e\n") in pieces


def test_the_full_output_is_in_files_for_the_owner_alone(tmp_path):
    run("echo out; echo err >&2", output_directory=tmp_path)
    assert ((tmp_path / "stdout.txt").read_text(), (tmp_path / "stderr.txt").read_text()) == ("out\n", "err\n")
    assert (tmp_path / "stdout.txt").stat().st_mode & 0o777 == 0o600


def test_a_large_output_is_bounded_in_memory_and_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(output_module, "MAX_SPOOLED_BYTES", 2_000_000)
    heard = []
    result = run(
        "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo last",
        output_directory=tmp_path,
        on_output=lambda _, text: heard.append(len(text)),
    )
    assert len(result.stdout) < 1024 * 1024 + 100
    assert result.stdout.startswith("first\n")
    assert result.stdout.endswith("last\n")
    assert "bytes left out" in result.stdout
    assert (tmp_path / "stdout.txt").stat().st_size == 2_000_000
    assert sum(heard) == 2_000_000


def test_a_flood_ends_with_its_time(tmp_path):
    result = run("yes", timeout_seconds=0.3, output_directory=tmp_path)
    assert (result.is_timed_out, result.exit_code) == (True, -signal.SIGTERM)
    assert (tmp_path / "stdout.txt").stat().st_size <= 64 * 1024 * 1024


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("sleep 600", id="sleeps"),
        pytest.param("trap '' TERM; while :; do sleep 1; done", id="ignores TERM"),
        pytest.param("sleep 600 & sleep 600", id="forks"),
        pytest.param("setsid sleep 600 & echo $!; wait", id="leaves the session"),
        pytest.param("(setsid sh -c 'trap \"\" TERM; echo $$; sleep 600; sleep 600' &); sleep 600", id="daemonises"),
        pytest.param("cat <&1", id="waits"),
    ],
)
def test_fault_9_at_the_timeout_a_command_and_all_it_started_end(command):
    result = run(command, timeout_seconds=0.2)
    assert result.is_timed_out or command == "cat <&1"
    for pid in result.stdout.split():
        wait_for_end(int(pid))


def test_fault_9_the_waits_at_an_end_are_shorter_than_what_is_promised():
    """Two seconds at a timeout and one at a stop: what the waits leave of them is the machine's."""
    assert local_module.GRACE_SECONDS + local_module._DRAIN_SECONDS < 1.5
    assert local_module.CANCEL_GRACE_SECONDS + local_module._DRAIN_SECONDS < 0.7


@pytest.mark.parametrize(
    "command", ["sleep 600 & echo $!", "setsid sleep 600 & echo $!"], ids=["in its group", "outside"]
)
def test_fault_9_what_a_command_left_running_ends_with_it(command):
    result = run(command)
    assert (result.exit_code, result.is_timed_out) == (0, False)
    wait_for_end(int(result.stdout))


def test_a_command_gets_a_chance_to_end_in_order():
    result = run("trap 'echo cleaned up; exit 5' TERM; sleep 600 & wait", timeout_seconds=0.2)
    assert (result.exit_code, result.stdout) == (5, "cleaned up\n")


async def _cancelled(command, started):
    ready = asyncio.Event()
    task = asyncio.ensure_future(
        LocalProcesses().run(command, on_output=lambda _, text: (started.append(text), ready.set()))
    )
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "], ids=["obedient", "stubborn"])
def test_cancelling_ends_the_group_after_a_grace_of_its_own(trap, monkeypatch):
    monkeypatch.setattr(local_module, "GRACE_SECONDS", LONG_SECONDS)  # a user waits for the prompt
    started = []
    asyncio.run(_cancelled(f"{trap}echo $$; sleep {LONG_SECONDS}; sleep {LONG_SECONDS}", started))
    wait_for_end(int(started[0]))


def test_cancelling_twice_still_kills():
    async def twice():
        ready = asyncio.Event()
        started = []
        command = f"trap '' TERM; echo $$; sleep {LONG_SECONDS}; sleep {LONG_SECONDS}"
        task = asyncio.ensure_future(
            LocalProcesses().run(command, on_output=lambda _, text: (started.append(text), ready.set()))
        )
        await ready.wait()
        task.cancel()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int(started[0])

    wait_for_end(asyncio.run(twice()))


def test_a_listener_that_raises_ends_the_command():
    def listener(channel, text):
        raise LookupError(text)

    with pytest.raises(LookupError, match="hello"):
        run(f"echo hello; sleep {LONG_SECONDS}", on_output=listener)


def test_output_that_cannot_be_kept_is_a_storage_error(tmp_path):
    (tmp_path / "stdout.txt").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"cannot write .*stdout\.txt"):
        run("echo x", output_directory=tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_disk_that_fills_up_ends_the_command(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output_module, "write_all", full)
    with pytest.raises(StorageError, match="no space left"):
        run(f"echo x; sleep {LONG_SECONDS}", output_directory=tmp_path)


def test_input_that_cannot_be_kept_is_a_storage_error(monkeypatch):
    def full():
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(local_module.tempfile, "TemporaryFile", full)
    with pytest.raises(StorageError, match="no space left"):
        run("cat", stdin=b"x")


KILLED = """
import asyncio
from attractor_nb.processes import LocalProcesses
command = "trap '' TERM; echo $$; sleep 600; sleep 600"
asyncio.run(LocalProcesses().run(command, on_output=lambda channel, text: print(text, end='', flush=True)))
"""


@pytest.mark.parametrize("round_number", range(3))
def test_fault_7_when_we_are_killed_the_command_ends_too(round_number):
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE) as owner:
        command = int(owner.stdout.readline())
        owner.kill()
    try:
        wait_for_end(command)
        assert not is_alive(command)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(command, signal.SIGKILL)


def test_what_was_started_while_everything_was_looked_at_is_ended():
    """Protected by: it is looked again, until nothing is there that was not there before."""
    script = "read -r go; setsid tail -f /dev/null >/dev/null 2>&1 & echo $!"
    shell = subprocess.Popen(
        ["/bin/sh", "-c", script.replace("; ", "\n")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, descendants.MARK_NAME: "looked-at"},
        start_new_session=True,
    )
    started = []

    class Table(ProcTable):
        def numbers(self):
            """All processes; then one of them starts another, and ends."""
            numbers = super().numbers()
            if not started:
                started.append(int(shell.communicate(b"go\n")[0]))
            return numbers

    descendants.Descendants(shell.pid, "looked-at", 0, Table(PROC)).kill()
    assert started
    wait_for_end(started[0])


def test_several_commands_run_side_by_side():
    async def many():
        processes = LocalProcesses()
        return await asyncio.gather(*(processes.run(f"sleep 0.1; echo {number}") for number in range(8)))

    assert [result.stdout for result in asyncio.run(many())] == [f"{number}\n" for number in range(8)]


def test_with_neither_proc_nor_psutil_the_group_still_ends(monkeypatch):
    monkeypatch.setattr(process_table, "has_package", lambda _: False)
    result = asyncio.run(LocalProcesses(proc=NO_PROC).run(f"sleep {LONG_SECONDS} & echo $!"))
    wait_for_end(int(result.stdout))


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("sleep 600 & echo $!; wait", id="in its group"),
        pytest.param("setsid sleep 600 & echo $!; wait", id="leaves the session"),
        pytest.param("(setsid sh -c 'trap \"\" TERM; echo $$; sleep 600; sleep 600' &); sleep 600", id="daemonises"),
    ],
)
def test_without_proc_a_command_and_all_it_started_end_at_the_timeout(command):
    """As on macOS: psutil finds what left the session, by its parent or its mark."""
    result = asyncio.run(LocalProcesses(proc=NO_PROC).run(command, timeout_seconds=1))
    assert result.is_timed_out
    (started,) = result.stdout.split()
    wait_for_end(int(started))


def test_without_proc_what_a_command_left_running_ends_with_it():
    result = asyncio.run(LocalProcesses(proc=NO_PROC).run("setsid sleep 600 & echo $!"))
    assert (result.exit_code, result.is_timed_out) == (0, False)
    wait_for_end(int(result.stdout))


def test_without_proc_the_descendants_of_a_command_end_when_we_are_killed():
    program = KILLED.replace("LocalProcesses()", "LocalProcesses(proc=Path('/no/proc'))").replace(
        'command = "trap', 'from pathlib import Path\ncommand = "setsid sleep 600 & echo $!; trap'
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        started = [int(owner.stdout.readline()) for _ in range(2)]
        owner.kill()
    try:
        wait_for_end(*started)
    finally:
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_both_tables_have_the_same_facts():
    with subprocess.Popen(["setsid", "sleep", "600"], env={**os.environ, descendants.MARK_NAME: "one"}) as child:
        tables = [process_table.process_table(proc) for proc in (PROC, NO_PROC)]
        assert [type(table).__name__ for table in tables] == ["ProcTable", "PsutilTable"]
        facts = [table.facts_of(child.pid) for table in tables]
        for table in tables:
            assert child.pid in table.numbers()
            assert wait_until(lambda table=table: table.has_variable(child.pid, descendants.MARK_NAME, "one"))
            assert not table.has_variable(child.pid, descendants.MARK_NAME, "two")
        child.kill()
    assert [(each.is_dead, each.parent) for each in facts] == [(False, os.getpid())] * 2
    assert [table.facts_of(child.pid) for table in tables] == [None, None]
    assert not any(table.has_variable(child.pid, descendants.MARK_NAME, "one") for table in tables)


@pytest.mark.parametrize("turns", range(6))
def test_a_loop_that_is_interrupted_while_a_command_starts_ends(turns, tmp_path):
    """asyncio's own transports wait for ever for a child whose pipes were never connected."""

    async def main():
        running = asyncio.ensure_future(LocalProcesses().run(f"sleep {LONG_SECONDS}; touch late", cwd=tmp_path))
        for _ in range(turns):
            await asyncio.sleep(0)
        assert not running.done()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert not list(tmp_path.iterdir())


def test_without_proc_a_group_that_has_ended_is_not_alive():
    for table in (ProcTable(NO_PROC), process_table.process_table(NO_PROC)):
        found = descendants.Descendants(2**22 + 1, "mark", 0, table)  # more than any process id
        assert not found.is_alive()
        assert descendants.Descendants(os.getpgid(0), "mark", 0, table).is_alive()


def test_what_breaks_off_the_start_of_a_command_has_the_watchdog_end_what_may_have_started(monkeypatch):
    ended = []

    class Watched(descendants.Watchdog):
        async def end_all(self):
            ended.append(self)
            await super().end_all()

    class Broken:
        def __init__(self, *_, **__):
            raise KeyboardInterrupt

    monkeypatch.setattr(local_module, "Watchdog", Watched)
    monkeypatch.setattr(local_module, "ChildProcess", Broken)
    with pytest.raises(KeyboardInterrupt):
        run("true")
    assert len(ended) == 1
