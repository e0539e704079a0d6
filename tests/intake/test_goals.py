"""From what is typed to a Goal: playbooks, files, limits."""

from __future__ import annotations

import asyncio
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from documents import pdf, repacked, slides, word, workbook
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.files import PlaybookFile, Role
from holdfast.activities.catalogue.tools import CatalogueError
from holdfast.activities.preparation import INPUT_BYTES
from holdfast.activities.tools import read_document
from holdfast.cli.commands.care import export
from holdfast.contracts import Approval, Goal, Limits, RoleCard
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.intake import goals
from holdfast.intake.connection import Connection
from holdfast.intake.goals import Wish, approval_of, goal_of, limits_of
from parameters import rest_long
from scripted import plans, subtask
from shipped import shipped_catalogue

pytestmark = pytest.mark.usefixtures("bare_environment")

REVIEW = Catalogue(
    {"lens": Role(RoleCard(name="lens", description="Looks", tier="none"), "", "review")},
    {
        "review": PlaybookFile.model_validate(
            {
                "name": "review",
                "description": "Review the code of a repository",
                "inputs": {
                    "repo": {"kind": "repository", "required": True},
                    "base": {"kind": "text", "description": "a revision"},
                    "scope": {"kind": "text", "one_of": ["changed", "all"]},
                    "fix": {"kind": "text", "one_of": ["yes"]},
                    "intent": {"kind": "file"},
                },
                "plan": plans(subtask("bugs", role="lens", inputs=["repo"]) | {"tier": None}),
            }
        )
    },
)

SHIPPED = shipped_catalogue()
EMPTY = (
    b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    b"<w:body/></w:document>"
)
"""A Word document in which nobody wrote anything."""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder))
    for more in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *more], check=True)
    return folder


def asked(*inputs: str, **more: object) -> Goal:
    wish = Wish(playbook="review", inputs=inputs, **more)  # type: ignore[arg-type]
    return asyncio.run(goal_of(wish, REVIEW, Settings(), embedded=True))


def test_a_playbook_needs_no_words_and_no_model_and_declares_its_inputs(repository: Path) -> None:
    goal = asked("repo=code", "base=HEAD")
    assert goal.text == "the goal"
    assert goal.use_models is False
    assert [(each.name, each.kind, each.value) for each in goal.inputs] == [
        ("repo", "repository", str(repository)),
        ("base", "text", "HEAD"),
    ]


@pytest.mark.parametrize(
    ("inputs", "fragments"),
    [
        ((), ["'repo' is missing", "--input repo=PATH"]),
        (("repo=code", "base=v9"), ["--input repo", "'v9'"]),
        (("repo=code", "bse=HEAD"), ["--input bse", "base, fix, intent, repo"]),
        (("repo=code", "scope=some"), ["--input scope: 'some' is none of changed, all"]),
        (("repo=code", "scope=all", "base=HEAD"), ["scope=all", "base='HEAD'", "give one"]),
        (("repo=code/a.py",), ["--input repo", "a repository is needed"]),
        (("repo=.",), ["--input repo", "not a Git repository"]),
        (("repo=text:x",), ["--input repo", "'text:x'"]),
        (("repo=code", "fix=a.patch"), ["'a.patch' is not 'yes', which is all that it can be"]),
        (("repo=code", "intent=text:x"), ["'text:x'; a file is needed, so put the text into one"]),
        (("repo=code", "intent=code"), ["intent: 'code' is a repository, a file is needed"]),
        (("repo=code", "intent=none"), ["--input intent: there is no file or folder 'none'"]),
    ],
)
@pytest.mark.usefixtures("repository")
def test_an_input_that_does_not_fit_its_playbook_is_refused(
    inputs: tuple[str, ...], fragments: list[str]
) -> None:
    with pytest.raises(Refused) as refusal:
        asked(*inputs)
    for fragment in fragments:
        assert fragment in str(refusal.value)


@pytest.mark.usefixtures("repository")
def test_a_playbook_asks_models_only_when_told_to_and_only_with_an_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Refused, match="leave out --models"):
        asked("repo=code", models=True)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    assert asked("repo=code", models=True).use_models is True


