"""python -m bench.encryption: what encryption adds to the recorded histories, in bytes and CPU.

Every payload of every history in `tests/histories` is encrypted and decrypted, as a worker and the
next one do.
"""

from __future__ import annotations

import asyncio
import base64
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowHistory

from holdfast.storage.codec import EncryptingCodec
from holdfast.storage.keys import Keyring

HISTORIES = Path(__file__).parents[1] / "tests" / "histories"
TIMES = 20


def payloads_in(message: Message) -> Iterator[Payload]:
    """Yield every payload of a message."""
    if isinstance(message, Payload):
        yield message
        return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            told = value.values() if hasattr(value, "values") else value
            for each in told if descriptor.is_repeated else [value]:
                if isinstance(each, Message):
                    yield from payloads_in(each)


async def main() -> None:
    """Print the figures."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"one " + base64.b64encode(bytes(32)))
        file.flush()
        codec = EncryptingCodec(Keyring(file.name))
    files = sorted(HISTORIES.rglob("*.json"))
    events = [
        event
        for path in files
        for event in WorkflowHistory.from_json(path.stem, path.read_text()).events
    ]
    plain = [each for event in events for each in payloads_in(event)]
    encrypted = await codec.encode(plain)
    before, after = (sum(each.ByteSize() for each in some) for some in (plain, encrypted))
    began = time.process_time()
    for _ in range(TIMES):
        assert len(await codec.decode(await codec.encode(plain))) == len(plain)
    each = (time.process_time() - began) / TIMES / len(plain)
    sys.stdout.write(
        f"{len(files)} histories, {len(plain)} payloads, {before / len(plain):.0f} bytes each\n"
        f"bytes: {before:,} plain, {after:,} encrypted: +{(after / before - 1) * 100:.1f} %\n"
        f"CPU: {each * 1e6:.0f} us to encrypt and decrypt one\n"
    )


if __name__ == "__main__":
    asyncio.run(main())
