"""Take one turn: the conversation from the store to the model, and its message back to the
store.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from holdfast.activities.asking.call import Asking
from holdfast.activities.asking.forms import shape_of
from holdfast.activities.asking.replies import Conversation, note_dropped
from holdfast.activities.turns import conversation, saying
from holdfast.activities.turns.conversation import Told
from holdfast.activities.turns.repeats import find_repeats
from holdfast.activities.turns.saying import Said
from holdfast.calls.turn import WEB_FETCH, WEB_SEARCH, Turn, TurnMaterial
from holdfast.contracts import Call, Reply, policies
from holdfast.contracts.errors import CallRefused
from holdfast.ports import Store

OF_ENDPOINT: Mapping[str, Mapping[str, Any]] = {
    WEB_SEARCH: {
        "type": "web_search_20250305",
        "name": WEB_SEARCH,
        "max_uses": policies.WEB_SEARCHES,
    },
    WEB_FETCH: {
        "type": "web_fetch_20250910",
        "name": WEB_FETCH,
        "max_uses": policies.WEB_FETCHES,
        "max_content_tokens": policies.WEB_PAGE_TOKENS,
    },
}
"""Tools that an endpoint uses by itself. The first versions of each: later ones run code over what
they found, in a container of the endpoint's whose state would stand in no history of ours.
"""


Unfit = Callable[[Mapping[str, Any], Mapping[str, Any]], Awaitable[str]]
"""(the tool as the endpoint is told of it, arguments) -> what is wrong with them; empty: nothing.
"""


async def accept_any(_tool: Mapping[str, Any], _arguments: Mapping[str, Any]) -> str:
    """Accept any arguments, where nobody looks at them before the call is made."""
    return ""


async def take(
    asking: Asking,
    store: Store,
    call: Call,
    material: TurnMaterial,
    system: str,
    first: str,
    tools: Mapping[str, Mapping[str, Any]],
    unfit: Unfit,
) -> Reply[Turn]:
    """Ask for the next message, keep it, and return what it means. Raise CallRefused, before
    anything is paid, if this worker lacks a tool of the role. `unfit` looks at calls that must be
    approved.
    """
    offered = json.loads(await store.get(material.specs)) if material.specs else {}
    own = OF_ENDPOINT if call.capabilities.web else {}
    specs = _tool_specs(material.tools, {**tools, **offered, **own})
    spoke = await conversation.load(store, material.transcript)
    told = Told(results=material.results, said=material.said)
    messages = await conversation.build_messages(store, spoke, first, told)
    shape = shape_of(material.work.form)
    read = partial(saying.read_message, shape, approval=material.approval)
    talk = Conversation(messages, specs, read, shape.asked)
    reply = await asking.converse(call, material, talk, system)
    said = reply.value
    if said is None:
        return Reply(problem=reply.problem, bill=reply.bill)
    wrong = await _misfits(said, material.approval, specs, unfit)
    turn = Turn(
        transcript=await conversation.append(store, spoke, told, said.content),
        # What no person is asked about may be what no history is to show.
        uses=tuple(
            use.model_copy(update={"shown": ""}) if wrong.get(use.id, "?") else use
            for use in said.uses
        ),
        unfit={key: why for key, why in wrong.items() if why},
        repeats=find_repeats(spoke, messages, told, said.content),
        draft=said.draft,
        text=said.text,
        tokens=said.tokens,
    )
    return Reply(value=turn, problem=reply.problem, bill=note_dropped(reply.bill, said.dropped))


async def _misfits(
    said: Said, approval: Sequence[str], specs: Sequence[Mapping[str, Any]], unfit: Unfit
) -> dict[str, str]:
    """Return what is wrong with the arguments of calls that a person must approve, by the ids of
    the calls; empty: nothing.
    """
    known = {str(spec["name"]): spec for spec in specs}
    blocks = [
        each
        for each in conversation.find_calls(said.content)
        if each["name"] in approval and each["name"] in known
    ][: policies.MOST_TOOL_CALLS]
    wrong = await asyncio.gather(*(unfit(known[each["name"]], each["input"]) for each in blocks))
    return {each["id"]: why for each, why in zip(blocks, wrong, strict=True)}


def _tool_specs(
    names: Sequence[str], tools: Mapping[str, Mapping[str, Any]]
) -> tuple[Mapping[str, Any], ...]:
    """Return what the endpoint is told of the tools, in the order of the role: the same in each
    turn.
    """
    missing = [name for name in names if name not in tools]
    if missing:
        raise CallRefused(f"this worker does not have the tools {', '.join(missing)}")
    return tuple(tools[name] for name in names)
