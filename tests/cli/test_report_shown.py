"""What a terminal and a file show of a report, hostile text included."""

from __future__ import annotations

import shlex
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.markdown import Markdown

from drawn import HOSTILE, OUR_STYLES, START, UNSEEN, drawn, row, view
from holdfast.cli.screen.board import board, headline
from holdfast.cli.screen.streams import Safe
from holdfast.cli.screen.typeset import Page
from holdfast.cli.shared import delivery
from holdfast.client import documents
from holdfast.client.reading import Look
from holdfast.contracts import (
    Finding,
    Gap,
    Given,
    Limits,
    NoAnswer,
    Omission,
    Order,
    Plan,
    Remark,
    Report,
    Revision,
    Subtask,
    Timings,
    Try,
    Usage,
)
from holdfast.deployment.invocation import STARTER, to_type
from holdfast.rendering import findings
from holdfast.rendering.board import board as details
from holdfast.rendering.report import as_markdown
from holdfast.text import for_markdown
from holdfast.text.harmless import quote_markdown

MARKUP = (
    "http://a.b/", "://", "www.x", "a@b", "\\", "`", "*", "_", "[", "]", "(", ")", "![", "|",
    "~", "$", "^", "<", ">", "&amp;", "&#x2f;", "#", "1.", "1)", "-", "+", "=", "!", ":", " ", "a",
)  # fmt: skip
"""Pieces of what means something in Markdown."""


def report(**fields: object) -> Report:
    plan = Plan(
        goal="g",
        subtasks=tuple(
            Subtask(id=id, title=f"Subtask {id}", instruction="i", role="analyst")
            for id in ("t1", "t2", "t3")
        ),
    )
    findings = (
        Finding(
            subtask_id="t1",
            status="complete",
            model="claude",
            dollars=Decimal("0.01"),
            started=START,
            finished=START + timedelta(seconds=4),
        ),
        Finding(subtask_id="t2", status="failed", why="no answer"),
        Finding(subtask_id="t3", status="skipped", why="needs t2"),
    )
    gaps = (
        Gap(
            subtask_id="t2", title="Subtask t2", status="failed", why="no answer", took_down=("t3",)
        ),
        Gap(subtask_id="t3", title="Subtask t3", status="skipped", why="needs t2"),
    )
    base = {
        "status": "complete_with_gaps",
        "run_id": "run-1",
        "goal": "Compare engines",
        "plan": plan,
        "findings": findings,
        "gaps": gaps,
        "answer": "Engine *A* wins.",
        "not_run": (Omission(what="Accessibility", why="needs a model"),),
        "notes": ("a template wrote this",),
        "model_calls": 3,
        "dollars": "0.012345",
        "timings": Timings(makespan=65, work=50, critical_path=48),
    }
    return Report.model_validate({**base, **fields})


def test_a_report_says_answer_gaps_what_was_not_run_price_and_time() -> None:
    page = documents.as_markdown(report())
    for part in (
        "# Compare engines",
        "Complete, with gaps",
        "subtasks 1 of 3 complete",
        "Engine *A* wins.",
        "no answer. Skipped because of it: \\[t3\\]",
        "**Accessibility**: needs a model",
        "a template wrote this",
        "| t1 | Subtask t1 | analyst | claude | complete | 4.0 s | \\$0.01 |",
        "$0.0124 for 3 model calls",
        "1 min 05 s from start to end. The longest chain of subtasks took 48 s.",
    ):
        assert part in page


def test_agents_that_were_not_to_be_asked_are_a_fact_and_nothing_that_is_missing() -> None:
    out = Omission(what="6 agents", why="no model", agents=6)
    page = documents.as_markdown(report(not_run=(out,), gaps=(), model_calls=0))
    assert "not run 6 agents, no model" in page.split("## ")[0]
    assert "What is missing" not in page and "6 agents" not in page.split("## ", 1)[1]


