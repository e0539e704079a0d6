"""Files of keys, and what is found in plain where all should be encrypted."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
)
from temporalio.client import Client


def secret(number: int) -> str:
    """A key that no two numbers share, as a file has it."""
    return base64.b64encode(bytes([number]) * 32).decode()


def write_keys(path: Path, *ids: str) -> str:
    """Write a file of keys; the last one writes."""
    path.write_text("".join(f"{id} {secret(sum(id.encode()) % 251)}\n" for id in ids))
    path.chmod(0o600)
    return str(path)


async def raw(client: Client, workflow_ids: Iterable[str]) -> bytes:
    """All that the server has of these workflows, as it sends it to whoever asks."""
    said = b""
    for id in workflow_ids:
        execution = WorkflowExecution(workflow_id=id)
        service, space = client.workflow_service, client.namespace
        history = GetWorkflowExecutionHistoryRequest(namespace=space, execution=execution)
        said += (await service.get_workflow_execution_history(history)).SerializeToString()
        described = DescribeWorkflowExecutionRequest(namespace=space, execution=execution)
        said += (await service.describe_workflow_execution(described)).SerializeToString()
    return said


def words_in(content: bytes, words: Iterable[str]) -> Iterator[str]:
    """The words that stand there in plain, in any case, or in Base64 at any of its three places."""
    lower = content.lower()
    for word in words:
        plain = word.encode()
        spelt = (base64.b64encode(b"x" * shift + plain)[4 * (shift > 0) : -4] for shift in range(3))
        if plain.lower() in lower or any(each in content for each in spelt):
            yield word


def plain_files(folder: Path, words: Iterable[str]) -> list[str]:
    """The files below a folder that hold any of the words, and which."""
    files = [each for each in sorted(folder.rglob("*")) if each.is_file()]
    words = tuple(words)
    return [
        f"{each.relative_to(folder)}: {word}"
        for each in files
        for word in words_in(each.read_bytes() + str(each.relative_to(folder)).encode(), words)
    ]
