"""Records are read with their types checked, from several threads too."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from attractor_nb.model.record import Record, encode

READERS = """
import sys, threading
from attractor_nb.model.record import Record
sys.setswitchinterval(1e-6)

def read(kind, plain, begin, read_ones):
    begin.wait()
    read_ones.append(kind.from_plain(plain))

for number in range(150):
    names = {"Record": Record}
    exec("class Inner(Record, frozen=True):\\n" + "".join(f"    f{n}: int | None = None\\n" for n in range(30)), names)
    exec("class Outer(Record, frozen=True):\\n    inner: Inner\\n    more: tuple[Inner, ...] = ()\\n", names)
    begin, read_ones = threading.Barrier(4), []
    cases = [(names["Outer"], {"inner": {"f1": 1}, "more": [{"f2": 2}]}), (names["Inner"], {"f1": 1})] * 2
    threads = [threading.Thread(target=read, args=(*case, begin, read_ones)) for case in cases]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(read_ones) == 4, read_ones
print("read")
"""


def test_several_threads_that_read_the_first_record_of_a_kind_all_read_it():
    done = subprocess.run([sys.executable, "-c", READERS], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "read\n", "")


class Kept(Record, frozen=True):
    """A record that holds anything."""

    value: Any


@pytest.mark.parametrize("write", [Kept.to_plain, encode], ids=["plain", "json"])
def test_what_has_no_form_in_json_is_said_by_its_type(write):
    with pytest.raises(TypeError, match="a value of type complex has no form in JSON"):
        write(Kept({"number": 1j}))
