"""One row of a map: one instruction over one item, one answer.

What all rows of a map begin with stands in the system prompt, word for word the same for each, so
that the endpoint reads it once; the item alone is the user turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import JsonValue

from holdfast.calls.about import About, say_today
from holdfast.calls.envelopes import envelope, section
from holdfast.calls.findings import as_data, sureness, text_for_dependents
from holdfast.calls.items import say_fields
from holdfast.calls.kind import Answer, AnyCase, ModelKind
from holdfast.calls.rows import Item, Merging
from holdfast.calls.work import COMPOSED_ROW, ROOM, Told, WorkMaterial, join_rules
from holdfast.contracts import Call, Contract, Reply, RoleCard, Subtask
from holdfast.contracts.policies import PROMPT_OVERHEAD_TOKENS, model_policy

Result = TypeVar("Result")
MERGE_RULES = "merge_rules"
"""The file of what is told to a call that merges texts of rows."""
RowAnswerStatus = Literal["complete", "failed"]
TEXT_FIELD = "text"
"""The only field of an item that is a file, a page or a line."""
MEND_FORM = "Answer again for the same item, in the right form."
MEND_RESULT = (
    "Answer again for the same item. Mend what you got wrong; where it is the item that is so,"
    " change nothing to fit and answer failed, with that as `why_failed`."
)


class _Answered(Answer, Generic[Result]):
    result: Result
    why_failed: str
    status: Annotated[RowAnswerStatus, AnyCase]


# Without a docstring: models would read it as the description of their schema.
class RowAnswer(_Answered[str]):
    pass


class RowDataAnswer(_Answered[dict[str, JsonValue] | str]):
    """Answer about an item where its result has a form: data, or words where there is none."""


class RowValue(Contract):
    """What a model said of one item."""

    status: RowAnswerStatus
    result: JsonValue
    why: str = ""


def row_prompt(item: Item) -> str:
    """Return the user turn of an item. Fields are JSON, so that no text can look like another
    field.
    """
    text = item.fields.get(TEXT_FIELD)
    if len(item.fields) == 1 and isinstance(text, str):
        return envelope("item", text)
    return envelope("item", json.dumps(item.fields, ensure_ascii=False))


def mending_prompt(why: str, *, checked: bool, room: int = 0) -> str:
    """Return what is said to an answer that is no result; `checked`: a check failed it, not its
    form.
    """
    wrong = envelope("what is wrong with this answer", why)
    return "\n\n".join((wrong, MEND_RESULT if checked else MEND_FORM, *_say_room(room)))


def text_room(material: WorkMaterial, call: Call) -> int:
    """Return the tokens of an answer that is a text, and may need all of them; 0: it has a form."""
    return 0 if form_of(material) else call.max_output


def _say_room(tokens: int) -> Iterator[str]:
    if tokens:
        yield ROOM.format(tokens=tokens)


def merge_beginning(material: WorkMaterial, merging: Merging, rules: str, room: int = 0) -> str:
    """Return what all groups of texts begin with: rules, how many have none, instruction."""
    told = f"{merging.items:,} items in all, of which {merging.without:,} have no text."
    parts = (rules, *_say_room(room), *say_today(material.about), told)
    return "\n\n".join((*parts, section("instruction", say_fields(material.subtask.instruction))))


def row_beginning(material: WorkMaterial, told: Told, rules: str, room: int = 0) -> str:
    """Return what all rows of a map begin with: role, rules, shared inputs, findings, instruction.
    `told.contents` are its other inputs, and `told.role` is the prompt of its role.
    """
    subtask = material.subtask
    parts = [join_rules(told.role, rules), *_say_room(room)]
    parts += [envelope(f"input {name}", text) for name, text in told.contents.items()]
    parts += [
        envelope(
            f"finding of subtask {each.subtask_id}{sureness(each)}{as_data(each)}",
            text_for_dependents(each),
        )
        for each in material.dependencies
    ]
    if material.composed:
        parts.append(section("role", material.composed))
    # A row is not the answer, and every word here is paid once a row.
    parts += say_today(material.about)
    parts.append(section("instruction", say_fields(subtask.instruction)))
    if subtask.acceptance_criteria:
        parts.append(section("acceptance_criteria", subtask.acceptance_criteria))
    return "\n\n".join(parts)


def shared_bytes(material: WorkMaterial, role: RoleCard) -> int:
    """Return no less than the bytes of what all rows begin with, and of the schema and envelopes
    around it.
    """
    over = material.subtask.map.over if material.subtask.map else ""
    inputs = tuple(each for each in material.inputs if each.name != over)
    said = {"inputs": (), "about": About(today=material.about.today)}
    told = material.model_copy(update=said).model_dump_json(exclude_defaults=True)
    size = len(told.encode()) + sum(each.size for each in inputs if each.enclosed)
    form = form_of(material)
    # A schema that is said in the prompt is not in the request as well.
    size += len(json.dumps(form)) if form else 0
    return size + role.prompt_bytes + PROMPT_OVERHEAD_TOKENS


def form_of(material: WorkMaterial) -> dict[str, JsonValue]:
    """Return the JSON schema of one row's result; empty: text."""
    spec = material.subtask.map
    return (spec.result if spec else {}) or material.form


def role_file(material: WorkMaterial) -> str:
    """Return the file of the role's prompt, where that is none of its own; empty: it is."""
    return COMPOSED_ROW if material.composed else ""


ROW: ModelKind[Item, RowAnswer, RowValue] = ModelKind(
    name="row",
    reply=Reply[RowValue],
    policy=model_policy("haiku", 1_000, "low"),
    answer=RowAnswer,
    value=lambda answer, _: RowValue(
        status=answer.status, result=answer.result, why=answer.why_failed
    ),
    prompt="row_rules",
    turn=row_prompt,
)


def row_room(subtask: Subtask) -> int:
    """Return the tokens that one answer about an item may have."""
    return subtask.max_output or ROW.policy.max_output
