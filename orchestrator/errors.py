"""The errors that cross a durable boundary, as a tree:

    ApplicationError (Temporal's)
      BadGoal             the caller's mistake; the run is refused
        CapTooSmall       the least that it must ask for costs more
      NotBilled           surely not paid: Temporal retries, no sooner than the server asked
      EndpointUnreachable surely not paid: nobody is there; the run waits with the activity `reach`
      PossiblyBilled      may have been paid: never retried by Temporal; the ledger settles it
      OverReservation     the prompt could cost more than was reserved; nothing was sent
      CallRefused         the endpoint will never take this request (too large, unknown model, bad
      parameter)
      RunStopping         no call of this run can succeed until a person acts
        AuthenticationRefused
        SpendLimitReached
        AllowanceReached
      ToolFailed          a tool could not do its work; permanent
      BlobLost            the store does not have, or has damaged, what is needed; permanent

Temporal's non-retryable list matches exact class names, so each error says itself whether a retry
can help.
In a workflow they arrive as plain `ApplicationError`; match on `.type`, which is the class name.
"""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from orchestrator.contracts import Bill, Unreached


class OrchestrationError(ApplicationError):
    """Base: `retryable` is a property of the class, `type` its name."""

    retryable = False

    def __init__(
        self, message: str, *details: BaseModel, retry_after: timedelta | None = None
    ) -> None:
        super().__init__(
            message,
            *details,
            type=type(self).__name__,
            non_retryable=not self.retryable,
            next_retry_delay=retry_after,
            category=ApplicationErrorCategory.BENIGN
            if self.retryable
            else ApplicationErrorCategory.UNSPECIFIED,
        )


class BadGoal(OrchestrationError):
    """The goal names something that does not exist or asks for something absurd."""


class CapTooSmall(BadGoal):
    """No answer can be had for what the goal allows; the message says what would do."""


class NotBilled(OrchestrationError):
    """A throttle, an overload, a fault of the endpoint that it does not charge, or no room here.

    `throttled` tells the first two from the rest: they slow the tier down for everyone and are
    tried again for as long as the call may take, whereas a fault gets few tries: the last of them
    is `final`.
    """

    retryable = True

    def __init__(
        self,
        message: str,
        *,
        retry_after: timedelta | None = None,
        throttled: bool = False,
        final: bool = False,
    ) -> None:
        self.retryable = not final
        super().__init__(message, retry_after=retry_after)
        self.throttled = throttled


class EndpointUnreachable(OrchestrationError):
    """Nobody answers at the endpoint, also not after some seconds; nothing was sent. Not retried by
    Temporal: the activity `reach` tells when asking makes sense again.
    """

    def __init__(self, unreached: Unreached) -> None:
        super().__init__(f"{unreached.address} is not reachable: {unreached.why}", unreached)
        self.unreached = unreached


class PossiblyBilled(OrchestrationError):
    """The request left and no complete answer arrived. Carries the bill as far as it is known."""

    def __init__(self, message: str, bill: Bill) -> None:
        super().__init__(message, bill)


class OverReservation(OrchestrationError):
    """Refused before sending; the bill says what the call would have needed."""

    def __init__(self, message: str, needed: Bill) -> None:
        super().__init__(message, needed)


class CallRefused(OrchestrationError):
    """The endpoint refuses this request for good."""


class RunStopping(OrchestrationError):
    """Every further call would fail the same way."""


class AuthenticationRefused(RunStopping):
    """The endpoint does not accept the key."""


class SpendLimitReached(RunStopping):
    """The spend limit of the organisation or of the workspace is reached, or what this deployment
    has spent cannot be told.
    """


class AllowanceReached(RunStopping):
    """The call does not fit into what this deployment may spend, whoever asks."""


class ToolFailed(OrchestrationError):
    """A tool ran and could not do its work."""


class BlobLost(OrchestrationError):
    """What is needed is not in the store, or is there and is not what its name says."""
