"""Fork, rewind and pin by a click, message by message, on each ipykernel that people have."""

from __future__ import annotations

PIPELINE = """%%attractor talk --quiet
digraph talk {
  start [shape=Mdiamond]
  draft [prompt="Draft it"]
  gate [shape=hexagon, label="Good?"]
  done [shape=Msquare]
  start -> draft -> gate
  gate -> done [label="[Y] Yes"]
  gate -> draft [label="[N] No"]
}"""


def start(kernel):
    """The widget of a run that waits at its gate."""
    kernel.run("%load_ext attractor_nb")
    kernel.run(PIPELINE)
    kernel.run("review = talk.run(backend=lambda prompt: f'said {prompt[-8:]}')")
    kernel.wait_for_button("Yes")
    comm_id, _ = kernel.graph_view()
    return comm_id


def reply(kernel, comm_id, wanted, **request):
    """The answer of a widget."""
    seen = len(kernel.messages)
    kernel.send(comm_id, request)

    def answered():
        return next(
            (
                message["content"]["data"]["content"]
                for message in kernel.messages[seen:]
                if message["msg_type"] == "comm_msg"
                and message["content"]["comm_id"] == comm_id
                and message["content"]["data"].get("content", {}).get("kind") == wanted
            ),
            None,
        )

    return kernel.wait_until(answered, f"an answer of kind {wanted}")


def test_a_fork_by_a_click_has_its_view_beneath_and_its_gate_there(any_kernel):
    kernel = any_kernel
    comm_id = start(kernel)
    stage = reply(kernel, comm_id, "stage", kind="inspect", node="draft")
    assert stage["actions"]["fork"]["call"] == 'fork = review.fork("draft")'
    assert "waits at gate" in stage["actions"]["rewind"]["why"]
    request = {"kind": "act", "call": "fork", "node": "draft", "visit": 1, "prompt": "Sketch it", "key": "k"}
    acted = reply(kernel, comm_id, "acted", **request)
    assert acted["said"]["call"].startswith('fork = Run.load(".attractor/runs/')
    assert reply(kernel, comm_id, "acted", **request)["said"] == acted["said"], "sent twice, done once"
    ((place,),) = [[one["place"] for one in kernel.widgets[comm_id]["beneath"]]]
    beneath = next(each for each, state in kernel.widgets.items() if state.get("place") == place)
    kernel.wait_until(lambda: kernel.widgets[beneath].get("gates"), "the gate of the fork")
    (gate,) = kernel.widgets[beneath]["gates"]
    answer = {"kind": "answer", "gate": gate["key"], "choice": gate["choices"][0]["key"], "text": "", "form": {}}
    kernel.send(beneath, answer)
    kernel.run("from attractor_nb import Run")
    status = f"{acted['said']['call'].replace('fork', 'kernel_fork', 1)}; print(kernel_fork.status)"
    kernel.wait_until(lambda: "completed" in kernel.run(status).text, "the fork to end")
    assert "said ketch it" in kernel.run("print(kernel_fork['draft'].response)").text
    assert "waiting" in kernel.run("print(review.status)").text, "its parent is as it was"


def test_a_rewind_by_a_click_goes_on_in_the_same_run(any_kernel):
    kernel = any_kernel
    comm_id = start(kernel)
    kernel.run("review.answer('gate', 'Yes'); review.result().status")
    kernel.wait_until(
        lambda: (
            reply(kernel, comm_id, "acted", kind="act", call="look", node="draft", visit=1)["actions"]["rewind"]["why"]
            == ""
        ),
        "the run to have ended",
    )
    acted = reply(kernel, comm_id, "acted", kind="act", call="rewind", node="draft", visit=1, key="r")
    assert acted["said"]["words"] == "Rewound to before draft, visit 1: the run is resumed."
    kernel.wait_until(lambda: len(kernel.widgets[comm_id].get("beneath", ())) == 1, "the view beneath")
    asked = "print([visit.number for visit in type(review).load(review.logs_root).journal().visits_of('draft')])"
    kernel.wait_until(lambda: kernel.run(asked).text.strip() == "[2]", "the visit after the rewind")


def test_a_pin_by_a_click_is_the_pin_of_the_call(kernel):
    comm_id = start(kernel)
    acted = reply(kernel, comm_id, "acted", kind="act", call="pin", node="draft", visit=1)
    assert acted["actions"]["is_pinned"] is True
    assert kernel.run("print(review.debugger.pins)").text.strip() == "{'draft': 'pinned to success'}"
    refused = reply(kernel, comm_id, "acted", kind="act", call="pin", node="start", visit=1)
    assert "start does nothing" in refused["problem"]
