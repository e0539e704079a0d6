"""Show the code of a remark to whoever writes a proof of it, and run what it wrote."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio.to_thread

from holdfast.activities.prompts.evidence import Code, join_parts
from holdfast.activities.proofs.contained import NotContained, Ran, TestCommand
from holdfast.activities.proofs.patching import NotApplied, apply
from holdfast.activities.proofs.sources import gather
from holdfast.activities.repositories.manifest import SnapshotFile
from holdfast.activities.repositories.scratch import Snapshot, Snapshots
from holdfast.activities.review.lenses import SCANS, SeenAlone, look_alone
from holdfast.activities.toolset.child import ChildFailed, in_child
from holdfast.calls.fix import FixMaterial, TryFixMaterial
from holdfast.calls.prove import ProofCode, ProveMaterial, Script, Tried, TryMaterial, Way
from holdfast.contracts import Fix, ProofVerdict, Proving, Remark
from holdfast.contracts.errors import BadGoal, LensFailed
from holdfast.text import one_line
from holdfast.untrusted.redact import Redactor

SCRIPT = Path(__file__).resolve().parent / "scripts" / "prove_python.py"
SCAN_SECONDS = 60.0
"""How long the search for secrets may take, if no lens has made it in this process."""
SANDBOX = "Monty, Python 3.14"
"""What runs scripts in the sandbox, in a few words."""
SECONDS = 10.0
MEMORY = 256 * 1024 * 1024
"""Seconds of a script, and bytes of the objects that it may have at a time."""
STARTING_SECONDS = 10.0
"""Extra time to start and end the processes on a busy machine, twice."""
PARSING_SECONDS = 20.0
LENS_SECONDS = 120.0
"""How long all analysers may take for one file, as it is and as it is patched."""
OUTPUT_LINES, LINE_LETTERS = 6, 300
"""Shown of what a script ended with."""
PRINTED_LINES, PRINTED_LETTERS = 15, 200
"""Of what a test command wrote, its last lines that whoever writes another test is shown."""
PRINTED_MOST = PRINTED_LINES * (PRINTED_LETTERS + 1)
TESTS_FAILED = 1
"""Exit code of pytest where tests ran and some failed; others say that they could not run."""
LONGEST_FILE = 1024 * 1024
"""Bytes of a Python file that is parsed."""
OF_CODE, OF_IMPORTS, OF_CALLS, OF_TEST, OF_USES = 5_000, 1_000, 2_400, 1_600, 2_000
"""Bytes shown of the function, of its file's imports, of what it calls, of the nearest test, and to
a fixer of where it is used.
"""
OF_NAMES = 1_800
"""Letters of what a script can call, cut at whole lines."""


def sandboxed() -> Proving:
    """Return whether the Python sandbox can run proofs here."""
    if find_spec("pydantic_monty") is None:
        return Proving(lacking="it needs the sandbox: pip install 'holdfast[python]'")
    return Proving(by="sandbox")


@dataclass(frozen=True)
class Proofs:
    """Shows and runs proofs over stored snapshots."""

    snapshots: Snapshots
    command: TestCommand | None = None
    """The test command of the deployment; None: it allows none."""

    async def find_way(self) -> Proving:
        """Return how proofs can be run here: by the test command, else in the sandbox. Raise
        BadGoal for a command that is not on this machine.
        """
        way = sandboxed()
        if self.command is None:
            return way
        if missing := self.command.missing():
            raise BadGoal(missing)
        lacking = await self.command.find_lacking()
        return Proving(by=way.by, lacking=lacking) if lacking else Proving(by="tests")

    async def show(self, material: ProveMaterial) -> ProofCode:
        """Return what a model may see of a remark's code. Raise BlobLost as `Prover` says."""
        snapshot = await self.snapshots.open(material.repository.digest)
        redactor = await _redactor(snapshot, material.remark.file)
        found = {}
        if material.by == "sandbox" and (sources := await _read_sources(snapshot, material.remark)):
            found = await _find(sources["head"], material.remark)
        code = await anyio.to_thread.run_sync(_show, snapshot, redactor, material, found)
        named = redactor.message(self._name_runner(material.by), LINE_LETTERS, material.remark.file)
        return replace(code, runner=named)

    def _name_runner(self, by: Way) -> str:
        return SANDBOX if by == "sandbox" or self.command is None else self.command.name

    async def run(self, material: TryMaterial) -> Tried:
        """Return how a script ended on the head and on the base."""
        snapshot = await self.snapshots.open(material.repository.digest)
        redactor = await _redactor(snapshot, material.remark.file)
        if material.by == "tests":
            ended = await self._run_test(snapshot, material)
        else:
            ended = await _run_in_sandbox(snapshot, material)
        return _tried(material, ended, redactor, self._name_runner(material.by))

    async def try_fix(self, material: TryFixMaterial) -> Fix:
        """Return whether an edit applies, brings no new remark and mends what the script shows."""
        snapshot = await self.snapshots.open(material.repository.digest)
        redactor = await _redactor(snapshot, material.remark.file)
        path = material.remark.file
        head = (*snapshot.manifest.files, *snapshot.manifest.around)
        file = next((each for each in head if each.path == path), None)
        if file is None:
            return Fix(why="the code under review has no such file")
        try:
            content = await anyio.to_thread.run_sync(snapshot.path(path).read_bytes)
            patched = apply(content.decode("utf-8"), path, material.edit)
        except (NotApplied, OSError, UnicodeDecodeError) as error:
            return Fix(why=redactor.message(f"a patch was refused: {error}", LINE_LETTERS, path))
        shown = redactor.message(patched.diff, len(patched.diff), path)
        if shown != patched.diff or not redactor.quotes(path):
            return Fix(why="a patch was refused: it shows what looks like a secret")
        with tempfile.TemporaryDirectory(prefix="fixed-") as folder:
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(patched.text.encode())
            try:
                await _look_at(snapshot, material, file, Path(folder))
                proof = await self._prove_again(snapshot, material, place, patched.text)
            except NotApplied as error:
                said = f"a patch was refused: {error}"
                return Fix(why=redactor.message(said, LINE_LETTERS, path))
        why = material.edit.why.strip().rstrip(".")
        why = f"{why}; on a copy no lens sees anything new, and {proof}"
        return Fix(
            why=redactor.message(why, 2 * LINE_LETTERS, path),
            diff=patched.diff,
            first=patched.first,
            last=patched.last,
            lines=patched.lines,
        )

    async def _prove_again(
        self, snapshot: Snapshot, material: TryFixMaterial, patched: Path, text: str
    ) -> str:
        """Return what the proof says for a patched file, in a clause. Raise NotApplied if it still
        fails; a proof that the sandbox can run neither on the base nor here says nothing.
        """
        if material.script is None:
            return "nothing of it was run, as there is no proof"
        trial = TryMaterial(
            repository=material.repository,
            remark=material.remark,
            script=material.script,
            by=material.by,
        )
        if material.by == "tests":
            ended = await self._run_test(snapshot, trial, {material.remark.file: patched})
        else:
            ended = await _run_in_sandbox(snapshot, trial, text)
        head, base = ended["head"], ended["base"]
        if not head["kind"]:
            return "the proof passes"
        if base and _is_beyond_sandbox(head) and _is_beyond_sandbox(base):
            return "the sandbox can run the proof neither with it nor on the base"
        raise NotApplied(f"its proof ends with {_ending(head)}")

    async def _run_test(
        self, snapshot: Snapshot, material: TryMaterial, patched: Mapping[str, Path] | None = None
    ) -> dict[str, Any]:
        """Return how the test of a proof ends on head and base; on the head alone if that is
        `patched`.
        """
        script = material.script
        head, base = trees_of(snapshot)
        if self.command is None:
            return _failed("this worker has no test command")
        if script.path in head:
            return _failed(f"there is a file {script.path} already")
        if base is not None and _name_before(snapshot, material.remark) not in base:
            # Any test of what is new fails without it: that tells nothing of the remark.
            base = None
        trees = {"head": head, "base": base}
        if patched is not None:
            trees = {"head": {**head, **patched}}
        ended: dict[str, Any] = {"base": None}
        try:
            for name, tree in trees.items():
                if tree is not None:
                    ran = await self.command.run(tree, script.path, script.text)
                    if name == "head" and (why := find_unstarted(ran, script.path)):
                        return _failed(why, kind="Unstarted")
                    ended[name] = _ran(ran, script, by_pytest=self.command.by_pytest)
        except NotContained as error:
            return _failed(str(error))
        return ended


