"""Writes the options into the signatures that have them: names, types and defaults of the fields of
``RunOptions``, ``MapOptions`` and ``Definition``, meanings of ``model/vocabulary/option_meanings.py``.

    python tests/docs/signatures.py

What a method has beside the options stays as it is. A test (tests/pipeline/test_signatures.py) compares.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from attractor_nb.maps.map_options import NOT_OF_A_ROW, MapOptions
from attractor_nb.model.vocabulary.option_meanings import OF_A_MAP, OF_A_PIPELINE, OF_A_RUN
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import BOUNDS, RunOptions

PACKAGE = Path(__file__).resolve().parents[2] / "attractor_nb"
WIDTH = 120
TAIL = "unknown"
TAIL_MEANING = "Any other keyword: an error that names the nearest option."


@dataclass(frozen=True)
class Option:
    annotation: str
    default: str
    meaning: str


def of_fields(options, meanings):
    found = {}
    for entry in dataclasses.fields(options):
        default, annotation = repr(entry.default), str(entry.type)
        if entry.default is dataclasses.MISSING:
            default, annotation = "None", f"{annotation} | None"
        found[entry.name] = Option(annotation, default.replace("'", '"'), meanings[entry.name])
    return found


def of_the_constructor():
    parameters = inspect.signature(Definition).parameters
    return {
        name: Option(parameters[name].annotation, repr(parameters[name].default), meaning)
        for name, meaning in OF_A_PIPELINE.items()
    }


RUN = of_fields(RunOptions, OF_A_RUN)
MAP = of_fields(MapOptions, OF_A_MAP) | {
    name: option for name, option in RUN.items() if name not in {"params", "session", *NOT_OF_A_ROW}
}
PIPELINE = of_the_constructor()


@dataclass(frozen=True)
class Target:
    """A method or function, and which options it has with which defaults of its own."""

    path: str
    options: dict[str, Option]
    without: frozenset[str] = frozenset()
    defaults: dict[str, str] = field(default_factory=dict)

    @property
    def own_options(self) -> dict[str, Option]:
        return {
            name: dataclasses.replace(option, **self._of_its_own(name, option))
            for name, option in self.options.items()
            if name not in self.without
        }

    def _of_its_own(self, name, option):
        default = self.defaults.get(name, self.defaults.get("*", option.default))
        if default == "None" and not option.annotation.endswith(
            ("None", "Any", "BackendSpec", "ExecutorSpec", "InterviewerSpec")
        ):
            return {"default": default, "annotation": f"{option.annotation} | None"}
        return {"default": default}


INPUTS = frozenset({"params"})
TARGETS = {
    "Starting.run": Target("pipeline/methods/start_run.py", RUN),
    "Starting.run_async": Target("pipeline/methods/start_run.py", RUN, defaults={"host": '"kernel"'}),
    "Trying.check": Target(
        "pipeline/methods/try_out.py", RUN, frozenset({"cassette"}), {"durability": '"none"', "is_shown": "False"}
    ),
    "Trying.step": Target("pipeline/methods/try_out.py", RUN, frozenset({"stop_after"}), {"*": "None"}),
    "FillingIn.form": Target("pipeline/methods/fill_in_form.py", RUN, INPUTS),
    "ResumingDirectory.resume": Target("pipeline/methods/resume_directory.py", RUN, INPUTS),
    "OverRows.map": Target("pipeline/methods/over_rows.py", MAP),
    "OverRows.map_async": Target("pipeline/methods/over_rows.py", MAP, defaults={"host": '"kernel"'}),
    "ResumingMap.resume_map": Target("pipeline/methods/resume_map.py", MAP, frozenset({"map_dir"})),
    "ResumingRun.resume": Target("pipeline/methods/resume_run.py", RUN, INPUTS),
    "ResumingRun.rewind": Target("pipeline/methods/resume_run.py", RUN, INPUTS),
    "Forking.fork": Target("pipeline/methods/fork_run.py", RUN, INPUTS),
    "Rerunning.rerun": Target(
        "studio/debug/rerun.py", RUN, INPUTS | {"stop_after", "breakpoints", "host"}, {"is_shown": "False"}
    ),
    "Resumable.resume": Target("pipeline/methods/resume_row.py", RUN, INPUTS),
    "run_pipeline": Target("pipeline/spec_names.py", RUN),
    "load_pipeline": Target("pipeline/load_pipeline.py", PIPELINE, frozenset({"origin", "ancestry"})),
    "Definition.__init__": Target("runtime/definition.py", PIPELINE),
    "Previewing.estimate": Target("pipeline/preview.py", {name: RUN[name] for name in BOUNDS}),
}
KEYWORDS = {
    "RunKeywords": ("TypedDict", RUN, "``Pipeline.run``"),
    "ResumeMapKeywords": (
        "TypedDict",
        {name: option for name, option in MAP.items() if name != "map_dir"},
        "``Pipeline.resume_map``",
    ),
    "MapKeywords": ("ResumeMapKeywords", {"map_dir": MAP["map_dir"]}, "``Pipeline.map``"),
}


def find(tree, name):
    *owners, last = name.split(".")
    for owner in owners:
        tree = next(each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == owner)
    return [
        each for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == last
    ][-1]


def written_signature(node, target):
    """The parameters: those of its own as they are, then the options, then what catches the rest."""
    options, arguments = target.own_options, node.args
    own = [argument for argument in arguments.kwonlyargs if argument.arg not in options]
    defaults = dict(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    first = ast.arguments([], arguments.args, None, [], [], None, arguments.defaults)
    parts = [ast.unparse(first), "*"]
    parts += [f"{ast.unparse(each)} = {ast.unparse(defaults[each])}" for each in own]
    parts += [f"{name}: {option.annotation} = {option.default}" for name, option in options.items()]
    parts += [f"**{TAIL}: Never"]
    keyword = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    return f"{keyword} {node.name}({', '.join(parts)},) -> {ast.unparse(node.returns)}:"


def entry(name, meaning, indent):
    return textwrap.wrap(
        f"{name}: {meaning}",
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def written_docstring(lines, target, indent):
    """The lines of a docstring with an Args section that has the options at its end."""
    if not any(line.strip() == "Args:" for line in lines):
        at = next((n for n, line in enumerate(lines) if line.strip() == "Raises:"), None)
        if at is None:
            whole = len(lines) == 1
            lines = [lines[0].removesuffix('"""'), indent + '"""'] if whole else lines
            lines = [*lines[:-1], "", f"{indent}Args:", lines[-1]]
        else:
            lines = [*lines[:at], f"{indent}Args:", "", *lines[at:]]
    begin = next(n for n, line in enumerate(lines) if line.strip() == "Args:") + 1
    end = next(n for n, line in enumerate(lines[begin:], begin) if not line.strip() or line.strip() == '"""')
    inner, kept, is_kept = f"{indent}    ", [], False
    for line in lines[begin:end]:
        if line.startswith(inner) and line[len(inner)] != " ":
            name = line.strip().partition(":")[0]
            is_kept = name not in target.own_options and not name.startswith("**")
        if is_kept:
            kept.append(line)
    for name, option in target.own_options.items():
        kept += entry(name, option.meaning, inner)
    kept += entry(f"**{TAIL}", TAIL_MEANING, inner)
    return [*lines[:begin], *kept, *lines[end:]]


