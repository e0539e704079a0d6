"""What credentials of well-known services look like, as `detect-secrets` and we know them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent


def _read(name: str) -> Any:
    # Each process that redacts reads them; in Python it takes ten times as long.
    return yaml.load((HERE / name).read_text("utf-8"), yaml.CSafeLoader)


LIBRARY: dict[str, list[str]] = _read("library_kinds.yaml")
OURS: dict[str, str] = _read("secret_kinds.yaml")
SHAPES: tuple[re.Pattern[str], ...] = (
    *(re.compile(shape) for shapes in LIBRARY.values() for shape in shapes),
    *(re.compile(rf"\b{shape}") for shape in OURS.values()),
)
