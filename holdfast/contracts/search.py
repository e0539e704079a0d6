"""Search attributes and memo: what the server keeps of a run beside its history."""

from __future__ import annotations

from temporalio.common import SearchAttributeKey

WORKFLOW = "SupervisorWorkflow"
RUNS = f"WorkflowType = '{WORKFLOW}'"
"""Every run, as a query of the server."""

STATUS = SearchAttributeKey.for_keyword("HoldfastStatus")
PLAYBOOK = SearchAttributeKey.for_keyword("HoldfastPlaybook")
DOLLARS = SearchAttributeKey.for_float("HoldfastDollars")
WAITING = SearchAttributeKey.for_bool("HoldfastWaiting")
REQUESTER = SearchAttributeKey.for_keyword("HoldfastRequester")
PLAN = SearchAttributeKey.for_keyword("HoldfastPlan")
"""The template that a finished run's plan is from, else the shape of the plan."""
SEARCH_ATTRIBUTES = {
    key.name: key.indexed_value_type.name.capitalize()
    for key in (STATUS, PLAYBOOK, DOLLARS, WAITING, REQUESTER, PLAN)
}
"""Type of each search attribute, as a server wants it."""

OUTAGE = "outage"
"""Status of a run that waits for the model endpoint."""
MEMO_STATUS, MEMO_DOLLARS, MEMO_ASSUMED, MEMO_WHY = "status", "dollars", "assumed", "why"
MEMO_REMARKS = "remarks"
MEMO_PLAN = "plan"
"""Memo field: how a run went whose plan is a template's; `well`, or what went wrong."""
MEMO_TOOK = "took"
"""Memo field: what a closed run took, for the previews of later ones."""
MEMO_TITLE = "title"
MEMO_PROJECT = "project"
MEMO_REQUESTER = "requester"
MEMO_CAP = "cap"
"""Memo field: the cap in dollars with which a run was started; 0 if it asks no model."""
MEMO_SCHEDULE = "schedule"
"""Memo field: name of the schedule that started the run."""
MEMO_DRY = "dry_run"
"""Memo field: true if the run was only to show its plan."""
UNPRICED = "unpriced"
"""Stands for dollars where no price is known."""
