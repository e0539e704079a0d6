"""GitHub as far as the door of pull requests needs it: REST and GraphQL on a port of this machine,
over a real repository.

Each request and each answer is held to what GitHub publishes of its API
(`tests/doors/github/published.json`); what a query asks for, to the published schema of GraphQL.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
from aiohttp import web

Json = dict[str, Any]
PUBLISHED: Json = json.loads(
    (Path(__file__).parents[1] / "doors" / "github" / "published.json").read_text("utf-8")
)
REPOSITORY = "octo/shop"
NUMBER = 7
BOT, PERSON = "github-actions[bot]", "ada"
EVERYTHING = frozenset({"pulls", "contents", "checks", "statuses", "security"})
NOT_ACCESSIBLE = "Resource not accessible by {}"
Fault = Callable[[], Any]


def _kind(who: str) -> str:
    return "integration" if who == BOT else "personal access token"


@dataclass
class Said:
    """A comment."""

    id: int
    author: str
    body: str
    commit: str = ""


@dataclass
class Talk:
    """A review thread."""

    id: str
    path: str
    side: str
    line: int
    said: list[Said]
    resolved: bool = False


@dataclass
class Failure:
    """What comes in place of the next answer to such a request."""

    request: str
    """Method and part of the path or of the query, as `POST /reviews`."""
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = ""
    done: bool = False
    """True if the request is carried out all the same."""


@dataclass
class GitHub:
    """One repository with one pull request."""

    clone: Path
    head: str
    base: str
    tokens: dict[str, tuple[str, frozenset[str]]] = field(
        default_factory=lambda: {"bot-token": (BOT, EVERYTHING)}
    )
    fork: bool = False
    code_scanning: bool = True
    comments: list[Said] = field(default_factory=list)
    talks: list[Talk] = field(default_factory=list)
    reviews: list[Json] = field(default_factory=list)
    checks: list[Json] = field(default_factory=list)
    statuses: list[Json] = field(default_factory=list)
    sarifs: list[Json] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    meet: dict[str, asyncio.Barrier] = field(default_factory=dict)
    """Requests, as of a failure, that are answered once several of them are there."""
    page: int = 100
    """Items of a page of GraphQL, for tests of pages."""
    address: str = ""
    _last: int = 1000
    _files: dict[str, list[Json]] = field(default_factory=dict)

    def number(self) -> int:
        self._last += 1
        return self._last

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "--literal-pathspecs", *arguments],
            cwd=self.clone,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    # ------------------------------------------------------------ the difference

    def files(self) -> list[Json]:
        """What differs from where the branch began, as GitHub lists it."""
        if self.head not in self._files:
            self._files[self.head] = self._differing()
        return self._files[self.head]

    def _differing(self) -> list[Json]:
        names = self.git("diff", "--name-only", "-z", f"{self.base}...{self.head}").split("\0")[:-1]
        found = []
        for name in names:
            diff = self.git("diff", f"{self.base}...{self.head}", "--", name)
            at = diff.find("\n@@")
            patch: Json = {"patch": diff[at + 1 :].rstrip("\n")} if at >= 0 else {}
            sums = {"additions": 0, "deletions": 0, "changes": 0}
            found.append({"filename": name, "status": "modified", "sha": "0" * 40, **sums, **patch})
        return found

    def takes(self, path: str, side: str, line: int) -> bool:
        """True if a comment may stand there: the line is in the difference."""
        for each in self.files():
            left = right = 0
            for row in each.get("patch", "").split("\n") if each["filename"] == path else ():
                if found := re.match(r"@@ -(\d+)(?:,\d+)? \+(\d+)", row):
                    left, right = int(found[1]) - 1, int(found[2]) - 1
                    continue
                left += row[:1] in (" ", "-")
                right += row[:1] in (" ", "+")
                here = (left, "LEFT") if row[:1] == "-" else (right, "RIGHT")
                if here == (line, side):
                    return True
        return False


class Refusal(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@asynccontextmanager
async def serving(github: GitHub) -> AsyncIterator[GitHub]:
    """Serve it for as long as the block lasts."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await _answer(github, request)

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    github.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield github
    finally:
        await runner.cleanup()


