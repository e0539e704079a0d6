"""Decimal arithmetic with units, over a syntax tree that knows nothing but numbers. Runs isolated,
in a bounded process of its own, so it imports nothing of this project.
"""

from __future__ import annotations

import ast
import decimal
import io
import json
import tokenize
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

DIGITS = 50
SHOWN = 30
"""Digits shown of a rounded result; the others guard them."""
PLAIN = 60
"""Digits of the longest number that is written without an exponent."""
CONSTANTS = {
    "pi": Decimal("3.1415926535897932384626433832795028841971693993751"),
    "tau": Decimal("6.2831853071795864769252867665590057683943387987502"),
    "e": Decimal("2.7182818284590452353602874713526624977572470937000"),
}
SIGNS = {"^": "**", "×": "*", "·": "*", "÷": "/", "−": "-", "°C": "degC", "°F": "degF"}
KEYWORDS = {"in": "inch"}
"""Units that are words of Python."""


class Mistake(Exception):
    """The expression cannot be calculated; the message is for whoever wrote it."""


def main(request: bytes) -> bytes:
    """Return the value of an `expression`, in a `unit`, as `{"said": …}`, or why not as `{"error":
    …}`. If what knows units is absent, `without` says so as the rest of a sentence.
    """
    asked = json.loads(request)
    context = decimal.Context(prec=DIGITS, Emax=999_999, Emin=-999_999)
    context.traps[decimal.FloatOperation] = True
    decimal.setcontext(context)
    try:
        value = evaluate(asked["expression"])
        if asked["unit"]:
            value = in_unit(value, evaluate(asked["unit"]))
        elif not isinstance(value, Decimal) and value.dimensionless:
            # 10 m / 5 cm is 200, not 2 meter / centimeter.
            value = quantity(value).to("")
        answer = {"said": render(value)}
    except Mistake as error:
        answer = {"error": str(error)}
    except decimal.DecimalException as error:
        answer = {"error": f"no number comes of this: {WHY.get(type(error), 'invalid operation')}"}
    except ModuleNotFoundError:
        answer = {"error": f"to calculate with units {asked['without']}; give numbers alone"}
    except (RecursionError, MemoryError):
        answer = {"error": "the expression is nested too deeply; calculate it in parts"}
    except Exception as error:
        if not is_of_pint(error):
            raise
        answer = {"error": f"the units do not fit: {error}"}
    return json.dumps(answer).encode()


WHY: dict[type[Exception], str] = {
    decimal.Overflow: "it is too large",
    decimal.DivisionByZero: "it divides by zero",
}


def evaluate(text: str) -> Any:
    """Return the value of an expression: a Decimal, a quantity of pint, or a bare unit."""
    prepared = to_python(text)
    try:
        tree = ast.parse(prepared, mode="eval")
    except (SyntaxError, ValueError) as error:
        raise Mistake(
            f"{text[:60]!r} is not an expression: write numbers without thousands separators or"
            " currency signs, 15 % as 0.15, and * between factors"
        ) from error
    return Evaluation(prepared).of(tree.body)


def to_python(text: str) -> str:
    """Return the expression as Python writes it: `3 km / 20 min^2` becomes `(3*km) /
    (20*min**2)`.
    """
    for sign, meant in SIGNS.items():
        text = text.replace(sign, meant)
    try:
        found = list(tokenize.generate_tokens(io.StringIO(text.strip()).readline))
    except (tokenize.TokenError, SyntaxError):
        # Python's parser says of the same text that it is none.
        return text
    words = [(each.type, KEYWORDS.get(each.string, each.string)) for each in found]
    return " ".join(join(words)).strip()


