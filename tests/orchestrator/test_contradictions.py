"""Findings that say the same of one thing but for a figure or a date."""

from __future__ import annotations

import pytest

from holdfast.calls import contradictions
from holdfast.calls.contradictions import MOST, MOST_COMPARED, Statement, find_contradictions
from holdfast.calls.synthesize import SynthesisMaterial, synthesis_prompt
from holdfast.contracts import Finding, Subtask


def said(id: str, content: str) -> Finding:
    return Finding(subtask_id=id, status="complete", content=content)


@pytest.mark.parametrize(
    ("statement", "one", "other"),
    [
        ("The lease of office A costs {} euro a month.", "12,000", "13,500"),
        ("The offer of the landlord ends on {}.", "2026-11-16", "2026-12-01"),
        ("The offer ends on {} for everybody", "3 March 2026", "4 May 2026"),
        ("Der Mietvertrag für Büro A läuft {} Jahre.", "5", "10"),
        ("| lease of office A | {} | euro |", "12,000", "13,500"),
    ],
)
def test_another_figure_or_date_for_the_same_thing_is_told_with_both_sides(
    statement: str, one: str, other: str
) -> None:
    left, right = statement.format(one), f"- {statement.format(other)} [t2]"
    [against] = find_contradictions((said("t1", left), said("t2", right)))
    assert against.startswith("t1 says «") and "; t2 says «" in against


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The lease of office A costs 12,000 euro.", "The lease of office A costs 12000 euro."),
        ("The lease of office A costs 12,000 euro.", "Parking near the station costs 90 euro."),
        ("Revenue of Tern in 2023 was 5 million.", "Revenue of Tern in 2024 was 6 million."),
        ("It costs 5.", "It costs 6."),
    ],
)
def test_the_same_figure_another_thing_or_another_year_is_no_contradiction(
    one: str, other: str
) -> None:
    assert find_contradictions((said("t1", one), said("t2", other))) == ()


def test_what_one_finding_says_and_what_failed_is_not_compared_and_few_are_told() -> None:
    lines = [f"The lease of office {name} costs {{}} euro a month." for name in "ABCDEFGH"]
    one, other = ("\n".join(each.format(cost) for each in lines) for cost in (1, 2))
    assert find_contradictions((said("t1", f"{one}\n{other}"),)) == ()
    failed = Finding(subtask_id="t2", status="failed", content=other)
    assert find_contradictions((said("t1", one), failed)) == ()
    assert len(find_contradictions((said("t1", one), said("t2", other)))) == MOST


DEPOTS = (
    "- Date of the report: 3 March 2026\n- Electric buses in service: 42\n- diesel buses here: 118",
    "- Date of the report: 9 March 2026\n- Electric buses in service: 31\n- diesel buses here: 64",
)


def reads(id: str, *inputs: str, needs: tuple[str, ...] = (), to: str = "Read") -> Subtask:
    return Subtask(id=id, title="", instruction=to, role="analyst", inputs=inputs, depends_on=needs)


@pytest.mark.parametrize(
    ("subtasks", "more", "count"),
    [
        ((reads("t1", "a"), reads("t2", "b")), ("", ""), 0),
        ((reads("t1", "a"), reads("t2", "a", "b")), ("", ""), 3),
        ((reads("t1"), reads("t2", "b")), ("", ""), 3),
        ((reads("t1", "a"), reads("t2", "b", needs=("t1",))), ("", ""), 3),
        # The same elsewhere: then both may speak of one thing.
        ((reads("t1", "a"), reads("t2", "b")), ("\nParking places in town: 9",) * 2, 3),
        ((reads("t1", "a"), reads("t2", "b")), ("\nTern has 4 offices", "\nTern has 5 offices"), 0),
        # They are not asked for the same of their inputs.
        (
            (reads("t1", "a", to="List the dates of `a`"), reads("t2", "b", to="Sum up `b`")),
            ("", ""),
            3,
        ),
        (
            (reads("t1", "a", to="List what `a` says"), reads("t2", "b", to="List what `b` says")),
            ("", ""),
            0,
        ),
        (
            (reads("t1", "a"), reads("t2", "b")),
            ("\nTern has 4 offices. It is Tern.", "\nTern has 5 offices"),
            1,
        ),
        (
            (reads("t1", "a"), reads("t2", "b")),
            ("\nThe lease of office A costs 12.", "\nThe lease of office A costs 13."),
            1,
        ),
    ],
)
def test_findings_on_different_inputs_contradict_each_other_about_what_both_name(
    subtasks: tuple[Subtask, ...], more: tuple[str, str], count: int
) -> None:
    one, other = (f"{text}{end}" for text, end in zip(DEPOTS, more, strict=True))
    found = find_contradictions((said("t1", one), said("t2", other)), subtasks)
    assert len(found) == count


def test_a_name_at_the_beginning_is_one_if_the_goal_or_a_title_has_it() -> None:
    more = "\nHeated rooms there: {}"
    one = said("t1", "Tern has 4 offices" + more.format(8))
    findings = one, said("t2", "Tern has 5 offices" + more.format(9))
    apart = reads("t1", "a"), reads("t2", "b")
    assert not find_contradictions(findings, apart, "How many offices are there?")
    assert find_contradictions(findings, apart, "How many offices has Tern?")
    titled = (apart[0].model_copy(update={"title": "The offices of Tern"}), apart[1])
    assert find_contradictions(findings, titled)


@pytest.mark.parametrize(
    "other",
    [
        "The lease of the hall ends on 30 September 2027.",
        "The director said that the lease of the hall ends on 30 September 2027, so it can wait.",
    ],
)
def test_what_two_inputs_alone_say_otherwise_is_told_also_without_a_name(other: str) -> None:
    apart = *(reads(each, each) for each in ("t1", "t2", "t3")), reads("t4", needs=("t1",))
    lease = "The lease of the hall ends on 31 March 2027.\nThe deposit is 12,600 euros."
    findings = said("t1", lease), said("t2", f"{other}\nThere are 82,000 books.")
    assert len(find_contradictions(findings, apart)) == 1
    # Of three halls each has a lease.
    third = said("t3", "The lease of the hall ends on 4 May 2028.")
    assert not find_contradictions((*findings, third), apart)


def test_whoever_writes_the_answer_is_told_before_it_is_written() -> None:
    findings = (
        said("t1", "The lease of A costs 12 euro."),
        said("t2", "The lease of A costs 13 euro."),
    )
    prompt = synthesis_prompt(SynthesisMaterial(goal="Compare", findings=findings))
    assert "found by code" in prompt and "t1 says «The lease of A costs 12 euro.»" in prompt


def test_findings_of_thousands_of_figures_are_compared_no_further_than_a_bound() -> None:
    lines = "\n".join(f"The price of coal in town was {n} and {{0}} and {{0}}" for n in range(400))
    findings = [said(f"t{number}", lines.format(number)) for number in range(30)]
    compared = 0

    def count(left: Statement, right: Statement) -> None:
        nonlocal compared
        compared += 1

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(contradictions, "_count_differing", count)
        assert find_contradictions(findings) == ()
    assert compared == MOST_COMPARED
