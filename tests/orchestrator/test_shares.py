"""What the price of a run was paid for: by kind of call, by tier, and within its teams.

`driving` checks after each step of each run that the shares add up to the price.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import groupby

from driving import BRIEFING, START, Drive, subtask
from holdfast.calls import KINDS
from holdfast.contracts import Bill, Lost, Plan, Report, Share, Undone, Usage, dollars
from holdfast.rendering import preview, prices
from holdfast.rendering.report import as_markdown
from holdfast.rules import reporting
from holdfast.state.events import TeamEnded, WasReset
from holdfast.state.moves import StartTeam
from outcomes import AMPLE, begun, end

MODEL = BRIEFING.models[0]


def sums(shares: Iterable[Share]) -> tuple[Decimal, Decimal, int, int]:
    """Dollars, assumed dollars, calls and tokens."""
    each = list(shares)
    return (
        sum((share.dollars or Decimal(0) for share in each), Decimal(0)),
        sum((share.assumed for share in each), Decimal(0)),
        sum(share.calls for share in each),
        sum(share.usage.total for share in each),
    )


def totals(report: Report) -> tuple[Decimal, Decimal, int, int]:
    assert report.dollars is not None
    return report.dollars, report.assumed, report.model_calls, report.usage.total


def told(report: Report, *, whole: bool = True) -> str:
    made = as_markdown(report, lambda command, run: f"{command} {run}", whole=whole)
    return made.replace("\\", "")


def cells(line: str) -> list[str]:
    """A line of a table, by its cells."""
    return [each.strip() for each in line.strip("| ").split("|")]


def rows(text: str, heading: str) -> dict[str, list[str]]:
    """The lines of the table below a heading, by their first cell."""
    below = text.partition(f"### {heading}")[2].strip().splitlines()
    table = next(list(lines) for is_table, lines in groupby(below, lambda each: each[:1] == "|"))
    return {cells(each)[0]: cells(each)[1:] for each in table[2:]}


def with_reset() -> Drive:
    """A lost call of haiku, a draft and its review, and a call of before a reset."""
    run = begun(subtask("a", role="researcher"), subtask("b", "a"))
    end(run, "work-a-1", "possibly_billed")
    end(run, "work-a-2")
    lost = Lost(
        id="work-a-1",
        bill=Bill(
            model=MODEL.id, calls=1, dollars=Decimal("0.000007"), usage=Usage(input_tokens=5)
        ),
    )
    run.put(WasReset(Undone(execution="before", at=START, lost=(lost,))))
    end(run, "work-b-1")
    return run


def test_lost_assumed_reset_and_reserved_amounts_are_shares_that_add_up_to_the_price() -> None:
    run = with_reset()
    under_way = reporting.report(run.state)
    assert "synthesize-1" in run.state.ledger.reserved
    end(run, "synthesize-1")
    for report in (under_way, reporting.report(run.state)):
        assert sums(report.shares) == totals(report) and report.assumed
        kinds = {(each.kind, each.tier) for each in report.shares}
        assert {("work", "haiku"), ("work", "sonnet"), ("lost", "haiku")} <= kinds
        assert ("synthesize", "sonnet") in kinds
        assert [each.dollars for each in report.shares] == sorted(
            (each.dollars for each in report.shares), reverse=True, key=lambda each: each or 0
        )
        assert abs(sum(each.percent or 0 for each in report.shares) - 100) < 0.3


def test_a_call_without_a_price_leaves_its_own_share_unpriced_and_no_part_in_percent() -> None:
    models = (MODEL, BRIEFING.models[1].model_copy(update={"prices": ()}), BRIEFING.models[2])
    plan = Plan(goal="Compare", subtasks=(subtask("a", role="sorter"), subtask("b")))
    run = Drive(plan, AMPLE, BRIEFING.model_copy(update={"models": models}))
    end(run, "work-a-1")
    end(run, "work-b-1", "possibly_billed")
    report = reporting.report(run.state)
    by_tier = {each.tier: each for each in report.shares}
    assert report.dollars is None and {each.percent for each in report.shares} == {None}
    assert by_tier["sonnet"].dollars is None and by_tier["haiku"].dollars
    assert rows(told(report), "By tier")["sonnet"][-1] == "unpriced"


def team_ends(run: Drive, *shares: Share, price: str = "0.05") -> None:
    (move,) = (each for each in run.teams if isinstance(each, StartTeam))
    calls, usage = max(len(shares), 1), Usage(input_tokens=10 * len(shares))
    report = Report(
        status="complete",
        run_id=move.run_of("run"),
        goal="g",
        answer="done",
        confidence=90,
        dollars=dollars(price),
        model_calls=calls,
        usage=usage,
        shares=shares,
    )
    run.put(TeamEnded(move, report))


def part(kind: str, tier: str, price: str, team: str = "") -> Share:
    usage = Usage(input_tokens=10)
    return Share(kind=kind, tier=tier, team=team, calls=1, usage=usage, dollars=dollars(price))


def test_what_a_team_took_is_divided_into_its_own_calls_and_those_of_teams_below_it() -> None:
    run = begun(subtask("t", role="department"), subtask("a"))
    parts = (
        part("work", "haiku", "0.02"),
        part("plan", "sonnet", "0.0123"),
        part("work", "haiku", "0.0077", team="below"),
        part("synthesize", "opus", "0.01"),
    )
    team_ends(run, *parts)
    end(run, "work-a-1")
    end(run, "synthesize-1")
    report = reporting.report(run.state)
    assert sums(report.shares) == totals(report)
    inside = {(each.kind, each.tier): each for each in report.shares if each.team == "t"}
    assert {key: (each.calls, each.dollars) for key, each in inside.items()} == {
        ("work", "haiku"): (2, Decimal("0.0277")),
        ("plan", "sonnet"): (1, Decimal("0.0123")),
        ("synthesize", "opus"): (1, Decimal("0.01")),
    }
    table = rows(told(report), "In the team of t")
    assert table["Work of an agent, haiku"][:3] == ["2", "20", "$0.027700"]
    by_kind = rows(told(report), "By kind of call")
    assert "Team" not in by_kind and by_kind["Plan"][2] == "$0.012300"
    assert table["together"][2] == "$0.050000" and by_kind["together"][2] == f"≤ ${report.dollars}"


def test_a_team_that_told_no_kinds_is_one_share() -> None:
    run = begun(subtask("t", role="department"), subtask("a"))
    team_ends(run)
    report = reporting.report(run.state)
    (own,) = (each for each in report.shares if each.team)
    assert (own.kind, own.tier, own.team, own.dollars) == ("team", "", "t", Decimal("0.05"))
    assert sums(report.shares) == totals(report)


def test_a_line_says_what_part_went_into_planning_and_work_and_to_which_tier() -> None:
    report = Report(
        status="complete",
        run_id="run",
        goal="g",
        dollars=Decimal("0.1"),
        model_calls=4,
        shares=(
            part("work", "haiku", "0.06"),
            part("plan", "sonnet", "0.0195"),
            part("review", "haiku", "0.02"),
            part("lost", "", "0.0005"),
        ),
    )
    line = (
        "By part: work 60%, checks 20%, planning 20%, other under 1%."
        " By tier: haiku 80%, sonnet 20%, not known under 1%."
    )
    short, whole = told(report, whole=False), told(report)
    assert line in short and line in whole
    assert "### By tier" in whole and "### By tier" not in short
    assert rows(whole, "By tier")["haiku"] == ["2", "20", "$0.080000", "80%"]


def test_one_kind_of_call_by_one_tier_is_not_divided() -> None:
    report = Report(
        status="complete",
        run_id="run",
        goal="g",
        dollars=Decimal("0.1"),
        model_calls=1,
        shares=(part("work", "haiku", "0.1"),),
    )
    assert "By part" not in told(report)


def test_each_kind_of_call_belongs_to_a_part_of_a_run() -> None:
    named = [kind for kinds in prices.PARTS.values() for kind in kinds]
    assert len(named) == len({*named})
    # A turn is paid with its agent, trying is free, no run asks the judge of evals; the others
    # ask for an endpoint.
    free = {"try_proof", "try_fix", "grade"}
    assert {*KINDS} - {*named} == {"take_turn", "ping", "reach", *free}
    assert {*named} <= {*prices.KINDS_OF_STEPS}


def test_a_run_says_whose_prices_they_are_and_of_when_before_and_after_it_is_paid() -> None:
    library = "from a-library 1.0, whose newest price is of 2026-11-09"
    models = tuple(each.model_copy(update={"source": library}) for each in BRIEFING.models)
    own = models[2].model_copy(update={"source": "from prices.yaml of 2026-11-01"})
    one, two = (library,), (library, own.source)
    for cards, lists in ((models, one), ((*models[:2], own), two)):
        brief = BRIEFING.model_copy(update={"models": cards})
        plan = Plan(goal="Compare", subtasks=(subtask("a"), subtask("b")))
        run = Drive(plan, AMPLE, brief)
        assert run.state.estimate is not None
        before = preview.totals(run.state.estimate, AMPLE.dollars)
        end(run, "work-a-1")
        after = told(reporting.report(run.state), whole=False)
        for each in lists:
            assert any(line.endswith(f"are {each}.") for line in before)
            assert f"are {each}." in after
    assert "Prices of a-opus are from prices.yaml of 2026-11-01." in after


def test_a_run_that_paid_nothing_and_one_of_before_prices_had_a_date_name_no_list() -> None:
    assert reporting.report(begun(subtask("a")).state).prices == ()
    run = begun(subtask("a"))
    end(run, "work-a-1")
    assert reporting.report(run.state).prices == ()
