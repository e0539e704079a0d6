"""What strangers write is read in time that grows with its length, and no faster."""

from __future__ import annotations

import time

import pytest

from holdfast.untrusted.reading import NotPlain, from_json
from holdfast.untrusted.redact import Redactor

SECONDS = 5.0
"""What took minutes takes hundredths of a second; a busy machine is slow."""


@pytest.mark.parametrize(
    "text",
    [
        "{" + ",".join(['"a":1'] * 300_000) + "}",
        "{" + ",".join(f'"k{each}":1' for each in range(150_000)) + ',"k149999":1}',
    ],
)
def test_a_key_that_is_repeated_is_found_in_one_pass(text: str) -> None:
    began = time.process_time()
    with pytest.raises(NotPlain, match="is given twice"):
        from_json(text)
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("text", ["`" * 100_000, "``a " * 25_000, "'" * 100_000])
def test_what_a_tool_quotes_is_withheld_in_one_pass(text: str) -> None:
    began = time.process_time()
    Redactor(whole=False).message(text, 100_000, "a.py")
    assert time.process_time() - began < SECONDS
