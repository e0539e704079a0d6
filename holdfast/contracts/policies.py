"""Timeouts, retries and sizes of every activity: one table, one row an activity type.

Engineers change numbers here; callers have `Limits`, prompt-writers role files, operators
`Settings`. Seconds throughout. A dead worker is noticed by its missing heartbeat, 10 s after the
last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TypedDict

from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

from holdfast.contracts import Effort, Tier

CANCEL_GRACE = timedelta(seconds=10)
"""What has not answered this long after a cut counts at its reservation."""
HAND_UP = timedelta(seconds=5)
"""How much longer, for each level of teams below, a run waits for the report of a team it cut."""
OUTPUT_TOKENS = {"low": 200, "expected": 800}
"""What a call is taken to write when a plan is priced; the worst case is its max_output."""
LENS_SECONDS = 5.0
"""What a lens is taken to need when a plan is predicted."""
DEADLINE_BEATS = 20
"""In so many parts a deadline runs: each begins when a worker has taken the one before, so that of
a time in which no worker serves the run one part at most counts.
"""
SHORTEST_BEAT = timedelta(seconds=2)
UNSERVED = timedelta(seconds=5)
"""Who is later than this with what was due is away, and not only busy."""
APPROVAL_PATIENCE = timedelta(days=7)
"""How long a plan waits for approval before the run closes as declined."""
PERSON_PATIENCE = timedelta(hours=24)
"""How long an escalation waits for an answer, or a run for a higher cap."""
REPAIRS = 2
"""How often an answer of the wrong shape, or an invalid plan, is sent back to be mended."""
NO_JSON = 2
"""After how many answers without any JSON a run pays for no more, if none ever had some."""
TRANSPORT_TRIES = 3
"""How often a call that may have been billed is scheduled again."""
TOO_LONG_TRIES = 2
"""How often the work of a subtask may take longer than a call may: then it is too big for one."""
FAULT_TRIES = 6
"""How often a call is sent that the endpoint fails at without charging it: half a minute."""
OVERLOAD_TRIES = 4
"""How often a call is sent that an overloaded endpoint refuses without naming a wait, before its
run takes that for an outage: some ten seconds.
"""
CALL_MARGIN_SECONDS = 15
"""How much longer the activity of a call has than its exchange with the model: to wait for its turn
and have its prompt counted, and to say what a call used that was cut.
"""
CALL_SECONDS = 300
"""The time of a call that is no work on a subtask, for which the caller's Limits say it."""
OUTPUT_TOKENS_PER_SECOND = 40
"""What such a call may write in its time: else that is max_output over this."""
MOST_TOOL_CALLS = 20
"""Calls of tools in one message of a model that are run; the others are told so."""
FREE_ATTEMPTS = 3
"""How often what asks no model is tried: it meets no throttle, and faults repeat themselves."""
PREPARE_SECONDS = 300
PREPARE_PATIENCE = 3_600
"""How long a run that asks models waits for a worker that can prepare it."""
PREPARE_TIER: Tier = "sonnet"
"""Shown as awaited by a run in preparation: who serves one tier serves all."""
REACH_ATTEMPT_SECONDS = 300
"""How long one attempt waits for an endpoint; how long the run does is its limit's business."""
BEATS = (0.7, 3.0, 4.5)
"""Seconds before each heartbeat of an attempt; the last stands for all that follow. Most tools end
before the first and cost none. Some servers bill each, so what takes long beats less often: below
half of the heartbeat timeout, so that one may be lost before a busy worker is taken for a dead one.
That one is dead is noticed no later for it, because the timeout runs from the last beat.
"""
SHORTEST_SLEEP = timedelta(milliseconds=1)
"""The shortest timer that Temporal keeps: shorter ones are none."""
LENS_MARGIN_SECONDS = 15
"""How much longer than its own limit a lens may take to clean up after itself."""
RESERVED_BYTES_PER_TOKEN = 2
"""What long text is reserved at: UTF-8 bytes over this. It is no bound: text of rare scripts, or of
no language, may have as many tokens as bytes, and never more, because tokenizers work on bytes.
"""
TOOLS_TOKENS = 600
"""No endpoint adds more to a request with tools, beyond what stands in it, to explain their use."""
UNCOUNTED_BYTES = 8_000
"""This much of a call's material is reserved at a token a byte: so most calls surely fit, and only
a longer prompt is counted by its endpoint before it leaves.
"""
PROMPT_OVERHEAD_TOKENS = 4_500
"""Instructions, schema, envelopes and tool preamble around the material of a call, at a token a
byte; the planner's, the longest, have 4,200.
"""
EXPECTED_OVERHEAD_TOKENS = 750
"""What these usually are."""
MIN_CONFIDENCE = 60
"""A finding is accepted from this confidence on, where the run's limits say nothing."""
LEAST_OUTPUT = 2_000
"""Tokens: no call is given less room for its answer, however small the cap. What plans and
syntheses need that are short; twice what an answer is taken to have.
"""
KEPT_SHARE = Decimal("0.25")
"""At most this share of the cap is kept for the synthesis, if a small one can be made of it."""
AGENT_TURNS = {"low": 2, "expected": 5}
"""Turns that an agent with tools is taken to need when its price is predicted."""
TURN_TOKENS = 200
"""What such an agent is taken to write in a turn that calls tools."""
RESULT_TOKENS = 1_500
"""What the results of a turn are taken to have."""
WEB_SEARCHES, WEB_FETCHES = 3, 2
"""What an endpoint with web tools of its own may do in one turn of an agent, without asking us."""
WEB_RESULT_TOKENS = 12_000
"""What one result of such a tool is taken to have at most. Of pages the endpoint is told less; of
searches and PDF it promises nothing.
"""
WEB_PAGE_TOKENS = 8_000
RESULT_BYTES = 20_000
"""The most of one result that a model is shown, in bytes, and so in tokens."""
TOOL_SECONDS = 2.0
TEAM_SUBTASKS = 3
"""How many subtasks a team is taken to plan when its price is predicted."""
VERIFIED_AT_ONCE = 10
"""Remarks that one call verifies."""
EXCERPT_BYTES = 3_000
"""How much of the code around a remark is shown: about 25 lines before and after."""
FALLBACK_ROLE = "analyst"
"""Takes the whole goal when the planner gives no valid plan."""
SYNTHESIS_SHARE = 0.20
"""This share of the deadline is kept for the synthesis."""
MIN_SYNTHESIS_SECONDS = 60
MOST_SYNTHESIS_SHARE = 0.25
"""Of a short deadline so much at most: each team keeps such a share of what is left to it, too."""