@pytest.mark.usefixtures("repository")
def test_a_prompt_that_cannot_be_used_refuses_what_asks_models_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def damaged() -> dict[str, str]:
        raise CatalogueError("prompts/critic.md: is empty; mend it")

    monkeypatch.setattr(goals, "system_prompts", damaged)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    with pytest.raises(Refused, match=r"^prompts/critic\.md: is empty; mend it$"):
        asked("repo=code", models=True)
    assert asked("repo=code").use_models is False


def test_files_text_and_limits_of_a_free_form_goal_are_taken_as_given(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Ship on Friday")
    wish = Wish(
        text="Summarise",
        inputs=("notes=notes.md", "tone=text:dry = short"),
        limits=("dollars=0.25", "deadline_seconds=60"),
    )
    goal = asyncio.run(goal_of(wish, Catalogue(), Settings(), embedded=False))
    assert [(each.kind, each.value) for each in goal.inputs] == [
        ("file", str(tmp_path / "notes.md")),
        ("text", "dry = short"),
    ]
    assert goal.limits == Limits(dollars="0.25", deadline_seconds=60, early=5)
    assert goal.use_models is True


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("a line".encode("utf-16"), r"^input 'notes' is a document"),
        (b"\xff\xfe", "there is nothing in it"),
        (" \n\u200b".encode("utf-16"), "there is nothing in it"),
        (b"\xa0\n", "there is nothing in it"),
        (b"x" * (INPUT_BYTES + 1), "^--input notes: .* larger than"),
        (b"\xef\xbb\xbf\n", "there is nothing in it"),
        ("\u200b\u00a0\n".encode(), "there is nothing in it"),
        (b"PK\x03\x04junk", r"an archive \(ZIP\), and no document"),
        (b"\x89PNG\r\n\x1a\n", r"a picture \(PNG\), which no tool reads"),
        (b"\xff\xd8\xff\xe0", r"a picture \(JPEG\), which no tool reads"),
        (b"\x1f\x8b\x08", r"an archive \(gzip\), which no tool reads"),
    ],
)
def test_a_file_that_no_run_could_read_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(content)
    wish = Wish(text="Summarise", inputs=("notes=data",))
    with pytest.raises(Refused, match=why):
        asyncio.run(goal_of(wish, Catalogue(), Settings(), embedded=False))


@pytest.mark.parametrize(
    ("content", "why"),
    rest_long(
        [
            (b"%PDF-1.7\nnot really", r"is not a PDF that can be read \("),
            (slides([""]), "has nothing in it that can be read"),
            (pdf(["A clause."])[:300], r"is not a PDF that can be read \("),
            (pdf(["", ""]), r"has no text \(2 pages looked at\): pictures of text"),
            (pdf(["A clause."], password="x"), "is encrypted, and opens only with its password"),
            (word(["A clause."])[:-100], "is damaged: its packing cannot be read"),
            (
                repacked(word(["A."]), {"word/document.xml": b"<w"}),
                "is damaged, and cannot be read",
            ),
            (
                repacked(word([]), {"word/document.xml": EMPTY}),
                "has nothing in it that can be read",
            ),
            (workbook({"Rates": {}}), "has nothing in it that can be read"),
        ],
        first=2,
    ),
)
def test_a_document_without_a_word_to_read_is_refused_before_anything_starts(
    content: bytes, why: str, tmp_path: Path
) -> None:
    (tmp_path / "contract").write_bytes(content)
    wish = Wish(playbook="contract-review", inputs=("contract=contract",))
    with pytest.raises(Refused, match=f"^--input contract: '.*/contract' {why}") as refused:
        asyncio.run(goal_of(wish, SHIPPED, Settings(), embedded=False))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "content",
    rest_long(
        [
            pdf(["", "A clause."]),
            word([], [["Term", "36 months"]]),
            workbook({"Rates": {"B7": 1900}}),
            slides(["", "A clause."]),
            "Une clause française".encode("cp1252"),
            "A clause.".encode("utf-16"),
        ],
        first=2,
    ),
)
def test_a_document_with_a_word_in_it_is_accepted(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "contract").write_bytes(content)
    wish = Wish(playbook="contract-review", inputs=("contract=contract",))
    goal = asyncio.run(goal_of(wish, SHIPPED, Settings(), embedded=False))
    assert goal.inputs[0].kind == "file"


