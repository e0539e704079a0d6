"""Subtasks that do none of the work."""

from __future__ import annotations

import pytest

from holdfast.contracts import Subtask
from holdfast.evals.filler import is_filler


def titled(title: str) -> Subtask:
    return Subtask(id="t1", title=title, instruction="Do it", role="analyst")


@pytest.mark.parametrize(
    "title",
    [
        "Coordinate the team",
        "Project management",
        "Final review",
        "Quality assurance of the report",
        "Review everything",
        "Check all results",
        "Combine the findings",
        "Merge and compile results",
        "Synthesis",
        "Wrap-up",
        "Oversee progress",
        "Koordination der Arbeiten",
        "Ergebnisse zusammenführen",
        "Abschließende Prüfung",
        "Combinar los resultados",
        "Consolider les résultats",
    ],
)
def test_a_subtask_that_does_none_of_the_work_is_filler(title: str) -> None:
    assert is_filler(titled(title))


@pytest.mark.parametrize(
    "title",
    [
        "Compare the three providers",
        "Recommendation from the figures",
        "Check the press release against the facts",
        "Review the contract for risks",
        "Collect the prices of both towns",
        "Passengers of 2025",
        "Combine the two tables by asset",
        "Which functions no test calls",
        "Noise at the quay",
        "Compile the list of invoices",
        "Write the memo",
        "Vergleich der Angebote",
        "Prüfe die Pressemitteilung",
        "Lire le contrat",
        "How the ferry is supplied",
        "Overall cost of the move",
        "Coordinates of the two stations",
        "Which supervisors signed",
        "Check all statements of the text",
        "Water quality check of the lake",
        "Prüfe alle Rechnungen",
        "Every obligation in the contract",
    ],
)
def test_a_subtask_that_works_is_no_filler(title: str) -> None:
    assert not is_filler(titled(title))