def tools_queue(queue: str) -> str:
    """The task queue of what asks no model, beside that of the runs: it takes this machine's time,
    so a worker takes little of it at once. What asks a model has the runs' own queue, because the
    server hands such work out with the workflow task that asks for it.
    """
    return f"{queue}-tools"


class Options(TypedDict):
    """Spread into Temporal's call; its own ActivityConfig does not type-check beside `summary=`."""

    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta | None
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    cancellation_type: ActivityCancellationType


@dataclass(frozen=True)
class Policy:
    """One row. How long one call may take follows from its room for output and the Limits."""

    tier: Tier = "sonnet"
    max_output: int = 0
    effort: Effort = "medium"
    schedule_to_close: int | None = None
    attempts: int = 0
    """Temporal's attempts; 0: bounded by schedule-to-close alone."""
    heartbeat: int = 10

    def options(self, seconds: float, *, attempts: int = 0, total: float = 0.0) -> Options:
        """Temporal's options for one call that may take this many seconds; `attempts` and `total`,
        the schedule-to-close, replace those of the row where they are given.
        """
        until = total or (max(self.schedule_to_close, 3 * seconds) if self.schedule_to_close else 0)
        return Options(
            start_to_close_timeout=timedelta(seconds=seconds),
            schedule_to_close_timeout=timedelta(seconds=until) if until else None,
            heartbeat_timeout=timedelta(seconds=self.heartbeat),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=1),
                backoff_coefficient=2.0,
                maximum_interval=timedelta(seconds=60),
                maximum_attempts=attempts or self.attempts,
                # The server calls this retryable: by default the answer would be paid forever.
                non_retryable_error_types=["PayloadsTooLarge"],
            ),
            cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


def model_policy(tier: Tier, max_output: int, effort: Effort) -> Policy:
    return Policy(tier, max_output, effort, schedule_to_close=3_600)


PREPARE = Policy(attempts=3)
EXAMINE = Policy(attempts=3)
USE_TOOL = Policy(attempts=3)
"""Those of each kind of call stand beside it, in `holdfast/calls/`."""


def patience(about: str) -> timedelta:
    """How long a run waits for a person about its `approval`, a `raise` or a subtask."""
    return APPROVAL_PATIENCE if about == "approval" else PERSON_PATIENCE


# ---------------------------------------------------------------- the deployment's own caps

MOST_RUN = "HOLDFAST_MOST_DOLLARS_RUN"
MOST_DAY = "HOLDFAST_MOST_DOLLARS_DAY"
"""The settings, as refusals name them; their values reach a run through its Briefing alone."""
