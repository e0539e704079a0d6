"""The answer of a run in the form that was asked for: data by a schema, or a table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pydantic import JsonValue

from holdfast.activities.asking.forms import MOST_MISTAKES, find_mistakes
from holdfast.activities.asking.replies import Shape
from holdfast.activities.catalogue.answer_forms import explain_columns
from holdfast.calls.kind import schema_of as answer_schema
from holdfast.calls.synthesize import (
    SYNTHESIZE,
    FormedAnswer,
    SynthesisAnswer,
    SynthesisMaterial,
    to_synthesis,
)
from holdfast.contracts import AnswerForm, Synthesis
from holdfast.contracts.data import block, table
from holdfast.text import pluralize, visible

TEXT = {"type": "string"}
CHOSEN_COLUMNS = 30
"""Most columns of a table whose columns the model chooses."""
MISFIT = 500
"""Characters of the description of what is wrong with an answer."""


def answer_shape(material: SynthesisMaterial) -> Shape[Any, Synthesis]:
    """Return what the synthesis is asked for, and how its answer is read."""
    if not material.form.is_data:
        return Shape(SynthesisAnswer, lambda answer: SYNTHESIZE.value(answer, material))
    return Shape(
        FormedAnswer,
        partial(_to_synthesis, material.form),
        schema=_wrap_schema(schema_of(material.form)),
        misfit=lambda synthesis: synthesis.misfit,
        doubled=_as_text,
    )


def schema_of(form: AnswerForm) -> dict[str, Any]:
    if form.kind == "json":
        return dict(form.result)
    told = f"exactly these, in this order: {', '.join(form.columns)}" if form.columns else ""
    named = {"type": "string", "enum": list(form.columns)} if form.columns else TEXT
    columns = {"type": "array", "minItems": 1, "items": named}
    return {
        "type": "object",
        "properties": {
            "columns": {**columns, "description": told} if told else columns,
            "rows": {
                "type": "array",
                "description": "each with a text for each column",
                "items": {"type": "array", "items": TEXT},
            },
        },
        "required": ["columns", "rows"],
        "additionalProperties": False,
    }


def _wrap_schema(own: dict[str, Any]) -> dict[str, Any]:
    """Return the schema together with the fields that stand beside every answer."""
    schema = answer_schema(FormedAnswer)
    shared = own.pop("$defs", None)
    whole = {
        "type": "object",
        "properties": schema["properties"] | {"answer": own},
        "required": schema["required"],
        "additionalProperties": False,
    }
    return {**whole, "$defs": shared} if shared else whole


def _to_synthesis(form: AnswerForm, answer: FormedAnswer) -> Synthesis:
    """Return the answer as data; if it is not in its form, as text with what is wrong, in words for
    the model that wrote it.
    """
    if wrong := "; ".join([*_find_mistakes(form, answer.answer)][:MOST_MISTAKES]):
        said = answer.answer if isinstance(answer.answer, str) else block(answer.answer)
        # As of every malformed answer: so much is told, on lines that show all that they hold.
        return _as_text(to_synthesis(answer, said), visible(wrong[:MISFIT], keep="\n"))
    text = _render(form, answer.answer)
    return to_synthesis(answer, text).model_copy(update={"document": answer.answer})


def _as_text(synthesis: Synthesis, wrong: str) -> Synthesis:
    """Return the synthesis as text that is not in its form."""
    misfit = "; ".join(each for each in (synthesis.misfit, wrong) if each)
    return synthesis.model_copy(update={"misfit": misfit, "document": None})


def _find_mistakes(form: AnswerForm, answer: JsonValue) -> Iterator[str]:
    """Yield each place where the answer is not in its form, and what is wrong there."""
    found = [*find_mistakes(schema_of(form), answer, "answer")]
    yield from found
    if found or form.kind == "json" or not isinstance(answer, dict):
        return
    columns, rows = answer["columns"], answer["rows"]
    assert isinstance(columns, list) and isinstance(rows, list)
    if form.columns and columns != list(form.columns):
        yield f"answer.columns: must be {', '.join(form.columns)}, in this order"
    elif wrong := explain_columns(tuple(map(str, columns)), CHOSEN_COLUMNS):
        yield f"answer.columns: {wrong}"
    for number, row in enumerate(rows):
        assert isinstance(row, list)
        if len(row) != len(columns):
            yield f"answer.rows[{number}]: has {pluralize(len(row), 'text')}, not {len(columns)}"


def _render(form: AnswerForm, answer: JsonValue) -> str:
    if form.kind == "json":
        return block(answer)
    assert isinstance(answer, dict)
    columns: Any = answer["columns"]
    rows: Any = answer["rows"]
    return table(columns, rows)
