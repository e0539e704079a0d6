"""A call of a few tokens that shows whether calls are answered at all, where calls were lost: a
list of models that answers proves nothing, and a call that is due costs a hundred times as much.
"""

from __future__ import annotations

from holdfast.calls.kind import Answer, ModelKind
from holdfast.contracts import Contract, Reply
from holdfast.contracts.policies import model_policy

ROOM = 16
"""Tokens of its answer: the fewest that every endpoint takes. It may be cut off."""
MOST_TOKENS = 1_000
"""At least the bytes, and so the tokens, of its prompt and schema."""
SECONDS = 60.0
"""The most that its exchange may take."""


class PingAnswer(Answer):
    here: bool


class PingMaterial(Contract):
    address: str = ""
    """Address as in `Unreached`, for readers of the history."""


class Pinged(Contract):
    """A small call was answered; what it says does not matter."""


PING: ModelKind[PingMaterial, PingAnswer, Pinged] = ModelKind(
    name="ping",
    reply=Reply[Pinged],
    policy=model_policy("haiku", ROOM, "low"),
    answer=PingAnswer,
    value=lambda _answer, _material: Pinged(),
    turn=lambda _: "Answer in one word.",
    words="ask whether calls are answered",
)
