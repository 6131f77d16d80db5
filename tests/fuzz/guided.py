"""Lets atheris choose the inputs of one target by the branches that they take.

Usage: python tests/fuzz/guided.py TARGET [options of libFuzzer]; fuzz.py starts it.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["attractor_nb.languages", "attractor_nb.storage", "attractor_nb.sessions"]):
    import targets

import mutation


def main() -> None:
    """Fuzz until the runs are over or a promise is broken."""
    name = sys.argv.pop(1)
    mutator = mutation.Mutator(name, 0)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        if seed % 2:
            return atheris.Mutate(data, max_size)
        mutator.reseed(seed)
        return mutator.changed(data)[:max_size]

    atheris.Setup(sys.argv, lambda data: targets.run_target(name, bytes(data)), custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
