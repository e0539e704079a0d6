"""Verify remarks of a review: what a verifier is shown of each, and what its verdicts mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import JsonValue, ValidationError

from holdfast.calls.envelopes import envelope
from holdfast.contracts import Contract, Draft, Remark, Verdict
from holdfast.contracts.data import as_text
from holdfast.contracts.policies import EVIDENCE_BYTES

VERIFIED: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["verdicts"],
    "properties": {
        "verdicts": {
            "type": "array",
            "description": "Exactly one for each remark.",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["remark", "why", "verdict"],
                "properties": {
                    "remark": {"type": "integer", "description": "Its number."},
                    "why": {
                        "type": "string",
                        "description": "What in the code decides it, in one or two sentences, with"
                        " its `path:line`. For an open one, the question to its author.",
                    },
                    "verdict": {"type": "string", "enum": [*get_args(Verdict)]},
                },
            },
        }
    },
}
"""What a verifier hands up."""


class Place(Contract):
    """A line of a file, 1-based."""

    file: str
    line: int


class Said(Contract):
    """A verifier's verdict on the remark of a number, counted from 1."""

    remark: int
    why: str
    verdict: Verdict


@dataclass(frozen=True)
class Shown:
    """A remark as a model may see it, without secrets."""

    place: str
    message: str
    code: str
    """What is known of its place: code, changes, commits, uses."""
    absent: str = ""
    """Why there is no such place; empty if there is."""


def show_without_code(remarks: Sequence[Remark]) -> tuple[Shown, ...]:
    """Return the remarks as a history holds them, without code."""
    return tuple(
        Shown(f"{each.file} line {each.line}" if each.line else each.file, each.message, "")
        for each in remarks
    )


def enclose_remarks(remarks: Sequence[Remark], shown: Sequence[Shown]) -> Iterator[str]:
    """Yield each remark under its number, and what is known of its place. Neither says who made the
    remark, nor how sure of it that was.
    """
    for number, (remark, each) in enumerate(zip(remarks, shown, strict=True), 1):
        claim = f"{each.place}, said to be {remark.severity}\n{each.message}"
        yield envelope(f"remark {number}", claim)
        yield envelope(f"code of remark {number}", each.absent or each.code or "none can be shown")


def has_verdicts(draft: Draft) -> bool:
    """True if a draft is a verifier's."""
    return isinstance(draft.data.get("verdicts"), list)


def read_verdicts(data: dict[str, JsonValue], count: int) -> dict[int, Said]:
    """Return what a verifier said, the first verdict on each remark, by number."""
    given = data.get("verdicts")
    found: dict[int, Said] = {}
    for item in given if isinstance(given, list) else ():
        try:
            said = Said.model_validate(item)
        except ValidationError:
            continue
        if 1 <= said.remark <= count and said.why.strip():
            found.setdefault(said.remark, said)
    return found


def hold_to_places(draft: Draft, shown: Sequence[Shown]) -> Draft:
    """Return a verifier's draft in which each remark on a place that does not exist is refuted. If
    it lacks a remark, that fails a check.
    """
    if draft.status != "complete" or not shown:
        return draft
    said = read_verdicts(draft.data, len(shown))
    missing = [str(number) for number in range(1, len(shown) + 1) if number not in said]
    absent = {
        number: Said(remark=number, why=each.absent, verdict="refuted")
        for number, each in enumerate(shown, 1)
        if each.absent
    }
    whole: list[JsonValue] = [each.model_dump() for _, each in sorted({**said, **absent}.items())]
    data: dict[str, JsonValue] = {"verdicts": whole}
    update: dict[str, Any] = {"data": data, "content": as_text(data)}
    if missing:
        lacks = f"verdicts: none with a reason on remark {', '.join(missing)}"
        update["verdicts"] = (*draft.verdicts, lacks)
    return draft.model_copy(update=update)


def count_evidence(remarks: Sequence[Remark]) -> int:
    """Return the most bytes that a prompt has beside the remarks themselves."""
    return len(remarks) * EVIDENCE_BYTES
