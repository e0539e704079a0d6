"""Numbers are exact, units convert, and nothing but arithmetic is calculated."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from hands import Bench
from holdfast.activities.tools.calculate import calculate
from holdfast.activities.toolset.child import SCRIPTS

Answer = Callable[[str, str], dict[str, str]]


@pytest.fixture(scope="module")
def answer() -> Answer:
    """What the script answers, without a process for each line of a table."""
    main = runpy.run_path(str(SCRIPTS / "calculate.py"))["main"]

    def answered(expression: str, unit: str = "") -> dict[str, str]:
        found = json.loads(main(json.dumps({"expression": expression, "unit": unit}).encode()))
        assert isinstance(found, dict)
        return found

    return answered


@pytest.mark.parametrize(
    ("expression", "unit", "said"),
    [
        ("0.1 + 0.2", "", "0.3"),
        ("1/3", "", "0.333333333333333333333333333333 (rounded)"),
        ("2^3 + 1", "", "9"),
        ("-5 % 3", "", "-2"),
        ("7 // 2", "", "3"),
        ("12345678901234567890 * 9876543210", "", "121932631124828532111263526900"),
        ("max(1, 2) − 4 × 0.5 ÷ 2", "", "1"),
        ("round(2/3, 2)", "", "0.67 (rounded)"),
        ("round(2.5)", "", "3"),
        ("round(10 km / 3, 2)", "", "3.33 kilometer (rounded)"),
        ("sum(1, 2.5, 3)", "", "6.5"),
        ("sqrt(2)", "", "1.41421356237309504880168872421 (rounded)"),
        ("exp(0) + ln(1) + log10(1000)", "", "4"),
        ("1e60", "", "1E+60"),
        ("3 km / 20 min", "km/hour", "9 kilometer / hour"),
        ("9.81 m/s**2 * 80 kg", "N", "784.8 newton"),
        ("20 °C", "°F", "68 degree_Fahrenheit (rounded)"),
        ("5 in", "cm", "12.7 centimeter (rounded)"),
        ("10 m / 5 cm", "", "200"),
        ("180 degree", "", "3.14159265358979323846264338328 (rounded)"),
        ("5e3 m", "", "5000 meter"),
    ],
)  # fmt: skip
def test_an_expression_has_its_exact_value(
    answer: Answer, expression: str, unit: str, said: str
) -> None:
    assert answer(expression, unit) == {"said": said}


@pytest.mark.parametrize(
    ("expression", "unit", "why"),
    [
        ("9**9**9**9", "", "it is too large"),
        ("1e999999 * 10", "", "it is too large"),
        ("(10 m)**100000000", "", "whole powers up to 100"),
        ("5 km", "mile**9999999999", "whole powers up to 100"),
        ("1/0", "", "divides by zero"),
        ("0/0", "", "invalid operation"),
        ("ln(0)", "", "infinite"),
        ("sqrt(-1)", "", "invalid operation"),
        ("-" * 1900 + "1", "", "nested too deeply"),
        ("(" * 500, "", "is not an expression"),
        ("__import__('os').system('id')", "", "only numbers, units"),
        ("__import__('os')", "", "there is no function __import__"),
        ("(1).__class__", "", "only numbers, units"),
        ("[1 for _ in 1]", "", "is not an expression"),
        ("[1, 2]", "", "only numbers, units"),
        ("'a' * 9", "", "no texts"),
        ("1j", "", "no imaginary ones"),
        ("True", "", "only numbers"),
        ("1,000 + 1", "", "without thousands separators"),
        ("15% of 80", "", "15 % as 0.15"),
        ("5 EUR", "", "no unit or constant 'EUR'"),
        ("5 m + 3 s", "", "Cannot convert"),
        ("sqrt(2 m**2)", "", "Cannot convert"),
        ("2 + 2", "km", "has no unit"),
        ("5 km", "3", "not a number"),
        ("5 km", "3 m", "without a number"),
        ("abs(1, 2)", "", "does not take 2"),
        ("sum()", "", "needs a number"),
        ("007", "", "is not an expression"),
        ("\x00", "", "is not an expression"),
    ],
)
def test_what_is_no_arithmetic_is_refused_with_the_reason(
    answer: Answer, expression: str, unit: str, why: str
) -> None:
    found = answer(expression, unit)
    assert why in found["error"] and "\n" not in found["error"]
    assert len(found["error"]) < 300


@pytest.mark.anyio
async def test_a_model_calculates_in_a_bounded_child() -> None:
    bench = Bench()
    assert await bench.told(calculate, expression="19.99 * 3 * 1.19") == "71.3643"
    assert await bench.told(calculate, expression="1 mile", unit="km") == "1.609344 kilometer"
    assert "too large" in await bench.refused(calculate, expression="9**9**9")
    assert "expression" in (await bench.use(calculate, expression="1+" * 1_500 + "1")).text


def test_the_parser_of_units_is_handed_plain_words_only() -> None:
    source = Path(SCRIPTS / "calculate.py").read_text("utf-8")
    assert "parse_expression" not in source and "eval(" not in source.replace('mode="eval"', "")
