"""The modules that a server has loaded when it runs something, and its way of sending."""

import asyncio
import contextlib
import socket
import sys

import pytest

from attractor_nb.errors import OptionError
from attractor_nb.extras import install_command
from attractor_nb.server import serve
from attractor_nb.server.serving import listen


def test_what_a_run_needs_is_loaded_by_the_time_somebody_posts_a_source(client, sources):
    assert client.ended(client.submit(sources.plain))["outcome"] == "success"
    assert "attractor_nb.pipeline.pipeline" in sys.modules


def test_a_server_names_the_extra_that_it_needs_before_it_makes_anything(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(OptionError, match="the server needs uvicorn, which is not installed") as refused:
        serve(tmp_path / "runs")
    assert refused.value.hint == install_command("server")
    assert not (tmp_path / "runs").exists()


def test_no_piece_of_an_answer_waits_for_the_acknowledgement_of_the_one_before():
    """A kernel that gathers small pieces holds the body back behind its head: every answer then takes 40 ms more."""

    async def option_of_a_connection():
        found = asyncio.get_running_loop().create_future()

        async def look(_, writer):
            line = writer.get_extra_info("socket")
            found.set_result(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with contextlib.closing(listen("127.0.0.1", 0)) as listening:
            async with await asyncio.start_server(look, sock=listening):
                _, writer = await asyncio.open_connection(*listening.getsockname())
                writer.close()
                return await found

    assert asyncio.run(option_of_a_connection()) == 1
