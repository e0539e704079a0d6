"""The journal: whatever dies when, it reads as not sent, sent, or answered."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.activities.asking.journal import FileJournal
from holdfast.contracts.errors import NotBilled, PossiblyBilled
from parameters import rest_long

pytestmark = pytest.mark.anyio

KEY = "default/review-1121-abcde/run/work-t1-1/0123"
ANSWER = '{"text": "(scripted) ünïcode", "usage": {}}'


async def test_a_call_is_not_sent_then_sent_then_answered(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    assert (await journal.sent(KEY), await journal.answer(KEY)) == (False, None)
    await journal.mark_sent(KEY)
    assert (await journal.sent(KEY), await journal.answer(KEY)) == (True, None)
    await journal.record(KEY, ANSWER)
    assert (await journal.sent(KEY), await journal.answer(KEY)) == (True, ANSWER)


async def test_another_process_reads_what_the_first_one_wrote(tmp_path: Path) -> None:
    first = FileJournal(tmp_path)
    await first.mark_sent(KEY)
    await first.record(KEY, ANSWER)
    assert await FileJournal(tmp_path).answer(KEY) == ANSWER


async def test_a_call_can_be_marked_only_once(tmp_path: Path) -> None:
    await FileJournal(tmp_path).mark_sent(KEY)
    with pytest.raises(PossiblyBilled) as refusal:
        await FileJournal(tmp_path).mark_sent(KEY)
    assert refusal.value.details[0].calls == 1


async def test_a_call_that_was_not_billed_may_be_sent_again(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
    await journal.mark_sent(KEY)
    await journal.withdraw(KEY)
    assert not await journal.sent(KEY)
    await journal.mark_sent(KEY)


async def test_calls_do_not_share_entries(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
    await journal.mark_sent(KEY)
    assert not await journal.sent(f"{KEY}0")


async def test_entries_are_private_even_in_a_directory_that_was_not(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    directory.mkdir(mode=0o755)
    journal = FileJournal(directory)
    await journal.mark_sent(KEY)
    await journal.record(KEY, ANSWER)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    assert len(list(directory.iterdir())) == 2


async def test_a_full_disk_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path, room=2**62)
    with pytest.raises(NotBilled, match=r"nothing was sent.*bytes are free"):
        await journal.mark_sent(KEY)
    assert not await FileJournal(tmp_path).sent(KEY)


async def test_a_directory_that_went_away_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    journal = FileJournal(directory)
    directory.rmdir()
    with pytest.raises(NotBilled, match="nothing was sent"):
        await journal.mark_sent(KEY)


async def test_an_answer_that_cannot_be_recorded_is_not_lost_to_the_caller(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "journal"
    journal = FileJournal(directory)
    directory.rmdir()
    await journal.record(KEY, ANSWER)
    assert "could not be recorded" in caplog.text


async def test_an_answer_that_the_disk_did_not_take_is_there_for_the_next_attempt_and_follows(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "journal"
    journal = FileJournal(directory)
    directory.rmdir()
    await journal.record(KEY, ANSWER)
    assert await journal.answer(KEY) == ANSWER
    directory.mkdir(mode=0o700)
    await journal.record("another", ANSWER)
    assert await FileJournal(directory).answer(KEY) == ANSWER


async def test_what_cannot_be_looked_at_counts_as_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_path: str) -> None:
        raise OSError(5, "Input/output error")

    journal = FileJournal(tmp_path)
    monkeypatch.setattr(os, "lstat", broken)
    assert await journal.sent(KEY)


def harmed(how: str, content: bytes) -> bytes:
    """What a disk, an editor or a full file system make of a recorded answer."""
    middle = len(content) // 2
    return {
        "empty": b"",
        "truncated": content[:middle],
        "one bit flipped": content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
        "not UTF-8": b"\xff" + content[1:],
        "text after a line end": content + b"\n{}",
        "zeros": bytes(len(content)),
        "another answer below the same digest": content[:65] + b'{"text": "never said"}',
        "only the digest": content[:64],
        "an answer without a digest": content[65:],
    }[how]


@pytest.mark.parametrize(
    "how",
    [
        "empty", "truncated", "one bit flipped", "not UTF-8", "text after a line end", "zeros",
        "another answer below the same digest", "only the digest", "an answer without a digest",
    ],
)  # fmt: skip
@pytest.mark.parametrize("marked", [True, False], ids=["", "without its mark"])
async def test_a_damaged_answer_is_a_call_that_was_sent(
    tmp_path: Path, how: str, marked: bool
) -> None:
    journal = FileJournal(tmp_path)
    await journal.mark_sent(KEY)
    await journal.record(KEY, ANSWER)
    [recorded] = tmp_path.glob("*.answer")
    recorded.write_bytes(harmed(how, recorded.read_bytes()))
    if not marked:
        recorded.with_suffix(".sent").unlink()
    assert await journal.answer(KEY) is None
    assert await journal.sent(KEY)
    with pytest.raises(PossiblyBilled):
        await journal.mark_sent(KEY)


async def test_an_entry_that_is_no_file_is_a_call_that_was_sent(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
    await journal.record(KEY, ANSWER)
    [recorded] = tmp_path.glob("*.answer")
    recorded.unlink()
    recorded.mkdir()
    assert (await journal.sent(KEY), await journal.answer(KEY)) == (True, None)


@pytest.mark.parametrize("answer", ["", "\r\n", "line\rline\u2028", "half \ud83d", "x" * 1_000_000])
async def test_an_answer_is_read_exactly_as_it_was_recorded(tmp_path: Path, answer: str) -> None:
    journal = FileJournal(tmp_path)
    await journal.record(KEY, answer)
    assert await journal.answer(KEY) == answer


WRITER = """
import asyncio, sys
from pathlib import Path
from holdfast.activities.asking.journal import FileJournal

async def main():
    journal = FileJournal(Path(sys.argv[1]))
    for number in range(100_000):
        await journal.mark_sent(f"k{number}")
        print(f"sent {number}", flush=True)
        await journal.record(f"k{number}", f"answer {number} " + "x" * 50_000)
        print(f"answered {number}", flush=True)

asyncio.run(main())
"""


def lines_of_a_killed_writer(directory: Path, kill_after: int) -> list[tuple[str, int]]:
    """What a process said that it had written before it was killed in the middle of its work."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory)],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(kill_after)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines()
    words = [line.split() for line in lines]
    return [(kind, int(number)) for kind, number in words]


@pytest.mark.parametrize("seed", rest_long(range(3)))
async def test_a_process_killed_at_any_moment_leaves_a_readable_journal(
    tmp_path: Path, seed: int
) -> None:
    said = lines_of_a_killed_writer(tmp_path, random.Random(seed).randint(1, 60))
    journal = FileJournal(tmp_path)
    for kind, number in said:
        assert await journal.sent(f"k{number}")
        if kind == "answered":
            assert await journal.answer(f"k{number}") == f"answer {number} " + "x" * 50_000
    for number in range(said[-1][1], said[-1][1] + 2):
        answer = await journal.answer(f"k{number}")
        assert answer is None or answer == f"answer {number} " + "x" * 50_000