def trees_of(snapshot: Snapshot) -> tuple[dict[str, Path], dict[str, Path] | None]:
    """Return the files of the head and of the base, by path, each with where it lies; None without
    a base.
    """
    manifest = snapshot.manifest
    around = {each.path: snapshot.path(each.path) for each in manifest.around}
    head = {**around, **{each.path: snapshot.path(each.path) for each in manifest.files}}
    if not manifest.base:
        return head, None
    return head, {**around, **{each.path: snapshot.before / each.path for each in manifest.before}}


async def _look_at(
    snapshot: Snapshot, material: TryFixMaterial, file: SnapshotFile, folder: Path
) -> None:
    """Raise NotApplied if the lenses see anything new in the patched file below a folder, or still
    what the patch is to mend.
    """
    deadline = time.monotonic() + LENS_SECONDS
    was = next((each for each in snapshot.manifest.before if each.path == file.was), None)
    try:
        before = await look_alone(file, snapshot.root, deadline)
        after = await look_alone(file, folder, deadline)
        worse = list_brought(before, after)
        if worse and was is not None:
            worse = list_brought(before, after, await look_alone(was, snapshot.before, deadline))
    except LensFailed as error:
        raise NotApplied(f"the lenses could not look at it ({error.message})") from error
    if worse:
        raise NotApplied(f"it brings {', '.join(worse)}")
    seen_by = f"{material.remark.lens}:{material.remark.rule}"
    left = [sum(each.rule == seen_by for each in seen) for seen in (before, after)]
    if left[0] and left[1] >= left[0]:
        raise NotApplied(f"{seen_by} still sees it")


