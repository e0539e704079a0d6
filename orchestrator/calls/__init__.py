"""The kinds of calls, a module each: what is asked for, from what, and what the answer means.

A line of KINDS makes a kind known: its activity, its reply, its policy and its words follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.calls.critique import CRITIQUE
from orchestrator.calls.digest import DIGEST
from orchestrator.calls.judge import JUDGE
from orchestrator.calls.kind import AnyKind, Kind
from orchestrator.calls.ping import PING
from orchestrator.calls.plan import PLAN
from orchestrator.calls.reach import REACH
from orchestrator.calls.refine import REFINE
from orchestrator.calls.replan import REPLAN
from orchestrator.calls.review import REVIEW
from orchestrator.calls.synthesize import SYNTHESIZE
from orchestrator.calls.turn import TAKE_TURN
from orchestrator.calls.verify import VERIFY
from orchestrator.calls.work import WORK

MODEL_KINDS: tuple[AnyKind, ...] = (
    PLAN,
    WORK,
    REVIEW,
    REFINE,
    REPLAN,
    JUDGE,
    DIGEST,
    SYNTHESIZE,
    VERIFY,
    CRITIQUE,
)
KINDS: Mapping[str, Kind[Any]] = {
    kind.name: kind for kind in (*MODEL_KINDS, TAKE_TURN, PING, REACH)
}
"""Each kind of call by the name of its activity."""
