"""The front-end's modules can be put one behind the other, and say so when they cannot."""

from __future__ import annotations

import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest

from attractor_nb.views.frontend import FOLDER, LOUD, modules_of, script, styles, widget_styles

NAMES = sorted(path.stem for path in Path(str(FOLDER)).glob("*.js"))
TOP_LEVEL = re.compile(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)
ALLOWED_IMPORT = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";$', re.MULTILINE)


def _source(name):
    return (FOLDER / f"{name}.js").read_text(encoding="utf-8")


def test_no_name_is_used_twice_at_the_top_level():
    users = defaultdict(list)
    for name in NAMES:
        for found in TOP_LEVEL.findall(_source(name)):
            users[found].append(name)
    assert {found: where for found, where in users.items() if len(where) > 1} == {}
    assert len(users) > 20


@pytest.mark.parametrize("name", NAMES)
def test_a_module_imports_only_what_its_neighbours_export(name):
    source = _source(name)
    statements = re.findall(r"^import [^;]*;$", source, re.MULTILINE)
    assert all(ALLOWED_IMPORT.match(statement) for statement in statements)
    for wanted, neighbour in re.findall(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', source, re.MULTILINE):
        exported = set(
            re.findall(r"^export (?:async )?(?:function\*?|const|class) (\w+)", _source(neighbour), re.MULTILINE)
        )
        assert {part.strip() for part in wanted.split(",") if part.strip()} <= exported


@pytest.mark.parametrize("name", NAMES)
def test_a_bundle_has_every_module_once_and_no_statement_that_only_a_module_loader_knows(name):
    text = script(name)
    assert "\nimport " not in f"\n{text}"
    assert "export " not in script(name, is_widget=False).replace("// export", "")
    for module in modules_of(name):
        first = next(line for line in _source(module).splitlines() if TOP_LEVEL.match(line))
        assert text.count(first.removeprefix("export ")) == 1


@pytest.mark.parametrize("name", NAMES)
def test_texts_become_text_and_never_markup(name):
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", _source(name))


def test_a_view_is_dressed_with_the_theme_first():
    sheet = styles("live_view")
    assert sheet.startswith(f"{LOUD} {{\n/* What all views share")
    assert sheet.index(".attractor-ui {") < sheet.index(".al-inspector {") < sheet.index(".al-stage {")


def test_all_widgets_have_one_sheet_so_that_none_undresses_another():
    folder = Path(str(FOLDER)).parents[1] / "notebook"
    modules = [
        import_module(".".join(("attractor_nb", *file.relative_to(folder.parent).with_suffix("").parts)))
        for file in folder.rglob("*.py")
        if "_css = " in file.read_text("utf-8")
    ]
    widgets = {
        made for module in modules for made in vars(module).values() if isinstance(made, type) and hasattr(made, "_css")
    }
    assert len(widgets) >= 10
    assert {widget._css for widget in widgets} == {widget_styles()}
    for part in FOLDER.iterdir():
        if part.name.endswith(".css"):
            assert re.sub(r"@keyframes.*\n", "", part.read_text("utf-8")).strip() in widget_styles()


OWN = re.compile(r"\.(?:attractor|a[a-z]|db|pr)-[a-z]|\[data-attractor-")


@pytest.mark.parametrize(
    "sheet", [file for file in FOLDER.iterdir() if file.name.endswith(".css")], ids=lambda file: file.name
)
def test_each_rule_of_a_sheet_names_a_class_of_ours(sheet):
    text = re.sub(
        r"/\*.*?\*/|@keyframes[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", sheet.read_text("utf-8"), flags=re.DOTALL
    )
    selectors = re.findall(r"(?:^|[}{;])\s*([^{}@;]+)\{", text)
    assert selectors
    parts = [part for selector in selectors for part in re.split(r",(?![^(]*\))", selector)]
    assert [part.strip() for part in parts if not OWN.search(part)] == []


def test_the_rules_of_a_view_count_for_more_than_those_of_any_host():
    """Nested in a selector that an id could be taken by; only motions, which cannot be nested, stand outside."""
    sheet = styles("live_view")
    depth, outside = 0, ""
    for char in sheet.removeprefix(LOUD):
        depth += {"{": 1, "}": -1}.get(char, 0)
        outside += char if depth == 0 else ""
    assert outside.replace("}", "").split() == ["@keyframes", "al-breathe"]
    assert "#" in LOUD


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c"), ("a",)], ids=len)
def test_modules_that_import_one_another_are_named_in_their_circle(tmp_path, names):
    for name, next_name in zip(names, [*names[1:], names[0]], strict=True):
        (tmp_path / f"{name}.js").write_text(f'import {{ x }} from "./{next_name}.js";\n')
    with pytest.raises(ValueError, match=f"import one another: {' -> '.join([*names, 'a'])}$"):
        modules_of("a", tmp_path)
