"""Objects of a bucket in Google Cloud Storage.

Credentials are found as every Google tool finds them: GOOGLE_APPLICATION_CREDENTIALS, those of
`gcloud`, or the service account of the machine. STORAGE_EMULATOR_HOST names another server.
"""

from __future__ import annotations

import os
from http import HTTPStatus
from typing import Any, BinaryIO

from holdfast.storage.objects import CONNECT_SECONDS, READ_SECONDS, THREADS, Missing, Objects
from holdfast.storage.store import StoreAway

AGAIN_SECONDS = 15.0
"""For so long what fails is tried again: this client counts no tries."""
PIECE = 64 * 2**20
OCTETS = "application/octet-stream"
PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
"""Answers after which to ask again, beside those from 500 on."""
NO_BUCKET = "bucket does not exist"
"""How this 404 differs from that of a missing object: by its words alone."""


class GCSObjects(Objects):
    """Implements `Objects` by google-cloud-storage."""

    scheme = "gs"
    extra = "gcs"

    def _connect(self) -> Any:
        from google.cloud.storage import Client
        from requests.adapters import HTTPAdapter

        # Else it asks for what traces may tell of the bucket, again whenever an object is missing.
        os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        # No project: the bucket has its own.
        client = Client(project=None)
        client._http.mount("https://", HTTPAdapter(pool_maxsize=THREADS))
        return client

    def _put(self, key: str, content: bytes) -> None:
        self._blob(key).upload_from_string(content, OCTETS, **self._bounds())

    def _put_file(self, key: str, source: BinaryIO) -> None:
        self._blob(key, chunk_size=PIECE).upload_from_file(
            source, content_type=OCTETS, **self._bounds()
        )

    def _get(self, key: str) -> bytes:
        content: bytes = self._blob(key).download_as_bytes(**self._bounds())
        return content

    def _get_file(self, key: str, target: BinaryIO) -> None:
        self._blob(key).download_to_file(target, **self._bounds())

    def _blob(self, key: str, **how: int) -> Any:
        return self._client.bucket(self.bucket).blob(key, **how)

    def _bounds(self) -> dict[str, Any]:
        from google.cloud.storage.retry import DEFAULT_RETRY

        # To write an object twice is to write it once: all may be tried again.
        return {
            "timeout": (CONNECT_SECONDS, READ_SECONDS),
            "retry": DEFAULT_RETRY.with_timeout(AGAIN_SECONDS),
        }

    def _explain(self, error: Exception) -> Missing | StoreAway | None:
        from google.api_core.exceptions import GoogleAPICallError, GoogleAPIError, RetryError
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
        from requests.exceptions import RequestException

        if isinstance(error, RetryError):
            error = error.cause or error
        response = getattr(error, "response", None)
        match error:
            case InvalidResponse() | GoogleAPICallError() if response is not None:
                return self._refused(response)
            case RequestException() | TransportError():
                return self._away(f"it does not answer ({error})")
            case GoogleAuthError():
                return self._away(error, passing=error.retryable)
            case DataCorruption():
                return self._away(error)
            case GoogleAPIError() | ValueError():
                return self._away(error, passing=False)
        return None

    def _refused(self, response: Any) -> Missing | StoreAway:
        status, said = response.status_code, _said(response)
        reads = response.request.method == "GET"
        if status == HTTPStatus.NOT_FOUND and reads and NO_BUCKET not in said:
            return Missing(said)
        passing = status in PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        return self._away(f"{status} {said}", passing=passing)


def _said(response: Any) -> str:
    """Return the service's own words, without the request that the library puts before them."""
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return str(response.text or response.reason)
