"""Fuzzes what reads texts and files that others wrote.

Usage: python tests/fuzz/fuzz.py [--runs 10000] [--seed 0] [--target NAME …] [--guided-share 0.2] [--jobs 2]
       python tests/fuzz/fuzz.py --replay FILE

Most inputs come from a grammar-aware mutator (mutation.py), which is fast; a share of them is chosen by
atheris, which follows the branches that an input takes. The same seed gives the same inputs. An input that
breaks a promise is saved in ``tests/fuzz/found/TARGET-….input`` and is replayed by ``--replay``; put into
``tests/fuzz/corpus/TARGET/`` it is a test case from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mutation
import targets

HERE = Path(__file__).resolve().parent
FOUND = HERE / "found"
GUIDED_CHUNK_SECONDS = 3600


def save(name: str, data: bytes, place: Path) -> Path:
    """Keep an input that broke a promise."""
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}.input"
    path.write_bytes(data)
    return path


def run_mutations(name: str, runs: int, seed: int, place: Path) -> int:
    """Give a target its seeds and mutated inputs; how many broke a promise."""
    mutator = mutation.Mutator(name, seed)
    first = mutation.seeds(name)[:runs]
    broken = 0
    for number in range(runs):
        data = first[number] if number < len(first) else mutator.fresh()
        try:
            targets.run_target(name, data)
        except targets.BrokenPromiseError as error:
            broken += 1
            path = save(name, data, place)
            print(f"BROKEN {name}: {str(error)[:500]}\n  saved as {path}", flush=True)
            if broken >= 5:
                break
    return broken


def run_guided(name: str, runs: int, seed: int, place: Path) -> int:
    """Let atheris choose the inputs, in a process of its own; 1 when a promise was broken."""
    with tempfile.TemporaryDirectory(prefix="attractor-fuzz-") as folder:
        for number, data in enumerate(mutation.seeds(name)):
            (Path(folder) / str(number)).write_bytes(data)
        place.mkdir(parents=True, exist_ok=True)
        options = [
            folder,
            f"-runs={runs}",
            f"-seed={seed + 1}",
            f"-artifact_prefix={place}/{name}-guided-",
            f"-max_len={mutation.MAX_BYTES}",
            "-print_final_stats=0",
            "-verbosity=0",
        ]
        command = [sys.executable, str(HERE / "guided.py"), name, *options]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=GUIDED_CHUNK_SECONDS)
    if ended.returncode:
        print(f"BROKEN {name}, guided: {(ended.stdout + ended.stderr)[-2000:]}", flush=True)
        return 1
    return 0


def run_one(name: str, runs: int, seed: int, guided_share: float, place: Path) -> dict[str, object]:
    """Fuzz one target; what came of it."""
    has_atheris = importlib.util.find_spec("atheris") is not None  # there are wheels for Linux only
    began, guided = time.monotonic(), round(runs * guided_share) if has_atheris else 0
    broken = run_mutations(name, runs - guided, seed, place)
    if guided:
        broken += run_guided(name, guided, seed, place)
    seconds = time.monotonic() - began
    return {"target": name, "runs": runs, "guided": guided, "broken": broken, "seconds": round(seconds, 1)}


def main() -> int:
    """Fuzz; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000, help="inputs over all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=list(targets.TARGETS))
    parser.add_argument("--guided-share", type=float, default=0.2, help="share of the inputs that atheris chooses")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--place", type=Path, default=FOUND, help="where inputs that break a promise are saved")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="give a saved input to its target again")
    options = parser.parse_args()
    if options.replay:
        targets.run_target(options.replay.name.partition("-")[0], options.replay.read_bytes())
        print("the promises are kept")
        return 0
    names: list[str] = options.target or list(targets.TARGETS)
    if len(names) == 1:
        result = run_one(names[0], options.runs, options.seed, options.guided_share, options.place)
        print(json.dumps(result), flush=True)
        return min(1, int(str(result["broken"])))
    return _run_all(names, options)


def _run_all(names: list[str], options: argparse.Namespace) -> int:
    """Each target in a process of its own, several side by side."""
    shares = {name: options.runs // len(names) for name in names}
    shares[names[0]] += options.runs % len(names)
    waiting, running, code = list(names), [], 0
    while waiting or running:
        while waiting and len(running) < options.jobs:
            name = waiting.pop(0)
            command = [sys.executable, __file__, "--target", name, "--runs", str(shares[name])]
            command += ["--seed", str(options.seed), "--guided-share", str(options.guided_share)]
            command += ["--place", str(options.place)]
            running.append(subprocess.Popen(command, env=os.environ))
        code |= running.pop(0).wait()
    return min(1, code)


if __name__ == "__main__":
    sys.exit(main())
