"""The stock under the root of the fuzzed server, and requests that are led to it or broken on their way."""

from __future__ import annotations

import json
import shutil

FRAME = "digraph demo {{ start [shape=Mdiamond]\n done [shape=Msquare]\n {body} }}"
PLAIN = FRAME.format(body='plan [prompt="Plan it"]\n start -> plan -> done')
GATE = FRAME.format(
    body='review [shape=hexagon, label="Ship it?"]\n fix [prompt="Fix it"]\n start -> review\n'
    ' review -> done [label="[A] Approve"]\n review -> fix [label="[R] Reject"]\n fix -> review'
)
RESTART = FRAME.format(
    body='plan [prompt="Plan"]\n again [shape=hexagon, label="Again?"]\n start -> plan -> again\n'
    ' again -> done [label="[N] No"]\n again -> plan [label="[Y] Yes", loop_restart=true]'
)
FAN = FRAME.format(
    body="fan [shape=component]\n a [prompt=A]\n b [prompt=B]\n join [shape=tripleoctagon]\n"
    " start -> fan\n fan -> a -> join\n fan -> b -> join\n join -> done"
)
FAILS = FRAME.format(body='plan [prompt="Plan"]\n start -> plan\n plan -> done [condition="outcome=fail"]')
TOOL = FRAME.format(body='touch [shape=parallelogram, tool_command="touch made"]\n start -> touch -> done')
CHILD = FRAME.format(body='boss [type="pipeline", pipeline.dotfile="../../etc/passwd"]\n start -> boss -> done')
SOURCES = (PLAIN, GATE, RESTART, FAN, FAILS, TOOL, CHILD)
WAITING = 3
GARBAGE = (b"", b"{", b"[]", b"null", b'"', b"\xff\xfe", b"{}" * 10, b"[" * 200, b'{"a":1,"a":2}', b'{"source": NaN}')


class Stock:
    """The runs of a fuzzed server, by what can be asked of them."""

    def __init__(self, base, root, session):
        self.base = base
        self.root = root
        self.session = session
        self.ended = []
        self.waiting = []
        self.ids = []
        self.pools = {}

    def fill(self):
        """Have runs of every kind; the last ones are broken by hand."""
        self.ended = [self._ended(source) for source in (PLAIN, FAN, FAILS)]
        big = self._ended(PLAIN, params={"big": "x" * 200_000}, session=True)
        restarted = self._restarted()
        self.ended += [big, restarted]
        damaged, cut, empty = self.root / "damaged", self.root / "cut", self.root / "empty"
        for copy in (damaged, cut):
            shutil.copytree(self.root / self.ended[0], copy)
        log = damaged / "events.jsonl"
        log.write_bytes(log.read_bytes().replace(b"StageStarted", b"StageStarteX", 1))
        (cut / "events.jsonl").write_bytes((cut / "events.jsonl").read_bytes()[:100])
        empty.mkdir()
        (self.root / "a-file").write_text("no run", "utf-8")
        (self.root / "a-link").symlink_to(self.root / self.ended[0])
        odd = ["damaged", "cut", "empty", "a-file", "a-link"]
        [artifact] = self.get(f"/pipelines/{big}/artifacts")["artifacts"]
        self.ids = [*self.ended, *odd]
        self.pools = {
            "qid": ["review:1", "review", "again:1", "plan"],
            "node": ["plan", "review", "fan", "a", "start", "done", "again", "nobody"],
            "name": ["prompt.md", "response.md", "status.json", "visits", "../manifest.json", "%2e%2e/x", "nobody.md"],
            "artifact": [artifact["id"], artifact["id"][:8], "nobody"],
            "edge": ["0", "1", "99", "plan -> done", "plan->done#2"],
            "file": ["prompt.md", "..", ""],
            "last_event_id": ["0", "3", "0.1", "0.5", "1.2", "0.99999"],
        }
        self.refill()

    def refill(self):
        """Have runs that wait; requests answer and stop them."""
        if not self.ended:
            return
        still = [run_id for run_id in self.waiting if self._status(run_id) == "waiting"]
        gone = [run_id for run_id in self.waiting if run_id not in still]
        self.ids += gone
        while len(still) < WAITING:
            still.append(self._submitted(GATE))
        self.waiting = still

    def steer(self, case, dice):
        """Put what is there in the place of what was made up, most of the time."""
        is_stream = case.operation.path.endswith("/events")
        known = {**self.pools, "id": self.ended if is_stream else [*self.ids, *self.waiting * 3]}
        for place in (case.path_parameters, case.query):
            for name in place or {}:
                if name in known and dice.random() < 0.8:
                    place[name] = dice.choice(known[name])
        if is_stream and dice.random() < 0.5:
            case.headers["Last-Event-ID"] = dice.choice(self.pools["last_event_id"])
        if isinstance(case.body, dict):
            self._steer_body(case, dice)

    def _steer_body(self, case, dice):
        if "source" in case.body and dice.random() < 0.4:
            text = dice.choice(SOURCES)
            if dice.random() < 0.7:  # most are no pipelines any more: each that is one leaves a run
                start = dice.randrange(len(text))
                text = (
                    text[:start]
                    + dice.choice(["", "{", '"', "\x00", "\u202e", "->"])
                    + text[start + dice.randrange(1, 9) :]
                )
            case.body["source"] = text
        for name, values in {
            "node": self.pools["node"],
            "rewind_to": self.pools["node"],
            "choice": ["A", "R", "[A] Approve", "done", "?"],
            "pipeline": [*self.waiting, "nobody"],
            "question": ["review", "review:1", "nobody"],
            "trust": ["0" * 64],
        }.items():
            if name in case.body and dice.random() < 0.5:
                case.body[name] = dice.choice(values)

    def broken(self, case, dice):
        """A request that differs from its case: a torn body, another type, a key used before."""
        headers = {"Idempotency-Key": dice.choice(["k1", "k2", "k3", "x" * 255])}
        if case.method != "POST":
            return {"params": {dice.choice(["limit", "x", "ticket"]): dice.choice(["", "1", "\u00e9", "1e9"])}}
        if dice.random() < 0.5:
            return {"headers": headers}
        kind = dice.choice(["application/json", "application/json; charset=utf-8", "text/plain", "application/xml"])
        body = dice.choice([*GARBAGE, json.dumps({"source": PLAIN}).encode()[: dice.randrange(1, 90)]])
        return {"headers": {"Content-Type": kind}, "data": body}

    # -- asking ---------------------------------------------------------------------------------------

    def get(self, path):
        answer = self.session.get(f"{self.base}{path}", timeout=60)
        answer.raise_for_status()
        return answer.json()

    def _post(self, path, plain):
        answer = self.session.post(f"{self.base}{path}", json=plain, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def _status(self, run_id):
        return self.get(f"/pipelines/{run_id}")["status"]

    def _submitted(self, source, **more):
        return self._post("/pipelines", {"source": source, "durability": "fast", **more})["id"]

    def _ended(self, source, **more):
        run_id = self._submitted(source, **more)
        self.session.get(f"{self.base}/pipelines/{run_id}/events", timeout=60).raise_for_status()
        return run_id

    def _restarted(self):
        run_id = self._submitted(RESTART)
        for choice in ("Y", "N"):
            while not (asked := self.get(f"/pipelines/{run_id}/questions")["questions"]):
                pass
            self._post(f"/pipelines/{run_id}/questions/{asked[0]['id']}/answer", {"choice": choice})
        self.session.get(f"{self.base}/pipelines/{run_id}/events", timeout=60).raise_for_status()
        return run_id
