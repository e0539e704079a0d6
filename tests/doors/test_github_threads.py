"""What happens to review threads, decided without GitHub; and what an event asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.contracts import Remark
from holdfast.doors.github import threads
from holdfast.doors.github.checks import as_commands
from holdfast.doors.github.event import Asked, of_event, of_pull, read_event
from holdfast.doors.github.threads import (
    Mark,
    Seen,
    Thread,
    as_back,
    as_gone,
    as_read,
    hash_of,
    keyed,
    lines_of,
    plan,
    read_mark,
)
from holdfast.errors import Refused
from holdfast.rendering.comment import MARK

EVENTS: dict[str, Any] = json.loads((Path(__file__).parent / "github" / "events.json").read_text())
HEAD = "a" * 40


def remark(line: int = 1, **fields: Any) -> Remark:
    given = {
        "severity": "warning",
        "file": "a.py",
        "line": line,
        "message": "m",
        "confidence": 90,
        "lens": "bugs",
        "rule": "F821",
        "fingerprint": f"{line:032x}",
    }
    return Remark.model_validate({**given, **fields})


AGENT: dict[str, Any] = {"by_agent": True, "verdict": "confirmed", "code": "x = 1", "lens": "logic"}


def thread(of: Remark, *, gone: bool = False, **fields: Any) -> Thread:
    ((key, _),) = keyed([of]).items()
    mark = Mark.of(key, of)
    given: dict[str, Any] = {"resolved": gone, "answered": False, **fields}
    given.setdefault("alone", not given["answered"])
    made = Thread("T", "C", of.file, f"{mark}Words.", mark=mark, **given)
    if gone:
        made = Thread("T", "C", of.file, as_gone(made, HEAD), mark=mark, **given)
    return made


def seen(*remarks: Remark, **fields: Any) -> Seen:
    lines = {threads.place_of(each) for each in remarks}
    return Seen(remarks, fields.pop("in_diff", lines), fields.pop("whole", True), **fields)


ONE = remark()


@pytest.mark.parametrize(
    ("there", "what", "expected"),
    [
        ([], seen(ONE), "opened"),
        ([thread(ONE)], seen(ONE), ""),
        ([thread(ONE)], seen(), "resolved"),
        ([thread(ONE, answered=True)], seen(), "left"),
        ([thread(ONE, answered=True)], seen(ONE), ""),
        # A person has closed it.
        ([thread(ONE, resolved=True)], seen(ONE), ""),
        ([thread(ONE, resolved=True)], seen(), ""),
        # This program has closed it.
        ([thread(ONE, gone=True)], seen(ONE), "reopened"),
        ([thread(ONE, gone=True)], seen(), ""),
        ([thread(ONE, gone=True, answered=True)], seen(ONE), ""),
        # And a person has opened it again.
        ([thread(ONE, gone=True, resolved=False)], seen(), ""),
        ([thread(ONE)], seen(whole=False), ""),
        ([thread(ONE)], seen(failed=("bugs",)), ""),
        ([thread(ONE)], seen(failed=("shell",)), "resolved"),
        ([thread(ONE)], seen(unread=("a.py",)), ""),
        # An agent looks at new commits alone: its thread stays for as long as the code is there.
        ([thread(remark(**AGENT))], seen(codes={"a.py": {hash_of("x=1")}}), "standing"),
        ([thread(remark(**AGENT))], seen(codes={"a.py": {hash_of("y = 1")}}), "resolved"),
        ([thread(remark(**AGENT))], seen(codes={}), "resolved"),
        ([thread(remark(**AGENT))], seen(), "standing"),
        ([thread(remark(**AGENT), resolved=True)], seen(codes={"a.py": {hash_of("x=1")}}), ""),
    ],
)
def test_a_thread_is_ours_until_somebody_else_has_a_word_in_it(
    there: list[Thread], what: Seen, expected: str
) -> None:
    made = plan(there, what)
    names = ("opened", "resolved", "reopened", "left", "standing")
    found = {name for name in names if getattr(made, name)}
    assert found == ({expected} if expected else set())


def test_the_most_severe_get_a_thread_first_and_the_rest_is_counted() -> None:
    many = [remark(n) for n in range(1, 41)] + [remark(50, severity="critical")]
    made = plan([], seen(*many, in_diff={("a.py", "RIGHT", n) for n in range(2, 51)}))
    assert len(made.opened) == threads.MOST_NEW and made.opened[0][1].line == 50
    assert (made.outside, made.beyond) == (1, 10)


def test_equal_remarks_have_threads_of_their_own() -> None:
    same = [remark(3), remark(3, column=9)]
    assert [key.partition(":")[2] for key in keyed(same)] == ["1", "2"]


def test_a_mark_is_read_as_it_was_written_and_nothing_else_is() -> None:
    for each in (ONE, remark(**AGENT), remark(lens="a b --> <script>", fingerprint="x")):
        ((key, _),) = keyed([each]).items()
        mark = Mark.of(key, each)
        assert read_mark(f"{mark}Words.") == mark and "script>" not in str(mark)
        assert read_mark(f"{mark}Words.".replace("\n", "\r\n")) == mark
    assert read_mark(f"Look: {Mark.of('a' * 32 + ':1', ONE)}") is None


def test_what_is_gone_says_so_once_and_what_is_back_says_it_no_more() -> None:
    gone = as_gone(thread(ONE), HEAD)
    again = thread(ONE, gone=True)
    assert gone.count("✅ Gone in `aaaaaaaaaaaa`.") == 1 and gone.endswith("Words.")
    assert as_gone(again, "b" * 40).count("Gone in") == 1
    assert as_back(again) == thread(ONE).body


def test_only_its_beginning_says_up_to_where_agents_have_read() -> None:
    wrote = f"{MARK}\n\n```\n{as_read(MARK, 'b' * 40)}\n```\n"
    assert threads.read_up_to(wrote) == ""
    assert threads.read_up_to(as_read(wrote, HEAD)) == HEAD
    assert as_read(wrote, "") == wrote


def test_a_comment_may_stand_at_the_lines_of_a_difference_and_at_no_others() -> None:
    patch = (
        "@@ -2,3 +2,3 @@ def f():\n a\n-b\n+c\n d\n\\ No newline at end of file\n@@ -9 +9,0 @@\n-x"
    )
    assert [*lines_of("f", patch)] == [
        ("f", "RIGHT", 2), ("f", "LEFT", 2), ("f", "LEFT", 3), ("f", "RIGHT", 3),
        ("f", "RIGHT", 4), ("f", "LEFT", 4), ("f", "LEFT", 9),
    ]  # fmt: skip
    deleted = remark(4, deleted=True, base_line=9)
    assert threads.place_of(deleted) == ("a.py", "LEFT", 9)


# ---------------------------------------------------------------- events

OURS = "Codertocat/Hello-World"
PULL_HEAD, PULL_BASE = (
    EVENTS["pull_request.opened"]["pull_request"][side]["sha"] for side in ("head", "base")
)


@pytest.mark.parametrize("action", ["opened", "synchronize", "reopened"])
def test_a_pull_request_asks_for_its_head_against_its_base(action: str) -> None:
    asked = of_event("pull_request", EVENTS[f"pull_request.{action}"], {})
    assert (asked.repository, asked.head, asked.base) == (OURS, PULL_HEAD, PULL_BASE)
    assert asked.ref == "refs/pull/2/head" and asked.pull is not None
    assert (asked.pull.number, asked.pull.fork) == (2, False)
    assert asked.pull.intent.startswith("Update the README")


@pytest.mark.parametrize("repo", [{"full_name": "stranger/Hello-World"}, None])
def test_a_head_elsewhere_or_of_a_repository_that_is_gone_is_a_forks(
    repo: dict[str, str] | None,
) -> None:
    payload = json.loads(json.dumps(EVENTS["pull_request.opened"]))
    payload["pull_request"]["head"]["repo"] = repo
    asked = of_event("pull_request", payload, {})
    assert asked.pull is not None and asked.pull.fork


def test_a_repository_that_is_asked_for_by_an_older_name_is_no_fork_of_itself() -> None:
    asked = of_pull(EVENTS["pull_request.opened"]["pull_request"], "old/name")
    assert asked.pull is not None and not asked.pull.fork


def test_other_events_ask_for_what_they_brought() -> None:
    new = EVENTS["push.created"]
    assert of_event("push", new, {}) == Asked(OURS, new["after"], "", "refs/heads/master")
    pushed = of_event("push", {**new, "before": "b" * 40}, {})
    assert pushed.base == "b" * 40 and pushed.pull is None
    with pytest.raises(Refused, match="was deleted; nothing is to review"):
        of_event("push", EVENTS["push.deleted"], {})
    group = EVENTS["merge_group"]["merge_group"]
    asked = of_event("merge_group", EVENTS["merge_group"], {})
    assert (asked.head, asked.base) == (group["head_sha"], group["base_sha"])
    environ = {"GITHUB_SHA": HEAD, "GITHUB_REF": "refs/heads/main"}
    for name in ("workflow_dispatch", "schedule"):
        asked = of_event(name, EVENTS["workflow_dispatch"], environ)
        assert asked == Asked("octo-org/octo-repo", HEAD, "", "refs/heads/main", whole=True)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("", "{}", "give --pull NUMBER and --repository"),
        ("pull_request_target", "{}", "this reviews on pull_request, push"),
        ("push", "[]", "no JSON of an event"),
        ("push", '{"a": ' * 9000, "no JSON of an event"),
        ("push", "{}", "as GitHub describes it ('repository')"),
        ("push", '{"repository": {"full_name": "../x"}}', "give it as OWNER/NAME"),
        ("push", '{"repository": {"full_name": "a/b"}, "after": "--x"}', "is no commit"),
        ("pull_request", '{"pull_request": 3, "repository": {"full_name": "a/b"}}', "describes it"),
        (
            "pull_request",
            '{"pull_request": {"number": "x"}, "repository": {"full_name": "a/b"}}',
            "describes it",
        ),
    ],
)
def test_an_event_that_cannot_be_meant_is_refused_in_a_line(
    name: str, content: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "event.json"
    file.write_text(content)
    with pytest.raises(Refused) as refused:
        read_event({"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(file)})
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_what_strangers_wrote_ends_no_command_of_a_runner() -> None:
    hostile = remark(
        7, file="a,line=1::x\n::error::y.py", message="one\n::add-mask::two %0A", rule="r:,"
    )
    (line,) = as_commands([hostile])
    assert "\n" not in line and line.startswith("::warning file=a%2Cline=1%3A%3Ax")
    assert line.endswith("::one ::add-mask::two %250A.")
    assert ",title=r%3A%2C::" in line
    many = as_commands([remark(n) for n in range(1, 30)] + [remark(99, severity="critical")])
    assert len(many) == 11 and many[-1].startswith("::error file=a.py,line=99")
