"""The lenses for what is not Python: what they find, and what a stranger's repository cannot do."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.review.believed import SHOWN
from holdfast.activities.review import lenses
from holdfast.activities.review.analysers import dockerfiles, javascript
from holdfast.activities.review.analysing.lens import SYNTAX
from holdfast.activities.review.lenses import analysers, find_idle, readers
from holdfast.activities.toolset.serving import drop_idle
from holdfast.contracts import Draft, Omission, Plan, RoleCard, Subtask
from holdfast.contracts.errors import LensFailed
from holdfast.deployment.extras import needs
from parameters import rest_long
from repositories import Bench, Repository, remarks_of

pytestmark = [pytest.mark.long, pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

WORKFLOW = """\
on: pull_request_target
jobs:
  greet:
    runs-on: ubuntu-latest
    steps:
      - run: echo "${{ github.event.pull_request.title }}"
"""
DEFECTS: dict[str, tuple[str, str, set[tuple[int, str]]]] = {
    "javascript": (
        "a.js",
        "const a = require('a');\nif (a = 1) { missing(); }\nexports.b = { x: 1, x: 2 };\n",
        {(2, "no-const-assign"), (2, "no-cond-assign"), (2, "no-undef"), (3, "no-dupe-keys")},
    ),
    "patterns": (
        "main.go",
        'package a\nfunc f() {\n\tdb.Query("SELECT a FROM t WHERE b = " + b)\n}\n',
        {(3, "go-sql-of-pieces")},
    ),
    "shell": (
        "clean.sh",
        '#!/bin/sh\nrm -rf "$1/"\n[ -n $a ] && echo "$b" 2>&1 >/dev/null\n',
        {(2, "SC2115"), (3, "SC2070"), (3, "SC2069")},
    ),
    "workflows": (
        ".github/workflows/ci.yml",
        WORKFLOW,
        {(6, "template-injection")},
    ),
    "dockerfiles": (
        "Dockerfile",
        "FROM a:1 AS x\nFROM b:1 AS x\nEXPOSE 99999\nCMD a\nCMD b\n",
        {(2, "DL3024"), (3, "DL3011"), (5, "DL4003")},
    ),
    "configuration": (
        "a.yml",
        "a: 1\nb: {x: 1, x: 2}\na: 2\n---\na: [{k: 1}, {k: 1}]\n",
        {(2, "repeated-key"), (3, "repeated-key")},
    ),
}
SETTINGS = {
    ".oxlintrc.json": '{"rules": {"no-undef": "off"}, "jsPlugins": ["./p.js"]}',
    "oxlint.config.ts": "throw new Error('read')\n",
    ".eslintignore": "*\n",
    ".gitignore": "",
    ".ignore": "*\n",
    "sgconfig.yml": "ruleDirs: []\n",
    ".shellcheckrc": "disable=all\nexternal-sources=true\n",
    "zizmor.yml": "rules: {template-injection: {disable: true}}\n",
    ".github/zizmor.yml": "rules: {template-injection: {disable: true}}\n",
    ".hadolint.yaml": "ignored: [DL3024, DL3011, DL4003]\n",
    ".yamllint": "rules: {}\n",
}
BROKEN = {
    "javascript": ("a.js", "function (\n"),
    "shell": ("a.sh", "#!/bin/sh\nif true; then\n"),
    "workflows": (".github/workflows/a.yml", "on: [\n"),
    "dockerfiles": ("Dockerfile", "FROM\nNOTHING\n"),
    "configuration": ("a.toml", "a = \n"),
}


def usable(lens: str) -> str:
    """The lens, unless what it runs is an optional package that is not here."""
    if analysers()[lens].lacking:
        pytest.skip(analysers()[lens].lacking)
    return lens


def shown(draft: Draft) -> set[tuple[int, str]]:
    return {(each.line, each.rule) for each in remarks_of(draft) if each.confidence >= SHOWN}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(tmp_path / "repo")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_a_script_with_carriage_returns_is_one_remark_at_its_first_line(
    repository: Repository, bench: Bench
) -> None:
    lines = ["#!/bin/sh", "set -e", 'if [ -n "$1" ]; then', '  echo "$1"', "fi", ""]
    repository.write("a.sh", "\r\n".join(lines))
    repository.write("b.sh", "\n".join(lines))
    found = remarks_of(await bench.look(usable("shell"), repository))
    assert [(each.file, each.line, each.rule) for each in found] == [("a.sh", 1, "SC1017")]
    assert "CRLF" in found[0].message


async def test_only_what_a_stranger_can_write_into_a_script_is_critical(
    repository: Repository, bench: Bench
) -> None:
    text = WORKFLOW.replace(
        'run: echo "${{ github.event.pull_request.title }}"',
        """run: |
          echo "${{ github.actor }} ${{ github.event.pull_request.head.sha }}"
          echo "${{ inputs.version }}" "${{ github.event.pull_request.title }}"
          echo "${{ github.event.comment.body }}" "${{ github.head_ref }}"
          body="title" name='${{ github.event.repository.name }}'""",
    )
    repository.commit({".github/workflows/ci.yml": text})
    found = remarks_of(await bench.look("workflows", repository))
    assert [each.line for each in found if each.severity == "critical"] == [8, 9, 9]


@pytest.mark.parametrize("lens", rest_long(DEFECTS, first=2))
async def test_defects_are_found_whatever_the_settings_of_the_repository_say(
    repository: Repository, bench: Bench, lens: str
) -> None:
    name, text, expected = DEFECTS[usable(lens)]
    repository.commit({name: text})
    assert shown(await bench.look(lens, repository)) == expected
    repository.commit(dict(SETTINGS))
    draft = await bench.look(lens, repository)
    assert {(each.line, each.rule) for each in remarks_of(draft) if each.file == name} >= expected


@pytest.mark.parametrize("lens", rest_long(BROKEN, first=2))
async def test_what_cannot_be_parsed_is_said(
    repository: Repository, bench: Bench, lens: str
) -> None:
    name, text = BROKEN[usable(lens)]
    repository.commit({name: text})
    draft = await bench.look(lens, repository)
    assert draft.data["not_parsed"] == [name]


NAMES = (
    "-rf{}",
    "new\nline{}",
    "q\"u'o;te{}",
    "é {}",
    "$(id){}",
    "a/../b{}".replace("/../", "%2F"),
)


@pytest.mark.parametrize("lens", rest_long(["javascript", "patterns", "shell", "configuration"]))
async def test_files_of_any_name_are_looked_at(
    repository: Repository, bench: Bench, lens: str
) -> None:
    name, text, expected = DEFECTS[lens]
    names = {each.format(Path(name).suffix) for each in NAMES}
    repository.commit(dict.fromkeys(names, text))
    draft = await bench.look(lens, repository)
    assert {each.file for each in remarks_of(draft)} == names
    assert len(shown(draft)) == len(expected)


HOSTILE = {
    "javascript": (".js", ("(" * 50_000, "a=" + "[" * 50_000, "`${" * 20_000, "x" * 900_000)),
    "patterns": (".go", ("package a\nfunc f() { " + "(" * 50_000, "a" * 900_000, "{" * 50_000)),
    "shell": (".sh", ("#!/bin/sh\n" + "$(" * 300, "#!/bin/sh\n" + "a" * 200_000)),
    "configuration": (".yml", ("[" * 50_000, "{a: " * 50_000, "a: &a [*a]\n", "? " * 50_000)),
}


@pytest.mark.parametrize("lens", rest_long(HOSTILE))
async def test_hostile_files_take_no_others_down(
    repository: Repository, bench: Bench, lens: str
) -> None:
    ending, texts = HOSTILE[lens]
    name, text, expected = DEFECTS[lens]
    repository.commit({f"bad{n}{ending}": each for n, each in enumerate(texts)})
    repository.commit({name: text, f"binary{ending}": b"\0\1\2"})
    async with asyncio.timeout(100):
        draft = await bench.look(lens, repository)
    assert {(e.line, e.rule) for e in remarks_of(draft) if e.file == name} >= expected


async def test_a_script_reads_no_file_that_is_not_part_of_the_review(
    repository: Repository, bench: Bench, tmp_path: Path
) -> None:
    canary = tmp_path / "canary.sh"
    canary.write_text('rm -rf "$1/"\n')
    text = f"#!/bin/sh\n# shellcheck source={canary}\n. {canary}\nsource '{canary}'\n"
    repository.commit({"a.sh": text})
    draft = await bench.look(usable("shell"), repository)
    assert remarks_of(draft) == []


async def test_flow_and_names_of_bundlers_and_of_pages_are_no_undefined_names(
    repository: Repository, bench: Bench
) -> None:
    repository.commit(
        {
            "flow.js": "/* @flow */\nfunction f(a: ?string) { return missing; }\n",
            "built.js": "export const a = __BUILD__ + VERSION;\n",
            "page.js": "start(another);\n",
            "module.js": "import a from 'a';\na(missing);\n",
        }
    )
    draft = await bench.look("javascript", repository)
    assert [(each.file, each.rule) for each in remarks_of(draft)] == [("module.js", "no-undef")]
    assert draft.data["not_parsed"] == ["flow.js"]


async def test_a_template_of_yaml_is_not_parsed_and_no_remark(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"chart.yaml": "a: {{ .Values.a }}\n{{- if .b }}\n"})
    draft = await bench.look("configuration", repository)
    assert (remarks_of(draft), draft.data["not_parsed"]) == ([], ["chart.yaml"])


def test_every_rule_of_the_table_is_one_of_oxlint(tmp_path: Path) -> None:
    script = tmp_path / "a.js"
    script.write_text("export {};\n")
    arguments = javascript.command([str(script)], True).arguments
    tool = arguments[arguments.index("oxlint") + 1 :]
    done = subprocess.run(tool, capture_output=True, check=True)
    rules = {row.partition(" ")[0] for row in javascript.GRADES} - {SYNTAX}
    assert json.loads(done.stdout)["number_of_rules"] == len(rules)


# ---------------------------------------------------------------- lenses with nothing to look at


async def test_lenses_of_languages_that_do_not_occur_are_idle(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.go": "package a\n", "run": "#!/bin/sh\ntrue\n"})
    pinned = await bench.pin(repository)
    idle = await find_idle(bench.store, pinned.digest)
    assert set(analysers()) - set(idle) == {"complexity", "history", "secrets", "patterns", "shell"}
    assert set(idle.values()) == {""}


async def test_files_that_could_not_be_read_keep_the_lens_of_their_language(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.js": b"\0\1"})
    idle = await find_idle(bench.store, (await bench.pin(repository)).digest)
    assert "javascript" not in idle and "bugs" in idle


async def test_a_lens_whose_program_is_not_here_is_said_only_where_it_is_missed(
    repository: Repository, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = replace(dockerfiles.ANALYSER, program="no-such-program")
    here = {**analysers(), "dockerfiles": absent}
    monkeypatch.setattr(lenses, "analysers", lambda: here)
    readers.cache_clear()
    try:
        assert "dockerfiles" not in readers()
        repository.commit({"a.go": "package a\n"})
        idle = await find_idle(bench.store, (await bench.pin(repository)).digest)
        assert idle["dockerfiles"] == ""
        repository.commit({"Dockerfile": "FROM a\n"})
        idle = await find_idle(bench.store, (await bench.pin(repository)).digest)
        why = f"it {needs('dockerfiles')}"
        assert idle["dockerfiles"] == why
        with pytest.raises(LensFailed, match=re.escape(why)):
            await bench.look("dockerfiles", repository)
    finally:
        readers.cache_clear()


async def test_a_plan_leaves_out_what_is_idle_and_says_what_is_lacking(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"a.go": "package a\n"})
    names = ("bugs", "dockerfiles", "patterns")
    cards = [RoleCard(name=name, description=name, tier="none", tools=(name,)) for name in names]
    plan = Plan(
        goal="g",
        subtasks=tuple(
            Subtask(id=n, title=f"Title of {n}", instruction="i", role=n) for n in names
        ),
    )

    async def idle(digest: str) -> dict[str, str]:
        assert digest
        return {"bugs": "", "dockerfiles": "hadolint is not installed"}

    kept, omitted = await drop_idle(plan, cards, [await bench.pin(repository)], idle)
    assert [each.id for each in kept.subtasks] == ["patterns"]
    assert omitted == (Omission(what="Title of dockerfiles", why="hadolint is not installed"),)
    assert (await drop_idle(plan, cards, [], idle)) == (plan, ())


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces of Linux")
async def test_programs_are_taken_from_this_environment_alone() -> None:
    for analyser in analysers().values():
        if analyser.command is not None and analyser.program and not analyser.lacking:
            arguments = analyser.command(["a"], True).arguments
            assert str(Path(sys.prefix).resolve()) in str(
                Path(
                    next(each for each in arguments if each.endswith(f"/{analyser.program}"))
                ).resolve()
            )


async def test_a_path_whose_variable_a_line_above_guards_is_no_remark(
    repository: Repository, bench: Bench
) -> None:
    repository.commit(
        {
            "a.sh": '#!/bin/bash\nout=${1:?}\nrm -rf "$out"/*\n',
            "b.sh": '#!/bin/sh\n: "${out:?say where}"\n\trm -rf "${out}/"\n',
            "late.sh": '#!/bin/sh\nrm -rf "$out/"\n: "${out:?}"\n',
            "other.sh": '#!/bin/sh\nb=${1:?}\n# ${out:?}\nrm -rf "$out/"\n',
        }
    )
    seen = {each.file for each in remarks_of(await bench.look("shell", repository))}
    assert seen == {"late.sh", "other.sh"}


VUE = "import { ref } from 'vue';\nexport function on(x) {\n  if (x) useListener(x);\n}\n"
REACT = (
    "import { useState } from 'react';\nexport function Page({ x }) {\n"
    "  if (x) { useState(0); }\n  return null;\n}\n"
)
OWN = (
    "import { options } from 'preact';\nexport function useReducer(f) { return f; }\n"
    "export function render(f) {\n  if (f) { return useReducer(f); }\n}\n"
)


async def test_rules_of_hooks_are_for_those_who_use_react_and_not_for_who_makes_hooks(
    repository: Repository, bench: Bench
) -> None:
    repository.commit({"vue.ts": VUE, "page.jsx": REACT, "hooks.js": OWN, "plain.js": OWN[34:]})
    found = remarks_of(await bench.look("javascript", repository))
    assert {(each.file, each.line) for each in found if each.rule == "rules-of-hooks"} == {
        ("page.jsx", 3)
    }


async def test_a_folder_of_pieces_of_code_is_no_list_of_critical_remarks(
    repository: Repository, bench: Bench
) -> None:
    pieces = {f"data/pieces/{n}.ts": "password: {\n" for n in range(4)}
    repository.commit({**pieces, "data/pieces/whole.ts": "let a = 1;\n", "src/a.ts": "let (\n"})
    found = remarks_of(await bench.look("javascript", repository))
    assert {each.file for each in found if each.confidence >= 80} == {"src/a.ts"}
    assert all(each.confidence < SHOWN for each in found if each.file != "src/a.ts")
    base = repository.git("rev-parse", "HEAD")
    repository.commit({f"data/more/{n}.ts": "password: {\n" for n in range(4)})
    changed = remarks_of(await bench.look("javascript", repository, base))
    assert [each.confidence >= SHOWN for each in changed] == [True] * 4


async def test_a_field_compared_with_itself_is_no_question_whether_it_is_a_number(
    repository: Repository, bench: Bench
) -> None:
    code = (
        "export const f = (a, b) => a.id === a.id || a.id !== a.id || b === b || a.id === a.id2;\n"
    )
    lines = code.replace(" || ", "\n|| ")
    repository.commit({"a.js": lines})
    found = [
        (each.line, each.severity)
        for each in remarks_of(await bench.look("javascript", repository))
        if each.rule == "no-self-compare"
    ]
    assert sorted(found) == [(1, "warning"), (2, "info"), (3, "info")]
