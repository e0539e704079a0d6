"""An address of the web that is told of runs: it keeps what comes, and answers as it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from anthropic import Anthropic
from standardwebhooks import Webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@dataclass(frozen=True)
class Hook:
    headers: dict[str, str]
    body: bytes
    told: Any
    """What it said when it came, by the official library, which refuses what is minutes old."""

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Hooks:
    address: str = ""
    got: list[Hook] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    """Statuses of the next answers; then it is 204."""

    @property
    def types(self) -> list[str]:
        return [each.told["type"] for each in self.got]


@contextmanager
def hook_receiver(port: int = 0) -> Iterator[Hooks]:
    hooks = Hooks()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            named = {name.lower(): value for name, value in self.headers.items()}
            hooks.got.append(Hook(named, body, Webhook(SECRET).verify(body, named)))
            self.send_response(hooks.answers.pop(0) if hooks.answers else 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    hooks.address = f"http://127.0.0.1:{server.server_port}/hook"
    try:
        yield hooks
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def unwrap(hook: Hook, secret: str = SECRET) -> Any:
    """What the SDK of Anthropic reads of it, whose own hooks have the same headers."""
    client = Anthropic(api_key="none", webhook_key=secret)
    return client.beta.webhooks.unwrap(hook.body.decode(), headers=hook.headers)
