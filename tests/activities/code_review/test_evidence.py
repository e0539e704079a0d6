"""What a verifier is shown of a remark: from it four defects of a change of nine lines can be
confirmed, and two false remarks refuted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.activities.prompts.evidence import Evidence
from holdfast.activities.prompts.functions import Function, find_function
from holdfast.calls.verify import Place, Shown
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Remark, Subtask
from holdfast.contracts.policies import EVIDENCE_BYTES
from repositories import Bench, Repository

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

UNGUARDED = '''"""Orders of a shop."""

from shop.users import may_cancel

PAGE = 20
RATES = {"EUR": 1, "USD": 2}


def cancel(order, user):
    """Cancel an order."""
    if not may_cancel(user, order):
        raise PermissionError(order.id)
    order.state = "cancelled"
    return order


def price(order, currency):
    """The price of an order in a currency."""
    return order.total * RATES[currency]


def page(orders, number):
    """A page of orders; pages are counted from 1."""
    first = (number - 1) * PAGE
    return orders[first : first + PAGE]


def address(order):
    """Where an order goes."""
    return order.customer.address


def discount(order, percent):
    """Take so many percent off."""
    order.total -= order.total * percent / 100


def export(orders, path):
    """Write the orders to a file."""
    with open(path, "w") as file:
        for order in orders:
            file.write(f"{order.id}\\n")
'''
GUARD = """    if order.customer is None:
        return ""
"""
BASE = UNGUARDED.replace(
    "    return order.customer.address\n", GUARD + "    return order.customer.address\n"
)
HEAD = (
    BASE.replace(GUARD, "")
    .replace("    if not may_cancel(user, order):\n        raise PermissionError(order.id)\n", "")
    .replace("def price(order, currency)", "def price(order, rate)")
    .replace("in a currency", "at a rate")
    .replace("* RATES[currency]", "* rate")
    .replace("(number - 1) * PAGE", "number * PAGE")
    .replace('{order.id}\\n"', '{order.id};{order.total}\\n"')
    .replace("percent / 100", "percent * 0.01")
)
MAIL = '''"""Letters to customers."""

from shop.orders import price


def confirmation(order):
    """The letter that confirms an order."""
    total = price(order, "EUR")
    return f"You pay {total}."
'''
API = '''"""What the shop offers over HTTP."""

from shop.orders import discount


def take_off(request, order):
    """Give a discount."""
    percent = int(request["percent"])
    if not 0 <= percent <= 50:
        raise ValueError("percent")
    discount(order, percent)
'''


class Shop:
    """A repository with a change, and the commit that had put in the guard."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder)
        self.repository = Repository.at(folder / "repo")
        self.repository.commit({"shop/orders.py": UNGUARDED, "shop/mail.py": MAIL})
        self.repository.write("shop/api.py", API)
        self.repository.write("shop/orders.py", BASE)
        self.repository.git("add", "-A")
        told = "Guests have no customer: the nightly export crashed on their orders"
        self.repository.git("commit", "-q", "-m", told)
        self.guard = self.repository.git("rev-parse", "HEAD")
        self.repository.write("shop/orders.py", HEAD)

    async def show(self, *remarks: Remark, withheld: tuple[Place, ...] = ()) -> tuple[Shown, ...]:
        return await Evidence(self.bench.snapshots).on(
            await self.material(*remarks, withheld=withheld)
        )

    async def material(self, *remarks: Remark, withheld: tuple[Place, ...] = ()) -> WorkMaterial:
        pinned = await self.bench.pin(self.repository, "HEAD", models=True)
        subtask = Subtask(id="verify-1", title="", role="verifier", instruction="Verify.")
        return WorkMaterial(subtask=subtask, inputs=(pinned,), remarks=remarks, withheld=withheld)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.split("\n"), 1) if part in line)


def remark(message: str, at: str, file: str = "shop/orders.py", **fields: Any) -> Remark:
    text = {"shop/orders.py": HEAD, "shop/mail.py": MAIL}[file]
    given = {
        "severity": "critical",
        "file": file,
        "line": line_of(text, at),
        "message": message,
        "confidence": 90,
        "lens": "logic",
        "by_agent": True,
    }
    return Remark.model_validate({**given, **fields})


async def test_a_deleted_check_is_shown_where_it_stood(shop: Shop) -> None:
    said = "cancel no longer asks may_cancel: any user can cancel any order."
    (shown,) = await shop.show(remark(said, "def cancel"))
    gone = "      -     if not may_cancel(user, order):"
    lines = shown.code.split("\n")
    assert lines.index(gone) == lines.index('   10       """Cancel an order."""') + 1


