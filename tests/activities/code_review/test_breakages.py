"""What breaks by a change, and what it takes from tests: the program of the lens alone."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest

from holdfast.activities.review.lenses import analysers
from holdfast.activities.review.uses import matching
from holdfast.activities.review.uses.program import look
from holdfast.contracts import Sightings
from holdfast.contracts.remarks import blocks_change
from holdfast.deployment.extras import program
from holdfast.rendering.remarks import code_of
from repositories import Bench, Repository, remarks_of

pytestmark = [
    pytest.mark.usefixtures("secrets_found_here"),
    pytest.mark.anyio,
    pytest.mark.skipif(analysers()["uses"].lacking != "", reason=analysers()["uses"].lacking),
]
LANGUAGES = {
    "py": "Python",
    "js": "JavaScript",
    "ts": "TypeScript",
    "go": "Go",
    "java": "Java",
    "rb": "Ruby",
}


def breaks(folder: Path, base: dict[str, str], head: dict[str, str]) -> list[dict[str, Any]]:
    """Return the remarks on a change of these files."""
    for side, files in (("base", base), ("head", head)):
        for path, text in files.items():
            place = folder / side / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    pairs = [
        (
            path if path in base else "",
            path if path in head else "",
            _language(path),
            _kind(path),
            _hunks(base.get(path, ""), head.get(path, "")),
        )
        for path in {**base, **head}
        if base.get(path) != head.get(path)
    ]
    told = {
        "root": str(folder / "head"),
        "before_root": str(folder / "base"),
        "head": [(path, _language(path), _kind(path)) for path in head],
        "before": [(was, _language(was), _kind(was)) for was, *_ in pairs if was],
        "pairs": pairs,
        "linked": [],
        "seconds": 60,
        "ast_grep": program("ast-grep"),
    }
    items: list[dict[str, Any]] = look(told)["items"]
    return items


def _language(path: str) -> str:
    return LANGUAGES[path.rpartition(".")[2]]


def _kind(path: str) -> str:
    return "tests" if "tests/" in path or "_test." in path else "production"


def _hunks(old: str, new: str) -> list[tuple[int, int, int, int]]:
    matcher = difflib.SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False)
    return [
        (a + (b > a), b - a, c + (d > c), d - c)
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    ]


PAY = "def pay(a, b):\n    return a - b\n"
DATACLASS = (
    "from dataclasses import dataclass\n\n\n@dataclass\nclass pay:\n    {}: int\n    {}: int\n"
)
TUPLE = "from typing import NamedTuple\n\n\nclass pay(NamedTuple):\n    {}: int\n    {}: int\n"


@pytest.mark.parametrize(
    ("was", "now", "lines"),
    [
        pytest.param(PAY, PAY.replace("a, b)", "b, a)"), [3], id="exchanged"),
        pytest.param(PAY, PAY.replace("a, b)", "a, c=0, b=0)"), [3], id="slipped in"),
        pytest.param(PAY, "def pay(b, a):\n    return b - a\n", [], id="names alone"),
        pytest.param(PAY, "def pay(x, y):\n    return x - y + 0\n", [], id="renamed"),
        pytest.param(DATACLASS.format(*"ab"), DATACLASS.format(*"ba"), [3], id="dataclass"),
        pytest.param(TUPLE.format(*"ab"), TUPLE.format(*"ba"), [3], id="named tuple"),
    ],
)
def test_a_call_whose_arguments_are_other_parameters_now_is_told_if_it_stands_as_it_stood(
    tmp_path: Path, was: str, now: str, lines: list[int]
) -> None:
    by_name = "" if "x, y" in now else "pay(a=1, b=2)\n"
    base = {
        "cart.py": was,
        "use.py": f"from cart import pay\n\npay(\n    1,\n    2,\n)\n{by_name}pay(*[1, 2])\n",
        "mended.py": "from cart import pay\n\npay(1, 2)\n",
    }
    head = {**base, "cart.py": now, "mended.py": "from cart import pay\n\npay(2, 1)\n"}
    found = breaks(tmp_path, base, head)
    assert [(each["file"], each["line"]) for each in found] == [("use.py", line) for line in lines]
    assert all(": argument " in each["message"] for each in found)


@pytest.mark.parametrize(
    ("file", "was", "user"),
    [
        (
            "shop.js",
            "export function pay(a, b) {\n  return a - b;\n}\n",
            'import { pay } from "./shop.js";\npay(1, 2);\n',
        ),
        (
            "shop.ts",
            "export class Shop {\n  payment(a: number, b: number) {\n    return a - b;\n  }\n}\n",
            'import { Shop } from "./shop";\nnew Shop().payment(1, 2);\n',
        ),
        (
            "shop.go",
            "package shop\n\nfunc pay(a, b int) int {\n\treturn a - b\n}\n",
            "package shop\n\nvar paid = pay(1, 2)\n",
        ),
        (
            "Shop.java",
            "class Shop {\n  static int pay(int a, int b) {\n    return a - b;\n  }\n}\n",
            "class Use {\n  int paid = Shop.pay(1, 2);\n}\n",
        ),
        (
            "shop.rb",
            "class Shop\n  def payment_of(a, b)\n    a - b\n  end\nend\n",
            "puts shop.payment_of(1, 2)\n",
        ),
    ],
    ids=["JavaScript", "TypeScript", "Go", "Java", "Ruby"],
)
def test_exchanged_parameters_are_told_in_other_languages_too(
    tmp_path: Path, file: str, was: str, user: str
) -> None:
    ending = file.partition(".")[2]
    caller = f"{'Use' if ending == 'java' else 'use'}.{ending}"
    head = was
    for one, other in (
        ("(a, b", "(b, a"),
        ("a: number, b", "b: number, a"),
        ("int a, int b", "int b, int a"),
    ):
        head = head.replace(one, other)
    (found,) = breaks(tmp_path, {file: was, caller: user}, {file: head, caller: user})
    assert found["file"] == caller
    assert "argument 1 was its `a` and is its `b` now" in found["message"]


@pytest.mark.parametrize(
    ("gone", "text", "test", "body", "line"),
    [
        ("shop/cart.py", PAY, "tests/test_cart.py", "from shop.cart import pay\n", 1),
        ("shop/cart.py", PAY, "tests/test_cart.py", "import shop.cart\n", 1),
        ("shop/__init__.py", PAY, "tests/test_cart.py", "import os\n\nfrom shop import pay\n", 3),
        ("shop/__init__.py", PAY, "tests/test_cart.py", "import shop\nfrom shop import kept\n", 0),
        ("pay.js", "export const a = 1;\n", "tests/a.test.js", 'import { a } from "../pay";\n', 1),
        ("a/pay.go", "package a\n\nfunc Pay() {}\n", "a/pay_test.go",
         "package a\n\nvar b = Pay()\n", 3),
        ("lib/pay.rb", "class Pay\nend\n", "tests/pay_test.rb", "require 'pay'\n", 1),
        ("a/Pay.java", "package a;\nclass Pay {}\n", "tests/PayTest.java",
         "package b;\nimport a.Pay;\n", 2),
    ],
)  # fmt: skip
def test_a_test_that_stays_where_what_it_tests_was_deleted_is_told_as_broken(
    tmp_path: Path, gone: str, text: str, test: str, body: str, line: int
) -> None:
    there = {"shop/kept.py": "KEPT = 1\n", test: body}
    found = breaks(tmp_path, {gone: text, **there}, there)
    told = [(each["file"], each["line"], each["scale"]) for each in found]
    assert told == ([(test, line, "broken-test")] if line else [])
    assert analysers()["uses"].grades["broken-test"].severity == "warning"


async def test_a_call_of_many_lines_is_shown_whole(tmp_path: Path) -> None:
    repository, bench = Repository.at(tmp_path / "repo"), Bench(tmp_path)
    user = "from cart import pay\n\npay(\n    [1],\n    ')',\n)\npay(1, 2)\n"
    first = repository.commit({"cart.py": PAY, "use.py": user})
    repository.commit({"cart.py": PAY.replace("(a, b)", "(b)").replace("a - ", "")})
    draft = await bench.look("uses", repository, first)
    uses = Sightings.model_validate(draft.data).changed[0].uses
    assert [each.code for each in uses] == ["pay([1], ')',)", "pay(1, 2)"]
    assert "`use.py:3` `pay([1], ')',)`" in draft.content
    assert all(f"| {line}" in code_of(remarks_of(draft)[0]) for line in user.split("\n")[2:6])


async def test_a_test_that_fails_by_a_change_counts(tmp_path: Path) -> None:
    repository, bench = Repository.at(tmp_path / "repo"), Bench(tmp_path)
    user: dict[str, str | bytes] = {"tests/test_cart.py": "from cart import pay\n"}
    first = repository.commit({"cart.py": PAY, **user})
    (repository.path / "cart.py").unlink()
    repository.commit(user)
    (remark,) = remarks_of(await bench.look("uses", repository, first))
    assert (remark.file, remark.severity) == ("tests/test_cart.py", "warning")
    assert blocks_change(remark)


@pytest.mark.parametrize(
    ("test", "more"),
    [
        ("def test_total(total):\n    assert total == 0\n", ""),
        ("def test_sum():\n    total = add_up()\n    assert total == 7\n    assert total\n", ""),
        ("def test_sum(total):\n    assert total == 0\n", "weakened-assertion"),
        ("def test_sum(total):\n    assert total == 0\n    assert total\n", "deleted-assertion"),
    ],
)  # fmt: skip
def test_a_name_that_code_and_tests_have_otherwise_weakens_no_test(
    tmp_path: Path, test: str, more: str
) -> None:
    base = {
        "cart.py": "def add_up():\n    total = 7\n    return total\n",
        "tests/test_cart.py": test,
    }
    head = {path: text.replace("total", "grand_total") for path, text in base.items()}
    if more == "weakened-assertion":
        head["tests/test_cart.py"] = head["tests/test_cart.py"].replace(" == 0", " is not None")
    elif more:
        head["tests/test_cart.py"] = head["tests/test_cart.py"].rpartition("    assert")[0]
    assert [each["rule"] for each in breaks(tmp_path, base, head)] == ([more] if more else [])


def test_an_example_that_goes_with_its_tests_is_no_deleted_test(tmp_path: Path) -> None:
    test = "def test_pay():\n    assert pay(1) == 1\n"
    base = {"cart.py": PAY, "examples/tests/test_a.py": test, "tests/test_a.py": test}
    found = breaks(tmp_path, base, {"cart.py": PAY})
    assert [(each["file"], each["rule"]) for each in found] == [("tests/test_a.py", "deleted-test")]


@pytest.mark.parametrize("same", [True, False])
def test_a_check_whose_error_is_raised_elsewhere_is_there(tmp_path: Path, same: bool) -> None:
    error = 'raise ValueError("there is no folder of templates in this package")\n'
    base = f"def find(roots):\n    if None in roots:\n        {error}    return roots\n"
    other = error if same else error.replace("folder of templates in this package", "root")
    loop = "    if paths:\n        for each in paths:\n            break\n        else:\n"
    head = f"def find(roots):\n{loop}            {other}    return roots\n"
    found = breaks(tmp_path, {"find.py": base}, {"find.py": head})
    assert [each["rule"] for each in found] == ([] if same else ["deleted-check"])


def test_what_is_printed_beyond_a_bound_is_not_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pay = "  static int pay(int a) {\n    return a;\n  }\n}\n"
    more = "  static int more(int a) {\n    return a;\n  }\n"
    use = {"Use.java": "class Use {\n  int paid = Pay.pay(1);\n}\n"}
    base = {"Pay.java": f"class Pay {{\n{pay}", **use}
    head = {"Pay.java": f"class Pay {{\n{more * 20}{pay}", **use}
    monkeypatch.setattr(matching, "MOST_OUTPUT", 6_000)
    assert breaks(tmp_path, base, head) == []


def test_the_last_part_of_a_qualified_name_needs_no_import(tmp_path: Path) -> None:
    base = "import a.Pay;\n\nclass Use {\n  Pay pay;\n}\n"
    head = "class Use {\n  a.Pay pay = new a.Pay();\n}\n"
    assert breaks(tmp_path, {"Use.java": base}, {"Use.java": head}) == []
