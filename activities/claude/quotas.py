"""Read what the head of an answer says of the endpoint's limits: the headers
`anthropic-ratelimit-*`. They come from outside: what cannot be read says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from holdfast.activities.claude.classify import LONGEST_WAIT, parse_http_date
from holdfast.ports import Head, Quota, Resource

NAMES: Mapping[Resource, str] = {
    "requests": "requests",
    "tokens": "tokens",
    "input_tokens": "input-tokens",
    "output_tokens": "output-tokens",
}
AGREED_SECONDS = 2.0
"""Clocks that differ by less cannot be told apart: the header `date` has whole seconds."""
_COUNT = re.compile("[0-9]{1,12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


def read_head(status: int, headers: Mapping[str, str], now: datetime | None = None) -> Head:
    """Return what the head of an answer says; `headers` has lower-case names."""
    now = now or datetime.now(UTC)
    there = parse_http_date(headers.get("date", "")) or now
    if abs((there - now).total_seconds()) < AGREED_SECONDS:
        there = now
    found = {resource: _quota(headers, name, there) for resource, name in NAMES.items()}
    quotas = {resource: quota for resource, quota in found.items() if quota is not None}
    return Head(200 <= status < 300, quotas)


def _quota(headers: Mapping[str, str], name: str, now: datetime) -> Quota | None:
    """Return what is said of one resource; None if that is nothing that can be meant."""
    limit, remaining, reset = (
        headers.get(f"anthropic-ratelimit-{name}-{part}", "").strip()
        for part in ("limit", "remaining", "reset")
    )
    if not (_COUNT.fullmatch(limit) and _COUNT.fullmatch(remaining) and _TIME.fullmatch(reset)):
        return None
    try:
        seconds = (datetime.fromisoformat(reset) - now).total_seconds()
    except (ValueError, OverflowError):
        return None
    if not int(limit):
        return None
    # A bucket that takes days to fill is asked for a little of it every few minutes, like a wait.
    seconds = min(max(seconds, 0.0), LONGEST_WAIT)
    return Quota(float(limit), min(float(remaining), float(limit)), seconds)
