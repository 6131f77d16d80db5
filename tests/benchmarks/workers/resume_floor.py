"""The floor of a resume: its hot path alone, with the same records, in a fresh process.

resume_floor.py FOLDER: wall and CPU seconds from the first import to the end of the fold. The log in FOLDER is
read, each line's checksum is made, each record decoded with its types checked, and folded into the state that a
run goes on from. Nothing else of a resume: no owner, no context, no files of stages, no graph, no engine.
"""

import json
import sys
import time
from pathlib import Path


def floor(folder):
    wall, cpu = time.perf_counter(), time.process_time()
    from zlib import crc32

    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.gc_pause import gc_paused
    from attractor_nb.model.events import read_event

    data = (folder / "events.jsonl").read_bytes().rstrip(b"\0")
    state = RunState("start")
    with gc_paused(len(data)):
        for line in data.splitlines():
            payload, _, seal = line.rpartition(b',"crc":"')
            payload += b"}"
            assert int(seal[:8], 16) == crc32(payload), line
            state.apply(read_event(payload))
    assert state.completed, "nothing was read"
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


if __name__ == "__main__":
    print(json.dumps(floor(Path(sys.argv[1]))))
