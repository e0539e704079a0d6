"""An OpenTelemetry backend: it takes spans over HTTP as the protocol has them, and keeps them."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Received:
    """What came, and whether it is taken."""

    address: str = ""
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)
    takes: bool = True
    """False: it answers that it must not be asked that again."""
    elsewhere: bool = False
    """Whether it answers that it is somewhere else."""

    def take(self, body: bytes) -> None:
        for each in ExportTraceServiceRequest.FromString(body).resource_spans:
            told = {pair.key: pair.value.string_value for pair in each.resource.attributes}
            self.services.add(told["service.name"])
            self.spans += [span for scope in each.scope_spans for span in scope.spans]


@contextmanager
def receiver() -> Iterator[Received]:
    """Listens on a free port of this machine."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            known = self.path == "/v1/traces"
            known = known and self.headers["Content-Type"] == "application/x-protobuf"
            taken = known and received.takes and not received.elsewhere
            if taken:
                # Before it is answered: whoever has the answer may look for it.
                received.take(body)
            self.send_response(200 if taken else 307 if received.elsewhere else 400)
            if received.elsewhere:
                self.send_header("Location", f"{received.address}/elsewhere")
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
