"""Pull requests at a stand-in of GitHub: what stands there after a push, and after each trouble."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from conftest import Runs
from github_api import BOT, EVERYTHING, NUMBER, PERSON, REPOSITORY, Failure, GitHub, Said, serving
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.review.lenses import lenses_of
from holdfast.cli.commands.doors.github import _judge
from holdfast.cli.main import main
from holdfast.cli.shared.pipeline import Pipeline
from holdfast.client.holdfast import Holdfast
from holdfast.contracts import Remark, Report
from holdfast.doors.github.api import Api, ApiFailed
from holdfast.doors.github.event import Asked, Pull
from holdfast.doors.github.pulls import find_pull
from holdfast.doors.github.reviewing import Found, Range, range_of, review
from holdfast.doors.github.telling import Teller
from holdfast.doors.github.threads import read_up_to
from holdfast.errors import Refused
from holdfast.intake.connection import Connection
from parameters import rest_long
from repositories import Repository
from reviewing import PROMPTS, ReviewingModel, finds

pytestmark = pytest.mark.anyio
BAD = "def {name}():\n    return lost_{name}\n"
"""What the lens `bugs` reports: a name that nothing defines."""


def functions(*names: str, good: str = "") -> str:
    return "\n\n".join([*(BAD.format(name=each) for each in names), f"{good}WORD = 1\n"])


Look = Callable[[Asked, Range], Awaitable[Found]]


@dataclass
class Desk:
    """A clone, the stand-in, whoever pushes, and whoever looks at what was pushed."""

    repository: Repository
    github: GitHub
    look: Look
    token: str = "bot-token"
    fail_on: str = "warning"
    said: list[str] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    pushes: int = 0

    async def _sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    def push(self, files: dict[str, str | bytes]) -> str:
        self.pushes += 1
        self.github.head = self.repository.commit({"n.py": f"N = {self.pushes}\n", **files})
        return self.github.head

    async def tell(self, **asked: Any) -> Teller:
        """Review the head, and tell it."""
        given: dict[str, Any] = {
            "ref": f"refs/pull/{NUMBER}/head",
            "pull": Pull(NUMBER, fork=self.github.fork),
            "head": self.github.head,
            "base": self.github.base,
        }
        wanted = Asked(REPOSITORY, **{**given, **asked})
        api = Api(self.token, self.github.address, self.said.append, self._sleep, lambda: 1_000.0)
        async with api:
            since = next((read_up_to(each.body) for each in self.github.comments), "")
            span = await range_of(self.repository.path, wanted, since)
            teller = Teller(
                api=api,
                asked=wanted,
                repository=self.repository.path,
                say=self.said.append,
                gate=lambda report, standing: _judge(Pipeline(self.fail_on), report, standing),
                fail_on=self.fail_on,
            )
            self.judged, self.page = await teller.tell(await self.look(wanted, span))
        return teller

    @property
    def summaries(self) -> list[str]:
        return [each.body for each in self.github.comments if each.author == BOT]

    def open(self) -> list[str]:
        """The files and lines of open threads."""
        return [f"{e.path}:{e.line}" for e in self.github.talks if not e.resolved]


def clone(path: Path) -> tuple[Repository, str]:
    repository = Repository.at(path)
    base = repository.commit({"shop.py": functions("old"), "word.py": "WORD = 1\n"})
    repository.git("checkout", "-q", "-b", "change")
    return repository, base


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """A desk with a quick look in place of a review: a name `lost_…` that the base has not."""
    repository, base = clone(tmp_path / "clone")

    async def look(_asked: Asked, span: Range) -> Found:
        text = repository.git("show", f"{span.head}:shop.py")
        known = repository.git("show", f"{base}:shop.py")
        remarks = [
            Remark(
                severity="critical",
                file="shop.py",
                line=number,
                message=f"Undefined name `{line.split()[1]}`",
                rule="F821",
                confidence=98,
                lens="bugs",
                fingerprint=hashlib.sha256(line.encode()).hexdigest()[:32],
            ).model_dump(mode="json")
            for number, line in enumerate(text.splitlines(), 1)
            if "lost_" in line and line not in known
        ]
        data = {"remarks": remarks, "looked_at": {"bugs": 1}, "base": span.base}
        return Found(Report(run_id="r", goal="g", status="complete", data=data), span)

    async with serving(GitHub(repository.path, base, base)) as github:
        yield Desk(repository, github, look)


@pytest.fixture
async def reviewed(runs: Runs, connection: Connection, tmp_path: Path) -> AsyncIterator[Desk]:
    """A desk at which a review by the lens `bugs` is run."""
    repository, base = clone(tmp_path / "clone")
    lenses = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))
    hf = Holdfast.on(connection)

    async def look(asked: Asked, span: Range) -> Found:
        return await review(hf, repository.path, asked, span, None, False)

    async with (
        serving(GitHub(repository.path, base, base)) as github,
        runs.worker(tools={"bugs": lenses["bugs"]}),
    ):
        yield Desk(repository, github, look)


async def test_a_pull_request_has_one_summary_and_a_thread_for_as_long_as_its_remark_is_there(
    reviewed: Desk,
) -> None:
    desk = reviewed
    desk.push({"shop.py": functions("old", "new", "newer")})
    await desk.tell()
    assert desk.open() == ["shop.py:6", "shop.py:10"], "what the base has is no remark"
    assert len(desk.github.reviews) == 1, "all in one review"
    (summary,) = desk.summaries
    assert f"`{desk.github.base[:12]}..{desk.github.head[:12]}`" in summary
    assert "Threads: 2 opened." in summary
    assert [each["conclusion"] for each in desk.github.checks] == ["failure"]
    assert desk.github.checks[0]["annotations"] == [], "threads tell them"
    (sarif,) = desk.github.sarifs
    document = json.loads(gzip.decompress(base64.b64decode(sarif["sarif"])))
    assert len(document["runs"][0]["results"]) == 2
    assert (sarif["ref"], sarif["commit_sha"]) == ("refs/pull/7/head", desk.github.head)

    # A line above moves both, and one of them is mended.
    desk.push({"shop.py": "# moved\n" + functions("old", "new")})
    await desk.tell()
    assert desk.open() == ["shop.py:6"]
    assert "✅ Gone in" in desk.github.talks[1].said[0].body
    assert len(desk.summaries) == 1 and "Threads: 1 resolved." in desk.summaries[0]


async def test_a_remark_that_comes_back_has_its_own_thread_again_and_a_second_look_adds_nothing(
    desk: Desk,
) -> None:
    for names in (("new", "newer"), ("new",), ("new", "newer")):
        desk.push({"shop.py": functions("old", *names)})
        await desk.tell()
    assert desk.open() == ["shop.py:6", "shop.py:10"] and len(desk.github.talks) == 2
    assert "Gone in" not in desk.github.talks[1].said[0].body
    assert "Threads: 1 opened again." in desk.summaries[0]
    before = len(desk.github.requests)
    await desk.tell()
    assert not [each for each in desk.github.requests[before:] if "/pulls/" in each]
    assert len(desk.github.talks) == 2 and len(desk.summaries) == 1
    assert len(desk.github.checks) == 3, "of the same commit it is the same check"


async def test_where_a_person_answered_or_closed_nothing_is_repeated_and_nothing_closed(
    desk: Desk,
) -> None:
    desk.github.page = 1
    desk.push({"shop.py": functions("old", "new", "newer", "newest")})
    await desk.tell()
    answered, closed, forged = desk.github.talks
    answered.said.append(Said(1, PERSON, "No, it is defined."))
    closed.resolved = True
    # A stranger writes what looks like ours, and a summary of ours.
    forged.said.insert(0, Said(2, PERSON, forged.said[0].body))
    desk.github.comments.insert(0, Said(3, PERSON, desk.github.comments[0].body))
    desk.push({"shop.py": functions("old", "new", "newer", "newest", good="# ")})
    await desk.tell()
    assert len(desk.github.talks) == 4, "of the forged one there is none of ours"
    desk.push({"shop.py": functions("old")})
    await desk.tell()
    assert not answered.resolved and "Gone in" not in answered.said[0].body
    assert "1 thread left open: the remark is gone, and somebody answered" in desk.summaries[0]
    assert len(desk.github.comments) == 2 and "Threads" in desk.github.comments[1].body
    assert desk.github.comments[0].body != desk.github.comments[1].body, "theirs is not edited"
    desk.push({"shop.py": functions("old", "new", "newer")})
    await desk.tell()
    assert len(desk.github.talks) == 4 and closed.resolved


async def test_two_jobs_at_once_leave_one_summary_and_no_thread_twice(desk: Desk) -> None:
    desk.push({"shop.py": functions("old", "new", "newer")})
    desk.github.meet = {part: asyncio.Barrier(2) for part in ("POST /reviews", "POST /issues/")}
    desk.github.failures = [Failure("POST deleteIssueComment", 502, done=True)]
    tellers = await asyncio.gather(desk.tell(), desk.tell())
    assert [each.left_out for each in tellers] == [[], []]
    assert len(desk.github.reviews) == 2, "both saw that there was nothing"
    assert desk.open() == ["shop.py:6", "shop.py:10"] and len(desk.summaries) == 1


@pytest.mark.long
async def test_doubles_are_deleted_later_but_for_what_a_person_answered_or_closed(
    desk: Desk,
) -> None:
    desk.push({"shop.py": functions("old", "new", "newer", "newest")})
    await desk.tell()
    first = [*desk.github.talks]
    talks, comments = deepcopy(first), deepcopy(desk.github.comments)
    for number, said in enumerate([*comments, *(each.said[0] for each in talks)], 9000):
        said.id = number
    for each in talks:
        each.id += "-again"
    answered, closed, _ = talks
    answered.said.append(Said(1, PERSON, "No, it is defined."))
    closed.resolved = True
    theirs = Said(9999, PERSON, comments[0].body)
    desk.github.talks[:0], desk.github.comments[:0] = talks, [*comments, theirs]
    teller = await desk.tell()
    assert desk.github.talks == [answered, closed, *first] and teller.left_out == []
    assert [each.id < 9000 for each in desk.github.comments] == [False, True], "the earliest stays"
    desk.push({"shop.py": functions("old")})
    await desk.tell()
    assert [each.resolved for each in desk.github.talks] == [False, *[True] * 4]


async def test_a_limit_is_waited_for_and_a_lost_answer_doubles_nothing(desk: Desk) -> None:
    desk.push({"shop.py": functions("old", "new")})
    soon = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1041"}
    desk.github.failures = [
        Failure("POST /graphql", 403, {"retry-after": "7"}, "You have exceeded a secondary limit"),
        Failure("GET /files", 403, soon, "API rate limit exceeded"),
        Failure("POST /graphql", 502),
        Failure("POST /graphql", 200),
        Failure("POST /reviews", 429, {}, "secondary rate limit"),
        Failure("POST /reviews", 0, done=True),
        Failure("POST /issues", 200, done=True),
        Failure("POST /check-runs", 204, done=True),
        Failure("POST /sarifs", 503),
    ]
    teller = await desk.tell()
    assert desk.github.failures == [] and teller.left_out == []
    assert len(desk.github.talks) == len(desk.summaries) == len(desk.github.checks) == 1
    assert desk.github.checks[0]["status"] == "completed"
    assert {7.0, 42.0, 60.0} <= {*desk.waited}
    assert "GitHub's limit of requests (403): again in 7 s" in desk.said
    assert any("looking whether it was done" in each for each in desk.said)


async def test_a_limit_of_an_hour_is_said_and_the_rest_is_done(desk: Desk) -> None:
    desk.push({"shop.py": functions("old", "new")})
    late = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "4600"}
    desk.github.failures = [Failure("POST /graphql", 403, late, "API rate limit exceeded")]
    teller = await desk.tell()
    (said,) = teller.left_out
    assert said.startswith("review threads: GitHub's limit") and "3601 s" in said
    assert desk.github.checks[0]["conclusion"] == "failure" and len(desk.summaries) == 1
    await desk.tell()
    assert len(desk.github.talks) == 1 and len(desk.summaries) == 1


@pytest.mark.long
async def test_who_is_killed_between_two_requests_does_the_rest_and_doubles_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.push({"shop.py": functions("old", "new")})
    await desk.tell()
    desk.push({"shop.py": functions("old", "newer")})
    whole, first = Api.send, Api.graphql
    for after in range(1, 12):
        left = after

        async def send(api: Api, *given: Any, real: Any = whole, **more: Any) -> Any:
            nonlocal left
            answer = await real(api, *given, **more)
            left -= 1
            if not left:
                raise KeyboardInterrupt
            return answer

        async def graphql(api: Api, *given: Any, **more: Any) -> Any:
            return await send(api, *given, real=first, **more)

        monkeypatch.setattr(Api, "send", send)
        monkeypatch.setattr(Api, "graphql", graphql)
        try:
            await desk.tell()
            break
        except KeyboardInterrupt:
            continue
    else:
        raise AssertionError("it never came to its end")
    assert after > 5
    assert [talk.resolved for talk in desk.github.talks] == [True, False]
    assert len(desk.summaries) == 1
    assert [each["status"] for each in desk.github.checks] == ["completed"] * 2


@pytest.mark.long
async def test_a_check_that_was_left_unfinished_is_closed_before_another_is_made(
    desk: Desk,
) -> None:
    desk.push({"shop.py": functions("old", "new")})
    desk.github.failures = [Failure("POST /reviews", 422), Failure("POST /comments", 422)]
    desk.github.failures += [Failure("PATCH /check-runs", 403)]
    await desk.tell()
    assert [each["status"] for each in desk.github.checks] == ["in_progress"]
    # Now a thread tells what was an annotation.
    await desk.tell()
    assert [each["conclusion"] for each in desk.github.checks] == ["cancelled", "failure"]
    # The newest is as it was left, whatever an older one says.
    desk.fail_on = ""
    await desk.tell()
    desk.fail_on = "warning"
    await desk.tell()
    said = [each["conclusion"] for each in desk.github.checks]
    assert said == ["cancelled", "failure", "success", "failure"]


@pytest.mark.long
async def test_thirty_threads_are_opened_at_a_commit_however_often_it_is_reviewed(
    desk: Desk,
) -> None:
    desk.push({"shop.py": functions("old", *(f"f{n}" for n in range(40)))})
    for _ in range(2):
        await desk.tell()
        assert len(desk.github.talks) == 30
    assert len(desk.github.checks) == 1 and "10 new remarks without a thread" in desk.summaries[0]
    desk.push({})
    await desk.tell()
    assert len(desk.github.talks) == 40


async def test_a_fork_is_told_in_the_log_what_its_token_may_not_do(desk: Desk) -> None:
    desk.push({"shop.py": functions("old", "new")})
    desk.github.fork = True
    desk.github.tokens = {"fork-token": (BOT, frozenset())}
    desk.token = "fork-token"
    teller = await desk.tell()
    assert [each.partition(":")[0] for each in teller.left_out] == [
        "review threads", "the summary", "the check", "SARIF",
    ]  # fmt: skip
    for each in teller.left_out:
        assert "403 Resource not accessible by integration (the token only reads, as" in each
    assert desk.judged.code == 7, "the gate needs no token"
    (line,) = teller.annotations
    assert line.startswith("::error file=shop.py,line=6,title=F821::")
    assert "Left out: the summary" in desk.page and "lost_new" in desk.page
    assert "fork-token" not in " ".join([*desk.said, *teller.left_out, desk.page])
    assert not desk.github.comments and not desk.github.talks


async def test_without_contents_a_thread_says_that_its_remark_is_gone_and_stays_open(
    desk: Desk,
) -> None:
    desk.github.tokens = {"bot-token": (BOT, EVERYTHING - {"contents", "security"})}
    desk.github.code_scanning = False
    desk.push({"shop.py": functions("old", "new")})
    await desk.tell()
    desk.push({"shop.py": functions("old")})
    teller = await desk.tell()
    assert "✅ Gone in" in desk.github.talks[0].said[0].body and not desk.github.talks[0].resolved
    assert any("contents: write" in each for each in teller.left_out)
    desk.push({"shop.py": functions("old", "new")})
    await desk.tell()
    assert "Gone in" not in desk.github.talks[0].said[0].body and len(desk.github.talks) == 1


async def test_a_push_has_a_check_and_no_comment_and_a_person_a_status(desk: Desk) -> None:
    head = desk.push({"shop.py": functions("old", *(f"f{n}" for n in range(60)))})
    ours = {"pull": None, "ref": "refs/heads/change"}
    await desk.tell(**ours)
    (check,) = desk.github.checks
    assert len(check["annotations"]) == 60 and check["conclusion"] == "failure"
    assert check["annotations"][0]["path"] == "shop.py" and check["head_sha"] == head
    assert not desk.github.comments and not desk.github.talks
    desk.push({})
    desk.github.tokens = {"own": (PERSON, EVERYTHING)}
    desk.token = "own"
    await desk.tell(**ours)
    (status,) = desk.github.statuses
    assert (status["state"], status["context"]) == ("failure", "holdfast")


async def test_a_forced_push_is_told_though_no_clone_has_what_it_replaced(desk: Desk) -> None:
    head = desk.push({"shop.py": functions("old", "new")})
    forced = {"pull": None, "ref": "refs/heads/change", "base": "d" * 40}
    teller = await desk.tell(**forced)
    assert teller.left_out == [] and "replaced `dddddddddddd`, which no clone has" in desk.page
    assert [each["head_sha"] for each in desk.github.checks] == [head]
    assert [each["commit_sha"] for each in desk.github.sarifs] == [head]
    # On the main line itself there is nothing else to compare with: no gate opens.
    with pytest.raises(Refused, match="which a forced push replaced"):
        desk.repository.git("branch", "-f", "main", head)
        await desk.tell(**forced)
    # What a clone lacks that is cut short may be the history.
    (desk.repository.path / ".git" / "shallow").write_text(f"{head}\n")
    with pytest.raises(Refused, match="fetch-depth: 0"):
        await desk.tell(**forced)


async def test_a_review_that_a_newer_commit_has_overtaken_writes_nothing_of_the_pull_request(
    desk: Desk,
) -> None:
    old = desk.push({"shop.py": functions("old", "new")})
    new = desk.push({"shop.py": functions("old", "newer")})
    desk.repository.git("checkout", "-q", old)
    teller = await desk.tell(head=old)
    assert [each.partition(":")[0] for each in teller.left_out] == ["review threads", "the summary"]
    assert f"{new[:12]} was pushed meanwhile" in teller.left_out[0]
    assert not desk.github.comments and not desk.github.talks
    assert [each["head_sha"] for each in desk.github.checks] == [old], "its own commit is told"


@pytest.mark.long
async def test_agents_look_at_new_commits_alone_and_what_they_said_stands_until_its_code_is_gone(
    runs: Runs, connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    repository, base = clone(tmp_path / "clone")
    lenses = lenses_of(Snapshots(runs.store, runs.folder / "snapshots"))
    wrong = {"file": "pay.py", "line": 1, "code": "PRICE = -1", "message": "A price below 0."}
    said = {name: [finds()] * 3 for name in PROMPTS}
    model = ReviewingModel({**said, "logic": [finds(wrong), finds(), finds()]})
    hf, ranges = Holdfast.on(connection), []

    async def look(asked: Asked, span: Range) -> Found:
        ranges.append(span)
        return await review(hf, repository.path, asked, span, Decimal(2), True)

    async with (
        serving(GitHub(repository.path, base, base)) as github,
        runs.worker(model, tools={"bugs": lenses["bugs"]}),
    ):
        desk = Desk(repository, github, look)
        first = desk.push({"pay.py": "PRICE = -1\n"})
        await desk.tell()
        assert desk.open() == ["pay.py:1"] and desk.judged.code == 7
        asked = len(model.requests)
        second = desk.push({"pay.py": "# A comment.\nPRICE = -1\n", "shop.py": functions("old")})
        await desk.tell()
        assert [each.since for each in ranges] == ["", first]
        assert desk.open() == ["pay.py:1"] and desk.judged.code == 7, "it still holds the change up"
        (summary,) = desk.summaries
        assert f"agents at the new commits `{first[:12]}..{second[:12]}`" in summary
        assert "1 earlier remark of agents still open, in `pay.py`" in summary
        assert len(model.requests) > asked
        desk.push({"pay.py": "PRICE = 1\n"})
        await desk.tell()
        assert desk.open() == [] and desk.judged.code == 0
        # The same commit again costs nothing.
        asked = len(model.requests)
        await desk.tell()
        assert len(model.requests) == asked and "agents had read all of it" in desk.summaries[0]


@pytest.mark.parametrize("asked", [{}, {"pull": None, "ref": "refs/heads/change"}])
async def test_a_token_that_nobody_has_is_no_success_and_one_that_ends_midway_is_said(
    desk: Desk, asked: dict[str, Any]
) -> None:
    desk.push({})
    desk.token = "other-token"
    with pytest.raises(ApiFailed, match="401 Bad credentials; GITHUB_TOKEN is wrong"):
        await desk.tell(**asked)
    desk.token = "bot-token"
    desk.github.failures = [Failure("POST /sarifs", 401, message="Bad credentials")]
    teller = await desk.tell(**asked)
    assert [each.partition(":")[0] for each in teller.left_out] == ["SARIF"]


@pytest.mark.long
async def test_what_an_agent_said_and_no_thread_keeps_is_looked_for_again(desk: Desk) -> None:
    said = Remark(
        severity="critical",
        file="word.py",
        line=1,
        message="It is read as a number.",
        code="WORD = 1",
        confidence=90,
        lens="logic",
        by_agent=True,
        verdict="confirmed",
    )

    async def look(asked: Asked, span: Range) -> Found:
        data = {"remarks": [said.model_dump(mode="json")], "agents": {"logic": 1}}
        return Found(Report(run_id="r", goal="g", status="complete", data=data), span, asked.head)

    desk.look = look
    desk.push({})
    await desk.tell()
    assert not desk.github.talks and read_up_to(desk.summaries[0]) == ""
    head = desk.push({"word.py": "# A line of the difference.\nWORD = 1\n"})
    await desk.tell()
    assert desk.open() == ["word.py:1"] and read_up_to(desk.summaries[0]) == head

    # A new name makes nothing good, another line does.
    async def silent(asked: Asked, span: Range) -> Found:
        data = {"remarks": [], "looked_at": {"bugs": 1}}
        report = Report(run_id="r", goal="g", status="complete", data=data)
        return Found(report, span, asked.head)

    desk.look = silent
    desk.repository.git("mv", "word.py", "words.py")
    desk.push({})
    await desk.tell()
    assert desk.open() == ["word.py:1"] and desk.judged.code == 7
    desk.push({"words.py": "WORD = 2\n"})
    await desk.tell()
    assert desk.open() == [] and desk.judged.code == 0


@pytest.mark.parametrize(
    ("token", "more", "said"),
    [
        ("bot-token", ("--pull", "8"), "pulls/8: 404 Not Found: it is not there, or the token"),
        ("other-token", ("--pull", "7"), "GET /repos/octo/shop/pulls/7: 401 Bad credentials"),
        ("a b", ("--pull", "7"), "GITHUB_TOKEN is no token"),
        ("bot-token", ("--pull", "7", "--dollars", "1"), "nothing is spent without --models"),
        ("bot-token", (), "in another CI give --pull NUMBER and --repository OWNER/NAME"),
        ("bot-token", ("--pull", "7"), "checked out, and"),
    ],
)
async def test_what_cannot_be_done_is_said_in_a_line_without_the_token(
    desk: Desk,
    token: str,
    more: tuple[str, ...],
    said: str,
    bare_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    desk.push({})
    desk.repository.git("checkout", "-q", desk.github.base)
    given = {"GITHUB_TOKEN": token, "GITHUB_API_URL": desk.github.address}
    for name in ("GITHUB_ACTIONS", "GITHUB_EVENT_NAME", "GH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**given, "GITHUB_REPOSITORY": REPOSITORY}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(desk.repository.path)
    code = await asyncio.to_thread(main, ["github", *more])
    told = capsys.readouterr().err
    assert code in (1, 2) and said in told and told.count("\n") == 1 and token not in told
    assert not bare_environment.exists(), "nothing was started"


@pytest.mark.parametrize("how", ["edited", "staged", "new", "sparse", "assumed"])
async def test_files_that_are_not_the_commits_are_not_judged_in_its_name(
    desk: Desk, how: str
) -> None:
    desk.push({"shop.py": functions("old", "new")})
    name = "extra.py" if how == "new" else "shop.py"
    if how in ("sparse", "assumed"):
        flag = "--skip-worktree" if how == "sparse" else "--assume-unchanged"
        desk.repository.git("update-index", flag, name)
    (desk.repository.path / name).write_text("GOOD = 1\n")
    if how == "staged":
        desk.repository.git("add", name)
    with pytest.raises(Refused, match=f"'{name}' is not as commit"):
        await desk.tell()
    assert desk.github.requests == []


async def test_an_edit_of_the_same_size_and_second_is_seen_and_other_line_ends_are_none(
    desk: Desk,
) -> None:
    desk.push({"shop.py": "GOOD = 1\n"})
    file, index = desk.repository.path / "shop.py", desk.repository.path / ".git" / "index"
    kept = file.stat()
    file.write_text("GOOD = 2\n")
    for path in (file, index):
        os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    with pytest.raises(Refused, match=r"'shop\.py' is not as commit"):
        await desk.tell()
    file.write_text("GOOD = 1\r\n")
    await desk.tell()
    assert len(desk.summaries) == 1


@pytest.mark.parametrize(
    ("request_", "answer"),
    rest_long(
        [
            ("POST /graphql", "[]"),
            ("GET /files", "[{}]"),
            ("GET /commits/", '{"check_runs": null}'),
            ("POST /graphql", '{"errors": [null]}'),
            ("POST /graphql", '{"data": {"repository": {"pullRequest": {}}}}'),
            (
                "POST /graphql",
                '{"data": {"repository": {"pullRequest": {"headRefOid": null, "comments":'
                ' {"nodes": [], "pageInfo": {"hasNextPage": false}}}}}}',
            ),
            ("GET /files", '{"a": 1}'),
            ("GET /commits/", "[]"),
            ("GET /commits/", '{"check_runs": [null]}'),
        ],
        first=3,
    ),
)
async def test_an_answer_of_another_shape_leaves_its_part_out_and_the_rest_is_done(
    desk: Desk, request_: str, answer: str
) -> None:
    desk.push({"shop.py": functions("old", "new")})
    desk.github.failures = [Failure(request_, 200, message=answer)]
    teller = await desk.tell()
    (said,) = teller.left_out
    part = "the check: " if "commits" in request_ else "review threads: "
    assert said.startswith(part) and "is not as GitHub describes it" in said
    assert len(desk.summaries) == len(desk.github.sarifs) == 1
    assert len(desk.github.checks) == (part != "the check: ")


async def test_a_pull_request_of_another_shape_is_said_and_one_of_a_renamed_repository_found(
    desk: Desk,
) -> None:
    there = f"/repositories/1/pulls/{NUMBER}"
    elsewhere = f"http://127.0.0.1:9{there}"
    desk.github.failures = [
        Failure("GET /repos/", 200, message='{"number": 1}'),
        Failure("GET /repos/", 200, message="[]"),
        Failure("GET /repos/", 301, {"location": f"{desk.github.address}{there}"}),
        Failure("GET /repos/", 307, {"location": elsewhere}, "Moved"),
    ]
    async with Api(desk.token, desk.github.address, desk.said.append, desk._sleep) as api:
        for _ in range(2):
            with pytest.raises(ApiFailed, match="is not as GitHub describes it"):
                await find_pull(api, REPOSITORY, NUMBER)
        found = await find_pull(api, REPOSITORY, NUMBER)
        assert found.head == desk.github.head and found.pull and not found.pull.fork
        with pytest.raises(ApiFailed, match="307 Moved"):
            await find_pull(api, REPOSITORY, NUMBER)


async def test_a_token_goes_to_no_address_in_the_clear() -> None:
    with pytest.raises(Refused, match="a token goes to https alone"):
        Api("secret", "http://github.example")
    assert "secret" not in repr(Api("secret"))


@pytest.mark.long
async def test_twenty_pushes_leave_one_summary_and_no_thread_twice(reviewed: Desk) -> None:
    desk = reviewed
    names = [f"f{number}" for number in range(12)]
    for push in range(20):
        # Each is there for some pushes, gone for some, and back again.
        there = [name for place, name in enumerate(names) if (push + place) % 5]
        desk.push({"shop.py": functions("old", *there, good=f"# {push}\n")})
        await desk.tell()
        # Where a person answered it stays open, where one closed it, closed.
        left = {"f1", *there} - {"f2"} if push > 5 else {*there}
        assert len(desk.open()) == len(left)
        if push == 5:
            desk.github.talks[0].said.append(Said(1, PERSON, "It comes from elsewhere."))
            desk.github.talks[1].resolved = True
    marks = [talk.said[0].body.splitlines()[0] for talk in desk.github.talks]
    assert len(desk.summaries) == 1 and len(marks) == len({*marks}) == len(names)
    assert sum(len(talk.said) for talk in desk.github.talks) == len(names) + 1
