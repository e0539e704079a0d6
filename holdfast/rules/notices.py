"""What a run tells addresses of the web, each occurrence once. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from holdfast.contracts.notices import OCCASIONS, Notice, NoticeType
from holdfast.contracts.replacing import replace
from holdfast.rules.approvals import waiting_calls
from holdfast.state.events import Notified
from holdfast.state.moves import Notify
from holdfast.state.parts import Noticed
from holdfast.state.run import State


def next_notice(state: State) -> Notify | None:
    """Return the move that tells what nobody has been told yet; None: there is nothing."""
    wanted = state.goal.notify
    if wanted is None:
        return None
    told = {(each.notice.type, each.notice.about) for each in state.notices}
    for type, about in _occurrences(state):
        if OCCASIONS[type] in wanted.on and (type, about) not in told:
            return Notify(_notice(state, type, about, wanted.urls))
    return None


def take_off(state: State, move: Notify) -> State:
    return replace(state, notices=(*state.notices, Noticed(move.notice)))


def land(state: State, event: Notified) -> State:
    """Note to whom a notice was not delivered. The run goes on as it would without."""
    notices = tuple(
        replace(each, failures=event.failures) if each.notice.number == event.number else each
        for each in state.notices
    )
    return replace(state, notices=notices)


def failure_notes(state: State) -> Iterator[str]:
    for each in state.notices:
        for why in each.failures:
            yield f"The web hook {each.notice.type} was not delivered: {why}."


def _occurrences(state: State) -> Iterator[tuple[NoticeType, str]]:
    """Yield what can be told of a run as it stands, with what distinguishes it."""
    if state.phase == "approval" and state.proposed and not state.goal.plan_only:
        yield "run.plan_waits", f"{state.proposed.isoformat()}"
    for _, call in waiting_calls(state):
        yield "run.call_waits", f"call {call.number}"
    for key in state.work.asking:
        progress = state.work[key]
        since = progress.waits_since
        if progress.stage != "approval" and since is not None:
            yield "run.question", f"{progress.stage} of {key} at {since.isoformat()}"
    if state.short and state.short_since:
        yield "run.budget_reached", f"{state.short_since.isoformat()}"
    elif state.stopped_by("budget", "allowance") and not _was_told(state, "run.budget_reached"):
        yield "run.budget_reached", "stop"
    if state.phase == "closed":
        yield "run.ended", ""


def _was_told(state: State, type: NoticeType) -> bool:
    return any(each.notice.type == type for each in state.notices)


def _notice(state: State, type: NoticeType, about: str, urls: tuple[str, ...]) -> Notice:
    number = len(state.notices) + 1
    # A reset undoes notices that were sent: what comes after it is told under ids of its own.
    whole = "\0".join((state.first_run_id, state.run_id, str(len(state.resets)), str(number)))
    return Notice(
        id=f"msg_{hashlib.sha256(whole.encode()).hexdigest()[:32]}",
        type=type,
        at=state.now,
        run_id=state.run_id,
        number=number,
        about=about,
        urls=urls,
        project=state.goal.project,
    )
