"""Batches of messages: what is in them, how they end, and the lines of their results."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from holdfast.replaying.cassette import Cassette
from holdfast.simulator import wire
from holdfast.simulator.asked import Asked, understand
from holdfast.simulator.batch_script import Batches
from holdfast.simulator.log import BatchRecord, RequestLog
from holdfast.simulator.planning import MARK
from holdfast.simulator.player import Player
from holdfast.simulator.playing import recorded
from holdfast.simulator.replies import STATUS_TYPES, hour_of, usage_of
from holdfast.simulator.script import Rule, Script

Json = dict[str, Any]
Outcome = Literal["succeeded", "errored", "canceled", "expired"]
OUTCOMES: tuple[Outcome, ...] = ("succeeded", "errored", "canceled", "expired")
SLICE = 50
"""Requests that are answered before others have their turn."""


@dataclass
class Batch:
    """One batch; times of `born` are seconds of a clock that never goes back."""

    id: str
    workspace: str
    rows: list[tuple[str, Json]]
    """Custom ids and bodies; empty once it has ended."""
    size: int
    created: datetime
    expires: datetime
    kept_until: datetime
    born: float
    foreign: bool = False
    canceled: datetime | None = None
    ended: datetime | None = None
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    lines: list[tuple[str, bytes]] = field(default_factory=list)
    """Lines of results in their order, each with the digest of what it answers, if it does."""
    stirred: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it is released or canceled."""

    @property
    def archived(self) -> datetime | None:
        """Return since when its results are gone; None if they are there."""
        return self.kept_until if self.ended and datetime.now(UTC) >= self.kept_until else None

    @property
    def status(self) -> str:
        if self.ended:
            return "ended"
        return "canceling" if self.canceled else "in_progress"

    def said(self, url: str) -> Json:
        """Return the batch as the API shows it; its results are at a path of this `url`."""
        counts = {**self.counts, "processing": 0 if self.ended else self.size}
        path = f"{url}/v1/messages/batches/{self.id}/results"
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": self.status,
            "request_counts": counts,
            "created_at": _written(self.created),
            "expires_at": _written(self.expires),
            "ended_at": _written(self.ended),
            "cancel_initiated_at": _written(self.canceled),
            "archived_at": _written(self.archived),
            "results_url": path if self.ended and not self.archived else None,
        }


