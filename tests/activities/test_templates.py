"""The syntheses without a model: what is merged, ranked, counted, and safe to show."""

from __future__ import annotations

from typing import Any

import pytest
from markdown_it import MarkdownIt

from holdfast.activities.catalogue.templates import TEMPLATES
from holdfast.activities.review.answer import MOST_LINES, MOST_PER_FILE, MOST_PER_RULE, MOST_SHOWN
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.contracts import Escalation, Finding, Omission, Remark, Subtask, Synthesis
from holdfast.contracts import remarks as remarks_module
from holdfast.contracts.remarks import blocks_change, merge_remarks
from holdfast.rendering.foremost import HARMS, first_in_line, harm_of, one_thing
from holdfast.text import code_span, for_terminal


def remark(**fields: Any) -> Remark:
    given = {"severity": "warning", "file": "a.py", "line": 1, "message": "Wrong", "confidence": 90}
    return Remark.model_validate({**given, **fields})


def lens(name: str, *remarks: Remark, **data: Any) -> Finding:
    listed = [each.model_copy(update={"lens": name}).model_dump(mode="json") for each in remarks]
    given = {"remarks": listed, "remarks_in_all": len(listed), "files_read": 7}
    return Finding(subtask_id=name, status="complete", confidence=100, data={**given, **data})


def review(*findings: Finding, **more: Any) -> Synthesis:
    subtasks = tuple(
        Subtask(id=each.subtask_id, title=f"Find {each.subtask_id}", instruction="", role="r")
        for each in findings
    )
    return TEMPLATES["review"](
        SynthesisMaterial(
            goal="g",
            template="review",
            min_confidence=80,
            subtasks=subtasks,
            findings=findings,
            **more,
        )
    )


def remarks_of(synthesis: Synthesis) -> list[Remark]:
    found = synthesis.data["remarks"]
    assert isinstance(found, list)
    return [Remark.model_validate(each) for each in found]


# ---------------------------------------------------------------- review


def test_what_a_model_refuted_of_an_analyser_is_counted_as_the_gate_counts_it() -> None:
    given = Remark(severity="warning", file="a.py", line=3, message="m", rule="R", confidence=90)
    found = [given.model_copy(update={"line": n, "lens": "bugs"}) for n in (3, 9)]
    said = found[1].model_copy(update={"verdict": "refuted", "why": "No"})
    told = review(lens("bugs", *found), verified=(said,), to_verify=2)
    assert "**2 warnings in 1 file, 1 of them refuted by a model.**" in told.answer
    assert "No. Counted: an analyser found it." in told.answer
    assert told.data["by_severity"] == {"critical": 0, "warning": 2, "info": 0}


def test_what_a_model_refuted_of_an_agent_that_doubted_it_is_told_with_the_reason() -> None:
    said = remark(lens="logic", by_agent=True, confidence=30)
    data: dict[str, Any] = {"remarks": [said.model_dump(mode="json")]}
    agent = Finding(subtask_id="logic", status="complete", model="m", data=data)
    refuted = said.model_copy(update={"verdict": "refuted", "why": "Line 9 guards it"})
    told = review(agent, verified=(refuted,), to_verify=1)
    assert "1 remark of agents: 1 refuted." in told.answer
    assert "Line 9 guards it. Not counted: only an agent says it." in told.answer
    assert "could not be verified" not in told.answer and not told.data["below_confidence"]


def test_one_deleted_test_that_two_rules_tell_is_one_remark_that_counts() -> None:
    gone = remark(lens="uses", rule="deleted-test", file="tests/test_a.py", deleted=True)
    by_agent: dict[str, Any] = {"file": "tests/test_a.py", "deleted": True, "by_agent": True}
    held = remark(lens="untested", rule="deleted-test", message="It alone held it.", **by_agent)
    fixed = remark(
        **{**by_agent, "lens": "regressions", "rule": "deleted-check", "kind": "tests"},
        **{"message": "Commit 0123456 put it in.", "confidence": 95},
    )
    (merged,) = merge_remarks([gone, held, fixed])
    assert merged.lens == "uses" and blocks_change(merged)
    assert {*merged.also} == {"untested:deleted-test", "regressions:deleted-check"}
    (told,) = merge_remarks([held, fixed])
    assert (told.lens, told.kind) == ("regressions", "production"), "as one of them counts, so it"


def test_each_that_saw_a_defect_is_named_alike_and_those_merged_are_counted() -> None:
    text = "Whoever names a path outside gets that file."
    said = remark(message=text, lens="attacks", rule="outside-path", by_agent=True)
    again = said.model_copy(update={"lens": "conventions", "rule": "broken-rule", "confidence": 93})
    agents = [
        Finding(
            subtask_id=each.lens,
            status="complete",
            model="m",
            data={"remarks": [each.model_dump(mode="json")]},
        )
        for each in (said, again)
    ]
    (one,) = merge_remarks([said, again])
    sure = one.model_copy(update={"verdict": "confirmed", "why": "Yes"})
    told = review(*agents, verified=(sure,), to_verify=1).answer
    assert "(`conventions:broken-rule`, `attacks:outside-path`, 93 %)" in told
    assert "1 remark of agents (1 more merged): 1 confirmed." in told


