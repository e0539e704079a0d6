"""A model for the code review: it answers as the agents of the playbook, and as their verifier."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Draft
from holdfast.ports import Lens, ModelAnswer, ModelRequest
from scripted import ScriptedModel, works
from shipped import shipped_catalogue

ROLES = {
    name: role.prompt
    for name, role in shipped_catalogue().roles.items()
    if role.playbook == "code-review" and role.card.tier != "none"
}
"""The prompts of the roles that ask a model, by name."""
PROMPTS = {name: prompt for name, prompt in ROLES.items() if name != "verifier"}
"""Of those that look for defects."""


def only(lenses: Mapping[str, Lens], *names: str) -> dict[str, Lens]:
    """Of a review's lenses those of these names; the others find nothing, and start no program."""
    return {name: each if name in names else _nothing for name, each in lenses.items()}


async def _nothing(material: WorkMaterial) -> Draft:
    data: dict[str, JsonValue] = {"remarks": [], "remarks_in_all": 0, "files_read": 1}
    return Draft(status="complete", content="Nothing was found.", data=data)


def finds(*remarks: dict[str, Any]) -> dict[str, Any]:
    """What the agent `logic` hands up."""
    common = {
        "severity": "critical",
        "line": 1,
        "code": "",
        "suggestion": "Mend it.",
        "rule": "wrong-bound",
    }
    common = {**common, "confidence": 95}
    return works({"remarks": [{**common, **each} for each in remarks]})


UNPROVED = {
    "why": "A script cannot show it.",
    "shows": "",
    "script": "",
    "fails_with": "",
}


def verdicts(*words: str, first: int = 1, **fields: Any) -> dict[str, Any]:
    """What a verifier hands up: a verdict on each remark, by its number."""
    said = [
        {"remark": number, "why": f"Line {number} shows it.", "verdict": word}
        for number, word in enumerate(words, first)
    ]
    return works({"verdicts": said}, **fields)


class ReviewingModel(ScriptedModel):
    """Answers by the agent's name; those that nobody wrote a line for find nothing, and a verifier
    confirms every remark.
    """

    def __post_init__(self) -> None:
        unproved = {"prove": [UNPROVED] * 3}
        self.lines = {**unproved, **{name: [finds()] for name in PROMPTS}, **self.lines}
        super().__post_init__()

    def _what(self, request: ModelRequest) -> str:
        if request.system.startswith(ROLES["verifier"]):
            return "verifier"
        return agent_of(request) or super()._what(request)

    async def _answer(self, what: str, request: ModelRequest) -> ModelAnswer:
        if what == "verifier" and "verifier" not in self._left:
            count = max(map(int, re.findall(r"code of remark (\d+)", str(request.messages))))
            self._left["verifier"] = deque([verdicts(*["confirmed"] * count)])
            answer = await super()._answer(what, request)
            del self._left["verifier"]
            return answer
        return await super()._answer(what, request)


def agent_of(request: ModelRequest) -> str:
    """The name of the agent that asks; empty if none does."""
    first = str(request.messages[0]["content"][-1]["text"]) if request.messages else request.prompt
    return next((name for name, prompt in PROMPTS.items() if prompt in first), "")
