"""What credentials of well-known services look like, as `detect-secrets` and we know them."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

HERE = Path(__file__).parent
LIBRARY: dict[str, list[str]] = yaml.safe_load((HERE / "library_kinds.yaml").read_text("utf-8"))
OURS: dict[str, str] = yaml.safe_load((HERE / "secret_kinds.yaml").read_text("utf-8"))
SHAPES: tuple[re.Pattern[str], ...] = (
    *(re.compile(shape) for shapes in LIBRARY.values() for shape in shapes),
    *(re.compile(rf"\b{shape}") for shape in OURS.values()),
)
