"""The way into an editor: the real python-lsp-server, over stdio, shows what mllint finds in a buffer."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pylsp")

TIMEOUT = 60


class Client:
    """Just enough of a language client: numbered requests, notifications, messages in."""

    def __init__(self, server: subprocess.Popen[bytes]) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        self._in, self._out = server.stdout, server.stdin
        self._requests = 0

    def notify(self, method: str, **parameters: Any) -> None:
        self._send({"method": method, "params": parameters})

    def request(self, method: str, **parameters: Any) -> Any:
        self._requests += 1
        self._send({"id": self._requests, "method": method, "params": parameters})
        for message in self._messages():
            if message.get("id") == self._requests and "method" not in message:
                return message["result"]
        raise AssertionError(f"no answer to {method}")

    def diagnostics(self, uri: str) -> list[dict[str, Any]]:
        """The next diagnostics that the server publishes for a document."""
        for message in self._messages():
            if message.get("method") == "textDocument/publishDiagnostics":
                parameters = message["params"]
                if parameters["uri"] == uri:
                    return list(parameters["diagnostics"])
        raise AssertionError("no diagnostics")

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._out.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._out.flush()

    def _messages(self) -> Iterator[dict[str, Any]]:
        while header := self._in.readline():
            if header.lower().startswith(b"content-length:"):
                length = int(header.partition(b":")[2])
            elif not header.strip():
                message = json.loads(self._in.read(length))
                if "id" in message and "method" in message:
                    # The server asks something (a progress token, a registration): agree.
                    self._send({"id": message["id"], "result": None})
                yield message


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    (tmp_path / "setup.cfg").write_text("[flake8]\n", encoding="utf-8")
    (tmp_path / "train.py").write_text("", encoding="utf-8")
    return tmp_path


@pytest.fixture
def client(workspace: Path) -> Iterator[Client]:
    """A server that has been told to use flake8 and nothing else, as an editor would tell it."""
    server = subprocess.Popen(
        [sys.executable, "-m", "pylsp"],
        cwd=workspace,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    # A server that says nothing must fail the test, not hang it.
    watchdog = threading.Timer(TIMEOUT, server.kill)
    watchdog.start()
    client = Client(server)
    client.request(
        "initialize",
        processId=None,
        rootUri=workspace.as_uri(),
        capabilities={},
        initializationOptions={"pylsp": {"configurationSources": ["flake8"], "plugins": PLUGINS}},
    )
    client.notify("initialized")
    client.notify("workspace/didChangeConfiguration", settings={"pylsp": {"plugins": PLUGINS}})
    yield client
    client.request("shutdown")
    client.notify("exit")
    server.wait()
    watchdog.cancel()


PLUGINS = {
    "flake8": {"enabled": True, "executable": str(Path(sys.executable).with_name("flake8"))},
    "pycodestyle": {"enabled": False},
    "pyflakes": {"enabled": False},
    "mccabe": {"enabled": False},
}


def test_the_buffer_of_an_editor_shows_a_finding(workspace: Path, client: Client) -> None:
    uri = (workspace / "train.py").as_uri()
    text = "import torch\n\nx = torch.zeros(3)\ns = 'é'\nif s:\n    x.cuda()\n"
    client.notify(
        "textDocument/didOpen",
        textDocument={"uri": uri, "languageId": "python", "version": 1, "text": text},
    )
    (found,) = client.diagnostics(uri)
    assert found["source"] == "flake8"
    assert found["code"] == "ML101"
    assert found["range"]["start"] == {"line": 5, "character": 4}
    assert "cuda()" in found["message"]

    mended = text.replace("x.cuda()", "x = x.cuda()")
    client.notify(
        "textDocument/didChange",
        textDocument={"uri": uri, "version": 2},
        contentChanges=[{"text": mended}],
    )
    assert client.diagnostics(uri) == []