async def _answer(github: GitHub, request: web.Request) -> web.StreamResponse:
    line = f"{request.method} {request.path}"
    github.requests.append(line)
    body = await request.json() if request.can_read_body else None
    named = f"{line} {body['query']}" if request.path == "/graphql" and body else line
    for part, barrier in github.meet.items():
        if _meant(part, named):
            await barrier.wait()
    failure = next((each for each in github.failures if _meant(each.request, named)), None)
    if failure:
        github.failures.remove(failure)
        if not failure.done:
            return _failed(request, failure)
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if token not in github.tokens:
        return web.json_response({"message": "Bad credentials"}, status=401)
    who, may = github.tokens[token]
    try:
        if request.path == "/graphql":
            assert body is not None
            status, answer = 200, Graph(github, who, may, body["variables"]).answer(body["query"])
        else:
            status, answer = _rest(github, who, may, request, body)
    except Refusal as refused:
        return web.json_response({"message": str(refused)}, status=refused.status)
    if failure:
        return _failed(request, failure)
    return web.json_response(answer, status=status)


def _meant(wanted: str, line: str) -> bool:
    method, _, part = wanted.partition(" ")
    return line.startswith(f"{method} ") and part in line


def _failed(request: web.Request, failure: Failure) -> web.StreamResponse:
    if not failure.status:
        # The line is cut: nobody hears an answer.
        assert request.transport is not None
        request.transport.abort()
        return web.Response()
    if failure.status < 300:
        # A proxy answers in the server's place, or the server as it never should.
        body = b"" if failure.status == 204 else failure.message.encode() or b"<p>\xff"
        return web.Response(body=body, status=failure.status)
    return web.json_response(
        {"message": failure.message}, status=failure.status, headers=failure.headers
    )


# ---------------------------------------------------------------- REST


def _rest(
    github: GitHub, who: str, may: frozenset[str], request: web.Request, body: Json | None
) -> tuple[int, Any]:
    # By its number a repository is found whatever its name is now.
    path = re.sub(r"\A/repositories/\d+", f"/repos/{REPOSITORY}", request.path)
    for name, do in OPERATIONS.items():
        method, _, template = name.partition(" ")
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template)
        found = re.fullmatch(pattern, path)
        if not found or request.method != method:
            continue
        if (found["owner"], found["repo"]) != tuple(REPOSITORY.split("/")):
            raise Refusal(404, "Not Found")
        published = PUBLISHED["operations"][name]
        unknown = {*request.query} - {*published["query"]}
        assert not unknown, f"{name}: {unknown}"
        if published["body"]:
            assert request.content_type == "application/json"
            jsonschema.validate(body, published["body"])
            known = {*published["body"].get("properties", {})}
            assert {*(body or {})} <= known, f"{name}: {body}"
        need, carry_out = do
        if need and need not in may:
            raise Refusal(403, NOT_ACCESSIBLE.format(_kind(who)))
        answer = carry_out(github, who, found.groupdict(), body or dict(request.query))
        jsonschema.validate(answer, published["answer"])
        return published["status"], answer
    raise AssertionError(f"GitHub has no {request.method} {request.path}, or the stand-in has not")


def _get_pull(github: GitHub, _who: str, path: Json, _body: Json) -> Json:
    if int(path["pull_number"]) != NUMBER:
        raise Refusal(404, "Not Found")
    whose = "stranger/shop" if github.fork else REPOSITORY
    return {
        "number": NUMBER,
        "title": "A change",
        "body": None,
        "head": {"sha": github.head, "repo": {"full_name": whose}},
        "base": {"sha": github.base},
    }


def _list_files(github: GitHub, _who: str, _path: Json, query: Json) -> list[Json]:
    size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
    assert size <= 100
    return github.files()[(page - 1) * size : page * size]


