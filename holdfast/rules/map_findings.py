"""What a map hands to whoever depends on it: how its rows stand, and where their table is. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from holdfast.calls.rows import EMPTY, MapResume, MapTable
from holdfast.state.run import State

MOST_VALUES = 12
"""Values of one field that a finding counts."""


def count_rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"


def table_of(state: State, subtask_id: str) -> MapTable:
    return state.work[subtask_id].mapped.table or MapTable()


def content_of(state: State, subtask_id: str) -> str:
    """Return the finding of a map: its counts, and a sample of what failed."""
    mapped, table = state.work[subtask_id].mapped, table_of(state, subtask_id)
    parts = [mapped.text] if mapped.text else []
    parts.append(" ".join(filter(None, (describe_rows(table), _describe_answers(mapped.resume)))))
    parts += [f"{field}: {count_values(values)}" for field, values in table.values.items()]
    if table.failures:
        listed = "\n".join(f"- {each}" for each in table.failures)
        parts.append(f"Failed rows, {len(table.failures)} of {table.counts.failed:,}:\n{listed}")
    if table.table is not None:
        own = f"; with the item's own {', '.join(table.own)}" if table.own else ""
        columns = ", ".join(each for each in table.columns if each not in table.own)
        parts.append(f"All rows stand in the table {table.table.name}: {columns}{own}.")
    return "\n\n".join(parts)


def count_values(values: Mapping[str, int]) -> str:
    """Return how often each value stands in a field: `lid ×6, rust ×2; empty ×5`."""
    said = [f"{value} ×{count:,}" for value, count in values.items() if value != EMPTY]
    more = f" and {len(said) - MOST_VALUES:,} more values" if len(said) > MOST_VALUES else ""
    empty = f"{EMPTY} ×{values[EMPTY]:,}" if EMPTY in values else ""
    return "; ".join(filter(None, (", ".join(said[:MOST_VALUES]) + more, empty)))


def describe_rows(table: MapTable) -> str:
    """Return how the rows stand: `980 of 1,000 rows complete, 12 failed, 8 supplied.`"""
    counts = table.counts
    ended = counts.complete + counts.failed + counts.supplied + counts.skipped
    named = {
        "failed": counts.failed,
        "supplied": counts.supplied,
        "skipped": counts.skipped,
        "not asked": counts.items - ended,
        "equal to an earlier one": counts.repeated,
        "taken over from an earlier run": counts.reused,
    }
    more = [f"{count:,} {name}" for name, count in named.items() if count > 0]
    first = f"{counts.complete:,} of {count_rows(counts.items)} complete"
    return ", ".join((first, *more)) + "."


def _describe_answers(resume: MapResume) -> str:
    """Return how its rows were asked: `13 answers about 9 rows, 11 by haiku, 2
    by sonnet; none by batch.`
    """
    asked, batch = sum(resume.lanes.values()), resume.lanes.get("batch", 0)
    if not asked:
        return ""
    cached = f"; {resume.cached:,} tokens were read from the cache" if resume.cached else ""
    by_batch = f"{batch:,}" if batch else "none"
    rows = resume.items - resume.broken - resume.repeated - resume.reused
    merging = " and to merge their texts" if resume.level else ""
    answers = f"{asked:,} answer{'s' * (asked != 1)} about {count_rows(rows)}{merging}"
    tiers = ", ".join(f"{count:,} by {tier}" for tier, count in resume.tiers.items() if count)
    return f"{answers}, {tiers}; {by_batch} by batch{cached}."


def data_of(state: State, subtask_id: str) -> dict[str, JsonValue]:
    table = table_of(state, subtask_id)
    counts: dict[str, JsonValue] = table.counts.model_dump(mode="json")
    resume = state.work[subtask_id].mapped.resume
    how: dict[str, JsonValue] = {
        "lanes": {**resume.lanes},
        "tiers": {**resume.tiers},
        "cached": resume.cached,
    }
    return {"rows": counts, "table": table.table.name if table.table else "", **how}