def written(source, name, target):
    node = find(ast.parse(source), name)
    lines, docstring = source.splitlines(), node.body[0]
    indent = " " * docstring.col_offset
    begin, end = docstring.lineno - 1, docstring.end_lineno
    told = written_docstring(lines[begin:end], target, indent)
    signature = " " * node.col_offset + written_signature(node, target)
    return "\n".join([*lines[: node.lineno - 1], signature, *told, *lines[end:]]) + "\n"


def written_keywords(source):
    head = source.split("class RunKeywords")[0].rstrip()
    parts = [head]
    for name, (base, options, what) in KEYWORDS.items():
        fields = [f"    {option}: {options[option].annotation}" for option in options]
        parts.append(f'class {name}({base}, total=False):\n    """Options of {what}."""\n\n' + "\n".join(fields))
    return "\n\n\n".join(parts) + "\n"


def formatted(source):
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PACKAGE / "any.py"), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def sources():
    """The modules with their signatures written anew, by path."""
    found = {target.path: (PACKAGE / target.path).read_text("utf-8") for target in TARGETS.values()}
    for name, target in TARGETS.items():
        found[target.path] = written(found[target.path], name, target)
    place = "pipeline/methods/keywords.py"
    found[place] = written_keywords((PACKAGE / place).read_text("utf-8"))
    return {PACKAGE / path: formatted(source) for path, source in found.items()}


if __name__ == "__main__":
    for path, source in sources().items():
        path.write_text(source, "utf-8")
