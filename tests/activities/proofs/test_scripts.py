"""A proof is a script that fails on what is reviewed as its remark says, and passes on the base:
nothing else is called one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.activities.proofs import proving
from holdfast.activities.proofs.proving import SANDBOX, Proofs, judge, list_brought, sandboxed
from holdfast.activities.repositories.manifest import BaseFile, Manifest, SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot
from holdfast.activities.review import lenses
from holdfast.activities.review.lenses import SeenAlone
from holdfast.calls.fix import Edit, FixMaterial, TryFixMaterial, fix_prompt
from holdfast.calls.prove import ProofCode, ProveMaterial, Script, Tried, TryMaterial, prove_prompt
from holdfast.contracts import FileKind, Fix, PinnedInput, Remark
from holdfast.untrusted.redact import Redactor

pytestmark = [pytest.mark.long, pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

BASE = '''from __future__ import annotations

from numpy import array
from .errors import Broken

PER_PAGE: int = 3


class Refused(ValueError):
    """Said to the caller."""


class Book(Broken):
    def pages(self, total: array) -> int:
        return -(-total // self.size)


def pages(total: int, size: int = PER_PAGE) -> int:
    """How many pages it takes."""
    if size < 1:
        raise Refused("size")
    return -(-total // size)


def walk(tree):
    yield from tree
'''
HEAD = BASE.replace("-(-total // size)", "total // size").replace(
    "-(-total // self.size)", "total // self.size"
)
LINE, METHOD, GENERATOR = 22, 15, 26
SHOWN = "assert pages(7) == 3, f'7 items by 3 are {pages(7)} pages'"


NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class Kept:
    """Snapshots of one repository, which lie on disk."""

    snapshot: Snapshot

    async def open(self, digest: str) -> Snapshot:
        return self.snapshot


def proofs(
    folder: Path, head: str = HEAD, base: str | None = BASE, beside: Mapping[str, str] = NOTHING
) -> Proofs:
    """Proofs over one file, `a.py`, which was `b.py` in the base, and others beside it."""

    def keep(where: str, name: str, text: str) -> int:
        path = folder / where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.write_text(text)

    before: tuple[BaseFile, ...] = ()
    if base is not None:
        size = keep("before", "b.py", base)
        before = (BaseFile(path="b.py", size=size, lines=base.count("\n"), now="a.py"),)
    size = keep("head", "a.py", head)
    changed = () if base is None else ((METHOD, 1, METHOD, 1), (LINE, 1, LINE, 1))
    was = "" if base is None else "b.py"
    file = SnapshotFile(path="a.py", size=size, lines=head.count("\n"), hunks=changed, was=was)
    commit = "" if base is None else "b" * 40
    around = []
    for name, text in beside.items():
        size = keep("head", name, text)
        kind: FileKind = "tests" if name.startswith("test") else "production"
        around.append(SnapshotFile(path=name, size=size, lines=text.count("\n"), kind=kind))
    manifest = Manifest(archive="", files=(file,), around=tuple(around), before=before, base=commit)
    kept: Any = Kept(Snapshot(folder / "head", manifest, folder / "before", folder / "patches"))
    return Proofs(kept)


PINNED = PinnedInput(name="repo", kind="repository", size=1, digest="d" * 64)


def remark(line: int = LINE, file: str = "a.py") -> Remark:
    message = "The last page is lost."
    return Remark(severity="critical", file=file, line=line, message=message, confidence=90)


async def run(
    made: Proofs, text: str, fails_with: str = "AssertionError", line: int = LINE
) -> Tried:
    script = Script(why="", text=text, fails_with=fails_with)
    return await made.run(TryMaterial(repository=PINNED, remark=remark(line), script=script))


def test_this_installation_has_the_sandbox() -> None:
    assert sandboxed().by == "sandbox"


async def test_a_script_that_fails_on_the_head_and_passes_on_the_base_proves(
    tmp_path: Path,
) -> None:
    tried = await run(proofs(tmp_path), SHOWN)
    assert tried.verdict == "proved", tried
    assert "passes on the base" in tried.why
    assert tried.output.splitlines() == [
        "head: AssertionError: 7 items by 3 are 2 pages assert 2 == 3",
        "base: passes",
    ]


async def test_without_a_base_it_only_shows(tmp_path: Path) -> None:
    tried = await run(proofs(tmp_path, base=None), SHOWN)
    assert (tried.verdict, "no base" in tried.why) == ("shown", True), tried


async def test_a_base_without_the_function_cannot_run_it(tmp_path: Path) -> None:
    tried = await run(proofs(tmp_path, base="X = 1\n"), SHOWN)
    assert (tried.verdict, "cannot run it" in tried.why) == ("shown", True), tried


async def test_what_passes_on_the_head_alone_is_not_proved(tmp_path: Path) -> None:
    tried = await run(proofs(tmp_path), "assert pages(7) == 2")
    assert (tried.verdict, "passes on the code" in tried.why) == ("not proved", True), tried


async def test_what_passes_in_the_sandbox_on_head_and_base_speaks_against_nothing(
    tmp_path: Path,
) -> None:
    tried = await run(proofs(tmp_path), "assert pages(6) == 2")
    assert (tried.verdict, tried.final) == ("not tried", True), tried
    assert "on the base as well: it shows nothing" in tried.why


LOGIN = """def login(host):
    try:
        from netrc import netrc
        return netrc(host)
    except (ImportError, AttributeError):
        pass