def list_brought(
    head: Sequence[SeenAlone], patched: Sequence[SeenAlone], base: Sequence[SeenAlone] = ()
) -> list[str]:
    """Return the rules of which a patched file has more than its head, but for what stood in the
    base, at least as bad, and is put back.
    """
    worst: dict[tuple[str, str], int] = {}
    for each in patched:
        worst[each[:2]] = max(each.weight, worst.get(each[:2], 0))
    had = Counter(each[:2] for each in base if each.weight >= worst.get(each[:2], 0))
    put_back = had - Counter(each[:2] for each in head)
    more = Counter(each[:2] for each in patched) - put_back
    return sorted(
        Counter(rule for rule, _ in more.elements()) - Counter(each.rule for each in head)
    )


async def _redactor(snapshot: Snapshot, file: str) -> Redactor:
    deadline = time.monotonic() + SCAN_SECONDS
    return (await SCANS.redactors(snapshot, deadline, [file]))[0]


# ---------------------------------------------------------------- what is shown


def _show(
    snapshot: Snapshot, redactor: Redactor, material: ProveMaterial, found: dict[str, Any]
) -> ProofCode:
    remark = material.remark
    place = redactor.path(remark.file)
    place = f"{place} line {remark.line}" if remark.line else place
    said, wanted = (
        redactor.message(each, 2_000, remark.file) for each in (remark.message, remark.suggestion)
    )
    withheld = frozenset((each.file, each.line) for each in material.withheld)
    code = Code(snapshot, redactor, withheld, material.repository.name)
    if remark.file not in {*code.files, *code.gone} or not redactor.quotes(remark.file):
        return ProofCode(place, said, wanted)
    calls = code.calls(remark, f"{remark.message}\n{remark.suggestion}", whole=True)
    own = [(OF_CODE, code.function(remark, OF_CODE)), (OF_IMPORTS, code.imports(remark.file))]
    beside = [(OF_CALLS, calls), (OF_TEST, code.nearest_test(remark))]
    if isinstance(material, FixMaterial):
        # A patch that those break who use what it changes is none.
        beside.append((OF_USES, code.uses(remark)))
    names: list[str] = []
    for each in found.get("names", ()):
        names.append(redactor.message(each, 200, remark.file))
        if sum(map(len, names)) > OF_NAMES:
            names.pop()
            break
    return ProofCode(
        place=place,
        message=said,
        suggestion=wanted,
        name=found.get("name", ""),
        code=join_parts(own, OF_CODE + OF_IMPORTS),
        around=join_parts(beside, sum(most for most, _ in beside)),
        names="\n".join(names),
    )