def test_an_agent_that_calls_itself_surer_makes_the_first_remark_no_surest_one() -> None:
    given = Remark(severity="critical", file="a.py", line=3, message="m", rule="R", confidence=90)
    said = given.model_copy(
        update={"rule": "", "lens": "logic", "line": 7, "confidence": 100, "by_agent": True}
    )
    data: dict[str, Any] = {"remarks": [said.model_dump(mode="json")]}
    agent = Finding(subtask_id="logic", status="complete", model="m", data=data)
    sure = said.model_copy(update={"verdict": "confirmed", "why": "Yes"})
    told = review(lens("bugs", given), agent, verified=(sure,), to_verify=2)
    assert "look at `a.py:3` (critical): m. It comes first because" in told.answer
    assert "1 other remark may do as much." in told.answer


def test_what_an_agent_says_of_an_analysers_defect_is_no_second_one_and_makes_it_no_surer() -> None:
    given = Remark(
        severity="warning", file="a.py", line=3, message="m", rule="deleted-check",
        lens="uses", confidence=70,
    )  # fmt: skip
    said = given.model_copy(update={"message": "Gone.", "confidence": 95, "by_agent": True})
    logic, attacks = (said.model_copy(update={"lens": name}) for name in ("logic", "attacks"))
    (merged,) = merge_remarks([logic, given, attacks])
    assert (merged.message, merged.confidence, merged.by_agent) == ("m", 70, False)
    assert set(merged.also) == {"logic:deleted-check", "attacks:deleted-check"}
    worse = logic.model_copy(update={"severity": "critical"})
    assert len(merge_remarks([worse, given])) == 2, "it is to be verified by itself"
    assert [each.lens for each in merge_remarks([logic, attacks])] == ["attacks"]
    other = logic.model_copy(update={"message": "Another one."})
    assert len(merge_remarks([logic, other])) == 2, "one agent tells two defects apart"


def test_thousands_of_one_line_are_not_each_compared_with_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0
    same = remarks_module._same

    def counted(one: Remark, other: Remark) -> bool:
        nonlocal compared
        compared += 1
        return same(one, other)

    monkeypatch.setattr(remarks_module, "_same", counted)
    plain = {"file": "deep.py", "severity": "warning", "confidence": 70, "line": 1}
    said = [
        Remark(lens=f"lens{n % 3}", rule="E1", message=f"unary {n}", **plain) for n in range(3_000)
    ]
    assert len(merge_remarks(said)) == 1
    assert compared <= 3 * len(said)


def test_one_defect_that_two_agents_tell_in_other_words_is_one_and_two_of_a_line_are_two() -> None:
    def said(lens: str, message: str, **fields: Any) -> Remark:
        return remark(lens=lens, rule=f"kind-of-{lens}", message=message, by_agent=True, **fields)

    one = said("logic", "What was refunded before is refunded again.", confidence=90)
    again = said("regressions", 'Undoes "Refund at most what is left" (#41).', confidence=70)
    (merged,) = merge_remarks([one, again])
    assert (merged.message, merged.also) == (one.message, ("regressions:kind-of-regressions",))
    float_of_money = said("conventions", "Money is an int of cents; no float anywhere.")
    assert len(merge_remarks([one, again, float_of_money])) == 2
    elsewhere = again.model_copy(update={"line": again.line + 1})
    assert len(merge_remarks([one, elsewhere])) == 2
    assert len(merge_remarks([one, again.model_copy(update={"lens": "logic"})])) == 2


def test_what_two_agents_say_of_the_same_code_is_one_in_the_words_of_the_surest() -> None:
    def said(lens: str, message: str, confidence: int, **fields: Any) -> Remark:
        given = {"rule": "wrong-bound", "code": "return total // size", "by_agent": True}
        return remark(lens=lens, message=message, confidence=confidence, **given, **fields)

    first = said("attacks", "A stranger may ask for too much.", 60)
    surest = said("logic", "The last page is lost.", 90)
    third = said("untested", "No test has a remainder.", 70)
    (merged,) = merge_remarks([first, surest, third])
    assert merged.message == surest.message
    assert set(merged.also) == {"attacks:wrong-bound", "untested:wrong-bound"}
    other = said("regressions", "Takes back a check.", 80, deleted=True)
    other = other.model_copy(update={"rule": "deleted-check"})
    assert len(merge_remarks([surest, other])) == 2, "what is there and what is gone are two"
    again = said("logic", "It divides by nothing.", 80)
    assert len(merge_remarks([surest, again])) == 2, "one agent tells two defects apart"


