"""Refusals in the words of those who typed no command: options are fields of a request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import BadSettings, Refused

_OPTION = re.compile(r"--(input|limits) (?=[A-Za-z])|--(?=[a-z])([a-z-]+)")
_FIELDS = {"input": "inputs"}


@contextmanager
def naming_fields() -> Iterator[None]:
    """Let what is refused within name the fields of a request in place of options."""
    try:
        yield
    except BadSettings:
        raise
    except Refused as error:
        error.args = (_OPTION.sub(_field, str(error)),)
        raise


def _field(found: re.Match[str]) -> str:
    if within := found[1]:
        return f"{_FIELDS.get(within, within)}."
    return _FIELDS.get(found[2], found[2].replace("-", "_"))
