"""Requests of an editor's page about a text: the state, forms, changes; nothing is kept between requests."""

import base64

TEXT = """digraph release {
    start [shape=Mdiamond]
    plan  [label="Plän \U0001f600", prompt="Plan it",
           max_retries=2]   // think first
    done  [shape=Msquare]
    start -> plan -> done [weight=2]
}"""


def edit(client, text, /, **message):
    reply = client.post("/edit", {"source": text, **({"message": message} if message else {})})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_without_a_message_it_says_all_that_is_shown_and_where_it_stands(client):
    said = edit(client, TEXT)
    assert said["state"]["svg"].startswith("<svg")
    assert said["state"]["nodes"] == ["start", "plan", "done"]
    assert (said["source"], said["replies"], said["diagnostics"]) == ("", [], [])
    by_node = {place["node"]: place for place in said["places"] if "node" in place}
    plan = by_node["plan"]
    assert (plan["line"], plan["column"], plan["end_line"], plan["end_column"]) == (3, 5, 3, 9)
    assert (plan["whole"]["line"], plan["whole"]["end_line"], plan["whole"]["end_column"]) == (3, 4, 25)
    assert [place["edge"] for place in said["places"] if "edge" in place] == [0, 1]


def test_a_change_is_the_smallest_and_the_next_one_is_of_another_request(client):
    said = edit(client, TEXT, kind="set", target={"node": "plan"}, name="prompt", value="Plan it well")
    assert said["source"] == TEXT.replace("Plan it", "Plan it well")
    assert said["replies"][0]["kind"] == "form"
    said = edit(client, said["source"], kind="rename", node="plan", id="think")
    assert "start -> think -> done" in said["source"]
    said = edit(client, said["source"], kind="add_node", id="test", after="think")
    assert "test" in said["state"]["nodes"]
    said = edit(client, said["source"], kind="add_edge", source="think", target="test")
    said = edit(client, said["source"], kind="remove", target={"node": "test"})
    assert said["source"] == TEXT.replace("Plan it", "Plan it well").replace("plan ", "think ").replace(
        "> plan", "> think"
    )


def test_a_question_changes_nothing(client):
    for message in (
        {"kind": "form", "target": {"node": "plan"}},
        {"kind": "check", "target": {"node": "plan"}, "name": "max_retries", "text": "many"},
    ):
        said = edit(client, TEXT, **message)
        assert (said["state"], said["source"]) == (None, "")
        assert said["replies"]


def test_findings_are_mended_one_by_one(client):
    torn = TEXT.replace("start -> plan", "start -> plna")
    state = edit(client, torn)["state"]
    number = next(found["number"] for found in state["findings"] if found["can_fix"])
    said = edit(client, torn, kind="fix", number=number, version=state["version"])
    assert said["source"] == TEXT
    assert said["state"]["version"] == 0, "the next fix is asked of another service"


def test_what_cannot_be_is_said_and_changes_nothing(client):
    for message in (
        {"kind": "remove", "target": {"node": "none"}},
        {"kind": "rename", "node": "plan", "id": "start"},
        {"kind": "save"},
        {"kind": "undo"},
        {"kind": "nothing like that"},
        {"kind": ["x"]},
        {"x": 1},
    ):
        said = edit(client, TEXT, **message)
        assert (said["state"], said["source"], said["replies"][0]["is_error"]) == (None, "", True)


def test_a_text_that_cannot_be_read_has_its_mistake_and_no_state(client):
    said = edit(client, "digraph {")
    assert said["state"] is None
    assert said["diagnostics"][0]["rule"] == "syntax"
    assert said["diagnostics"][0]["line"] == 1


def test_a_secret_is_never_sent_back(client, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sk-0123456789abcdefghij")
    secret = TEXT.replace("Plan it", "sk-0123456789abcdefghij")
    reply = client.post(
        "/edit",
        {"source": secret, "message": {"kind": "set", "target": {"node": "plan"}, "name": "label", "value": "X"}},
    )
    assert "sk-0123456789" not in reply.text
    assert "secret" in reply.json()["replies"][0]["words"]
    assert reply.json()["source"] == ""
    assert "sk-0123456789" not in client.post("/edit", {"source": secret}).text


def test_a_text_is_drawn_to_take_along(client):
    def drawn(**wish):
        return client.post("/picture", {"source": TEXT, **wish}).json()

    assert drawn()["content"].startswith("<svg")
    assert drawn()["name"] == "release"
    assert "flowchart" in drawn(format="mermaid")["content"]
    png = drawn(format="png", theme="dark")
    assert (png["media_type"], base64.b64decode(png["content"])[:4]) == ("image/png", b"\x89PNG")
    assert client.post("/picture", {"source": "digraph {"}).status_code == 422
