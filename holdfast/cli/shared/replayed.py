"""The replay of one history, in the process that `replay` starts for it:

python -m holdfast.cli.shared.replayed FILE        prints a Verdict as JSON, as its last line
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

from google.protobuf.json_format import ParseError
from pydantic import BaseModel, ConfigDict
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from holdfast.contracts.errors import BlobLost
from holdfast.deployment.settings import Settings
from holdfast.errors import BadSettings, Refused, Undecipherable
from holdfast.intake.files import read_text
from holdfast.replaying.replay import replay
from holdfast.storage import BadStore, Store, store_at
from holdfast.storage.codec import decrypt
from holdfast.storage.keys import Keyring, keyring
from holdfast.storage.payloads import fetch, find_stored, inline
from holdfast.workflows import WORKFLOWS

HISTORY_BYTES = 256 * 1024 * 1024
"""The largest file: a history has at most 50 MB, and what it refers to is written into it."""


class Verdict(BaseModel):
    """The outcome of a replay: a refusal with its reason, or the differences, a line each."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    refused: str = ""
    problems: tuple[str, ...]


async def verdict(file: Path, store: Store | None, keys: Keyring | None = None) -> Verdict:
    """Replay the history in a file. One with references to payloads needs the store, one that is
    encrypted the keys.
    """
    try:
        history = read_history(file)
        await decrypt_all(file, history, store, keys or keyring(""))
        return Verdict(problems=await replay(history, WORKFLOWS))
    except BlobLost as lost:
        return Verdict(refused=f"{str(file)!r} cannot be replayed: {lost.message}", problems=())
    except Refused as error:
        return Verdict(refused=str(error), problems=())


def read_history(file: Path, what: str = "replay") -> WorkflowHistory:
    """Return the history in a file, which `what` names. Refused if it holds none of our
    workflows.
    """
    shown = repr(str(file))
    text = read_text(file, what, HISTORY_BYTES)
    try:
        history = WorkflowHistory.from_json(file.stem, text)
    except RecursionError as error:
        raise Refused(f"{shown} is not a history from `export`: nested too deeply") from error
    except (ValueError, ParseError, TypeError, KeyError, AttributeError) as error:
        why = " ".join(str(error).split())[:200]
        raise Refused(f"{shown} is not a history from `export`: {why}") from error
    if why := _wrong(history):
        raise Refused(f"{shown} is not a history from `export`: {why}")
    # A run's teams have names that begin with its id: that of the file says nothing.
    began = history.events[0].workflow_execution_started_event_attributes
    return replace(history, workflow_id=began.workflow_id or history.workflow_id)


def _wrong(history: WorkflowHistory) -> str:
    """Return why our workflows could not repeat a history; empty if they could."""
    if not history.events:
        return "it has no events"
    known = set(EventType.values()) - {EventType.EVENT_TYPE_UNSPECIFIED}
    for event in history.events:
        if event.event_type not in known:
            return f"event {event.event_id} is of the unknown type {event.event_type}"
    first = history.events[0]
    if first.event_type != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
        return "it does not begin with the start of a run"
    name = first.workflow_execution_started_event_attributes.workflow_type.name
    ours = [workflow.__name__ for workflow in WORKFLOWS]
    if name not in ours:
        return f"its workflow is {name!r:.80}; of ours there are {', '.join(ours)}"
    kinds = {event.event_type for event in history.events}
    if EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED not in kinds:
        return "the run has not taken a step in it"
    return ""


async def decrypt_all(
    file: Path, history: WorkflowHistory, store: Store | None, keys: Keyring
) -> None:
    """Put into a history what it refers to, all in plain. Refused if that cannot be had."""
    found = await find_store(file, history, store)
    try:
        for event in history.events:
            if found:
                await inline(event, found)
            decrypt(event, keys)
    except Undecipherable as error:
        raise Refused(f"{str(file)!r} cannot be read: {error}") from error


async def find_store(file: Path, history: WorkflowHistory, store: Store | None) -> Store | None:
    """Return the store if the history refers to one. Refused if it cannot be had."""
    stored = find_stored(history.events)
    if not stored:
        return None
    if store is None:
        raise Refused(
            f"{str(file)!r} is a raw history: {len(stored)} of its payloads are in a store;"
            " write it with `export ID --out FILE`, or set STORE_URL to that store"
        )
    for each in stored:
        await fetch(each, store)
    return store


def main(file: Path) -> None:
    """Print the verdict on a file."""
    settings = Settings()
    try:
        keys = keyring(settings.key_file)
        store = store_at(settings.store_url, keys) if settings.store_url else None
        found = asyncio.run(verdict(file, store, keys))
    except (BadStore, BadSettings) as error:
        found = Verdict(refused=str(error), problems=())
    sys.stdout.write(f"\n{found.model_dump_json()}")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    # What the native part still does is of no interest, and could hold the process.
    os._exit(0)
