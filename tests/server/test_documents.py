"""The DOT files of a folder over HTTP: listed, read, saved where that is allowed, and nothing outside of it."""

import errno
import os
import stat

import httpx
import pytest

from attractor_nb.errors import OptionError
from attractor_nb.server.server_settings import check_documents

TEXT = "digraph a { start [shape=Mdiamond] done [shape=Msquare] start -> done }\n"
OTHER = TEXT.replace("digraph a", "digraph b")
NONE = [
    *(
        "missing.dot",
        "plain.txt",
        ".hidden.dot",
        ".git/x.dot",
        "link.dot",
        "linked/inner.dot",
        "pipe.dot",
        "binary.dot",
    ),
    *(
        "../outside.dot",
        "sub/../../outside.dot",
        "sub/./inner.dot",
        "sub//inner.dot",
        "/etc/x.dot",
        "sub",
        "sub.dot",
        "a.dot/x.dot",
    ),
    *("a.dot\x00.dot", "a\n.dot", "sub\\inner.dot", "x" * 300 + ".dot", "large.dot", "unreadable.dot/.."),
]


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "work"
    (place / "sub").mkdir(parents=True)
    (place / "sub.dot").mkdir()
    (place / ".git").mkdir()
    for name in ("a.dot", "sub/inner.gv", ".hidden.dot", ".git/x.dot", "plain.txt"):
        (place / name).write_text(TEXT)
    (tmp_path / "outside.dot").write_text("secret of another folder")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "inner.dot").write_text("secret of another folder")
    (place / "link.dot").symlink_to(tmp_path / "outside.dot")
    (place / "linked").symlink_to(tmp_path / "elsewhere")
    (place / "binary.dot").write_bytes(b"\xff\xfe\x00")
    (place / "large.dot").write_bytes(b" " * 500_001)
    os.mkfifo(place / "pipe.dot")
    return place


@pytest.fixture
def editing(serving, root, folder):
    with serving(root, documents=folder, is_editing=True) as client:
        yield client


def at(path):
    return "/documents/" + httpx.URL("http://x/" + path.replace("?", "%3F")).raw_path.decode()[1:]


def save(client, path, text, digest=""):
    return client.post(f"/documents/{path}", {"text": text, "digest": digest})


def test_files_are_listed_without_hidden_ones_links_and_others(editing, folder):
    said = editing.get("/documents").json()
    assert [line["path"] for line in said["documents"]] == ["a.dot", "binary.dot", "large.dot", "sub/inner.gv"]
    assert said["documents"][0]["bytes"] == len(TEXT)
    assert (said["is_served"], said["is_editable"], said["is_cut"]) == (True, True, False)


def test_a_file_is_read_changed_and_saved_whole(editing, folder):
    read = editing.get("/documents/a.dot").json()
    assert (read["text"], read["is_editable"]) == (TEXT, True)
    (folder / "a.dot").chmod(0o640)
    saved = save(editing, "a.dot", OTHER, read["digest"]).json()
    assert (folder / "a.dot").read_text() == saved["text"] == OTHER
    assert saved["digest"] != read["digest"]
    assert stat.S_IMODE((folder / "a.dot").stat().st_mode) == 0o640
    assert not list(folder.glob(".*.part"))


def test_bytes_stay_as_they_were_sent(editing, folder):
    text = "\ufeff" + TEXT.replace("\n", "\r\n") + "// é \U0001f600 no end"
    read = editing.get("/documents/sub/inner.gv").json()
    assert save(editing, "sub/inner.gv", text, read["digest"]).status_code == 200
    assert (folder / "sub/inner.gv").read_bytes() == text.encode()
    assert editing.get("/documents/sub/inner.gv").json()["text"] == text


def test_a_file_that_has_changed_since_is_not_overwritten_and_both_texts_are_kept(editing, folder):
    read = editing.get("/documents/a.dot").json()
    (folder / "a.dot").write_text("// theirs\n" + TEXT)
    refused = save(editing, "a.dot", OTHER, read["digest"])
    assert refused.status_code == 409
    assert refused.json()["type"].endswith(":document-changed")
    assert refused.json()["document"]["text"] == (folder / "a.dot").read_text() == "// theirs\n" + TEXT
    assert save(editing, "a.dot", OTHER, refused.json()["document"]["digest"]).status_code == 200
    (folder / "a.dot").unlink()
    gone = save(editing, "a.dot", OTHER, read["digest"])
    assert gone.status_code == 409
    assert "document" not in gone.json()
    assert not (folder / "a.dot").exists()


def test_a_new_file_is_made_and_one_that_is_there_stays(editing, folder):
    assert save(editing, "sub/new.dot", TEXT).status_code == 200
    assert (folder / "sub/new.dot").read_text() == TEXT
    assert save(editing, "sub/new.dot", OTHER).status_code == 409
    assert save(editing, "no/folder.dot", TEXT).status_code == 404
    assert (folder / "sub/new.dot").read_text() == TEXT


