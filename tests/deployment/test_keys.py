"""The file of keys, and what is encrypted by it."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError

from encrypted import secret, write_keys
from holdfast.errors import BadSettings, MissingKey, Undecipherable
from holdfast.storage import DirectoryStore
from holdfast.storage.codec import EncryptingCodec, decrypt, has_encrypted, is_encrypted
from holdfast.storage.keys import MARK, PIECE_BYTES, Keyring
from holdfast.storage.payloads import READABLE
from holdfast.temporal.connection import data_converter

pytestmark = pytest.mark.anyio


@pytest.fixture
def keys(tmp_path: Path) -> Keyring:
    return Keyring(write_keys(tmp_path / "keys", "one"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no key; write a line ID KEY"),
        ("# a comment\n\n", "has no key"),
        ("one", "line 1 of .* is not ID KEY"),
        (f"# two\none {secret(1)[:-4]}\n", "line 2 of .* is not ID KEY, with a key of 32 bytes"),
        (f"a/b {secret(1)}", "line 1"),
        (f"{'x' * 41} {secret(1)}", "line 1"),
        (f"one {secret(1)}\none {secret(2)}", "two keys with the id 'one'"),
        ("one \xe9", "line 1"),
    ],
)
def test_a_file_that_is_none_of_keys_is_refused_in_a_line_without_a_key(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(BadSettings, match=f"HOLDFAST_PAYLOAD_KEY_FILE: .*{said}") as refused:
        Keyring(str(path))
    assert secret(1)[:-4] not in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o604])
def test_a_file_of_keys_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = Path(write_keys(tmp_path / "keys", "one"))
    path.chmod(mode)
    with pytest.raises(BadSettings, match=rf"others may use .* \(mode {mode:o}\); run: chmod 600"):
        Keyring(str(path))
    with pytest.raises(BadSettings, match="there is no file"):
        Keyring(str(tmp_path / "none"))
    with pytest.raises(BadSettings, match="is no file to read"):
        Keyring(str(tmp_path))


def test_all_keys_read_the_last_one_writes_and_a_new_line_is_read_while_a_worker_runs(
    tmp_path: Path,
) -> None:
    path = tmp_path / "keys"
    old = Keyring(write_keys(path, "one"))
    before = old.sealed(b"words")
    new = Keyring(write_keys(path, "one", "two"))
    after = new.sealed(b"words")
    assert before.startswith(MARK + b"one\n") and after.startswith(MARK + b"two\n")
    assert new.opened(before) == b"words"
    assert old.opened(after) == b"words" and [*old.ids] == ["one", "two"]
    other = Keyring(write_keys(tmp_path / "other", "three"))
    with pytest.raises(MissingKey, match=r"encrypted with key 'two', and .*other\) lacks it; add"):
        other.opened(after)
    with pytest.raises(MissingKey, match="key 'two', and HOLDFAST_PAYLOAD_KEY_FILE is not set"):
        Keyring().opened(after)


def test_a_key_that_only_has_the_others_id_is_told_from_it(tmp_path: Path, keys: Keyring) -> None:
    path = tmp_path / "other"
    path.write_text(f"one {secret(7)}\n")
    path.chmod(0o600)
    with pytest.raises(Undecipherable, match=r"the key of this id in .*other.* is another"):
        Keyring(str(path)).opened(keys.sealed(b"words"))


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES])
def test_what_is_sealed_is_opened_and_no_change_of_it_is_taken(keys: Keyring, size: int) -> None:
    content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    sealed = keys.sealed(content)
    assert keys.opened(sealed) == content
    head = len(MARK) + len("one\n") + 16
    piece = PIECE_BYTES + 28
    pieces = [sealed[head:][at : at + piece] for at in range(0, len(sealed) - head, piece)]
    changed = [sealed[:-1], sealed[:head], sealed + b"x"]
    changed += [sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :] for at in (head, -1)][:1]
    if len(pieces) > 1:
        changed += [sealed[:head] + pieces[0], sealed[:head] + b"".join(reversed(pieces))]
    for each in changed:
        with pytest.raises(Undecipherable):
            keys.opened(each)


def test_content_that_was_never_sealed_is_read_as_it_is(keys: Keyring) -> None:
    for content in (b"", b"short", b"x" * 3_000_000):
        assert keys.opened(content) == content == Keyring().sealed(content)


async def test_a_store_keeps_nothing_in_plain_and_equal_content_once(
    tmp_path: Path, keys: Keyring
) -> None:
    store = DirectoryStore(tmp_path / "store", keys)
    content = b"CANARY " * 300_000
    digest = await store.put(content)
    assert await store.put(content) == digest
    assert await store.put_file(io.BytesIO(content)) == (digest, len(content))
    [blob] = store.files()
    assert blob.digest != digest and b"CANARY" not in blob.path.read_bytes()
    assert await store.get(digest) == content and store.damaged(1) == ()
    async with store.file(digest) as path:
        assert path.read_bytes() == content and path.stat().st_mode & 0o077 == 0
    assert not path.exists() and not path.parent.exists()
    with pytest.raises(MissingKey):
        await DirectoryStore(store.root).get(blob.digest)
    blob.path.write_bytes(blob.path.read_bytes()[:-1])
    assert store.damaged(1) == (blob.digest,)
    with pytest.raises(ApplicationError, match="its file is damaged"):
        await store.get(digest)
    assert await store.put(content) == digest and await store.get(digest) == content


async def test_a_store_finds_what_was_put_before_a_key_and_with_an_older_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "keys"
    before = await DirectoryStore(tmp_path / "store").put(b"before")
    first = DirectoryStore(tmp_path / "store", Keyring(write_keys(path, "one")))
    old = await first.put(b"old")
    second = DirectoryStore(tmp_path / "store", Keyring(write_keys(path, "one", "two")))
    assert await second.get(before) == b"before" and await second.get(old) == b"old"
    assert second.damaged(1) == ()


async def test_a_payload_is_encrypted_whole_and_only_a_big_one_looks_the_same_twice(
    keys: Keyring,
) -> None:
    codec = EncryptingCodec(keys)
    for size, alike in ((10, False), (10_000, True)):
        plain = Payload(metadata={"encoding": b"json/plain", READABLE: b"1"}, data=b"x" * size)
        [one], [other] = await codec.encode([plain]), await codec.encode([plain])
        assert (one.data == other.data) == alike and is_encrypted(one) and b"xxx" not in one.data
        assert set(one.metadata) == {"encoding", "encryption-key-id", READABLE}
        assert await codec.decode([one]) == [plain] == await codec.decode([plain])
        with pytest.raises(Undecipherable):
            await codec.decode([Payload(metadata=one.metadata, data=one.data[:-1])])
    assert await EncryptingCodec(Keyring()).encode([plain]) == [plain]


async def test_what_a_failure_says_is_encrypted_and_put_back(keys: Keyring) -> None:
    from temporalio.api.failure.v1 import Failure

    converter, failure = data_converter(None, keys), Failure()
    cause = ApplicationError("CANARY inside", type="Cause")
    error = ApplicationError("CANARY outside", {"CANARY": 1}, type="Outer")
    error.__cause__ = cause
    await converter.encode_failure(error, failure)
    assert b"CANARY" not in failure.SerializeToString() and has_encrypted([failure])
    again = await converter.decode_failure(Failure.FromString(failure.SerializeToString()))
    assert str(again) == "Outer: CANARY outside" and str(again.__cause__) == "Cause: CANARY inside"
    decrypt(failure, keys)
    assert failure.message == "CANARY outside" and failure.cause.message == "CANARY inside"
    assert not has_encrypted([failure]) and b"CANARY" in failure.SerializeToString()
    assert base64.b64encode(bytes(32)).decode() not in str(failure)
