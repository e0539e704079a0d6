"""The code that a remark brings along: the right lines, the place in them, and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bench.review.believed import SHOWN
from holdfast.activities.review.analysers import patterns
from holdfast.activities.review.analysing import advice
from holdfast.activities.review.lenses import analysers
from holdfast.contracts import Remark
from holdfast.rendering.remarks import code_of, place_of
from repositories import Bench, Repository, remarks_of

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]
# Put together here, so that no scanner takes this file for a leak.
GITHUB = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
KEY = (
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEowIBAAKCAQEAu1SU1LfV\n-----END RSA PRIVATE KEY-----"
)

TOLD_OTHERWISE = {
    "complexity": "Its sightings are told in a paragraph, and not remark by remark.",
    "history": "Its sightings are told in a paragraph, and not remark by remark.",
    "style": "Its sightings are told in a paragraph, and not remark by remark.",
}
SAYS_WHAT_TO_DO = {"patterns", "uses"}
"""Lenses of ours that say what to do themselves, by what stands at the place."""
SAID_BY_MESSAGE = {
    "go-add-inside",
    "go-defer-in-loop",
    "go-nil-map",
    "go-result-of-failure",
    "go-sql-of-pieces",
    "java-decimal-of-double",
    "java-equals-null",
    "java-objects-of-strangers",
    "java-return-in-finally",
    "java-sql-of-pieces",
    "java-strings-by-identity",
    "java-thread-not-started",
    "js-cipher-without-vector",
    "js-html-of-pieces",
    "js-sql-of-pieces",
    "php-assignment-as-condition",
    "php-sql-of-pieces",
    "ruby-assignment-as-condition",
    "ruby-objects-of-strangers",
    "ruby-rescue-everything",
    "ruby-sql-of-pieces",
    "rust-blocking-sleep",
    "rust-sql-of-pieces",
    "rust-uninitialised",
}
"""Rules of ours whose message says in the same sentence what comes of it."""
RULES = {rule["id"]: rule for rule in patterns.rules()}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(tmp_path / "repo")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def seen(bench: Bench, repository: Repository, lens: str, rule: str) -> list[Remark]:
    return [each for each in remarks_of(await bench.look(lens, repository)) if each.rule == rule]


async def shown(bench: Bench, repository: Repository, lens: str, rule: str) -> tuple[str, str]:
    """Place and code of the only remark of a rule."""
    (only,) = await seen(bench, repository, lens, rule)
    return place_of(only), code_of(only)


async def test_a_remark_brings_three_lines_with_its_place_marked(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"src/a b.py": "def f():\n    x = 'é' + missing\n    return x\n"})
    place, code = await shown(bench, repository, "bugs", "F821")
    assert place == "src/a b.py:2:15"
    assert code == (
        "```\n"
        "  1 | def f():\n"
        "> 2 |     x = 'é' + missing\n"
        "    |               ^\n"
        "  3 |     return x\n"
        "```"
    )


MARKED = (
    (b"import os\r\ndef f():\r\n\tif os:\r\n\t\treturn missing\r\n", "return missing"),
    (b"import os\rdef f():\r  return missing\r", "return missing"),
    ("def f():\n    return 漢字 + missing\n".encode(), "return 漢字 + missing"),
    (b"def f(): return '" + b"x" * 300 + b"' + missing", "xxx' + missing"),
    (b"\xef\xbb\xbfx = missing\n", "x = missing"),
    (b"x = '```' + missing\n", "x = '```' + missing"),
)


async def test_the_mark_stands_below_the_place_in_any_line(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({f"a{n}.py": content for n, (content, _) in enumerate(MARKED)})
    found = {each.file: each for each in await seen(bench, repository, "bugs", "F821")}
    assert len(found) == len(MARKED)
    for n, (_, marked) in enumerate(MARKED):
        rows = code_of(found[f"a{n}.py"]).splitlines()
        at = next(place for place, row in enumerate(rows) if row.startswith(">"))
        assert marked in rows[at]
        wide = rows[at].replace("漢", "漢-").replace("字", "字-")
        assert wide[rows[at + 1].index("^") :].startswith("missing")
        assert all(len(row) <= 78 for row in rows)
        assert len(rows[0]) > 3 or "```" not in "".join(rows[1:-1])


async def test_a_statement_put_together_is_shown_to_the_part_that_makes_it_a_hole(
    repository: Repository, bench: Bench
) -> None:
    columns = ", ".join(f"column_{n}" for n in range(16))
    query = f"\"SELECT {columns} FROM t WHERE who = '%s'\" % who"
    one = f"def f(db, who):\n    return db.run({query})\n"
    body = ['    return db.run(f"""', "SELECT id", "FROM t", "WHERE who = '{who}'", '    """)', ""]
    several = "\n".join(["def g(db, who):", *body])
    repository.commit({"one.py": one, "several.py": several})
    codes = [code_of(each) for each in await seen(bench, repository, "security", "B608")]
    assert len(codes) == 2
    assert "% who)" in codes[0] and "WHERE who = '{who}'" in codes[1]


async def test_the_place_of_bandit_is_counted_in_characters(
    repository: Repository, bench: Bench
) -> None:
    code = "import subprocess\né = 'é', subprocess.call('a ' + b, shell=True)\n"
    repository.commit({"a.py": code})
    place, told = await shown(bench, repository, "security", "B602")
    assert place == "a.py:2:10"
    assert "|          ^" in told


async def test_no_secret_is_in_the_lines_around_a_remark(
    repository: Repository, bench: Bench
) -> None:
    around = {
        "a.py": f"token = '{GITHUB}'\nx = missing\npwd = 'short'\n",
        "b.py": f"x = 1\ny = missing\nk = '''{KEY}'''\n",
        "c.py": "def f():\n    connect(missing, password='tiny', user='ada')\n",
    }
    settings = f"DB_PASSWORD=hunter2\nGH={GITHUB}\nspring.datasource.password: letmein\n"
    repository.commit({**around, "app.properties": settings, "key.pem": f"{KEY}\n"})
    pinned = await bench.pin(repository)
    drafts = [await bench.look_at(lens, pinned) for lens in ("bugs", "secrets", "security")]
    text = "".join(draft.model_dump_json() for draft in drafts)
    for secret in (GITHUB[4:], "short", "MIIEow", "tiny", "hunter2", "letmein"):
        assert secret not in text
    bugs = [each for each in remarks_of(drafts[0]) if each.rule == "F821"]
    assert len(bugs) == 4 and all(each.excerpt for each in bugs)
    assert "connect(missing, password='[redacted]', user='ada')" in code_of(bugs[2])


async def test_of_a_file_in_which_secrets_cannot_be_looked_for_no_code_is_told(
    repository: Repository, bench: Bench
) -> None:
    long = "# " + "x" * 6_000
    repository.commit({"a.py": f"x = missing\n{long}\n", "b.py": "x = missing\n"})
    remarks = await seen(bench, repository, "bugs", "F821")
    assert [each.excerpt is None for each in remarks] == [True, False]
    assert code_of(remarks[0]) == ""


async def test_hostile_names_and_lines_stay_one_line_each(
    repository: Repository, bench: Bench
) -> None:
    name = "a\x1b[31m\n`b` [c](d).py"
    repository.commit({name: "x = '\x1b[2J\u202e' + missing\n"})
    place, code = await shown(bench, repository, "bugs", "F821")
    assert place == f"{name}:1:15"
    assert "\x1b" not in code and "\u202e" not in code and "\\x1b[2J\\u202e" in code
    assert len(code.splitlines()) == 4


async def test_functions_are_called_by_their_whole_names(
    repository: Repository, bench: Bench
) -> None:
    body = "".join(f"            if a == {n}:\n                a += 1\n" for n in range(20))
    python = f"class Big:\n    class Inner:\n        # )\n        def __init__(self, a):\n{body}"
    script = "function add$1(a) {" + "if (a) { a++ }\n" * 20 + "}\n"
    repository.commit({"a.py": python, "b.js": script})
    messages = [each.message for each in remarks_of(await bench.look("complexity", repository))]
    assert any("function Big.Inner.__init__ has" in each for each in messages)
    assert any("function add$1 has" in each for each in messages)


@pytest.mark.long
async def test_what_a_comment_of_the_code_says_itself_is_no_remark(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.py": "# TODO: mend this\n# FIXME: and this\nx = 1\n"})
    pinned = await bench.pin(repository)
    for lens in analysers():
        assert not remarks_of(await bench.look_at(lens, pinned)), lens


def test_advice_is_whole_sentences_for_rules_of_lenses_that_there_are() -> None:
    files = sorted(advice.FOLDER.glob("*.yaml"))
    assert {path.stem for path in files} <= set(analysers()) and files
    for path in files:
        for rule, row in yaml.load(path.read_text("utf-8"), yaml.CSafeLoader).items():
            needed = {"why"} if path.stem in SAYS_WHAT_TO_DO else {"why", "do"}
            assert set(row) - {"instead"} == needed, f"{path.name}: {rule}"
            for sentence in (row[name] for name in needed):
                assert sentence.endswith(".") and (sentence[0] == "`" or sentence[0].isupper()), (
                    f"{path.name}: {rule}: {sentence}"
                )


def explained(lens: str, name: str) -> bool:
    """Whether a row of a table has advice, or a rule has that it stands for."""
    rule = "" if lens == "secrets" else name.split("/")[0].split(" ")[0]
    rows = advice.advice_of(lens)
    return advice.advice_on(lens, rule) is not None or any(row.startswith(rule) for row in rows)


@pytest.mark.parametrize("lens", sorted(set(analysers()) - set(TOLD_OTHERWISE)))
def test_what_is_shown_says_why_it_matters_and_what_to_do(lens: str) -> None:
    grades = analysers()[lens].grades
    shown = {
        name
        for name, grade in grades.items()
        if max(grade.confidence, (grade.change or grade).confidence) >= SHOWN
    }
    bare = {name for name in shown if not explained(lens, name)}
    if lens == "patterns":
        assert {name for name in shown if not RULES[name]["note"]} == set()
        bare -= SAID_BY_MESSAGE
        assert not [name for name in SAID_BY_MESSAGE if explained(lens, name)]
        assert set(RULES) >= SAID_BY_MESSAGE
    assert not bare, f"write why in advice/{lens}.yaml: {', '.join(sorted(bare))}"


@pytest.mark.parametrize("lens", sorted(TOLD_OTHERWISE))
def test_a_lens_without_advice_has_a_reason_that_holds(lens: str) -> None:
    assert analysers()[lens].summed and not advice.advice_of(lens)


async def test_a_name_that_is_not_defined_brings_no_advice_about_settings_of_a_tool(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.js": "import a from 'a';\nmissing(a);\n"})
    (remark,) = remarks_of(await bench.look("javascript", repository))
    assert "globals" in remark.suggestion
    mended = advice.add_advice(remark)
    assert mended.suggestion == "Import or declare it, or correct its spelling."
    assert "ReferenceError" in mended.matters
