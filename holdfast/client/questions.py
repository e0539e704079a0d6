"""What a run asks people, each question by a key, so that an answer that comes late is known as one
to a question that is no more.
"""

from __future__ import annotations

import json
from hashlib import sha256

from holdfast.contracts.view import Question, RunView

MOMENTARY = ("paused", "budget", "plan")
"""Questions in whose words nothing tells one time from another."""


def question_keys(view: RunView) -> dict[str, Question]:
    """Return the open questions of a run, each by a key that no other question of it has."""
    found = {}
    for each in view.waiting:
        about = [each.kind, each.subtask_id, each.call, each.text]
        about += [str(view.waiting_since)] if each.kind in MOMENTARY else []
        mark = sha256(json.dumps(about).encode()).hexdigest()[:8]
        found[f"{each.kind}-{each.subtask_id or 'run'}-{mark}"] = each
    return found
