"""An S3 server on a free port of this machine, which counts, fails, dawdles and refuses as told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Thread
from typing import Any

import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

Environ = dict[str, Any]
Respond = Callable[..., Any]
BUCKET = "kept"
REFUSAL = "<Error><Code>{}</Code><Message>{}</Message></Error>"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLEOFTESTS00",
    "AWS_SECRET_ACCESS_KEY": "canary/secret+of+a+bucket+9d41c7f0aa",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass
class Bucket:
    """A served bucket, and what its server was asked."""

    address: str
    asked: list[str] = field(default_factory=list)
    """Method and path of each request."""
    broken: int = 0
    """So many requests are answered with 503."""
    denied: tuple[str, ...] = ()
    """Methods that are not allowed."""
    slow: float = 0.0
    """Seconds before each answer."""

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find the server."""
        return CREDENTIALS | {"AWS_ENDPOINT_URL": self.address}

    @cached_property
    def client(self) -> Any:
        """A client of the server, of nobody's."""
        return boto3.session.Session().client(
            "s3",
            endpoint_url=self.address,
            region_name="us-east-1",
            aws_access_key_id="somebody",
            aws_secret_access_key="else",
            config=Config(s3={"addressing_style": "path"}),
        )

    def names(self) -> list[str]:
        """The names of all that is in the bucket."""
        found = self.client.list_objects_v2(Bucket=BUCKET).get("Contents", ())
        return sorted(each["Key"] for each in found)

    def body(self, name: str) -> bytes:
        content: bytes = self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
        return content


@contextmanager
def serve() -> Iterator[Bucket]:
    """Serve an empty bucket."""
    moto = DomainDispatcherApplication(create_backend_app)
    bucket: Bucket

    def app(environ: Environ, start: Respond) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        ours = "somebody" not in environ.get("HTTP_AUTHORIZATION", "")
        if ours:
            bucket.asked.append(f"{method} {path}")
            time.sleep(bucket.slow)
            if method in bucket.denied:
                return _refuse(environ, start, "403 Forbidden", "AccessDenied")
            if bucket.broken > 0:
                bucket.broken -= 1
                return _refuse(environ, start, "503 Slow Down", "SlowDown")
        answer: Iterable[bytes] = moto(environ, start)
        return answer

    server = make_server("127.0.0.1", 0, app, threaded=True)
    bucket = Bucket(f"http://127.0.0.1:{server.server_port}")
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        bucket.client.create_bucket(Bucket=BUCKET)
        yield bucket
    finally:
        server.shutdown()
        server.server_close()


def _refuse(environ: Environ, start: Respond, status: str, code: str) -> Iterable[bytes]:
    # What is not read would end the connection before the answer.
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    start(status, [("Content-Type", "application/xml")])
    return [REFUSAL.format(code, code).encode()]