def _review(github: GitHub, who: str, _path: Json, body: Json) -> Json:
    assert body["event"] == "COMMENT" and body["body"]
    if not all(github.takes(e["path"], e["side"], e["line"]) for e in body["comments"]):
        raise Refusal(422, "Unprocessable Entity: Line could not be resolved")
    for each in body["comments"]:
        _open(github, who, {**each, "commit_id": body["commit_id"]})
    made = {"id": github.number(), "node_id": "PRR", "body": body["body"], "state": "COMMENTED"}
    github.reviews.append(made)
    return made | {"commit_id": body["commit_id"]}


def _comment_line(github: GitHub, who: str, _path: Json, body: Json) -> Json:
    if not github.takes(body["path"], body["side"], body["line"]):
        raise Refusal(422, "Validation Failed: pull_request_review_thread.line must be part of it")
    said = _open(github, who, body).said[0]
    kept = {name: body[name] for name in ("path", "line", "side", "commit_id", "body")}
    return {"id": said.id, "node_id": f"PRRC_{said.id}", **kept}


def _open(github: GitHub, who: str, given: Json) -> Talk:
    said = Said(github.number(), who, given["body"], given["commit_id"])
    talk = Talk(f"PRRT_{said.id}", given["path"], given["side"], given["line"], [said])
    github.talks.append(talk)
    return talk


def _comment(github: GitHub, who: str, _path: Json, body: Json) -> Json:
    assert len(body["body"]) <= 65_536
    github.comments.append(Said(github.number(), who, body["body"]))
    return _shown(github.comments[-1])


def _edit_comment(github: GitHub, _who: str, path: Json, body: Json) -> Json:
    said = next(each for each in github.comments if each.id == int(path["comment_id"]))
    said.body = body["body"]
    return _shown(said)


def _shown(said: Said) -> Json:
    return {"id": said.id, "node_id": f"IC_{said.id}", "body": said.body}


def _list_checks(github: GitHub, _who: str, path: Json, query: Json) -> Json:
    found = [
        _check_shown(each)
        for each in github.checks
        if each["head_sha"] == path["ref"] and each["name"] == query.get("check_name", each["name"])
    ][::-1]
    return {"total_count": len(found), "check_runs": found}


def _make_check(github: GitHub, who: str, _path: Json, body: Json) -> Json:
    if not who.endswith("[bot]"):
        raise Refusal(403, "You must authenticate via a GitHub App.")
    made = {"id": github.number(), "annotations": [], "conclusion": None, **body}
    made["output"] = {**body.get("output", {})}
    github.checks.append(made)
    return _annotated(made)


def _change_check(github: GitHub, _who: str, path: Json, body: Json) -> Json:
    made = next(each for each in github.checks if each["id"] == int(path["check_run_id"]))
    output = {**made["output"], **body.pop("output", {})}
    made.update(body)
    made["output"] = output
    return _annotated(made)


def _annotated(made: Json) -> Json:
    new = made["output"].pop("annotations", [])
    assert len(new) <= 50
    made["annotations"] += new
    return _check_shown(made)


def _check_shown(made: Json) -> Json:
    output = {"annotations_count": len(made["annotations"]), **made["output"]}
    names = ("id", "name", "head_sha", "status", "conclusion")
    shown = {name: made[name] for name in names}
    return {**shown, "external_id": made.get("external_id"), "output": output}


def _make_status(github: GitHub, _who: str, _path: Json, body: Json) -> Json:
    assert len(body["description"]) <= 140
    github.statuses.append(body)
    return {"id": github.number(), **{k: body[k] for k in ("state", "context", "description")}}


def _upload(github: GitHub, _who: str, _path: Json, body: Json) -> Json:
    if not github.code_scanning:
        raise Refusal(403, "Code scanning is not enabled for this repository.")
    github.sarifs.append(body)
    return {"id": "a1", "url": "https://api.github.com/sarifs/a1"}


