"""How far a review is to be believed is measured: the tables hold what the labelled remarks say,
and planted defects are found in a change.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from bench.review import planted
from bench.review.believed import CRITICAL, SHOWN, WEIGHT, Row, measured, rows
from bench.review.labels import PRODUCTION, Label, everything, fingerprint, of, on_changes, sources
from holdfast.activities.review.lenses import analysers

ROOT = Path(__file__).parents[3]
MEASURED = {lens for lens, _ in rows()}


@pytest.mark.parametrize("lens", sorted(MEASURED))
def test_every_row_of_a_measured_lens_is_believed_as_the_labels_say(lens: str) -> None:
    told = {name: grade.confidence for name, grade in analysers()[lens].grades.items()}
    if lens == "dockerfiles":
        # What it hands on of shellcheck is believed as in scripts.
        told = {name: told[name] for name in told if not name.startswith("SC")}
    measured = {name: row for (of_lens, name), row in rows().items() if of_lens == lens}
    assert told == {name: row.confidence for name, row in measured.items()}
    grades = analysers()[lens].grades
    of_changes = {name: grades[name].change for name in told}
    assert {name: each.confidence for name, each in of_changes.items() if each} == {
        name: row.in_change for name, row in measured.items() if row.in_change != row.confidence
    }


def test_only_what_is_nearly_always_useful_is_called_critical() -> None:
    for lens in MEASURED:
        for name, grade in analysers()[lens].grades.items():
            for each in (grade, grade.change or grade):
                assert each.severity != "critical" or each.confidence >= CRITICAL, name


def test_a_review_shows_what_is_useful_as_often_as_not() -> None:
    playbook = yaml.safe_load((ROOT / "playbooks" / "code-review" / "playbook.yaml").read_text())
    assert playbook["min_confidence"] == SHOWN


def test_the_labels_are_many_and_of_many_repositories_and_languages() -> None:
    assert len(everything()) >= 300 and len(sources()) >= 10
    languages = Counter(language for source in sources() for language in source.languages)
    assert len(languages) >= 5
    assert all(any(True for _ in of(source)) for source in sources())
    assert len({each.key for each in sources()}) == len(sources())


def test_each_remark_is_labelled_once_with_a_reason_that_is_a_sentence() -> None:
    for source in sources():
        places = Counter((each.path, each.line, each.rule) for each in of(source))
        assert not [place for place, count in places.items() if count > 1]
    for label in everything():
        assert re.fullmatch(r"[A-Z].{10,200}\.", label.reason), label.reason
        assert re.fullmatch(r"[0-9a-f]{16}", label.fingerprint)


def test_a_label_names_a_row_of_its_lens_or_none() -> None:
    for label in everything():
        if label.lens in MEASURED and label.row:
            assert label.row in analysers()[label.lens].grades, label


def test_a_row_begins_at_its_family_and_moves_with_each_label() -> None:
    family = Row("l", "r", "f", prior=0.7)
    assert family.confidence == 70
    assert Row("l", "r", "f", 0.7, useful=WEIGHT).confidence == 85
    assert Row("l", "r", "f", 0.7, true=2, false=2).confidence == 35


def test_what_a_change_brings_is_believed_by_labelled_changes_where_that_is_another_number() -> (
    None
):
    rare = Row("l", "r", "f", 0.7, useful=0, true=4)
    assert (rare.confidence, rare.in_change) == (35, 35)
    assert replace(rare, in_changes=(4, 4)).in_change == 85
    assert replace(rare, in_changes=(1, 0)).in_change == 56, "released code has lost its worst"
    assert replace(rare, in_changes=(9, 0)).in_change == 35, "neither is shown"
    sure = Row("l", "r", "f", 0.7, useful=40)
    assert replace(sure, in_changes=(2, 2)).in_change == sure.confidence, "it says the same"
    assert replace(sure, in_changes=(4, 1)).in_change == 61


def test_labels_of_changes_name_a_commit_or_what_is_planted_and_say_why() -> None:
    planted_here = {
        change.name
        for garden in planted.gardens()
        for change in (*garden.defects, *garden.look_alikes)
    }
    real = [each for each in on_changes() if each.repository != "planted"]
    assert len(real) >= 150 and len({each.repository for each in real}) >= 6
    for label in on_changes():
        if label.row:
            assert label.row in analysers()[label.lens].grades, label
        assert re.fullmatch(r"[A-Za-z].{10,200}\.", label.reason), label.reason
        name = label.reason.removeprefix("Planted: ").removesuffix(".")
        assert re.fullmatch("[0-9a-f]{40}", label.commit) or name in planted_here, label


def test_only_production_code_counts() -> None:
    def label(kind: str) -> Label:
        return Label(
            path="a.py",
            line=1,
            lens="bugs",
            rule="F811",
            row="F811",
            kind=kind,
            fingerprint=fingerprint("a.py", "F811", "x"),
            label="useful",
            reason="It is so.",
        )

    counted = measured([label(PRODUCTION), label("tests"), label("docs")])
    assert counted["bugs", "F811"].useful == 1


def test_a_fingerprint_holds_while_the_line_says_the_same() -> None:
    assert fingerprint("a", "r", "x  = 1") == fingerprint("a", "r", "\tx = 1 ")
    assert fingerprint("a", "r", "x = 1") != fingerprint("a", "r", "x = 2")
    assert fingerprint("a", "r", "x = 1") != fingerprint("b", "r", "x = 1")


def test_the_planted_defects_are_many_and_each_has_its_line() -> None:
    gardens = planted.gardens()
    assert sum(len(garden.defects) for garden in gardens) >= 60 and len(gardens) >= 6
    for garden in gardens:
        assert len(garden.look_alikes) >= 3
        for change in garden.defects:
            lines = [line.strip() for line in change.adds.split("\n")]
            assert change.finds, change.name
            assert all(any(line.startswith(each) for line in lines) for each in change.finds)
        assert not any(change.finds for change in garden.look_alikes)


@pytest.mark.long
@pytest.mark.anyio
async def test_three_quarters_of_what_is_planted_in_python_is_found_and_no_look_alike() -> None:
    (garden,) = (each for each in planted.gardens() if each.language == "Python")
    seen = await planted.reviewed(garden)
    defects = [each for each in seen if each.is_defect]
    assert sum(bool(each.rules) for each in defects) >= 0.75 * len(defects)
    assert not [each.change.name for each in seen if each.rules and not each.is_defect]
