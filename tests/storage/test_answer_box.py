"""Answers to the run of another process: claimed or withdrawn, never both; late ones count for nothing."""

import os
import threading
import time

import pytest

from attractor_nb.errors import StorageError
from attractor_nb.model.instruction import InstructionReceipt
from attractor_nb.storage.answer_box import AnswerBox, AnswerReply, BoxedAnswer, BoxedMessage
from attractor_nb.storage.sealed_file import seal
from attractor_nb.storage.trust_file import state_directory
from tests.waiting import wait_until

SOON = 60.0


def given(choice="A", seconds=SOON):
    return BoxedAnswer("gate:1", "somebody", time.time() + seconds, choice)


@pytest.fixture
def box(tmp_path):
    return AnswerBox(tmp_path / "run")


def files():
    return sorted(path.name for path in (state_directory() / "answers").iterdir())


def claim(box):
    """Claim the next answer as the owner of a run does: by looking again and again."""
    return wait_until(lambda: box.claimed(time.time()), "an answer")


def handing_in(box, answer, patience=60.0):
    outcome = []

    def hand_in():
        try:
            outcome.append(box.hand_in(answer, patience))
        except StorageError as error:
            outcome.append(error)

    thread = threading.Thread(target=hand_in)
    thread.start()
    return thread, outcome


def test_an_answer_is_claimed_once_and_its_sender_told(box, tmp_path):
    answer = BoxedAnswer("gate:1", "ann", time.time() + SOON, "A", "because", {"score": 7})
    thread, outcome = handing_in(box, answer)
    [(token, claimed)] = claim(box)
    assert claimed == answer
    assert box.claimed(time.time()) == []
    assert AnswerBox(tmp_path / "other").claimed(time.time()) == []
    box.reply(token, AnswerReply("AnswerRefused", "it will not do", "another", {"score": "too low"}))
    thread.join(60)
    assert outcome == [AnswerReply("AnswerRefused", "it will not do", "another", {"score": "too low"})]
    assert files() == []


def test_a_message_goes_the_same_way(box):
    message = BoxedMessage("Use two nails", "ann", time.time() + SOON, "plan")
    thread, outcome = handing_in(box, message)
    [(token, claimed)] = claim(box)
    assert claimed == message
    reply = AnswerReply(receipt=InstructionReceipt("Use two nails", "plan", reach="attempt"))
    box.reply(token, reply)
    thread.join(60)
    assert outcome == [reply]
    assert files() == []


def test_a_folder_that_has_not_changed_is_not_opened_again(box, monkeypatch):
    assert box.hand_in(given(), patience=0.05) is None  # makes the folder
    folder = state_directory() / "answers"
    os.utime(folder, (1000, 1000))
    assert box.claimed(time.time()) == []
    with monkeypatch.context() as patch:
        patch.setattr(box._disk, "open_directory", lambda path: pytest.fail("it was opened"))
        assert box.claimed(time.time()) == []
    (folder / f"{box._prefix}x.given").write_bytes(seal(given().to_plain()))
    [(_, claimed)] = box.claimed(time.time())
    assert claimed.choice == "A"


def test_what_is_put_there_within_the_same_tick_of_the_clock_is_found(box):
    assert box.hand_in(given(), patience=0.05) is None  # makes the folder
    folder = state_directory() / "answers"
    now = time.time()
    os.utime(folder, (now, now))
    assert box.claimed(now) == []
    (folder / f"{box._prefix}x.given").write_bytes(seal(given().to_plain()))
    os.utime(folder, (now, now))
    assert len(box.claimed(now)) == 1


def test_an_answer_that_nobody_claims_is_withdrawn(box):
    assert box.hand_in(given(), patience=0.1) is None
    assert files() == []
    assert box.claimed(time.time()) == []


def test_what_a_killed_sender_left_behind_answers_nothing_later(box):
    thread, outcome = handing_in(box, given(seconds=0.2), patience=1.0)
    threading.Event().wait(0.4)
    assert box.claimed(time.time()) == [], "its time is over"
    thread.join(60)
    [error] = outcome
    assert "did not respond again" in error.message


def test_of_claim_and_withdrawal_exactly_one_happens(box):
    withdrawn = 0
    for number in range(40):
        thread, outcome = handing_in(box, given(str(number)), patience=0.01 * (number % 8))
        found = []
        while thread.is_alive() and not found:
            found = box.claimed(time.time())
        for token, _ in found:
            box.reply(token, AnswerReply())
        thread.join(60)
        assert (outcome == [None]) == (not found)  # where it was claimed, the reply may be too late
        withdrawn += not found
        for path in (state_directory() / "answers").glob("*.reply"):
            path.unlink()
    assert 0 < withdrawn < 40
    assert files() == []


def test_a_claimed_answer_whose_sender_was_killed_leaves_nothing(box, tmp_path):
    assert box.hand_in(given(), patience=0.05) is None  # makes the folder
    left = state_directory() / "answers" / f"{box._prefix}x.given"
    left.write_bytes(seal(given().to_plain()))
    [(token, _)] = box.claimed(time.time())
    assert files() == []
    box.reply(token, AnswerReply())
    assert files() == [f"{token}.reply"]


@pytest.mark.parametrize("opened", ["claimed", "hand_in"])
def test_whoever_opens_the_box_sweeps_what_nobody_waits_for_any_more(box, tmp_path, opened):
    assert box.hand_in(given(), patience=0.05) is None  # makes the folder
    endings = ("a.given", "b.claimed", "c.reply")
    names = [*(f"{prefix}-{end}" for prefix in ("old", "new") for end in endings), ".attractor-tmp-old", "other"]
    for name in names:
        path = state_directory() / "answers" / name
        path.write_bytes(b"")
        if not name.startswith("new"):
            os.utime(path, (1, 1))
    another = AnswerBox(tmp_path / "another")
    another.claimed(time.time()) if opened == "claimed" else another.hand_in(given(), patience=0.05)
    assert files() == sorted(["other", *(name for name in names if name.startswith("new"))])


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"question": "gate:1"}'])
def test_what_is_not_ours_is_no_answer(box, tmp_path, content):
    assert box.hand_in(given(), patience=0.05) is None  # makes the folder
    (state_directory() / "answers" / f"{box._prefix}x.given").write_bytes(content)
    assert box.claimed(time.time()) == []


def test_a_folder_in_which_others_may_write_is_not_used(box):
    assert box.hand_in(given(), patience=0.05) is None
    assert box.is_usable
    (state_directory() / "answers").chmod(0o777)
    assert not box.is_usable
    assert box.hand_in(given(), patience=0.05) is None
    assert box.claimed(time.time()) == []


def test_the_files_are_the_user_s_alone(box):
    thread, _ = handing_in(box, given(), patience=0.5)
    folder = state_directory() / "answers"
    while thread.is_alive() and not (folder.exists() and list(folder.glob("*.given"))):
        threading.Event().wait(0.01)
    [file] = folder.glob("*.given")
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    thread.join(60)


def test_a_reply_to_a_box_that_is_gone_is_a_storage_error(box):
    with pytest.raises(StorageError, match=r"cannot open .*/answers: no such file"):
        box.reply("token", AnswerReply())
