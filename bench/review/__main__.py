"""How right the code review is.

python -m bench.review believed     what each rule was measured and is believed
python -m bench.review planted      what it finds of the planted defects
python -m bench.review seeded       what it finds of breakages that a change seeds elsewhere, and
                                    its false alarms on clean changes
python -m bench.review undone FOLDER            what it shows of real fixes that were undone, in
                                                the clones that a folder has
python -m bench.review undone FOLDER --eyes     what its agents would have in sight of them
python -m bench.review undone FOLDER --models DOLLARS   what the model of ANTHROPIC_API_KEY finds
python -m bench.review sources      how the labelled archives are fetched
python -m bench.review FOLDER       precision on the archives in a folder
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path

from bench.review import PLANTED, eyes, seeded, undone
from bench.review.believed import SHOWN, Row, rows
from bench.review.labels import everything, on_changes, sources
from bench.review.planted import Seen, gardens, reviewed
from bench.review.precision import Judged, judged, tables
from holdfast.contracts.errors import BadGoal

BELIEVED = (
    "lens", "row", "family", "labelled", "useful", "true", "false", "believed",
    "labelled in changes", "useful there", "believed in a change",
)  # fmt: skip


def believed() -> str:
    """The rows that were measured, and how many were not."""
    measured = [row for row in rows().values() if row.labelled or row.in_changes[0]]
    lines = [*_head(BELIEVED), *map(_row, sorted(measured, key=_order))]
    rest = len(rows()) - len(measured)
    shown = sum(row.confidence >= SHOWN for row in rows().values())
    lines += ["", f"{len(everything())} remarks are labelled in {len(sources())} repositories."]
    planted = sum(each.repository == "planted" for each in on_changes())
    histories = {each.repository for each in on_changes() if each.commit}
    lines.append(
        f"{len(on_changes()) - planted} sightings that commits of {len(histories)} repositories"
        f" brought are labelled, and {planted} planted ones."
    )
    lines.append(f"{rest} rows have no label and are believed by their family.")
    lines.append(f"{shown} of {len(rows())} rows are shown.")
    return "\n".join(lines)


def _head(columns: tuple[str, ...]) -> list[str]:
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]


def _order(row: Row) -> tuple[str, int, str]:
    return row.lens, -row.confidence, row.name


def _row(row: Row) -> str:
    return (
        f"| {row.lens} | {row.name} | {row.family} | {row.labelled} | {row.useful} | {row.true}"
        f" | {row.false} | {row.confidence} | {row.in_changes[0]} | {row.in_changes[1]}"
        f" | {row.in_change} |"
    )


async def planted() -> str:
    """What a review shows of the planted defects, by language."""
    lines = _head(PLANTED)
    missed: list[str] = []
    everywhere: list[Seen] = []
    for garden in gardens():
        seen = await reviewed(garden)
        everywhere += seen
        lines.append(f"| {garden.language} | {_counts(seen)} |")
        missed += [f"* missed: {each.change.name}" for each in seen if _wrong(each)]
        missed += [
            f"* remarked: {each.change.name} ({', '.join(each.rules)})"
            for each in seen
            if each.rules and not each.is_defect
        ]
    lines.append(f"| all | {_counts(everywhere)} |")
    return "\n".join([*lines, "", *missed])


def _wrong(seen: Seen) -> bool:
    return seen.is_defect and not seen.rules


def _counts(seen: Iterable[Seen]) -> str:
    listed = list(seen)
    defects = [each for each in listed if each.is_defect]
    others = [each for each in listed if not each.is_defect]
    return " | ".join(
        str(n)
        for n in (
            len(defects),
            sum(bool(each.rules) for each in defects),
            len(others),
            sum(bool(each.rules) for each in others),
        )
    )


async def precision(folder: Path) -> str:
    """The tables over every labelled archive that the folder has."""
    there = [each for each in sources() if (folder / each.archive).is_file()]
    if not there:
        raise BadGoal(f"no labelled archive in {folder}; python -m bench.review sources says which")
    found: list[Judged] = []
    for source in there:
        found += await judged(source, folder)
    return tables(found)


def _amount(text: str) -> Decimal:
    with suppress(InvalidOperation):
        if Decimal(text).is_finite() and Decimal(text) > 0:
            return Decimal(text)
    raise BadGoal(f"{text!r} is not an amount of dollars; give one, such as 20")


def main(arguments: list[str]) -> str:
    """What is to be printed."""
    match arguments:
        case ["believed"]:
            return believed()
        case ["planted"]:
            return asyncio.run(planted())
        case ["seeded"]:
            return seeded.table(asyncio.run(seeded.all_reviewed()))
        case ["sources"]:
            return "\n".join(each.fetch for each in sources())
        case ["undone", folder]:
            return undone.table(asyncio.run(undone.looked(Path(folder))))
        case ["undone", folder, "--eyes"]:
            return eyes.main(Path(folder), None)
        case ["undone", folder, "--models", dollars]:
            return eyes.main(Path(folder), _amount(dollars))
        case [folder]:
            return asyncio.run(precision(Path(folder)))
    raise BadGoal(str(__doc__).strip())


if __name__ == "__main__":
    try:
        sys.stdout.write(main(sys.argv[1:]) + "\n")
    except BadGoal as error:
        sys.exit(str(error))
