"""The errors that cross a durable boundary, as a tree:

    ApplicationError (Temporal's)
      BadGoal             the caller's mistake; the run is refused
        CapTooSmall       the least that it must ask for costs more
      NotBilled           surely not paid: Temporal retries, no sooner than the server asked
      EndpointUnreachable surely not paid: nobody is there; the run waits with the activity `reach`
      PossiblyBilled      may have been paid: never retried by Temporal; the ledger settles it
        TookTooLong       it was cut at its deadline
        AnswerLost        it was sent, and its worker died before the answer
      OverReservation     the prompt could cost more than was reserved; nothing was sent
      CallRefused         the endpoint will never take this request: too large, unknown model …
      RunStopping         no call of this run can succeed until a person acts
        AuthenticationRefused
        SpendLimitReached
        AllowanceReached
      NoticeRefused       a web hook that is never sent
      NoticeNotTaken      a web hook that was not delivered yet: Temporal retries, over days
      LensFailed          a lens could not do its work; permanent
      WorkerDied          its process ended in the middle; another attempt finds out how far it came
      BlobLost            the store does not have, or has damaged, what is needed; permanent

Temporal's non-retryable list matches exact class names, so each error says itself whether a retry
can help. In a workflow they arrive as plain `ApplicationError`, whose `.type` is the class name:
`trouble_of` says by it what an error means to a run that asked a model.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar, Literal

from pydantic import BaseModel
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from holdfast.contracts import Bill, Span, Unreached

TroubleKind = Literal[
    "not_billed",
    "possibly_billed",
    "over_reservation",
    "refused",
    "stopping",
    "allowance",
    "unreachable",
    "lost",
    "cancelled",
]
"""What a model call without a result means to its run."""


_TROUBLES: dict[str, TroubleKind] = {}


class OrchestrationError(ApplicationError):
    """Base: `retryable` is a property of the class, `type` its name."""

    retryable = False
    trouble: ClassVar[TroubleKind] = "refused"
    """What it means to a run whose model call ended with it."""

    def __init_subclass__(cls) -> None:
        _TROUBLES[cls.__name__] = cls.trouble

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
    """The goal names something that does not exist, or asks for something absurd."""


class CapTooSmall(BadGoal):
    """The goal's cap does not cover any answer; the message names one that would."""


class NoticeRefused(OrchestrationError):
    """A web hook that is never sent: unsigned, to an address that may not be told, or that wants no
    more.
    """


class NoticeNotTaken(OrchestrationError):
    """A web hook that was not delivered yet."""

    retryable = True


class NotBilled(OrchestrationError):
    """A throttle, an overload, a fault that the endpoint does not charge, or no room here.

    `throttled`: a throttle or overload, which slows the tier down for everyone and is tried again
    for as long as the call may take. Other faults get few tries, the last of them `final`.
    `unreached`: the endpoint is at fault whoever asks, so the run waits until it answers again.
    `named`: the server said how long to wait.
    """

    retryable = True
    trouble = "not_billed"

    def __init__(
        self,
        message: str,
        *,
        retry_after: timedelta | None = None,
        throttled: bool = False,
        final: bool = False,
        unreached: Unreached | None = None,
        named: bool = True,
    ) -> None:
        self.retryable = not final
        details = (unreached,) if final and unreached else ()
        super().__init__(message, *details, retry_after=retry_after)
        self.throttled = throttled
        self.unreached = unreached
        self.named = named


class NoRoom(NotBilled):
    """What others have set aside of the deployment's dollars leaves no room, or nobody answers for
    them. It is nobody's fault: the call is tried again for as long as it may take.
    """


class EndpointUnreachable(OrchestrationError):
    """Nobody answers at the endpoint, even after some seconds; nothing was sent. Temporal does not
    retry it: the activity `reach` returns when asking makes sense again.
    """

    trouble = "unreachable"

    def __init__(self, unreached: Unreached) -> None:
        super().__init__(f"{unreached.address} is not reachable: {unreached.why}", unreached)
        self.unreached = unreached


class PossiblyBilled(OrchestrationError):
    """The request left and no complete answer arrived. Carries the bill as far as it is known, and
    `unreached` if it was the endpoint that lost it.
    """

    trouble = "possibly_billed"

    def __init__(self, message: str, bill: Bill, unreached: Unreached | None = None) -> None:
        super().__init__(message, bill, *((unreached,) if unreached else ()))


class TookTooLong(PossiblyBilled):
    """The exchange was cut after all the time that one call may take."""


class AnswerLost(PossiblyBilled):
    """The call was sent, and its worker died before the answer: known at the end of `span`."""

    def __init__(self, message: str, bill: Bill, span: Span) -> None:
        OrchestrationError.__init__(self, message, bill, span)


class OverReservation(OrchestrationError):
    """Refused before sending; the bill says what the call would have needed."""

    trouble = "over_reservation"

    def __init__(self, message: str, needed: Bill) -> None:
        super().__init__(message, needed)


class CallRefused(OrchestrationError):
    """The endpoint refuses this request for good."""


class RunStopping(OrchestrationError):
    """Every further call would fail the same way."""

    trouble: ClassVar[TroubleKind] = "stopping"


class AuthenticationRefused(RunStopping):
    """The endpoint does not accept the key."""


class SpendLimitReached(RunStopping):
    """A spend limit of the organisation or workspace is reached, or spending is not known."""


class AllowanceReached(RunStopping):
    """The call does not fit into what this deployment may spend."""

    trouble = "allowance"


class LensFailed(OrchestrationError):
    """A lens could not do its work."""


class WorkerDied(OrchestrationError):
    """The process of an attempt died; the journal tells the next one whether a call left."""

    retryable = True
    trouble = "possibly_billed"

    def __init__(self, message: str) -> None:
        super().__init__(message, Bill(calls=1), retry_after=timedelta(milliseconds=1))


class BlobLost(OrchestrationError):
    """A blob is not in the store, or is not what its name says."""

    trouble = "lost"


def trouble_of(type: str | None) -> TroubleKind:
    """Return what an error of this class name means; for others: another try will not help."""
    return _TROUBLES.get(type or "", OrchestrationError.trouble)
