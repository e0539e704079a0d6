"""A review for programs: SARIF as code scanning takes it in, and a comment for a pull request."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

from holdfast.contracts import Excerpt, Gap, PinnedInput, Remark, Report
from holdfast.rendering import comment, sarif
from holdfast.rendering.comment import MOST_LETTERS, as_comment
from holdfast.rendering.sarif import MOST_RESULTS, as_sarif, encoded

TEXT = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 1}},
}
# What of the official schema, and of what GitHub asks beyond it, concerns what is written here.
RULE = {
    "type": "object",
    "required": ["id", "shortDescription", "fullDescription", "help"],
    "properties": {
        "id": {"type": "string", "minLength": 1},
        "shortDescription": TEXT,
        "fullDescription": TEXT,
        "help": TEXT,
        "defaultConfiguration": {"properties": {"level": {"enum": ["error", "warning", "note"]}}},
        "properties": {
            "properties": {
                "tags": {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
                "precision": {"enum": ["very-high", "high", "medium", "low"]},
                "security-severity": {"type": "string", "pattern": r"^\d+\.\d+$"},
            }
        },
    },
}
LOCATION = {
    "required": ["artifactLocation", "region"],
    "additionalProperties": False,
    "properties": {
        "artifactLocation": {
            "required": ["uri", "uriBaseId"],
            "properties": {"uri": {"type": "string", "pattern": r"^[A-Za-z0-9._~/%-]+$"}},
        },
        "region": {
            "required": ["startLine"],
            "additionalProperties": False,
            "properties": {
                "startLine": {"type": "integer", "minimum": 1},
                "startColumn": {"type": "integer", "minimum": 1},
            },
        },
    },
}
RESULT = {
    "type": "object",
    "required": ["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"],
    "properties": {
        "level": {"enum": ["error", "warning", "note"]},
        "rank": {"type": "number", "minimum": 0, "maximum": 100},
        "message": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "locations": {
            "type": "array",
            "minItems": 1,
            "items": {
                "required": ["physicalLocation"],
                "properties": {"physicalLocation": LOCATION},
            },
        },
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
SUBSET = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "required": ["tool", "results", "originalUriBaseIds", "columnKind"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name", "rules"],
                                "properties": {
                                    "rules": {"type": "array", "uniqueItems": True, "items": RULE}
                                },
                            }
                        },
                    },
                    "invocations": {
                        "items": {
                            "required": ["executionSuccessful"],
                            "properties": {"executionSuccessful": {"type": "boolean"}},
                        }
                    },
                    "results": {"type": "array", "items": RESULT},
                },
            },
        },
    },
}


def remark(**fields: Any) -> Remark:
    given = {
        "severity": "critical",
        "file": "a.py",
        "line": 3,
        "column": 5,
        "message": "A shell",
        "rule": "B602",
        "lens": "security",
        "confidence": 90,
    }
    return Remark.model_validate({**given, **fields})


def report(*remarks: Remark, **fields: Any) -> Report:
    data = {"remarks": [each.model_dump(mode="json") for each in remarks], **fields.pop("data", {})}
    return Report(run_id="r", goal="g", **{"status": "complete", "data": data, **fields})


def run_of(written: str) -> dict[str, Any]:
    """The only run of a document, which is as the schema says."""
    document = json.loads(written)
    wrong = [each.message for each in Draft202012Validator(SUBSET).iter_errors(document)]
    assert not wrong, wrong[:3]
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert isinstance(run, dict)
    return run


def test_a_result_says_rule_place_and_level() -> None:
    known = remark(matters="A shell interprets it.", suggestion="Pass a list")
    run = run_of(as_sarif(report(known, remark(severity="warning", rule="B113", line=0))))
    first, second = run["results"]
    assert (first["ruleId"], first["level"], first["rank"]) == ("security/B602", "error", 90.0)
    assert first["message"]["text"] == "A shell. Pass a list."
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 3, "startColumn": 5}
    assert second["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    rule = run["tool"]["driver"]["rules"][0]
    assert rule["help"]["text"] == "A shell interprets it. Pass a list."
    assert rule["properties"]["security-severity"] == "9.0"
    assert "%SRCROOT%" in run["originalUriBaseIds"]


def test_what_was_refuted_is_no_result_and_what_is_missing_is_said() -> None:
    gap = Gap(subtask_id="bugs", title="Find bugs", status="failed", why="ruff crashed")
    told = report(
        remark(verdict="refuted", why="no", by_agent=True),
        remark(file=""),
        status="complete_with_gaps",
        gaps=(gap,),
    )
    run = run_of(as_sarif(told))
    assert run["results"] == []
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    said, nowhere = (each["message"]["text"] for each in invocation["toolExecutionNotifications"])
    assert said == "Find bugs: ruff crashed"
    assert nowhere == "1 remark about the repository, and no file of it", "the gate counts it"


def test_a_refuted_remark_that_counts_is_marked_with_the_reason_wherever_it_stands() -> None:
    said = report(
        remark(severity="warning"),
        remark(verdict="refuted", why="It is `quoted`"),
        remark(file="b.py", severity="warning"),
    )
    results = run_of(as_sarif(said))["results"]
    (refuted,) = [each for each in results if "properties" in each]
    assert refuted["message"]["text"] == "A shell. Refuted by a model: It is `quoted`."
    assert refuted["properties"] == {"verdict": "refuted", "verdictReason": "It is `quoted`"}
    assert "suppressions" not in refuted, "the gate counts it"
    text = as_comment(said)
    assert "🔴 **1 critical, 2 warnings in 2 files, 1 of them refuted by a model.**" in text
    assert text.count("refuted by a model: A shell</summary>") == 1
    assert "Refuted by a model: It is `quoted`. It counts all the same" in text


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"message": "Undefined name `x`"}, "Undefined name …"),
        ({"message": "'os' is not used. Take it out."}, "… is not used"),
        ({"message": "Couldn't parse a.py's end"}, "Couldn't parse a.py's end"),
        ({"message": "m", "rule": "AWS Access Key"}, "AWS Access Key"),
        ({"message": "`x`", "rule": "F1"}, "F1"),
        ({"message": "A key (value marked 620cba3e)"}, "A key"),
        ({"message": "eval() can be harmful"}, "eval() can be harmful"),
        ({"message": "word " * 40}, "word " * 19 + "word…"),
    ],
)
def test_a_rule_is_titled_by_its_defect_and_tells_the_consequence_below(
    fields: dict[str, str], title: str
) -> None:
    told = remark(matters="Others read it, and so on.", suggestion="Quote it", **fields)
    (rule,) = run_of(as_sarif(report(told)))["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == title
    both = "Others read it, and so on. Quote it."
    assert (rule["fullDescription"]["text"], rule["help"]["text"]) == (both, both)


def test_what_was_reviewed_is_told_by_its_commit_and_not_by_a_path_of_this_machine() -> None:
    pinned = PinnedInput(
        name="repo", kind="repository", size=1, path="/home/ada/shop", commit="c0ffee", changed=2
    )
    written = as_sarif(report(remark(), inputs=(pinned,)))
    assert run_of(written)["properties"] == {"revisionId": "c0ffee", "filesNotCommitted": 2}
    assert "ada" not in written and "versionControlProvenance" not in written
    assert "properties" not in run_of(as_sarif(report(remark())))


LOST = {
    "not_parsed": ["deploy [1].sh"],
    "unread_in_all": 3,
    "unread": [{"path": "x", "why": "binary"}, {"path": "y", "why": "binary"}],
}


def test_what_was_not_parsed_and_not_read_is_told_to_programs_with_its_place() -> None:
    run = run_of(as_sarif(report(data=LOST)))
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True
    unread, unparsed = invocation["toolExecutionNotifications"]
    assert unread["message"]["text"] == "3 files not read: binary (2)"
    assert unparsed["message"]["text"] == "Some lens could not parse this file"
    (place,) = unparsed["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "deploy%20%5B1%5D.sh"


def test_a_text_that_was_not_read_is_told_with_its_place_and_the_review_is_not_whole() -> None:
    missed = [{"path": "app/t.js", "why": "larger than 1 MiB"}]
    run = run_of(as_sarif(report(data={"missed_in_all": 3, "missed": missed})))
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    named, more = invocation["toolExecutionNotifications"]
    assert named["message"]["text"] == "Not read: larger than 1 MiB"
    (place,) = named["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "app/t.js"
    assert more["message"]["text"] == "2 more not read"


def test_of_very_many_files_that_were_not_parsed_the_rest_is_counted() -> None:
    names = [f"{n}.sh" for n in range(1_203)]
    run = run_of(as_sarif(report(data={"not_parsed": names})))
    told = run["invocations"][0]["toolExecutionNotifications"]
    assert len(told) == 1_001
    assert told[-1]["message"]["text"] == "203 more files could not be parsed"


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("src/a b.py", "src/a%20b.py"),
        ("a[1](2)#?%.py", "a%5B1%5D%282%29%23%3F%25.py"),
        ("c:d.py", "c%3Ad.py"),
        ("é\n\x1b.py", "%C3%A9%0A%1B.py"),
    ],
)
def test_a_path_is_a_relative_uri_whatever_its_name(path: str, uri: str) -> None:
    assert encoded(path) == uri
    run_of(as_sarif(report(remark(file=path))))


def test_a_fingerprint_survives_moved_lines_and_tells_equal_lines_apart() -> None:
    def prints(*lines: int) -> list[str]:
        given = [
            remark(line=line, excerpt=Excerpt(first=line, lines=("  call(x)",))) for line in lines
        ]
        results = run_of(as_sarif(report(*given)))["results"]
        return [each["partialFingerprints"]["holdfast/v1"] for each in results]

    assert prints(3) == prints(40)
    assert prints(3, 9)[0] == prints(3)[0] != prints(3, 9)[1]


def test_more_than_a_service_takes_is_left_out_by_rank_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sarif, "MOST_RESULTS", 3)
    run = run_of(as_sarif(report(*(remark(line=line) for line in range(1, 6)))))
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert [each["region"]["startLine"] for each in places] == [1, 2, 3]
    (said,) = run["invocations"][0]["toolExecutionNotifications"]
    assert said["message"]["text"] == "2 remarks beyond what one file may hold"
    assert MOST_RESULTS <= 25_000


@pytest.mark.long
def test_the_document_stays_below_the_size_that_a_service_takes() -> None:
    long = [remark(line=line, message=f"{line}" + "x" * 400) for line in range(1, 12_000)]
    written = as_sarif(report(*long))
    assert len(written.encode()) < 10_000_000
    assert len(run_of(written)["results"]) > 1_000


# ---------------------------------------------------------------- the comment


def test_a_comment_counts_and_folds_each_defect_with_links() -> None:
    shell = remark(matters="A shell interprets it.", suggestion="Pass a list")
    go = {"name": "Go", "kind": "code", "files": 3, "percent": 30}
    looked = {"looked_at": {"security": 7}, "agents": {"logic": 12}, "files_read": 9}
    text = as_comment(
        report(shell, remark(file="b [c].py", line=7), data={**looked, "languages": [go]}),
        "https://example.test/o/r/blob/abc",
    )
    assert "🔴 **2 critical in 2 files.** ⚠️ No analyser looked for defects in Go (30 %)." in text
    assert text.count("<details>") == text.count("</details>") == 2
    assert "<summary>Looked at: 9 files by security, logic</summary>" in text
    assert "- security looked at 7 files." in text and "logic (12 tool calls)" in text
    assert "[`a.py:3:5`](https://example.test/o/r/blob/abc/a.py#L3)" in text
    assert "blob/abc/b%20%5Bc%5D.py#L7)" in text
    assert "**No analyser looked for defects** in Go (3 files, 30 %)." in text
    assert "](" not in as_comment(report(shell)), "without an address nothing is a link"


def test_a_comment_links_a_deleted_file_to_the_base_and_folds_many_places() -> None:
    gone = remark(file="old.py", rule="deleted-test", gone=True)
    base, head = "b" * 40, "https://example.test/o/r/blob/" + "a" * 40
    told = report(gone, *(remark(line=n) for n in range(1, 100)), data={"base": base})
    text = as_comment(told, head)
    assert f"https://example.test/o/r/blob/{base}/old.py#L3)" in text
    assert f"{head}/a.py#L2)" in text and "a.py#L20)" not in text
    assert "and 90 more places." in text
    assert "/old.py#L3)" not in as_comment(told, "https://example.test/o/r/blob/main")


def test_a_comment_says_what_was_reviewed_and_why() -> None:
    scope = "the whole tree, because no main line was found; the clone is shallow"
    assert f"\n\nReviewed: {scope}.\n\n" in as_comment(report(data={"scope": scope}))


def test_a_comment_without_remarks_says_so_and_when_the_review_is_not_whole() -> None:
    refuted = remark(verdict="refuted", by_agent=True)
    text = as_comment(report(refuted, status="complete_with_gaps"))
    assert "**Nothing was looked at, so nothing is known.** ⚠️ Not whole: complete with gaps" in text
    assert "Not counted: 1 refuted." in text
    text = as_comment(report(status="complete"))
    assert "⚠️ **Nothing was looked at, so nothing is known.**" in text and "✅" not in text


def test_a_comment_marks_what_fails_the_change_and_says_whether_anything_does() -> None:
    both = report(
        remark(), remark(severity="warning", rule="B113"), data={"looked_at": {"bugs": 1}}
    )
    text = as_comment(both, fail_on="critical")
    assert "⛔ 1 remark of these fail the change by `--fail-on critical`." in text
    assert text.count("<summary>⛔ 🔴") == 1 and "<summary>🟠" in text
    assert as_comment(both, fail_on="warning").count("<summary>⛔") == 2
    none = as_comment(report(data={"looked_at": {"bugs": 1}}), fail_on="warning")
    assert "✅ **No remarks in what 1 lens looked at.** None fails the change" in none
    assert "⛔" not in as_comment(both)


def test_a_comment_says_what_could_not_be_parsed_or_read() -> None:
    text = as_comment(report(data={**LOST, "looked_at": {"shell": 1}}))
    assert "⚠️ **No remarks in what 1 lens looked at.** ⚠️ Not whole: 1 file could not be" in text
    assert "- 1 file could not be parsed: `deploy [1].sh`." in text
    assert "- 3 files not read: binary (2)." in text
    many = as_comment(report(remark(), data={"not_parsed": [f"{n}.sh" for n in range(20)]}))
    assert "- 20 files could not be parsed: `0.sh`," in many and "`7.sh`, …." in many


def test_what_the_repository_took_out_of_its_own_review_is_said_to_whoever_reads_the_gate() -> None:
    told = report(data={"hidden": {"path **": 2, "known": 1}})
    said = "3 remarks taken out by the repository's settings or a baseline"
    assert said.replace("'", "'") in as_comment(told).replace("\\", "")
    (invocation,) = run_of(as_sarif(told))["invocations"]
    (only,) = invocation["toolExecutionNotifications"]
    assert only["message"]["text"] == f"{said}: path ** (2), known (1)"


def test_a_comment_stays_as_short_as_it_must_be_and_says_what_it_left_out() -> None:
    many = [remark(line=n, message=f"Number {n} " + "y" * 300) for n in range(1, 2_000)]
    text = as_comment(report(*many))
    assert len(text) <= MOST_LETTERS
    shown = text.count("<details>")
    assert f"And {1_999 - shown:,} more remarks, in the report." in text and shown > 20


UNLISTED: dict[str, Any] = {
    "below_confidence": 3,
    "min_confidence": 50,
    "hidden": {"known": 1},
    "not_listed": [
        remark(severity="info", rule="B404", confidence=2, message="m" * 300).model_dump(
            mode="json"
        ),
        remark(file="@b.py", line=7, hidden="known").model_dump(mode="json"),
    ],
}


def test_what_is_not_listed_is_folded_into_a_comment_a_line_each_and_the_rest_counted() -> None:
    text = as_comment(report(remark(), data=UNLISTED))
    (folded,) = re.findall(r"<summary>Not counted and not listed: (.*?)</details>", text, re.S)
    assert folded.splitlines() == [
        "3 below confidence 50, 1 taken out or known</summary>",
        "",
        f"- **info** `a.py:3:5` {'m' * 120}… (`security:B404`, 2 %)",
        "- **critical** `@\u2060b.py:7:5` A shell (`security:B602`, 90 %), known",
        "- and 2 more remarks",
        "",
    ]
    many = {**UNLISTED, "not_listed": [UNLISTED["not_listed"][0]] * 90, "below_confidence": 90}
    assert "- and 51 more remarks" in as_comment(report(remark(), data=many))
    assert "not listed" not in as_comment(report(remark()))


def test_what_is_new_in_a_line_that_the_change_did_not_touch_is_said() -> None:
    said = "It stands in a line that the change did not touch; it is new since `0123456789ab`."
    assert said in as_comment(report(remark(new_since="0123456789abcdef")))
    assert said not in as_comment(report(remark()))


def test_what_a_comment_escapes_is_shown_as_the_letter_that_it_is() -> None:
    text = as_comment(report(remark(message="Couldn't parse", suggestion="1. Fix it")))
    assert ": Couldn&#x27;t parse</summary>" in text and "&#49;. Fix it." in text


HOSTILE = (
    "</summary></details><script>alert(1)</script>",
    "![x](http://evil.example/x.png)",
    "@everyone #12 org/team",
    "```\n<img src=x>",
    "\x1b[31m\u202e",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comment_calls_nobody_and_holds_no_markup_of_others(text: str) -> None:
    hostile = remark(
        file=f"d/{text}",
        message=text,
        suggestion=text,
        rule=text,
        matters=text,
        excerpt=Excerpt(first=3, lines=(text,)),
    )
    written = as_comment(report(hostile), "https://example.test/b")
    tokens = [
        token
        for block in MarkdownIt("commonmark", {"html": True}).parse(written)
        for token in (block, *(block.children or []))
    ]
    tags = [each.content for each in tokens if each.type in ("html_block", "html_inline")]
    for tag in tags:
        assert not {"<script", "<img"} & {part.lower() for part in tag.split(">")}
        assert "<script" not in tag and "<img" not in tag
    assert sum(tag.count("</details>") for tag in tags) == 1
    assert not any(each.type == "image" for each in tokens)
    assert not {"\x1b", "\u202e"} & set(written)
    prose = [
        re.sub(r"<code>.*?</code>", "", each.content)
        for each in tokens
        if each.type in ("text", "html_block")
    ]
    assert not any("@everyone" in each for each in prose)
    assert comment.MARK in written
