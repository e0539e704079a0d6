"""What decrypts for the Web UI and for `temporal`, and for nobody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from temporalio.api.common.v1 import Payload, Payloads

from encrypted import write_keys
from holdfast.cli.commands.doors import codec_server
from holdfast.deployment.settings import Settings
from holdfast.doors import codec
from holdfast.doors.codec import CodecServer, origins_of
from holdfast.doors.tokens import Scopes, Tokens
from holdfast.errors import Refused
from holdfast.storage import DirectoryStore
from holdfast.storage.keys import Keyring
from holdfast.storage.payloads import INLINE_BYTES, external_storage
from holdfast.temporal.connection import data_converter

pytestmark = pytest.mark.anyio
UI = "http://127.0.0.1:8233"


@pytest.fixture
def served(tmp_path: Path) -> CodecServer:
    keys = Keyring(write_keys(tmp_path / "keys", "one"))
    store = DirectoryStore(tmp_path / "store", keys)
    return CodecServer(keys, store, origins_of(UI), frozenset({"127.0.0.1", "localhost"}))


async def ask(
    served: CodecServer, path: str, body: Any = None, method: str = "POST", **headers: str
) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    transport = httpx2.ASGITransport(served.app())
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8701") as client:
        if isinstance(body, bytes):
            return await client.request(method, path, content=body, headers=named)
        return await client.request(method, path, json=body, headers=named)


def as_json(*payloads: Payload) -> Any:
    return MessageToDict(Payloads(payloads=payloads))


def of_json(answer: httpx2.Response) -> list[Payload]:
    assert answer.status_code == 200, answer.text
    return [*ParseDict(answer.json(), Payloads()).payloads]


async def test_the_web_ui_has_encrypted_payloads_decoded_and_its_own_encoded(
    served: CodecServer,
) -> None:
    plain = Payload(metadata={"encoding": b"json/plain"}, data=b'"words"')
    encoded = of_json(await ask(served, "/encode", as_json(plain), origin=UI))
    assert b"words" not in encoded[0].data
    answer = await ask(served, "/decode", as_json(*encoded, plain), origin=UI)
    assert of_json(answer) == [plain, plain]
    assert answer.headers["access-control-allow-origin"] == UI
    assert answer.headers["cache-control"] == "no-store"


async def test_what_is_kept_outside_is_decoded_for_a_terminal_and_downloaded_by_the_web_ui(
    served: CodecServer,
) -> None:
    converter = data_converter(external_storage(served.store), served.keys)
    [reference] = await converter.encode(["x" * INLINE_BYTES])
    assert reference.external_payloads
    kept = await ask(served, "/decode?preserveStorageRefs=true", as_json(reference), origin=UI)
    assert of_json(kept) == [reference]
    for path in ("/download?preserveStorageRefs=true", "/decode"):
        [whole] = of_json(await ask(served, path, as_json(reference)))
        assert whole.data == b'"' + b"x" * INLINE_BYTES + b'"'
    [blob] = served.store.files()  # type: ignore[attr-defined]
    blob.path.unlink()
    lost = await ask(served, "/download", as_json(reference), origin=UI)
    assert lost.status_code == 400 and "is missing" in lost.json()["message"]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:8234"},
        {"origin": "null"},
        {"host": "evil.example"},
        {"host": "[::1"},
        {"host": "127.0.0.1.evil.example:8701", "origin": UI},
        {"sec_fetch_site": "cross-site"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
async def test_no_other_page_and_no_other_name_gets_anything(
    served: CodecServer, headers: dict[str, str], method: str
) -> None:
    answer = await ask(served, "/decode", as_json(), method, **headers)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


async def test_a_browser_that_asks_first_is_told_what_the_web_ui_may_send(
    served: CodecServer,
) -> None:
    answer = await ask(served, "/decode", method="OPTIONS", origin="http://localhost:8233")
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "http://localhost:8233"
    assert "x-namespace" in answer.headers["access-control-allow-headers"]


async def test_where_others_reach_it_a_token_is_asked_for(
    served: CodecServer, tmp_path: Path
) -> None:
    tokens = Tokens(Settings(_env_file=None, project=None, state_dir=tmp_path / "state"))
    secret = tokens.add("reader", Scopes())
    guarded = CodecServer(served.keys, served.store, served.origins, served.hosts, tokens)
    for given in ({}, {"authorization": "Bearer hf_wrong"}, {"authorization": secret}):
        refused = await ask(guarded, "/decode", as_json(), origin=UI, **given)
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == UI, "the Web UI can show it"
    answer = await ask(guarded, "/decode", as_json(), authorization=f"Bearer {secret}")
    assert answer.status_code == 200
    assert (await ask(guarded, "/decode", method="OPTIONS", origin=UI)).status_code == 204


@pytest.mark.usefixtures("bare_environment")
def test_whoever_lacks_a_token_is_told_to_make_one_that_only_reads() -> None:
    with pytest.raises(Refused, match=r"there is no token; .* token new NAME --scope read$"):
        codec_server.command(host="0.0.0.0")


async def test_what_cannot_be_read_is_said_in_a_line(
    served: CodecServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Keyring(write_keys(tmp_path / "other", "two"))
    [foreign] = await data_converter(None, other).encode(["words"])
    answer = await ask(served, "/decode", as_json(foreign), origin=UI)
    assert answer.status_code == 400 and "key 'two'" in answer.json()["message"]
    assert answer.headers["access-control-allow-origin"] == UI, "the Web UI can show it"
    for body in (b"{", b'{"payloads": 5}', b"\xff", b"[" * 100_000):
        answer = await ask(served, "/decode", body, origin=UI)
        assert answer.status_code == 400
        assert answer.headers["access-control-allow-origin"] == UI
    monkeypatch.setattr(codec, "BODY_BYTES", 1_000)
    assert (await ask(served, "/decode", b" " * 1_001)).status_code == 413
    assert (await ask(served, "/elsewhere", as_json())).status_code == 404
    assert (await ask(served, "/decode", as_json(), "GET")).status_code == 405


@pytest.mark.parametrize(
    "said",
    [b"{", b"\xff", b"[]", b"5", b"[" * 100_000, b"{}", b'{"driverName":"another","claimData":{}}',
     b'{"driverName":"store"}', b'{"driverName":"store","claimData":{}}',
     b'{"driverName":"store","claimData":[]}', b'{"driverName":[],"claimData":{}}',
     b'{"driverName":"store","claimData":{"sha256":5}}'],
)  # fmt: skip
async def test_a_reference_that_leads_nowhere_is_said_in_a_line(
    served: CodecServer, said: bytes
) -> None:
    reference = Payload(metadata={"encoding": b"json/external-storage-reference"}, data=said)
    reference.external_payloads.add(size_bytes=1)
    answer = await ask(served, "/decode", as_json(reference), origin=UI)
    assert answer.status_code == 400 and "kept outside is damaged" in answer.json()["message"]
    assert answer.headers["access-control-allow-origin"] == UI


@pytest.mark.parametrize(
    "ui", ["x", "ftp://a", "https://", "https://a b", "javascript:alert(1)", "http://a:b@c",
           "http://a:99999", "https://a/?b", "https://a/b"]
)  # fmt: skip
def test_an_address_that_is_none_of_a_web_ui_is_refused(ui: str) -> None:
    with pytest.raises(Refused, match="give the Web UI's address"):
        origins_of(ui)
