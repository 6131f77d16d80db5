"""Questions to people that are answered by requests (spec 6, 9.5; ruling 23)."""

from concurrent.futures import ThreadPoolExecutor

import pytest


@pytest.fixture
def waiting(client, sources):
    run_id = client.submit(sources.gate)
    asked = client.wait_for(run_id, "InterviewStarted")
    return run_id, asked["data"]["question_id"]


def test_a_pending_question_is_listed_with_its_choices(client, waiting):
    run_id, question_id = waiting
    [asked] = client.get(f"/pipelines/{run_id}/questions").json()["questions"]
    assert (asked["id"], asked["stage"], asked["text"]) == (question_id, "review", "Ship it?")
    assert [option["key"] for option in asked["options"]] == ["A", "R"]
    assert asked["is_answerable"]
    assert client.get("/questions").json()["questions"] == [asked]
    assert client.get(f"/pipelines/{run_id}").json()["status"] == "waiting"


def test_an_answer_is_durable_when_it_is_acknowledged_and_the_run_follows_it(client, waiting):
    run_id, question_id = waiting
    reply = client.post(f"/pipelines/{run_id}/questions/{question_id}/answer", {"choice": "A"})
    assert (reply.status_code, reply.json()["status"]) == (200, "accepted")
    [completed] = [one["data"] for one in client.events(run_id) if one["data"].get("type") == "InterviewCompleted"]
    assert (completed["label"], completed["answered_by"]) == ("[A] Approve", "ada (api)")
    assert client.get(f"/pipelines/{run_id}").json()["outcome"] == "success"
    assert client.get("/questions").json()["questions"] == []


GRACE = "g" * 43


@pytest.fixture
def shared(serving, root):
    """A server of two persons and one whose name is not known."""
    with serving(root, tokens={"ada": "t" * 43, "grace": GRACE, "": "n" * 43}) as found:
        yield found


@pytest.mark.parametrize("path", ["/answer", "/pipelines/{}/questions/review/answer"])
@pytest.mark.parametrize(
    ("token", "given", "recorded", "shown"),
    [
        ("g", {}, "grace (api)", "grace, over HTTP"),
        ("g", {"answered_by": "page"}, "grace (page)", "grace, on the page"),
        ("g", {"answered_by": "command line"}, "grace (command line)", "grace, at the command line"),
        ("g", {"answered_by": "ada (page)"}, "grace (page)", "grace, on the page"),
        ("g", {"answered_by": "ada"}, "grace (ada)", "grace (ada)"),
        ("g", {"answered_by": "ada (page"}, "grace (ada (page)", "grace (ada (page)"),
        ("n", {"answered_by": "page"}, "page", "a person, on the page"),
        ("n", {"answered_by": "ada (page)"}, "page", "a person, on the page"),
        ("n", {}, "api", "a call"),
    ],
)
def test_the_name_of_who_answers_is_that_of_the_token(shared, sources, path, token, given, recorded, shown):
    run_id = shared.submit(sources.gate)
    shared.wait_for(run_id, "InterviewStarted")
    reply = shared.post(
        path.format(run_id), {"choice": "A", **given}, headers={"Authorization": f"Bearer {token * 43}"}
    )
    assert reply.status_code == 200
    [completed] = [one["data"] for one in shared.events(run_id) if one["data"].get("type") == "InterviewCompleted"]
    assert completed["answered_by"] == recorded
    (answer,) = shared.get(f"/pipelines/{run_id}/answers").json()["answers"]
    assert answer["words"].startswith(f"Approve, by {shown}, after ")


def test_a_name_that_only_the_client_says_is_marked_as_such(shared, sources):
    run_id = shared.submit(sources.gate)
    shared.wait_for(run_id, "InterviewStarted")
    given = {"choice": "A", "answered_by": "Ada"}
    shared.post(f"/pipelines/{run_id}/questions/review/answer", given, headers={"Authorization": f"Bearer {'n' * 43}"})
    [completed] = [one["data"] for one in shared.events(run_id) if one["data"].get("type") == "InterviewCompleted"]
    assert completed["answered_by"] == "api (Ada)"


def test_a_wrong_token_answers_nothing_whoever_it_names(shared, sources):
    run_id = shared.submit(sources.gate)
    shared.wait_for(run_id, "InterviewStarted")
    for wrong in ("grace", GRACE[:-1], GRACE + "g", "t" * 42 + "g"):
        given = {"choice": "A", "answered_by": "grace (page)"}
        path = f"/pipelines/{run_id}/questions/review/answer"
        assert shared.post(path, given, headers={"Authorization": f"Bearer {wrong}"}).status_code == 401
    assert len(shared.get(f"/pipelines/{run_id}/questions").json()["questions"]) == 1