"""


@pytest.mark.parametrize("base", [LOGIN, None])
async def test_code_that_misses_a_module_quietly_is_not_said_to_pass(
    tmp_path: Path, base: str | None
) -> None:
    tried = await run(proofs(tmp_path, LOGIN, base), "assert login('h') is None", line=4)
    assert (tried.verdict, tried.final) == ("not tried", True), tried
    assert "the sandbox lacks what the code imports (netrc)" in tried.why


async def test_what_fails_on_both_is_not_proved(tmp_path: Path) -> None:
    tried = await run(proofs(tmp_path), "pages(7)\nassert False")
    assert (tried.verdict, "base as well" in tried.why) == ("not proved", True), tried


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("assert 1 == 2", "does not use pages"),
        ("def pages(total):\n    return 0\nassert pages(7) == 3", "does not use pages"),
        ("assert pages(7 == 3", "the script"),
        ("pages('x')", "TypeError instead of AssertionError"),
        ("if PER_PAGE == 3: assert False\npages(7)", "before it ran the function"),
    ],
)
async def test_what_does_not_fail_as_said_was_not_tried(
    tmp_path: Path, text: str, why: str
) -> None:
    tried = await run(proofs(tmp_path), text)
    assert (tried.verdict, why in tried.why) == ("not tried", True), tried


RENAMED = HEAD + "\n\ndef renamed():\n    return 1\n"


async def test_an_error_of_the_script_itself_shows_nothing(tmp_path: Path) -> None:
    base = BASE + "\n\ndef helper():\n    return 1\n"
    made = proofs(tmp_path, RENAMED, base)
    tried = await run(made, "pages(7)\nhelper()", "NameError")
    assert (tried.verdict, "a NameError of its own" in tried.why) == ("not tried", True), tried
    tried = await run(made, "pages(7, 3, 1)", "TypeError")
    assert (tried.verdict, "before it ran the function" in tried.why) == ("not tried", True), tried


async def test_a_name_that_the_function_lacks_is_an_error_of_the_code(tmp_path: Path) -> None:
    head = HEAD.replace("PER_PAGE: int = 3", "").replace("= PER_PAGE", "= 3")
    made = proofs(tmp_path, head.replace("return total // size", "return total // PER_PAGE"))
    tried = await run(made, "pages(7)", "NameError", line=LINE)
    assert tried.verdict == "proved", tried


async def test_a_base_on_which_the_function_is_not_run_does_not_tell(tmp_path: Path) -> None:
    head = HEAD.replace("PER_PAGE: int = 3", "PER_PAGE: int = 4")
    text = "assert PER_PAGE == 3 or pages(7) == 3"
    tried = await run(proofs(tmp_path, head), text)
    assert (tried.verdict, "without running" in tried.why) == ("shown", True), tried


CLOCK = """from datetime import UTC, datetime


