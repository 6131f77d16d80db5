"""The front-end's modules can be put one behind the other, and say so when they cannot."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest
from markupsafe import Markup

from attractor_nb.server.page import FOLDER as SERVER_FOLDER
from attractor_nb.views.frontend import FOLDER, LOUD, modules_of, page, script, styles, table_page, widget_styles

NAMES = sorted(path.stem for path in Path(str(FOLDER)).glob("*.js"))
TOP_LEVEL = re.compile(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)
SERVED = sorted(path.stem for path in Path(str(SERVER_FOLDER)).glob("*.js"))
ALLOWED_IMPORT = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";$', re.MULTILINE)


def _source(name):
    return (FOLDER / f"{name}.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def parse(tmp_path_factory):
    """Parses scripts, by their names, as one browser would; returns what is wrong with them."""
    parser = shutil.which("oxlint", path=str(Path(sys.executable).parent))
    if parser is None:
        pytest.skip("a parser of JavaScript comes with the extra lint")

    def parse_(scripts):
        folder = tmp_path_factory.mktemp("bundles")
        for name, text in scripts.items():
            (folder / f"{name}.js").write_text(text, encoding="utf-8")
        found = subprocess.run([parser, "--allow", "all", "."], cwd=folder, capture_output=True, text=True, check=False)
        assert f"on {len(scripts)} file" in found.stdout, found.stdout + found.stderr
        return "" if found.returncode == 0 else found.stdout

    return parse_


def _script_of(html):
    return re.search(r'<script type="module">(.*?)</script>', html, re.DOTALL)[1]


def test_every_bundle_parses(parse):
    """Also names that are taken apart from an object collide, and those of the page's own last lines."""
    scripts = {f"{name}-widget": script(name) for name in NAMES}
    scripts |= {f"{name}-page": script(name, is_widget=False) for name in NAMES}
    scripts |= {f"{name}-served": script(name, is_widget=False, beside=SERVER_FOLDER) for name in SERVED}
    scripts |= {
        entry: _script_of(page("A page", "", entry, call, {}, Markup("")))
        for entry, call in (("replay", "showReplay"), ("compare", "showCompare"))
    }
    scripts["rows"] = _script_of(table_page("A page", "", Markup("")))
    assert parse(scripts) == ""


COLLISIONS = {
    "a function and a constant": ("function taken() {}", "const taken = 1;"),
    "taken apart": ("const { taken } = globalThis;", "const [taken] = [1];"),
    "renamed": ("let { other: taken } = globalThis;", "class taken {}"),
}


@pytest.mark.parametrize(("first", "second"), COLLISIONS.values(), ids=COLLISIONS)
def test_a_name_of_two_modules_of_a_bundle_is_found(parse, tmp_path, first, second):
    (tmp_path / "one.js").write_text(f"{first}\nexport const first = 1;\n")
    (tmp_path / "two.js").write_text(f'import {{ first }} from "./one.js";\n{second}\nexport const last = first;\n')
    assert "`taken` has already been declared" in parse({"bundle": script("two", is_widget=False, beside=tmp_path)})


@pytest.mark.parametrize(
    "default",
    ["asWidget(show);", "asWidget((el) => { show(el); });", "asWidget((el) => {\n  show(el);\n  show(el);\n});"],
    ids=["one line", "a body in one line", "a body of some lines"],
)
def test_a_default_export_is_left_out_as_a_whole(parse, tmp_path, default):
    text = f"const asWidget = (call) => call;\nconst show = (el) => el;\n\nexport default {default}\n\nconst last = show(1);\n"
    (tmp_path / "one.js").write_text(text + "show(last);\n")
    bundle = script("one", is_widget=False, beside=tmp_path)
    assert parse({"bundle": bundle}) == ""
    assert "asWidget(" not in bundle
    assert "export" not in bundle
    assert bundle.endswith("\nconst last = show(1);\nshow(last);\n")


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


OWN = re.compile(r"\.(?:attractor|a[a-z]|db|pr|sp)-[a-z]|\[data-attractor-")


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
