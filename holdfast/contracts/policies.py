"""Timeouts, retries and sizes of all activities, in seconds where nothing else is said.

Engineers change numbers here; callers have `Limits`, prompt writers role files, operators
`Settings`. A missing heartbeat reveals a dead worker 10 s after the last one.
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
"""How much longer a run waits for the report of a team it cut, per level of teams below."""
OUTPUT_TOKENS = {"low": 200, "expected": 800}
"""Assumed for a call when a plan is priced; the worst case is its max_output."""
LENS_SECONDS = 5.0
"""Assumed for a lens when a plan is predicted."""
DEADLINE_BEATS = 20
"""Parts of a deadline. Each begins when a worker has taken in the one before, so that a time in
which no worker serves the run counts as one part at most.
"""
SHORTEST_BEAT = timedelta(seconds=2)
UNSERVED = timedelta(seconds=5)
"""Taking in a timer later than this means that no worker served the run."""
APPROVAL_PATIENCE = timedelta(days=7)
"""How long a plan waits for approval before the run closes as declined."""
PERSON_PATIENCE = timedelta(hours=24)
"""How long an escalation waits for an answer, or a run for a higher cap."""
REPAIRS = 2
"""How often an answer of the wrong shape, or an invalid plan, is sent back to be mended."""
NO_JSON = 2
"""Answers without any JSON after which a run pays for no more, if none ever had some."""
TRANSPORT_TRIES = 3
"""How often a call that may have been billed is scheduled again."""
TOO_LONG_TRIES = 2
"""How often work on a subtask may exceed the time of a call, until it counts as too big for one."""
FAULT_TRIES = 6
"""How often a call is sent to an endpoint that fails without charging it: half a minute."""
OVERLOAD_TRIES = 4
"""How often a call is sent to an overloaded endpoint that names no wait, before its run takes that
for an outage: some ten seconds.
"""
CALL_MARGIN_SECONDS = 15
"""What an activity has beyond the exchange with the model: to wait for its turn, to have its prompt
counted, and to report the usage of a call that was cut.
"""
CALL_SECONDS = 300
"""Time of a call that is not work on a subtask; for those the Limits say it."""
OUTPUT_TOKENS_PER_SECOND = 40
"""Longer answers of such a call have max_output over this."""
MOST_TOOL_CALLS = 20
"""Calls of tools in one message of a model that are made."""
FREE_ATTEMPTS = 3
"""Attempts of what asks no model until its own failure is the last: it meets no throttle, and its
faults repeat.
"""
MOST_ATTEMPTS = 8
"""Its attempts with those that dead workers took along: one that kills its worker ends, too."""
PREPARE_SECONDS = 300
SCAN_SECONDS = 3_000
"""The same, where items of large inputs may have to be looked at."""
PREPARE_PATIENCE = 3_600
"""How long a run that asks models waits for a worker that can prepare it."""
STRONGEST: Tier = "opus"
"""Asked once for what weaker models could not do: a plan, a change of it, a verdict."""
PREPARE_TIER: Tier = "sonnet"
"""Shown as awaited by a run in preparation: who serves one tier serves all."""
REACH_ATTEMPT_SECONDS = 300
"""How long one attempt waits for an endpoint; the run's limit bounds all of them."""
BEATS = (0.7, 3.0, 4.5)
"""Seconds before each heartbeat of an attempt; the last is repeated. Most tools end before the
first and cost none. What takes long beats less often: below half of the heartbeat timeout, so that
one may be lost. A death is noticed no later for it, because the timeout runs from the last beat.
"""
BILLED_BEATS = (3.0, 4.5)
"""The same where the server bills each: a short call of a cheap model would else cost more for its
beats than for its tokens. Until the first one nobody but the journal knows that the call has left.
"""
SHORTEST_SLEEP = timedelta(milliseconds=1)
"""The shortest timer that Temporal keeps."""
LENS_MARGIN_SECONDS = 15
"""What a lens has beyond its own limit to clean up."""
RESERVED_BYTES_PER_TOKEN = 2
"""UTF-8 bytes over this are reserved for long text. It is not a bound: rare scripts may have a
token a byte, and never more, because tokenizers work on bytes.
"""
READ_FINDING_BYTES = 1_000
"""Bytes of the specification of `read_finding`, at most."""
TOOLS_TOKENS = 600
"""The most that an endpoint adds to a request to explain the use of its tools."""
UNCOUNTED_BYTES = 8_000
"""So much of a call's material is reserved at a token a byte: most calls surely fit, and only a
longer prompt is counted by its endpoint before it leaves.
"""
PROMPT_OVERHEAD_TOKENS = 4_500
"""Instructions, schema, envelopes and tool preamble around the material of a call, at a token a
byte; the planner's, the longest, have 4,200.
"""
EXPECTED_OVERHEAD_TOKENS = 750
"""What these usually are."""
MIN_CONFIDENCE = 60
"""Findings are accepted from this confidence on, unless the limits say otherwise."""
LEAST_OUTPUT = 2_000
"""Tokens: the least room of any answer, however small the cap; enough for short plans and
syntheses, and twice what an answer is assumed to have.
"""
LEAST_ROW_OUTPUT = 64
"""Tokens: the least room of a row's answer, which may be one word in its form."""
KEPT_SHARE = Decimal("0.25")
"""The most of the cap that is kept for the synthesis, if a small one fits into it."""
AGENT_TURNS = {"low": 2, "expected": 5}
"""Assumed for an agent with tools when its price is predicted."""
TURN_TOKENS = 200
"""Assumed for a turn that calls tools."""
RESULT_TOKENS = 1_500
"""Assumed for the results of a turn."""
LENS_TOKENS = 50
"""Assumed for what an agent is told of a lens: most have nothing to tell."""
REVIEW_TOKENS = 400
"""Assumed beside the role of an agent of a change: what all of them are told, the form of remarks,
callers and tests.
"""
NO_REMARK_TOKENS = 30
"""What such an agent writes that has none."""
FILES_A_TURN = 5
"""Changed files for which an agent of a change is assumed to take one turn more."""
MOST_FILES_READ = 40
"""Changed files of which it is assumed to read each once; in its prompt stands the diff."""
WEB_SEARCHES, WEB_FETCHES = 3, 2
"""What an endpoint with web tools may do by itself in one turn of an agent."""
WEB_RESULT_TOKENS = 12_000
"""The most assumed for one result of such a tool: less for pages, as the endpoint is told; for
searches and PDF it promises nothing.
"""
WEB_PAGE_TOKENS = 8_000
RESULT_BYTES = 20_000
"""The most of one result that a model is shown, in bytes, and so in tokens."""
TOOL_SECONDS = 2.0
TEAM_SUBTASKS = 3
"""Assumed for the plan of a team when its price is predicted."""
VERIFIER = "verifier"
"""The role of a playbook that verifies remarks."""
VERIFIED_AT_ONCE = 10
"""Remarks that one agent verifies."""
EVIDENCE_BYTES = 8_000
"""The most that is shown of a remark's place: its function, changes, commits and uses."""
VERIFIER_OUTPUT = 6_000
"""Tokens of one message of a verifier, with its thoughts."""
PROOF_BYTES = 14_000
"""Shown of a remark's function, of its base, and of what a script can call."""
FIXED = 5
"""Remarks of a review that get a patch, where patches are asked for."""
FALLBACK_ROLE = "analyst"
"""Takes the whole goal when the planner gives no valid plan, and is the fallback of each role that
names none.
"""
SYNTHESIS_SHARE = 0.20
"""The share of the deadline that is kept for the synthesis."""
MIN_SYNTHESIS_SECONDS = 60
MOST_SYNTHESIS_SHARE = 0.25
"""The most of a short deadline: each team keeps such a share of what is left to it, too."""

