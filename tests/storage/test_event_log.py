"""The log: what returned is in it, what raised is not, and damage is told from an unfinished end."""

import contextlib
import errno
import gc
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.errors import CheckpointCorrupt, StorageError
from attractor_nb.gc_pause import SMALL_TEXT
from attractor_nb.model.events import InterviewStarted, RunWarning, StageCompleted
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.log import event_log
from attractor_nb.storage.log.event_lines import decode_line, encode_event, scan_lines
from attractor_nb.storage.log.event_log import EventLog, read_log
from tests.disks.faulty_disk import FaultyDisk


@pytest.fixture
def home(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def open_log(home, tmp_path):
    logs = []

    def make(disk=None, durability="fast"):
        log = EventLog(disk or Disk(), home, tmp_path, durability)
        logs.append(log)
        return log

    yield make
    for log in logs:
        if log._descriptor >= 0:
            log.close()


@pytest.fixture
def written(open_log, event_of, tmp_path):
    """The bytes of a log of six records."""
    log = open_log()
    for number in range(1, 7):
        log.append(event_of(number), is_synced=False)
    log.close()
    return (tmp_path / "events.jsonl").read_bytes()


@pytest.mark.parametrize("durability", ["fast", "full"])
def test_appended_events_read_back_in_order_and_equal(open_log, event_of, tmp_path, durability):
    log = open_log(durability=durability)
    events = [event_of(number) for number in range(1, 30)]
    for event in events:
        log.append(event, is_synced=event.sequence % 3 == 0)
    assert list(read_log(tmp_path).events) == events
    log.close()
    scan = read_log(tmp_path)
    assert list(scan.events) == events
    assert (scan.sequence, scan.offset) == (29, (tmp_path / "events.jsonl").stat().st_size)


@given(
    notes=st.text(),
    reason=st.text(),
    duration=st.floats(0, 1e9),
    values=st.dictionaries(
        st.text(min_size=1),
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**64 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
    ),
    usage=st.none()
    | st.builds(Usage, st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0.01, 99), st.integers(0, 9)),
)
def test_a_commit_survives_its_line_whatever_it_says(notes, reason, duration, values, usage):
    event = StageCompleted(
        sequence=1,
        name="plan",
        duration=duration,
        outcome=Outcome(StageStatus.FAIL, notes=notes, failure_reason=reason, usage=usage),
        context=values,
        logs=(notes,),
        edge=0,
    )
    line = encode_event(event)
    assert line.count(b"\n") == 1
    assert decode_line(line[:-1]) == event


def test_a_lone_surrogate_does_not_stop_the_log():
    event = RunWarning(sequence=1, message="half of a pair: \ud83d")
    assert decode_line(encode_event(event)[:-1]) == event


def test_a_question_survives_its_line():
    event = InterviewStarted(
        sequence=1, question="Ship?", stage="gate", options=(("Y", "Yes"), ("N", "No")), deadline=5.5
    )
    assert decode_line(encode_event(event)[:-1]) == event


def test_a_sealed_line_that_is_no_event_is_damage():
    line = encode_event(RunWarning(sequence=1, message="x")).replace(b"RunWarning", b"RunSurprise")[:-1]
    assert decode_line(line) is None


def test_the_log_can_be_read_from_an_offset_on(open_log, event_of, tmp_path):
    log = open_log()
    for number in range(1, 5):
        log.append(event_of(number), is_synced=False)
    offset = log.offset
    log.append(event_of(5), is_synced=False)
    tail = read_log(tmp_path, offset=offset, sequence=4)
    assert tail.events == (event_of(5),)
    assert tail.ends == (log.offset,)


def test_every_flipped_byte_of_the_log_is_noticed(written):
    whole = scan_lines(written, path="events.jsonl")
    for place in range(len(written)):
        for flip in (0x01, 0x80, written[place]):
            damaged = bytearray(written)
            damaged[place] ^= flip
            try:
                found = scan_lines(bytes(damaged), path="events.jsonl")
            except CheckpointCorrupt:
                continue
            # Only the very end can look as if it had never been finished; that is noticed as well.
            assert found.cut_bytes or found.is_line_end_missing, (place, flip)
            assert found.events == whole.events[: len(found.events)]
            assert len(found.events) >= 5


