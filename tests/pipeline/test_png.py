"""``to_png``: drawings as bitmaps."""

import struct
import sys

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import OptionError, StorageError

PIPELINE = Pipeline(
    "digraph g { start [shape=Mdiamond] done [shape=Msquare] plan start -> plan -> done }", backend="simulated"
)


def size_of(path):
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


def test_pipelines_and_runs_are_drawn_at_the_scale_that_is_asked_for(tmp_path):
    one = size_of(PIPELINE.to_png(tmp_path / "one.png", scale=1))
    two = size_of(PIPELINE.to_png(tmp_path / "two.png"))
    assert two == (2 * one[0], 2 * one[1])
    run = PIPELINE.run(durability="none")
    run.result()
    light, dark = (run.to_png(tmp_path / f"{theme}.png", theme=theme) for theme in ("light", "dark"))
    assert size_of(light) == size_of(dark) == two
    assert light.read_bytes() != dark.read_bytes()


@pytest.mark.parametrize("scale", [0, -1, 9, True, "2", float("nan")])
def test_a_scale_that_is_none_is_refused(tmp_path, scale):
    with pytest.raises(OptionError, match="is none"):
        PIPELINE.to_png(tmp_path / "x.png", scale=scale)


def test_without_the_extra_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(OptionError, match=r"resvg-py, which is not installed[\s\S]*\[png\]"):
        PIPELINE.to_png(tmp_path / "x.png")


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(StorageError, match="cannot be written"):
        PIPELINE.to_png(tmp_path / "nowhere" / "x.png")


def test_a_runs_mermaid_has_signs_colours_and_thick_edges():
    text = 'digraph g { start [shape=Mdiamond] done [shape=Msquare] a b start -> a -> done a -> b [condition="context.x=1"] b -> done }'
    run = Pipeline(text, backend="simulated").run(durability="none")
    run.result()
    drawn = run.to_mermaid()
    assert 'a["✓ a"]' in drawn
    assert 'b["b"]' in drawn
    assert "start ==> a" in drawn
    assert 'a -->|"context.x=1"| b' in drawn
    assert "class start,a,done state_success" in drawn
    assert "classDef state_success fill:#d9f2e6" in drawn
