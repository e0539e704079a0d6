"""Our structural rules: what each finds, and what it leaves alone, by the program itself."""

from __future__ import annotations

import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.activities.review.analysers import patterns
from repositories import Bench, Repository, remarks_of

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).with_name("examples")
ENDINGS = {"go": "go", "java": "java", "rust": "rs", "ruby": "rb", "php": "php", "python": "py"}
SCRIPTS = ("js", "ts")
"""The rules for JavaScript are those for TypeScript."""
FEWEST = 2
SURROUNDED = "outer(inner({}), 1).then(last);"
"""Calls around an example and after it, where it is an expression."""

Found = dict[str, Counter[str]]


def examples() -> Iterator[tuple[str, str, str, str]]:
    """Rule, whether it is bad or good, ending and text of each."""
    for file in sorted(EXAMPLES.glob("*.yml")):
        data: dict[str, dict[str, list[str]]] = yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)
        for rule, sorts in data.items():
            for sort, texts in sorts.items():
                for text in texts:
                    yield rule, sort, file.stem, text


def endings(language: str) -> tuple[str, ...]:
    return SCRIPTS if language == "javascript" else (ENDINGS[language],)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """The rules that see something in each example, by the example's file."""
    folder = tmp_path_factory.mktemp("examples")
    files = {}
    for number, (_, _, language, text) in enumerate(examples()):
        for ending in endings(language):
            files[folder / f"{number}.{ending}"] = text
            files[folder / f"{number}-inside.{ending}"] = SURROUNDED.format(text.rstrip(";"))
    for file, text in files.items():
        file.write_text(text + "\n", "utf-8")
    command = patterns.command([str(each) for each in files], True)
    done = subprocess.run(command.arguments, capture_output=True, check=True)
    seen: Found = defaultdict(Counter)
    for each in patterns.parse(done.stdout).sightings:
        seen[Path(each.file).name][each.rule] += 1
    return seen


def test_a_rule_finds_what_is_bad_and_leaves_alone_what_is_good(found: Found) -> None:
    tried = [
        (rule, sort, f"{number}.{ending}")
        for number, (rule, sort, language, _) in enumerate(examples())
        for ending in endings(language)
    ]
    assert len(tried) > 400
    assert [
        (rule, sort, file) for rule, sort, file in tried if found[file][rule] != (sort == "bad")
    ] == []


async def test_a_query_per_item_is_told_where_somebody_waits_and_not_in_a_batch(
    tmp_path: Path,
) -> None:
    repository = Repository.at(tmp_path / "repo")
    code = "for order in orders:\n    show(Line.objects.get(order=order))\n"
    batches = ("shop/migrations/0002.py", "shop/management/commands/tell.py", "shop/import_all.py")
    files: dict[str, str | bytes] = dict.fromkeys(("shop/views.py", *batches), code)
    repository.commit(files)
    (remark,) = remarks_of(await Bench(tmp_path).look("patterns", repository))
    assert (remark.file, remark.line, remark.severity) == ("shop/views.py", 2, "info")
    assert remark.confidence == 50


def test_a_place_is_one_remark_whatever_calls_surround_it(found: Found) -> None:
    inside = {file: rules for file, rules in found.items() if "-inside." in file}
    assert len(inside) > 100
    twice = {
        f"{file}: {rule}": count
        for file, rules in inside.items()
        for rule, count in rules.items()
        if count > 1
    }
    assert not twice


def test_every_rule_has_examples_of_both_kinds_and_says_what_to_do() -> None:
    counted: dict[str, dict[str, int]] = defaultdict(lambda: {"bad": 0, "good": 0})
    for rule, sort, _, _ in examples():
        counted[rule][sort] += 1
    rules: dict[str, dict[str, Any]] = {each["id"]: each for each in patterns.rules()}
    assert set(counted) == set(rules)
    assert all(min(counts.values()) >= FEWEST for counts in counted.values()), counted
    assert all(rule["message"] and rule["note"] for rule in rules.values())
