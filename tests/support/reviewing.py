"""A model for the code review: it answers as the agents of the playbook, and as their verifier."""

from __future__ import annotations

from typing import Any

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.ports import ModelRequest
from scripted import ScriptedModel, works

PROMPTS = {
    name: role.prompt
    for name, role in Catalogue.load().roles.items()
    if role.playbook == "code-review" and role.card.tier != "none"
}
"""Of the agents, by name."""


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
    "path": "",
    "fails_with": "",
}


class ReviewingModel(ScriptedModel):
    """Answers by the agent's name; those that nobody wrote a line for find nothing."""

    def __post_init__(self) -> None:
        unproved = {"prove": [UNPROVED] * 3}
        self.lines = {**unproved, **{name: [finds()] for name in PROMPTS}, **self.lines}
        super().__post_init__()

    def _what(self, request: ModelRequest) -> str:
        return agent_of(request) or super()._what(request)


def agent_of(request: ModelRequest) -> str:
    """The name of the agent that asks; empty if none does."""
    first = str(request.messages[0]["content"][-1]["text"]) if request.messages else request.prompt
    return next((name for name, prompt in PROMPTS.items() if prompt in first), "")