def test_every_truncation_of_the_log_gives_whole_records_and_tells_what_was_cut(written):
    whole = scan_lines(written, path="events.jsonl")
    for length in range(len(written)):
        found = scan_lines(written[:length], path="events.jsonl")
        assert found.events == whole.events[: len(found.events)]
        assert found.offset + found.cut_bytes == length
    assert len(found.events) == 6
    assert found.is_line_end_missing


def test_a_torn_last_record_is_cut_off_and_the_log_goes_on(written, open_log, event_of, tmp_path):
    (tmp_path / "events.jsonl").write_bytes(written[:-9])
    log = open_log()
    assert (log.sequence, log.scan.cut_bytes > 0) == (5, True)
    log.append(event_of(6), is_synced=True)
    assert read_log(tmp_path).events == scan_lines(written, path="events.jsonl").events
    assert read_log(tmp_path).cut_bytes == 0


def test_a_record_that_lacks_its_line_end_alone_is_kept(written, open_log, event_of, tmp_path):
    (tmp_path / "events.jsonl").write_bytes(written[:-1])
    log = open_log()
    log.append(event_of(7), is_synced=False)
    assert [event.sequence for event in read_log(tmp_path).events] == [1, 2, 3, 4, 5, 6, 7]


def test_damage_in_the_middle_names_the_line_and_what_is_intact(written):
    damaged = written.replace(b'"sequence":4', b'"sequence":9')
    with pytest.raises(CheckpointCorrupt) as caught:
        scan_lines(damaged, path="events.jsonl")
    place = len(b"".join(written.splitlines(keepends=True)[:3]))
    words = f"the record in line 4 (byte {place}) does not match its checksum; records 1 to 3 are intact"
    assert words in str(caught.value)
    assert "doctor" in caught.value.hint


def test_a_missing_record_is_noticed(written):
    lines = written.splitlines(keepends=True)
    with pytest.raises(CheckpointCorrupt, match="has number 3 where 2 was expected"):
        scan_lines(b"".join([lines[0], *lines[2:]]), path="events.jsonl")


def test_a_repeated_last_record_is_noticed_even_without_its_line_end(written):
    last = written.splitlines()[-1]
    with pytest.raises(CheckpointCorrupt, match="out of order"):
        scan_lines(written + last, path="events.jsonl")


def test_junk_behind_the_last_record_is_noticed(written):
    with pytest.raises(CheckpointCorrupt, match="does not end where it should"):
        scan_lines(written[:-1] + b"!", path="events.jsonl")


def test_free_space_behind_the_records_is_no_damage(written):
    found = scan_lines(written + bytes(4096), path="events.jsonl")
    assert (found.sequence, found.cut_bytes) == (6, 0)


def test_a_sector_that_a_power_loss_took_away_ends_the_log_before_it(written, event_of):
    hole = bytes(512 - len(written) % 512)
    found = scan_lines(written + hole + b'"}\n' + encode_event(event_of(8)), path="events.jsonl")
    assert (found.sequence, found.offset) == (6, len(written))
    assert found.cut_bytes


def test_damage_in_the_first_record_leaves_nothing_intact(written):
    with pytest.raises(CheckpointCorrupt, match="no record before it is intact"):
        scan_lines(b"x" + written, path="events.jsonl")


def test_an_event_out_of_turn_is_refused(open_log, event_of):
    log = open_log()
    with pytest.raises(StorageError, match="event 2 does not follow event 0"):
        log.append(event_of(2), is_synced=False)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("durability", ["fast", "full"])
def test_a_write_that_fails_is_not_in_the_log_and_the_next_one_is(tmp_path, open_log, event_of, durability, error):
    log = open_log(durability=durability)
    log.append(event_of(1), is_synced=True)
    before = log.offset
    disk = log._disk = FaultyDisk(fail_at=1, error=error)
    with pytest.raises(StorageError, match=r"cannot write .*events\.jsonl"):
        log.append(event_of(2), is_synced=True)
    assert (log.sequence, log.offset) == (1, before)
    assert [event.sequence for event in read_log(tmp_path).events] == [1]
    log.append(event_of(2), is_synced=True)
    assert [event.sequence for event in read_log(tmp_path).events] == [1, 2]
    assert disk.operations


def test_a_flush_that_fails_takes_back_what_was_not_flushed_and_ends_the_log(tmp_path, open_log, event_of):
    log = open_log(durability="full")
    log.append(event_of(1), is_synced=True)
    log.append(event_of(2), is_synced=False)
    log._disk = FaultyDisk(fail_at=2)  # 1 is the write, 2 the flush
    with pytest.raises(StorageError, match="cannot flush"):
        log.append(event_of(3), is_synced=True)
    assert [event.sequence for event in read_log(tmp_path).events] == [1]
    with pytest.raises(StorageError, match="takes nothing more"):
        log.append(event_of(3), is_synced=True)