@pytest.mark.parametrize(
    ("line", "rule", "message", "count"),
    [
        (5, "lost-error", "The refund is paid twice when a request is retried", 1),
        (5, "wrong-value", "A retried request pays its refund again, nobody is told", 1),
        (5, "lost-error", "A retried request pays its refund again, nobody is told", 2),
        (5, "wrong-value", "An order without items divides by zero", 2),
        (7, "wrong-value", "The refund is paid twice when a request is retried", 2),
    ],
)
def test_one_defect_that_two_agents_put_a_few_lines_apart_counts_once_and_keeps_who_said_it(
    line: int, rule: str, message: str, count: int
) -> None:
    one = remark(
        lens="logic", rule="wrong-value", line=3, by_agent=True, confidence=90,
        message="When a request is retried, the refund is paid twice",
    )  # fmt: skip
    other = remark(
        lens="attacks", rule=rule, line=line, by_agent=True, confidence=80, message=message
    )
    merged = merge_remarks([one, other])
    assert len(merged) == count
    assert merged[0].also == ((f"attacks:{rule}",) if count == 1 else ())


def test_what_an_agent_says_takes_nothing_from_what_lenses_cut() -> None:
    given = Remark(severity="critical", file="a.py", line=3, message="m", rule="R", confidence=90)
    said = [given.model_copy(update={"line": n}).model_dump(mode="json") for n in range(3)]
    agent = Finding(subtask_id="logic", status="complete", model="m", data={"remarks": said})
    answer = review(lens("bugs", given, remarks_in_all=6), agent).answer
    assert "- 5 remarks beyond what one lens hands on" in answer
    assert "beyond" not in review(lens("bugs", given), agent).answer


def test_the_same_defect_seen_by_two_lenses_is_one_remark() -> None:
    synthesis = review(
        lens("security", remark(line=4, rule="B105", confidence=60, severity="info")),
        lens("secrets", remark(line=4, rule="github-token", confidence=95, severity="critical")),
    )
    (only,) = remarks_of(synthesis)
    assert (only.rule, only.severity, only.confidence) == ("github-token", "critical", 95)
    assert only.also == ("security:B105",)
    assert synthesis.by_template


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ({"lens": "x", "rule": "R1"}, {"lens": "y", "rule": "R1", "line": 2}, 1),
        ({"lens": "x", "rule": "R1"}, {"lens": "y", "rule": "R1", "line": 3}, 2),
        ({"lens": "x", "rule": "R1"}, {"lens": "y", "rule": "R2"}, 2),
        ({"lens": "x", "rule": "R1"}, {"lens": "y", "rule": "R1", "file": "b.py"}, 2),
        # Of one lens and rule, each line is a defect of its own.
        ({"lens": "x", "rule": "R1"}, {"lens": "x", "rule": "R1", "line": 2}, 2),
        ({"lens": "x", "rule": "E722"}, {"lens": "y", "rule": "B110"}, 1),
        ({"lens": "x"}, {"lens": "y", "message": "WRONG"}, 1),
        ({"lens": "secrets", "rule": "a"}, {"lens": "secrets", "rule": "b"}, 1),
        # Two credentials in two lines are two to revoke.
        ({"lens": "secrets", "rule": "a"}, {"lens": "secrets", "rule": "b", "line": 2}, 2),
        ({"lens": "secrets", "rule": "a"}, {"lens": "security", "rule": "B105", "line": 2}, 2),
    ],
)
def test_what_counts_as_the_same_defect(
    first: dict[str, Any], second: dict[str, Any], count: int
) -> None:
    assert len(merge_remarks([remark(**first), remark(**second)])) == count


def test_a_merged_remark_keeps_the_highest_of_each() -> None:
    one = remark(lens="x", rule="R", severity="critical", confidence=50)
    other = remark(lens="y", rule="R", severity="info", confidence=95)
    for order in ([one, other], [other, one]):
        (merged,) = merge_remarks(order)
        assert (merged.severity, merged.confidence, merged.lens) == ("critical", 95, "x")
        assert merged.also == ("y:R",)


def test_remarks_are_ranked_by_severity_confidence_file_and_line() -> None:
    given = [
        remark(rule="1", severity="info", confidence=99),
        remark(rule="2", file="b.py"),
        remark(rule="3", line=9),
        remark(rule="4", line=2),
        remark(rule="5", confidence=95, file="z.py"),
        remark(rule="6", severity="critical", confidence=80),
    ]
    ranked = remarks_of(review(lens("bugs", *given)))
    assert "".join(each.rule for each in ranked) == "654321"