def stamp(second: int) -> datetime:
    return datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
"""


async def test_a_file_that_imports_utc_is_run(tmp_path: Path) -> None:
    made = proofs(tmp_path, CLOCK.replace("second, tz", "second + 1, tz"), CLOCK)
    tried = await run(made, "from datetime import UTC\nassert stamp(0).second == 0", line=5)
    assert tried.verdict == "proved", tried


async def test_code_that_the_sandbox_cannot_load_is_not_tried_twice(tmp_path: Path) -> None:
    made = proofs(tmp_path, "LIMIT = int('x')\n\n\ndef pages(total):\n    return LIMIT\n")
    tried = await run(made, "assert pages(7) == 3", line=5)
    assert (tried.verdict, tried.final) == ("not tried", True), tried
    assert "cannot load the file's own code: LIMIT: ValueError" in tried.why
    text = "class Shelf(dict):\n    pass\n\n\ndef pages(total):\n    return Shelf(a=total)\n"
    tried = await run(proofs(tmp_path / "other", text), "assert pages(7) == 3", line=6)
    assert "cannot load the file's own code: Shelf: " in tried.why
    assert not (await run(proofs(tmp_path), "pages('x')")).final


TYPED = """from typing import TYPE_CHECKING, Any, Generic, NewType
from typing import Protocol, TypeVar, cast, overload

if TYPE_CHECKING:
    from numpy import array

_T_co = TypeVar("_T_co", covariant=True)
Size = NewType("Size", int)
Given = Any


class Sized(Protocol[_T_co]):
    size: int


