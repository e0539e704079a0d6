"""What a pull request has of ours, read and written through the API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from holdfast.contracts import Remark
from holdfast.doors.github import threads
from holdfast.doors.github.api import Api, Json, NotAllowed, NotTaken, NotThere, as_described
from holdfast.doors.github.event import Asked, of_pull
from holdfast.doors.github.threads import Line, Mark, Thread
from holdfast.rendering.comment import as_thread
from holdfast.text import pluralize

_OF_PULL = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) { %s }
  }
}
"""
# Whose a comment is says `viewerDidAuthor`: REST and GraphQL call a bot by different names.
COMMENTS = (
    _OF_PULL
    % """
  headRefOid
  comments(first: 100, after: $after) {
    pageInfo { hasNextPage endCursor }
    nodes { id fullDatabaseId body viewerDidAuthor }
  }
"""
)
THREADS = (
    _OF_PULL
    % """
  reviewThreads(first: 100, after: $after) {
    pageInfo { hasNextPage endCursor }
    nodes {
      id isResolved path
      comments(first: 100) {
        totalCount
        nodes { id fullDatabaseId body viewerDidAuthor originalCommit { oid } }
      }
    }
  }
"""
)
# One request for both: whether a thread is closed, and by whom, are never told apart by a crash.
_CHANGE = """
mutation($thread: ID!, $comment: ID!, $body: String!) {
  updatePullRequestReviewComment(
    input: {pullRequestReviewCommentId: $comment, body: $body}
  ) { pullRequestReviewComment { id } }
  %s
}
"""
RESOLVE = _CHANGE % "resolveReviewThread(input: {threadId: $thread}) { thread { id } }"
REOPEN = _CHANGE % "unresolveReviewThread(input: {threadId: $thread}) { thread { id } }"
REWRITE = (_CHANGE % "").replace("$thread: ID!, ", "")
_DELETE = "mutation($id: ID!) { %s(input: {id: $id}) { clientMutationId } }"
DELETE_REMARK = _DELETE % "deletePullRequestReviewComment"
DELETE_SUMMARY = _DELETE % "deleteIssueComment"


@dataclass(frozen=True)
class PullState:
    """What there is of ours in a pull request, and where its head is."""

    head: str
    summary: int = 0
    """Id of the summary; 0: there is none yet."""
    said: str = ""
    """Its text."""
    threads: tuple[Thread, ...] = ()
    doubles: tuple[tuple[str, str], ...] = ()
    """What says again what an earlier one says, as two jobs at once leave it: the mutation that
    deletes it, and its id.
    """


async def read_pull(api: Api, asked: Asked) -> PullState:
    """Return what the pull request has of ours. Only what this very token wrote is believed."""
    head = ""
    summaries: list[tuple[int, str, str]] = []
    found: list[Thread] = []
    with as_described():
        async for page in _pages(api, asked, COMMENTS, "comments"):
            head = _text(page["headRefOid"])
            for each in page["comments"]["nodes"]:
                if each["viewerDidAuthor"] and threads.is_summary(each["body"]):
                    number = int(each["fullDatabaseId"])
                    summaries.append((number, _text(each["id"]), each["body"]))
        async for page in _pages(api, asked, THREADS, "reviewThreads"):
            found += filter(None, map(_thread, page["reviewThreads"]["nodes"]))
    kept, doubles = threads.single(found)
    first, *more = sorted(summaries) or [(0, "", "")]
    deleted = [
        *((DELETE_REMARK, each.comment) for each in doubles),
        *((DELETE_SUMMARY, id_) for _, id_, _ in more),
    ]
    return PullState(head, first[0], first[2], tuple(kept), tuple(deleted))


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{given!r:.40} is no text")
    return given


async def _pages(api: Api, asked: Asked, document: str, part: str) -> AsyncIterator[Json]:
    assert asked.pull is not None, "only a pull request has comments"
    owner, name = asked.repository.split("/")
    after: str | None = None
    while True:
        given = {"owner": owner, "name": name, "number": asked.pull.number, "after": after}
        data, _ = await api.graphql(document, **given)
        pull = (data.get("repository") or {}).get("pullRequest")
        if pull is None:
            raise NotAllowed(f"pull request {asked.pull.number} of {asked.repository} is not there")
        yield pull
        if not pull[part]["pageInfo"]["hasNextPage"]:
            return
        after = pull[part]["pageInfo"]["endCursor"]