def test_what_is_not_shown_is_counted() -> None:
    synthesis = review(
        lens(
            "bugs",
            remark(),
            remark(line=5, confidence=79),
            suppressed=2,
            not_parsed=["bad.py"],
            unread=3,
            unread_why={"binary": 2, "a link": 1},
            unread_files=[{"path": "x", "why": "binary"}],
            notes=["untracked files were cut"],
            missed=9,
            missed_files=[{"path": "a.js", "why": "larger than 1 MiB"}],
        ),
        lens("security", suppressed=1, not_parsed=["bad.py"], unread=3, remarks_in_all=40),
        not_run=(Omission(what="Ask a model", why="no endpoint"),),
    )
    expected = {"below_confidence": 1, "suppressed": 3, "cut": 40, "unread_in_all": 3}
    assert {key: synthesis.data[key] for key in expected} == expected
    assert synthesis.data["unread"] == [{"path": "x", "why": "binary"}]
    named = synthesis.data["not_listed"]
    assert isinstance(named, list)
    assert [Remark.model_validate(each).line for each in named] == [5]
    assert synthesis.data["not_parsed"] == ["bad.py"]
    for line in (
        "**1 warning in 1 file.** Not whole: 9 files of text could not be read; 1 file could not be"
        " parsed. Not counted: 1 below confidence 80.",
        "In the tree: 7 files of text. bugs and security looked at 7 files.",
        "- 1 remark below confidence 80: `starter.py fork ID --limits min_confidence=0` shows",
        "- 3 remarks suppressed by comments in the code",
        "- 1 file that some lens could not parse: `bad.py`",
        "- 3 files not read: binary (2), a link (1)",
        "- **Nobody knows what is in 9 files of text**, which could not be read: `a.js`",
        "- untracked files were cut",
    ):
        assert line in synthesis.answer
    assert "Ask a model" not in synthesis.answer, "the report lists it with the reason"


def test_a_lens_that_failed_is_named_and_did_not_look() -> None:
    synthesis = review(
        lens("bugs", remark()),
        Finding(subtask_id="security", status="failed", why="bandit crashed"),
    )
    assert synthesis.gaps == ("Find security: bandit crashed",)
    assert "**1 warning in 1 file.** Not whole: Find security came to no end." in synthesis.answer
    assert "bugs looked at 7 files." in synthesis.answer


def test_a_review_without_remarks_says_who_looked_and_claims_no_confidence() -> None:
    nothing = {"files_read": 0, "files_in_scope": 7, "nothing_to_look_at": "no Python files"}
    synthesis = review(
        lens("bugs", **nothing), lens("security", **nothing), lens("secrets"), lens("complexity")
    )
    assert synthesis.answer == (
        "**No remarks in what 2 lenses looked at.**\n\n"
        "In the tree: 7 files of text. secrets and complexity looked at 7 files."
        " **Nothing to look at** for bugs and security: no Python files."
    )
    assert synthesis.confidence is None
    assert synthesis.data["nothing_to_look_at"] == {
        "bugs": "no Python files",
        "security": "no Python files",
    }


def test_each_lens_is_said_to_have_looked_at_what_it_read() -> None:
    synthesis = review(lens("bugs", files_read=2), lens("secrets"), lens("history"))
    assert "secrets and history looked at 7 files; bugs looked at 2 files." in synthesis.answer


def test_a_review_of_nothing_claims_nothing() -> None:
    empty = {"files_read": 0, "files_in_scope": 0, "nothing_to_look_at": "no text files"}
    answer = review(lens("secrets", **empty)).answer
    assert answer.startswith("**Nothing was looked at, so nothing is known.**")
    assert "In the tree: 0 files of text. **Nothing to look at** for secrets" in answer


def language(name: str, files: int, percent: int, *lenses: str, kind: str = "code") -> Any:
    return {"name": name, "files": files, "percent": percent, "lenses": list(lenses), "kind": kind}


def test_who_looked_in_which_languages_is_said_and_where_nobody_did() -> None:
    files = [
        language("Go", 50, 50),
        language("Python", 30, 30, "bugs", "security"),
        language("Markdown", 15, 15, kind="prose"),
        language("Shell", 4, 4, "shell"),
        language("Ruby", 1, 0),
    ]
    synthesis = review(
        lens("bugs", languages=files),
        lens("security"),
        lens("secrets"),
        Finding(subtask_id="shell", status="failed", why="shellcheck crashed"),
    )
    assert "bugs and security looked for defects in Python (30 files)." in synthesis.answer
    assert "secrets looked at 7 files." in synthesis.answer
    assert (
        "**Nobody looked for defects** in Go (50 files, 50 %), Shell (4 files, 4 %) and"
        " Ruby (1 file, under 1 %)." in synthesis.answer
    )
    assert "Markdown" not in synthesis.answer
    assert synthesis.answer.startswith(
        "**No remarks in what 3 lenses looked at.** Not whole: Find shell came to no end."
        " Nobody looked for defects in Go (50 %)."
    )
    assert synthesis.data["unread_languages"] == ["Go", "Shell", "Ruby"]


