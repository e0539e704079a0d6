"""What a call that failed cost, in a trace."""

from __future__ import annotations

from decimal import Decimal

import pytest
from temporalio.api.failure.v1 import Failure

from holdfast.contracts import Bill, Usage
from holdfast.contracts.errors import PossiblyBilled
from holdfast.temporal.connection import data_converter
from holdfast.tracing.facts import of_failure

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
    converter, failure = data_converter(None), Failure()
    await converter.encode_failure(PossiblyBilled("it was lost", bill), failure)
    facts = await of_failure(converter, failure, CEILING)
    assert (facts["dollars"], facts["assumed"]) == (dollars, assumed)
