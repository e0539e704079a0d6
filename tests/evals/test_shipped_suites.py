"""The checks of the shipped suites: they pass right answers in any words, and no wrong one."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.deployment.settings import HOME
from holdfast.evals.checks import rubrics, wrong_with
from holdfast.intake.suites import list_suites
from labelled import ANSWERED, ROLES, answers_of, label_of, outcome_of, suite_of, told_to

FEWEST = 3
"""Right and wrong answers that a case has at least; a clean case is answered rightly in one way."""


@pytest.mark.parametrize("name", ANSWERED)
def test_checks_pass_what_is_right_in_other_words_and_nothing_that_is_wrong(name: str) -> None:
    suite = suite_of(name)
    answers = answers_of(suite)
    assert {*answers} == {case.name for case in suite.cases}
    for case, given in answers.items():
        some = name == "routing" or case.startswith("clean")
        assert len(given["right"]) >= (1 if some else FEWEST) and len(given["wrong"]) >= FEWEST
    mistaken = [
        f"{case.name}: {kind}: {answer!r:.120}: {wrong}"
        for case in suite.cases
        for kind, given in answers[case.name].items()
        for answer in given
        if bool(wrong := wrong_with(case, outcome_of(case, answer))) != (kind == "wrong")
    ]
    assert not mistaken, "\n".join(mistaken)
    asked = {case.name for case in suite.cases if rubrics(case)}
    assert {name for name, given in answers.items() if given.get("judged")} <= asked


def test_all_shipped_suites_can_be_read() -> None:
    shipped = {
        name for name, folder in list_suites(None).items() if folder.parent == HOME / "evals"
    }
    assert shipped >= {*ANSWERED, "one-agent", "tools"}
    one, team = suite_of("one-agent"), suite_of("team")
    assert [case.must for case in one.cases] == [case.must for case in team.cases]


def test_a_hundred_cases_are_labelled_with_a_role_and_one_that_stands_in() -> None:
    cases = suite_of("routing").cases
    labels = [label_of(case) for case in cases]
    assert len({case.name for case in cases}) == len(cases) == 100
    assert all({role, *seconds} <= {*ROLES} and role not in seconds for role, seconds in labels)
    assert min(Counter(role for role, _ in labels).values()) >= 15


def test_each_shipped_role_that_asks_a_model_has_two_cases_at_least() -> None:
    asked = Counter(case.request.get("role") for case in suite_of("roles").cases)
    for path in (HOME / "roles").glob("*.md"):
        assert asked[path.stem] >= 2, path.stem


@pytest.mark.parametrize("name", ["roles", "team", "synthesis"])
def test_who_only_repeats_what_was_asked_passes_no_case(name: str) -> None:
    for case in suite_of(name).cases:
        said = str(case.material["goal"]) if case.call else told_to(case)
        answer = {"answer": said} if case.call else f"Result for: {said}"
        assert wrong_with(case, outcome_of(case, answer)), case.name
