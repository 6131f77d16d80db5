"""The served page in Chromium: opened by the printed line, listed, watched, answered, lost and found again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest
from playwright.sync_api import expect

from attractor_nb import Outcome, Pipeline, runs
from attractor_nb.account import account_name
from attractor_nb.evaluation.scorers import equals

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

REPOSITORY = Path(__file__).parents[2]
TOKEN = "k" * 43
REVIEW = """digraph review {
  graph [label="Review of one change", goal="A small, safe change"]
  start [shape=Mdiamond]
  plan [label="Plan the change", prompt="Plan it: $goal"]
  review [shape=hexagon, label="Is the plan good?"]
  implement [label="Implement it", prompt="Write the code"]
  done [shape=Msquare]
  start -> plan -> review
  review -> implement [label="[A] Approve"]
  review -> plan [label="[R] Request changes"]
  implement -> done
}"""

TRIAGE = """digraph Triage {
  inputs="ticket"
  start [shape=Mdiamond]
  classify [prompt="Which team is this for? $ticket"]
  done [shape=Msquare]
  start -> classify -> done
}"""

SEEN = """seen => {
  Object.defineProperty(document, "visibilityState", { value: seen, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


OBSERVED = """window.heard = 0;
window.EventSource = class extends window.EventSource {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", () => { window.heard += 1; });
  }
};"""


class Served:
    """``attractor-nb serve`` in a process of its own, and requests to it."""

    def __init__(self, root, port):
        self.root, self.port = root, port
        self.process = None
        self.line = ""

    def start(self, *options):
        command = [sys.executable, "-m", "attractor_nb", "serve", "--runs-dir", self.root]
        command += ["--port", str(self.port), *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
        )
        self.line = self.process.stdout.readline().strip()
        assert self.line.startswith("http://127.0.0.1:"), self.line

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)
        self.process.stdout.close()

    @property
    def base(self):
        return self.line.partition("#")[0]


def submit(line):
    """Start the review on the server whose address was printed; the run's id."""
    request = urllib.request.Request(
        line.partition("#")[0] + "pipelines",
        data=json.dumps({"source": REVIEW}).encode(),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)["id"]


def environment():
    paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "ATTRACTOR_TOKEN": TOKEN}


@pytest.fixture
def serve(driver, tmp_path):
    """Starts a server in a process of its own."""
    with ExitStack() as stack:

        def serve_():
            server = Served(tmp_path / "runs", driver.free_port())
            server.start()
            stack.callback(lambda: server.process.poll() is None and server.kill())
            return server

        yield serve_


@contextmanager
def open_page(driver, address, **options):
    """The page at an address; at the end its console has said nothing that is an error."""
    said = []
    with driver.new_page(**options) as page:
        page.set_default_timeout(30_000)
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(f"pageerror: {error}"))
        page.streams = []
        page.on("request", lambda asked: page.streams.append(asked.url) if "/events?" in asked.url else None)
        page.add_init_script(OBSERVED)
        page.goto(address)
        yield page
        assert [line for line in said if not is_of_a_lost_server(line)] == []


def is_of_a_lost_server(line):
    """The browser itself says that a server does not answer, or refuses the token."""
    return (
        "status of 401" in line
        or "ERR_CONNECTION" in line
        or "ERR_INCOMPLETE_CHUNKED" in line
        or "ERR_EMPTY_RESPONSE" in line
    )


@contextmanager
def watching(server, run):
    """``attractor-nb watch`` beside the page; what it has printed, and its exit code, when it has ended."""
    command = [sys.executable, "-m", "attractor_nb", "watch", run, "--server", server.base]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())
    lines, has_begun = [], threading.Event()

    def read():
        for line in process.stdout:
            lines.append(line)
            has_begun.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert has_begun.wait(60), "watch said nothing"

        def ended():
            code = process.wait(60)
            reader.join(60)
            return code, "".join(lines)

        yield ended
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(30)
        reader.join(30)
        process.stdout.close()