def join(words: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Yield the words, with a number and the unit behind it in parentheses, its exponent
    included.
    """
    place = 0
    while place < len(words):
        kind, word = words[place]
        place += 1
        if kind != tokenize.NUMBER or not is_name(words, place):
            yield word
            continue
        part = [word, "*", words[place][1]]
        place += 1
        if words[place][1] == "**":
            while words[place][1] in ("**", "-"):
                part.append(words[place][1])
                place += 1
            part.append(words[place][1])
            place += 1
        yield f"({' '.join(part)})"


def is_name(words: Sequence[tuple[int, str]], place: int) -> bool:
    return words[place][0] == tokenize.NAME and words[place + 1][1] != "("


class Evaluation:
    """Evaluates the nodes of one expression."""

    def __init__(self, text: str) -> None:
        self._text = text

    def of(self, node: ast.expr) -> Any:
        """Return the value of a node. Raise Mistake for everything that is not arithmetic."""
        match node:
            case ast.Constant():
                return self._number(node)
            case ast.Name(id=name):
                return CONSTANTS[name] if name in CONSTANTS else unit(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -quantity(self.of(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.of(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
                return OPERATIONS[type(op)](self.of(left), self.of(right))
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in FUNCTIONS:
                return call_function(name, [quantity(self.of(each)) for each in given])
            case ast.Call(func=ast.Name(id=name)):
                raise Mistake(f"there is no function {name}; there are {', '.join(FUNCTIONS)}")
            case ast.Tuple():
                raise Mistake("write numbers without thousands separators: 1000, not 1,000")
        raise Mistake("only numbers, units, + - * / // % ** and parentheses can be calculated")

    def _number(self, node: ast.Constant) -> Decimal:
        if type(node.value) not in (int, float):
            raise Mistake("only numbers can be calculated, no texts and no imaginary ones")
        if isinstance(node.value, int):
            return Decimal(node.value)
        # As it was written: 0.1 is a tenth here.
        return Decimal(ast.get_source_segment(self._text, node) or "")


def multiply(left: Any, right: Any) -> Any:
    if isinstance(left, Decimal) and is_unit(right):
        # Not `left * right`: 20 degC is a point on its scale, not twenty times one.
        return registry().Quantity(left, right)
    return left * right


def power(base: Any, exponent: Any) -> Any:
    if not isinstance(exponent, Decimal):
        raise Mistake("an exponent is a plain number")
    if isinstance(base, Decimal):
        return base**exponent
    if exponent != int(exponent) or abs(exponent) > 100:
        raise Mistake("a quantity can be raised to whole powers up to 100 only")
    return base ** int(exponent)


def round_value(value: Any, digits: Decimal = Decimal(0)) -> Any:
    if abs(digits) > DIGITS or digits != int(digits):
        raise Mistake(f"round(value, digits) takes a whole number of digits up to {DIGITS}")
    number = value if isinstance(value, Decimal) else value.magnitude
    # In a context of its own: who asked for it need not be told that it was rounded.
    asked = decimal.Context(prec=DIGITS, rounding=decimal.ROUND_HALF_UP)
    number = number.quantize(Decimal(1).scaleb(-int(digits)), context=asked)
    return number if isinstance(value, Decimal) else registry().Quantity(number, value.units)


def plain(function: Callable[[Decimal], Decimal]) -> Callable[[Any], Decimal]:
    """Wrap a function so that it refuses a quantity that has a unit."""

    def of(value: Any) -> Decimal:
        if isinstance(value, Decimal):
            return function(value)
        return function(value.to("").magnitude)

    return of


def call_function(name: str, given: list[Any]) -> Any:
    if not given:
        raise Mistake(f"{name}() needs a number")
    try:
        return FUNCTIONS[name](*given)
    except TypeError as error:
        if is_of_pint(error):
            raise
        raise Mistake(f"{name} does not take {len(given)} such values") from error


OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda left, right: quantity(left) + quantity(right),
    ast.Sub: lambda left, right: quantity(left) - quantity(right),
    ast.Mult: multiply,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: quantity(left) // quantity(right),
    ast.Mod: lambda left, right: quantity(left) % quantity(right),
    ast.Pow: power,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "sum": lambda *values: sum(values[1:], values[0]),
    "round": round_value,
    "sqrt": plain(Decimal.sqrt),
    "exp": plain(Decimal.exp),
    "ln": plain(Decimal.ln),
    "log10": plain(Decimal.log10),
}


# ---------------------------------------------------------------- units

_registry: list[Any] = []


def registry() -> Any:
    """Return the units of pint, loaded when the first one is named: it takes a third of a
    second.
    """
    if not _registry:
        import pint

        # Its own constants are no part of what was asked.
        with decimal.localcontext():
            _registry.append(pint.UnitRegistry(non_int_type=Decimal))
    return _registry[0]


def is_of_pint(error: Exception) -> bool:
    return type(error).__module__.startswith("pint")


def unit(name: str) -> Any:
    """Return the unit of a name, which is a plain word: pint is given no expressions to parse."""
    import pint

    try:
        with decimal.localcontext():
            return registry().Unit(name)
    except (pint.UndefinedUnitError, ValueError) as error:
        raise Mistake(
            f"there is no unit or constant {name!r} (currencies have no rate here)"
        ) from error


def is_unit(value: Any) -> bool:
    return not isinstance(value, Decimal) and not hasattr(value, "magnitude")


def quantity(value: Any) -> Any:
    """Return a bare unit as one of it; anything else as it is."""
    return registry().Quantity(Decimal(1), value) if is_unit(value) else value


def in_unit(value: Any, wanted: Any) -> Any:
    if isinstance(wanted, Decimal):
        raise Mistake("`unit` is a unit, such as km/hour, not a number")
    target = wanted if is_unit(wanted) else wanted.units
    if not is_unit(wanted) and wanted.magnitude != 1:
        raise Mistake("`unit` is a unit without a number before it")
    if isinstance(value, Decimal):
        raise Mistake("the value has no unit that could be converted; name one in the expression")
    return quantity(value).to(target)


def render(value: Any) -> str:
    """Return the value for a reader, with its unit, and whether it was rounded."""
    value = quantity(value)
    number = value if isinstance(value, Decimal) else value.magnitude
    if not number.is_finite():
        raise Mistake("no number comes of this: it is infinite")
    context = decimal.getcontext()
    inexact = bool(context.flags[decimal.Inexact])
    if inexact:
        number = decimal.Context(prec=SHOWN, Emax=999_999, Emin=-999_999).plus(number)
    number = number.normalize()
    text = format(number, "f") if abs(number.adjusted()) < PLAIN else str(number)
    named = "" if isinstance(value, Decimal) or value.unitless else f" {value.units}"
    return f"{text}{named}{' (rounded)' if inexact else ''}"