FEWEST_MAPPED = 30
"""Items of an input from which on a planner is told that it may map it."""
FEWEST_CHUNK_ITEMS = 100
"""Items of a map that are asked together, at least; more where it has very many, or many calls may
be in flight.
"""
MOST_CHUNKS = 400
"""Chunks of one pass over a map: at some seven events each, its history stays small."""
CHUNK_BYTES = 8 * 2**20
BATCH_ROWS, BATCH_BYTES = 2_000, 16 * 2**20
"""The most of one batch: it is put together in memory."""
MEND_BATCH_ROWS = 500
"""Rows to be mended for which no open batch is waited for."""
FEWEST_ROWS_A_CALL = 20
"""Rows that each of the calls in flight of a chunk has, at least: fewer, and the last ones idle."""
LOOKS = (15.0, 120.0, 600.0)
"""Seconds until the first look at an open batch, each pause 1.5 times the last; the most between
two in the first hour, in which most batches end, and afterwards.
"""
LOOKS_OFTEN = 36
"""Looks of about the first hour."""
BATCH_WORTH_SECONDS = 7_200
"""A map with so much time left may go by batches."""
BATCH_SECONDS = 90_000
"""What a map that goes by batches alone may need: one ends within a day."""
BATCH_PATIENCE = 21_600
"""How long the results of a batch are tried to be read; no worker, or no endpoint, may be there."""
BATCH_CUT = timedelta(minutes=10)
"""How much longer a run waits for a map that it cut: its open batches are cancelled and read."""
ROWS_ANSWER = timedelta(seconds=30)
"""How long an order about rows of a map waits for what came of it, before it says why it waits."""
ROW_SECONDS = 5.0
"""Assumed for a row when it is decided until when batches can be waited for."""
ROW_LOSSES = 10
"""How often a row is sent of which no answer comes: a worker that is killed takes all that it has
sent along, and each such row is paid at worst from the same cap.
"""
TOLERATED_FROM = 50
"""Rows that have ended, from which on a map stops where too many of them have failed."""
MERGE_OUTPUT = 2_000
"""Tokens of a text merged of several, unless its subtask says otherwise."""
MERGED_TOKENS = 8_000
"""Tokens of the texts that one call merges, at most."""
UNMERGED_BYTES = 16_000
"""Bytes of the texts that nobody could merge, as whoever reads the merged one is given them."""