@pytest.mark.kind("a browser")
def test_a_gate_is_answered_in_the_page_while_the_command_line_watches(driver, serve, pictures):
    server = serve()
    run = submit(server.line)
    with open_page(driver, server.line) as page:
        row = page.locator(f"tr[data-run='{run}']")
        row.wait_for()
        assert page.url == server.base, "the token is out of the address"
        assert page.evaluate("() => document.cookie") == ""
        assert "Is the plan good?" in page.locator(".ap-inbox").inner_text()
        page.screenshot(path=str(pictures / "page_runs_light.png"))

        row.click()
        page.locator("[data-node=review].state-waiting").wait_for()
        for seen in ("hidden", "visible"):  # a hidden tab receives nothing, and then all of it
            with page.expect_request(lambda asked: "/events?" in asked.url) if seen == "visible" else nullcontext():
                page.evaluate(SEEN, seen)
        page.locator("[data-node=plan].state-success").click()
        page.locator(".al-inspector .pr-shown", has_text="Plan it: A small, safe change").wait_for()
        page.screenshot(path=str(pictures / "page_run_light.png"))
        assert page.title() == "Review of one change: waiting · attractor_nb"

        with watching(server, run) as ended:
            page.locator(".ag-card").get_by_role("button", name="Approve").click()
            page.locator("[data-node=done].state-success").wait_for()
            code, said = ended()
        assert code == 0, said
        assert "completed" in said, said
        page.locator(".ag-answers li", has_text=f"Approve, by {account_name()}, on the page").wait_for()
        page.locator(".al-line[data-status=success]").wait_for()
        assert page.locator(".ag-card").count() == 0

        page.locator(".ap-fold summary", has_text="Timeline and heat").click()
        page.locator(".at-timeline [data-bar][data-for=plan]").click()
        page.locator(".at-timeline [data-node=plan].selected").wait_for()
        page.reload()  # the token is kept for this tab, and the address says which run it is
        page.locator("[data-node=done].state-success").wait_for()

        page.get_by_role("button", name="Fork…").click()
        page.get_by_label("A run of its own, from just before").select_option("implement")
        page.get_by_role("button", name="Fork", exact=True).click()
        page.locator(".ap-facts", has_text="fork of").wait_for()
        page.locator(".al-line[data-status=success]").wait_for()
        assert run not in page.locator(".ap-id").text_content()


def test_a_stage_is_told_something_from_the_page(driver, serve):
    server = serve()
    run = submit(server.line)
    with open_page(driver, f"{server.base}?token={TOKEN}#run={run}") as page:
        page.locator("[data-node=review].state-waiting").wait_for()
        page.locator("[data-node=implement]").click()
        field = page.get_by_label("Tell this stage something")
        field.fill("Use two nails")
        field.press("Control+Enter")
        page.locator(".as-message [role=status]", has_text="queued for the next attempt of implement").wait_for()
        assert field.input_value() == ""
    log = (server.root / run / "events.jsonl").read_text()
    assert '"text":"Use two nails"' in log
    assert f'"given_by":"{account_name()} (page)"' in log


def test_a_server_that_dies_is_said_to_be_gone_and_taken_up_when_it_is_back(driver, serve, pictures):
    server = serve()
    run = submit(server.line)
    with open_page(driver, f"{server.base}?token={TOKEN}#run={run}", dark=True) as page:
        page.locator("[data-node=review].state-waiting").wait_for()
        assert page.url == f"{server.base}#run={run}"
        page.wait_for_function("() => window.heard > 0")
        server.kill()
        page.locator(".ap-banner", has_text="The server does not answer.").wait_for()
        assert page.locator(".al-stop").is_disabled()
        page.screenshot(path=str(pictures / "page_gone_dark.png"))
        server.start("--no-recover")
        page.locator(".ap-banner").wait_for(state="hidden")
        page.locator(".ag-how", has_text="Resume it, and the question is asked again.").wait_for()
        page.screenshot(path=str(pictures / "page_abandoned_dark.png"))
        with page.expect_request(lambda asked: "/events?" in asked.url):
            page.locator(".ap-resume").click()  # its process is dead: the run stays paused until it is resumed
        page.locator(".ag-card").get_by_role("button", name="Approve").click()
        page.locator(".al-line[data-status=success]").wait_for()
        page.locator("[data-node=implement].state-success").wait_for()
    tickets = [re.search(r"ticket=([\w-]+)", url)[1] for url in page.streams]
    assert len(tickets) == len(set(tickets)) >= 2, "each stream has a ticket of its own"
    assert not any(TOKEN in url for url in page.streams)
    assert re.search(r"last_event_id=0\.\d+", page.streams[-1]), "it goes on behind the event that was had last"


