"""The family of a run: forks, restarts and rewinds, as text and as a picture."""

import pytest

from attractor_nb import lineage
from attractor_nb.errors import RunError
from attractor_nb.studio.history.lineage import Relative, lineage_svg, lineage_text, parent_of
from attractor_nb.testing import ManualClock

MAX_SHOWN = 200

LINE = "a b start -> a -> b -> done"
HOSTILE = '<script>alert(1)</script> & "quoted" \u202e'


@pytest.fixture
def family(make, tmp_path):
    """A run, two forks of it, one of which was forked and went back itself."""
    run = make(LINE).run(runs_dir=tmp_path)
    run.result(60)
    first = run.fork("a", context={"tests": 3})
    first.result(60)
    second = run.fork("b", prompt="other")
    second.result(60)
    grandchild = first.fork("b")
    grandchild.result(60)
    first.rewind("b").result(60)
    return run, first, second, grandchild


def test_the_parent_of_a_fork_is_found_beside_it_while_it_is_there(family):
    run, first, second, grandchild = family
    assert [parent_of(each) for each in (first, second, grandchild)] == [run.logs_root, run.logs_root, first.logs_root]
    assert parent_of(run) is None
    first.logs_root.rename(first.logs_root.with_name("moved"))
    assert parent_of(grandchild) is None


def test_a_fork_whose_parent_is_damaged_has_none_to_compare_with(family):
    run, first, *_ = family
    for manifest in run.logs_root.glob("manifest*"):
        manifest.unlink()
    log = run.logs_root / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"', b"'", 40))
    assert parent_of(first) is None


TREE = """\
✓ run of demo   completed, 4 stages{0}
├─ ✓ fork before a, visit 1   completed, 4 stages, changed: tests{1}
│  ├─ ↶ rewound to before b, visit 1   2 stages set aside
│  └─ ✓ fork before b, visit 1   completed, 4 stages, nothing changed{3}
└─ ✓ fork before b, visit 1   completed, 4 stages, changed: the prompt{2}"""


@pytest.mark.parametrize("which", range(4))
def test_the_tree_is_the_same_from_each_of_them(family, which):
    marks = ["   <- this one" if place == which else "" for place in range(4)]
    assert str(lineage(family[which])) == TREE.format(*marks)


def test_a_run_that_another_process_is_just_beginning_is_nobodys_parent(family, tmp_path):
    (tmp_path / "beginning").mkdir()
    (tmp_path / "beginning" / "events.jsonl").touch()
    assert str(lineage(family[0])) == TREE.format("   <- this one", "", "", "")


def test_it_needs_the_directory_alone_and_names_places_when_asked(family, tmp_path):
    found = lineage(str(family[2].logs_root), base=tmp_path)
    assert all(run.logs_root.name in found.details() for run in family)
    assert all(run.logs_root.name not in str(found) for run in family)
    assert found.to_svg().count('class="ln-box"') == 5
    assert set(found._repr_mimebundle_()) == {"text/html", "image/svg+xml", "text/plain"}


def test_restarts_and_what_a_rewind_took_back(make, tmp_path):
    def answer(node, prompt, context):
        if node.id == "b":
            seen = (tmp_path / "seen").exists()
            (tmp_path / "seen").touch()
            context.set("left", "none" if seen else "again")
        return node.id

    body = """a b start -> a -> b  b -> a [condition="context.left=again", loop_restart=true]
    b -> done [condition="context.left!=again"]"""
    run = make(body, backend=answer).run(runs_dir=tmp_path / "runs", max_restarts=3)
    run.result(60)
    assert "└─ ↻ restarted at a" in str(lineage(run))
    run.rewind("start", visit=1).result(60)
    assert "↶ restarted at a   set aside" in str(lineage(run))


def test_a_parent_that_is_gone_leaves_its_fork_as_the_oldest(family):
    import shutil

    shutil.rmtree(family[0].logs_root)
    assert str(lineage(family[1])).startswith("✓ fork before a, visit 1")


def test_forks_of_one_second_stand_in_the_order_in_which_they_began(make, tmp_path):
    clock = ManualClock(1_700_000_000.2)
    run = make(LINE).run(runs_dir=tmp_path, clock=clock)
    run.result(60)
    for node, name in (("b", "3"), ("a", "2"), ("b", "1")):  # neither by place in the parent nor by name
        clock.jump(0.1)
        run.fork(node, logs_root=tmp_path / name, context={f"fork{name}": 1}, clock=clock).result(60)
    changed = [line.rpartition("changed: ")[2] for line in str(lineage(run)).splitlines()[1:]]
    assert changed == ["fork3", "fork2", "fork1"]


def test_what_has_no_kin_is_said(tmp_path, make):
    with pytest.raises(RunError, match="holds no run"):
        lineage(tmp_path)
    run = make(LINE).run(durability="none")
    run.result(60)
    with pytest.raises(RunError):
        lineage(run)


def test_a_family_that_is_its_own_parent_has_an_end(family):
    run = family[0]
    from attractor_nb.storage.sealed_file import seal, unseal

    path = run.logs_root / "manifest.json"
    facts = unseal(path.read_bytes())
    facts["fork_of"] = {"run_id": family[3].id, "node": "a", "visit": 1, "sequence": 1}
    path.write_bytes(seal(facts))
    assert len(str(lineage(run)).splitlines()) < 1000


def test_the_picture_holds_texts_as_texts_and_ends_somewhere():
    relative = Relative(
        "run", HOSTILE, "failed", HOSTILE, below=tuple(Relative("fork", f"fork {n}") for n in range(500))
    )
    svg = lineage_svg(relative)
    assert "<script" not in svg
    assert "\u202e" not in svg
    assert svg.count('class="ln-box"') == MAX_SHOWN
    assert svg == lineage_svg(relative)
    assert lineage_text(relative).count("\n") == 500


def damage(log):
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)


def test_a_relative_that_cannot_be_read_is_passed_over(family):
    run, _, second, _ = family
    for manifest in second.logs_root.glob("manifest*"):
        manifest.unlink()
    damage(second.logs_root / "events.jsonl")
    tree = str(lineage(run))
    assert "changed: the prompt" not in tree
    assert tree.count("fork before") == 2


def test_a_base_that_is_not_there_leaves_the_run_alone(family, tmp_path):
    assert str(lineage(family[0], base=tmp_path / "nowhere")) == "✓ run of demo   completed, 4 stages   <- this one"


def test_a_damaged_log_leaves_its_run_in_the_family_without_its_turns(family):
    first = family[1]
    damage(first.logs_root / "events.jsonl")
    tree = str(lineage(family[0]))
    assert "rewound" not in tree
    assert tree.count("fork before") == 3
