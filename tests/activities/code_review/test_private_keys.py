"""A private key is a header with a body: what only names one is none."""

from __future__ import annotations

import base64
import json
import random
import textwrap
from pathlib import Path

import pytest

from holdfast.contracts import Remark
from repositories import Bench, Repository, remarks_of

pytestmark = pytest.mark.anyio

BEGIN, END = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"


def made_up_body(seed: int, head: bytes = b"") -> str:
    """Return lines of Base64 as those of a key of 2048 bits."""
    encoded = base64.b64encode(head + random.Random(seed).randbytes(1200)).decode()
    return "\n".join(textwrap.wrap(encoded, 64))


def armour(kind: str, body: str, *fields: str) -> str:
    name = f"{kind} PRIVATE KEY".strip()
    return "\n".join([f"-----BEGIN {name}-----", *fields, body, f"-----END {name}-----", ""])


KEY = armour("RSA", made_up_body(1))
HELD = {
    "plain.pem": KEY,
    "indented.yaml": "key: |\n" + textwrap.indent(KEY, "    "),
    "text.py": f'KEY = """{KEY}"""\n',
    "pieces.js": "const key = " + " +\n".join(f'"{line}\\n"' for line in KEY.splitlines()),
    "listed.rb": "[\n" + "".join(f"  '{line}',\n" for line in KEY.splitlines()) + "].join",
    "quoted.sh": textwrap.indent(KEY, "# "),
    "line.json": json.dumps({"key": KEY}),
    "line_twice.json": json.dumps(json.dumps({"key": KEY})),
    "one.env": f"KEY={KEY.replace(chr(10), ' ')}",
    "minified.js": f"var a='{'x' * 6000}',k={json.dumps(KEY)};",
}
"""The same key in each."""
NAMED = {
    "grep.sh": f'if grep "{BEGIN[5:-5]}" "$file"; then echo it is one, and nothing else; fi\n'
    f"grep -q -- '{BEGIN}' file && echo whatever stands behind these words is no body of any key\n",
    "regular.py": f'KEY = re.compile(r"{BEGIN}[A-Za-z0-9+/=\\s]+{END}")\nSTART = "{BEGIN}"\n',
    "error.go": f'return errors.New("expected {BEGIN} at the start, got something else")\n',
    "made.py": f'pem = "{BEGIN}\\n" + body + "\\n{END}"\n',
    "template.j2": f"{BEGIN}\n{{{{ key }}}}\n{END}\n",
    "manual.md": f"{BEGIN}\nMIIEpAIBAAKCAQEA...\n{END}\n",
    "cut.md": f"{BEGIN}\n{made_up_body(1)[:64]}\n...\n{END}\n",
    "filled.txt": f"{BEGIN}\n{'x' * 64}\n{END}\n",
    "public.pem": KEY.replace("RSA PRIVATE", "PUBLIC"),
    "putty.c": 'if (strcmp(line, "PuTTY-User-Key-File-2: ssh-rsa")) return 0;\n',
}
ENCRYPTED = {
    "new.pem": armour("ENCRYPTED", made_up_body(2)),
    "old.pem": armour(
        "RSA", made_up_body(3), "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,01", ""
    ),
    "openssh": armour("OPENSSH", made_up_body(4, b"openssh-key-v1\0\0\0\0\x0aaes256-ctr")),
    "key.ppk": "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: aes256-cbc\nPublic-Lines: 1\n"
    f"{made_up_body(5)[:64]}\nPrivate-Lines: 18\n{made_up_body(6)}\nPrivate-MAC: 00\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(tmp_path / "repo")


async def keys_of(repository: Repository, tmp_path: Path) -> list[Remark]:
    draft = await Bench(tmp_path).look("secrets", repository)
    return [each for each in remarks_of(draft) if each.rule.endswith("private-key")]


async def test_a_key_is_found_however_it_is_written_and_has_one_mark(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(dict(HELD))
    found = await keys_of(repository, tmp_path)
    assert {each.file for each in found} == set(HELD)
    in_comments = {each.file for each in found if each.severity == "warning"}
    assert in_comments == {"quoted.sh"}
    assert len({each.message for each in found}) == 1


async def test_a_key_in_a_comment_is_a_warning_and_in_code_beside_it_a_critical(
    repository: Repository, tmp_path: Path
) -> None:
    stars = textwrap.indent(KEY, " * ")
    comments = {
        "stars.ts": f"/**\n * @example\n{stars} */\nexport const a = 1\n",
        "block.ts": f"/*\n{KEY}*/\nexport const a = 1\n",
        "lines.go": textwrap.indent(KEY, "// "),
        "docstring.py": f'def load():\n    """Load it.\n\n{KEY}"""\n',
    }
    codes = {
        "below.ts": f"/** A key. */\nconst key = `{KEY}`\n",
        "globs.ts": f'const all = "src/*"\nconst key = `{KEY}`\n',
        "private.ts": f"class A {{\n  #key = `{KEY}`\n}}\n",
        "pointer.c": "*key = " + " ".join(f'"{line}\\n"' for line in KEY.splitlines()) + ";\n",
        "value.py": f'def load():\n    key = """{KEY}"""\n    return key\n',
    }
    repository.commit({**comments, **codes})
    found = {each.file: each.severity for each in await keys_of(repository, tmp_path)}
    assert found == dict.fromkeys(comments, "warning") | dict.fromkeys(codes, "critical")


async def test_a_key_that_a_change_brings_in_a_comment_is_critical(
    repository: Repository, tmp_path: Path
) -> None:
    first = repository.commit({"a.sh": "true\n"})
    repository.commit({"a.sh": "true\n" + textwrap.indent(KEY, "# ")})
    draft = await Bench(tmp_path).look("secrets", repository, first)
    assert [each.severity for each in remarks_of(draft)] == ["critical"]


async def test_a_picture_in_one_long_line_is_read_and_nothing_of_it_is_quoted(
    repository: Repository, tmp_path: Path
) -> None:
    token = "ghp_" + "".join(random.Random(3).choices("abcdefghkmnpqrstuvwxyzABCDEF345679", k=36))
    repository.commit({"logo.svg": f"<svg>{'<g d=1 />' * 900} {token} </svg>\n"})
    draft = await Bench(tmp_path).look("secrets", repository)
    assert draft.data["not_parsed"] == []
    assert "github-token" in {each.rule for each in remarks_of(draft)}
    assert token not in draft.model_dump_json()


@pytest.mark.long
async def test_a_header_without_a_body_is_no_key(repository: Repository, tmp_path: Path) -> None:
    repository.commit(dict(NAMED))
    assert await keys_of(repository, tmp_path) == []


@pytest.mark.long
async def test_two_keys_have_two_marks(repository: Repository, tmp_path: Path) -> None:
    other = armour("RSA", made_up_body(7))
    repository.commit({"a.pem": KEY, "b.pem": other, "c.pem": KEY + other})
    found = await keys_of(repository, tmp_path)
    marks = [(each.file, each.line, each.message) for each in sorted(found, key=lambda e: e.file)]
    assert [place[:2] for place in marks] == [
        ("a.pem", 1),
        ("b.pem", 1),
        ("c.pem", 1),
        ("c.pem", 28),
    ]
    first, second = marks[0][2], marks[1][2]
    assert first != second and [place[2] for place in marks[2:]] == [first, second]


@pytest.mark.long
async def test_an_encrypted_key_is_told_as_one(repository: Repository, tmp_path: Path) -> None:
    plain = armour("OPENSSH", made_up_body(8, b"openssh-key-v1\0\0\0\0\x04none"))
    repository.commit({**ENCRYPTED, "plain": plain})
    found = {each.file: each for each in await keys_of(repository, tmp_path)}
    assert {name: each.rule for name, each in found.items()} == {
        **dict.fromkeys(ENCRYPTED, "encrypted-private-key"),
        "plain": "private-key",
    }
    assert found["new.pem"].severity == "warning"


@pytest.mark.long
async def test_a_changed_body_below_an_old_header_is_part_of_the_change(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit({"a.pem": KEY})
    base = repository.git("rev-parse", "HEAD").strip()
    lines = KEY.splitlines(keepends=True)
    repository.commit({"a.pem": "".join([*lines[:12], lines[1], *lines[13:]])})
    draft = await Bench(tmp_path).look("secrets", repository, base=base)
    assert [each.line for each in remarks_of(draft) if each.rule == "private-key"] == [1]


async def test_two_tokens_of_one_service_have_two_marks_in_one_line_too(
    repository: Repository, tmp_path: Path
) -> None:
    one, two = (f"gh{'p'}_{seed}" + "aB3dE5gH" * 4 + "iJ" for seed in ("7k", "9m"))
    repository.commit({"a.py": f"a, b = '{one}', '{two}'\nc = '{one}'\n"})
    draft = await Bench(tmp_path).look("secrets", repository)
    found = [each for each in remarks_of(draft) if each.rule == "github-token"]
    marks = [(each.line, each.message) for each in sorted(found, key=lambda e: (e.line, e.column))]
    assert [line for line, _ in marks] == [1, 1, 2]
    assert marks[0][1] == marks[2][1] != marks[1][1]


async def test_a_token_is_no_part_of_a_longer_word_and_no_published_key_of_an_emulator(
    repository: Repository, tmp_path: Path
) -> None:
    access = "AK" + "IA2C4F6H8J0L2N4P6R"
    azure = "AccountName={};Account" + "Key=" + "aB3dE5gH" * 10 + "aB3dE5==;"
    repository.commit(
        {
            "picture.js": f"var p='{'ab/C1' * 1200}9{access}Q';\nvar q='z{access}Q';\n",
            "docker-compose.yml": "address: " + azure.format("devstoreaccount1") + "\n",
            "a.env": "address=" + azure.format("shop") + f"\nkey={access}\n",
        }
    )
    draft = await Bench(tmp_path).look("secrets", repository)
    found = {(each.file, each.rule) for each in remarks_of(draft) if each.severity == "critical"}
    assert found == {("a.env", "azure-storage-account-access-key"), ("a.env", "aws-access-key")}
