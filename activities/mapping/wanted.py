"""What a model is asked for some rows of a map: read from the store, the same for each attempt."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

from holdfast.activities.asking.forms import find_mistakes, schema_around
from holdfast.activities.asking.journal import key_of
from holdfast.activities.asking.replies import Shape
from holdfast.calls.row import (
    MERGE_RULES,
    ROW,
    RowAnswer,
    RowDataAnswer,
    RowValue,
    form_of,
    mending_prompt,
    merge_beginning,
    role_file,
    row_beginning,
    row_prompt,
    text_room,
)
from holdfast.calls.rows import Item, Outcome, RowsMaterial
from holdfast.calls.work import Told
from holdfast.contracts import Call
from holdfast.contracts.errors import CallRefused
from holdfast.ledger.rows import MENDING_BYTES_PER_TOKEN
from holdfast.plans import checks
from holdfast.ports import ModelRequest, PriceOf, Store

MOST_MISTAKES = 5
HEAVY_BYTES = 2**16
"""Bytes of a blob beyond which it is read in a thread: the event loop serves every call."""


@dataclass(frozen=True)
class Row:
    """One item, and all that is said of it alone."""

    n: int
    id: str
    prompt: str
    tries: int
    """Answers before this one."""
    said: str = ""
    """The earlier answer that is to be mended; empty: it is asked anew."""
    why: str = ""
    """What is wrong with that."""
    checked: bool = False
    """True if a check found it."""
    room: int = 0
    """Tokens of its answer, where that is a text."""
    key: str = ""
    paid: Decimal | None = Decimal(0)
    """Dollars of the answers before this one; None: not known."""

    @property
    def messages(self) -> tuple[Mapping[str, Any], ...]:
        """The conversation with the earlier answer; empty: there is none."""
        if not self.said:
            return ()
        wrong = mending_prompt(self.why, checked=self.checked, room=self.room)
        return (
            {"role": "user", "content": self.prompt},
            {"role": "assistant", "content": self.said},
            {"role": "user", "content": wrong},
        )

    @property
    def size(self) -> int:
        """Bytes of all that it says."""
        if not self.said:
            return len(self.prompt.encode("utf-8", "replace"))
        return len(json.dumps(self.messages, ensure_ascii=False).encode("utf-8", "replace"))


@dataclass(frozen=True)
class Wanted:
    """The rows of one activity, and what all of them begin with."""

    call: Call
    system: str
    shape: Shape[Any, RowValue]
    rows: tuple[Row, ...]
    shared: int
    """Bytes of what each request has beside its row's."""

    def request(self, row: Row, material: RowsMaterial, price: PriceOf) -> ModelRequest:
        """Return the request of a row, without the time that it may take."""
        call = self.call
        assert call.model is not None
        return ModelRequest(
            model=call.model.id,
            system=self.system,
            prompt=row.prompt,
            schema=self.shape.asked,
            max_output=call.max_output,
            effort=call.effort,
            capabilities=call.capabilities,
            messages=row.messages,
            shared=material.caching,
            price=price,
        )


async def read_wanted(
    store: Store, material: RowsMaterial, prompts: Mapping[str, str], roles: Mapping[str, str]
) -> Wanted:
    """Return what is asked. `prompts` are the system prompts by their file, `roles` those of roles
    that the material does not say. Raise BlobLost, and CallRefused if a check cannot be carried
    out.
    """
    work = material.work
    if wrong := checks.problems(work.subtask.checks):
        raise CallRefused(f"checks: {'; '.join(wrong)}")
    over = work.subtask.map.over if work.subtask.map else ""
    given = [each for each in work.inputs if each.enclosed and each.name != over]
    contents = {each.name: (await store.get(each.digest)).decode() for each in given}
    own = role_file(work)
    if material.merging is not None:
        role = ""
    elif own:
        role = prompts[own]
    elif work.prompt:
        role = (await store.get(work.prompt)).decode()
    else:
        role = roles[material.call.role]
    told, room = Told(contents, role=role), text_room(work, material.call)
    if material.merging is not None:
        system = merge_beginning(work, material.merging, prompts[MERGE_RULES], room).strip()
    else:
        system = row_beginning(work, told, prompts[ROW.prompt], room).strip()
    shape = shape_of(form_of(work))
    rows = await _read_rows(store, material, _digest_shared(material.call, system, shape))
    shared = len(system.encode("utf-8", "replace")) + len(json.dumps(shape.asked))
    return Wanted(material.call, system, shape, rows, shared)


