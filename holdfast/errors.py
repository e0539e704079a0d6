"""The errors that a program which starts and steers runs can meet, as a tree:

    HoldfastError
      Refused           what was asked is wrong; nothing was started or changed
        IdTaken         the id belongs to a run with another goal
        NoSuchSchedule
        ScheduleTaken   there is a schedule of this name
        BadSettings     a setting, or a file that it names, cannot be used (also a ValueError)
      NoSuchRun
      RunOver           the run is closed and takes no order
      OrderRefused      the run itself refuses it
      RunFailed         the run closed without a report; the message says why
      RunStuck          the run's next step fails again and again; a person must free it
      Undecipherable    what is encrypted was changed or cut
        MissingKey      the key that encrypted it is not here
      Unreachable       no server answers, or it refuses this client
        NoWorker        nobody would take the run; nothing was started
        NoAnswer        the run did not say in time what became of an order
        EmbeddedError   the embedded server cannot run

Each message is what the command line prints: what is wrong, with which thing, and what to do.
"""

from __future__ import annotations

from typing import ClassVar


class HoldfastError(Exception):
    """Base of all. The message is one line, except where several mistakes are listed."""

    kind: ClassVar[str] = "failed"
    """What doors for programs call it; such codes are never renamed."""


class Refused(HoldfastError):
    """What was asked is wrong, and nothing was started or changed."""

    kind = "bad_input"


class IdTaken(Refused):
    """The id belongs to a run with another goal."""

    kind = "id_taken"

    def __init__(self, message: str, run_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class NoSuchSchedule(Refused):
    """The server knows no schedule of this name, in this deployment."""

    kind = "no_such_schedule"


class ScheduleTaken(Refused):
    """There is a schedule of this name."""

    kind = "schedule_taken"


class BadSettings(Refused, ValueError):
    """A setting that cannot be used. The message is the whole line for the user."""

    kind = "bad_settings"


class NoSuchRun(HoldfastError):
    """The server knows no run of this id."""

    kind = "no_such_run"


class RunOver(HoldfastError):
    """The run is closed and takes no order any more."""

    kind = "run_over"


class OrderRefused(HoldfastError):
    """The run refuses an order: it makes no sense as the run stands."""

    kind = "order_refused"


class RunFailed(HoldfastError):
    """The run closed without a report."""

    kind = "run_failed"


class RunStuck(HoldfastError):
    """The run's next step fails again and again; a person must free it."""

    kind = "run_stuck"


class Undecipherable(HoldfastError):
    """What is encrypted was changed or cut, or another key has the id of the one it names.

    No error that would end a run: a workflow task that meets it fails, and is tried again.
    """

    kind = "undecipherable"


class MissingKey(Undecipherable):
    """The key that encrypted it is not here; with it, it can be read."""

    kind = "missing_key"


class Unreachable(HoldfastError):
    """No server answers in time, or it refuses this client; the message names its address."""

    kind = "unreachable"


class NoWorker(Unreachable):
    """No live worker polls the task queue; nothing was started."""

    kind = "no_worker"


class NoAnswer(Unreachable):
    """The run did not say in time what became of an order; it may still carry it out."""

    kind = "no_answer"


class EmbeddedError(Unreachable):
    """The embedded server cannot run. One line: what, which, what to do."""

    kind = "embedded_server"

    def __init__(self, what: str, which: object, remedy: str) -> None:
        super().__init__(f"{what}: {which}; {remedy}")
