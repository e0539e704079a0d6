"""Show what one commit of a repository said and did."""

from __future__ import annotations

from typing import Annotated

import anyio.to_thread
from pydantic import Field

from holdfast.activities.repositories.manifest import Commit
from holdfast.activities.tools.git_history import describe_commit
from holdfast.activities.toolset.inputs import Location, place_of, quote_path, read_file
from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.text import for_terminal

PATCH_BYTES = 4 * 1024 * 1024


@tool(seconds=30, reads=("repository",))
async def git_patch(
    here: Here,
    path: Annotated[str, Field(description="The repository.")],
    commit: Annotated[
        str, Field(description="Its id, as git_history shows it.", pattern="^[0-9a-fA-F]{7,64}$")
    ],
) -> str:
    """Show the whole message of a commit. Where the repository is compared with a revision, also
    the diff of a commit that came before, of the files that changed since.
    """
    place = place_of(here, path)
    snapshot = await here.snapshot(place.input)
    found = [each for each in snapshot.manifest.commits if each.id.startswith(commit.lower())]
    if len(found) != 1:
        what = "several commits have" if found else "no commit that is known has"
        raise ToolError(
            f"{what} the id {commit!r} in {quote_path(place.input)}; git_history lists them"
        )
    (one,) = found
    lines = [describe_commit(one, "", whole=True)]
    if not one.patch_bytes:
        return "\n".join([*lines, f"[no diff of it is kept: {_why(one, snapshot.manifest.base)}]"])
    file = Location(place.input, (f"{one.id}.diff",))
    content = await anyio.to_thread.run_sync(read_file, snapshot.patches, file, PATCH_BYTES)
    withheld = await here.withheld(place.input)
    patch = for_terminal(content.decode("utf-8", "replace"), lines=True)
    lines.append("[its diff, of the files that changed since alone]")
    return "\n".join([*lines, withheld(patch).removesuffix("\n")])


def _why(commit: Commit, base: str) -> str:
    if not base:
        return "the whole tree is under review, and diffs are kept for a change alone"
    if commit.of_change:
        return "it is part of the change under review, which git_diff shows"
    return "it touched no file that is under review, or is beyond the newest that are kept"
