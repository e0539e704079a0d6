"""Whatever happens in a call becomes a result that a model can act on."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from hands import Bench
from holdfast.activities.tools.read_result import read_result
from holdfast.activities.toolset.pieces import PIECE_BYTES
from holdfast.activities.toolset.running import CAP, call
from holdfast.activities.toolset.tool import Here, Result, ToolError, tool

pytestmark = pytest.mark.anyio


class Strict(BaseModel):
    """What a tool reads inside."""

    number: int


@tool()
async def say(
    here: Here, word: Annotated[str, Field(max_length=5)], times: Annotated[int, Field(le=9)] = 1
) -> str:
    """Says a word."""
    return word * times


@tool()
async def fail(here: Here, how: str) -> Result:
    """Fails."""
    match how:
        case "by itself":
            raise ToolError("there is no such letter; write one first")
        case "inside":
            Strict.model_validate({"number": "none"})
        case "cancelled":
            raise asyncio.CancelledError
        case "time":
            raise TimeoutError
    raise ZeroDivisionError("secret of the host")


@tool(seconds=0.05)
async def wait(here: Here) -> str:
    """Waits."""
    await asyncio.Event().wait()
    return "never"


@tool()
async def tell(here: Here, letter: str, letters: int, data: bool = False) -> Result:
    """Says much."""
    text = letter * letters
    return Result(text, data=text if data else {"letters": letters})


async def test_a_call_that_works_says_what_the_function_returns() -> None:
    assert await Bench().use(say, word="ho", times=2) == Result("hoho")


async def test_an_unknown_tool_is_named_and_shown_harmlessly() -> None:
    result = await call(None, "rm\x1b[2J" + "x" * 500, Bench(), {})
    assert result.is_error
    assert "there is no tool" in result.text and "\x1b" not in result.text
    assert len(result.text) < 200


async def test_each_mistake_in_the_arguments_is_a_line_and_the_tool_does_not_begin() -> None:
    result = await Bench().use(say, word="too long", times=10, other=1)
    assert result.is_error
    first, *rest = result.text.splitlines()
    assert first == "these arguments do not fit:"
    assert len(rest) == 3
    assert {each.partition(":")[0] for each in rest} == {"word", "times", "other"}
    assert "too long" not in result.text


async def test_of_very_many_mistakes_the_first_are_named() -> None:
    result = await Bench().use(say, **{f"x{n}": n for n in range(500)})
    assert result.is_error and len(result.text.splitlines()) == 12


async def test_an_error_for_the_model_is_told_in_its_own_words() -> None:
    assert (
        await Bench().refused(fail, how="by itself") == "there is no such letter; write one first"
    )


@pytest.mark.parametrize(
    ("how", "kind"),
    [("", "ZeroDivisionError"), ("inside", "ValidationError"), ("time", "TimeoutError")],
)
async def test_a_mistake_of_a_tool_is_named_and_what_it_says_stays_here(
    how: str, kind: str
) -> None:
    said = await Bench().refused(fail, how=how)
    assert said == f"fail failed by a mistake of its own ({kind})"


async def test_a_library_that_would_end_its_process_ends_nothing() -> None:
    @tool()
    async def leave(here: Here) -> str:
        """Leaves."""
        sys.exit("enough")

    @tool()
    async def leave_in_a_thread(here: Here) -> str:
        """Leaves from a thread."""
        await asyncio.to_thread(sys.exit, 3)
        return ""

    for each in (leave, leave_in_a_thread):
        assert f"{each.name} failed by a mistake of its own" in await Bench().refused(each)


async def test_a_library_that_cancels_the_task_it_runs_in_cancels_nobody_else() -> None:
    said = await Bench().refused(fail, how="cancelled")
    assert "was interrupted" in said


async def test_a_call_that_takes_too_long_is_stopped_and_says_so() -> None:
    assert "wait took longer than 0.05 s and was stopped" in await Bench().refused(wait)


async def test_cancelling_a_call_ends_the_tool_and_is_told_as_cancelled() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @tool(seconds=60)
    async def hang(here: Here) -> str:
        """Hangs."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    task = asyncio.create_task(call(hang, "hang", Bench(), {}))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_a_long_result_is_kept_whole_and_read_on_to_its_end() -> None:
    bench = Bench()
    # Letters of three bytes, so that a cut by bytes would tear one.
    result = await bench.use(tell, letter="€", letters=20_000)
    assert len(result.text.encode()) <= CAP
    assert [*bench.results.values()] == [("€" * 20_000).encode()]
    head, _, note = result.text.partition("\n\n[")
    assert f'read_result(handle="result-1", from_character={len(head)})' in note
    whole, pieces = head, 0
    while len(whole) < 20_000:
        piece = await bench.told(read_result, handle="result-1", from_character=len(whole))
        assert len(piece.encode()) <= CAP
        whole += piece.partition("\n\n[")[0]
        pieces += 1
    assert whole == "€" * 20_000
    assert pieces == -(-(60_000 - len(head.encode())) // PIECE_BYTES)
    assert len(bench.results) == 1, "reading on keeps nothing again"


async def test_what_cannot_be_kept_is_said_and_its_beginning_shown() -> None:
    class Full(Bench):
        async def keep(self, content: bytes) -> str:
            raise OSError(28, "no space")

    result = await Full().use(tell, letter="a", letters=30_000)
    assert not result.is_error
    assert result.text.startswith("aaa") and "the rest could not be kept" in result.text


async def test_an_unknown_handle_and_a_place_behind_the_end_are_refused() -> None:
    bench = Bench(results={"result-1": b"abc"})
    assert "result-9" in await bench.refused(read_result, handle="result-9")
    assert "3 characters" in await bench.refused(read_result, handle="result-1", from_character=3)


async def test_data_is_passed_on_unless_it_is_too_long() -> None:
    assert (await Bench().use(tell, letter="a", letters=2)).data == {"letters": 2}
    result = await Bench().use(tell, letter="a", letters=19_999, data=True)
    assert result.data is None and "too long to be passed on as data" in result.text


async def test_half_a_character_is_shown_as_an_escape() -> None:
    assert (await Bench().told(tell, letter="\udc80", letters=1)) == "\\udc80"