async def test_a_caller_that_still_passes_the_old_argument_is_shown_from_either_side(
    shop: Shop,
) -> None:
    told = "price takes a rate now, and shop/mail.py:8 still passes a currency."
    of_function, of_caller = await shop.show(
        remark(told, "def price"),
        remark("price wants a rate, and gets a currency.", "price(order", "shop/mail.py"),
    )
    for shown in (of_function, of_caller):
        assert '    8       total = price(order, "EUR")' in shown.code
        assert "      - def price(order, currency):" in shown.code
        assert "   15 + def price(order, rate):" in shown.code
        assert not shown.absent, "no line is refused because the change did not touch it"
    unnamed = remark("Its callers pass a currency.", "def price")
    (found,) = await shop.show(unnamed)
    assert 'price(order, "EUR")' in found.code, "uses are looked for, named or not"


async def test_what_was_before_stands_beside_what_is_now(shop: Shop) -> None:
    (shown,) = await shop.show(remark("The first page is skipped.", "number * PAGE"))
    assert "pages are counted from 1" in shown.code
    assert (
        "      -     first = (number - 1) * PAGE\n   22 +     first = number * PAGE" in shown.code
    )


async def test_a_commit_that_a_remark_names_is_shown_with_what_it_said_and_did(shop: Shop) -> None:
    said = f"The guard that {shop.guard[:12]} had put in is gone."
    (shown,) = await shop.show(remark(said, "return order.customer.address"))
    assert "the nightly export crashed" in shown.code
    assert "+    if order.customer is None:" in shown.code, "what the old commit added"
    assert "      -     if order.customer is None:" in shown.code, "what the change deleted"
    (unknown,) = await shop.show(remark("As in 0123456789ab.", "return order.customer.address"))
    assert "Commits" not in unknown.code


async def test_a_rule_file_that_a_remark_names_stands_beside_it_where_its_words_are(
    shop: Shop,
) -> None:
    """By its path or by its name; of a long one, what has the remark's words."""
    fill = "".join(f"- Rule {number} says nothing of that.\n" for number in range(90))
    shop.repository.commit(
        {
            "CONTRIBUTING.md": f"# How\n\n{fill}- Discounts are counted in whole cents.\n{fill}",
            "shop/AGENTS.md": "- Percent is an int.\n",
            ".editorconfig": "indent_size = 4\n",
            "web/AGENTS.md": "- Never this.\n",
        }
    )
    said = "Against CONTRIBUTING (discounts in whole cents), AGENTS.md"
    (shown,) = await shop.show(remark(f"{said}.", "order.total -="))
    assert "- Discounts are counted in whole cents." in shown.code
    assert "- Percent is an int." in shown.code and "Never this" not in shown.code
    (other,) = await shop.show(remark("Breaks .editorconfig.", "order.total -="))
    assert "indent_size = 4" in other.code and "Against" not in other.code


async def test_of_a_whole_tree_nothing_is_said_of_a_change(shop: Shop) -> None:
    pinned = await shop.bench.pin(shop.repository, scope="all", models=True)
    material = await shop.material(remark("m", "def page"), remark("m", "PAGE = 20"))
    whole = material.model_copy(update={"inputs": (pinned,)})
    inside, outside = await Evidence(shop.bench.snapshots).on(whole)
    assert inside.code.startswith("The function or class around it:\n")
    assert outside.code.startswith("The lines around it:\n")


async def test_no_line_is_shown_under_two_headings(shop: Shop) -> None:
    rules = "".join(f"- Rule {number}.\n" for number in range(90))
    shop.repository.commit({"CONTRIBUTING.md": rules})
    said = (
        "By CONTRIBUTING.md:41, which is of CONTRIBUTING.md, `cancel` and `address` are wrong"
        " (shop/orders.py:29)."
    )
    (shown,) = await shop.show(remark(said, "number * PAGE"))
    assert "   41   - Rule 40." in shown.code, "the place that is named, not the first alike"
    lines = [line for line in shown.code.split("\n") if line[:5].strip().isdecimal()]
    assert len(lines) == len({*lines})
    assert shown.code.count("def cancel(") == shown.code.count("def address(") == 1


async def test_what_only_a_suggestion_names_is_not_shown_to_who_does_not_see_it(shop: Shop) -> None:
    said = remark(
        "It is rounded.", "percent * 0.01", suggestion="As `price` does, by shop/mail.py:8"
    )
    (shown,) = await shop.show(said)
    assert "def price" not in shown.code and "shop/mail.py" not in shown.code


async def test_a_function_that_uses_it_often_is_shown_once(shop: Shop) -> None:
    calls = "    discount(order, 1)\n" + "    order.save()\n" * 9
    shop.repository.commit({"shop/sale.py": f"def sell(order):\n{calls * 3}"})
    (shown,) = await shop.show(remark("Too much.", "order.total -="))
    assert shown.code.count("shop/sale.py:") == 1 and "and 3 more" in shown.code