def test_a_question_of_a_run_that_stands_still_has_the_way_on_on_its_card(driver, serve, pictures):
    server = serve()
    ids = [submit(server.line) for _ in range(2)]
    with open_page(driver, server.line) as page:
        page.locator(".ap-inbox .ag-card").get_by_role("button", name="Approve").nth(1).wait_for()
        server.kill()
        server.start("--no-recover")
        resume = page.locator(".ap-inbox .ag-card").get_by_role("button", name="Resume")
        resume.nth(1).wait_for()
        page.screenshot(path=str(pictures / "page_inbox_abandoned_light.png"))
        assert resume.count() == 2
        assert page.locator(".ap-inbox .ag-card .attractor-choice").count() == 0
        page.locator(".ap-inbox .ag-card").nth(0).press("a")  # nor can it be answered by a key: all is as it was
        assert page.locator(".ag-card button:disabled").count() == 0
        resume.nth(0).click()  # by a click here, and by keys on its own page
        page.locator("h1", has_text="Review of one change").wait_for()
        page.locator(".ag-card").get_by_role("button", name="Approve").click()
        page.locator(".al-line[data-status=success]").wait_for()
        done = page.url.rpartition("=")[2]
        [other] = set(ids) - {done}
        page.goto(f"{server.base}#run={other}")
        card = page.locator(".ag-card").get_by_role("button", name="Resume")
        card.wait_for()
        page.screenshot(path=str(pictures / "page_card_abandoned_light.png"))
        card.focus()
        page.keyboard.press("Enter")
        page.locator(".ag-card").get_by_role("button", name="Approve").click()
        page.locator(".al-line[data-status=success]").wait_for()


def test_what_a_killed_server_left_goes_on_while_the_page_looks(driver, serve, pictures):
    server = serve()
    run = submit(server.line)
    with open_page(driver, f"{server.line}") as page:
        page.locator(".ap-inbox .ag-card").wait_for()
        server.kill()
        page.locator(".ap-banner", has_text="The server does not answer.").wait_for()
        server.start()
        page.locator(
            f"tr[data-run='{run}']", has_text="resumed automatically; the previous server was last seen"
        ).wait_for()
        page.screenshot(path=str(pictures / "page_taken_up_light.png"))
        page.locator(".ap-inbox .ag-card").get_by_role("button", name="Approve").click()
        expect(page.locator(f"tr[data-run='{run}']")).to_contain_text("completed")


def test_under_a_prefix_on_a_phone_without_a_token_and_by_keys(driver, serve_page, tmp_path, pictures):
    (tmp_path / "runs").mkdir()
    line = serve_page(tmp_path / "runs", TOKEN, "/lab/runs")
    base, run = line.partition("#")[0], submit(line)
    with open_page(driver, base.rstrip("/"), width=390, height=780) as page:
        page.locator(".ap-token").wait_for()
        assert page.locator("tr[data-run]").count() == 0
        page.keyboard.type("not the token of this server")
        page.keyboard.press("Enter")
        page.locator(".ap-said", has_text="There is no token in this.").wait_for()
        page.locator(".ap-token input").fill("w" * 43)
        page.keyboard.press("Enter")
        page.locator(".ap-said", has_text="The server does not accept this token.").wait_for()
        assert page.url == base
        assert page.evaluate("() => Object.keys(sessionStorage)") == []
        page.locator(".ap-token input").fill(line)
        page.keyboard.press("Enter")
        row = page.locator(f"tr[data-run='{run}']")
        row.wait_for()
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
        page.screenshot(path=str(pictures / "page_runs_narrow.png"), full_page=True)
        row.get_by_role("button", name=re.compile("^Open")).focus()
        page.keyboard.press("Enter")
        page.locator(".al-questions .ag-card").focus()  # not the one of the page before
        page.screenshot(path=str(pictures / "page_run_narrow.png"), full_page=True)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
        page.keyboard.press("a")
        page.locator(".al-line[data-status=success]").wait_for()


