"""What credentials of well-known services look like, as `detect-secrets` and we know them."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.untrusted.reading import shipped_yaml

HERE = Path(__file__).parent


LIBRARY: dict[str, list[str]] = shipped_yaml(HERE / "library_kinds.yaml")
OURS: dict[str, str] = shipped_yaml(HERE / "secret_kinds.yaml")
SHAPES: tuple[re.Pattern[str], ...] = (
    *(re.compile(shape) for shapes in LIBRARY.values() for shape in shapes),
    *(re.compile(rf"\b{shape}") for shape in OURS.values()),
)
