"""What makes a function a tool, what cannot be one, and how all of them are found."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest
from pydantic import Field

from holdfast.activities.toolset import tables
from holdfast.activities.toolset.shelf import shipped_tools, tools_of
from holdfast.activities.toolset.tool import Here, NotATool, tool

MODULE = '''
from holdfast.activities.toolset.tool import Here, tool

@tool()
async def {name}(here: Here, word: str) -> str:
    """Says a word."""
    return word
'''
NUMBERS = itertools.count(1)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], Any]:
    """Makes a package of modules, by name."""

    def make(modules: dict[str, str]) -> ModuleType:
        name = f"shelf_{next(NUMBERS)}"
        folder = tmp_path / name
        folder.mkdir()
        for module, code in {"__init__": "", **modules}.items():
            (folder / f"{module}.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        return importlib.import_module(name)

    return make


Make = Callable[[dict[str, str]], ModuleType]


def test_schema_and_description_come_from_signature_and_docstring() -> None:
    @tool(effects=True, seconds=5, needs=("web_search",))
    async def send(
        here: Here,
        to: Annotated[str, Field(description="Whom.", max_length=20)],
        copies: Annotated[int, Field(ge=1)] = 1,
    ) -> str:
        """Send a letter.

        At once.
        """
        return to * copies

    assert (send.name, send.description) == ("send", "Send a letter.\n\nAt once.")
    assert (send.effects, send.idempotent, send.seconds, send.approval) == (True, True, 5, False)
    assert send.needs == ("web_search",)
    schema = send.schema
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["to"]
    properties = schema["properties"]
    assert isinstance(properties, dict) and set(properties) == {"to", "copies"}
    to = properties["to"]
    assert isinstance(to, dict) and to["description"] == "Whom." and to["maxLength"] == 20


async def not_async_is_here(here: Here) -> str:
    """Nothing."""
    return ""


def plain(here: Here) -> str:
    """Nothing."""
    return ""


async def silent(here: Here) -> str:
    return ""


async def homeless(word: str) -> str:
    """Nothing."""
    return word


async def untyped(here: Here, word) -> str:  # type: ignore[no-untyped-def]
    """Nothing."""
    return str(word)


async def many(here: Here, *words: str) -> str:
    """Nothing."""
    return str(words)


async def anything(here: Here, **words: str) -> str:
    """Nothing."""
    return str(words)


async def placed(here: Here, word: str, /) -> str:
    """Nothing."""
    return word


async def unknown(here: Here, word: Nowhere) -> str:  # type: ignore[name-defined] # noqa: F821
    """Nothing."""
    return str(word)


async def größe(here: Here) -> str:
    """Nothing."""
    return ""


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (plain, "write `async def`"),
        (silent, "without a docstring"),
        (homeless, "first parameter of a tool is `here: Here`"),
        (untyped, "`word` has no type"),
        (many, r"`\*words: .*` cannot be given by name"),
        (anything, r"`\*\*words: .*` cannot be given by name"),
        (placed, "cannot be given by name"),
        (unknown, "Nowhere"),
        (größe, "1 to 64 letters"),
    ],
)
def test_what_no_model_could_call_rightly_is_refused_when_it_is_loaded(
    function: Callable[..., Any], why: str
) -> None:
    with pytest.raises(NotATool, match=why) as error:
        tool()(function)
    assert f"{__name__}.{function.__name__}" in str(error.value)


def test_every_tool_of_a_package_is_found_and_nothing_else(package: Make) -> None:
    made = package(
        {"one": MODULE.format(name="b"), "two": MODULE.format(name="a"), "three": "x = 1"}
    )
    assert list(tools_of(made)) == ["a", "b"]


def test_a_tool_that_another_module_imports_is_found_once(package: Make) -> None:
    made = package({"one": MODULE.format(name="say"), "two": ""})
    folder = Path(made.__path__[0])
    (folder / "two.py").write_text(f"from {made.__name__}.one import say\nagain = say\n")
    assert tools_of(made)["say"].function.__module__ == f"{made.__name__}.one"


def test_two_tools_of_one_name_are_an_error_that_names_both(package: Make) -> None:
    made = package({"one": MODULE.format(name="say"), "two": MODULE.format(name="say")})
    with pytest.raises(NotATool, match=rf"'say': in {made.__name__}\.one and in .*\.two"):
        tools_of(made)


def test_a_name_for_a_shipped_tool_is_its_own_and_its_limits_are_set() -> None:
    tools = shipped_tools()
    assert "read_result" in tools
    assert all(each.name == name and 0 < each.seconds <= 600 for name, each in tools.items())


def test_the_table_of_tools_has_a_row_for_each_with_its_seconds_and_needs() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| .+ \| .+ \| (\S+) \| (.+) \|$", tables.markdown(), re.MULTILINE
    )
    needs = {
        "query_data": "holdfast[data]",
        "run_python": "holdfast[python]",
        "web_fetch": "holdfast[web]",
        "web_search": "web_search, holdfast[web]",
    }
    assert rows == [
        (name, f"{tool.seconds:g}", needs.get(name, "–")) for name, tool in shipped_tools().items()
    ]
