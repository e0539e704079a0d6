"""Subtasks that do none of the work. Pure.

What planners often add: one that coordinates the others, one that reviews everything, one that
puts all findings together, which the synthesis does anyway. Told by titles, in four languages: an
instruction has too many words that mean something else.
"""

from __future__ import annotations

import re

from holdfast.contracts import Subtask

_ALL = r"(?:all|the whole|every|alle|die gesamten?|tous|todos?)"
_FOUND = (
    r"(?:findings?|results?|outputs?|answers?|parts|pieces|contributions|subtasks?|everything|"
    r"ergebnisse?n?|befunde?|beiträge|teile|résultats?|resultados?)"
)
_FILLER = re.compile(
    rf"\b(?:coordinat(?:e (?:the|all|between|with)|ion|ing|or)|oversee\w*|orchestrat\w+|"
    rf"project manage\w+|manage (?:the )?(?:team|project)|kick-?off|monitor (?:the )?progress|"
    rf"koordin\w+|überwach\w+|projektleitung|coordinación|coordinar|coordonn\w+)\b"
    rf"|\b(?:final|overall|abschließende|letzte)\b[^.]{{0,20}}"
    rf"\b(?:review|check|polish|pass|prüfung|kontrolle)\b|\bquality (?:assurance|control)\b"
    rf"|\b(?:review|check|verify|validate|prüfe?n?|kontrolliere?n?)\b[^.]{{0,12}}"
    rf"\b(?:everything|alles|{_ALL} (?:the |other )?(?:work|{_FOUND}))\b"
    rf"|\b(?:combine|merge|compile|consolidate|assemble|collect|aggregate|integrate|synthesi[sz]e|"
    rf"synthesis|zusammenführ\w*|zusammenfass\w*|consolid\w+|combin\w+)\b[^.]{{0,25}}\b{_FOUND}\b"
    rf"|\b{_FOUND}\b[^.]{{0,15}}\b(?:zusammenführ\w*|zusammenfass\w*|zusammenstell\w*)\b"
    rf"|^(?:synthesis|consolidation|integration|finali[sz]ation|wrap-?up|zusammenführung)$",
    re.IGNORECASE,
)


def is_filler(subtask: Subtask) -> bool:
    """True if its title says that it only coordinates, reviews everything or merges findings."""
    return bool(_FILLER.search(subtask.title.strip()))
