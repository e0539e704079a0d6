"""The style of a change, by the settings of the base, where the base keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.activities.review.lenses import find_idle
from holdfast.contracts import Remark
from repositories import Bench, Repository, remarks_of

pytestmark = [pytest.mark.long, pytest.mark.anyio, pytest.mark.usefixtures("secrets_found_here")]

RUFF = """\
[tool.ruff]
line-length = 60
[tool.ruff.lint]
select = ["I", "UP", "F"]
ignore = ["UP007"]
"""
TIDY = "import os\nimport sys\n\n\ndef f(a, b):\n    return os.path.join(a, b, sys.argv[0])\n"
UNTIDY = "import sys\nimport os\n\ndef g( a,b ):\n    return os.path.join( a,b,sys.argv[0] )\n"
EDITOR = """\
root = true
[*]
trim_trailing_whitespace = true
insert_final_newline = true
end_of_line = lf
[*.{js,css}]
indent_style = space
max_line_length = 40
[Makefile]
indent_style = tab
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(tmp_path / "repo")


async def style_of(repository: Repository, folder: Path, base: str) -> list[Remark]:
    return remarks_of(await Bench(folder).look("style", repository, base))


def places(remarks: list[Remark]) -> set[tuple[str, int, str]]:
    return {(each.file, each.line, each.rule) for each in remarks}


async def test_what_the_base_keeps_and_the_change_does_not_is_told_in_sum(
    repository: Repository, tmp_path: Path
) -> None:
    files = {f"a{n}.py": TIDY for n in range(4)}
    base = repository.commit({"pyproject.toml": RUFF, **files})
    repository.commit({"new.py": UNTIDY, "a0.py": TIDY + "\n\ndef h( a ):\n    return a\n"})
    found = await style_of(repository, tmp_path, base)
    assert places(found) == {("new.py", 1, "I001"), ("new.py", 4, "format"), ("a0.py", 9, "format")}
    assert {(each.severity, each.summed) for each in found} == {("info", True)}


LENGTH = "line-length = 40\n"
IGNORES = LENGTH + 'lint.select = ["E501"]\nlint.per-file-ignores = {"x.py" = ["E501"]}\n'
PROJECT = f'[tool.ruff]\n{LENGTH}lint.extend-select = ["E5"]\nextend-exclude = ["gen"]\n'


@pytest.mark.parametrize(
    "settings",
    [
        {"setup.cfg": "[flake8]\nmax-line-length = 40\nselect = E501,WPS1\n"},
        {"tox.ini": "[flake8]\nmax-line-length = 40\n"},
        {"ruff.toml": IGNORES},
        {"pyproject.toml": PROJECT},
    ],
)
async def test_settings_of_several_tools_are_understood(
    repository: Repository, tmp_path: Path, settings: dict[str, str | bytes]
) -> None:
    base = repository.commit({**settings, "a.py": "a = 1\n"})
    long = f"a = '{'x' * 40}'\n"
    repository.commit({"b.py": long, "x.py": long, "gen/c.py": long})
    found = {
        each.file for each in await style_of(repository, tmp_path, base) if each.rule == "E501"
    }
    left_out = {"ruff.toml": {"x.py"}, "pyproject.toml": {"gen/c.py"}}.get(min(settings), set())
    assert found == {"b.py", "x.py", "gen/c.py"} - left_out


async def test_editorconfig_counts_in_any_language(repository: Repository, tmp_path: Path) -> None:
    tidy = {"a.js": "if (a) {\n    b();\n}\n", "Makefile": "a:\n\ttrue\n", "b.go": "package b\n"}
    base = repository.commit({".editorconfig": EDITOR, **tidy})
    repository.commit(
        {
            "c.js": f"if (a) {{\n\tb(); \n}}\nc('{'x' * 40}');\r\nd();",
            "Makefile": "a:\n\ttrue\nb:\n    true\n",
            "b.go": "package b\n\nfunc f() {\n\tg()\n}\n",
        }
    )
    assert places(await style_of(repository, tmp_path, base)) == {
        ("c.js", 2, "indent-style"),
        ("c.js", 2, "trailing-whitespace"),
        ("c.js", 4, "line-length"),
        ("c.js", 4, "line-end"),
        ("c.js", 5, "final-newline"),
        ("Makefile", 4, "indent-style"),
    }


async def test_where_the_base_does_not_keep_its_settings_nothing_is_said(
    repository: Repository, tmp_path: Path
) -> None:
    base = repository.commit(
        {
            "pyproject.toml": RUFF,
            ".editorconfig": EDITOR,
            **{f"a{n}.py": UNTIDY for n in range(4)},
            **{f"b{n}.js": "a(); \n" for n in range(4)},
        }
    )
    repository.commit({"new.py": UNTIDY, "new.js": "a(); \n"})
    assert await style_of(repository, tmp_path, base) == []


async def test_the_settings_of_the_change_itself_do_not_count(
    repository: Repository, tmp_path: Path
) -> None:
    base = repository.commit({"pyproject.toml": RUFF, "a.py": TIDY})
    looser = RUFF.replace("60", "200").replace('"I", ', "")
    repository.commit({"pyproject.toml": looser, "b.py": UNTIDY, "ruff.toml": "line-length = 9\n"})
    found = await style_of(repository, tmp_path, base)
    assert places(found) == {("b.py", 1, "I001"), ("b.py", 4, "format")}


async def test_hostile_settings_load_nothing_and_say_nothing(
    repository: Repository, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    base = repository.commit(
        {
            "pyproject.toml": "[tool.ruff]\nextend = '/etc/passwd'\nline-length = '9; touch x'\n"
            "cache-dir = '/tmp'\nexclude = 5\n"
            "[tool.ruff.lint]\nselect = ['I', '--config=/etc/passwd', 'x y']\n"
            "external = ['A']\n[tool.ruff.format]\nquote-style = \"'; x='\"\n",
            "setup.cfg": f"[flake8:local-plugins]\nextension = X = run:{proof}\n[flake8]\n",
            ".editorconfig": "[" + "**a" * 60 + "]\ntab=1\n[*]\nmax_line_length = 99999999999\n",
            "a.py": TIDY,
        }
    )
    repository.commit({"b.py": UNTIDY})
    assert ("b.py", 1, "I001") in places(await style_of(repository, tmp_path, base))
    repository.commit({"tox.ini": "[" * 60_000})
    assert not proof.exists() and not (repository.path / ".ruff_cache").exists()


async def test_without_settings_or_without_a_change_the_lens_is_left_out(
    repository: Repository, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    base = repository.commit({"a.py": TIDY})
    repository.commit({"b.py": UNTIDY})
    assert "style" in await find_idle(bench.store, (await bench.pin(repository, base)).digest)
    base = repository.commit({"ruff.toml": ""})
    assert "style" in await find_idle(
        bench.store, (await bench.pin(repository, scope="all")).digest
    )
    repository.commit({"c.py": UNTIDY})
    pinned = await bench.pin(repository, base)
    assert "style" not in await find_idle(bench.store, pinned.digest)