_R = "/repos/{owner}/{repo}"
OPERATIONS: dict[str, tuple[str, Callable[[GitHub, str, Json, Json], Any]]] = {
    f"GET {_R}/pulls/{{pull_number}}": ("", _get_pull),
    f"GET {_R}/pulls/{{pull_number}}/files": ("", _list_files),
    f"POST {_R}/pulls/{{pull_number}}/reviews": ("pulls", _review),
    f"POST {_R}/pulls/{{pull_number}}/comments": ("pulls", _comment_line),
    f"POST {_R}/issues/{{issue_number}}/comments": ("pulls", _comment),
    f"PATCH {_R}/issues/comments/{{comment_id}}": ("pulls", _edit_comment),
    f"GET {_R}/commits/{{ref}}/check-runs": ("", _list_checks),
    f"POST {_R}/check-runs": ("checks", _make_check),
    f"PATCH {_R}/check-runs/{{check_run_id}}": ("checks", _change_check),
    f"POST {_R}/statuses/{{sha}}": ("statuses", _make_status),
    f"POST {_R}/code-scanning/sarifs": ("security", _upload),
}
"""Each with the permission that it needs."""


# ---------------------------------------------------------------- GraphQL

_TOKEN = re.compile(r'[{}():!\[\],]|\$?\w+|"[^"]*"')


