"""How far each row of the lenses' tables is to be believed, by the labelled remarks.

The confidence of a row is the expected share of its remarks that a maintainer would act on, in
percent: the mean of a Beta distribution. Before anything is measured it is that of the row's family
(`families.yaml`), worth four remarks; each labelled remark in production code counts as one more.

    (useful + 4 * family) / (labelled + 4)

What a change has just brought is believed by a scale of its own, because what was released has lost
its worst defects: it begins at the family, or at the number above where that is higher, and counts
the labels of changes alone. The table has that second number where it differs by APART or more,
and either is shown.

Remarks in tests, documentation and the like count for nothing here: a review tells them apart. What
is below SHOWN is counted by a review and not shown; only what reaches CRITICAL may be critical.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import yaml

from bench.review.labels import HERE, PRODUCTION, ChangeLabel, Label, everything, on_changes

WEIGHT = 4
SHOWN = 50
"""The least confidence that is shown, as the playbook has it."""
CRITICAL = 80
APART = 10


@dataclass(frozen=True)
class Row:
    """A row of a lens's table: its family, and how it was labelled in production code."""

    lens: str
    name: str
    family: str
    prior: float
    useful: int = 0
    true: int = 0
    false: int = 0
    in_changes: tuple[int, int] = (0, 0)
    """How many labelled sightings of changes there are, and how many of them are useful."""

    @property
    def labelled(self) -> int:
        """How many of its remarks somebody has looked at."""
        return self.useful + self.true + self.false

    @property
    def confidence(self) -> int:
        """Return the confidence in percent."""
        return round(100 * self._mean)

    @property
    def in_change(self) -> int:
        """Return the confidence in percent of what a change has just brought."""
        labelled, useful = self.in_changes
        least = max(self.prior, self._mean)
        of_changes = round(100 * (useful + WEIGHT * least) / (labelled + WEIGHT))
        differs = labelled and abs(of_changes - self.confidence) >= APART
        shown = max(of_changes, self.confidence) >= SHOWN
        return of_changes if differs and shown else self.confidence

    @property
    def _mean(self) -> float:
        return (self.useful + WEIGHT * self.prior) / (self.labelled + WEIGHT)


@functools.cache
def rows() -> dict[tuple[str, str], Row]:
    """Every row that has a family, by lens and name."""
    return measured(everything(), on_changes())


def measured(
    labels: Iterable[Label], changes: Iterable[ChangeLabel] = ()
) -> dict[tuple[str, str], Row]:
    """The rows by these labels."""
    seen = [(each.lens, each.row, each.label == "useful") for each in changes]
    brought, useful = Counter((lens, row) for lens, row, _ in seen), Counter(seen)
    counted = Counter(
        (each.lens, each.row, each.label) for each in labels if each.kind == PRODUCTION
    )
    said = yaml.safe_load((HERE / "families.yaml").read_text("utf-8"))
    return {
        (lens, name): Row(
            lens,
            name,
            family,
            float(said["families"][family]),
            useful=counted[lens, name, "useful"],
            true=counted[lens, name, "true"],
            false=counted[lens, name, "false"],
            in_changes=(brought[lens, name], useful[lens, name, True]),
        )
        for lens, families in said["lenses"].items()
        for family, names in families.items()
        for name in names
    }
