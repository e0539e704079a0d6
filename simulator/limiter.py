"""A token bucket, as the API's rate limits are: admits or says when to come back."""

from __future__ import annotations

import math
from datetime import datetime, timedelta


class Limiter:
    """Counts for one model. Times are seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self._tokens: float | None = None
        self._at = 0.0

    def admit(self, rate: float, burst: int, now: float) -> int:
        """0: admitted. Otherwise whole seconds after which the next call may be admitted; a rate of
        0 admits everything.
        """
        if not rate:
            return 0
        held = burst if self._tokens is None else self._tokens + (now - self._at) * rate
        self._tokens, self._at = min(float(burst), held), now
        if self._tokens >= 1:
            self._tokens -= 1
            return 0
        return max(1, math.ceil((1 - self._tokens) / rate))

    def left(self, rate: float, burst: int) -> tuple[int, float]:
        """How many calls may be admitted now, as of the last one, and seconds until all may be."""
        held = burst if self._tokens is None else self._tokens
        return int(held), (burst - held) / rate

    def said(self, rate: float, burst: int, now: datetime) -> dict[str, str]:
        """The same as the head of an answer says it."""
        left, seconds = self.left(rate, burst)
        full = now + timedelta(seconds=seconds)
        values = {"limit": burst, "remaining": left, "reset": f"{full:%Y-%m-%dT%H:%M:%S.%f}Z"}
        return {f"anthropic-ratelimit-requests-{part}": str(each) for part, each in values.items()}
