"""Find calls that an agent has made twice before, with the same arguments, in its conversation."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.activities.turns.conversation import Spoke, Told, find_calls

TWICE = 2


def find_repeats(
    spoke: Spoke, messages: Sequence[Mapping[str, Any]], now: Told, content: Sequence[Any]
) -> dict[str, str]:
    """Return where the last result stands of each call in `content` that equals two earlier ones,
    by the ids of the calls. Calls that were not carried out do not count. `messages` is the whole
    conversation before `content`, and `now` what the agent was told last.
    """
    places = defaultdict[str, list[str]](list)
    said = [each["content"] for each in messages if each["role"] == "assistant"]
    told = [*(each.told for each in spoke.exchanges), now][1:]
    for number, (calls, back) in enumerate(zip(said, told, strict=True), start=1):
        carried_out = {each.use_id for each in back.results if each.digest}
        for place, call in enumerate(find_calls(calls), start=1):
            if call["id"] in carried_out:
                places[_signature(call)].append(f"call {place} of your message {number}")
    repeats = {}
    for place, call in enumerate(find_calls(content), start=1):
        equal = places[_signature(call)]
        if len(equal) >= TWICE:
            repeats[str(call["id"])] = equal[-1]
        else:
            equal.append(f"call {place} of this message")
    return repeats


def _signature(call: Mapping[str, Any]) -> str:
    return json.dumps([call["name"], call["input"]], sort_keys=True)
