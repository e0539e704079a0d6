"""Turn what arrived into an answer, without secrets that the endpoint may have repeated in it."""

from __future__ import annotations

import json
from typing import Any

from holdfast.activities.claude.stream import StreamError, Transcript
from holdfast.activities.claude.turns import find_flaw
from holdfast.activities.claude.wire import countable, extract_json, most_tokens, shape
from holdfast.contracts import Usage
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.untrusted.known_secrets import KnownSecrets


def answer_of(
    request: ModelRequest, transcript: Transcript, usage: Usage, known: KnownSecrets
) -> ModelAnswer:
    """Return the answer that a complete message is."""
    text, raw = transcript.text, known.blot_all(transcript.raw)
    if request.capabilities.schema_mode == "prompt" or transcript.searched_itself:
        text = extract_json(text)
    return ModelAnswer(
        text=known.blot(text),
        stop_reason=known.blot(transcript.stop_reason),
        model=known.blot(transcript.model) or request.model,
        usage=usage,
        detail=known.blot(transcript.detail),
        flaw=find_flaw(transcript, raw),
        counted=not transcript.absurd,
        raw=raw,
    )


def make_answer(request: ModelRequest, message: Any, known: KnownSecrets) -> ModelAnswer:
    """Return the answer that a message of a batch is. One that cannot be read is paid all the same:
    it counts at its most.
    """
    transcript = Transcript()
    try:
        transcript.load(json.dumps(message))
    except StreamError as error:
        usage = Usage(input_tokens=_most(request), output_tokens=request.max_output)
        flaw = f"what came back is not a message: {error}"
        return ModelAnswer("", "end_turn", request.model, usage, flaw=flaw, counted=False)
    usage = transcript.usage(0, request.max_output)
    if not (usage.input_tokens or usage.cache_read_tokens or usage.cache_write_tokens):
        usage = transcript.usage(_most(request), request.max_output)
    return answer_of(request, transcript, usage, known)


def _most(request: ModelRequest) -> int:
    return most_tokens(countable(shape(request, request.capabilities)))