async def _read_rows(store: Store, material: RowsMaterial, base: str) -> tuple[Row, ...]:
    """Return the rows to ask in the order of the material. Of each blob only what is asked is kept:
    rows that are asked again may be few of very many.
    """
    wanted = set(material.rows)
    before: dict[int, Outcome] = {}
    for digest in material.before:
        await _in_thread(_take_outcomes, await store.get(digest), wanted, before)
    found: dict[int, Row] = {}

    def take(content: bytes) -> None:
        for item in map(Item.model_validate_json, content.splitlines()):
            passed_over = item.broken or item.same_as is not None
            if not passed_over and (not wanted or item.n in wanted):
                row = _row(item, before.get(item.n), material)
                found[item.n] = _keyed(row, base, material)

    for chunk in material.chunks:
        await _in_thread(take, await store.get(chunk.digest))
    return tuple(found[n] for n in material.rows or found if n in found)


async def _in_thread(take: Callable[..., None], content: bytes, *more: object) -> None:
    if len(content) < HEAVY_BYTES:
        take(content, *more)
    else:
        await asyncio.to_thread(take, content, *more)


def _take_outcomes(content: bytes, wanted: Container[int], before: dict[int, Outcome]) -> None:
    """Take the outcomes of wanted rows: the last one of each counts."""
    for outcome in map(Outcome.model_validate_json, content.splitlines()):
        if not wanted or outcome.n in wanted:
            before[outcome.n] = outcome


def shape_of(form: Mapping[str, Any]) -> Shape[Any, RowValue]:
    """Return what is asked of a row, and how its answer is read."""
    if not form:
        return Shape(RowAnswer, _to_value)
    schema = schema_around(RowDataAnswer, form, or_text=True)
    return Shape(RowDataAnswer, partial(_to_value_in, form), schema=schema)


def _to_value(answer: RowAnswer | RowDataAnswer) -> RowValue:
    return RowValue(status=answer.status, result=answer.result, why=answer.why_failed)


def _to_value_in(form: Mapping[str, Any], answer: RowDataAnswer) -> RowValue:
    """Return the value of an answer. Raise ValueError, in words for the model that wrote it, if a
    complete one is not in its form.
    """
    if answer.status == "complete":
        if not isinstance(answer.result, dict):
            raise ValueError("result: must be an object in the form of its schema, not text")
        if wrong := [*find_mistakes(form, answer.result)]:
            raise ValueError("; ".join(wrong[:MOST_MISTAKES]))
    return _to_value(answer)


def _row(item: Item, earlier: Outcome | None, material: RowsMaterial) -> Row:
    prompt, tries = row_prompt(item), earlier.tries if earlier else 0
    paid = earlier.dollars if earlier else Decimal(0)
    if earlier is None or not material.mending or not earlier.raw.strip():
        return Row(item.n, item.id, prompt, tries, paid=paid)
    most = MENDING_BYTES_PER_TOKEN * material.call.max_output
    said = earlier.raw.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
    room = text_room(material.work, material.call)
    return Row(item.n, item.id, prompt, tries, said, earlier.why, earlier.checked, room, paid=paid)


def _digest_shared(call: Call, system: str, shape: Shape[Any, RowValue]) -> str:
    assert call.model is not None
    told = [call.model.id, call.max_output, call.effort, call.capabilities.model_dump()]
    asked = json.dumps([*told, system, shape.asked])
    return hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()


def _keyed(row: Row, base: str, material: RowsMaterial) -> Row:
    asked = json.dumps([base, row.n, row.tries, row.prompt, row.said, row.why])
    # By the call, not by the activity: another one collects what this one submits.
    return replace(row, key=key_of(asked, material.run, material.call.id))