def test_a_report_says_what_was_tried_changed_reused_unsupported_and_estimated() -> None:
    tries = (
        Try(
            number=1,
            tier="haiku",
            verdict="failed_checks",
            why="too short",
            dollars=Decimal("0.01"),
        ),
        Try(number=2, tier="sonnet", verdict="accepted"),
    )
    findings = (
        Finding(subtask_id="t1", status="complete", model="claude", tries=tries),
        Finding(subtask_id="t2", status="complete", model="claude", reused_from="run-0"),
    )
    page = documents.as_markdown(
        report(
            findings=findings,
            gaps=(),
            flags=("cites [t9], which there is not",),
            revisions=(Revision(number=1, why="t2 failed", added=("t4",), dropped=("t3",)),),
            dollars_estimated="0.02469",
        )
    )
    for part in (
        "## Look here first: not supported by any finding",
        "- try 1 on haiku, failed checks, $0.01: too short\n- try 2 on sonnet, accepted",
        "**1**, t2 failed: added \\[t4\\]; dropped \\[t3\\]",
        "| t2 | Subtask t2 | analyst | claude |  | taken over |",
        "The plan was estimated at $0.0247: it took 50% of that.",
    ):
        assert part in page


def test_the_project_of_a_run_is_told_where_it_has_one() -> None:
    whole = report()
    ours = whole.model_copy(update={"project": "letters"})
    assert "` of project `letters`\n" in as_markdown(ours, to_type)
    assert "project" not in as_markdown(whole, to_type)
    assert "project letters" in headline(view(project="letters"), 1.0)
    assert "project" not in headline(view(), 1.0)


def test_each_finding_stands_behind_its_id_with_model_tries_price_and_sources() -> None:
    found = Finding(
        subtask_id="t1",
        status="complete",
        content="# Gaps: none\n\nIt is *blue*.",
        confidence=85,
        sources=("answered by ana: The sky.",),
        model="claude-x",
        dollars=Decimal("0.02"),
        assumed=Decimal("0.01"),
        started=START,
        finished=START + timedelta(seconds=4),
        tries=(Try(number=1, tier="haiku", verdict="failed_checks", why="too short"),),
    )
    page = documents.as_markdown(report(findings=(found,), gaps=()))
    assert page.split("## Findings\n\n")[1].startswith(
        "### t1 · Subtask t1\n\n"
        "**complete** · analyst · claude-x · confidence 85 of 100 · ≤ $0.02 · 4.0 s\n\n"
        "- try 1 on haiku, failed checks: too short\n- source: answered by ana: The sky.\n\n"
        "> # Gaps: none\n>\n> It is *blue*.\n\n"
    )
    failed = found.model_copy(update={"status": "failed", "confidence": 0, "why": "too short"})
    told = findings.facts(failed, findings.subtask_of(report(), "t1"))
    assert told == "**failed** · analyst · claude-x · ≤ $0.02 · 4.0 s", "nobody judged it"
    unsaid = found.model_copy(update={"confidence": None})
    told = findings.facts(unsaid, findings.subtask_of(report(), "t1"))
    assert told == "**complete** · analyst · claude-x · ≤ $0.02 · 4.0 s", "nobody stated any"
    pasted = documents.as_markdown(report(findings=(found,), gaps=(), answer=f"A: {found.content}"))
    assert pasted.count("It is *blue*.") == 1, "said once"
    assert "It is *blue*." not in documents.as_markdown(report(findings=(found,)), whole=False)


def test_a_try_of_the_fallback_is_told_under_its_role_and_as_whose_fallback() -> None:
    found = Finding(
        subtask_id="t1",
        status="complete",
        content="It is blue.",
        confidence=85,
        model="claude-x",
        tries=(
            Try(number=3, tier="opus", verdict="failed_checks", why="too short"),
            Try(number=4, tier="opus", verdict="accepted", role="writer"),
        ),
    )
    page = documents.as_markdown(report(findings=(found,), gaps=()))
    assert "**complete** · writer for analyst · claude-x · confidence 85 of 100" in page
    assert "- try 3 on opus, failed checks: too short\n" in page
    assert "- try 4 by writer, the fallback, on opus, accepted\n" in page
    assert "| t1 | Subtask t1 | writer for analyst | claude-x | 2 | complete |" in page


def test_what_a_finding_says_stays_a_quotation_that_loads_and_runs_nothing() -> None:
    text = "![x](http://e.example/l)\n<script>alert(1)</script>\n[a](javascript:x)"
    text += " [b](java&#115;c:x)\n[c][d]\n\n[d]: data:text/html,x\n# Report\n\u202egnp.exe \x1b[2J"
    found = Finding(subtask_id="t1", status="complete", content=text, sources=(HOSTILE,))
    page = documents.as_markdown(report(findings=(found,), goal="G", gaps=()))
    assert UNSEEN.search(page) is None
    renderer = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table")
    blocks = renderer.parse(page.split("## Findings")[1])
    tokens = [each for block in blocks for each in (block, *(block.children or []))]
    assert not {each.type for each in tokens} & {"html_inline", "html_block", "image"}
    assert [each.attrs["href"] for each in tokens if each.attrs] == ["http://e.example/l"]
    assert "](" not in quote_markdown("[a](javascript:x) [b](java&#115;c:x) [c](<data:x>)")
    assert "]:" not in quote_markdown("[d]: data:text/html,x\n[e]:\n  javascript:x")
    assert [line for line in page.splitlines() if line.startswith("# ")] == ["# G"]


