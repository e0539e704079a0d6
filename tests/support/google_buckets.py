"""A server of Google Cloud Storage on a free port of this machine, which counts, fails and refuses
as told.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from gcp_storage_emulator.handlers.buckets import create_bucket
from gcp_storage_emulator.handlers.objects import _checksums
from gcp_storage_emulator.server import RequestHandler, Router
from gcp_storage_emulator.storage import Storage

BUCKET = "kept"
logging.getLogger("gcp_storage_emulator").setLevel(logging.CRITICAL)


@dataclass
class GoogleBucket:
    """A served bucket, and what its server was asked."""

    address: str
    storage: Any
    asked: list[str] = field(default_factory=list)
    """Method and path of each request, without what it asks for."""
    broken: int = 0
    """So many requests are answered with 503."""
    denied: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find the server, and to look for no machine of Google's."""
        return {"STORAGE_EMULATOR_HOST": self.address, "NO_GCE_CHECK": "true"}

    def objects(self) -> dict[str, bytes]:
        """All that is in the bucket."""
        names = sorted(self.storage.objects.get(BUCKET, {}))
        return {each: self.storage.get_file(BUCKET, each) for each in names}

    def replace(self, name: str, content: bytes) -> None:
        """Write an object as others do."""
        self.storage.create_file(BUCKET, name, content, _checksums(content, {}))

    def remove(self, name: str) -> None:
        self.storage.objects[BUCKET].pop(name)
        self.storage._store.remove_file(f"{BUCKET}/{name}")

    def empty(self) -> None:
        """Forget everything but the bucket."""
        for name in self.objects():
            self.remove(name)
        self.broken, self.denied = 0, False
        self.asked.clear()

    def refusal(self, path: str) -> tuple[int, str] | None:
        """Return what is answered instead of what was asked for, in the service's words."""
        if self.denied:
            return 403, "nobody@example.com does not have storage.objects access to the bucket."
        if self.broken > 0:
            self.broken -= 1
            return 503, "We encountered an internal error. Please try again."
        if f"/b/{BUCKET}/" not in path:
            return 404, "The specified bucket does not exist."
        return None


class _Handler(RequestHandler):  # type: ignore[misc]
    lock = Lock()

    def __init__(self, served: GoogleBucket, *arguments: Any) -> None:
        self.served = served
        super().__init__(served.storage, *arguments)

    def answer(self) -> None:
        self.served.asked.append(f"{self.command} {self.path.partition('?')[0]}")
        with self.lock:
            if told := self.served.refusal(self.path):
                self.refuse(*told)
            else:
                Router(self).handle(self.command)

    do_GET = do_POST = do_PUT = answer

    def refuse(self, status: int, why: str) -> None:
        # What is not read would end the connection before the answer.
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        said = json.dumps({"error": {"code": status, "message": why}}, indent=1).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


@contextmanager
def serve() -> Iterator[GoogleBucket]:
    """Serve an empty bucket."""
    storage = Storage(use_memory_fs=True)
    create_bucket(BUCKET, storage)
    bucket = GoogleBucket("", storage)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, bucket)) as server:
        bucket.address = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield bucket
        finally:
            server.shutdown()