# ---------------------------------------------------------------- running it


async def _read_sources(snapshot: Snapshot, remark: Remark) -> dict[str, Any]:
    """Return the Python files that a proof of a remark may load, of the head and of the base, as
    `prove_python.py` is given them; empty if the head has no such file.
    """
    return await anyio.to_thread.run_sync(_sources, snapshot, remark)


def _sources(snapshot: Snapshot, remark: Remark) -> dict[str, Any]:
    head, base = trees_of(snapshot)
    if remark.file not in head:
        return {}
    was = _name_before(snapshot, remark)
    return {
        "head": gather(head, remark.file),
        "base": gather(base, was) if base is not None and was in base else None,
    }


def _name_before(snapshot: Snapshot, remark: Remark) -> str:
    """Return the path that a remark's file has in the base, if it is there."""
    moved = {each.now: each.path for each in snapshot.manifest.before}
    return moved.get(remark.file, remark.file)


async def _find(source: dict[str, Any], remark: Remark) -> dict[str, Any]:
    """Return the function around a line, as `prove_python.py` finds it; empty if it is no Python
    that parses.
    """
    asked = {"do": "show", "head": source, "line": remark.line}
    try:
        said = await in_child(SCRIPT, json.dumps(asked).encode(), seconds=PARSING_SECONDS)
    except ChildFailed:
        return {}
    found: dict[str, Any] = json.loads(said)
    return {} if "error" in found else found


async def _run_in_sandbox(
    snapshot: Snapshot, material: TryMaterial, patched: str | None = None
) -> dict[str, Any]:
    """Return how the script of a proof ends on the head, `patched` if that is given, and on the
    base.
    """
    remark = material.remark
    sources = await _read_sources(snapshot, remark)
    if not sources:
        return _failed("there is no such file in what is reviewed")
    found = await _find(sources["head"], remark)
    if patched is not None:
        sources["head"]["files"][remark.file] = patched
    asked = {
        **sources,
        "do": "run",
        "script": material.script.text,
        "about": found.get("name", ""),
        "seconds": SECONDS,
        "memory": MEMORY,
    }
    limit = 2 * (SECONDS + STARTING_SECONDS)
    try:
        said = await in_child(SCRIPT, json.dumps(asked).encode(), seconds=limit)
    except ChildFailed as error:
        return _failed(str(error))
    ended: dict[str, Any] = json.loads(said)
    return ended


