"""How far each row of the lenses' tables is to be believed, by the labelled remarks.

The confidence of a row is the expected share of its remarks that a maintainer would act on, in
percent: the mean of a Beta distribution. Before anything is measured it is that of the row's family
(`families.yaml`), worth four remarks; each labelled remark in production code counts as one more.

    (useful + 4 * family) / (labelled + 4)

Remarks in tests, documentation and the like count for nothing here: a review tells them apart. What
is below SHOWN is counted by a review and not shown; only what reaches CRITICAL may be critical.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import yaml

from bench.review.labels import HERE, PRODUCTION, Label, everything

WEIGHT = 4
SHOWN = 50
"""The least confidence that is shown, as the playbook has it."""
CRITICAL = 80


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

    @property
    def labelled(self) -> int:
        """How many of its remarks somebody has looked at."""
        return self.useful + self.true + self.false

    @property
    def confidence(self) -> int:
        """Return the confidence in percent."""
        return round(100 * (self.useful + WEIGHT * self.prior) / (self.labelled + WEIGHT))


@functools.cache
def rows() -> dict[tuple[str, str], Row]:
    """Every row that has a family, by lens and name."""
    return measured(everything())


def measured(labels: Iterable[Label]) -> dict[tuple[str, str], Row]:
    """The rows by these labels."""
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
        )
        for lens, families in said["lenses"].items()
        for family, names in families.items()
        for name in names
    }
