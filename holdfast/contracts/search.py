"""What the server keeps of a run beside its history, so that runs can be found and listed: the
names of its search attributes and of what stands in its memo.
"""

from __future__ import annotations

from temporalio.common import SearchAttributeKey

STATUS = SearchAttributeKey.for_keyword("HoldfastStatus")
PLAYBOOK = SearchAttributeKey.for_keyword("HoldfastPlaybook")
DOLLARS = SearchAttributeKey.for_float("HoldfastDollars")
WAITING = SearchAttributeKey.for_bool("HoldfastWaiting")
REQUESTER = SearchAttributeKey.for_keyword("HoldfastRequester")
SEARCH_ATTRIBUTES = {
    key.name: key.indexed_value_type.name.capitalize()
    for key in (STATUS, PLAYBOOK, DOLLARS, WAITING, REQUESTER)
}
"""name -> its type, as a server is told it."""

OUTAGE = "outage"
"""The status of a run that waits for the endpoint of the models."""
MEMO_STATUS, MEMO_DOLLARS, MEMO_ASSUMED, MEMO_WHY = "status", "dollars", "assumed", "why"
MEMO_REMARKS = "remarks"
UNPRICED = "unpriced"
"""In the place of dollars where no price is known."""
