"""What a worker under test has around its journal, its activities and its tools: each notes what
happens, and changes nothing else. Tools that reach outside are replaced by recorders.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

from holdfast.activities.toolset.shelf import source_of
from holdfast.activities.toolset.tool import Here, Result, Returned, Tool
from holdfast.certifying.board import Board, Moment, Noted, Place
from holdfast.certifying.watching import Watch
from holdfast.ports import Journal

RECORDED = "(certify) the call of {} was recorded, and not made."
DIGEST_LETTERS = 12


def here(moment: Moment, **more: str) -> Noted:
    """Return this moment of the activity that is at work."""
    info = activity.info()
    run, _, part = (info.workflow_id or "").partition(".")
    return Noted(run, Place(moment, info.activity_id, info.activity_type, part), **more)


@dataclass(frozen=True)
class NotingJournal:
    """Implements `Journal` by another one."""

    journal: Journal
    board: Board

    @property
    def place(self) -> int:
        return self.journal.place

    async def sent(self, key: str) -> bool:
        return await self.journal.sent(key)

    async def mark_sent(self, key: str) -> None:
        await self.journal.mark_sent(key)
        await self.board.note(here("sent", key=key))

    async def withdraw(self, key: str) -> None:
        await self.journal.withdraw(key)

    async def answer(self, key: str) -> str | None:
        return await self.journal.answer(key)

    async def record(self, key: str, answer: str) -> None:
        await self.journal.record(key, answer)
        await self.board.note(here("kept", key=key))


class NoteActivities(Interceptor):
    """Notes where each activity begins and ends."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Noting(next, self._board)


class _Noting(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, board: Board) -> None:
        super().__init__(next)
        self._board = board

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        await self._board.note(here("begins"))
        result = await super().execute_activity(input)
        await self._board.note(here("ends"))
        return result


def noting_tools(
    tools: Mapping[str, Tool], board: Board, private: Path, setting: Callable[[str], str]
) -> dict[str, Tool]:
    """Return the same tools, noted. What own tools do outside of the `private` folder is seen; what
    says that it has effects, or sends words elsewhere, is recorded unless effects are wanted.
    """
    real = board.effects.exists()
    return {
        name: _noting(
            tool,
            board,
            Watch(private) if source_of(tool) else None,
            recorded=not real and reaches_out(tool, setting),
        )
        for name, tool in tools.items()
    }


def reaches_out(tool: Tool, setting: Callable[[str], str]) -> bool:
    """True if a tool says that it changes something outside, or sends words there."""
    return tool.effects or bool(tool.sends_to(setting))


def _noting(tool: Tool, board: Board, watch: Watch | None, *, recorded: bool) -> Tool:
    function = tool.function

    @functools.wraps(function)
    async def called(around: Here, *arguments: Any, **named: Any) -> Returned:
        about = _digest([arguments, named])
        told = {"tool": tool.name, "key": around.key}
        await board.note(here("called", **told, about=about))
        result: Returned = Result(RECORDED.format(tool.name))
        if not recorded:
            with _watched(watch, lambda what: board.write(here("outside", **told, about=what))):
                try:
                    result = await function(around, *arguments, **named)
                except Exception:
                    await board.note(here("done", **told, about=about))
                    raise
        await board.note(here("done", **told, about=about))
        return result

    # pydantic reads the signature, and follows no wrapper to it.
    called.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    del called.__wrapped__
    return replace(tool, function=called)


def _watched(
    watch: Watch | None, tell: Callable[[str], None]
) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if watch is None else watch.over(tell)


def _digest(given: object) -> str:
    said = json.dumps(given, default=str, sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:DIGEST_LETTERS]