class BatchStore:
    """All batches of a server, the oldest first."""

    def __init__(
        self,
        script: Callable[[], Script],
        log: RequestLog,
        player: Player,
        keep: Callable[[list[Json]], None],
        cassette: Cassette | None = None,
    ) -> None:
        self._script = script
        self._log = log
        self._player = player
        self._keep = keep
        self._cassette = cassette
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self.batches: dict[str, Batch] = {}

    def create(self, workspace: str, rows: list[tuple[str, Json]]) -> Batch:
        """Begin a batch of custom ids and bodies, and those that others begin at the same time."""
        self._keep([body for _, body in rows])
        play = self._script().batches
        others: list[list[tuple[str, Json]]] = [
            [(f"other-{place}", {}) for place in range(len(rows))]
        ] * play.foreign
        before = play.foreign // 2
        for each in others[:before]:
            self._begin(workspace, each, play, foreign=True)
        batch = self._begin(workspace, rows, play, foreign=False)
        for each in others[before:]:
            self._begin(workspace, each, play, foreign=True)
        return batch

    def cancel(self, batch: Batch) -> None:
        """Begin to cancel a batch that has not ended."""
        batch.canceled = batch.canceled or datetime.now(UTC)
        batch.stirred.set()

    def release(self, id: str = "") -> None:
        """End the batch that is held, or all that are."""
        for batch in self.batches.values():
            if id in ("", batch.id):
                batch.stirred.set()

    def unfinished(self, workspace: str) -> int:
        """Return how many requests of a workspace are in batches that have not ended."""
        mine = (each for each in self.batches.values() if each.workspace == workspace)
        return sum(each.size for each in mine if not each.ended)

    def close(self) -> None:
        """Stop all work."""
        for task in self._tasks:
            task.cancel()

    def _begin(
        self, workspace: str, rows: list[tuple[str, Json]], play: Batches, *, foreign: bool
    ) -> Batch:
        now = datetime.now(UTC)
        number = next(self._numbers)
        batch = Batch(
            id=f"msgbatch_scripted{number:08d}",
            workspace=workspace,
            rows=rows,
            size=len(rows),
            created=now,
            expires=now + timedelta(seconds=play.lasts),
            kept_until=now + timedelta(seconds=play.keeps),
            born=time.monotonic(),
            foreign=foreign,
        )
        self.batches[batch.id] = batch
        names = [custom_id for custom_id, _ in rows]
        self._log.batches[batch.id] = BatchRecord(batch.id, workspace, names, foreign)
        task = asyncio.create_task(self._live(batch, play))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return batch

    async def _live(self, batch: Batch, play: Batches) -> None:
        """Bring a batch to its end: in time, canceled or expired."""
        chance = random.Random(f"{self._script().seed} {batch.id}")
        seconds = play.lasts if play.hold else chance.uniform(*play.seconds)
        cut: Outcome | None = None
        try:
            async with asyncio.timeout(min(seconds, play.lasts)):
                await batch.stirred.wait()
        except TimeoutError:
            cut = "expired" if seconds >= play.lasts else None
        if batch.canceled:
            await asyncio.sleep(play.cancel_seconds)
            cut = "canceled"
        await self._settle(batch, play, cut, chance)

    async def _settle(
        self, batch: Batch, play: Batches, cut: Outcome | None, chance: random.Random
    ) -> None:
        """Answer all requests, or the share of them that were when the batch was cut off."""
        lines = []
        for number, (custom_id, body) in enumerate(batch.rows):
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            if cut and chance.random() >= play.finishes:
                digest, result = "", {"type": cut}
            elif batch.foreign:
                digest, result = "", _of_others(f"{batch.id}{number:06d}")
            else:
                digest, result = self._result(f"{batch.id}{number:06d}", body)
            batch.counts[result["type"]] += 1
            line = {"custom_id": custom_id, "result": result}
            lines.append((digest, json.dumps(line, ensure_ascii=False).encode() + b"\n"))
        chance.shuffle(lines)
        batch.lines, batch.rows = lines, []
        batch.ended = datetime.now(UTC)
        self._log.batches[batch.id].counts = dict(batch.counts)

    def _result(self, id: str, body: Json) -> tuple[str, Json]:
        """Return the digest of a request that was answered, and its result."""
        script, ours = self._script(), self._cassette is None
        asked, status, wrong = understand(body, None, script, ours=ours)
        request_id = id.replace("msgbatch_", "req_")
        if asked is None:
            return "", _errored(STATUS_TYPES[status], wrong, request_id)
        record = self._log.received(asked.digest, asked.call, str(body["model"]), asked.mark)
        chance = random.Random(f"{script.seed} {asked.digest} {record.count}")
        rule = self._player.rule(script, asked, chance, "batch")
        if rule and rule.outcome in ("canceled", "expired"):
            return "", {"type": rule.outcome}
        if rule and (rule.status or rule.outcome):
            self._log.refused(record, rule.status or 500)
            return "", _failed(rule, request_id)
        message, wrong = self._message(id.replace("msgbatch_", "msg_"), asked, rule, chance)
        if message is None:
            self._log.refused(record, 400)
            return "", _errored("invalid_request_error", wrong, request_id)
        usage = usage_of(message)
        self._log.charged(asked.digest, usage, hour=hour_of(message), batch=True)
        return asked.digest, {"type": "succeeded", "message": message}

    def _message(
        self, id: str, asked: Asked, rule: Rule | None, chance: random.Random
    ) -> tuple[Json | None, str]:
        """Return an answer, or None and why there is none."""
        script = self._script()
        if self._cassette is not None:
            message, wrong = recorded(self._cassette, id, asked)
            if message is not None:
                message["usage"]["service_tier"] = "batch"
            return message, wrong
        found = chance.random() < script.batches.hits
        return self._player.message(id, script, asked, rule, lane="batch", found=found), ""


def workspace_of(play: Batches, key: str) -> str:
    """Return the workspace that a key belongs to."""
    own = f"wrkspc_{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    return play.workspaces.get(key, own)


def _failed(rule: Rule, request_id: str) -> Json:
    kind = rule.type or STATUS_TYPES.get(rule.status or 500, "api_error")
    return _errored(kind, rule.message or "scripted failure", request_id, rule.error_code)


def _errored(kind: str, message: str, request_id: str, error_code: str = "") -> Json:
    return {"type": "errored", "error": wire.error(kind, message, request_id, error_code)}


def _of_others(id: str) -> Json:
    """Return the result of a request that somebody else made and pays."""
    usage = {"input_tokens": 1, "output_tokens": 1, "service_tier": "batch"}
    content = [{"type": "text", "text": f"{MARK} Of another user."}]
    said = wire.message(
        id.replace("msgbatch_", "msg_"), "claude-haiku-5-5", content, "end_turn", usage
    )
    return {"type": "succeeded", "message": said}


def _written(at: datetime | None) -> str | None:
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}+00:00" if at else None
