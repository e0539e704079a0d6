"""What a failed exchange with a model endpoint means: one pure function over the failure table.

The question that decides is not whether trying again may help, but whether the call may have been
paid. Surely not paid: a request that never left, and a refusal as a status before the first event
(429, 500, 503, 529, a body that never arrived). Everything else may have been.

Among the first, those where nobody is at home cost waiting and nothing else. 503 is what a load
balancer says for the servers that it does not have; 521, 523, 525, 526 and 530 are Cloudflare's for
an origin that refused the connection, has no route, no TLS, a certificate that is not believed, or
no name. Not among them: 502, 504, 520, 522 and 524, behind which the request may have arrived.

404 and 405 that say nothing of a model come from whatever stands at a wrong path, or from a gateway
that has lost what was behind it: nobody is at home there, either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from holdfast.activities.gate.throttle import LONGEST_SHUT
from holdfast.contracts.errors import (
    AuthenticationRefused,
    CallRefused,
    EndpointUnreachable,
    NotBilled,
    OrchestrationError,
    PossiblyBilled,
    SpendLimitReached,
)

Point = Literal["connect", "sent", "status", "stream"]
"""How far an exchange came: the request never left; it was sent and nothing came back; an error
status came back; the answer had begun.
"""

NOT_BILLED_STATUSES = (429, 500, 529)
THROTTLES = (429, 529)
NOBODY_HOME = (503, 521, 523, 525, 526, 530)
NO_SUCH_PATH = (404, 405)
SHORT_OF_CAPACITY = ("overloaded_error", "rate_limit_error")
SPEND_CODES = (
    "enforced_spend_limit_reached",
    "contract_spend_limit_reached",
    "linked_organization_spend_limit_reached",
    "linked_organization_billing_unavailable",
)
SPEND_TEXTS = ("api usage limits", "spend limit", "credit balance is too low")
"""Limits that a customer sets, and empty accounts, are told apart only by their text."""
NOTHING_DONE = "request_body_timeout"
LONGEST_UNNAMED = 60.0
"""Seconds of the longest wait after a throttle where the server names none."""
LONGEST_WAIT = LONGEST_SHUT
"""Seconds. No wait is longer, whatever a server asks: a call that waits beyond its own time would
never be tried again, and its tier opens after as long.
"""

ADVICE: Mapping[type[OrchestrationError], str] = {
    AuthenticationRefused: (
        "The endpoint does not accept the key. Check ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL, "
        "then run: starter.py up (or start your worker again)."
    ),
    SpendLimitReached: (
        "The spend limit of the account is reached. Raise it in the provider's console or wait "
        "until it resets, then run again."
    ),
}


@dataclass(frozen=True)
class Meaning:
    """The error that a failed exchange becomes. `retry_after` is in seconds, at least what the
    server asked, up to LONGEST_WAIT; None leaves the wait to Temporal's policy. `throttled`: the
    endpoint is short of capacity for everyone.
    """

    error: type[OrchestrationError]
    retry_after: float | None = None
    throttled: bool = False
    beyond: float | None = None
    """Seconds that the server asked for, where that is more than is waited."""

    @property
    def advice(self) -> str:
        """What a person can do; empty where waiting is all there is."""
        return ADVICE.get(self.error, "")


def classify(
    point: Point,
    status: int,
    type: str,
    headers: Mapping[str, str],
    *,
    error_code: str = "",
    message: str = "",
    model: str = "",
    attempt: int = 1,
    now: datetime | None = None,
) -> Meaning:
    """Return what a failure at this point means. `headers` has lower-case names; `attempt` counts
    from 1 and doubles the wait after a throttle that names none.
    """
    if point == "connect":
        return Meaning(EndpointUnreachable)
    if point in ("sent", "stream"):
        # Whatever the type says of the cause, input and what was emitted may be on the bill.
        return Meaning(PossiblyBilled, throttled=type in SHORT_OF_CAPACITY)
    if _is_spend_limit(status, type, error_code, message):
        return Meaning(SpendLimitReached)
    if lacks_api(status, message, model):
        return Meaning(EndpointUnreachable)
    asked = retry_after(headers, now or datetime.now(UTC))
    if asked is None or asked <= LONGEST_WAIT:
        return _by_status(status, error_code or type, headers, attempt, asked)
    meant = _by_status(status, error_code or type, headers, attempt, LONGEST_WAIT)
    return replace(meant, beyond=asked) if meant.retry_after else meant


def lacks_api(status: int, message: str, model: str) -> bool:
    """True if what answered is not a Messages API: one knows its path, and names the model that it
    does not have.
    """
    said = message.lower()
    of_model = "model" in said or (model != "" and model.lower() in said)
    return status in NO_SUCH_PATH and not of_model


def _by_status(
    status: int, code: str, headers: Mapping[str, str], attempt: int, asked: float | None
) -> Meaning:
    should_retry = headers.get("x-should-retry", "").strip().lower()
    if status == 401:
        return Meaning(AuthenticationRefused)
    free = status in NOT_BILLED_STATUSES or status in NOBODY_HOME
    if free or (status in (400, 408) and code == NOTHING_DONE):
        if should_retry == "false":
            return Meaning(CallRefused)
        # Who names a wait is at home, and only busy.
        busy = code in SHORT_OF_CAPACITY or asked is not None
        if status in NOBODY_HOME and not busy:
            return Meaning(EndpointUnreachable)
        throttled = status in THROTTLES or (status in NOBODY_HOME and busy)
        return Meaning(NotBilled, _wait(status, asked, attempt), throttled)
    if status in (408, 409) or (status > 501):
        return Meaning(PossiblyBilled)
    if should_retry == "true":
        return Meaning(NotBilled, asked)
    return Meaning(CallRefused)


def _wait(status: int, asked: float | None, attempt: int) -> float | None:
    if asked is not None:
        return asked
    if status in THROTTLES or status in NOBODY_HOME:
        # Short at first: whether it was chance or a limit, and which, the gate finds out.
        return min(float(1 << min(max(attempt, 1) - 1, 6)), LONGEST_UNNAMED)
    if status in (400, 408):
        return 2.0
    return None


def _is_spend_limit(status: int, type: str, error_code: str, message: str) -> bool:
    if status == 402 or type == "billing_error" or error_code in SPEND_CODES:
        return True
    return status in (400, 403, 429) and any(text in message.lower() for text in SPEND_TEXTS)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that the server asks to wait: `retry-after-ms`, else `retry-after` as
    seconds or as an HTTP date; None if it asks for nothing that can be read.
    """
    milliseconds = _parse_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return _positive(milliseconds / 1000)
    text = headers.get("retry-after", "")
    seconds = _parse_number(text)
    if seconds is None and text:
        when = parse_http_date(text)
        # By the server's own clock where it tells it: one that is wrong asks for no hours.
        there = parse_http_date(headers.get("date", "")) or now
        seconds = None if when is None else (when - there).total_seconds()
    return _positive(seconds)


def parse_http_date(text: str) -> datetime | None:
    """Return an HTTP date; None if the text is not one."""
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def _parse_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _positive(seconds: float | None) -> float | None:
    """Return None for zero, too: a server that names no wait leaves it to ours."""
    return None if seconds is None or seconds <= 0 else seconds
