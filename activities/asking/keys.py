"""The key of an activity in the journal."""

from __future__ import annotations

import hashlib

from temporalio import activity


def key_of(asked: str, run: str = "") -> str:
    """Return namespace / workflow id / run id / activity id / SHA-256 of what is asked, never the
    attempt. `run` is the first execution of a run that was reset; empty: this one.
    """
    info = activity.info()
    digest = hashlib.sha256(asked.encode()).hexdigest()
    place = f"{info.workflow_namespace}/{info.workflow_id}/{run or info.workflow_run_id}"
    return f"{place}/{info.activity_id}/{digest}"
