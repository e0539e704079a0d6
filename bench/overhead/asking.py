"""One model call as somebody writes it who has the SDK alone: streamed, its answer bound to a
schema. It imports nothing of this project, so that engines made of it start as fast as their own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic

MAIN = {"work": "result", "synthesize": "answer", "critique": "issues"}
"""Call -> the field of its answer that the next call is told of."""

TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Step:
    """One subtask, as all engines are given it."""

    id: str
    instruction: str
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """One call and what it is asked."""

    call: str
    prompt: str


def work(step: Step, found: list[str]) -> Question:
    """Ask for one subtask, given what those before it found."""
    instruction = f"<instruction>\n{step.instruction}\n</instruction>"
    return Question("work", "\n\n".join([instruction, *found]))


def synthesis(found: list[str]) -> Question:
    """Ask for one answer from all findings."""
    return Question("synthesize", "\n\n".join(["Combine these findings:", *found]))


def critique(answer: str) -> Question:
    """Ask what is wrong with the answer."""
    return Question("critique", f"Criticise this answer:\n\n{answer}")


class Model:
    """The client of one process; `fixed` is a file with what all requests of a call share."""

    def __init__(self, url: str, fixed: Path) -> None:
        self._fixed: dict[str, dict[str, Any]] = json.loads(fixed.read_text(encoding="utf-8"))
        self._client = anthropic.AsyncAnthropic(
            api_key="scripted",
            base_url=url,
            max_retries=0,
            # Also to connect: hundreds at once take a busy machine longer than the SDK's 5 s.
            timeout=TIMEOUT_SECONDS,
            # A proxy of the environment does not lead back to this machine.
            http_client=anthropic.DefaultAsyncHttpxClient(trust_env=False),
        )

    async def ask(self, question: Question) -> str:
        """Send, wait for the whole answer; its main field as text."""
        messages: list[Any] = [{"role": "user", "content": question.prompt}]
        # The helper that gathers a message costs a sixth more CPU.
        events = await self._client.messages.create(
            messages=messages, stream=True, **self._fixed[question.call]
        )
        text = ""
        async for event in events:
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                text += event.delta.text
        main = json.loads(text)[MAIN[question.call]]
        return main if isinstance(main, str) else json.dumps(main)
