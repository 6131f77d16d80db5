"""A DOT reader and a text: reading.py READER FILE REPEATS. CPU seconds of the best reading."""

import gc
import json
import sys
import time
from pathlib import Path


def reader(name):
    if name == "ours":
        from attractor_nb import parse_dot

        return parse_dot
    if name == "pydot":
        import pydot

        return pydot.graph_from_dot_data
    from attractor.parser import parse_dot_string

    return parse_dot_string


def main(name, path, repeats):
    begin = time.process_time()
    read = reader(name)
    read("digraph tiny {\n  start [shape=Mdiamond]\n  exit [shape=Msquare]\n  start -> exit\n}\n")
    loading = time.process_time() - begin
    text = Path(path).read_text()
    times = []
    for _ in range(repeats):
        gc.collect()
        begin = time.process_time()
        assert read(text)
        times.append(time.process_time() - begin)
    print(json.dumps({"cpu": min(times), "loading": loading}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
