"""`--cache`, `--cache-dir` and `attractor-nb cache`."""

import json


def test_a_second_run_takes_its_stages_from_the_cache_and_says_so(command, sources):
    first, second = command("run", "straight.dot", "--cache"), command("run", "straight.dot", "--cache")
    assert (first.code, second.code) == (0, 0)
    assert "cached" not in first.out + first.err
    (line,) = [line for line in second.err.splitlines() if "write" in line]
    assert line.startswith("⚡")
    assert "(cached)" in line
    assert second.out.startswith("✓ completed   3 stages")
    assert "1 cached" in second.out


def test_the_summary_for_programs_names_the_stages(command, sources):
    command("run", "straight.dot", "--cache-dir", "kept")
    ended = command("run", "straight.dot", "--cache-dir", "kept", "--json", "-q")
    plain = json.loads(ended.out)
    assert [(stage["id"], stage.get("cached", 0)) for stage in plain["stages"]] == [
        ("start", 0),
        ("write", 1),
        ("done", 0),
    ]
    assert plain["saved"] == {}
    assert (sources / "kept" / "entries").is_dir()
    assert not (sources / ".attractor" / "cache").exists()


def test_without_the_option_nothing_is_kept(command, sources):
    command("run", "straight.dot")
    assert not (sources / ".attractor" / "cache").exists()


def test_a_rehearsed_command_is_not_kept(command, sources):
    (sources / "tool.dot").write_text(
        "digraph { start [shape=Mdiamond] done [shape=Msquare]\n"
        'a [shape=parallelogram, cache=true, tool_command="echo real"] start -> a -> done }'
    )
    assert command("run", "tool.dot", "--cache", "--simulate").code == 0
    ended = command("run", "tool.dot", "--cache", "--trust")
    assert ended.code == 0
    assert "cached" not in ended.out + ended.err


def test_the_cache_is_shown_and_emptied(command, sources):
    assert command("cache").out == ".attractor/cache: 0 results, 0 bytes\n"
    command("run", "straight.dot", "--cache")
    assert command("cache").out.startswith(".attractor/cache: 1 result, ")
    held = json.loads(command("cache", "--json").out)["held"]
    assert held["entries"] == 1
    assert json.loads(command("cache", "--clear", "--json").out)["removed"] == held
    assert command("cache").out == ".attractor/cache: 0 results, 0 bytes\n"


def test_rows_of_a_map_take_from_the_cache(command, sources):
    (sources / "rows.jsonl").write_text('{"x": 1}\n{"x": 2}\n{"x": 1}\n')
    ended = command("map", "straight.dot", "--params", "rows.jsonl", "--cache", "--max-parallel", "1", "-q")
    assert ended.code == 0
    assert json.loads(command("cache", "--json").out)["held"]["entries"] == 2, "rows with the same inputs share"