def test_a_map_is_opened_filtered_and_compared_and_its_row_is_a_run(driver, serve, pictures):
    def triage(node, prompt, context):
        return Outcome.fail("no such ticket") if context["ticket"] == "42" else f"<i>ticket {context['ticket']}</i>"

    server = serve()
    for name, backend in (("triage", triage), ("better", lambda prompt: "billing")):
        rows = [{"ticket": str(number)} for number in (41, 42, 43)]
        pipeline = Pipeline(TRIAGE, backend=backend)
        pipeline.map(rows, map_dir=server.root / name, outputs=["last_response"], durability="fast", wait=True)
    with open_page(driver, server.line) as page:
        page.locator("tr[data-run=triage]").click()
        page.locator(".am-table tr[data-place]").nth(2).wait_for()
        assert page.url == f"{server.base}#map=triage"
        assert page.locator(".am-table tr[data-place]").first.locator("td").first.inner_text() == "1"  # the failed one
        assert page.locator(".am-table", has_text="<i>ticket 41</i>").count() == 1
        assert page.locator(".am-bar .is-success").bounding_box()["width"] > 20  # the policy lets the shares through
        page.locator(".am-drawing [data-node=classify].state-fail").wait_for()
        page.screenshot(path=str(pictures / "page_map_light.png"), full_page=True)

        page.get_by_label("Filter the rows by any text").fill("ticket 43")
        page.locator(".am-count", has_text="1 of 3 rows").wait_for()
        page.get_by_label("Filter the rows by any text").fill("")
        page.locator(".am-choice", has_text="failed 1").click()
        page.locator(".am-count", has_text="1 of 3 rows").wait_for()
        page.locator(".am-choice", has_text="all 3").click()
        page.locator(".am-count", has_text=re.compile("^3 rows")).wait_for()
        page.locator(".am-drawing .node[data-node=classify]").click()
        page.locator(".am-count", has_text="1 of 3 rows").wait_for()
        page.locator(".am-chosen").click()
        page.locator(".am-count", has_text=re.compile("^3 rows")).wait_for()

        page.locator(".ap-fold summary", has_text="Compare with another map").click()
        page.get_by_label("The map to compare with").select_option("better")
        page.locator(".ap-fold .am-table .is-outcome", has_text="failed: no such ticket").wait_for()
        page.screenshot(path=str(pictures / "page_map_compared_light.png"), full_page=True)

        page.locator(".am-rows-place tr[data-place]").first.click()
        beside = page.locator(".am-rows-place .am-beside")
        beside.locator("[data-node=classify].state-fail").wait_for()
        assert beside.locator(".am-beside-name").inner_text() == "row 1"
        page.screenshot(path=str(pictures / "page_map_row_light.png"), full_page=True)
        page.keyboard.press("j")
        beside.locator("[data-node=classify].state-success").wait_for()
        assert beside.locator(".am-beside-name").inner_text() == "row 0"
        page.keyboard.press("k")
        beside.locator("[data-node=classify].state-fail").wait_for()
        beside.get_by_role("link", name="Open the run").click()
        page.locator("[data-node=classify].state-fail").wait_for()
        page.locator(".ap-way").get_by_role("link", name="Map").click()
        page.locator(".am-table").wait_for()


def test_the_page_of_a_map_follows_its_rows_while_they_are_written(driver, serve):
    steps = threading.Semaphore(0)

    def triage(node, prompt, context):
        assert steps.acquire(timeout=120), "the test ended"
        return Outcome.fail("no such ticket") if context["ticket"] == "42" else "shipping"

    server = serve()
    rows = [{"ticket": str(number)} for number in (41, 42, 43)]
    options = {"outputs": ["last_response"], "durability": "fast", "max_parallel": 1}
    under_way = Pipeline(TRIAGE, backend=triage).map(rows, map_dir=server.root / "live", **options)
    try:
        with open_page(driver, server.line) as page:

            def choice(words):
                return page.locator(".am-choice", has_text=words)

            page.locator("tr[data-run=live]").click()
            choice("running 1").wait_for()
            choice("not started 2").wait_for()
            page.evaluate("() => { window.isTheSamePage = true; }")
            steps.release()
            choice("completed 1").wait_for()
            page.locator(".am-rows-place td", has_text="shipping").wait_for()
            steps.release()
            choice("failed 1").wait_for()
            assert page.locator(".am-table tr[data-place]").first.locator("td").first.inner_text() == "1"
            steps.release()
            choice("completed 2").wait_for()
            page.locator(".ap-map-line", has_text="fail").wait_for()
            assert choice("running").count() == 0
            assert page.evaluate("() => window.isTheSamePage"), "nothing was loaded again"
    finally:
        steps.release(len(rows))
        under_way.result(60)


