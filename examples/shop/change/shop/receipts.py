"""Receipts: printed in the shop, kept in the cloud."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path


def printed(path: Path, request: dict[str, str]) -> None:
    """Print a receipt on the printer that the customer's till names."""
    subprocess.run(f"lp -d {request['printer']} {path}", shell=True, check=True)


def opened(path: Path) -> None:
    """Show a receipt on this screen."""
    subprocess.run(["xdg-open", str(path)], check=True)


def mark(receipt: bytes) -> str:
    """What a receipt is told from others by; nobody's secret hangs on it."""
    return hashlib.md5(receipt, usedforsecurity=False).hexdigest()