def test_what_a_lens_could_not_parse_is_said_where_it_says_what_it_looked_at() -> None:
    files = [language("Shell", 2, 100, "shell")]
    lost = {"not_parsed": ["b.sh"], "languages": files}
    answer = review(lens("shell", files_read=1, **lost), lens("secrets")).answer
    assert answer.startswith(
        "**No remarks in what 2 lenses looked at.** Not whole: 1 file could not be parsed."
    )
    assert (
        "shell looked for defects in Shell (2 files). secrets looked at 7 files."
        " **Not parsed**: 1 file by shell." in answer
    )


def test_a_lens_that_could_parse_nothing_is_not_said_to_have_looked() -> None:
    files = [language("Shell", 1, 100, "shell")]
    lost = {"not_parsed": ["b.sh"], "languages": files}
    synthesis = review(lens("shell", files_read=0, **lost), lens("secrets"))
    assert "shell looked" not in synthesis.answer
    assert "**Nobody looked for defects** in Shell (1 file, 100 %)." in synthesis.answer
    assert synthesis.data["unread_languages"] == ["Shell"]


def test_without_a_lens_for_any_of_its_languages_a_review_says_that_nothing_is_known() -> None:
    files = [language("Go", 7, 100)]
    idle = {"files_read": 0, "nothing_to_look_at": "no Python files"}
    synthesis = review(lens("bugs", **idle), lens("secrets", languages=files))
    assert synthesis.answer.startswith(
        "**No remarks, and nobody looked for defects in the code: nothing is known of it.**"
    )
    assert synthesis.confidence is None


def test_a_review_against_a_base_names_it() -> None:
    synthesis = review(lens("bugs", base="0123456789abcdef" + "0" * 24))
    assert "In what differs from 0123456789ab: 7 files of text." in synthesis.answer


def test_a_long_review_has_a_short_answer_and_all_the_data() -> None:
    given = [
        remark(file=f"{file:02}.py", line=3 * line + 1, rule="R", message=f"{file} {line}")
        for file in range(60)
        for line in range(20)
    ]
    synthesis = review(lens("bugs", *given))
    assert len(remarks_of(synthesis)) == 1_200
    assert synthesis.answer.count("### warning") == MOST_SHOWN
    assert synthesis.answer.count("### warning · `00.py:") == MOST_PER_FILE
    assert "### And 1,170 more remarks\n\n- warning · `00.py:19` `bugs:R`\n" in synthesis.answer
    assert synthesis.answer.count("\n- warning · `") == MOST_LINES
    assert "\n- and 1,110 more: `05.py` 20," in synthesis.answer
    assert (
        "`starter.py show ID SUBTASK` has all that a lens saw, SUBTASK being `bugs`."
        in synthesis.answer
    )
    assert len(synthesis.answer) < 6_500


def test_every_critical_defect_is_shown_whole_wherever_it_is() -> None:
    critical = [
        remark(line=3 * n + 1, rule="R", message=f"Hole {n}", severity="critical")
        for n in range(40)
    ]
    answer = review(lens("bugs", *critical, remark(line=500, rule="W"))).answer
    assert answer.count("### critical · `a.py:") == 40
    assert "- warning · `a.py:500` `bugs:W`" in answer
    same = [remark(line=3 * n + 1, rule="R", severity="critical") for n in range(40)]
    places = review(lens("bugs", *same)).answer
    assert all(f"`a.py:{3 * n + 1}`" in places for n in range(40))


def test_of_a_change_each_file_has_as_many_remarks_as_the_answer_holds() -> None:
    given = [
        remark(line=3 * n + 1, rule=f"R{n}", message=f"Wrong {n}") for n in range(MOST_SHOWN + 2)
    ]
    answer = review(lens("bugs", *given, base="0123456789abcdef" + "0" * 24)).answer
    assert answer.count("### warning · `a.py:") == MOST_SHOWN
    assert "### And 2 more remarks\n" in answer


def test_in_a_change_many_remarks_of_one_rule_hide_no_other_and_are_told_in_the_verdict() -> None:
    given = [remark(line=3 * n + 1, rule="R", message=f"Wrong {n}") for n in range(95)]
    other = remark(line=999, rule="W", message="Another one")
    answer = review(lens("bugs", *given, other, base="0123456789abcdef" + "0" * 24)).answer
    assert "**96 warnings in 1 file, 95 of them by the one rule bugs:R.**" in answer
    assert answer.count("### warning · `a.py:") == MOST_PER_RULE + 1
    assert "### warning · `a.py:999" in answer and "### And 85 more remarks" in answer
    assert "by the one rule" not in review(lens("bugs", *given[:9])).answer


