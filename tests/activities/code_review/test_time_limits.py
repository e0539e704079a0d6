"""What a lens could not look at in its time is told as that, and is never "no remarks"."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.activities.review import examination
from holdfast.activities.review.analysing.lens import (
    Analyser,
    CommandLine,
    Grade,
    Parsed,
    Sighting,
)
from holdfast.activities.review.examination import Examination
from holdfast.activities.review.synthesis import review
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.contracts import Finding, ReviewData
from holdfast.untrusted.process import ProgramStopped
from repositories import Bench, Repository, remarks_of

pytestmark = [pytest.mark.long, pytest.mark.anyio]

TOOL = """
import json, sys, time
for path in sys.argv[1:]:
    text = open(path).read()
    time.sleep(600 if "hang" in text else 0.1 if "slow" in text else 0)
print(json.dumps(sys.argv[1:]))
"""


def command(files: Sequence[str], honour: bool) -> CommandLine:
    return CommandLine((sys.executable, "-I", "-S", "-c", TOOL, *files))


def parse(stdout: bytes) -> Parsed:
    return Parsed(tuple(Sighting(path, 1, "seen", "seen", "seen") for path in json.loads(stdout)))


STRANGE = Analyser(
    name="shell",
    looks_for="shell scripts",
    grades={"seen": Grade("info", 90)},
    languages=("Shell",),
    command=command,
    parse=parse,
)


def files(folder: Path, contents: Sequence[str]) -> list[str]:
    paths = [folder / f"{n:03}.sh" for n in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    return [str(path) for path in paths]


def deadline(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_of_a_slow_tool_the_first_files_are_looked_at_and_the_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "LEAST_SECONDS", 0.5)
    paths = files(tmp_path, ["slow"] * 200)
    parsed = await Examination(STRANGE, deadline(12)).look_at(paths)
    seen = [each.file for each in parsed.sightings]
    # Of files that are looked at together some may still be out when the time is over.
    assert paths[0] in seen and paths[-1] in parsed.not_reached
    assert sorted([*seen, *parsed.not_reached]) == paths
    assert (parsed.not_parsed, parsed.read) == ((), len(seen))


async def test_a_file_on_which_a_tool_hangs_takes_no_other_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "LEAST_SECONDS", 0.5)
    paths = files(tmp_path, ["fine"] * 5 + ["hang"] + ["fine"] * 2)
    parsed = await Examination(STRANGE, deadline(8)).look_at(paths)
    assert parsed.not_reached == (paths[5],)
    assert {each.file for each in parsed.sightings} == {*paths} - {paths[5]}


async def test_a_lens_that_looked_at_a_part_says_so_and_so_does_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With shellcheck itself, which gets no time for what hangs."""
    repository = Repository.at(tmp_path / "repo")
    script = '#!/bin/sh\nrm -rf "$1/"\n'
    repository.commit({"a.sh": script, "tests/b.sh": script, "c.sh": "#!/bin/sh\n# hang\n"})
    once = Examination._once

    async def hang(self: Examination, paths: Sequence[str], honour: bool, left: float) -> Parsed:
        if self.analyser.name == "shell" and any(path.endswith("c.sh") for path in paths):
            raise ProgramStopped("took longer than 5 s", late=True)
        return await once(self, paths, honour, left)

    monkeypatch.setattr(Examination, "_once", hang)
    draft = await Bench(tmp_path).look("shell", repository)
    assert "2 files looked at" in draft.content
    assert "1 file not looked at: the time limit was reached." in draft.content
    assert "parsed" not in draft.content
    finding = Finding(subtask_id="shell", status="complete", content=draft.content, data=draft.data)
    answered = review(SynthesisMaterial(goal="Review it", findings=(finding,)))
    data = ReviewData.model_validate(answered.data)
    assert (data.not_reached, data.not_reached_by) == (("c.sh",), {"shell": 1})
    assert data.not_parsed == ()
    assert (
        "**Not looked at, since the time limit was reached**: 1 file by shell." in answered.answer
    )
    assert "1 file not looked at by shell: the time limit" in answered.answer
    assert "Not looked at by every lens before the time limit: `c.sh`" in answered.answer


async def test_of_a_file_that_was_not_searched_for_secrets_nothing_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = Repository.at(tmp_path / "repo")
    repository.commit({"a.py": "print(missing)\n", "b.py": "print(missing)\n"})
    once = Examination._once

    async def hang(self: Examination, paths: Sequence[str], honour: bool, left: float) -> Parsed:
        if self.analyser.name == "secrets" and any(path.endswith("b.py") for path in paths):
            raise ProgramStopped("took longer than 5 s", late=True)
        return await once(self, paths, honour, left)

    monkeypatch.setattr(Examination, "_once", hang)
    found = {each.file: each for each in remarks_of(await Bench(tmp_path).look("bugs", repository))}
    assert found["a.py"].excerpt is not None and found["b.py"].excerpt is None
