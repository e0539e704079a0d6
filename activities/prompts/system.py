"""The system prompts of calls, each with the note on untrusted material at its end."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SystemPrompts:
    """What each kind of call is told before its material; each field is a file in `prompts/`."""

    planner: str
    work_rules: str
    """Stands below the prompt of the role that works."""
    reviewer: str
    refiner: str
    replanner: str
    judge: str
    digester: str
    synthesizer: str
    verifier: str
    critic: str

    def of_work(self, role: str) -> str:
        """What an agent is told: the prompt of its role, and how to answer."""
        return f"{role}\n\n---\n{self.work_rules}"