def test_a_finding_alone_lists_every_remark_whatever_its_confidence() -> None:
    remark = Remark(severity="info", file="a.py", line=3, message="odd", rule="R1", confidence=20)
    found = Finding(
        subtask_id="t1",
        status="complete",
        content="1 file looked at: 1 info.",
        data={"remarks": [remark.model_dump(mode="json")]},
    )
    assert "- **info** `a.py:3` odd (`R1`, 20 %)" in findings.alone(report(), found)


def test_a_review_begins_with_its_verdict_and_is_brief_where_it_is_not_asked_for_whole() -> None:
    quiet = {"remarks": [], "files_read": 4}
    lenses = [Finding(subtask_id=f"t{n}", status="complete", data=quiet) for n in (1, 2)]
    more = Finding(subtask_id="t3", status="complete", data={**quiet, "suppressed": 2})
    made = report(
        findings=(*lenses, more),
        gaps=(),
        model_calls=0,
        data={"remarks": []},
        answer="**No remarks in what 3 lenses looked at.**\n\nReviewed: all.",
    )
    whole, brief = documents.as_markdown(made), documents.as_markdown(made, whole=False)
    for page in (whole, brief):
        _, verdict, facts, rest, *_ = page.split("\n\n")
        assert verdict == "**No remarks in what 3 lenses looked at.**" and rest == "Reviewed: all."
        assert facts.startswith("*Complete") and facts.endswith(f"run `{made.run_id}`*")
    for chapter in ("## Plan", "## Time", "## Money"):
        assert chapter in whole and chapter not in brief
    assert "Lenses without remarks: t1 (4 files), t2 (4 files)." in whole
    assert "### t1" not in whole and "### t3" in whole, "it has more to say"
    typeset = drawn(Markdown(brief)), drawn(Page(brief, hyperlinks=False))
    assert "\x1b[2mComplete" in typeset[1] and "\x1b[2mComplete" not in typeset[0]


def test_orders_are_told_in_full_with_who_when_and_what_became_of_them() -> None:
    before = Plan(
        goal="g",
        subtasks=tuple(
            Subtask(id=id, title=id, instruction="i", role="analyst", tier="haiku")
            for id in ("t1", "t2")
        ),
    )
    changed = before.subtasks[0].model_copy(update={"tier": "sonnet", "instruction": "do more"})
    added = Subtask(id="t3", title="New", instruction="i", role="analyst")
    after = before.model_copy(update={"subtasks": (changed, added)})
    said = (
        ("edit", Order(plan=after, by="ana"), "", before),
        ("answer", Order(subtask_id="t1", text="The *fiscal*\nyear", by="ana"), "", None),
        ("raise_cap", Order(limits=Limits(dollars=Decimal(5)), by="ben"), "", None),
        ("retry", Order(subtask_id="t1", tier="opus", by="ben"), "t1 is complete", None),
    )
    given = tuple(
        Given(number=n, command=name, order=order, at=START, refused=why, before=plan)
        for n, (name, order, why, plan) in enumerate(said, 1)
    )
    page = documents.as_markdown(report(orders=given))
    stamp = f"{START:%Y-%m-%d %H:%M:%S} UTC"
    for line in (
        f"- {stamp}, **ana** edited the plan: changed t1 (instruction “do more”, tier haiku →"
        " sonnet); added t3 (“New”); took out t2",
        f"- {stamp}, **ana** answered t1: “The \\*fiscal\\* year”",
        f"- {stamp}, **ben** raised the cap: \\$5.00, 60 model calls, 5,000,000 tokens",
        f"- {stamp}, **ben** had tried again t1: on opus. Refused: t1 is complete",
    ):
        assert line in page


def test_no_sentence_ends_twice() -> None:
    gap = Gap(subtask_id="t2", title="T", status="failed", why="start it again.", took_down=("t3",))
    assert "start it again. Skipped because of it: \\[t3\\]" in documents.as_markdown(
        report(gaps=(gap,))
    )


