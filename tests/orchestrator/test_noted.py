"""What a report says of the bills of single calls: what is true, and once."""

from __future__ import annotations

from decimal import Decimal

from driving import Drive, subtask
from holdfast.activities.asking.replies import NO_COUNT
from holdfast.contracts import Bill, Reply, Usage
from holdfast.rules import reporting
from holdfast.state import paying
from holdfast.state.events import Answered
from holdfast.state.moves import Ask
from outcomes import begun, draft, end


def answered(run: Drive, flight_id: str, **bill: object) -> Ask:
    """A call comes back complete with this bill."""
    (ask,) = (each for each in run.in_flight if isinstance(each, Ask) and each.id == flight_id)
    assert ask.call.model is not None
    paid = Bill.model_validate({"model": ask.call.model.id, "calls": 1, **bill})
    run.put(Answered(ask, Reply(value=draft(flight_id), bill=paid)))
    return ask


def test_what_is_true_of_many_calls_is_one_line_that_names_and_counts_them() -> None:
    names = "abcdefg"
    run = begun(*(subtask(name) for name in names), concurrency=len(names))
    for name in names:
        answered(run, f"work-{name}-1", dollars=Decimal(0), final=False, note=NO_COUNT)
    (line,) = [each for each in reporting.notes(run.state) if NO_COUNT in each]
    named = "; ".join(f"work-{name}-1" for name in names[: paying.MOST_NAMED])
    assert line == f"7 calls, each: {NO_COUNT} ({named}; and 2 more)."


def test_what_a_call_cost_above_its_reservation_is_said_to_be_our_reckoning() -> None:
    run = begun(subtask("a"), subtask("b"))
    dear = answered(run, "work-a-1", dollars=Decimal("9.5"), usage=Usage(input_tokens=10**6))
    long = answered(run, "work-b-1", dollars=Decimal(0), usage=Usage(input_tokens=10**6))
    said = [each for each in reporting.notes(run.state) if each.startswith("One call")]
    assert said == [
        "One call: by our prices it cost more than was reserved for it"
        f" (work-a-1: $9.500000, reserved ${dear.amount.dollars}).",
        "One call: the endpoint counted more tokens than were reserved for it"
        f" (work-b-1: 1000000, reserved {long.amount.tokens}).",
    ]


def test_a_note_that_comes_again_is_counted_instead_of_repeated() -> None:
    run = begun(subtask("a"), subtask("b"), digest_above_tokens=100)
    end(run, "work-a-1", "at length")
    end(run, "work-b-1", "at length")
    end(run, "digest-a-1", "refused")
    end(run, "digest-b-1", "refused")
    left_out = [each for each in reporting.notes(run.state) if "was left out" in each]
    assert left_out == ["digest was left out: it was refused (2 times)"]