CASE = Wish(playbook="patient-case", inputs=("case=case",))


@pytest.mark.parametrize(
    "content",
    [
        b"Bread and two lemons",
        b'{"shopping": ["bread"]}',
        b"[1, 2]",
        pdf(["Bread"]),
        "Käse".encode("cp1252"),
    ],
)
def test_a_case_file_that_says_nothing_that_a_case_does_is_refused_in_a_line(
    content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "case").write_bytes(content)
    with pytest.raises(
        Refused, match=r"^--input case: '.*/case' has none of the words patient, "
    ) as no:
        asyncio.run(goal_of(CASE, SHIPPED, Settings(), embedded=False))
    assert "\n" not in str(no.value) and "Bread" not in str(no.value)


@pytest.mark.parametrize(
    ("content", "approval"),
    [(b'{"Patient": {"born": 1961}}', "auto"), (pdf(["", "Diagnose: keine"]), "100")],
)
def test_no_goal_can_leave_out_the_approval_that_its_playbook_wants(
    content: bytes, approval: str, tmp_path: Path
) -> None:
    (tmp_path / "case").write_bytes(content)
    wish = replace(CASE, approval=approval_of(approval, Approval()))
    goal = asyncio.run(goal_of(wish, SHIPPED, Settings(), embedded=False))
    assert goal.approval == Approval(when="always")


def test_a_document_that_is_not_soon_looked_at_is_left_to_whoever_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_document, "ALL_LOOK_SECONDS", 0.0)
    (tmp_path / "contract").write_bytes(pdf([""]))
    wish = Wish(playbook="contract-review", inputs=("contract=contract",))
    goal = asyncio.run(goal_of(wish, SHIPPED, Settings(), embedded=False))
    assert goal.inputs[0].kind == "file"


@pytest.mark.usefixtures("repository")
def test_where_no_model_can_be_asked_only_a_playbook_that_can_do_without_is_named() -> None:
    Path("ticket.md").write_text("It does not start")
    support = Wish(playbook="tech-support", inputs=("ticket=ticket.md",))
    with pytest.raises(Refused, match=r"Without a model: starter\.py demo, or run --playbook"):
        asyncio.run(goal_of(support, SHIPPED, Settings(), embedded=True))
    with pytest.raises(Refused, match="Without a model: --playbook review alone, if you leave out"):
        asked("repo=code", models=True)


@pytest.mark.parametrize("text", ["", " ", "\u200b"])
def test_a_text_with_nothing_in_it_is_said_to_be_empty(text: str) -> None:
    wish = Wish(text="Summarise", inputs=(f"notes=text:{text}",))
    with pytest.raises(Refused, match=r"^--input notes: the text after 'text:' is empty"):
        asyncio.run(goal_of(wish, Catalogue(), Settings(), embedded=False))
    with pytest.raises(Refused, match=r"^--input repo: the text .* is empty, and a repository"):
        asked(f"repo=text:{text}")


@pytest.mark.anyio
async def test_an_exported_history_is_harmless_to_look_at_in_a_file_too(
    connection: Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = {"said": "\x9b31m \x7f \u202egnp.exe é"}

    async def whole(*_: object) -> str:
        return json.dumps(document, ensure_ascii=False)

    monkeypatch.setattr(export, "export", whole)
    await export.run(connection, "r", None)
    await export.run(connection, "r", tmp_path / "r.json")
    for text in (capsys.readouterr().out, (tmp_path / "r.json").read_text()):
        assert not set(text) & {"\x9b", "\x7f", "\u202e"} and "é" in text
        assert json.loads(text) == document


def test_limits_may_be_given_together_and_a_misspelt_one_names_what_was_meant() -> None:
    assert limits_of(("dollars=0.5,model_calls=9", "tokens=5000")) == limits_of(
        ("dollars=0.5", "model_calls=9", "tokens=5000")
    )
    with pytest.raises(Refused, match=r"'dolars' \(did you mean 'dollars'\?\)"):
        limits_of(("dolars=1,tokens=5",))
    assert str(limits_of(("dollars=-0",)).dollars) == "0.000000"
    with pytest.raises(Refused, match="tokens is given twice"):
        limits_of(("tokens=1,tokens=5",))
