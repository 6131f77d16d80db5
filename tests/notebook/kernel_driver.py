"""A kernel driven by bare protocol messages, as a front-end would: cells, widgets, clicks, Stop."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from queue import Empty
from typing import Any
from unittest.mock import patch

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

from tests import warm

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS = 30.0


class Cell:
    """An executed cell: what it showed, by message type, and its reply once it has ended."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.messages: list[dict[str, Any]] = []
        self.reply: dict[str, Any] | None = None
        self.is_idle = False

    @property
    def error(self) -> str:
        """``Name: value`` of the exception that ended it, or empty."""
        content = (self.reply or {}).get("content", {})
        return f"{content['ename']}: {content['evalue']}" if content.get("status") == "error" else ""

    def outputs(self, *kinds: str) -> list[dict[str, Any]]:
        return [message["content"] for message in self.messages if message["msg_type"] in kinds]

    @property
    def text(self) -> str:
        """Everything that reads as text."""
        streams = [content["text"] for content in self.outputs("stream")]
        shown = self.outputs("execute_result", "display_data")
        return "".join(streams) + "".join(content["data"].get("text/plain", "") for content in shown)


class Kernel:
    """A running kernel and everything it has said.

    Unless it is cold, its process has made the imports before it began.

    Attributes:
        widgets: State of every open widget, by comm id.
        messages: All of its broadcasts.
    """

    def __init__(self, python: Path, folder: Path, *, is_cold: bool = False) -> None:
        spec = KernelSpec(argv=[str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"])
        self._manager = KernelManager(connection_file=str(folder / "kernel.json"))
        self._manager._kernel_spec = spec
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "IPYTHONDIR": str(folder / "ipython")}
        environment.pop("ATTRACTOR_LIVE", None)
        with nullcontext() if is_cold else patch("jupyter_client.launcher.Popen", warm.Kernel):
            self._manager.start_kernel(cwd=str(folder), env=environment)
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=SECONDS)
        self.widgets: dict[str, dict[str, Any]] = {}
        self.messages: list[dict[str, Any]] = []
        self._cells: dict[str, Cell] = {}

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def start(self, code: str, *, is_attended: bool = True) -> Cell:
        """Execute a cell without waiting for it."""
        cell = Cell(self._client.execute(code, allow_stdin=is_attended))
        self._cells[cell.message_id] = cell
        return cell

    def run(self, code: str, *, is_attended: bool = True) -> Cell:
        """Execute a cell to its end; it must succeed."""
        cell = self.wait(self.start(code, is_attended=is_attended))
        assert not cell.error, cell.error
        return cell

    def wait(self, cell: Cell) -> Cell:
        self.wait_until(lambda: cell.is_idle and cell.reply is not None, "the cell to end")
        return cell

    def complete(self, code: str) -> list[str]:
        """The offers of Tab at the end of a cell."""
        return self._client.complete(code, reply=True, timeout=SECONDS)["content"]["matches"]

    def inspect(self, code: str) -> str:
        """The text of Shift-Tab at the end of a cell."""
        content = self._client.inspect(code, reply=True, timeout=SECONDS)["content"]
        return re.sub(r"\x1b\[[0-9;]*m", "", content["data"]["text/plain"])

    def wait_until(self, is_true: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
        """Read messages until something is true; return it."""
        give_up = time.monotonic() + seconds
        while not (value := is_true()):
            if time.monotonic() > give_up:
                raise TimeoutError(f"waited {seconds} s for {what}; widgets: {self.descriptions}")
            self._read()
        return value

    def _read(self) -> None:
        with suppress(Empty):
            self._take(self._client.get_iopub_msg(timeout=0.05))
        with suppress(Empty):
            while True:
                reply = self._client.get_shell_msg(timeout=0)
                cell = self._cells.get(reply["parent_header"].get("msg_id", ""))
                if cell is not None:
                    cell.reply = reply

    def _take(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        content = message["content"]
        match message["msg_type"]:
            case "comm_open":
                self.widgets[content["comm_id"]] = dict(content["data"].get("state", {}))
            case "comm_msg" if content["data"].get("method") == "update":
                self.widgets.setdefault(content["comm_id"], {}).update(content["data"]["state"])
            case "comm_close":
                self.widgets.pop(content["comm_id"], None)
            case _:
                pass
        cell = self._cells.get(message["parent_header"].get("msg_id", ""))
        if cell is not None:
            cell.messages.append(message)
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                cell.is_idle = True

    # -- what a person sees and does -------------------------------------------------------------------

    @property
    def descriptions(self) -> dict[tuple[str, str, str], str]:
        """The labels of the buttons on the open cards, by comm id, question and key."""
        return {
            (comm_id, gate["key"], choice["key"]): choice["label"]
            for comm_id, state in self.widgets.items()
            for gate in state.get("gates", ())
            for choice in gate["choices"]
        }

    def wait_for_button(self, text: str) -> tuple[str, str, str]:
        """The address of a card's button, once it is there: comm id, question and key."""
        return self.wait_until(
            lambda: next((place for place, label in self.descriptions.items() if label == text), ()), f"button {text}"
        )

    def click(self, text: str, *, subshell_id: str = "") -> None:
        """Say what a card says when its button is clicked, once the button is there."""
        comm_id, gate, key = self.wait_for_button(text)
        answer = {"kind": "answer", "gate": gate, "choice": key, "text": "", "form": {}}
        self.send(comm_id, answer, subshell_id=subshell_id)

    def graph_view(self) -> tuple[str, dict[str, Any]]:
        """Comm id and state of the live graph."""
        return self.wait_until(
            lambda: next((item for item in self.widgets.items() if "svg" in item[1]), None), "the live graph"
        )

    def send(self, comm_id: str, content: dict[str, Any], *, subshell_id: str = "") -> None:
        """Send a widget's custom message."""
        data = {"comm_id": comm_id, "data": {"method": "custom", "content": content}}
        message = self._client.session.msg("comm_msg", data)
        if subshell_id:
            message["header"]["subshell_id"] = subshell_id
        self._client.shell_channel.send(message)

    def open_subshell(self) -> str:
        """Open a subshell, as JupyterLab does for widgets; its id."""
        message = self._client.session.msg("create_subshell_request", {})
        self._client.control_channel.send(message)
        while True:
            reply = self._client.get_control_msg(timeout=SECONDS)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return reply["content"]["subshell_id"]

    def press_stop(self) -> None:
        """Interrupt the kernel as the Stop button of a front-end does."""
        self._manager.interrupt_kernel()