def test_a_defect_that_stands_in_many_places_is_told_once_with_its_places() -> None:
    given = [remark(file=f"{n:02}.py", line=n, column=4, rule="R") for n in range(1, 13)]
    synthesis = review(lens("bugs", *given))
    assert synthesis.answer.count("### warning") == 1
    assert "- The same at `02.py:2:4`, `03.py:3:4`," in synthesis.answer
    assert "`09.py:9:4` and 3 more places." in synthesis.answer
    assert "**12 warnings in 12 files.**" in synthesis.answer
    assert len(remarks_of(synthesis)) == 12, "the data have each place"


def test_the_answer_begins_with_the_one_thing_to_do_and_why() -> None:
    shell = remark(
        file="b.py", line=3, column=5, rule="B602", message="A shell", severity="critical"
    )
    weak = remark(line=9, rule="B324", message="MD5", severity="critical", confidence=80)
    answer = review(lens("security", shell, weak, remark(line=20, message="Else"))).answer
    assert answer.index("**If you do one thing**") < answer.index("In the tree")
    assert (
        "**If you do one thing**, look at `b.py:3:5` (critical): A shell. The shell interprets the"
        " text" in answer
    )
    assert "It comes first because a stranger may have code of theirs run." in answer
    for given in ([shell], [remark(severity="info"), remark(severity="info", line=5)]):
        assert "If you do one thing" not in review(lens("security", *given)).answer


def test_the_one_thing_to_do_is_what_can_do_most_harm_and_equals_are_called_equal() -> None:
    loops = [remark(file="a.js", line=n, rule=f"no-self-{n}", message=f"M{n}") for n in range(1, 6)]
    evil = remark(file="z.js", line=90, rule="no-eval", message="Text that is run")
    key = remark(file="k.py", line=1, rule="NPM tokens", message="A token", severity="critical")
    told = review(lens("javascript", *loops, evil)).answer
    assert "look at `z.js:90` (warning): Text" in told
    told = review(lens("javascript", *loops)).answer
    assert "look at `a.js:1` (warning)" in told
    assert "nothing that is listed can do more harm; 4 other remarks may do as much." in told
    surer = loops[3].model_copy(update={"confidence": 99})
    told = review(lens("javascript", *loops[:3], surer)).answer
    assert "look at `a.js:4` (warning)" in told and "and this one is the surest." in told
    told = review(lens("secrets", key), lens("javascript", evil)).answer
    assert "look at `k.py:1` (critical): A token" in told, "severity comes before harm"


def test_what_a_remark_can_do_comes_before_how_sure_it_is_and_before_its_place() -> None:
    harms = [
        remark(lens="secrets", rule="NPM tokens", message="A token"),
        remark(rule="no-eval", message="Evaluates"),
        remark(rule="js-tls-unverified", message="Nobody is verified"),
        remark(rule="SC2115", message="May expand to the root"),
        remark(by_agent=True, verdict="confirmed", message="The last price is counted twice"),
        remark(rule="F821", message="Undefined name", matters="The line raises NameError."),
        remark(rule="W1", message="Odd"),
    ]
    worst_last = [
        each.model_copy(update={"line": 99 - number, "confidence": 99 - number})
        for number, each in enumerate(reversed(harms))
    ]
    for left in range(len(harms), 1, -1):
        told, chosen = one_thing(worst_last[:left]), worst_last[left - 1]
        assert f"look at `a.py:{chosen.line}` (warning): {chosen.message}." in told
        assert f"It comes first because {HARMS[harm_of(chosen)]}." in told


def test_of_what_does_as_much_harm_what_was_shown_comes_first_even_of_an_agent() -> None:
    shell = remark(line=3, rule="B602", message="A shell", confidence=99)
    agents = {"by_agent": True, "verdict": "confirmed", "rule": "injection", "message": "A query"}
    proof = {"verdict": "proved", "why": "It fails"}
    assert "A shell" in one_thing([shell, remark(line=9, **agents)])
    told = one_thing([shell, remark(line=9, **agents, proof=proof)])
    assert "A query" in told and "and what was run for it fails" in told


def test_the_last_line_of_a_terminal_names_the_same_remark_on_one_line() -> None:
    weak = remark(line=9, rule="B324", message="MD5", severity="critical")
    shell = remark(file="b.py", line=3, rule="B602", message="A\x1b[2J\nshell", severity="critical")
    assert first_in_line([weak, shell]) == "b.py:3: A\\x1b[2J shell"
    assert first_in_line([shell]) and not one_thing([shell]), "even where it is the only one"
    assert first_in_line([remark(severity="info")]) == ""


def test_a_matter_of_style_or_outside_production_is_not_the_one_thing_to_do() -> None:
    style = remark(lens="style", rule="E501", message="A long line", confidence=100)
    odd = remark(line=9, rule="W1", message="Odd", confidence=60)
    key = remark(lens="secrets", rule="k", message="A key", severity="critical", kind="tests")
    assert "Odd" in one_thing([key, style, odd])
    assert "A key" in one_thing([key, style])
    assert one_thing([style, style.model_copy(update={"message": "A longer line"})]) == ""


