"""A status.json from an untrusted agent fails its stage, is kept, and is never believed (ruling 27, fault 14).

The protection is the ``try`` in ``Attempts._arbitrate``: without it these leave ``run()`` as exceptions.
"""

import json
import os

import pytest

from attractor_nb import Pipeline

SOURCE = "digraph G { start [shape=Mdiamond] a [type=own] done [shape=Msquare] start -> a -> done }"


def _huge(path):
    path.write_bytes(b'{"outcome": "success", "notes": "' + b"x" * 2_000_000 + b'"}')


def _link(path):
    target = path.parent / "elsewhere"
    target.write_text('{"outcome": "success"}')
    path.symlink_to(target)


def _pipe(path):
    os.mkfifo(path)


def _reserved(path):
    path.write_text(json.dumps({"outcome": "success", "context_updates": {"internal.x": 1}}))


@pytest.mark.parametrize("plant", [_huge, _link, _pipe, _reserved])
def test_a_status_file_that_breaks_its_contract_fails_the_stage_and_is_kept(plant, tmp_path):
    def handler(node, context, graph, logs_root):
        plant(logs_root / node.id / "status.json")

    result = Pipeline(SOURCE, handlers={"own": handler}).run(wait=True, logs_root=tmp_path / "run")
    assert result.status == "fail"
    assert result.reason.startswith("a: ")
    assert os.path.lexists(tmp_path / "run" / "a" / "status.rejected.json")
    assert json.loads((tmp_path / "run" / "a" / "status.json").read_text())["outcome"] == "fail"
