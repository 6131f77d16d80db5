"""Directories of very many runs, made cheaply: one run is executed, and the others are it with another manifest."""

import os

from attractor_nb import Pipeline
from attractor_nb.storage.sealed_file import seal, unseal

TEXT = "digraph NAME { start [shape=Mdiamond] plan [prompt=it] done [shape=Msquare] start -> plan -> done }"


def make_many_runs(folder, count, *, needle):
    """Runs ``run-0000`` and on, each a minute younger than the one before; that number ``needle`` has that name."""
    model = folder.parent / "model"
    Pipeline(TEXT.replace("NAME", "needle"), backend="simulated").run(
        logs_root=model, is_shown=False, durability="fast"
    ).result(60)
    plain = unseal((model / "manifest.json").read_bytes())
    names = [entry.name for entry in model.iterdir() if entry.is_file() and entry.name != "manifest.json"]
    for number in range(count):
        place = folder / f"run-{number:04}"
        place.mkdir(parents=True)
        for name in names:
            os.link(model / name, place / name)
        moment = f"2026-01-{number // 1440 + 1:02}T{number // 60 % 24:02}:{number % 60:02}:00.000Z"
        facts = {**plain, "start_time": moment, "pipeline_name": "needle" if number == needle else "hay"}
        (place / "manifest.json").write_bytes(seal(facts))
