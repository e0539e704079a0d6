"""Encrypts what goes into histories, and decrypts it for whoever has the key.

A payload is encrypted whole, with what tells of its encoding. What people read in the Web UI keeps
its mark, by which it stays inline. What is big enough to be kept outside, once for all that are
equal, is encrypted so that equal payloads stay equal; all others look different each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from google.protobuf.message import DecodeError, Message
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import PayloadCodec

from holdfast.errors import Undecipherable
from holdfast.storage.keys import Keyring
from holdfast.storage.payloads import INLINE_BYTES, READABLE, is_readable, parts_of

ENCODING = b"binary/holdfast-encrypted"
"""No other program's, whose payloads are none of ours to wait for."""
KEY_ID = "encryption-key-id"
_HEAD_BYTES = 300


class EncryptingCodec(PayloadCodec):
    """Encrypts and decrypts payloads by the keys of a deployment. Without a key they stay as they
    are.
    """

    def __init__(self, keys: Keyring) -> None:
        self._keys = keys

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [*map(self._encrypt, payloads)] if self._keys.writes else [*payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Return the payloads in plain; MissingKey and Undecipherable."""
        return [decrypted(each, self._keys) for each in payloads]

    def _encrypt(self, payload: Payload) -> Payload:
        if payload.external_payloads:
            return payload
        content = payload.SerializeToString(deterministic=True)
        id, data = self._keys.encrypt(content, alike=len(content) >= INLINE_BYTES)
        metadata = {"encoding": ENCODING, KEY_ID: id.encode()}
        if is_readable(payload):
            metadata[READABLE] = b"1"
        return Payload(metadata=metadata, data=data)


def is_encrypted(payload: Payload) -> bool:
    return payload.metadata.get("encoding") == ENCODING


def decrypted(payload: Payload, keys: Keyring) -> Payload:
    """Return a payload in plain; one that was never encrypted as it is."""
    if not is_encrypted(payload):
        return payload
    id = payload.metadata[KEY_ID].decode("ascii", "replace")
    content = keys.decrypt(id, payload.data)
    try:
        return Payload.FromString(content)
    except DecodeError as error:
        raise Undecipherable("what was encrypted is no payload") from error


def decrypt(message: Message, keys: Keyring) -> None:
    """Put into plain all that is encrypted in a message, as an event of a history, and what it says
    of failures. MissingKey and Undecipherable; what is kept outside stays there.
    """
    for each in parts_of(message):
        if isinstance(each, Payload):
            if is_encrypted(each):
                each.CopyFrom(decrypted(each, keys))
        elif each.HasField("encoded_attributes"):
            _say(each, decrypted(each.encoded_attributes, keys))


def _say(failure: Failure, told: Payload) -> None:
    """Give a failure its message and trace back."""
    said = json.loads(told.data)
    failure.message = said.get("message", "")
    failure.stack_trace = said.get("stack_trace", "")
    failure.ClearField("encoded_attributes")


def decrypted_blob(pieces: Iterator[bytes], keys: Keyring) -> Iterator[bytes]:
    """Yield what a blob of the store holds in plain, in pieces, if it is a payload that was kept
    outside, too. MissingKey and Undecipherable.
    """
    first = next(pieces, b"")
    if ENCODING not in first[:_HEAD_BYTES]:
        yield first
        yield from pieces
        return
    content = b"".join((first, *pieces))
    try:
        yield decrypted(Payload.FromString(content), keys).data
    except DecodeError:
        yield content


def has_encrypted(messages: Iterable[Message]) -> bool:
    """True if anything in these messages is encrypted."""
    found = (each for message in messages for each in parts_of(message))
    return any(isinstance(each, Payload) and is_encrypted(each) for each in found)
