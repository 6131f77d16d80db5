"""``diff`` and ``export`` on the command line."""

from __future__ import annotations

import json

import pytest

from attractor_nb import FunctionBackend, Pipeline
from attractor_nb.cli import main

TEXT = "digraph g { start [shape=Mdiamond] done [shape=Msquare] plan start -> plan -> done }"


@pytest.fixture
def two(tmp_path):
    places = []
    for words in ("one", "two"):
        backend = FunctionBackend(lambda node, prompt, context, words=words: words)
        Pipeline(TEXT, backend=backend).run(wait=True, logs_root=tmp_path / words)
        places.append(str(tmp_path / words))
    return places


def test_diff_prints_tables_and_texts(two, capsys):
    assert main(["diff", *two]) == 0
    printed = capsys.readouterr().out
    assert "first difference at plan" in printed
    assert "-one\n+two" in printed
    assert "time" in printed


def test_diff_as_json(two, capsys):
    assert main(["diff", *two, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["is_same"] is False
    assert [step["differs"] for step in plain["steps"]] == [[], ["response"], []]


def test_diff_of_what_is_no_run_is_invalid_input(two, capsys):
    assert main(["diff", two[0], "nowhere"]) == 2
    assert "there is no run directory" in capsys.readouterr().err


@pytest.mark.parametrize("are_maps", [False, True], ids=["runs", "maps"])
def test_diff_writes_a_page(two, tmp_path, capsys, are_maps):
    if are_maps:
        for place in ("a", "b"):
            Pipeline(TEXT, backend=FunctionBackend(lambda prompt: "x")).map([{}], wait=True, map_dir=tmp_path / place)
    sides = [str(tmp_path / place) for place in ("a", "b")] if are_maps else two
    page = tmp_path / "both.html"
    assert main(["diff", *sides, "-o", str(page)]) == 0
    assert f"{page.stat().st_size:,} bytes" in capsys.readouterr().out
    assert f"Two {'maps' if are_maps else 'runs'} beside each other" in page.read_text()
    assert main(["diff", *sides, "-o", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"page": str(page), "bytes": page.stat().st_size}


def test_diff_writes_no_other_file_than_a_page(two, tmp_path, capsys):
    assert main(["diff", *two, "-o", str(tmp_path / "both.svg")]) == 2
    assert "a comparison is exported as an HTML page" in capsys.readouterr().err


def test_export_writes_the_page_and_says_where(two, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["export", two[0], "-o", str(page)]) == 0
    assert f"{page.stat().st_size:,} bytes" in capsys.readouterr().out
    assert page.read_text().startswith("<!doctype html>")


def test_export_writes_no_page_under_the_suffix_of_another_format(two, tmp_path, capsys):
    assert main(["export", two[0], "-o", str(tmp_path / "page.pdf")]) == 2
    assert "a run is exported as an HTML page" in capsys.readouterr().err
    assert not (tmp_path / "page.pdf").exists()


def test_export_as_json_names_the_page(two, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["export", two[0], "-o", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"page": str(page), "bytes": page.stat().st_size}


def test_export_writes_no_page_into_a_run(two, tmp_path, capsys):
    manifest = tmp_path / "one/manifest.json"
    before = manifest.read_text()
    assert main(["export", two[1], "-o", str(manifest)]) == 2
    assert "is in the directory of a run" in capsys.readouterr().err
    assert manifest.read_text() == before
