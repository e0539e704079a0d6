"""Prices: from the library, from the override file, and the arithmetic over them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.activities.asking.prices import (
    PriceFileError,
    Prices,
    library_search,
    library_source,
    library_steps,
    read_price_file,
)
from holdfast.contracts import ModelCard, Tier, Usage
from holdfast.contracts.policies import WEB_RESULT_TOKENS
from holdfast.deployment.settings import Settings
from holdfast.ledger.pricing import price, read_again, worst

TODAY: dict[Tier, str] = {
    "haiku": "claude-haiku-5-5",
    "sonnet": "claude-sonnet-5-5",
    "opus": "claude-opus-5-5",
}
MILLION = 1_000_000


def card(model: str) -> ModelCard:
    steps, search = library_steps(model), library_search(model)
    return ModelCard(tier="sonnet", id=model, prices=steps, search=search)


@pytest.mark.parametrize(
    ("model", "input", "output", "read", "write"),
    [
        ("claude-sonnet-5-5", "2", "10", "0.10", "2.50"),
        ("claude-opus-5-5", "4", "20", "0.20", "5"),
        ("claude-haiku-4-5", "1", "5", "0.10", "1.25"),
        ("claude-sonnet-5-5-20261014", "2", "10", "0.10", "2.50"),
    ],
)
def test_the_library_knows_todays_prices(
    model: str, input: str, output: str, read: str, write: str
) -> None:
    (step,) = library_steps(model)
    per_million = [
        each * MILLION for each in (step.input, step.output, step.cache_read, step.cache_write)
    ]
    assert per_million == [Decimal(text) for text in (input, output, read, write)]


def test_haiku_costs_five_times_as_much_above_a_hundred_thousand_tokens_of_prompt() -> None:
    haiku = card("claude-haiku-5-5")
    assert price(haiku, Usage(input_tokens=100_000, output_tokens=1_000)) == Decimal("0.0105")
    assert price(haiku, Usage(input_tokens=100_001, output_tokens=1_000)) == Decimal("0.052501")


def test_cached_tokens_count_towards_the_step_of_a_prompt() -> None:
    usage = Usage(input_tokens=1, cache_read_tokens=100_000)
    assert price(card("claude-haiku-5-5"), usage) == Decimal("0.005001")


def test_every_kind_of_token_has_its_own_price() -> None:
    usage = Usage(
        input_tokens=1_000, output_tokens=1_000, cache_read_tokens=1_000, cache_write_tokens=1_000
    )
    assert price(card("claude-sonnet-5-5"), usage) == Decimal("0.0146")


def test_an_unknown_model_has_no_price_instead_of_a_guessed_one() -> None:
    unknown = card("llama-9-local")
    assert unknown.prices == ()
    assert price(unknown, Usage(input_tokens=5)) is None
    assert worst(unknown, 5, 5) is None


def test_the_worst_case_writes_the_whole_prompt_to_the_cache() -> None:
    assert worst(card("claude-sonnet-5-5"), 10_000, 8_000) == Decimal("0.105")


@given(
    st.sampled_from(sorted(TODAY.values())),
    st.integers(0, 400_000),
    st.integers(0, 400_000),
    st.integers(0, 400_000),
    st.integers(0, 128_000),
    st.integers(0, 128_000),
)
def test_no_call_costs_more_than_its_worst_case(
    model: str, input: int, read: int, write: int, output: int, unused: int
) -> None:
    usage = Usage(
        input_tokens=input, cache_read_tokens=read, cache_write_tokens=write, output_tokens=output
    )
    paid = price(card(model), usage)
    most = worst(card(model), input + read + write, output + unused)
    assert paid is not None
    assert most is not None
    assert paid <= most


def test_every_tier_has_a_card_and_a_price() -> None:
    cards = Prices.of(Settings(_env_file=None)).cards()
    assert {each.tier: each.id for each in cards} == TODAY
    assert all(each.prices for each in cards)


def test_an_override_file_prices_what_the_library_does_not_know(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(
        "dated: 2026-11-01\n"
        "local: {input: 0.5, output: 2, cache_read: 0.05, cache_write: 0.6}\n"
        "claude-opus-5-5:\n"
        "  - {above: 0, input: 1, output: 1, cache_read: 1, cache_write: 1}\n"
        "  - {above: 10, input: 9, output: 9, cache_read: 9, cache_write: 9}\n"
    )
    prices = Prices(TODAY, read_price_file(file))
    of_file = Settings(_env_file=None, price_file=file)
    sources = {each.tier: each.source for each in Prices.of(of_file).cards()}
    assert sources["opus"] == "from prices.yaml of 2026-11-01"
    assert sources["haiku"] == library_source()
    file.write_text(file.read_text().removeprefix("dated: 2026-11-01\n"))
    assert read_price_file(file).source == "from prices.yaml, which has no date"
    assert prices.price("local", Usage(input_tokens=MILLION)) == Decimal("0.5")
    assert prices.price("claude-opus-5-5", Usage(input_tokens=10)) == Decimal("0.00001")
    assert prices.price("claude-opus-5-5", Usage(input_tokens=11)) == Decimal("0.000099")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            "local: {input: 1, output: 2}",
            ": local: cache_read is missing; local: cache_write is missing$",
        ),
        (
            "local: {input: -1, output: a, cache_read: 1, cache_write: 1}",
            ": local: input: must be a number, 0 or more; local: output: must be a number, 0 or mo",
        ),
        (
            "local: {input: 1, outptu: 2, output: 2, cache_read: 1, cache_write: 1}",
            r": local: outptu: unknown field \(did you mean 'output'\?\)$",
        ),
        (
            "local: [{input: 1, output: 2, cache_read: 1, cache_write: 1}, {above: 9, input: 1,"
            " output: 2, cache_read: 1}]",
            ": local, step 2: cache_write is missing$",
        ),
        ("dated: yesterday", ": dated: must be a day as 2026-11-24$"),
        ("dated: [1]", ": dated: must be a day as 2026-11-24$"),
        ("local: free", ": local: must be a row as my-model: {input: 0.5, output: 2, cache_read:"),
        ("local: []", ": local: must be a row as "),
        ("[local]", ": must be a row as my-model: "),
        ("[unclosed", "cannot be read"),
    ],
)
def test_a_bad_price_file_is_refused_with_the_place(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(PriceFileError, match=named) as refusal:
        read_price_file(file)
    assert str(file) in str(refusal.value)


def test_the_library_is_told_with_its_version_and_its_newest_price_that_is_in_force() -> None:
    told = re.fullmatch(
        r"from genai-prices (\d[\d.]+), whose newest price is of (\d{4}-\d\d-\d\d)",
        library_source(),
    )
    assert told and told[1] == version("genai-prices")
    assert date(2026, 1, 1) < date.fromisoformat(told[2]) <= datetime.now(UTC).date()


def test_a_missing_price_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PriceFileError, match="absent"):
        read_price_file(tmp_path / "absent.yaml")


def test_searches_of_the_endpoint_are_priced_each_and_never_guessed() -> None:
    known = card("claude-haiku-5-5")
    assert known.search == Decimal("0.01")
    usage = Usage(input_tokens=1_000, output_tokens=100, searches=3)
    plain = price(known, usage.model_copy(update={"searches": 0}))
    assert plain is not None and price(known, usage) == plain + Decimal("0.03")
    least = worst(known, 1_000, 100)
    assert least is not None and worst(known, 1_000, 100, 3) == least + Decimal("0.03")
    unknown = known.model_copy(update={"search": None})
    assert price(unknown, usage) is None and worst(unknown, 1_000, 100, 3) is None
    assert worst(unknown, 1_000, 100) == least


def test_a_prompt_that_is_read_again_after_each_result_is_bounded() -> None:
    assert read_again(5_000, 0) == 5_000
    # Three rounds: the prompt alone, then with one, two and three results.
    exact = sum(5_000 + each * WEB_RESULT_TOKENS for each in range(4))
    assert exact <= read_again(5_000, 3) == 4 * (5_000 + 3 * WEB_RESULT_TOKENS)