def _ran(ran: Ran, script: Script, *, by_pytest: bool) -> dict[str, Any]:
    """Return how a test command ended, as the sandbox says it of a script; `failed` if its exit
    code can be that of a failed test, and no error of the test itself was printed, `certain` if it
    is no other's; and the last `lines`.
    """
    if not ran.code:
        return {"kind": "", "said": "", "printed": "", "failed": False}
    name = script.fails_with.rpartition(".")[2]
    told = [line.rstrip() for line in ran.output.splitlines() if line.strip()]
    naming = [line for line in told if name in line]
    own = _find_own_error(told, script.path)
    if own:
        naming = []
    return {
        "kind": name if naming else f"exit code {ran.code}",
        "said": own or (naming or told or ["nothing was printed"])[-1],
        "printed": "",
        "failed": not own and (bool(naming) or not by_pytest or ran.code == TESTS_FAILED),
        "certain": bool(naming) or by_pytest,
        "lines": [line[:PRINTED_LETTERS] for line in told[-PRINTED_LINES:]],
    }


def find_unstarted(ran: Ran, test: str) -> str:
    """Return why a test command could not be started, as the rest of a sentence; empty: it could.
    A test that is a script of a shell may itself end as a program that is not there.
    """
    told = [line.strip() for line in ran.output.splitlines() if line.strip()]
    found = [line for line in told if _NOT_THERE.search(line)]
    if not ran.code or any(test in line for line in found):
        return ""
    if ran.code not in UNSTARTED and not (found and len(told) <= FEW_LINES):
        return ""
    said = (found or told or ["nothing was printed"])[-1]
    return f"the test command could not be started (exit code {ran.code}): {one_line(said)}"


def _find_own_error(lines: Sequence[str], test: str) -> str:
    """Return the line in which Python or pytest says that the test itself lacks a name, a module
    or a fixture; empty: none does.
    """
    place = ""
    for line in lines:
        if line.lstrip().startswith('File "'):
            place = line
        kind = line.partition(":")[0]
        if kind in OWN_ERRORS and f'{test}"' in place:
            return line
        found = _PYTEST_ERROR.match(line)
        if found and (found["fixture"] or (found["file"] == test and found["kind"] in OWN_ERRORS)):
            return line.removeprefix("E").strip()
    return ""


def _failed(why: str, kind: str = "Failed") -> dict[str, Any]:
    return {"head": {"kind": kind, "said": why, "printed": ""}, "base": None}


OWN_ERRORS = (
    *("NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError"),
    *("SyntaxError", "IndentationError"),
)
"""Errors that say nothing of the code under review where a script or test makes them itself."""
_PYTEST_ERROR = re.compile(
    r"(?P<file>\S+):\d+: (?P<kind>\w+)\Z|E\s+(?P<fixture>fixture '\w+' not found)"
)
UNSTARTED = (126, 127)
"""Exit codes of a shell, and of ours, for a program that cannot be started."""
FEW_LINES = 3
"""Most lines that a command writes which cannot start what it calls; a test writes more."""
_NOT_THERE = re.compile(
    r"^(?!E\s)(?!\w*Error\b).*(: (command )?not found|: No such file or directory|: No module named"
    r" '?[\w.]+'?|: Permission denied)\Z"
)
UNRUN = ("SyntaxError", "Unused", "Absent", "Unloaded", "Failed", "Crashed")
"""How a script ends that did not come to run."""


def _tried(material: TryMaterial, ended: dict[str, Any], redactor: Redactor, runner: str) -> Tried:
    """Return what a script shows by how it ended on head and base. What speaks against a remark
    names its `runner`.
    """
    head, base = ended["head"], ended["base"]
    judged = judge_test if "failed" in head else judge
    verdict, why = judged(material.script.fails_with, head, base)
    if verdict == "not proved":
        why = f"{why} ({runner})"
    file = material.remark.file
    lines = [f"head: {_ending(head)}", *([f"base: {_ending(base)}"] if base else [])]
    said = "\n".join(lines[:OUTPUT_LINES])
    return Tried(
        verdict=verdict,
        # Nothing that passes is written again.
        final=head["kind"] in ("Unloaded", "Unstarted", ""),
        why=redactor.message(why, LINE_LETTERS, file),
        output=redactor.message(said, OUTPUT_LINES * LINE_LETTERS, file),
        printed=redactor.message("\n".join(head.get("lines", ())), PRINTED_MOST, file),
        script=redactor.message(material.script.text, len(material.script.text), file),
    )


