"""What a review came to: the data of its report, and what the answer says beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.contracts import Remark, ReviewData
from holdfast.contracts.remarks import stands
from holdfast.rendering.verdict import counted


@dataclass(frozen=True)
class Outcome:
    """Outcome of a review."""

    data: ReviewData
    summed: Mapping[str, list[Remark]]
    """Remarks that are not defects by themselves, ranked, by lens: told in a paragraph."""
    outside: str
    """Remarks outside production code, as Markdown."""
    taken_out: str
    """Remarks that the repository's settings and a baseline took out, as Markdown."""
    to_verify: int
    """Remarks that a model was to verify."""
    unread_why: Mapping[str, int]

    @property
    def standing(self) -> list[Remark]:
        """Return the remarks that are told one by one: they count, and no model refuted them."""
        return [each for each in counted(self.data) if stands(each)]
