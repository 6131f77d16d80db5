"""The page's shell and files, and what the API gives front-ends: who gets them, with which policy, and what is in them."""

import base64
import hashlib
import re
import time
from collections import Counter
from dataclasses import fields
from typing import get_args
from urllib.parse import urlsplit

import httpx
import pytest

from attractor_nb import Pipeline, runs
from attractor_nb.notebook.history_view import HistoryRequests
from attractor_nb.server.operations import OPERATIONS
from attractor_nb.server.page import FOLDER, PAGE_PATHS, page_file, policy
from attractor_nb.server.requests import BackendName, Bounds
from attractor_nb.server.server_settings import ServerSettings
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.frontend import FOLDER as VIEWS
from attractor_nb.views.frontend import modules_of, script
from tests.many_runs import make_many_runs

TOKEN = "t" * 43
MODULES = modules_of("page", FOLDER)
OWN = sorted(path.name.removesuffix(".js") for path in FOLDER.iterdir() if path.name.endswith(".js"))
TOP_LEVEL = re.compile(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)


def source(name):
    return (FOLDER / f"{name}.js").read_text("utf-8")


def bare(client, path="/", method="GET", **headers):
    """A request without the token."""
    # Certificates are not looked for, which would take longer than all the rest.
    return httpx.request(method, f"http://127.0.0.1:{client.port}{path}", headers=headers, verify=False)


