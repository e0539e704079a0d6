"""Decrypts for the Web UI and for `temporal`, by Temporal's protocol of remote codecs: `/decode`,
`/encode`, and `/download` for what is kept outside of a history.

Whoever may ask it can read everything. So a page may ask only if it is of the Web UI, a request
must name a host of this server, and where others than this machine's users can reach it, it must
bring a token.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from temporalio.api.common.v1 import Payload, Payloads

from holdfast.contracts.errors import BlobLost
from holdfast.doors.http.guard import LOOPBACK
from holdfast.doors.tokens import Tokens
from holdfast.errors import Refused, Undecipherable
from holdfast.storage import Store, StoreAway
from holdfast.storage.codec import EncryptingCodec
from holdfast.storage.keys import Keyring
from holdfast.storage.payloads import fetch

_HOST = re.compile(r"[a-z0-9]([a-z0-9.:-]*[a-z0-9])?")
BODY_BYTES = 64 * 2**20
"""More than the payloads of a history may have in all, in Base64."""
ASKED = "content-type, x-namespace, authorization, authorization-extras"
"""Headers that the Web UI sends."""
log = logging.getLogger(__name__)


class _No(Exception):
    """What is asked is not done; with the status and the reason, on one line."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class CodecServer:
    """Who may ask, and what it reads with."""

    keys: Keyring
    store: Store
    origins: frozenset[str]
    """The Web UI's, by each name that it has."""
    hosts: frozenset[str]
    tokens: Tokens | None = None
    """None: no token is asked for."""

    def app(self) -> Starlette:
        """Return the application."""
        kinds = {"/decode": self._decode, "/encode": self._encode, "/download": self._download}

        async def answer(request: Request) -> Response:
            shared: Mapping[str, str] = {}
            try:
                shared = self._admit(request)
                if request.method == "OPTIONS":
                    # Browsers ask what they may send before they send a token.
                    return Response(status_code=204, headers=shared)
                self._identify(request)
                made = await kinds[request.url.path](await _read(request), request)
            except _No as no:
                return JSONResponse({"message": str(no)}, no.status, headers=shared)
            except (Undecipherable, BlobLost, StoreAway) as error:
                log.warning("not decoded: %s", error)
                return JSONResponse({"message": str(error)}, 400, headers=shared)
            body = json_format.MessageToDict(Payloads(payloads=made))
            return JSONResponse(body, headers={**shared, "cache-control": "no-store"})

        routes = [Route(each, answer, methods=["POST", "OPTIONS"]) for each in kinds]
        return Starlette(routes=routes)

    def _admit(self, request: Request) -> Mapping[str, str]:
        """Return the headers of answers to a page that may ask, and none to who is no page. Raise
        _No for any other.
        """
        try:
            host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        except ValueError:
            host = ""
        name = f"[{host}]" if ":" in host else host
        if name not in self.hosts:
            raise _No(403, "this server does not answer to that host; --name adds one")
        origin = request.headers.get("origin")
        if origin is not None and origin not in self.origins:
            raise _No(403, "pages of other sites than the Web UI get nothing; --ui names it")
        if origin is None and request.headers.get("sec-fetch-site", "none") != "none":
            raise _No(403, "pages of other sites than the Web UI get nothing; --ui names it")
        if origin is None:
            return {}
        return {
            "access-control-allow-origin": origin,
            "access-control-allow-headers": ASKED,
            "access-control-allow-methods": "POST",
            "access-control-allow-credentials": "true",
            "access-control-allow-private-network": "true",
            "vary": "origin",
        }

    def _identify(self, request: Request) -> None:
        """Raise _No for whoever lacks a token, where one is asked for."""
        if self.tokens is not None:
            scheme, _, secret = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or self.tokens.caller_of(secret[:100]) is None:
                raise _No(401, "send a token of this server: Authorization: Bearer hf_...")

    async def _encode(self, payloads: Sequence[Payload], _request: Request) -> list[Payload]:
        return await EncryptingCodec(self.keys).encode(payloads)

    async def _decode(self, payloads: Sequence[Payload], request: Request) -> list[Payload]:
        """Decrypt; references become what they stand for, unless the Web UI wants to keep them."""
        if request.query_params.get("preserveStorageRefs") != "true":
            return await self._download(payloads, request)
        return await EncryptingCodec(self.keys).decode(payloads)

    async def _download(self, payloads: Sequence[Payload], _request: Request) -> list[Payload]:
        found = [
            await fetch(each, self.store) if each.external_payloads else each for each in payloads
        ]
        return await EncryptingCodec(self.keys).decode(found)


async def _read(request: Request) -> Sequence[Payload]:
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > BODY_BYTES:
            raise _No(413, f"send at most {BODY_BYTES >> 20} MiB")
    try:
        told = json_format.Parse(bytes(content), Payloads(), ignore_unknown_fields=True)
    except (json_format.ParseError, UnicodeDecodeError, RecursionError):
        raise _No(400, "the body is no JSON of payloads") from None
    return told.payloads


def origins_of(address: str) -> frozenset[str]:
    """Return the origins by which a Web UI is opened. Refused if the address is none of one."""
    parts = urlsplit(address)
    try:
        whole = parts.scheme in ("http", "https") and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        whole = False
    if (
        not whole
        or not _HOST.fullmatch(parts.hostname or "")
        or parts.path.strip("/")
        or parts.query
    ):
        raise Refused(f"--ui {address!r:.80}: give the Web UI's address: http://127.0.0.1:8233")
    names = LOOPBACK if parts.hostname in ("127.0.0.1", "localhost") else (parts.hostname,)
    port = f":{parts.port}" if parts.port else ""
    return frozenset(f"{parts.scheme}://{name}{port}" for name in names)
