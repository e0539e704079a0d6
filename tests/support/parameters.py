"""Parameters of tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def rest_long(values: Iterable[Any]) -> list[Any]:
    """Return parameters of which only the first is tried by `make test`."""
    first, *rest = (each if isinstance(each, tuple) else (each,) for each in values)
    return [pytest.param(*first), *(pytest.param(*each, marks=pytest.mark.long) for each in rest)]
