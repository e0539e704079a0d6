"""`send_notice`: one address of the web is told what has happened in a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from temporalio import activity

from holdfast.activities.asking.heartbeat import beating
from holdfast.contracts.notices import Notice

Send = Callable[[Notice, str], Awaitable[None]]
"""(notice, address): NoticeNotTaken, or NoticeRefused where no retry can help."""


@dataclass(frozen=True)
class Notices:
    """Sends what runs tell."""

    send: Send

    @activity.defn
    async def send_notice(self, notice: Notice, place: int) -> None:
        """Tell the address at this place of the notice. It may be told twice, by the same id."""
        async with beating():
            await self.send(notice, notice.urls[place])
