"""The thread of a run: each part of it is one message, whoever writes it and however often."""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from slack_sdk.errors import SlackApiError

from holdfast.doors.slack import blocks
from holdfast.doors.slack.blocks import Message
from holdfast.doors.slack.places import Place
from holdfast.doors.slack.workspace import GONE, Workspace, error_of

ROOT = "root"
SKEW_SECONDS = 300.0
"""How far Slack's clock and the server's may be apart."""
BEGUN_SECONDS = 300.0
"""How long after the start of its run a thread is begun, unless no door was there."""
LOST = "the thread before was deleted"
log = structlog.get_logger("holdfast.slack")


class Thread:
    """Writes the messages of one run. What there is already is found by its metadata; of two doors
    that post the same, the later takes its own away.
    """

    def __init__(
        self, workspace: Workspace, place: Place, began: float, goal: str = "", person: str = ""
    ) -> None:
        """`began`: when the run was started, in seconds since 1970; `goal` and `person`: what the
        door says where it has to begin the thread.
        """
        self.place = place
        self._workspace = workspace
        self._since = place.message or f"{began - SKEW_SECONDS:.6f}"
        self._begun = f"{began + SKEW_SECONDS + BEGUN_SECONDS:.6f}"
        self._asked = goal, person
        self._root = place.thread
        self._lost = False
        """True if the thread of the person's own message is gone."""
        self.revives = True
        """False for a run that is over: a thread that somebody deleted stays deleted."""
        self._parts: dict[str, str] | None = None
        self._shown: dict[str, Message] = {}

    @property
    def root(self) -> str:
        """The first message of the thread; empty while there is none."""
        return self._root

    async def has(self, part: str) -> bool:
        """True if there is such a message in the thread."""
        return part in await self._known()

    async def parts(self) -> tuple[str, ...]:
        """Return the parts that the thread has."""
        return tuple(await self._known())

    async def put(self, part: str, message: Message) -> None:
        """Make a part of the thread say this. What Slack refuses otherwise is raised."""
        if self._shown.get(part) == message:
            return
        known = await self._known()
        if part in known:
            try:
                await self._workspace.update(
                    self.place.channel, known[part], message, self.place.run_id, part
                )
            except SlackApiError as error:
                if error_of(error) not in GONE:
                    raise
                # Somebody has deleted it, or the whole thread.
                self.forget()
                await self._post(part, message)
        else:
            await self._post(part, message)
        self._shown[part] = message

    def forget(self) -> None:
        """Look anew for what there is: what was sent last may have arrived or not."""
        self._parts = None
        self._shown.clear()

    async def _post(self, part: str, message: Message) -> None:
        if part in await self._known():
            return await self.put(part, message)
        root = await self._find_root()
        try:
            await self._workspace.post(
                self.place.channel, message, self.place.run_id, part, thread=root
            )
        except SlackApiError as error:
            if not self._may_lose(error):
                raise
            self._lose()
            return await self._post(part, message)
        self._parts = None
        await self._known()
        return None

    async def _known(self) -> Mapping[str, str]:
        """Return our messages in the thread by their parts; of a part that is there twice the
        first, and the others are deleted.
        """
        if self._parts is None:
            root = await self._find_root()
            try:
                found = await self._find(root)
            except SlackApiError as error:
                if not self._may_lose(error):
                    raise
                self._lose()
                return await self._known()
            self._parts = {part: first for part, (first, *_) in found.items()}
            for each in (late for _, *others in found.values() for late in others):
                await self._take_away(each)
        return self._parts

    def _may_lose(self, error: SlackApiError) -> bool:
        """True if the thread is gone and may go on elsewhere, once."""
        return error_of(error) in GONE and self.revives and not self._lost

    def _lose(self) -> None:
        """Go on in a thread of our own: the first message of this one is gone."""
        log.warning("the thread of a run was deleted", run=self.place.run_id)
        self._lost, self._root, self._parts = True, "", None
        self._shown.clear()

    async def _find_root(self) -> str:
        """Return the first message of the thread; where no person's is, one of ours."""
        if self._root:
            return self._root
        # Most threads are begun with their run; a thousand messages may have followed since.
        found = await self._find(until=self._begun)
        if ROOT not in found:
            found = await self._find()
        if ROOT not in found:
            goal, person = self._asked
            message = blocks.root(goal, person, LOST if self._lost else "")
            await self._workspace.post(self.place.channel, message, self.place.run_id, ROOT)
            found = await self._find()
        first, *others = found[ROOT]
        for each in others:
            await self._take_away(each)
        self._root = first
        return first

    async def _find(self, thread: str = "", until: str = "") -> Mapping[str, list[str]]:
        return await self._workspace.find(
            self.place.channel, self.place.run_id, self._since, thread, until
        )

    async def _take_away(self, at: str) -> None:
        try:
            await self._workspace.delete(self.place.channel, at)
        except SlackApiError as error:
            if error_of(error) not in GONE:
                raise