async def test_two_false_remarks_can_be_refuted_by_the_caller_and_by_the_whole_function(
    shop: Shop,
) -> None:
    unchecked, unclosed = await shop.show(
        remark("percent is not checked: above 100 the total is negative.", "percent * 0.01"),
        remark("The file is never closed.", "file.write"),
    )
    assert "if not 0 <= percent <= 50:" in unchecked.code
    assert 'with open(path, "w") as file:' in unclosed.code


async def test_a_function_is_shown_once(shop: Shop) -> None:
    first, second = await shop.show(
        remark("One.", "number * PAGE"), remark("Another.", "return orders[")
    )
    assert "def page" in first.code and "def page" not in second.code
    assert "beside remark 1." in second.code


async def test_a_deleted_file_is_shown_as_it_was(shop: Shop) -> None:
    shop.repository.git("rm", "-q", "shop/mail.py")
    said = remark("Nobody confirms an order any more.", "price(order", "shop/mail.py")
    (shown,) = await shop.show(said)
    assert not shown.absent
    assert '      -     total = price(order, "EUR")' in shown.code


async def test_places_that_are_nowhere_are_said_to_be_so_and_only_of_agents(shop: Shop) -> None:
    there = remark("Lie.", "def page")
    lies = [
        there.model_copy(update={"file": "no/such.py"}),
        there.model_copy(update={"file": "../../../../etc/passwd", "line": 1}),
        there.model_copy(update={"line": 9_999}),
        there.model_copy(update={"line": -5}),
    ]
    shown = await shop.show(*lies, lies[2].model_copy(update={"by_agent": False}))
    whys = ["no such file"] * 2 + ["no such line"] * 2
    assert [bool(each.code) for each in shown[:4]] == [False] * 4
    assert all(why in each.absent for why, each in zip(whys, shown[:4], strict=True))
    assert not shown[4].absent


async def test_no_secret_is_shown_of_any_part(shop: Shop) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    key = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIabc\nMIIdef\n-----END RSA PRIVATE KEY-----"
    leaky = f'# passphrase of mine\nTOKEN = "{token}"\nKEY = """{key}"""\n{HEAD}'
    shop.repository.write("shop/orders.py", leaky)
    line = line_of(leaky, "TOKEN")
    said = remark(f"See shop/orders.py:{line}.", "def cancel").model_copy(update={"line": line})
    (shown,) = await shop.show(said, withheld=(Place(file="shop/orders.py", line=1),))
    assert "TOKEN" in shown.code and "KEY" in shown.code
    for secret in (token, "MIIabc", "passphrase"):
        assert secret not in shown.code


async def test_what_is_shown_of_a_long_function_keeps_its_beginning_and_stays_small(
    shop: Shop,
) -> None:
    body = "".join(f"    x{number} = {'y' * 200!r}\n" for number in range(400))
    long = f"def long():\n{body}    return order_of_all\n"
    shop.repository.write("shop/orders.py", long)
    said = remark("m", "def page").model_copy(update={"line": 402})
    (shown,) = await shop.show(said)
    assert "    1 + def long():" in shown.code and "return order_of_all" in shown.code
    assert len(shown.code.encode()) <= EVIDENCE_BYTES


@pytest.mark.parametrize(
    ("code", "line", "first", "last", "name"),
    [
        ("class A:\n    @cached\n    def f(self):\n        return 1\n\n    x = 2\n", 4, 2, 4, "f"),
        ("class A:\n    def f(self):\n        return 1\n\n    x = 2\n", 5, 1, 5, "A"),
        ("def f(\n    a,\n    b,\n):\n    return a\n\n\nf(1, 2)\n", 5, 1, 5, "f"),
        ("func (s *S) Get(k string) int {\n\tif k == x {\n\t\treturn 1\n\t}\n}\n", 3, 1, 5, "Get"),
        ("class A {\n  get(k) {\n    if (k) {\n      f();\n    }\n  }\n}\n", 4, 2, 6, "get"),
        ("const get = (k) => {\n  return k;\n};\nget();\n", 2, 1, 3, "get"),
        ("  public static int run(int a) {\n    return a;\n  }\n", 2, 1, 3, "run"),
        ("int\nrun(int a)\n{\n    return a;\n}\n", 4, 0, 0, ""),
        ("def f\n  g\nend\n\nf\n", 2, 1, 3, "f"),
        ("x = 1\ny = 2\n", 2, 0, 0, ""),
    ],
)
def test_the_function_around_a_line_is_found_by_how_lines_are_indented(
    code: str, line: int, first: int, last: int, name: str
) -> None:
    found = find_function(code.split("\n"), line)
    assert (found or Function(0, 0)) == Function(first, last, name)