def tools_queue(queue: str) -> str:
    """Return the task queue of what asks no model, beside that of the runs: it takes this machine's
    time, so a worker takes little of it at once. What asks a model has the runs' own queue, because
    the server hands such work out with the workflow task that asks for it.
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
    """One row. The time of one call follows from its room for output and the Limits."""

    tier: Tier = "sonnet"
    max_output: int = 0
    effort: Effort = "medium"
    schedule_to_close: int | None = None
    attempts: int = 0
    """Temporal's attempts; 0: bounded by schedule-to-close alone."""
    heartbeat: int = 10

    def options(self, seconds: float, *, attempts: int = 0, total: float = 0.0) -> Options:
        """Return Temporal's options for one call of so many seconds; `attempts` and `total`, the
        schedule-to-close, replace those of the row.
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


PREPARE = Policy(attempts=MOST_ATTEMPTS)
OPEN_MAP = Policy(attempts=MOST_ATTEMPTS)
EXAMINE = Policy(attempts=MOST_ATTEMPTS)
USE_TOOL = Policy(attempts=MOST_ATTEMPTS)
"""Those of each kind of call stand beside it, in `holdfast/calls/`."""
ROWS = Policy(schedule_to_close=3_600)
"""Of what a map asks of an endpoint: rows, batches, how they stand."""
OPEN_MAP_SECONDS = 3_600
"""The most for reading an input of 10 GB, or for putting together what came of all its items."""
ENDPOINT_SECONDS = 600
"""The most for making a batch, for a look at batches, and for reading the results of one."""
SEND_NOTICE = Options(
    start_to_close_timeout=timedelta(seconds=30),
    schedule_to_close_timeout=timedelta(days=3),
    heartbeat_timeout=timedelta(seconds=10),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(seconds=5),
        backoff_coefficient=3.0,
        maximum_interval=timedelta(hours=6),
    ),
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)
"""After 5, 15, 45 s and so on, at last every six hours for three days."""
SCHEDULED = Options(
    start_to_close_timeout=timedelta(seconds=PREPARE_SECONDS),
    schedule_to_close_timeout=timedelta(seconds=PREPARE_PATIENCE),
    heartbeat_timeout=timedelta(seconds=10),
    retry_policy=RetryPolicy(maximum_interval=timedelta(minutes=1)),
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)
"""Of what a time of a schedule needs: tried for an hour, then that time has failed."""


def patience(about: str) -> timedelta:
    """Return how long a run waits for a person about its `approval`, a `raise` or a subtask."""
    return APPROVAL_PATIENCE if about == "approval" else PERSON_PATIENCE


# ---------------------------------------------------------------- the deployment's own caps

MOST_RUN = "HOLDFAST_MOST_DOLLARS_RUN"
MOST_DAY = "HOLDFAST_MOST_DOLLARS_DAY"
"""Settings as refusals name them; their values reach a run through its Briefing alone."""
