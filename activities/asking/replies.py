"""Turn a recorded answer into its bill, and a value or what is wrong with it.

Answers come from outside. Whatever they hold, what leaves here can be stored and read again: a
reply that cannot would be tried again for an hour, or stop its run for good.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, NoReturn, TypeVar

from pydantic import ValidationError

from holdfast.activities.asking.closed import describe_dropped, drop_unknown
from holdfast.calls.kind import Answer, schema_of
from holdfast.contracts import Bill, Call, Contract, Problem, Reply, Usage, dollars
from holdfast.contracts.errors import PossiblyBilled
from holdfast.ledger.pricing import LANE_SHARE, price
from holdfast.ports import ModelAnswer, PriceOf
from holdfast.text import visible
from holdfast.text.mistakes import mistakes

HEAVY_LETTERS = 2**16
"""Characters of an answer beyond which it is read in a thread: the event loop serves every call."""
BROKEN_CHARACTERS = 20_000
"""Characters of a malformed answer that are sent back to be mended."""
SAID = 80
"""Characters quoted of an answer without JSON."""
_MAYBE_JSON = re.compile(r'\{\s*"')
NAME = 100
"""Characters shown of a name."""
NO_COUNT = (
    "the endpoint's count of tokens is none that a call can have, so no less than the full"
    " reservation counts"
)

Asked = TypeVar("Asked", bound=Answer)
Value = TypeVar("Value", bound=Contract)


def _refuse(_: object, why: str) -> NoReturn:
    raise ValueError(why)


@dataclass(frozen=True)
class Shape(Generic[Asked, Value]):
    """What one kind of call asks for, and how its answer is read."""

    answer: type[Asked]
    value: Callable[[Asked], Value]
    problem: Callable[[Value], Problem | None] = lambda _: None
    schema: Mapping[str, Any] = field(default_factory=dict)
    """The schema that the endpoint is given; empty: that of `answer`."""
    misfit: Callable[[Value], str] = lambda _: ""
    """Return where a value is not in its form: it is to be mended, and kept until it is."""
    doubled: Callable[[Value, str], Value] = _refuse
    """Return what becomes of a value in whose text an object has a name twice. Raise ValueError if
    it is malformed.
    """

    @property
    def asked(self) -> dict[str, Any]:
        return dict(self.schema) or _schema_of(self.answer)


@cache
def _schema_of(answer: type[Answer]) -> dict[str, Any]:
    """Return the schema of an answer, made once: that costs as much as a call's whole journal.
    Nobody writes to it; a copy is sent.
    """
    return schema_of(answer)


@dataclass(frozen=True)
class Conversation(Generic[Value]):
    """A call within a conversation: all messages so far, and how the next one is read."""

    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]
    read: Callable[[ModelAnswer], tuple[Value | None, Problem | None]]
    asked: Mapping[str, Any]
    """The schema of the answer at its end."""


def lost_call(call: Call, why: str, *, earlier: bool = False) -> PossiblyBilled:
    """Return the error of a call that may have been paid and of which nothing is known."""
    assert call.model is not None
    bill = Bill(model=call.model.id, calls=1, dollars=None, final=False, earlier=earlier)
    return PossiblyBilled(why, bill)


def dump_answer(answer: ModelAnswer) -> str:
    """Return an answer as the journal keeps it. A raw message that JSON cannot hold, as one nested
    without end, is left out.
    """
    fields = {
        "text": answer.text,
        "stop_reason": answer.stop_reason,
        "model": answer.model,
        "usage": answer.usage.model_dump(),
        "detail": answer.detail,
        "flaw": answer.flaw,
        "counted": answer.counted,
    }
    try:
        return json.dumps({**fields, "raw": answer.raw})
    except (ValueError, TypeError, RecursionError):
        return json.dumps(fields)


def load_answer(kept: str) -> ModelAnswer:
    """Return the answer that the journal keeps. Raises whatever a damaged record makes it raise."""
    fields: dict[str, Any] = json.loads(kept)
    return ModelAnswer(**fields | {"usage": Usage.model_validate(fields["usage"])})


def make_reply(
    call: Call, shape: Shape[Asked, Value] | Conversation[Value], kept: str, price_of: PriceOf
) -> Reply[Value]:
    """Return the reply that a recorded answer makes. Raise PossiblyBilled if the record is damaged,
    or for anything unforeseen.
    """
    try:
        answer = load_answer(kept)
        bill = _bill(call, answer, price_of)
    except Exception as error:
        raise lost_call(call, f"its recorded answer cannot be read: {_describe(error)}") from None
    try:
        if isinstance(shape, Conversation):
            value, problem = shape.read(answer)
            return Reply(value=value, problem=problem, bill=bill)
        return _judge(shape, answer, bill)
    except Exception as error:
        raise PossiblyBilled(f"its answer cannot be taken: {_describe(error)}", bill) from None


def _judge(shape: Shape[Asked, Value], answer: ModelAnswer, bill: Bill) -> Reply[Value]:
    problem = _explain_stop(answer)
    if problem is not None:
        return Reply(problem=problem, bill=bill)
    try:
        value, dropped = read_value(shape, answer.text)
        # What is deeper than a reader follows, or half a character, is found here.
        type(value).model_validate_json(value.model_dump_json())
    except (ValidationError, ValueError, RecursionError) as error:
        return Reply(problem=malformed_problem(shape, answer.text, error), bill=bill)
    bill = note_dropped(bill, dropped)
    if where := shape.misfit(value):
        text = answer.text[:BROKEN_CHARACTERS]
        return Reply(
            value=value, problem=Problem(kind="malformed", why=where, answer=text), bill=bill
        )
    wrong = shape.problem(value)
    if wrong is None:
        return Reply(value=value, bill=bill)
    # Whoever is to mend it must see it.
    wrong = wrong.model_copy(update={"answer": answer.text[:BROKEN_CHARACTERS]})
    return Reply(problem=wrong, bill=bill)


def read_value(shape: Shape[Asked, Value], text: str) -> tuple[Value, tuple[str, ...]]:
    """Return the value of an answer, and the places of what its schema does not have, which is left
    out. Raise ValueError, ValidationError or RecursionError if it is malformed all the same.
    """
    value, dropped = _read(shape, text)
    twice = _find_double_name(text) if shape.schema else ""
    return shape.doubled(value, twice) if twice else value, dropped


def _read(shape: Shape[Asked, Value], text: str) -> tuple[Value, tuple[str, ...]]:
    """Read the text as it came, and only if that is malformed without what its schema does not
    have.
    """
    try:
        value = shape.value(shape.answer.model_validate_json(text))
    except ValueError:
        found = _read_known(shape, text)
        if found is None:
            # Told as it came, with the names of what its form does not know.
            raise
        return found
    return (_read_known(shape, text) if shape.misfit(value) else None) or (value, ())


def _read_known(shape: Shape[Asked, Value], text: str) -> tuple[Value, tuple[str, ...]] | None:
    """Read the text without what its schema does not have; None if there is nothing to leave out,
    or the rest is malformed, too.
    """
    try:
        known, dropped = drop_unknown(shape.asked, text)
        if not dropped:
            return None
        value = shape.value(shape.answer.model_validate_json(known))
        return None if shape.misfit(value) else (value, dropped)
    except (ValueError, RecursionError):
        return None


def note_dropped(bill: Bill, dropped: tuple[str, ...]) -> Bill:
    """Return the bill with a note on what was left out of its answer."""
    notes = filter(None, (bill.note, describe_dropped(dropped)))
    return bill.model_copy(update={"note": "; ".join(notes)}) if dropped else bill


def _find_double_name(text: str) -> str:
    """Return which name an object of the text has twice: readers differ in which of the two they
    take. Empty: none.
    """
    found: list[str] = []

    def seen(pairs: list[tuple[str, object]]) -> None:
        names = [name for name, _ in pairs]
        found.extend(name for name, times in Counter(names).items() if times > 1)

    # No number is read: one may have more digits than this reader takes.
    json.loads(text, object_pairs_hook=seen, parse_int=str)
    return f"an object has the name {visible(found[0][:NAME])!r} twice" if found else ""


def _bill(call: Call, answer: ModelAnswer, price_of: PriceOf) -> Bill:
    """Return what an answer cost, by the price of the model that served it; if that has none, by no
    less than the price of the model that was asked.
    """
    assert call.model is not None
    usage, asked = answer.usage, price(call.model, answer.usage)
    same = answer.model == call.model.id
    cost = asked if same and asked is not None else price_of(answer.model, usage)
    if cost is not None and not same:
        cost = dollars(cost * LANE_SHARE[call.model.lane])
    notes, final = [], answer.counted
    if not answer.counted:
        notes.append(NO_COUNT)
    if cost is None and asked is not None:
        cost, final = asked, False
        counts_at = "its full reservation" if cost <= call.ceiling else f"{call.model.id}'s price"
        notes.append(
            f"the endpoint named model '{visible(answer.model)}', which has no price, so"
            f" {counts_at} counts"
        )
    # What is above the reservation is noted where it is settled.
    return Bill(
        model=answer.model,
        calls=1,
        usage=usage,
        dollars=cost,
        final=final,
        note="; ".join(notes),
    )


def _explain_stop(answer: ModelAnswer) -> Problem | None:
    """Return what a stop reason says against the answer; None if the answer ended by itself."""
    if answer.stop_reason == "refusal":
        return Problem(kind="refusal", why=f"the model refused: {answer.detail or 'no reason'}")
    if answer.stop_reason in ("max_tokens", "model_context_window_exceeded"):
        return Problem(kind="truncated", why=f"the answer was cut ({answer.stop_reason})")
    if answer.stop_reason not in ("end_turn", "stop_sequence"):
        said = f"unexpected stop reason {answer.stop_reason!r}"
        return Problem(kind="malformed", why=said)
    if answer.flaw:
        text = answer.text[:BROKEN_CHARACTERS]
        return Problem(kind="malformed", why=answer.flaw, answer=text)
    return None


def malformed_problem(shape: Shape[Any, Any], text: str, error: Exception) -> Problem:
    """Return what is wrong with an answer that could not be read: it holds no JSON, or other JSON.
    An object with a fence or words around it is judged as well: one of the two mistakes alone would
    be mended.
    """
    answer = text[:BROKEN_CHARACTERS]
    if (inside := _find_object(text)) is not None:
        around = "the answer has a fence or words around its JSON object; give the object alone"
        why = "; ".join(filter(None, (_judge_object(shape, inside), around)))
        return Problem(kind="malformed", why=why, answer=answer)
    if _holds_json(text):
        return Problem(kind="malformed", why=first_lines(error), answer=answer)
    why = f"the answer holds no JSON: {_quote(text)}"
    return Problem(kind="malformed", why=why, answer=answer, no_json=True)


def _find_object(text: str) -> str | None:
    """Return the first object of a text that is not JSON as a whole; None: there is none."""
    begins = _MAYBE_JSON.search(text)
    if begins is None:
        return None
    try:
        _, end = json.JSONDecoder(parse_int=str).raw_decode(text, begins.start())
    except (ValueError, RecursionError):
        return None
    rest = text[: begins.start()] + text[end:]
    return text[begins.start() : end] if rest.strip() else None


def _judge_object(shape: Shape[Any, Any], text: str) -> str:
    """Return what is wrong with an object; empty: nothing."""
    held, wanted = json.loads(text, parse_int=str), shape.asked.get("required", ())
    missing = [name for name in wanted if name not in held]
    if missing:
        return f"the object in the answer lacks {', '.join(missing)}"
    try:
        read_value(shape, text)
    except (ValidationError, ValueError, RecursionError) as error:
        return first_lines(error)
    return ""


def _holds_json(text: str) -> bool:
    """True also for broken JSON: whoever tries knows what is asked for."""
    if _MAYBE_JSON.search(text):
        return True
    try:
        json.loads(text, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return True


def _quote(text: str) -> str:
    said = " ".join(text[: 10 * SAID].split())
    shown = visible(said[:SAID]) + ("…" if len(said) > SAID else "")
    return f'"{shown}"' if said else "it is empty"


def first_lines(error: Exception) -> str:
    if isinstance(error, ValidationError):
        said = "; ".join(mistakes(error, "answer")[:5])
    else:
        said = str(error) or type(error).__name__
    return visible(said[:500], keep="\n")


def _describe(error: Exception) -> str:
    return visible(f"{type(error).__name__}: {error}"[:300])
