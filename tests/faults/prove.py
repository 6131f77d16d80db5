"""Proves that the tests of this folder protect what they say: without its line each of them fails.

Usage: python tests/faults/prove.py [-k WORDS] [--jobs N] [--minutes N] [--fresh]

A test names its line by ``@pytest.mark.protects(path, snippet, instead=…)``. For each such mark a copy of
the package is made in which the snippet is replaced, and the test is run against the copy. It must fail;
unchanged it must pass. More than one mark: the test must fail without each of them.

The whole takes two hours, so proofs are kept: ``proved.txt`` has the digest of each claim that was proved, of its test's
file and of its module. A claim whose digest is there is not proved again, unless ``--fresh``.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
SECONDS_PER_TEST = 600
PROVED = HERE / "proved.txt"


@dataclass(frozen=True, slots=True)
class Claim:
    """A test, and a snippet without which it fails."""

    test: str
    path: str
    snippet: str
    instead: str

    def __str__(self) -> str:
        first = textwrap.shorten(self.snippet, 60, placeholder=" …")
        return f"{self.test.removeprefix('tests/faults/')} without {self.path}: {first}"

    @property
    def digest(self) -> str:
        """Of what a proof depends on in the first place: the claim, its test's file, its module."""
        files = (self.test.partition("::")[0], self.path)
        texts = [self.test, self.path, self.snippet, self.instead, *((REPOSITORY / each).read_text() for each in files)]
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


class _Collector:
    def __init__(self) -> None:
        self.claims: dict[Claim, None] = {}
        self.unmarked: dict[str, None] = {}

    @pytest.hookimpl(trylast=True)  # after those that -k leaves out are gone
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            test = item.nodeid.partition("[")[0]
            marks = list(item.iter_markers("protects"))
            for mark in marks:
                path, snippet = mark.args
                self.claims[Claim(test, path, snippet, mark.kwargs.get("instead", "pass"))] = None
            if not marks:
                self.unmarked[test] = None


def collect(words: str) -> _Collector:
    """The claims of all tests of this folder."""
    collector = _Collector()
    arguments = [str(HERE), "--collect-only", "-p", "no:cacheprovider", "-p", "no:randomly"]
    if words:
        arguments += ["-k", words]
    with contextlib.redirect_stdout(io.StringIO()):  # drops the list of tests
        code = pytest.main(arguments, plugins=[collector])
    if code not in (0, 5):
        sys.exit(f"the tests cannot be collected (pytest says {code})")
    return collector


def mutated_copy(claim: Claim, place: Path) -> None:
    """A copy of the package without the snippet."""
    shutil.copytree(REPOSITORY / "attractor_nb", place / "attractor_nb")  # with bytecode: only what changes is compiled
    path = place / claim.path
    text = path.read_text(encoding="utf-8")
    if text.count(claim.snippet) != 1:
        sys.exit(f"{claim.path} has the snippet {text.count(claim.snippet)} times, not once:\n{claim.snippet}")
    path.write_text(text.replace(claim.snippet, claim.instead), encoding="utf-8")


def run(test: str, package: Path) -> subprocess.CompletedProcess[str]:
    """Run a test against a copy of the package."""
    # The copy first; the repository is there for `tests`, which tests import from one another.
    path = os.pathsep.join((str(package), str(REPOSITORY)))
    environment = {**os.environ, "PYTHONPATH": path, "ATTRACTOR_PROVED_PACKAGE": str(package)}
    command = [sys.executable, "-P", "-m", "pytest", test, "-x", "-q", "-n0", "-p", "no:cacheprovider", "--no-header"]
    return subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS_PER_TEST
    )


def prove(claim: Claim) -> tuple[bool, str]:
    """True if the test of a claim fails without its snippet, and the output of pytest."""
    with tempfile.TemporaryDirectory(prefix="attractor-prove-") as folder:
        mutated_copy(claim, Path(folder))
        try:
            ended = run(claim.test, Path(folder))
        except subprocess.TimeoutExpired:
            return True, ""
        return ended.returncode == 1, ended.stdout


def main() -> int:
    """Prove all claims; the number of those that do not hold, at most 1 as an exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-k", default="", metavar="WORDS", help="only tests whose name has them, as of pytest")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="claims to prove at the same time")
    parser.add_argument("--minutes", type=float, default=1e9, metavar="N", help="begin no proof after so long")
    parser.add_argument("--fresh", action="store_true", help="prove those that are proved, too")
    given = parser.parse_args()
    found = collect(given.k)
    compileall.compile_dir(REPOSITORY / "attractor_nb", quiet=1)
    proved = set() if given.fresh or not PROVED.exists() else set(PROVED.read_text().split())
    digests = {claim: claim.digest for claim in found.claims}
    open_claims = [claim for claim, digest in digests.items() if digest not in proved]
    give_up = time.monotonic() + given.minutes * 60
    broken = left = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        proofs = pool.map(lambda claim: prove(claim) if time.monotonic() < give_up else None, open_claims)
        for claim, proof in zip(open_claims, proofs, strict=True):
            if proof is None:
                left += 1
                continue
            has_failed, output = proof
            print(f"{'fails' if has_failed else 'DOES NOT FAIL':14} {claim}", flush=True)
            if has_failed:
                proved.add(digests[claim])
                kept = proved if given.k else proved & set(digests.values())
                PROVED.write_text("".join(f"{each}\n" for each in sorted(kept)))
            else:
                broken += 1
                print(textwrap.indent(output[-2000:], "    "))
    for test in found.unmarked:
        print(f"{'NO CLAIM':14} {test.removeprefix('tests/faults/')}")
    print(
        f"{len(digests) - broken - left} of {len(digests)} claims hold, {len(digests) - len(open_claims)} of them proved "
        f"before; {left} are not proved; {len(found.unmarked)} tests make none"
    )
    return min(broken + left, 1)


if __name__ == "__main__":
    sys.exit(main())