def test_the_page_and_its_files_come_without_a_token_and_with_a_strict_policy(client):
    for path in sorted(PAGE_PATHS):
        reply = bare(client, path)
        assert reply.status_code == 200
        said = reply.headers["content-security-policy"]
        assert said.startswith("default-src 'none'; script-src 'self'; style-src 'self' 'sha256-")
        for part in ("connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"):
            assert part in said
        assert not re.search(r"unsafe|\*|http|data:", said)
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert TOKEN not in reply.text
        again = bare(client, path, **{"If-None-Match": reply.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_nothing_else_of_the_door_is_open_to_the_page(client):
    framed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    for path in sorted(PAGE_PATHS):
        assert bare(client, path, Host="evil.example").status_code == 403
        assert bare(client, path, Origin="https://evil.example").status_code == 403
        assert bare(client, path, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert bare(client, path, **framed).status_code == 403
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
            assert bare(client, path, method).status_code == 401
            assert client.http.request(method, path).status_code == 405
    for near in ("/page", "/page.html", "/page.js/", "//page.js", "/web/page.js", "/page.js%00", "/page_run.js"):
        assert bare(client, near).status_code == 401
        assert bare(client, near, Authorization=f"Bearer {TOKEN}").status_code == 404


def test_there_is_no_route_but_the_operations_their_document_and_the_page(client):
    paths = [route.path for route in client.server.app._app.routes]
    assert set(paths) == {operation.path for operation in OPERATIONS} | {"/openapi.json"} | PAGE_PATHS
    assert all("{" not in path for path in PAGE_PATHS), "what is open has no part that somebody else writes"


def test_a_link_of_another_site_leads_to_the_page_and_nowhere_else(client):
    linked = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert bare(client, "/", **linked).status_code == 200
    assert bare(client, "/page.js", **linked).status_code == 403
    assert client.http.get("/pipelines", headers=linked).status_code == 403


def test_under_a_prefix_the_page_is_found_with_and_without_its_slash(serving, root):
    with serving(root, prefix="/lab/runs") as client:
        reply = bare(client, "/lab/runs")
        assert (reply.status_code, reply.headers["location"]) == (307, "runs/")
        page = httpx.get(f"http://127.0.0.1:{client.port}/lab/runs", follow_redirects=True, verify=False)
        assert page.status_code == 200
        assert urlsplit(str(page.url)).path == "/lab/runs/"
        assert bare(client, "/lab/runs/page.js").status_code == 200
        assert bare(client, "/lab/runs/pipelines").status_code == 401


def test_behind_a_proxy_nothing_comes_without_the_token_whatever_the_host(serving, root):
    with serving(root, hosts=None, is_proxied=True) as client:
        for path in (*PAGE_PATHS, "/pipelines", "/openapi.json"):
            assert bare(client, path).status_code == 401
            assert bare(client, path, Host="hub.example").status_code == 401
        shown = {"Host": "hub.example", "Authorization": f"Bearer {TOKEN}"}
        page = bare(client, "/", **shown)
        assert 'data-token-wanted="no"' in page.text
        assert page.headers["x-frame-options"] == "SAMEORIGIN"
        assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
        assert bare(client, "/pipelines", **shown).status_code == 200
        own = {**shown, "Origin": "https://hub.example", "Sec-Fetch-Site": "same-origin"}
        assert bare(client, "/pipelines", **own).status_code == 200
        assert bare(client, "/pipelines", **{**shown, "Origin": "https://evil.example"}).status_code == 403
        assert bare(client, "/pipelines", **{**shown, "Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_the_page_names_its_files_and_its_server_by_relative_addresses_only():
    shell = page_file("/").content.decode()
    assert set(re.findall(r'(?:href|src)="([^"]+)"', shell)) == {"icon.svg", "page.css", "page.js"}
    assert not re.search(r"<script>|style=|\son\w+=", shell)
    for name in OWN:
        assert not re.search(
            r"""(get|post|address|fetch|URL)\(["'`](/|https?:)|(href|src) = ["'`](/|https?:)""", source(name)
        ), name


def test_the_policy_lets_the_sheets_of_our_drawings_in_and_no_other(client, sources):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    drawing = client.get(f"/pipelines/{run_id}/drawing").json()["svg"]
    timeline = client.get(f"/pipelines/{run_id}/timeline").json()["svg"]
    sheets = [sheet for svg in (drawing, timeline) for sheet in re.findall(r"<style>(.*?)</style>", svg, re.DOTALL)]
    assert len(sheets) == 2
    for sheet in sheets:
        digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy()
    assert policy().count("sha256-") == 4  # and those of a comparison and of an evaluation


def test_the_script_is_of_modules_that_share_no_name_and_make_no_markup_of_texts():
    names = TOP_LEVEL.findall(script("page", is_widget=False, beside=FOLDER))
    assert len(names) > 100
    assert {name for name, count in Counter(names).items() if count > 1} == set()
    assert set(OWN) <= set(MODULES), "each is used"
    for name in OWN:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.style\s*=", source(name)
        )


def test_no_class_is_dressed_by_a_view_and_by_the_page():
    def alone(folder):
        sheets = [path.read_text("utf-8") for path in folder.iterdir() if path.name.endswith(".css")]
        return {found for sheet in sheets for found in re.findall(r"^\.([a-z]+-[\w-]+) \{", sheet, re.MULTILINE)}

    assert alone(FOLDER) & alone(VIEWS) == set()


def test_the_form_of_a_new_run_knows_the_backends_and_the_limit_of_the_api():
    offered = re.findall(
        r"^  (\w+): (?:__\()?\"", source("page_launch").partition("BACKENDS = {")[2].partition("};")[0], re.MULTILINE
    )
    assert offered == list(get_args(BackendName))
    assert "MOST_BYTES = 1024 * 1024;" in source("page_source")
    limit = next(one for one in fields(ServerSettings) if one.name == "max_body_bytes").default
    assert limit == 1024 * 1024
    bounds = re.findall(r"^  (max_\w+): \[", source("page_launch"), re.MULTILINE)
    assert set(bounds) <= set(Bounds.model_fields)


def test_rows_say_of_each_run_what_a_list_shows(client, sources):
    ended = client.submit(sources.plain)
    client.ended(ended)
    waiting = client.submit(sources.gate)
    client.wait_for(waiting, "InterviewStarted")
    found = client.get("/rows").json()
    rows = {row["key"]: row for row in found["rows"]}
    assert found["total"] == 2
    assert [row["index"] for row in found["rows"]] == [0, 1]
    assert (rows[ended]["status"], rows[ended]["state"], rows[ended]["is_live"]) == ("completed", "ok", False)
    assert (rows[waiting]["status"], rows[waiting]["mark"], rows[waiting]["is_live"]) == ("waiting", "?", True)
    part = client.get("/rows", params={"limit": 1, "offset": 1}).json()
    assert ([row["key"] for row in part["rows"]], part["offset"]) == ([ended], 1)


def test_rows_are_found_by_words_and_told_in_parts(client, sources):
    for _ in range(3):
        client.ended(client.submit(sources.plain))
    waiting = client.submit(sources.gate)
    client.wait_for(waiting, "InterviewStarted")

    def found(**query):
        answer = client.get("/rows", params=query).json()
        return [row["index"] for row in answer["rows"]], answer["found"], answer["total"]

    assert found(words="SUCCESS", limit=2) == ([1, 2], 3, 4)
    assert found(words="completed", limit=2, offset=2) == found(words="success", limit=2, offset=2) == ([3], 3, 4)
    assert found(words=f"waiting {waiting[-4:]}") == ([0], 1, 4)
    assert found(words="success waiting") == ([], 0, 4)
    assert found(words="  ", limit=1) == ([0], 4, 4)


def test_one_search_finds_any_of_two_thousand_runs_wherever_they_are_listed(client, root):
    make_many_runs(root, 2_003, needle=11)

    def found(**query):
        answer = client.get("/rows", params={"limit": 2, **query}).json()
        assert answer["total"] == 2_003
        return [row["key"] for row in answer["rows"]], answer["found"]

    assert found() == (["run-2002", "run-2001"], 2_003)
    assert found(words="needle") == (["run-0011"], 1)
    assert found(sort="started") == (["run-0000", "run-0001"], 2_003)
    assert found(sort="key", descending=True, offset=2_000) == (["run-0002", "run-0001"], 2_003)
    assert len(client.get("/rows", params={"limit": 10_000}).json()["rows"]) == 2_003
    kept = runs(root)
    assert len(kept) == len(HistoryRequests(kept).rows()) == 2_003
    assert [row.logs_root.name for row in kept.where(text="needle")] == ["run-0011"]


def test_rows_are_sorted_by_each_column_of_the_list(client, sources):
    client.ended(client.submit(sources.plain))
    titles = re.findall(r'name: "(\w+)", title', (VIEWS / "history.js").read_text("utf-8"))
    for column in titles:
        assert client.get("/rows", params={"sort": column}).status_code == 200
    assert client.get("/rows", params={"sort": "colour"}).status_code == 422


def test_a_drawing_has_no_states_and_says_what_room_it_needs(client, sources):
    waiting = client.submit(sources.gate)
    client.wait_for(waiting, "InterviewStarted")
    drawing = client.get(f"/pipelines/{waiting}/drawing").json()
    assert drawing["svg"] == render_svg(Pipeline(sources.gate).graph)
    assert (drawing["has_gates"], drawing["has_output"]) == (True, True)
    assert drawing["marks"]["success"].startswith("M")


def test_the_status_line_goes_on_while_the_run_does_and_stands_when_it_has_ended(client, sources):
    before = time.time()
    waiting = client.submit(sources.gate)
    client.wait_for(waiting, "InterviewStarted")
    line = client.get(f"/pipelines/{waiting}").json()["line"]
    assert (line["status"], line["node"]) == ("waiting", "review")
    assert before - 1 <= line["at"] <= time.time()
    client.post(f"/pipelines/{waiting}/questions/review/answer", {"choice": "A", "answered_by": "page"})
    client.ended(waiting)
    line = client.get(f"/pipelines/{waiting}").json()["line"]
    assert (line["status"], line["is_ended"]) == ("success", True)


def test_the_response_of_a_run_is_that_of_the_stage_that_spoke_last(client, sources):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    found = client.get(f"/pipelines/{run_id}/response").json()
    stage = client.get(f"/pipelines/{run_id}/stages/{found['node']}").json()
    assert found["text"]
    assert found == {"id": run_id, "node": "plan", "text": stage["response"], "shown": found["shown"]}


def test_a_run_in_which_no_stage_spoke_has_no_response(client):
    run_id = client.submit("digraph g { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    client.ended(run_id)
    assert client.get(f"/pipelines/{run_id}/response").json() == {"id": run_id, "node": "", "text": "", "shown": None}


def test_answers_say_what_became_of_questions(client, sources):
    waiting = client.submit(sources.gate)
    client.wait_for(waiting, "InterviewStarted")
    assert client.get(f"/pipelines/{waiting}/answers").json()["answers"] == []
    client.post(f"/pipelines/{waiting}/questions/review/answer", {"choice": "A", "answered_by": "page"})
    client.ended(waiting)
    (answer,) = client.get(f"/pipelines/{waiting}/answers").json()["answers"]
    assert answer["is_answered"]
    assert answer["words"].startswith("Approve, by ada, on the page, after ")


def test_a_timeline_has_a_bar_for_each_stage(client, sources):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    found = client.get(f"/pipelines/{run_id}/timeline").json()
    assert [bar["node"] for bar in found["timeline"]["bars"]] == ["start", "plan", "done"]
    assert found["states"]["plan"]["status"] == "success"
    assert set(found["heats"]) >= {"time", "visits"}
    assert "attractor-timeline" in found["svg"]


def test_a_replay_has_every_moment_of_a_run(client, sources):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    found = client.get(f"/pipelines/{run_id}/replay").json()
    assert {"start", "plan", "done"} <= {frame.get("node") for frame in found["replay"]["frames"]}
    assert found["svg"] == client.get(f"/pipelines/{run_id}/drawing").json()["svg"]


def test_two_runs_are_compared_on_one_drawing_whose_sheet_the_policy_lets_in(client, sources):
    runs = [client.submit(source) for source in (sources.plain, sources.plain.replace("Plan it", "Plot it"))]
    for run_id in runs:
        client.ended(run_id)
    found = client.get(f"/pipelines/{runs[0]}/comparison", params={"other": runs[1]}).json()
    assert (found["id"], found["other"]) == tuple(runs)
    assert [step["node"] for step in found["comparison"]["steps"] if step["differs"]] == ["plan"]
    (sheet,) = re.findall(r"<style>(.*?)</style>", found["svg"], re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy()


@pytest.mark.parametrize(("query", "status"), [({}, 422), ({"other": "nobody"}, 404), ({"other": "../x"}, 404)])
def test_a_run_is_compared_with_a_run_that_there_is(client, sources, query, status):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    assert client.get(f"/pipelines/{run_id}/comparison", params=query).status_code == status
