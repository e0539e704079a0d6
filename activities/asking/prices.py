"""Prices of models: from the maintained library `genai-prices`, overridden by a YAML file.

The override file gives dollars per million tokens, all four prices of each model, because a price
that is left out would have to be guessed; and the day of which they are, if it is to be told:

    dated: 2026-11-24
    my-model: {input: 0.5, output: 2, cache_read: 0.05, cache_write: 0.6}
    stepped:
      - {above: 0, input: 1, output: 5, cache_read: 0.1, cache_write: 1.25}
      - {above: 200000, input: 2, output: 9, cache_read: 0.2, cache_write: 2.5}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from genai_prices import Usage as LibraryUsage
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import StartDateConstraint, TieredPrices
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from holdfast.calls.plan import PLAN
from holdfast.contracts import ModelCard, PriceStep, Tier, Usage
from holdfast.deployment.settings import Settings
from holdfast.ledger import pricing
from holdfast.text.mistakes import suggest
from holdfast.untrusted.folders import read_regular, resolve_path
from holdfast.untrusted.reading import NotPlain, from_yaml

MILLION = Decimal(1_000_000)
FILE_BYTES = 1024 * 1024
"""The largest price file."""
PROVIDER = "anthropic"
"""Only this provider's list counts: another provider's price for a model of the same name would be
a guess.
"""


class PriceFileError(ValueError):
    """The override file cannot be used; the message names the file and the place in it."""


class PriceRow(BaseModel):
    """One step of the override file, in dollars per million tokens."""

    model_config = ConfigDict(extra="forbid")

    above: int = Field(0, ge=0)
    input: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)
    cache_read: Decimal = Field(ge=0)
    cache_write: Decimal = Field(ge=0)

    def step(self) -> PriceStep:
        return PriceStep(
            above=self.above,
            input=self.input / MILLION,
            output=self.output / MILLION,
            cache_read=self.cache_read / MILLION,
            cache_write=self.cache_write / MILLION,
        )


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


# Where one of two shapes may stand, pydantic tells the mistakes of both.
PRICE_FILE = TypeAdapter(
    dict[str, Annotated[list[PriceRow], Field(min_length=1), BeforeValidator(_as_list)]]
)
DATED = "dated"
"""The key of the override file that is no model: the day of which its prices are."""
EXAMPLE = "my-model: {input: 0.5, output: 2, cache_read: 0.05, cache_write: 0.6}"


@dataclass(frozen=True)
class PriceFile:
    """The prices of an override file."""

    steps: Mapping[str, tuple[PriceStep, ...]] = field(default_factory=dict)
    """By model id."""
    dated: str = ""
    """The day of which they are, as in 2026-11-24; empty: the file does not say."""
    name: str = "the override file"

    @property
    def source(self) -> str:
        return f"from {self.name}{f' of {self.dated}' if self.dated else ', which has no date'}"


class Prices:
    """Implements `Pricing`: prices of all model ids that the library or the override file knows."""

    def __init__(
        self,
        models: Mapping[Tier, str],
        file: PriceFile = PriceFile(),
        planner: str | None = None,
    ) -> None:
        self._models = dict(models)
        self._planner = planner
        self.file = file

    @classmethod
    def of(cls, settings: Settings) -> Prices:
        """Return the prices of this deployment. Raise PriceFileError if the override file cannot be
        used.
        """
        models: dict[Tier, str] = {
            "haiku": settings.model_haiku,
            "sonnet": settings.model_sonnet,
            "opus": settings.model_opus,
        }
        planner = settings.model_planner
        if settings.price_file is None:
            return cls(models, planner=planner)
        return cls(models, read_price_file(settings.price_file), planner)

    def cards(self) -> tuple[ModelCard, ...]:
        """Return a card per tier that this deployment serves; one without steps is unpriced."""
        return tuple(self.card(tier, model) for tier, model in self._models.items())

    def planner(self) -> ModelCard | None:
        """Return the card of the model that is set to plan, of the tier that it serves, else of the
        one that its id names.
        """
        if not self._planner:
            return None
        serving = [tier for tier, model in self._models.items() if model == self._planner]
        named = [tier for tier in self._models if tier in self._planner]
        return self.card([*serving, *named, PLAN.policy.tier][0], self._planner)

    def card(self, tier: Tier, model: str) -> ModelCard:
        """Return the card of any model, were it to serve a tier."""
        steps = self.steps(model)
        source = self.file.source if model in self.file.steps else library_source()
        return ModelCard(
            tier=tier,
            id=model,
            prices=steps,
            search=library_search(model),
            source=source if steps else "",
        )

    @property
    def of_searches(self) -> bool:
        """True if a search by the endpoint has a known price, whichever model makes it."""
        return all(card.search is not None for card in self.cards())

    def steps(self, model: str) -> tuple[PriceStep, ...]:
        """Return the price steps of a model id; empty if its price is not known."""
        return self.file.steps.get(model) or library_steps(model)

    def price(self, model: str, usage: Usage) -> Decimal | None:
        """Return the dollars of a call, by the id of the model that served it; None if it is
        unpriced.
        """
        # The tier of a card has no part in its price.
        search = library_search(model) if usage.searches else None
        card = ModelCard(tier="sonnet", id=model, prices=self.steps(model), search=search)
        return pricing.price(card, usage)


@lru_cache(maxsize=256)
def library_steps(model: str) -> tuple[PriceStep, ...]:
    """Return today's price of a model, in dollars per token; empty if the library does not know
    it.
    """
    try:
        found = calc_price(
            LibraryUsage(input_tokens=1, output_tokens=1), model, provider_id=PROVIDER
        ).model_price
    except LookupError:
        return ()
    listed: dict[str, Decimal | TieredPrices | None] = {
        "input": getattr(found, "input_mtok", None),
        "output": getattr(found, "output_mtok", None),
        "cache_read": getattr(found, "cache_read_mtok", None),
        "cache_write": getattr(found, "cache_write_mtok", None),
    }
    if listed["input"] is None or listed["output"] is None:
        return ()
    # A model without prices for its cache does not cache: such tokens are plain input.
    prices = {name: listed["input"] if value is None else value for name, value in listed.items()}
    starts = {0} | {
        tier.start
        for value in prices.values()
        if isinstance(value, TieredPrices)
        for tier in value.tiers
    }
    return tuple(
        PriceStep(
            above=start,
            **{name: _per_token(value, start) for name, value in prices.items()},
        )
        for start in sorted(starts)
    )


@lru_cache(maxsize=1)
def library_source() -> str:
    """Return the library with its version and the day of its newest price. It has no date of its
    own, and prices that begin later are not in force.
    """
    constraints = (
        each.constraint
        for provider in get_snapshot().providers
        for model in provider.models
        if isinstance(model.prices, list)
        for each in model.prices
    )
    days = (each.start_date for each in constraints if isinstance(each, StartDateConstraint))
    newest = max((day for day in days if day <= datetime.now(UTC).date()), default=None)
    dated = f", whose newest price is of {newest}" if newest else ""
    return f"from genai-prices {version('genai-prices')}{dated}"


@lru_cache(maxsize=256)
def library_search(model: str) -> Decimal | None:
    """Return the dollars of one search by the endpoint's own tool; None if the library does not
    know them.
    """
    usage = LibraryUsage(input_tokens=1, output_tokens=1)
    try:
        found = calc_price(usage, model, provider_id=PROVIDER).model_price
    except LookupError:
        return None
    thousand = getattr(found, "web_searches_kcount", None)
    return None if thousand is None else Decimal(thousand) / 1_000


def _per_token(listed: Decimal | TieredPrices | None, start: int) -> Decimal:
    if isinstance(listed, TieredPrices):
        reached = [tier.price for tier in listed.tiers if tier.start <= start]
        return (reached[-1] if reached else listed.base) / MILLION
    return (listed or Decimal(0)) / MILLION


def read_price_file(path: Path) -> PriceFile:
    """Return the prices of the override file. Raise PriceFileError naming the file and every
    mistake.
    """
    try:
        read = from_yaml(read_regular(resolve_path(path), FILE_BYTES).decode()) or {}
        dated = _date(read.pop(DATED, "")) if isinstance(read, dict) else ""
        rows = PRICE_FILE.validate_python(read)
    except OSError as error:
        why = error.strerror or error
        raise PriceFileError(f"price file {str(path)!r} cannot be read: {why}") from error
    except (UnicodeDecodeError, NotPlain) as error:
        raise PriceFileError(f"price file {str(path)!r} cannot be read: {error}") from error
    except ValidationError as error:
        wrong = "; ".join(_describe(each["type"], each["loc"]) for each in error.errors())
        raise PriceFileError(f"price file {str(path)!r}: {wrong}") from error
    steps = {model: tuple(row.step() for row in listed) for model, listed in rows.items()}
    return PriceFile(steps, dated, path.name)


def _date(value: object) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat() if value != "" else ""
    except ValueError:
        raise NotPlain(f"{DATED}: must be a day as 2026-11-24") from None


def _describe(kind: str, place: tuple[int | str, ...]) -> str:
    """Return a mistake at a place of the override file (model, step, field) in its reader's
    words.
    """
    if len(place) < 3:
        whose = f"{place[0]}: " if place else ""
        return f"{whose}must be a row as {EXAMPLE}"
    model, step, name = place[:3]
    where = f"{model}: {name}" if step == 0 else f"{model}, step {int(step) + 1}: {name}"
    if kind == "missing":
        return f"{where} is missing"
    if kind == "extra_forbidden":
        return f"{where}: unknown field{suggest(str(name), PriceRow.model_fields)}"
    return f"{where}: must be a number, 0 or more"
