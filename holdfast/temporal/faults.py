"""End an activity that has few attempts once its third or a later one fails by itself. The server
counts an attempt that a dead worker took along with the others: workers that die in a row would end
what has nothing wrong with it.
"""

from __future__ import annotations

from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from holdfast.contracts.policies import FREE_ATTEMPTS
from holdfast.errors import Undecipherable
from holdfast.storage import StoreAway


class EndFaults(Interceptor):
    """Makes the third attempt's own failure, and that of each later one, the last."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Return the interceptor that the SDK makes for each worker."""
        return _Ended(next)


class _Ended(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            return await super().execute_activity(input)
        except (StoreAway, Undecipherable):
            # By the next attempt the store may be back, or another worker may have the key.
            raise
        except Exception as error:
            info = activity.info()
            few = info.retry_policy is not None and info.retry_policy.maximum_attempts
            if not few or info.attempt < FREE_ATTEMPTS:
                raise
            raise _last(error) from error.__cause__


def _last(error: Exception) -> ApplicationError:
    if not isinstance(error, ApplicationError):
        return ApplicationError(str(error), type=type(error).__name__, non_retryable=True)
    return ApplicationError(
        error.message,
        *error.details,
        type=error.type,
        non_retryable=True,
        category=error.category,
    )