def test_each_remark_says_why_it_matters_and_what_to_do_where_somebody_wrote_that() -> None:
    known = remark(rule="B602", message="A shell")
    told = remark(rule="B324", line=5, suggestion="Use another")
    synthesis = review(lens("security", known, told, remark(rule="B999", line=9)))
    by_rule = {each.rule: each for each in remarks_of(synthesis)}
    assert by_rule["B602"].suggestion.startswith("Pass a list")
    assert by_rule["B324"].suggestion.startswith("Use SHA-256"), "a tool may only silence"
    assert (by_rule["B999"].matters, by_rule["B999"].suggestion) == ("", "")
    assert synthesis.answer.count("- Why it matters: ") == 2


def test_two_names_of_one_defect_in_one_line_are_one_remark() -> None:
    for one, other in (("PLE2502", "B613"), ("B012", "SIM107")):
        found = [remark(lens="bugs", rule=one), remark(lens="security", rule=other)]
        assert len(merge_remarks(found)) == 1


def test_code_of_a_request_that_is_run_is_one_remark_whatever_tools_call_it() -> None:
    ours = remark(lens="patterns", rule="js-code-of-request", severity="critical", message="Runs")
    for rule in ("no-eval", "no-implied-eval"):
        (one,) = merge_remarks([remark(lens="javascript", rule=rule, message="eval"), ours])
        assert (one.rule, one.also) == ("js-code-of-request", (f"javascript:{rule}",))


def test_defects_in_lines_one_after_another_stay_apart_when_two_lenses_see_each() -> None:
    ours = [remark(lens="patterns", rule="js-code-of-request", line=n) for n in range(1, 6)]
    theirs = [remark(lens="javascript", rule="no-eval", line=n) for n in range(1, 6)]
    for found in ([*ours, *theirs], [*theirs, *ours]):
        assert sorted(each.line for each in merge_remarks(found)) == [1, 2, 3, 4, 5]


def test_what_is_only_complex_is_a_paragraph_with_the_three_worst_places() -> None:
    tangled = [
        remark(
            file=f"{n}.py",
            line=n,
            rule="complex-function",
            weight=n,
            summed=True,
            message=f"Of {n}",
            severity="warning" if n > 2 else "info",
        )
        for n in range(1, 6)
    ]
    synthesis = review(lens("complexity", *tangled), lens("bugs", remark()))
    assert [each.lens for each in remarks_of(synthesis)] == ["bugs"]
    assert "**1 warning in 1 file.**" in synthesis.answer
    worst = "`5.py:5` (Of 5); `4.py:4` (Of 4); `3.py:3` (Of 3)."
    assert f"**complexity**, 5 places, the worst: {worst}" in synthesis.answer
    summed = synthesis.data["summed"]
    assert isinstance(summed, dict) and isinstance(summed["complexity"], dict)
    assert summed["complexity"]["remarks"] == 5


def test_what_is_no_remark_is_counted_and_does_no_harm() -> None:
    good = remark().model_dump(mode="json")
    finding = Finding(
        subtask_id="bugs",
        status="complete",
        data={
            "remarks": ["text", good, {"severity": "odd"}, None],
            "suppressed": "many",
            "files_read": 5,
            "unread": 2,
            "unread_files": ["x"],
            "unread_why": {"binary": 2},
        },
    )
    data = review(finding).data
    assert [each.rule for each in remarks_of(review(finding))] == [""]
    assert (data["cut"], data["suppressed"], data["files_read"]) == (3, 0, 5)
    assert (data["unread_in_all"], data["unread"]) == (2, [])


