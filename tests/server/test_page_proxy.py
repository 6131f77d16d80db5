"""The server behind Jupyter's proxy: what the proxy is told, and what is served at the socket file."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import httpx
import pytest

from attractor_nb.server.proxy import setup_attractor

RUNS_VARIABLE = "ATTRACTOR_RUNS_DIR"
TOKEN_VARIABLE = "ATTRACTOR_TOKEN"

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.campaign
def test_jupyter_finds_it_and_is_told_how_it_is_started_let_in_and_shown(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (found,) = entry_points(group="jupyter_serverproxy_servers", name="attractor-nb")
    told = found.load()()
    token = told["environment"][TOKEN_VARIABLE]
    assert len(token) >= 43
    assert told["request_headers_override"] == {"Authorization": f"Bearer {token}"}
    assert told["unix_socket"] == (os.name == "posix")
    assert told["launcher_entry"]["enabled"]
    assert Path(told["launcher_entry"]["icon_path"]).read_text("utf-8").startswith("<svg")
    command = told["command"](port=1234, unix_socket="/run/x{y}")
    assert command == [
        *(sys.executable, "-P", "-m", "attractor_nb.server.proxy", "/run/x{{y}}"),
        str(tmp_path / ".attractor" / "runs"),
        str(os.getpid()),
    ]
    assert told["command"](port=1234, unix_socket="")[4] == "1234"
    monkeypatch.setenv(RUNS_VARIABLE, "notebooks/out")
    assert told["command"](port=1234, unix_socket="")[5] == str(tmp_path / "notebooks" / "out")
    assert token not in repr(command)
    assert setup_attractor()["environment"][TOKEN_VARIABLE] != token, "each Jupyter has its own"


@pytest.mark.skipif(os.name != "posix", reason="there are no socket files")
def test_at_its_socket_file_it_serves_who_shows_the_token_and_nobody_else(tmp_path):
    place, token = tmp_path / "socket", "p" * 43
    place.touch()  # of a server that was killed
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED, str(place), str(tmp_path / "runs"), str(os.getpid())],
        env={**os.environ, TOKEN_VARIABLE: token, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "listens\n"
        assert place.stat().st_mode & 0o777 == 0o600
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(place)), base_url="http://hub") as client:
            assert client.get("/").status_code == 401
            shown = {"Authorization": f"Bearer {token}", "Origin": "http://hub"}
            assert client.get("/pipelines", headers=shown).json()["pipelines"] == []
            assert client.get("/", headers={**shown, "Origin": "http://evil"}).status_code == 403
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()


@pytest.mark.skipif(os.name != "posix", reason="a process does not get to know its parent's end")
def test_it_ends_with_jupyter(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "attractor_nb.server.proxy", tmp_path / "socket", tmp_path / "runs", "1"],
        env={**os.environ, TOKEN_VARIABLE: "p" * 43, "PYTHONPATH": str(REPOSITORY)},
        timeout=100,
    )
    assert done.returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="a process does not get to know its parent's end")
@pytest.mark.parametrize("module", ["attractor_nb/__init__.py", "uvicorn.py", "json.py"])
def test_ruling_43_the_server_that_jupyter_starts_imports_nothing_of_the_folder_it_is_started_in(module, tmp_path):
    planted, ran = tmp_path / "clone" / module, tmp_path / "ran"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"open({str(ran)!r}, 'w').close()\nraise SystemExit('planted')\n")
    *command, _, _ = [part.format() for part in setup_attractor()["command"](port=0, unix_socket=str(tmp_path / "s"))]
    done = subprocess.run(
        [*command, str(tmp_path / "runs"), "1"],  # its parent is another process: it ends as soon as it serves
        cwd=tmp_path / "clone",
        env={**os.environ, TOKEN_VARIABLE: "p" * 43, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert not ran.exists(), "a file of the folder had the server's token"
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "s").is_socket(), "it was to get as far as listening"


STARTED = """
import sys
from attractor_nb.server import proxy
from attractor_nb.server.serving import ServerProcess

class Telling(ServerProcess):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("listens", flush=True)

import attractor_nb.server.serving as serving
serving.ServerProcess = Telling
proxy.main(sys.argv[1:])
"""
