"""The worker that `certify` strikes: the real one, which notes what it does.

python -m holdfast.serving.certified --embedded STATE_DIR
"""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.asking.prices import Prices
from holdfast.activities.model_endpoint import model_endpoint
from holdfast.activities.toolset.shelf import tools_for
from holdfast.certifying.board import Board
from holdfast.certifying.instruments import NoteActivities, NotingJournal, noting_tools
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.ports import Journal
from holdfast.serving.worker import More, main

STALL_SECONDS = 3.0
"""A silent endpoint is given up after this time, not after a minute: a certificate has many."""


def noting_journal(folder: Path) -> Journal:
    return NotingJournal(FileJournal(folder), Board.of(folder.parent))


def noting(settings: Settings) -> More:
    """Return the instruments of a worker with these settings."""
    state = StateDir.of(settings)
    board = Board.of(state.path)
    # Temporary files stand beside the state directory.
    private = state.path.parent
    tools = noting_tools(tools_for(settings.project), board, private, settings.key)
    prices = Prices.of(settings)
    asked = model_endpoint(settings, prices, state.heard, stall_seconds=STALL_SECONDS)
    return More({"tools": tools, "endpoint": asked}, (NoteActivities(board),))


if __name__ == "__main__":
    code = main(make_journal=noting_journal, make_more=noting)
    os._exit(code)
