"""The kinds of calls, one module each: what is asked, from what material, and what the answer
means.

An entry in KINDS makes a kind known, with its activity, reply, policy and words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.calls.choose import CHOOSE
from holdfast.calls.critique import CRITIQUE
from holdfast.calls.digest import DIGEST
from holdfast.calls.fix import FIX, TRY_FIX
from holdfast.calls.grade import GRADE
from holdfast.calls.judge import JUDGE
from holdfast.calls.kind import AnyKind, Kind
from holdfast.calls.match import MATCH
from holdfast.calls.ping import PING
from holdfast.calls.plan import PLAN
from holdfast.calls.prove import PROVE, TRY_PROOF
from holdfast.calls.reach import REACH
from holdfast.calls.refine import REFINE
from holdfast.calls.replan import REPLAN
from holdfast.calls.review import REVIEW
from holdfast.calls.synthesize import SYNTHESIZE
from holdfast.calls.turn import TAKE_TURN
from holdfast.calls.work import WORK

MODEL_KINDS: tuple[AnyKind, ...] = (
    PLAN,
    WORK,
    REVIEW,
    REFINE,
    REPLAN,
    JUDGE,
    DIGEST,
    SYNTHESIZE,
    PROVE,
    FIX,
    CHOOSE,
    MATCH,
    CRITIQUE,
    GRADE,
)
KINDS: Mapping[str, Kind[Any]] = {
    kind.name: kind for kind in (*MODEL_KINDS, TAKE_TURN, TRY_PROOF, TRY_FIX, PING, REACH)
}
"""Each kind of call by the name of its activity."""
