"""The files in which a repository writes down its rules, the nearest to a change first."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.activities.repositories.manifest import Manifest, SnapshotFile
from holdfast.activities.review.scope.rule_files import MOST_FILES, find_rule_files


def manifest(files: Sequence[str], around: Sequence[str] = ()) -> Manifest:
    made = [[SnapshotFile(path=path, size=1, lines=1) for path in each] for each in (files, around)]
    return Manifest(archive="a", files=tuple(made[0]), around=tuple(made[1]))


def found(files: Sequence[str], around: Sequence[str] = (), **texts: str) -> list[str]:
    told = {name.replace("__", "/") + ".md": text for name, text in texts.items()}
    return list(find_rule_files(manifest(files, around), lambda path: told.get(path, "")))


def test_the_nearest_comes_first_and_what_speaks_for_other_folders_is_left_out() -> None:
    around = [
        "CLAUDE.md",
        "web/AGENTS.md",
        "web/forms/CLAUDE.md",
        "api/CLAUDE.md",
        ".github/CONTRIBUTING.md",
        ".github/copilot-instructions.md",
        "web/.cursor/rules/forms.mdc",
        "docs/CONTRIBUTING.rst",
        "README.md",
        "web/contributing.py",
    ]
    assert found(["web/forms/login.ts"], around) == [
        "web/forms/CLAUDE.md",
        "web/.cursor/rules/forms.mdc",
        "web/AGENTS.md",
        ".github/CONTRIBUTING.md",
        ".github/copilot-instructions.md",
        "CLAUDE.md",
        "docs/CONTRIBUTING.rst",
    ]


def test_documents_that_a_rule_file_names_are_rules_if_they_are_about_them() -> None:
    around = ["docs/guidelines.md", "docs/testing.md", "docs/history.md", "web/docs/testing-ui.md"]
    names = "Read [style](docs/guidelines.md#names), `docs/testing.md`, [old](docs/history.md).\n"
    assert found(
        ["AGENTS.md", "web/CLAUDE.md", "a.py"],
        around,
        AGENTS=names + "[away](../../etc/style.md) [gone](docs/rules.md)",
        web__CLAUDE="@docs/testing-ui.md\n@docs/guidelines.md\n",
    ) == [
        "web/CLAUDE.md",
        "AGENTS.md",
        "web/docs/testing-ui.md",
        "docs/guidelines.md",
        "docs/testing.md",
    ]


def test_a_stranger_gets_no_more_than_a_bounded_list() -> None:
    folders = [f"a{n}/CLAUDE.md" for n in range(3 * MOST_FILES)]
    assert len(found(folders)) == MOST_FILES
