"""Rules for the repository as a whole."""

import os
import shutil
import subprocess
import tomllib

import pytest

TOP_LEVEL = {
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "attractor_nb",
    "binder",
    "constraints.txt",
    "docs",
    "examples",
    "hatch_build.py",
    "notebooks",
    "pyproject.toml",
    "tests",
}
# Written in two parts: this file is searched too.
REGISTRY_HOSTS = [
    "pypi" + ".org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "npm" + "js.com",
    "yarn" + "pkg.com",
    "deb." + "debian.org",
    "anaconda" + ".org",
    "crates" + ".io",
    "proxy." + "golang.org",
    "jsdelivr" + ".net",
    "unpkg" + ".com",
]


def test_only_known_names_stand_at_the_top(repository_files):
    tops = {path.parts[0] for path in repository_files}
    assert {top for top in tops if not top.startswith(".")} <= TOP_LEVEL


@pytest.mark.parametrize("host", REGISTRY_HOSTS)
def test_no_file_names_a_package_registry(repository, repository_files, host):
    naming = [str(path) for path in repository_files if host.encode() in (repository / path).read_bytes()]
    assert naming == []


def test_no_lock_file_that_records_hosts_is_kept(repository_files):
    assert not {path.name for path in repository_files} & {"uv.lock", "poetry.lock", "package-lock.json"}


def test_every_direct_dependency_is_pinned(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    wanted = [
        *project["project"]["dependencies"],
        *(line for lines in project["project"]["optional-dependencies"].values() for line in lines),
        *(line for name in ("test", "lint") for line in groups[name]),
    ]
    pinned = {line.split("==")[0] for line in (repository / "constraints.txt").read_text().splitlines()}
    assert {line.split(">=")[0].split("[")[0] for line in wanted} <= pinned


def test_the_demo_in_the_wheel_is_the_example(repository):
    packaged = repository / "attractor_nb" / "cli" / "demo.dot"
    assert packaged.read_text() == (repository / "examples" / "demo.dot").read_text()


def test_a_machine_without_python_gets_a_clear_message(repository, tmp_path):
    done = subprocess.run(
        ["/bin/sh", str(repository / ".ci" / "find-python")],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("No Python 3.11 or newer was found")


def test_a_machine_without_apt_is_told_what_the_tests_need(repository, tmp_path):
    (tmp_path / "dirname").symlink_to(shutil.which("dirname"))
    done = subprocess.run(
        ["/bin/sh", str(repository / ".ci" / "system-packages")],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    missing = [line.split(";")[0] for line in done.stderr.splitlines()]
    assert missing == ['"dot" is missing', '"cc" is missing', '"strace" is missing', '"chromium" is missing']


@pytest.mark.parametrize(
    "script",
    [
        *("apt-install", "each-part", "find-python", "install", "make-venv", "part", "run", "run-tests"),
        *("system-packages", "test-all", "test-lowest", "test-versions", "tree-hash"),
    ],
)
def test_scripts_are_executable(repository, script):
    assert os.access(repository / ".ci" / script, os.X_OK)


def test_the_parts_after_one_that_fails_are_made_and_the_summary_names_both(repository, tmp_path):
    (tmp_path / "Makefile").write_text("good:\n\t@echo made\nbad:\n\t@false\n")
    done = subprocess.run(
        [repository / ".ci" / "each-part", "make", "good", "bad", "good"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stdout.count("made") == 2
    parts = [line.split()[:2] for line in done.stdout.partition("== summary\n")[2].splitlines()]
    assert parts == [["good", "passed"], ["bad", "FAILED"], ["good", "passed"]]


@pytest.fixture
def checkout(repository, tmp_path):
    """A git checkout with the scripts of the campaign and two parts, `good` and `bad`; `bad` passes once `mended` is there."""
    scripts = tmp_path / ".ci"
    scripts.mkdir()
    for name in ("part", "test-all", "tree-hash"):
        shutil.copy(repository / ".ci" / name, scripts)
    (tmp_path / ".gitignore").write_text("passed/\nmade\n")
    (tmp_path / "Makefile").write_text(
        "good:\n\t@echo good >>made\nbad:\n\t@echo bad >>made; test -e mended.ok\n"
        "passed/%:\n\t@.ci/part make $(notdir $@) $@\n"
    )
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def campaign(checkout, *parts, **variables):
    command = [".ci/test-all", "make", "passed", *parts]
    done = subprocess.run(command, cwd=checkout, env={**os.environ, **variables}, capture_output=True, text=True)
    return done.returncode, done.stdout, sorted((checkout / "made").read_text().split())


def test_the_campaign_goes_on_with_the_parts_that_have_not_passed_on_the_same_tree(checkout):
    code, said, made = campaign(checkout, "good", "bad")
    assert (code != 0, made) == (True, ["bad", "good"])
    assert said.splitlines()[-1] == "== not passed: bad"
    code, said, made = campaign(checkout, "good", "bad")
    assert (code != 0, made) == (True, ["bad", "bad", "good"])
    assert "== good passed before on this tree" in said


def test_a_changed_file_makes_every_part_of_the_campaign_run_again(checkout):
    campaign(checkout, "good")
    (checkout / "mended.ok").touch()  # git does not track it yet
    code, said, made = campaign(checkout, "good", "bad")
    assert (code, made) == (0, ["bad", "good", "good"])
    assert "all 2 parts passed" in said.splitlines()[-1]


def test_fresh_runs_the_campaign_from_the_start(checkout):
    campaign(checkout, "good")
    assert campaign(checkout, "good", FRESH="1")[2] == ["good", "good"]


def test_a_dry_run_of_the_campaign_marks_no_part_as_passed(checkout):
    subprocess.run(["make", "-n", "passed/tree/good"], cwd=checkout, check=True, capture_output=True)
    assert not (checkout / "passed").exists()


@pytest.fixture
def on_pythons_of_the_future(repository, tmp_path):
    """Runs a script on the Pythons of a project that names only some that no machine has."""
    classifiers = [f'"Programming Language :: Python :: {version}",\n' for version in ("3.98", "3.99")]
    (tmp_path / "pyproject.toml").write_text("".join(classifiers))

    def run(script):
        command = [repository / ".ci" / script, tmp_path / "environments", "2", "tests"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return run


NO_PYTHON = "This machine has none of the Pythons that pyproject.toml names: 3.98 3.99\n"


def test_versions_that_a_machine_lacks_are_named(on_pythons_of_the_future):
    done = on_pythons_of_the_future("test-versions")
    verdict = "not run: this machine does not have it"
    assert (done.returncode, done.stderr) == (0, NO_PYTHON)
    assert done.stdout == f"== summary\nPython 3.98  {verdict}\nPython 3.99  {verdict}\n"


def test_the_oldest_packages_are_not_tested_on_a_python_that_the_project_does_not_name(on_pythons_of_the_future):
    done = on_pythons_of_the_future("test-lowest")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", NO_PYTHON)


def test_ci_gives_the_tests_nothing_that_a_stranger_does_not_have(repository):
    script = (repository / ".ci" / "run").read_text()
    assert "export" not in script
    made = [
        line
        for line in script.splitlines()
        if "make " in line and not line.lstrip().startswith("#") and "apt-install" not in line
    ]
    assert len(made) == 4
    assert all("stranger make " in line for line in made)
