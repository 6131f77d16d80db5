"""Clients of servers (ruling 43): each reaches this machine past every proxy."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "attractor_nb"
CLIENTS = {
    "backends/local_model.py": "the local model's server; it reads no variable",
    "backends/llm/clients.py": "models",
    "cli/remote_runs/server_client.py": "a server of ours",
}
_MADE = re.compile(
    r"\bhttpx2?\.(?:Async)?Client\(|\burlopen\(|\bbuild_opener\(|\bHTTPS?Connection\(|\baiohttp\b|\brequests\.(?:get|post|Session)\b"
)


def test_ruling_43_clients_are_made_where_this_machine_is_asked_past_every_proxy():
    found = {
        path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if _MADE.search(path.read_text("utf-8"))
    }
    assert found == set(CLIENTS), "a new client of a server: see network.is_local"
