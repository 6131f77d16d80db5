"""Processor time of a server for an event that reaches a client: ``events_load.py ROUNDS CLIENTS:EVENTS …``; seconds as JSON.

The contenders take turns, each a process of its own; the clients are bare sockets in this one. What a server used
until its last client had the last event is divided by nothing here.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

SERVER = Path(__file__).with_name("events_server.py")
CONTENDERS = ("ours", "peer")


async def get(port, path):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.rpartition(b"\r\n\r\n")[2].decode()


async def client(port, count, begun):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(b"GET /events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    begun.release()
    had = 0
    while had < count and (data := await reader.read(1 << 18)):
        had += data.count(b"id: ")
    writer.close()
    return had


async def one_round(port, clients, count):
    begun = asyncio.Semaphore(0)
    listening = [asyncio.create_task(client(port, count, begun)) for _ in range(clients)]
    for _ in range(clients):
        await begun.acquire()
    before = float(await get(port, "/cpu"))
    await get(port, f"/go/{count}")
    had = await asyncio.gather(*listening)
    after = float(await get(port, "/cpu"))
    assert had == [count] * clients, had
    return after - before


def main(rounds, sizes):
    servers = {
        name: subprocess.Popen([sys.executable, str(SERVER), name], stdout=subprocess.PIPE, text=True)
        for name in CONTENDERS
    }
    try:
        ports = {name: int(server.stdout.readline()) for name, server in servers.items()}
        used = {size: {name: [] for name in CONTENDERS} for size in sizes}
        for size in sizes:
            clients, count = map(int, size.split(":"))
            for number in range(rounds + 1):
                for name, port in ports.items():
                    figure = asyncio.run(one_round(port, clients, count))
                    if number:
                        used[size][name].append(figure)
        print(json.dumps(used))
    finally:
        for server in servers.values():
            server.terminate()
            server.wait(30)


main(int(sys.argv[1]), sys.argv[2:])
