"""What a call that failed cost, by its events."""

from __future__ import annotations

from decimal import Decimal

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from driving import model
from holdfast.contracts import Bill, Call, Usage
from holdfast.contracts.errors import PossiblyBilled
from holdfast.history.charges import read_outcome
from holdfast.history.executions import Execution
from holdfast.temporal.connection import data_converter

pytestmark = pytest.mark.anyio
CEILING = Decimal("0.5")


@pytest.mark.parametrize(
    ("bill", "dollars", "assumed"),
    [
        (Bill(calls=1), CEILING, CEILING),
        (
            Bill(calls=1, usage=Usage(input_tokens=522, output_tokens=16), dollars=None),
            CEILING,
            CEILING,
        ),
        (
            Bill(calls=1, usage=Usage(input_tokens=5), dollars=Decimal("0.1")),
            Decimal("0.1"),
            Decimal(0),
        ),
    ],
    ids=["nothing was heard of it", "it broke off in the middle", "its price was told"],
)
async def test_a_call_that_was_lost_counts_as_the_ledger_counts_it(
    bill: Bill, dollars: Decimal, assumed: Decimal
) -> None:
    converter, failed = data_converter(None), HistoryEvent()
    failed.event_type = EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED
    failure = failed.activity_task_failed_event_attributes.failure
    await converter.encode_failure(PossiblyBilled("it was lost", bill), failure)
    asked = Call(kind="work", purpose="work-t1", model=model("sonnet", 3), ceiling=CEILING)
    scheduled = HistoryEvent(event_type=EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
    outcome = await read_outcome(converter, Execution(scheduled, None, failed), asked)
    assert (outcome.bill.dollars, outcome.bill.assumed) == (dollars, assumed)
    assert outcome.bill.usage == bill.usage