def test_a_wrong_answer_is_refused_and_the_question_still_waits(client, waiting):
    run_id, question_id = waiting
    reply = client.post(f"/pipelines/{run_id}/questions/{question_id}/answer", {"choice": "perhaps"})
    assert (reply.status_code, reply.json()["type"]) == (422, "urn:attractor-nb:problem:answer-refused")
    assert len(client.get(f"/pipelines/{run_id}/questions").json()["questions"]) == 1


def test_of_many_answers_at_once_exactly_one_counts(client, waiting):
    run_id, question_id = waiting
    path = f"/pipelines/{run_id}/questions/{question_id}/answer"
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: client.post(path, {"choice": "A"}).status_code, range(8)))
    assert replies.count(200) == 1
    assert set(replies) == {200, 409}
    kinds = [one["data"].get("type") for one in client.events(run_id)]
    assert kinds.count("InterviewCompleted") == 1


def test_who_comes_second_is_told_so(client, sources):
    run_id = client.submit(sources.gate)
    client.wait_for(run_id, "InterviewStarted")
    assert client.post(f"/pipelines/{run_id}/questions/review:1/answer", {"choice": "R"}).status_code == 200
    late = client.post(f"/pipelines/{run_id}/questions/review:1/answer", {"choice": "A"})
    assert (late.status_code, late.json()["type"]) == (409, "urn:attractor-nb:problem:already-answered")


def test_who_comes_when_the_run_is_over_is_told_so_too(client, sources):
    """The engine is gone, and the log knows: an answered question is answered, and not unknown."""
    run_id = client.submit(sources.gate)
    client.wait_for(run_id, "InterviewStarted")
    client.post(f"/pipelines/{run_id}/questions/review:1/answer", {"choice": "A"})
    client.ended(run_id)
    for name in ("review:1", "review"):
        late = client.post(f"/pipelines/{run_id}/questions/{name}/answer", {"choice": "A"})
        assert (late.status_code, late.json()["type"]) == (409, "urn:attractor-nb:problem:already-answered")
        assert "api" in late.json()["detail"]
    assert client.post(f"/pipelines/{run_id}/questions/other/answer", {"choice": "A"}).status_code == 404


def test_an_answer_that_is_sent_again_with_its_key_is_the_same_answer(client, waiting):
    run_id, question_id = waiting
    path = f"/pipelines/{run_id}/questions/{question_id}/answer"
    key = {"Idempotency-Key": "answer-1"}
    first = client.post(path, {"choice": "A"}, headers=key)
    again = client.post(path, {"choice": "A"}, headers=key)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()


def test_free_text_reaches_the_run(client, sources):
    source = sources.of('ask [shape=hexagon, label="Why?", human.type="freeform"]\n start -> ask -> done')
    run_id = client.submit(source)
    asked = client.wait_for(run_id, "InterviewStarted")["data"]
    reply = client.post(
        f"/pipelines/{run_id}/questions/{asked['question_id']}/answer", {"text": "because", "choice": ""}
    )
    if asked["kind"] == "freeform":
        assert reply.status_code == 200
    else:
        assert reply.status_code == 422


def test_gates_in_branches_wait_at_a_time_and_are_told_apart(client, sources):
    source = sources.of(
        'fan [shape=component]\n a [shape=hexagon, label="A?"]\n b [shape=hexagon, label="B?"]\n'
        " join [shape=tripleoctagon]\n start -> fan\n fan -> a\n fan -> b\n"
        ' a -> join [label="[Y] Yes"]\n b -> join [label="[Y] Yes"]\n join -> done'
    )
    run_id = client.submit(source)
    with client.stream(run_id) as found:
        kinds = []
        for one in found:
            kinds.append(one["data"].get("type"))
            if kinds.count("InterviewStarted") == 2:
                break
    ids = [asked["id"] for asked in client.get(f"/pipelines/{run_id}/questions").json()["questions"]]
    assert len(set(ids)) == 2
    for question_id in ids:
        path = f"/pipelines/{run_id}/questions/{question_id}/answer"
        assert client.post(path, {"choice": "Y"}).status_code == 200
    assert client.ended(run_id)["outcome"] == "success"
