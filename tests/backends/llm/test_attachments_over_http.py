"""Images and PDFs arrive at providers as their own interfaces want them (issue 16)."""

import base64
import json

import pytest

from attractor_nb import Attachment, Pipeline, ProviderBackend
from attractor_nb.errors import OptionError
from attractor_nb.model.events import RunWarning

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
PDF = b"%PDF-1.7\n" + bytes(range(64))
GRAPH = """digraph {
    start [shape=Mdiamond] look [prompt="What is in $photo?", attach="${photo}, ${report}"]
    done [shape=Msquare]  start -> look -> done }"""
GIVEN = {"photo": Attachment(PNG, "cat.png"), "report": Attachment(PDF, "report.pdf")}


def b64(data):
    return base64.b64encode(data).decode()


@pytest.fixture
def look(serve, backend_for, tmp_path):
    def run(shape):
        server = serve()
        pipeline = Pipeline(GRAPH, backend=backend_for(server, shape))
        result = pipeline.run(wait=True, params=GIVEN, logs_root=tmp_path / "run")
        assert result.status == "success", result.reason
        return server, result

    return run


def test_openai_chat_is_sent_the_image_and_the_file(look):
    server, _ = look("openai")
    text, image, file = server.asked[0].body["messages"][-1]["content"]
    assert text["type"] == "text"
    assert image["image_url"]["url"] == f"data:image/png;base64,{b64(PNG)}"
    assert file["type"] == "file"
    assert file["file"]["file_data"] == f"data:application/pdf;base64,{b64(PDF)}"


def test_anthropic_is_sent_the_image_and_the_document(look):
    server, _ = look("anthropic")
    _, image, document = server.asked[0].body["messages"][-1]["content"]
    assert image["type"] == "image"
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": b64(PNG)}
    assert document["type"] == "document"
    assert document["source"] == {"type": "base64", "media_type": "application/pdf", "data": b64(PDF)}


def test_google_is_sent_both_inline(look):
    server, _ = look("google")
    sent = json.dumps(server.asked[0].body)
    assert "image/png" in sent
    assert "application/pdf" in sent


def test_the_prompt_and_the_request_name_what_is_attached_and_hold_no_bytes(look, tmp_path):
    _, result = look("anthropic")
    prompt = result["look"].prompt
    assert "1. cat.png (image/png, 72 bytes, sha256 " in prompt
    assert "2. report.pdf (application/pdf, 73 bytes, sha256 " in prompt
    assert "What is in cat.png (image/png" in prompt
    assert b64(PNG)[:40] not in prompt
    request = json.loads((tmp_path / "run" / "look" / "request.json").read_text())
    assert [each["name"] for each in request["attachments"]] == ["cat.png", "report.pdf"]
    assert b64(PNG)[:40] not in json.dumps(request)
    assert request["estimated_input_tokens"] > 3000


def test_a_model_that_takes_text_alone_is_refused_before_anything_is_asked(serve, tmp_path):
    server = serve()
    backend = ProviderBackend("deepseek-chat", base_url=server.base_url("openai"), provider="openai")
    with pytest.raises(OptionError, match="look attaches files, but openai:deepseek-chat accepts only text"):
        Pipeline(GRAPH, backend=backend).run(params=GIVEN, logs_root=tmp_path / "run")
    assert not server.asked
    assert not (tmp_path / "run").exists()


def test_of_a_model_that_nobody_knows_there_is_a_warning(serve, tmp_path):
    server = serve()
    backend = ProviderBackend("my-model", base_url=server.base_url("openai"), provider="openai")
    run = Pipeline(GRAPH, backend=backend).run(params=GIVEN, logs_root=tmp_path / "run")
    assert run.result(60).status == "success"
    (warning,) = (event.message for event in run.events() if isinstance(event, RunWarning))
    assert warning == "look: it is unknown whether openai:my-model accepts images and documents"


def test_a_thread_keeps_the_name_and_not_the_picture(serve, backend_for, tmp_path):
    server = serve()
    graph = """digraph { default_fidelity=full
        start [shape=Mdiamond] look [prompt="What is it?", attach="${photo}", thread_id=one]
        say [prompt="Say it again.", thread_id=one] done [shape=Msquare] start -> look -> say -> done }"""
    Pipeline(graph, backend=backend_for(server)).run(
        wait=True, params={"photo": GIVEN["photo"]}, logs_root=tmp_path / "run"
    )
    assert b64(PNG) in json.dumps(server.asked[0].body)
    second = json.dumps(server.asked[1].body)
    assert "cat.png" in second
    assert b64(PNG) not in second


def test_a_node_with_tools_is_shown_it_too(serve, backend_for, tmp_path):
    server = serve()
    graph = GRAPH.replace("attach=", "allowed_tools=read, attach=")
    backend = backend_for(server, "anthropic")
    result = Pipeline(graph, backend=backend).run(wait=True, params=GIVEN, logs_root=tmp_path / "run", workdir=tmp_path)
    assert result.status == "success", result.reason
    assert b64(PDF) in json.dumps(server.asked[0].body)
