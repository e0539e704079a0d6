"""Objects of an S3 bucket, of Amazon's or of any service that speaks as it does.

Endpoint, region and credentials are found as every AWS tool finds them: AWS_ENDPOINT_URL,
AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID and so on, a profile, or the role of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import Any, BinaryIO

from holdfast.storage.bucket import THREADS, Missing
from holdfast.storage.store import StoreAway

CONNECT_SECONDS, READ_SECONDS, TRIES = 3, 10, 3
"""Of one request. A worker that hears nothing for longer counts as dead where it fetches the
arguments of an activity.
"""
GONE = ("NoSuchKey", "404")
DENIED = (
    "403",
    "AccessDenied",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "NoSuchBucket",
    "SignatureDoesNotMatch",
)
"""Answers that no second try changes."""


class S3Objects:
    """Implements `Objects`. The client is made at the first use: that takes a second."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self.bucket = bucket
        self.url = f"s3://{bucket}/{prefix}".rstrip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._making = Lock()

    def write(self, name: str, content: bytes) -> None:
        with self._explained():
            self._client.put_object(Bucket=self.bucket, Key=self._prefix + name, Body=content)

    def write_file(self, name: str, source: BinaryIO) -> None:
        with self._explained():
            self._client.upload_fileobj(source, self.bucket, self._prefix + name, Config=self._big)

    def read(self, name: str) -> bytes:
        with self._explained():
            found = self._client.get_object(Bucket=self.bucket, Key=self._prefix + name)
            content: bytes = found["Body"].read()
        return content

    def read_file(self, name: str, target: BinaryIO) -> None:
        with self._explained():
            self._client.download_fileobj(
                self.bucket, self._prefix + name, target, Config=self._big
            )

    @property
    def _client(self) -> Any:
        with self._making:
            return self._made

    @cached_property
    def _made(self) -> Any:
        import boto3.session
        from botocore.config import Config

        # A service of one's own has seldom a name for each of its buckets.
        own = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            max_pool_connections=THREADS,
            retries={"mode": "standard", "total_max_attempts": TRIES},
            s3={"addressing_style": "path"} if own else None,
        )
        return boto3.session.Session().client("s3", config=config)

    @cached_property
    def _big(self) -> Any:
        from boto3.s3.transfer import TransferConfig

        # The thread that is in it is one of ours, which bound what is sent at once.
        return TransferConfig(multipart_chunksize=64 * 2**20, use_threads=False)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise Missing for what is not there, and StoreAway for all else that goes wrong."""
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConnectionError,
            HTTPClientError,
        )

        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code in GONE:
                raise Missing(code) from None
            raise StoreAway(self.url, _why(error), passing=code not in DENIED) from None
        except (ConnectionError, HTTPClientError) as error:
            raise StoreAway(self.url, f"it does not answer ({_why(error)})") from None
        except (BotoCoreError, Boto3Error, ValueError) as error:
            raise StoreAway(self.url, _why(error), passing=False) from None


def _why(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