def test_a_log_that_cannot_take_back_a_failed_write_takes_nothing_more(open_log, event_of):
    log = open_log()
    log.append(event_of(1), is_synced=False)
    log._disk = FaultyDisk(fail_at=1, lasts=2)
    with pytest.raises(StorageError):
        log.append(event_of(2), is_synced=False)
    with pytest.raises(StorageError, match="takes nothing more"):
        log.append(event_of(2), is_synced=False)


def test_an_interrupt_in_the_middle_of_an_append_leaves_no_half_record(tmp_path, open_log, event_of):
    class Interrupted(Disk):
        def write(self, descriptor, data):
            os.write(descriptor, data[:7])
            raise KeyboardInterrupt

    log = open_log()
    log.append(event_of(1), is_synced=False)
    log._disk = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        log.append(event_of(2), is_synced=False)
    log._disk = Disk()
    log.append(event_of(2), is_synced=False)
    assert [event.sequence for event in read_log(tmp_path).events] == [1, 2]


def test_a_short_write_is_finished(tmp_path, open_log, event_of):
    class Short(Disk):
        def write(self, descriptor, data):
            return os.write(descriptor, data[:11])

    log = open_log(Short())
    log.append(event_of(1), is_synced=False)
    assert read_log(tmp_path).events == (event_of(1),)


def test_a_full_log_flushes_synced_events_only_and_rarely_grows(tmp_path, open_log, event_of):
    disk = FaultyDisk()
    log = open_log(disk, durability="full")
    for number in range(1, 101):
        log.append(event_of(number), is_synced=number % 10 == 0)
    counts = [operation for operation, _ in disk.operations]
    assert counts.count("sync_data") == 10
    assert counts.count("write_at") == 1
    assert (tmp_path / "events.jsonl").stat().st_size > log.offset
    log.close()
    assert (tmp_path / "events.jsonl").stat().st_size == log.offset


def test_a_full_log_grows_when_its_space_is_used_up(tmp_path, open_log):
    log = open_log(durability="full")
    for number in range(1, 11):
        log.append(RunWarning(sequence=number, message="x" * 20_000), is_synced=False)
    log.sync()
    log.sync()
    log.close()
    assert len(read_log(tmp_path).events) == 10


def test_a_closed_log_takes_nothing_more(open_log, event_of):
    log = open_log()
    log.close()
    with pytest.raises(StorageError, match="closed"):
        log.append(event_of(1), is_synced=False)


@pytest.mark.parametrize("plant", ["link", "fifo"])
def test_a_planted_log_is_refused(tmp_path, open_log, plant):
    place = tmp_path / "events.jsonl"
    place.symlink_to(tmp_path / "elsewhere") if plant == "link" else os.mkfifo(place)
    with pytest.raises(StorageError, match="cannot open"):
        open_log()
    assert not (tmp_path / "elsewhere").exists()


def test_a_fault_while_mending_the_end_is_a_storage_error(written, open_log, tmp_path):
    (tmp_path / "events.jsonl").write_bytes(written[:-5])
    with pytest.raises(StorageError, match="cannot open"):
        open_log(FaultyDisk(fail_at=2))
    assert (tmp_path / "events.jsonl").read_bytes() == written[:-5]


def test_reading_a_run_without_a_log_gives_no_events():
    assert read_log(Path.cwd()).events == ()


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_long_log_is_read_with_the_collector_paused_and_it_wakes_up_again(
    is_damaged, tmp_path, event_of, monkeypatch
):
    lines = [encode_event(event_of(number)) for number in range(1, 200)]
    data = b"".join(lines)
    assert len(data) > SMALL_TEXT
    (tmp_path / "events.jsonl").write_bytes(data.replace(b"1", b"7", 1) if is_damaged else data)
    seen = []

    def scan(*args, **options):
        seen.append(gc.isenabled())
        return scan_lines(*args, **options)

    monkeypatch.setattr(event_log, "scan_lines", scan)
    with pytest.raises(CheckpointCorrupt) if is_damaged else contextlib.nullcontext():
        read_log(tmp_path)
    assert (seen, gc.isenabled()) == ([False], True)
