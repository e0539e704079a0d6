"""The search attributes of a namespace: which it lacks, and making them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client

from holdfast.contracts.search import SEARCH_ATTRIBUTES


async def add_attributes(
    client: Client, namespace: str, names: Collection[str], seconds: float = 10.0
) -> None:
    """Make these search attributes of ours. RPCError where the server or the key forbids it."""
    kinds = {name: f"INDEXED_VALUE_TYPE_{SEARCH_ATTRIBUTES[name].upper()}" for name in names}
    request = AddSearchAttributesRequest(
        namespace=namespace,
        search_attributes={name: IndexedValueType.Value(kind) for name, kind in kinds.items()},
    )
    await client.operator_service.add_search_attributes(request, timeout=timedelta(seconds=seconds))
