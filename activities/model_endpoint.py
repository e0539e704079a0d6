"""The endpoint that models are asked at, as a worker is built with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.activities.asking.prices import Prices
from holdfast.contracts import Capabilities
from holdfast.deployment.settings import Settings
from holdfast.ports import Batches, Model
from holdfast.untrusted.known_secrets import KnownSecrets


async def _no_capabilities() -> Capabilities:
    return Capabilities()


async def _closed() -> None:
    """There is nothing to close."""


@dataclass(frozen=True)
class ModelEndpoint:
    """The endpoint that models are asked at; without a model none can be."""

    model: Model | None = None
    address: str = ""
    capabilities: Callable[[], Awaitable[Capabilities]] = _no_capabilities
    close: Callable[[], Awaitable[None]] = _closed
    batches: Batches | None = None


def web_of_endpoint(settings: Settings, prices: Prices) -> bool:
    """True if the endpoint's own web tools are used: a search without a price has no bound."""
    return settings.endpoint_web and prices.of_searches


def model_endpoint(
    settings: Settings, prices: Prices, heard: Path | None = None, **options: Any
) -> ModelEndpoint:
    """Return the endpoint that the settings name, if any. `heard` is the file that remembers which
    endpoints have ever answered; `options` are further ones of `Claude`.
    """
    if not settings.has_endpoint:
        return ModelEndpoint()
    # The SDK takes seconds to import; what needs no model does not wait for it, nor does a worker
    # that comes back after a crash.
    from holdfast.activities.claude.adapter import Claude
    from holdfast.activities.claude.endpoint import Remembered, find_capabilities

    secret = settings.anthropic_api_key
    key = secret.get_secret_value() if secret else ""
    base_url = settings.anthropic_base_url
    models = tuple(card.id for card in (*prices.cards(), prices.planner()) if card)
    known = KnownSecrets(settings.secrets)
    about: dict[str, Any] = {"known": known, "heard": heard, **options}
    model = Claude(key=key, base_url=base_url, price=prices.price, **about)
    find = Remembered(partial(find_capabilities, key, base_url, settings.capabilities, models))

    async def capabilities() -> Capabilities:
        found = await find()
        return found.model_copy(update={"web": web_of_endpoint(settings, prices)})

    return ModelEndpoint(model, model.address, capabilities, model.aclose, model.batches)
