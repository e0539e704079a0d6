"""Record what models are asked and answer, for a cassette."""

from __future__ import annotations

from dataclasses import replace

from holdfast.activities.claude.wire import shape
from holdfast.activities.model_endpoint import ModelEndpoint
from holdfast.contracts import Capabilities
from holdfast.deployment.places import UNDERSTOOD
from holdfast.ports import Model, ModelAnswer, ModelRequest
from holdfast.replaying.cassette import Cassette
from holdfast.untrusted.known_secrets import KnownSecrets


class RecordedModel:
    """Implements `Model`: asks another one, and keeps each complete answer. Secrets of the
    deployment are blotted out of what is asked; of answers the adapter has done it.
    """

    def __init__(self, model: Model, cassette: Cassette, known: KnownSecrets) -> None:
        self._model = model
        self._cassette = cassette
        self._known = known

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        answer = await self._model.ask(request)
        if answer.raw:
            named = _as_setting(request.capabilities)
            self._cassette.settings.setdefault("HOLDFAST_CAPABILITIES", named)
            body = shape(request, request.capabilities)
            self._cassette.record(body, answer.raw, self._known.blot)
        return answer

    async def count_tokens(self, request: ModelRequest) -> int:
        return await self._model.count_tokens(request)

    async def reach(self) -> str:
        return await self._model.reach()


def _as_setting(capabilities: Capabilities) -> str:
    has = (
        capabilities.schema_mode == "native",
        capabilities.effort,
        capabilities.token_counting,
        capabilities.caching,
        capabilities.batches,
    )
    return ",".join(name for name, yes in zip(UNDERSTOOD, has, strict=True) if yes) or "none"


def recorded(endpoint: ModelEndpoint, cassette: Cassette, known: KnownSecrets) -> ModelEndpoint:
    """Return an endpoint whose answers are recorded; as it is if it has no model."""
    if endpoint.model is None:
        return endpoint
    return replace(endpoint, model=RecordedModel(endpoint.model, cassette, known))
