"""Parameters of tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def rest_long(values: Iterable[Any], first: int = 1) -> list[Any]:
    """Return parameters of which only the first ones are tried by `make test`."""
    rows = [each if isinstance(each, tuple) else (each,) for each in values]
    return [
        *(pytest.param(*each) for each in rows[:first]),
        *(pytest.param(*each, marks=pytest.mark.long) for each in rows[first:]),
    ]
