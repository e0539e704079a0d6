"""Equal calls of an agent: what counts as one, and where its result stands."""

from __future__ import annotations

from typing import Any

from holdfast.activities.turns.conversation import Spoke, Spoken, Told
from holdfast.activities.turns.repeats import find_repeats
from holdfast.calls.turn import ToolResult


def call(id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "read", "input": arguments}


def repeats_after(
    exchanges: list[tuple[list[dict[str, Any]], list[str]]], *content: dict[str, Any]
) -> dict[str, str]:
    """What repeats in `content` after messages with these calls, of which these were carried
    out.
    """
    told, spoken, messages = Told(), list[Spoken](), list[dict[str, Any]]()
    for said, done in exchanges:
        spoken.append(Spoken(told=told, message="kept"))
        messages += [{"role": "user", "content": []}, {"role": "assistant", "content": said}]
        back = [
            ToolResult(use_id=each["id"], digest="kept" if each["id"] in done else "", size=1)
            for each in said
        ]
        told = Told(results=tuple(back))
    return find_repeats(Spoke(exchanges=tuple(spoken)), messages, told, content)


def test_the_third_of_three_equal_calls_repeats_whatever_the_order_of_its_arguments() -> None:
    before = [([call("a", page=1, path="x")], ["a"]), ([call("b", path="x", page=1)], ["b"])]
    told = repeats_after(before, call("c", page=1, path="x"), call("d", page=2, path="x"))
    assert told == {"c": "call 1 of your message 2"}


def test_calls_of_one_message_count_and_ids_may_come_again() -> None:
    equal = [call(f"u{number}", path="x") for number in range(4)]
    assert repeats_after([], *equal) == {
        "u2": "call 2 of this message",
        "u3": "call 2 of this message",
    }
    assert repeats_after([(equal[:1], ["u0"])], *equal[:2]) == {"u1": "call 1 of this message"}


def test_a_call_that_was_not_carried_out_does_not_count() -> None:
    before = [([call("a", path="x")], []), ([call("b", path="x")], ["b"])]
    assert repeats_after(before, call("c", path="x")) == {}


def test_a_number_and_its_text_are_two_calls() -> None:
    before = [([call("a", page=1)], ["a"]), ([call("b", page=1)], ["b"])]
    assert repeats_after(before, call("c", page="1")) == {}