def _ending(ended: dict[str, Any]) -> str:
    said = one_line(f"{ended['said'] or 'passes'} {ended['printed']}".strip())
    return said[:LINE_LETTERS]


def judge(
    wanted: str, head: dict[str, Any], base: dict[str, Any] | None
) -> tuple[ProofVerdict, str]:
    """Return the verdict on a script for the sandbox that should end with an error of this name on
    the head and pass on the base, and why in a sentence.
    """
    if not head["kind"]:
        return _judge_passing(head, base)
    if head["kind"] == "Unstarted":
        return "not tried", head["said"]
    if not _ends_so(head, wanted):
        if head["kind"] in UNRUN:
            return "not tried", f"it did not run: {one_line(head['said'])}"
        return "not tried", f"it ended with {head['kind']} instead of {wanted}"
    if not head.get("ran", True):
        return "not tried", f"it ended with {head['kind']} before it ran the function"
    if head.get("own") and head["kind"] in OWN_ERRORS:
        return "not tried", f"it ended with a {head['kind']} of its own"
    fails = f"it fails with {head['kind']} on the code under review"
    if base is None:
        return "shown", f"{fails}; there is no base to compare with"
    if not base["kind"]:
        if not base.get("ran", True):
            return "shown", f"{fails}; on the base it passes without running the function"
        return "proved", f"{fails} and passes on the base"
    if _ends_so(base, wanted):
        return "not proved", f"{fails}, and on the base as well"
    return "shown", f"{fails}; the base cannot run it ({base['kind']})"


def _judge_passing(head: dict[str, Any], base: dict[str, Any] | None) -> tuple[ProofVerdict, str]:
    """Return the verdict on a script that passes on the head in the sandbox, which is less than the
    code runs with elsewhere.
    """
    if lacks := head.get("lacks"):
        why = f"the sandbox lacks what the code imports ({', '.join(lacks)})"
        return "not tried", f"{why}, so that the script passes in it shows nothing"
    if base is not None and not base["kind"]:
        return "not tried", "the script passes in the sandbox on the base as well: it shows nothing"
    return "not proved", "it passes on the code under review"


def judge_test(
    wanted: str, head: dict[str, Any], base: dict[str, Any] | None
) -> tuple[ProofVerdict, str]:
    """Return the verdict on a test that a command ran, and why in a sentence. Any failed assertion
    counts, whatever it is called: a runner tells it by its exit code.
    """
    if not head["kind"]:
        return "not proved", "it passes on the code under review"
    name = wanted.rpartition(".")[2]
    if not head["failed"]:
        return "not tried", f"it did not run: {head['kind']}, {one_line(head['said'])}"
    fails = "it fails on the code under review"
    if head["kind"] == name:
        fails = f"it fails with {name} on the code under review"
    if base is not None and not base["kind"]:
        return "proved", f"{fails} and passes on the base"
    if not head["certain"]:
        return "not tried", f"it ended with {head['kind']} instead of {name}"
    if base is None:
        return "shown", f"{fails}; there is no base to compare with"
    if head["kind"] == name == base["kind"]:
        return "not proved", f"{fails}, and on the base as well"
    if head["kind"] == name or not base["failed"]:
        return "shown", f"{fails}; the base cannot run it ({base['kind']})"
    return "not tried", f"it ended with {head['kind']} instead of {name}, on the base as well"


def _ends_so(ended: dict[str, Any], wanted: str) -> bool:
    """True if it ended with the wanted error, by the code and not by the sandbox."""
    return ended["kind"] == wanted.rpartition(".")[2] and not _is_beyond_sandbox(ended)


def _is_beyond_sandbox(ended: dict[str, Any]) -> bool:
    """True if it ended by what the sandbox cannot do or does not have."""
    lacking = "monty" in ended["said"].lower() or "; not there: " in ended["said"]
    return lacking or ended["kind"] == "Unloaded"