class Graph:
    """One document: read, held to the published schema, and answered."""

    def __init__(self, github: GitHub, who: str, may: frozenset[str], variables: Json) -> None:
        self.github, self.who, self.may, self.variables = github, who, may, variables
        self.errors: list[Json] = []

    def answer(self, document: str) -> Json:
        self.left = _TOKEN.findall(document)
        kind = self._take()
        declared: dict[str, str] = {}
        if self.left[0] == "(":
            self._take("(")
            while self.left[0] != ")":
                name = self._take()
                self._take(":")
                declared[name] = self._type()
                if self.left[0] == ",":
                    self._take()
            self._take(")")
        missing = {n for n, t in declared.items() if t.endswith("!")} - {
            f"${name}" for name, value in self.variables.items() if value is not None
        }
        assert not missing, f"no value for {missing}"
        assert {f"${name}" for name in self.variables} <= {*declared}, "nobody declares it"
        self.declared = declared
        root = "Query" if kind == "query" else "Mutation"
        data = self._selected(root, {})
        assert not self.left
        return {"data": data, **({"errors": self.errors} if self.errors else {})}

    def _take(self, wanted: str = "") -> str:
        found: str = self.left.pop(0)
        assert not wanted or found == wanted, f"{wanted} expected, {found} found"
        return found

    def _type(self) -> str:
        name = self._take()
        if self.left[0] == "!":
            return name + self._take()
        return name

    def _selected(self, kind: str, value: Any) -> Any:
        """Read a selection and answer it; of a list, each item by the same words."""
        start = [*self.left]
        if isinstance(value, list):
            answers = []
            for each in value:
                self.left = [*start]
                answers.append(self._selected(kind, each))
            if not value:
                self._selected(kind, {})
            return answers
        self._take("{")
        found: Json = {}
        while self.left[0] != "}":
            name = self._take()
            published = PUBLISHED["graphql"]["types"][kind].get(name)
            assert published, f"{kind} has no {name}"
            given = self._arguments(published.get("args", {})) if self.left[0] == "(" else {}
            type_ = published["type"].strip("[]!")
            inner = self._resolve(kind, name, value, given)
            if self.left and self.left[0] == "{":
                answer = self._selected(type_, {} if inner is None else inner)
                found[name] = None if inner is None else answer
            else:
                assert type_ not in PUBLISHED["graphql"]["types"], f"{name} needs fields"
                found[name] = inner
        self._take("}")
        return found

    def _arguments(self, known: dict[str, str]) -> Json:
        self._take("(")
        given: Json = {}
        while self.left[0] != ")":
            name = self._take()
            self._take(":")
            assert name in known, f"no argument {name}"
            given[name] = self._value(known[name])
            if self.left[0] == ",":
                self._take()
        self._take(")")
        assert {n for n, t in known.items() if t.endswith("!")} <= {*given}
        return given

    def _value(self, type_: str) -> Any:
        word = self._take()
        if word == "{":
            fields = PUBLISHED["graphql"]["inputs"][type_.strip("!")]
            found: Json = {}
            while self.left[0] != "}":
                name = self._take()
                self._take(":")
                found[name] = self._value(fields[name])
                if self.left[0] == ",":
                    self._take()
            self._take("}")
            assert {n for n, t in fields.items() if t.endswith("!")} <= {*found}
            return found
        if word.startswith("$"):
            declared = self.declared[word]
            assert declared in (type_, f"{type_}!"), f"{word} is {declared}, {type_} is wanted"
            return self.variables.get(word[1:])
        return int(word)

    # ------------------------------------------------------------ what there is

    def _resolve(self, kind: str, name: str, value: Any, given: Json) -> Any:
        if kind == "Query":
            owner = f"{given['owner']}/{given['name']}"
            return {} if owner == REPOSITORY else None
        if kind == "Mutation":
            return self._change(name, given["input"])
        if kind == "Repository":
            return {} if given["number"] == NUMBER else None
        if kind == "PullRequest":
            if name == "headRefOid":
                return self.github.head
            items = self.github.comments if name == "comments" else self.github.talks
            return self._page([*items], given)
        if isinstance(value, dict):
            return value.get(name)
        if isinstance(value, Talk):
            if name == "comments":
                return self._page(value.said, given)
            return {"id": value.id, "isResolved": value.resolved, "path": value.path}[name]
        assert isinstance(value, Said)
        return {
            "id": f"ID_{value.id}",
            "fullDatabaseId": str(value.id),
            "body": value.body,
            "originalCommit": {"oid": value.commit},
            "viewerDidAuthor": value.author == self.who,
        }[name]

    def _page(self, items: list[Any], given: Json) -> Json:
        assert 1 <= given["first"] <= 100
        start = int(given.get("after") or 0)
        end = start + min(given["first"], self.github.page)
        info = {"hasNextPage": end < len(items), "endCursor": str(end)}
        return {"nodes": items[start:end], "pageInfo": info, "totalCount": len(items)}

    def _change(self, name: str, given: Json) -> Any:
        if name == "updatePullRequestReviewComment":
            if "pulls" not in self.may:
                return self._forbidden(name)
            said = next(
                each
                for talk in self.github.talks
                for each in talk.said
                if f"ID_{each.id}" == given["pullRequestReviewCommentId"]
            )
            assert said.author == self.who
            said.body = given["body"]
            return {"pullRequestReviewComment": said}
        if name.startswith("delete"):
            return self._delete(name, given["id"])
        # GitHub wants this of who closes a talk: github/gh-aw#35726.
        if not {"pulls", "contents"} <= self.may:
            return self._forbidden(name)
        talk = next(each for each in self.github.talks if each.id == given["threadId"])
        talk.resolved = name == "resolveReviewThread"
        return {"thread": talk}

    def _delete(self, name: str, id_: str) -> Any:
        if "pulls" not in self.may:
            return self._forbidden(name)
        issue = name == "deleteIssueComment"
        for place in [self.github.comments] if issue else [e.said for e in self.github.talks]:
            for said in place:
                if f"ID_{said.id}" == id_:
                    assert said.author == self.who
                    place.remove(said)
                    self.github.talks = [each for each in self.github.talks if each.said]
                    return {"clientMutationId": None}
        message = f"Could not resolve to a node with the global id of '{id_}'."
        self.errors.append({"type": "NOT_FOUND", "path": [name], "message": message})
        return None

    def _forbidden(self, name: str) -> None:
        self.errors.append(
            {"type": "FORBIDDEN", "path": [name], "message": NOT_ACCESSIBLE.format(_kind(self.who))}
        )
