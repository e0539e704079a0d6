"""Find the blobs of a store that the runs on a server can still need.

Everything that names a blob names it by its digest: the reference that stands in a history for a
big payload, the inputs that `prepare` pinned, the probe, the manifest of a snapshot for its
archive. So every digest that stands anywhere in a history counts as named, and every one inside a
blob that is named: rather too many than too few, and nothing here must know who refers to what.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from holdfast.storage.codec import decrypt, decrypted_blob
from holdfast.storage.directory import DirectoryStore
from holdfast.storage.keys import Keyring

DIGEST = re.compile(rb"[0-9a-f]{64}")


async def find_needed(client: Client, store: DirectoryStore) -> tuple[frozenset[str], int]:
    """Return the blobs of this store that any history of the server's namespace needs, and the
    number of runs.

    Reads every history, at 40 to 60 ms each. RPCError; Undecipherable, because who cannot read a
    history knows nothing of what it needs.
    """
    named: set[str] = set()
    runs = 0
    async for run in client.list_workflows(""):
        runs += 1
        execution = WorkflowExecution(workflow_id=run.id, run_id=run.run_id)
        named |= await _named_by(client, execution, store.keys)
    return await asyncio.to_thread(_with_what_they_name, store, named), runs


async def _named_by(client: Client, execution: WorkflowExecution, keys: Keyring) -> set[str]:
    named: set[str] = set()
    token = b""
    while True:
        request = GetWorkflowExecutionHistoryRequest(
            namespace=client.namespace, execution=execution, next_page_token=token
        )
        try:
            answer = await client.workflow_service.get_workflow_execution_history(request)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                # Its retention ended while we looked.
                return named
            raise
        decrypt(answer.history, keys)
        named.update(_digests(answer.history.SerializeToString()))
        token = answer.next_page_token
        if not token:
            return named


def _with_what_they_name(store: DirectoryStore, named: set[str]) -> frozenset[str]:
    """Return the named blobs that exist and those that they name in turn, by the names of their
    files, and mark all as needed today: another server that shares the store does not know them.
    """
    there = {blob.digest: blob for blob in store.files() if blob.digest}

    def names(digests: Iterable[str]) -> list[str]:
        possible = (each for digest in digests for each in store.keys.names(digest))
        return [each for each in possible if each in there]

    found: set[str] = set()
    waiting = names(named)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        try:
            rest = b""
            for piece in decrypted_blob(store.pieces(there[name]), store.keys):
                waiting += names(_digests(rest + piece))
                rest = piece[-63:]
        except OSError:
            # It cannot be read, so it leads to nothing; whoever needs it will be told.
            continue
    for name in found:
        store.keep(there[name])
    return frozenset(found)


def _digests(content: bytes) -> Iterator[str]:
    return (match.group().decode() for match in DIGEST.finditer(content))
