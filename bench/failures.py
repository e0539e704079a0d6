"""Every failure that a model endpoint can show, against the real adapter: how many calls one `ask`
sends, how long the next one must wait, what error it becomes and what is known of the bill.

    python -m bench.failures        prints the table as Markdown
"""

from __future__ import annotations

import asyncio
import socket
import sys
from dataclasses import dataclass

from holdfast.activities.asking.prices import Prices
from holdfast.activities.claude.adapter import Claude
from holdfast.calls.work import WorkAnswer
from holdfast.certifying.failures import FAILURES
from holdfast.contracts import Bill
from holdfast.contracts.errors import OrchestrationError
from holdfast.deployment.settings import Settings
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.simulator.script import Rule, Script
from holdfast.simulator.server import Simulator

STALL_SECONDS = 0.5
REQUEST = ModelRequest(
    model="claude-sonnet-5-5",
    system="You are an analyst.",
    prompt="<instruction>\nCompare the three offers.\n</instruction>",
    schema=WorkAnswer.model_json_schema(),
    max_output=4_000,
    deadline_seconds=2.0,
)
ROWS: dict[str, Rule] = {
    "success": Rule(probability=0.0),
    **{name: Rule.model_validate(rule) for name, rule in FAILURES.items()},
}


@dataclass(frozen=True)
class Outcome:
    """`wait` is seconds that the next attempt must wait at least; None: Temporal's policy."""

    calls: int
    wait: float | None
    error: str
    known: str


async def measure(rule: Rule | None) -> Outcome:
    """Ask once; None asks where nobody listens."""
    script = Script(rules=() if rule is None else (rule,), ping_seconds=0.1)
    async with Simulator(script) as simulator:
        url = simulator.url if rule else f"http://127.0.0.1:{_closed_port()}"
        claude = Claude(
            key="scripted",
            base_url=url,
            price=Prices.of(Settings()).price,
            stall_seconds=STALL_SECONDS,
        )
        try:
            answer = await claude.ask(REQUEST)
        except OrchestrationError as error:
            return _failed(simulator, error)
        finally:
            await claude.aclose()
        return _answered(simulator, answer)


def _answered(simulator: Simulator, answer: ModelAnswer) -> Outcome:
    used = f"{answer.usage.input_tokens} in, {answer.usage.output_tokens} out"
    return Outcome(_calls(simulator), None, f"answer ({answer.stop_reason})", used)


def _failed(simulator: Simulator, error: OrchestrationError) -> Outcome:
    wait = error.next_retry_delay.total_seconds() if error.next_retry_delay else None
    bill = error.details[0] if error.details else None
    known = "nothing to pay"
    if isinstance(bill, Bill):
        used = bill.usage
        known = f"{used.input_tokens} in, {used.output_tokens} out" if used.total else "unknown"
        known += "" if bill.final or not used.total else " at least"
    return Outcome(_calls(simulator), wait, type(error).__name__, known)


def _calls(simulator: Simulator) -> int:
    return int(simulator.log.report()["requests"])


def _closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def main() -> None:
    rows = ["| failure | calls | wait at least | error | usage known |", "|---|---|---|---|---|"]
    for name, rule in [*ROWS.items(), ("connection refused", None)]:
        outcome = await measure(rule)
        wait = "" if outcome.wait is None else f"{outcome.wait:g} s"
        if outcome.error == "NotBilled" and not wait:
            wait = "policy"
        cells = (name, outcome.calls, wait, outcome.error, outcome.known)
        rows.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    sys.stdout.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