def test_a_map_and_its_comparison_fit_a_narrow_dark_page(driver, serve, pictures):
    def triage(node, prompt, context):
        return Outcome.fail("no such ticket: " + "0123456789" * 12) if context["ticket"] == "42" else "shipping " * 40

    server = serve()
    for name, backend in (("triage", triage), ("better", lambda prompt: "billing")):
        rows = [{"ticket": str(number), "customer": "a-name-without-any-blank-in-it" * 3} for number in (41, 42)]
        pipeline = Pipeline(TRIAGE.replace('"ticket"', '"ticket, customer"'), backend=backend)
        pipeline.map(rows, map_dir=server.root / name, outputs=["last_response"], durability="fast", wait=True)
    with open_page(driver, server.line, width=400, dark=True) as page:
        page.locator("tr[data-run=triage]").click()
        page.locator(".am-table tr[data-place]").nth(1).wait_for()
        page.screenshot(path=str(pictures / "page_map_narrow_dark.png"), full_page=True)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
        page.locator(".ap-fold summary", has_text="Compare with another map").click()
        page.get_by_label("The map to compare with").select_option("better")
        page.locator(".ap-fold .am-table .is-outcome", has_text="failed: no such ticket").wait_for()
        page.screenshot(path=str(pictures / "page_map_compared_narrow_dark.png"), full_page=True)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"


def test_an_evaluation_shows_its_verdict_and_opens_the_runs_of_its_rows(driver, serve, pictures):
    def triage(node, prompt, context):
        return Outcome.fail("no such ticket") if context["ticket"] == "42" else "billing"

    server = serve()
    rows = [{"id": f"t{ticket}", "ticket": ticket, "expected": "billing"} for ticket in ("41", "42", "43")]
    pipeline = Pipeline(TRIAGE, backend=triage)
    pipeline.evaluate(rows, equals(), repeat=2, map_dir=server.root / "scored", durability="fast", wait=True)
    for width, dark in ((1366, False), (640, True)):
        with open_page(driver, server.line, width=width, dark=dark) as page:
            page.locator("tr[data-run=scored]").click()
            page.locator(".am-table tr[data-place]").nth(2).wait_for()
            assert (
                page.locator(".ap-map-line")
                .inner_text()
                .startswith("3 rows \N{MULTIPLICATION SIGN} 2   equals 2 of 3 = 67 %")
            )
            assert page.locator(".am-table tr[data-place] td:first-child").all_inner_texts() == ["t42", "t41", "t43"]
            assert page.locator(".am-table td.is-dots").all_inner_texts() == ["○○", "●●", "●●"]
            assert page.locator(".ap-fold", has_text="Compare with another map").count() == 0
            page.locator(".am-drawing .edge-label").first.wait_for()
            page.keyboard.press("j")
            page.keyboard.press("Enter")
            page.locator(".am-beside [data-node=classify].state-fail").wait_for()
            page.screenshot(path=str(pictures / f"page_evaluation_{width}.png"), full_page=True)
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
            page.keyboard.press("j")
            page.locator(".am-beside [data-node=classify].state-success").wait_for()
            page.keyboard.press("Escape")
            assert page.locator(".am-beside").is_hidden()


def test_the_inputs_tags_and_id_of_a_run_are_in_its_row_and_its_header(driver, serve, pictures):
    server = serve()
    for name, ticket in (("first", "I was charged twice for one order"), ("second", "refund")):
        Pipeline(TRIAGE, backend="simulated").run(
            params={"ticket": ticket}, logs_root=server.root / name, durability="fast", wait=True
        )
    runs(server.root).where(text="charged").tag("billing")
    for width, dark in ((1366, False), (640, True)):
        with open_page(driver, server.line, width=width, dark=dark) as page:
            row = page.locator("tr[data-run=first]")
            row.wait_for()
            if width > 1000:
                assert row.locator("[data-column=inputs]").inner_text() == "ticket=I was charged twice for one order"
                assert row.locator(".ah-tag").inner_text() == "billing"
            page.get_by_label("Filter the runs by any text").fill("charged billing")
            page.get_by_text("1 of 2 runs").wait_for()
            page.screenshot(path=str(pictures / f"page_runs_{width}.png"))
            row.click()
            head = page.locator(".ap-facts")
            head.locator(".ap-inputs", has_text="ticket=I was charged twice for one order").wait_for()
            assert head.locator(".ap-id").inner_text() == "first"
            assert head.locator(".ah-tag").inner_text() == "billing"
            page.screenshot(path=str(pictures / f"page_run_head_{width}.png"))
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
    with driver.quiet_page(width=320, height=500) as page:
        page.goto(server.line.replace("#token=", "#sidebar&token="))
        item = page.locator("[data-run=first]")
        item.wait_for()
        assert "ticket=I was charged twice for one order" in item.text_content()
        assert "#billing" in item.text_content()
        page.screenshot(path=str(pictures / "sidebar_inputs.png"))