def _thread(node: Json) -> Thread | None:
    """Return a thread of ours; None for anybody else's."""
    said = node["comments"]["nodes"]
    if not said or not said[0]["viewerDidAuthor"]:
        return None
    mark = threads.read_mark(said[0]["body"])
    if mark is None:
        return None
    others = any(not each["viewerDidAuthor"] for each in said)
    return Thread(
        id=_text(node["id"]),
        comment=_text(said[0]["id"]),
        number=int(said[0]["fullDatabaseId"]),
        head=(said[0]["originalCommit"] or {}).get("oid", ""),
        path=_text(node["path"]),
        body=said[0]["body"],
        resolved=node["isResolved"],
        alone=node["comments"]["totalCount"] == 1,
        answered=others or node["comments"]["totalCount"] > len(said),
        mark=mark,
    )


async def read_difference(api: Api, asked: Asked) -> set[Line]:
    """Return the lines that GitHub takes comments at."""
    assert asked.pull is not None
    found: set[Line] = set()
    with as_described():
        async for each in api.pages(f"/repos/{asked.repository}/pulls/{asked.pull.number}/files"):
            # Too large, or binary: it has none.
            found.update(threads.lines_of(each["filename"], each.get("patch", "")))
    return found


# ---------------------------------------------------------------- writing


async def change(api: Api, thread: Thread, body: str, *, resolve: bool) -> bool:
    """Rewrite the first comment of a thread, and close or open it. Return False where the token may
    only rewrite it. Doing so twice does no harm.
    """
    given = {"thread": thread.id, "comment": thread.comment, "body": body}
    if thread.resolved == resolve:
        await api.graphql(REWRITE, comment=thread.comment, body=body)
        return True
    _, errors = await api.graphql(RESOLVE if resolve else REOPEN, **given)
    return not errors


async def delete_doubles(api: Api, state: PullState) -> None:
    """Delete what says again what an earlier one says."""
    for document, id_ in state.doubles:
        with suppress(NotThere):
            # The other job, which sees the same doubles, was first.
            await api.graphql(document, id=id_)


async def open_threads(
    api: Api, asked: Asked, opened: Sequence[tuple[str, Remark]], fail_on: str
) -> list[str]:
    """Open a thread for each remark, all in one review; singly where GitHub does not take one of
    them. Return the keys of those that were opened. Unclear if nobody knows which.
    """
    assert asked.pull is not None
    place = f"/repos/{asked.repository}/pulls/{asked.pull.number}"
    comments = {key: _comment(key, each, fail_on) for key, each in opened}
    count = pluralize(len(comments), "new remark")
    review: Json = {
        "commit_id": asked.head,
        "event": "COMMENT",
        "body": f"holdfast: {count}. The summary of this pull request has all.",
        "comments": [*comments.values()],
    }
    try:
        await api.send("POST", f"{place}/reviews", review)
        return [*comments]
    except NotTaken:
        pass
    taken: list[str] = []
    for key, comment in comments.items():
        try:
            await api.send("POST", f"{place}/comments", {**comment, "commit_id": asked.head})
            taken.append(key)
        except NotTaken:
            continue
    return taken


def _comment(key: str, remark: Remark, fail_on: str) -> Json:
    path, side, line = threads.place_of(remark)
    body = f"{Mark.of(key, remark)}{as_thread(remark, fail_on)}"
    return {"path": path, "side": side, "line": line, "body": body}


async def write_summary(api: Api, asked: Asked, state: PullState, text: str) -> None:
    """Write the one summary, in its place if there is one. Unclear if nobody knows."""
    assert asked.pull is not None
    place = f"/repos/{asked.repository}/issues"
    if state.summary and state.said == text:
        return
    if state.summary:
        await api.send("PATCH", f"{place}/comments/{state.summary}", {"body": text})
        return
    await api.send("POST", f"{place}/{asked.pull.number}/comments", {"body": text})


def paths_of_agents(found: Iterable[Thread]) -> set[str]:
    """Return the files that threads of agents' remarks are about."""
    return {each.path for each in found if each.mark.by_agent}


async def find_pull(api: Api, repository: str, number: int) -> Asked:
    """Return what is to be reviewed of a pull request."""
    found = await api.get(f"/repos/{repository}/pulls/{number}")
    with as_described():
        return of_pull(found, repository)
