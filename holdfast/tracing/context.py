"""Whose trace a run belongs to: the context that its starter hands on with it. Pure.

It stands in the memo of the run's first event, which no decision reads: so whoever makes a trace
from the history finds it there, on whatever machine and after whatever crash.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MEMO_CONTEXT = "traceparent"
_FORM = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0+-)([0-9a-f]{32})-(?!0+-)([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)


@dataclass(frozen=True)
class SpanContext:
    """A span that others hang under, as W3C Trace Context names it."""

    trace_id: str
    """32 hex digits."""
    span_id: str
    """16 hex digits."""
    sampled: bool = True
    """False: whoever began the trace keeps nothing of it, and nothing of it is sent."""

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


def parse_context(text: str) -> SpanContext | None:
    """Return the context in a `traceparent`; None: it is malformed. Of a later version, only what
    the first one has.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "00" and more:
        return None
    return SpanContext(trace_id, span_id, bool(int(flags, 16) & 1))
