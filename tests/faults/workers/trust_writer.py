"""Remembers that commands of many places were let run: ``trust_writer.py NAME COUNT``."""

import sys

from attractor_nb.storage.trust_file import TrustFile

name, count = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    TrustFile().remember(f"/{name}/{number}.dot", "0" * 64, [("build", "tool_command", "make")])