@pytest.mark.parametrize("calls", [0, 1])
def test_a_plan_that_nobody_approved_is_told_with_its_subtasks_and_its_estimate(calls: int) -> None:
    left = report(
        status="declined", findings=(), gaps=(), dollars_estimated="0.05", model_calls=calls
    )
    page = documents.as_markdown(left)
    assert "subtasks 0 of 3 complete" in page
    assert "| t1 | Subtask t1 | analyst | not run |" in page
    assert "The plan was estimated at $0.05; none of it was run." in page


def test_a_run_that_ended_before_it_had_a_plan_counts_no_subtasks() -> None:
    page = documents.as_markdown(report(status="cancelled", plan=None, findings=(), gaps=()))
    assert "no plan yet" in page and "of 0" not in page and "## Plan" not in page


def test_time_spent_waiting_is_told_apart() -> None:
    slow = Timings(makespan=900, waited=840, work=880, critical_path=20)
    page = documents.as_markdown(report(timings=slow))
    assert "15 min 00 s from start to end, 14 min 00 s of it waiting for a person" in page


def test_a_price_that_is_partly_assumed_does_not_look_like_a_fact() -> None:
    lost = Finding(
        subtask_id="t1",
        status="complete",
        model="claude",
        dollars=Decimal("0.0873"),
        assumed=Decimal("0.0855"),
    )
    page = documents.as_markdown(report(findings=(lost,), dollars="0.0891", assumed="0.0855"))
    assert "| ≤ \\$0.0873 |" in page
    assert "$0.0891 for 3 model calls, of which $0.0855 is assumed" in page
    planned = report(dollars="0.0891", assumed="0.0855", dollars_estimated="0.0125")
    compared = documents.as_markdown(planned).split("## Money")[1]
    assert "estimated at $0.0125; because of what is assumed, nobody can say" in compared
    assert "%" not in compared, "a worst case is no share of an estimate"
    assert "≤ $0.0873" in drawn(board(view(row(dollars="0.0873", assumed="0.0855"))))
    paid = view(row(), dollars_spent="0.0873", dollars_cap="2", model_calls=1, assumed="0.0855")
    assert "≤ $0.0873 of $2.00" in drawn(board(paid))
    assert "≤ \\$0.0873 of" in details(paid)
    fact = view(row(dollars="0.0873"), dollars_spent="0.0873", dollars_cap="2", model_calls=1)
    known = documents.as_markdown(report()) + drawn(board(fact))
    assert "≤" not in known and "assumed" not in known


def test_the_price_has_the_tokens_that_a_cache_took_and_gave() -> None:
    usage = Usage(
        input_tokens=10, output_tokens=20, cache_read_tokens=3_000, cache_write_tokens=4_000
    )
    told = documents.as_markdown(report(usage=usage, model_calls=1))
    assert (
        ". Tokens: 10 in, 20 out, 3,000 read from cache (43% of all that was read), 4,000" in told
    )


def test_an_unpriced_report_never_says_zero() -> None:
    page = documents.as_markdown(report(dollars=None))
    assert "unpriced for 3 model calls" in page


def test_a_free_report_says_so() -> None:
    assert "nothing was paid" in documents.as_markdown(report(model_calls=0, dollars="0"))


def test_markdown_cannot_smuggle_a_control_character_past_the_terminal() -> None:
    answer = f"{HOSTILE}\n\n&#x202e;gnp.exe &#27;[2J `&#x202e;`\n\n![x](javascript:alert)"
    page = documents.as_markdown(report(answer=answer, goal=HOSTILE, notes=(HOSTILE,)))
    assert UNSEEN.search(page) is None
    shown = drawn(Safe(Markdown(page, hyperlinks=False)))
    assert UNSEEN.search(OUR_STYLES.sub("", shown)) is None
    assert "\\u202egnp.exe" in shown


def test_what_others_wrote_is_no_markup_outside_the_answer() -> None:
    page = documents.as_markdown(report(notes=("<b>x</b> [y](http://z)\n# Gaps: none",)))
    assert "<b>" not in page and "[y](" not in page
    assert [line for line in page.splitlines() if line.startswith("# ")] == ["# Compare engines"]


def test_a_report_file_is_json_if_its_name_says_so_and_appears_whole(tmp_path: Path) -> None:
    for name in ("a.json", "a.md", "a.html"):
        delivery.write(report(), tmp_path / name, Look(), "")
    assert Report.model_validate_json((tmp_path / "a.json").read_text()) == report()
    assert (tmp_path / "a.md").read_text() == documents.as_markdown(report())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.json", "a.md"]


