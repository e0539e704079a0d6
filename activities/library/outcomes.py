"""How the latest runs of a template went, as the server lists them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError

from holdfast.contracts.search import MEMO_PLAN, PLAN, RUNS
from holdfast.rules.templates import WELL

LOOKED_AT = 5
"""Runs of a template by which it is judged."""
MOST_WRONG = 2
"""Of these, runs that went wrong before it is used no more."""
PATIENCE = timedelta(seconds=5)

Outcomes = Callable[[str], Awaitable[Sequence[str]]]
"""(version of a template) -> how its latest runs went, newest first."""


async def know_nothing(_: str) -> Sequence[str]:
    return ()


async def read_outcomes(client: Client, version: str) -> Sequence[str]:
    """Return how the latest closed runs with this template's plan went: `well`, or what went wrong;
    none where the server does not keep that. Cancelled runs and runs at their cap say nothing.
    """
    query = f"{RUNS} AND {PLAN.name} = '{version}'"
    found = client.list_workflows(query, limit=LOOKED_AT, rpc_timeout=PATIENCE)
    try:
        went = [await each.memo_value(MEMO_PLAN, "", type_hint=str) async for each in found]
    except RPCError:
        return ()
    return [each for each in went if each]


async def read_outcomes_here(version: str) -> Sequence[str]:
    """Return the same from within an activity."""
    return await read_outcomes(activity.client(), version)


def find_retired(went: Sequence[str]) -> str:
    """Return why a template is used no more, by how its latest runs went; empty: it is used."""
    wrong = [each for each in went if each != WELL]
    if len(wrong) < MOST_WRONG:
        return ""
    return (
        f"{len(wrong)} of its last {len(went)} runs went wrong: {'; '.join(dict.fromkeys(wrong))}"
    )
