"""The example that passes web hooks on: to ntfy, to Teams and by mail."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from standardwebhooks import Webhook

from holdfast.deployment.settings import HOME
from hook_receiver import SECRET

HOOK = json.dumps({"type": "run.ended", "data": {"id": "nightly-1", "event": 1}})
SAID = "nightly-1: run.ended"


class Post(BaseHTTPRequestHandler):
    """Any service that takes a POST; it answers 500 if the path says so."""

    got: list[bytes]

    def do_POST(self) -> None:
        self.got.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(500 if self.path == "/broken" else 200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def service() -> Iterator[tuple[str, list[bytes]]]:
    class Taking(Post):
        got = []  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", Taking.got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def post_office() -> Iterator[tuple[str, list[bytes]]]:
    """The least of a mail server, for one message."""
    got: list[bytes] = []
    answers = {b"EHLO": b"250 hello", b"DATA": b"354 go on", b"QUIT": b"221 bye"}
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listening.accept()[0] as one, one.makefile("rwb") as stream:
            stream.write(b"220 here\r\n")
            stream.flush()
            for line in stream:
                stream.write(answers.get(line[:4].upper(), b"250 fine") + b"\r\n")
                stream.flush()
                if line[:4].upper() == b"DATA":
                    got.extend(iter(stream.readline, b".\r\n"))
                    stream.write(b"250 taken\r\n")
                    stream.flush()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"127.0.0.1:{listening.getsockname()[1]}", got
    listening.close()
    thread.join(5)


@contextmanager
def relay(*way: str, **more: str) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = os.environ | {"HOLDFAST_WEBHOOK_SECRET": SECRET} | more
    command = [sys.executable, "-W", "error", str(HOME / "examples/relay.py"), str(port), *way]
    running = subprocess.Popen(command, env=environment)
    try:
        yield port
    finally:
        running.kill()
        running.wait()


def hook(port: int, secret: str = SECRET) -> int:
    """Send the hook as a run does; the status of the answer."""
    now = datetime.now(UTC)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign("msg_1", now, HOOK),
    }
    for _ in range(200):
        sender = HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            sender.request("POST", "/", HOOK, headers)
            return sender.getresponse().status
        except ConnectionRefusedError:
            threading.Event().wait(0.05)
        finally:
            sender.close()
    raise AssertionError("it never listened")


def test_a_signed_hook_is_a_line_at_ntfy_and_what_is_not_signed_or_taken_is_none() -> None:
    with service() as (address, got), relay("ntfy", f"{address}/topic") as port:
        assert hook(port, SECRET.replace("M", "N")) == 401 and not got
        assert hook(port) == 204
        assert got == [SAID.encode()]
        with relay("ntfy", f"{address}/broken") as other:
            assert hook(other) == 502, "so that it comes again"


@pytest.mark.parametrize("way", ["teams", "mail"])
def test_the_same_hook_is_a_card_of_teams_or_a_mail(way: str) -> None:
    if way == "teams":
        with service() as (address, got), relay(way, address) as port:
            assert hook(port) == 204
        card = json.loads(got[0])["attachments"][0]["content"]
        assert card["body"][0]["text"] == SAID
        return
    with post_office() as (address, got), relay(way, "ops@example.com", SMTP=address) as port:
        assert hook(port) == 204
    assert f"Subject: {SAID}\r\n".encode() in got and b"To: ops@example.com\r\n" in got