def test_a_report_that_cannot_be_written_is_said_and_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    delivery.deliver(report(), blocked / "reports", blocked / "out.md", Look())
    said = capsys.readouterr().err
    assert "could not be kept" in said and "could not be written" in said


def test_the_last_line_of_a_finished_run_is_the_link_to_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery.deliver(report(run_id="a run"), tmp_path, tmp_path / "out.md", Look())
    page = tmp_path / "a_run.html"
    assert capsys.readouterr().err.splitlines()[-1] == f"Page: {page.as_uri()}"
    assert page.stat().st_mode & 0o777 == 0o600
    assert "Engine" in page.read_text()


def test_calls_that_brought_no_answer_are_told_with_their_price() -> None:
    said = NoAnswer(id="work-t1-1", tier="haiku", why="the connection broke")
    paid = NoAnswer(
        id="work-t1-2",
        tier="haiku",
        why="it was lost",
        dollars=Decimal("0.02"),
        assumed=Decimal("0.02"),
    )
    lost = Finding(subtask_id="t1", status="failed", why="it was lost", unanswered=(said, paid))
    told = (
        "call work-t1-1 on haiku, no answer, cost nothing: the connection broke",
        "call work-t1-2 on haiku, no answer, ≤ $0.02: it was lost",
    )
    page = documents.as_markdown(report(findings=(lost,), unpaid_calls=1))
    assert "### t1" in page and all(f"- {line}" in page for line in told)
    assert "| t1 | Subtask t1 | analyst | 2 | failed |" in page
    assert "Besides, 1 model call brought no answer and cost nothing." in page
    short = documents.as_markdown(report(findings=(lost,)), whole=False)
    assert f"- **t1**: {'; '.join(told)}" in short


def test_a_run_whose_calls_were_all_refused_does_not_say_that_nobody_was_asked() -> None:
    page = documents.as_markdown(report(model_calls=0, unpaid_calls=1, dollars="0"))
    line = "No model answered: 1 model call was refused or did not get through, and nothing was"
    assert line in page and "No model was asked" not in page


@given(st.lists(st.sampled_from(MARKUP), min_size=1, max_size=9).map("".join))
def test_what_others_wrote_reads_in_a_terminal_as_they_wrote_it(text: str) -> None:
    line = " ".join(text.split())
    assume(line)
    shown = drawn(Safe(Markdown(f"- | {for_markdown(line)} |", hyperlinks=False)), width=400)
    assert OUR_STYLES.sub("", shown).strip() == f"• | {line} |", "no escape of ours is seen"


def test_no_name_in_a_report_of_somebody_elses_workflow_is_markup() -> None:
    bad = f"x` {HOSTILE}\n\n![i](http://evil.example)<img src=x>"
    gap = Gap(subtask_id=bad, title=bad, status="failed", why=bad, took_down=(bad,))
    tries = (Try(number=1, tier="haiku", verdict=bad), Try(number=2, tier="haiku", verdict=bad))
    finding = Finding(subtask_id=bad, status="failed", why=bad, tries=tries)
    revision = Revision(number=1, why=bad, added=(bad,), dropped=(bad,), replaced=(bad,))
    hostile = report(run_id=bad, gaps=(gap,), findings=(finding,), revisions=(revision,))
    for page in (documents.as_markdown(hostile, whole=whole) for whole in (True, False)):
        tokens = [
            part for each in MarkdownIt().parse(page) for part in (each, *(each.children or ()))
        ]
        assert not {each.type for each in tokens} & {"image", "html_inline", "html_block"}
        assert UNSEEN.search(page) is None


def test_commands_that_a_review_names_are_shown_as_they_are_typed_here() -> None:
    answer = "`starter.py show ID SUBTASK` and `starter.py fork ID --limits min_confidence=0`"
    shown = documents.as_markdown(report(answer=answer, run_id="run-7"))
    assert f"`{STARTER} show run-7 SUBTASK`" in shown
    assert f"`{STARTER} fork run-7 --limits min_confidence=0`" in shown
    assert "show ID" in documents.as_markdown(report(answer=answer, run_id="a`b"))


def test_a_command_on_a_run_does_nothing_else_in_a_shell() -> None:
    assert to_type("show", "a-1") == f"{STARTER} show a-1"
    line = to_type("fork", "x; rm -rf $(pwd)\n\x9b31m")
    assert shlex.split(line)[-1] == "x; rm -rf $(pwd)\\n\\x9b31m" and UNSEEN.search(line) is None
