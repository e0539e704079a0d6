"""Timeouts, retries and sizes of every activity: one table, one row an activity type.

Engineers change numbers here; callers have `Limits`, prompt-writers role files, operators
`Settings`. Seconds throughout. A dead worker is noticed by its missing heartbeat after 10 s: three
beats, so that two may be lost before a busy worker is taken for a dead one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypedDict

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

from orchestrator.contracts import Effort, Tier

CANCEL_GRACE = timedelta(seconds=10)
"""What has not answered this long after a cut counts at its reservation."""
OUTPUT_TOKENS = {"low": 200, "expected": 800}
"""What a call is taken to write when a plan is priced; the worst case is its max_output."""
TOOL_SECONDS = 5.0
"""What a tool is taken to need when a plan is predicted."""
APPROVAL_PATIENCE = timedelta(days=7)
"""How long a plan waits for approval before the run closes as declined."""
PERSON_PATIENCE = timedelta(hours=24)
"""How long an escalation waits for an answer, or a run for a higher cap."""
REPAIRS = 2
"""How often an answer of the wrong shape, or an invalid plan, is sent back to be mended."""
TRANSPORT_TRIES = 3
"""How often a call that may have been billed is scheduled again."""
OUTPUT_TOKENS_PER_SECOND = 40
"""A call's start-to-close is at least max_output over this."""
FREE_ATTEMPTS = 3
TOOL_MARGIN_SECONDS = 15
"""How much longer than its own limit a tool may take to clean up after itself."""
BYTES_PER_TOKEN = 2
"""The worst case for counting tokens of text without a tokenizer: UTF-8 bytes over this."""
PROMPT_OVERHEAD_TOKENS = 1_500
"""Schema, envelopes and tool preamble around the material of a call."""
FALLBACK_ROLE = "analyst"
"""Takes the whole goal when the planner gives no valid plan."""
MIN_SYNTHESIS_SECONDS = 60
SYNTHESIS_SHARE = 0.20
"""Of the deadline, kept for the synthesis."""


class Options(TypedDict):
    """What is spread into Temporal's call; ours, because ActivityConfig does not type-check beside
    `summary=`.
    """

    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta | None
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType


@dataclass(frozen=True)
class Policy:
    """One row; `seconds` is start-to-close. What asks a model runs on the queue of its tier."""

    seconds: int
    schedule_to_close: int | None = None
    attempts: int = 0
    """Temporal's attempts; 0: bounded by schedule-to-close alone."""
    tier: Tier = "sonnet"
    max_output: int = 0
    effort: Effort = "medium"
    heartbeat: int = 10

    def options(self, seconds: int = 0, attempts: int = 0) -> Options:
        """Temporal's options; `seconds`, if given, is the start-to-close of this one call, and
        `attempts` its bound.
        """
        longest = seconds or self.seconds
        return Options(
            start_to_close_timeout=timedelta(seconds=longest),
            schedule_to_close_timeout=(
                timedelta(seconds=max(self.schedule_to_close, 3 * longest))
                if self.schedule_to_close
                else None
            ),
            heartbeat_timeout=timedelta(seconds=self.heartbeat),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=1),
                backoff_coefficient=2.0,
                maximum_interval=timedelta(seconds=60),
                maximum_attempts=attempts or self.attempts,
                # The server calls this retryable, and the default policy would then pay for the
                # answer for ever.
                non_retryable_error_types=["PayloadsTooLarge"],
            ),
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


def _model(tier: Tier, max_output: int, effort: Effort, seconds: int = 300) -> Policy:
    return Policy(
        seconds,
        schedule_to_close=3_600,
        tier=tier,
        max_output=max_output,
        effort=effort,
    )


POLICIES: dict[str, Policy] = {
    "prepare": Policy(300, attempts=3),
    "use_tool": Policy(300, attempts=3),
    "plan": _model("sonnet", 8_000, "medium"),
    "work": _model("haiku", 8_000, "medium"),
    "review": _model("haiku", 4_000, "low"),
    "refine": _model("sonnet", 4_000, "medium"),
    "replan": _model("sonnet", 8_000, "medium"),
    "judge": _model("opus", 8_000, "high"),
    "digest": _model("haiku", 4_000, "low"),
    "synthesize": _model("sonnet", 16_000, "medium"),
    "critique": _model("sonnet", 8_000, "high"),
}


def patience(about: str) -> timedelta:
    """How long a run waits for a person about its `approval`, a `raise` or a subtask."""
    return APPROVAL_PATIENCE if about == "approval" else PERSON_PATIENCE


def options(kind: str, seconds: int = 0, *, free: bool = False) -> Options:
    """Temporal's options for an activity type; `seconds`, if given, is its start-to-close.

    `free`: it asks no model, so no throttle can be waited out, and a fault would repeat itself.
    """
    return POLICIES[kind].options(seconds, FREE_ATTEMPTS if free else 0)