class Book(Generic[_T_co]):
    @overload
    def pages(self, total: int) -> int: ...
    @overload
    def pages(self, total: str) -> int: ...
    def pages(self, total):
        return cast(_T_co, Size(total // cast(Sized, self).size))
"""


async def test_names_of_typing_that_code_runs_with_are_there_and_overloads_are_one(
    tmp_path: Path,
) -> None:
    made = proofs(tmp_path, TYPED, TYPED.replace("total // cast", "-(-total) // cast"))
    text = "class Fake:\n    size = 3\nassert Book_pages(Fake(), 7) == 3"
    tried = await run(made, text, line=22)
    assert tried.output.startswith("head: AssertionError"), tried
    shown = await made.show(ProveMaterial(repository=PINNED, remark=remark(22)))
    assert shown.names.split("\n") == ["class Sized", "class Book", "Book_pages(self, total)"]


async def test_what_a_script_can_call_is_cut_at_whole_names(tmp_path: Path) -> None:
    many = "".join(
        f"def pages_{n}({', '.join(f'long{i}' for i in range(40))}): ...\n" for n in range(90)
    )
    made = proofs(tmp_path, many, None)
    shown = await made.show(ProveMaterial(repository=PINNED, remark=remark(1)))
    names = shown.names.split("\n")
    assert len(names) > 10 and all(each.endswith(", …)") for each in names)


async def test_prompt_and_report_name_the_python_that_the_sandbox_has(tmp_path: Path) -> None:
    made = proofs(tmp_path)
    material = ProveMaterial(repository=PINNED, remark=remark())
    assert f"It runs with {SANDBOX}." in prove_prompt(material, await made.show(material))
    tried = await run(made, "pages(7)\nassert False")
    assert tried.why.endswith(f"on the base as well ({SANDBOX})")
    tried = await run(made, "import sys\npages(7)\nassert False, sys.version")
    name, version = SANDBOX.split(", Python ")
    assert f"{version}." in tried.output and f"({name})" in tried.output


def test_who_mends_is_not_told_what_a_script_can_call() -> None:
    material = FixMaterial(repository=PINNED, remark=remark())
    assert "what a script can call" not in fix_prompt(material, ProofCode("a.py", "m", names="x()"))


SHOP = """from shop.money import RATE as factor, in_cents
from shop.store import find


def total(number: int, size: int) -> int:
    return in_cents(find(number), factor) // size
"""
BESIDE = {
    "shop/money.py": "RATE = 100\n\n\ndef in_cents(price, rate):\n    return round(price * rate)\n",
    "shop/store.py": "from .orders import ALL\n\n\ndef find(number):\n    return ALL[number]\n",
    "shop/orders.py": "ALL = {7: 2.5}\n",
    "tests/test_a.py": "from a import total\n\n\ndef test_it():\n    assert total(7, 1) == 250\n",
}


async def test_functions_of_other_files_that_it_imports_are_there(tmp_path: Path) -> None:
    made = proofs(tmp_path, SHOP, SHOP.replace("// size", "* size"), BESIDE)
    tried = await run(made, "assert total(7, 2) == 500", line=6)
    assert tried.verdict == "proved", tried
    stood_in = await run(made, "def find(number):\n    return 1\nassert total(7, 2) == 200", line=6)
    assert stood_in.verdict == "proved", stood_in


async def test_a_name_that_two_files_have_proves_nothing_and_is_said(tmp_path: Path) -> None:
    beside = {**BESIDE, "shop/store.py": "RATE = 7\n\n\ndef find(number):\n    return RATE\n"}
    tried = await run(proofs(tmp_path, SHOP, None, beside), "assert total(7, 2) == 0", line=6)
    assert (tried.verdict, tried.final) == ("not tried", True), tried
    assert "two of one name: RATE of shop/" in tried.why


async def test_a_model_is_shown_what_the_function_calls_and_the_nearest_test(
    tmp_path: Path,
) -> None:
    made = proofs(tmp_path, SHOP, SHOP, BESIDE)
    shown = await made.show(ProveMaterial(repository=PINNED, remark=remark(6)))
    assert "def in_cents(price, rate):" in shown.around and "def find(number):" in shown.around
    assert "The nearest test, in tests/test_a.py:" in shown.around
    assert "assert total(7, 1) == 250" in shown.around


async def test_who_mends_a_function_is_shown_who_uses_it(tmp_path: Path) -> None:
    users = {"letters.py": "from a import total\n\n\ndef letter():\n    return total(7, 3)\n"}
    made = proofs(tmp_path, SHOP, SHOP, BESIDE | users)
    shown = await made.show(FixMaterial(repository=PINNED, remark=remark(6)))
    assert "Where else `total` stands" in shown.around and "return total(7, 3)" in shown.around
    proving = await made.show(ProveMaterial(repository=PINNED, remark=remark(6)))
    assert "return total(7, 3)" not in proving.around


async def test_a_model_is_shown_what_the_remark_wants_and_the_classes_that_are_passed(
    tmp_path: Path,
) -> None:
    calls = "".join(f"def do{n}(): ...\n\n\n" for n in range(3))
    lend = "def lend(\n    member: Member,\n) -> int:\n    return do0() + do1() + do2()\n"
    member = "class Member:\n    name: str\n    books: int\n"
    made = proofs(tmp_path, f"{calls}{lend}", None, {"members.py": member})
    said = remark(13).model_copy(update={"suggestion": "Return one more."})
    material = ProveMaterial(repository=PINNED, remark=said)
    shown = await made.show(material)
    assert "    books: int" in shown.around and "def do2()" in shown.around
    told = prove_prompt(material, shown)
    assert "what the remark suggests" in told and "Return one more." in told
    assert fix_prompt(FixMaterial(repository=PINNED, remark=said), shown).count("one more") == 1


async def test_a_method_runs_over_a_stand_in_for_its_object(tmp_path: Path) -> None:
    text = "class Fake:\n    size = 3\nassert Book_pages(Fake(), 7) == 3"
    tried = await run(proofs(tmp_path), text, line=METHOD)
    assert tried.verdict == "proved", tried


async def test_the_limits_of_the_sandbox_are_no_defect(tmp_path: Path) -> None:
    tried = await run(proofs(tmp_path), "list(walk([]))", "NotImplementedError", GENERATOR)
    assert tried.verdict == "not tried", tried


async def test_the_sandbox_reads_no_file(tmp_path: Path) -> None:
    text = "import pathlib\npages(7)\npathlib.Path('/etc/hostname').read_text()"
    tried = await run(proofs(tmp_path), text)
    assert (tried.verdict, "PermissionError" in tried.why) == ("not tried", True), tried


async def test_a_script_that_never_ends_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.activities.proofs.proving.SECONDS", 0.5)
    tried = await run(proofs(tmp_path), "pages(7)\nwhile True:\n    pass")
    assert (tried.verdict, "TimeoutError" in tried.why) == ("not tried", True), tried


async def test_a_model_is_shown_the_function_now_and_before_without_secrets(
    tmp_path: Path,
) -> None:
    key = "sk-ant-" + "a1B2" * 8
    head = HEAD.replace('"size")', f'"{key}")')
    shown = await proofs(tmp_path, head).show(ProveMaterial(repository=PINNED, remark=remark()))
    assert shown.name == "pages"
    assert "   22 +     return total // size" in shown.code and "Book" not in shown.code
    assert "      -     return -(-total // size)" in shown.code
    assert "Book_pages(self, total: array)" in shown.names
    assert key not in str(shown) and "[redacted]" in shown.code


async def test_a_model_is_shown_what_the_file_imports_and_imported(tmp_path: Path) -> None:
    top = "import os\nfrom shop.money import (\n    RATE,\n)\n\n\n"
    base = f"{top}def total(n):\n    return n * RATE\n"
    made = proofs(tmp_path, base.replace("import os\n", ""), base)
    kept: Any = made.snapshots
    (file,) = kept.snapshot.manifest.files
    head = file.model_copy(update={"hunks": ((1, 1, 0, 0),)})
    manifest = kept.snapshot.manifest.model_copy(update={"files": (head,)})
    made = Proofs(Kept(replace(kept.snapshot, manifest=manifest)))  # type: ignore[arg-type]
    shown = await made.show(ProveMaterial(repository=PINNED, remark=remark(7)))
    _, _, imports = shown.code.partition("What its file imports")
    listed = [line.strip() for line in imports.splitlines()[1:]]
    assert listed == [
        "1   from shop.money import (",
        "2       RATE,",
        "3   )",
        "Imports that the change deleted or replaced:",
        "- import os",
    ]


async def test_a_file_that_is_not_there_shows_nothing(tmp_path: Path) -> None:
    made, elsewhere = proofs(tmp_path), remark(file="../../etc/passwd")
    shown = await made.show(ProveMaterial(repository=PINNED, remark=elsewhere))
    assert (shown.code, shown.around) == ("", "")
    script = Script(why="", text="assert 0", fails_with="AssertionError")
    tried = await made.run(TryMaterial(repository=PINNED, remark=elsewhere, script=script))
    assert tried.verdict == "not tried"


def test_an_error_of_a_name_that_the_sandbox_lacks_is_none_of_the_code() -> None:
    head = {"kind": "NameError", "said": "NameError: array; not there: array", "printed": ""}
    assert judge("NameError", head, None)[0] == "not tried"


async def try_fix(made: Proofs, edit: Edit, script: Script | None, file: str = "a.py") -> Fix:
    material = TryFixMaterial(
        repository=PINNED, remark=remark(1, file=file), edit=edit, script=script
    )
    return await made.try_fix(material)


MAKES_A_KEY = "from uuid import UUID\n\n\ndef key(text):\n    return UUID(text).hex\n"
FAILS = Script(why="", text="key('1' * 32)\n", fails_with="NameError")
IMPORTS = Edit(why="It imports it.", old="import os", new="from uuid import UUID")


@pytest.mark.long
async def test_a_proof_that_the_sandbox_cannot_run_on_the_base_either_refuses_no_patch(
    tmp_path: Path,
) -> None:
    head = MAKES_A_KEY.replace("from uuid import UUID", "import os")
    fix = await try_fix(proofs(tmp_path, head, MAKES_A_KEY), IMPORTS, FAILS)
    assert fix.diff and fix.why.endswith("can run the proof neither with it nor on the base")


@pytest.mark.long
async def test_without_a_base_a_proof_that_cannot_be_run_refuses_a_patch(tmp_path: Path) -> None:
    head = MAKES_A_KEY.replace("from uuid import UUID", "import os")
    fix = await try_fix(proofs(tmp_path, head, None), IMPORTS, FAILS)
    assert not fix.diff and "not there: UUID" in fix.why


@pytest.mark.long
async def test_a_file_that_the_change_did_not_touch_gets_a_patch_too(tmp_path: Path) -> None:
    beside = {"caller.py": "def both(size):\n    return 7 // size\n"}
    edit = Edit(why="It rounds up.", old="    return 7 // size", new="    return -(-7 // size)")
    script = Script(why="", text="assert both(3) == 3\n", fails_with="AssertionError")
    made = proofs(tmp_path, beside=beside)
    fix = await try_fix(made, edit, script, "caller.py")
    assert "+    return -(-7 // size)" in fix.diff and "the proof passes" in fix.why
    absent = await try_fix(made, edit, script, "gone.py")
    assert absent.why == "the code under review has no such file"


async def test_a_patch_may_put_back_a_function_as_tangled_as_the_base_had_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"complexity": lenses.analysers()["complexity"]}
    monkeypatch.setattr(lenses, "analysers", lambda: few)

    async def without_secrets(*_: object) -> Redactor:
        return Redactor([])

    monkeypatch.setattr(proving, "_redactor", without_secrets)
    ways = "".join(f"    if x == {n}:\n        return {n}\n" for n in range(15))
    guard = "    if x == 0:\n        return 0\n"
    base = f"def pick(x: int) -> int:\n{ways}    return -1\n"
    edit = Edit(why="0 is kept.", old="    if x == 1:", new=f"{guard}    if x == 1:")
    head = base.replace(guard, "")
    fix = await try_fix(proofs(tmp_path / "with", head, base), edit, None)
    assert fix.diff and "no lens sees anything new" in fix.why, fix
    fix = await try_fix(proofs(tmp_path / "without", head, None), edit, None)
    assert not fix.diff and "it brings complexity:complex-function" in fix.why


def test_what_the_base_had_excuses_nothing_worse_nothing_else_and_nothing_twice() -> None:
    tangled, other = SeenAlone("complexity:complex-function", "pick", 16), SeenAlone("bugs:B", "b")
    rule = [tangled.rule]
    assert list_brought([], [tangled]) == rule
    assert list_brought([], [tangled], [tangled]) == []
    assert list_brought([], [tangled], [tangled._replace(weight=18)]) == []
    assert list_brought([], [tangled._replace(weight=17)], [tangled]) == rule
    assert list_brought([], [tangled._replace(what="choose")], [tangled]) == rule
    assert list_brought([tangled], [tangled, tangled], [tangled]) == rule
    assert list_brought([], [tangled, other], [tangled]) == [other.rule]
