"""Objects of an S3 bucket, of Amazon's or of any service that speaks as it does.

Endpoint, region and credentials are found as every AWS tool finds them: AWS_ENDPOINT_URL,
AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID and so on, a profile, or the role of the machine.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, BinaryIO

from holdfast.storage.objects import CONNECT_SECONDS, READ_SECONDS, THREADS, Missing, Objects
from holdfast.storage.store import StoreAway

TRIES = 3
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


class S3Objects(Objects):
    """Implements `Objects` by boto3."""

    scheme = "s3"
    extra = "s3"

    def _connect(self) -> Any:
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

    def _put(self, key: str, content: bytes) -> None:
        self._client.put_object(Bucket=self.bucket, Key=key, Body=content)

    def _put_file(self, key: str, source: BinaryIO) -> None:
        self._client.upload_fileobj(source, self.bucket, key, Config=self._big)

    def _get(self, key: str) -> bytes:
        content: bytes = self._client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return content

    def _get_file(self, key: str, target: BinaryIO) -> None:
        self._client.download_fileobj(self.bucket, key, target, Config=self._big)

    @cached_property
    def _big(self) -> Any:
        from boto3.s3.transfer import TransferConfig

        # The thread that is in it is one of ours, which bound what is sent at once.
        return TransferConfig(multipart_chunksize=64 * 2**20, use_threads=False)

    def _explain(self, error: Exception) -> Missing | StoreAway | None:
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConnectionError,
            HTTPClientError,
        )

        match error:
            case ClientError():
                code = str(error.response.get("Error", {}).get("Code", ""))
                if code in GONE:
                    return Missing(code)
                return self._away(error, passing=code not in DENIED)
            case ConnectionError() | HTTPClientError():
                return self._away(f"it does not answer ({error})")
            case BotoCoreError() | Boto3Error() | ValueError():
                return self._away(error, passing=False)
        return None