@pytest.mark.parametrize("path", NONE)
def test_nothing_else_is_read_or_written(editing, folder, path):
    before = {place: place.lstat() for place in folder.parent.rglob("*")}
    quoted = "".join(f"%{byte:02X}" for byte in path.encode())
    reply = editing.get(f"/documents/{quoted}")
    assert reply.status_code == 404
    assert "secret of another" not in reply.text
    if path != "missing.dot":
        assert save(editing, quoted, OTHER).status_code == 404
        assert save(editing, quoted, OTHER, "0" * 64).status_code == 404
    assert {place: place.lstat() for place in folder.parent.rglob("*")}.keys() == before.keys()
    assert (folder.parent / "outside.dot").read_text() == "secret of another folder"


def test_a_folder_that_becomes_a_link_leads_nowhere(editing, folder):
    read = editing.get("/documents/sub/inner.gv").json()
    (folder / "sub").rename(folder / "was")
    (folder / "sub").symlink_to(folder.parent / "elsewhere")
    assert save(editing, "sub/new.dot", OTHER, "").status_code == 404
    assert save(editing, "sub/inner.gv", OTHER, read["digest"]).status_code == 404
    assert not (folder.parent / "elsewhere" / "new.dot").exists()


def test_a_file_that_the_disk_refuses_is_said_and_stays(editing, folder, monkeypatch):
    def refuse(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    digest = editing.get(at("a.dot")).json()["digest"]
    before = {*folder.iterdir()}
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        reply = save(editing, "a.dot", OTHER, digest)
    problem = reply.json()
    assert (reply.status_code, problem["type"]) == (503, "urn:attractor-nb:problem:storage")
    assert problem["detail"] == "a.dot cannot be written: No space left on device"
    assert (folder / "a.dot").read_text() == TEXT
    assert {*folder.iterdir()} == before


def test_a_file_that_another_program_made_meanwhile_is_a_conflict_and_stays(editing, folder, monkeypatch):
    link = os.link

    def late(source, target, **more):
        (folder / target).write_text(OTHER)
        link(source, target, **more)

    before = {*folder.iterdir()}
    with monkeypatch.context() as patched:
        patched.setattr(os, "link", late)
        reply = save(editing, "new.dot", TEXT)
    problem = reply.json()
    assert (reply.status_code, problem["type"]) == (409, "urn:attractor-nb:problem:document-changed")
    assert problem["document"]["text"] == OTHER
    assert (folder / "new.dot").read_text() == OTHER
    assert {*folder.iterdir()} == {*before, folder / "new.dot"}


def test_what_a_server_is_to_show_and_save_is_checked_before_it_starts(folder, monkeypatch):
    with pytest.raises(OptionError, match=r"a\.dot is not a folder"):
        check_documents(folder / "a.dot", is_editing=False)
    with pytest.raises(OptionError, match="there are no files to edit") as refused:
        check_documents(None, is_editing=True)
    assert refused.value.hint == "name their folder: documents=Path(…)"
    check_documents(folder, is_editing=True)
    monkeypatch.setattr("attractor_nb.storage.files.document_files.HAS_POSIX", False)
    with pytest.raises(OptionError, match="keeps links out") as refused:
        check_documents(folder, is_editing=True)
    assert refused.value.hint == "leave edit out"
    check_documents(folder, is_editing=False)


def test_without_edit_files_are_shown_and_not_saved(serving, root, folder):
    with serving(root, documents=folder) as client:
        assert client.get("/documents").json()["is_editable"] is False
        read = client.get("/documents/a.dot").json()
        assert (read["text"], read["is_editable"]) == (TEXT, False)
        refused = save(client, "a.dot", OTHER, read["digest"])
        assert (refused.status_code, refused.json()["type"]) == (403, "urn:attractor-nb:problem:read-only")
        assert (folder / "a.dot").read_text() == TEXT


def test_without_a_folder_there_are_none(client):
    assert client.get("/documents").json() == {
        "documents": [],
        "is_served": False,
        "is_editable": False,
        "is_cut": False,
    }
    assert client.get("/documents/a.dot").status_code == 404
    assert save(client, "a.dot", TEXT).status_code == 404


def test_the_door_is_the_same(editing):
    for head in ({}, {"Authorization": "Bearer " + "x" * 43}):
        assert httpx.get(f"{editing.base}/documents/a.dot", headers=head).status_code == 401
    assert editing.get("/documents/a.dot", headers={"Origin": "https://evil.example"}).status_code == 403
    assert (
        editing.http.post("/documents/a.dot", content="x=1", headers={"Content-Type": "text/plain"}).status_code == 415
    )


def test_a_file_with_a_secret_is_not_shown(serving, root, folder, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sk-0123456789abcdefghij")
    (folder / "a.dot").write_text(
        TEXT.replace("digraph a", 'digraph a { graph [goal="sk-0123456789abcdefghij"]').replace("{ start", "start", 1)
    )
    with serving(root, documents=folder, is_editing=True) as client:
        reply = client.get("/documents/a.dot")
        assert reply.status_code == 409
        assert "sk-0123456789" not in reply.text