HOSTILE = (
    "<script>alert(1)</script>",
    "[click](http://evil.example)",
    "![x](http://evil.example/x.png)",
    "http://evil.example and www.evil.example",
    "# heading",
    "line\n\n# heading\n- item",
    "`code` *bold* __bold__ | cell |",
    "\x1b]8;;http://evil.example\x07link",
    "\u202egnp.exe",
    "1. item",
    "&lt;b&gt;",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_the_repository_stays_text(text: str) -> None:
    given = remark(message=text, file=text, suggestion=text, rule=text)
    answer = review(lens("bugs", given), lens("secrets", not_parsed=[text], notes=[text])).answer
    renderer = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table")
    tokens = [
        token for block in renderer.parse(answer) for token in (block, *(block.children or []))
    ]
    kinds = {token.type for token in tokens}
    assert not kinds & {"html_inline", "html_block", "link_open", "image", "em_open", "table_open"}
    headings = [token for token in tokens if token.type == "heading_open"]
    assert len(headings) == 2
    assert not {"\x1b", "\u202e", "\x07"} & set(answer)


# ---------------------------------------------------------------- merge


def test_findings_are_merged_under_their_titles_and_gaps_are_named() -> None:
    subtasks = tuple(
        Subtask(id=f"t{n}", title=title, instruction="", role="r")
        for n, title in enumerate(("Failed one", "Good one", "Half one", "Skipped one"))
    )
    findings = (
        Finding(subtask_id="t0", status="failed", why="no sources"),
        Finding(
            subtask_id="t1",
            status="complete",
            content="It is **blue**.",
            confidence=90,
            model="claude",
        ),
        Finding(
            subtask_id="t2",
            status="escalated",
            why="timeout: too long",
            escalation=Escalation(reason="timeout", why="too long", partial="Half of it"),
        ),
        Finding(subtask_id="t3", status="skipped", why="because t0 failed"),
    )
    synthesis = TEMPLATES["merge"](
        SynthesisMaterial(goal="g", subtasks=subtasks, findings=findings)
    )
    answer = synthesis.answer
    assert answer.index("## Good one\n\nIt is **blue**.") < answer.index("## Half one")
    assert "*Uncertain: this subtask was escalated before it was complete.*\n\nHalf of it" in answer
    assert "## Failed one" not in answer
    assert synthesis.gaps == (
        "Half one: timeout: too long",
        "Failed one: no sources",
        "Skipped one: because t0 failed",
    )
    assert answer.endswith("**Missing or incomplete**: Half one, Failed one, Skipped one.")
    assert "no sources" not in answer, "why is said once, by the gaps"
    assert (synthesis.by_template, synthesis.confidence) == (True, 22)


def test_a_merge_of_what_tools_found_claims_no_confidence() -> None:
    found = Finding(subtask_id="t1", status="complete", content="4 files", confidence=100)
    synthesis = TEMPLATES["merge"](SynthesisMaterial(goal="g", findings=(found,)))
    assert synthesis.confidence is None


def test_a_merge_of_nothing_says_so() -> None:
    assert TEMPLATES["merge"](SynthesisMaterial(goal="g")).answer == "Nothing was found out."


# ---------------------------------------------------------------- text


def test_a_terminal_sees_escapes_instead_of_controls() -> None:
    assert for_terminal("a\x1b[31m\u202eb\n\tc\x07") == "a\\x1b[31m\\u202eb\\n\\tc\\x07"
    assert for_terminal("a\n\tb\x1b", lines=True) == "a\n\tb\\x1b"
    assert for_terminal("caf\udce9 é 漢字 😀") == "caf\\xe9 é 漢字 😀"


@pytest.mark.parametrize("text", ["plain", "a`b", "``", "`", " padded ", "", "a|b", "x\ny"])
def test_a_code_span_holds_any_text(text: str) -> None:
    (block,) = [each for each in MarkdownIt().parse(f"x {code_span(text)} y") if each.children]
    assert block.children is not None
    spans = [each.content for each in block.children if each.type == "code_inline"]
    assert spans == [text.replace("\n", "\\n").replace("|", "│") or " "]


# ---------------------------------------------------------------- merge, by theme


def merged(*contents: str, needs: tuple[str, ...] = ()) -> Synthesis:
    findings = tuple(
        Finding(subtask_id=f"t{place}", status="complete", content=text, confidence=80)
        for place, text in enumerate(contents, 1)
    )
    subtasks = tuple(
        Subtask(id=each.subtask_id, title=f"Part {each.subtask_id}", instruction="", role="r")
        for each in findings
    )
    last = subtasks[-1].model_copy(update={"depends_on": needs})
    return TEMPLATES["merge"](
        SynthesisMaterial(goal="g", subtasks=(*subtasks[:-1], last), findings=findings)
    )


def test_what_findings_say_under_one_heading_stands_together_with_its_sources() -> None:
    told = merged(
        "## Price\n\n12 euro\n\n## Staff\n\n40 people",
        "## Price:\n\n13 euro\n\n## History\n\nSince 1990",
        "## price\n\n12 euro",
    )
    price, *rest = told.answer.split("\n\n## ")
    assert price == "## Price\n\n12 euro [t1] [t3]\n\n13 euro [t2]"
    assert rest == ["Part t1\n\n### Staff\n\n40 people", "Part t2\n\n### History\n\nSince 1990"]


def test_a_conclusion_stands_before_what_it_rests_on() -> None:
    told = merged("12 euro", "13 euro", "Take the first", needs=("t1", "t2"))
    titles = [line for line in told.answer.splitlines() if line.startswith("## ")]
    assert titles == ["## Part t3", "## Part t1", "## Part t2"]


def test_contradictions_stand_beside_an_answer_that_no_model_wrote() -> None:
    told = merged("The lease of A costs 12 euro.", "The lease of A costs 13 euro.")
    assert told.conflicts == (
        "t1 says «The lease of A costs 12 euro.»; t2 says «The lease of A costs 13 euro.»",
    )
