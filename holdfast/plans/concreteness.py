"""Check by code what planners often leave vague: on what an instruction works, what it wants back,
and whether a subtask needs what it waits for. Pure.

The words are few and of four languages; a plan in another one is held to the rest. Plans that
people write are not held to it: they know what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.contracts import Plan, Subtask

SHORT = 12
"""An instruction of fewer words must name the form of its result, if no criterion or check does."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_VAGUE = """
the and for all any about with from this that these those it its what says everything thoroughly
completely analyse analyze analysis research investigate examine review study explore consider look
find summarise summarize describe write give tell say make data topic subject information material
matter issue goal question problem thing things text document documents file files input inputs
details overview summary report
der die das und für alle alles über mit aus dies diese dem den zu analysiere untersuche recherchiere
beschreibe thema daten frage informationen gründlich les des pour tous tout sur avec analyser
rechercher sujet données los las para todos todo sobre con analizar investigar tema datos
"""
_GENERIC = frozenset(_VAGUE.split())
"""Words that name nothing in particular."""
FEWEST_WORDS = 3
"""So many words of their own name a matter, whatever the goal calls it."""
_FORM = re.compile(
    r"\d|\b(?:return|list|table|json|csv|yaml|markdown|sentences?|words?|paragraphs?|bullets?|numbers?|"
    r"names?|dates?|which|who|when|where|whether|how|yes or no|rank|one of|"
    r"liste|tabelle|sätze?|wörter|absatz|nenne|gib|welche[rs]?|wer|wann|wo|ob|wie|"
    r"tableau|phrases?|mots|quels?|quelles?|combien|lista|tabla|frases?|palabras|cuál(?:es)?|cuánt[oa]s?)\b",
    re.IGNORECASE,
)
_REFERS = re.compile(
    r"\b(?:findings?|results?|previous|earlier|above|former|based on|using|them|these|both|"
    r"ergebniss?e?n?|befunde?n?|obige[nrs]?|vorige[nrs]?|daraus|beide[nrs]?|"
    r"résultats?|ci-dessus|précédents?|resultados?|anterior(?:es)?|hallazgos?)\b",
    re.IGNORECASE,
)


def problems(plan: Plan, goal: str) -> Iterator[str]:
    """Yield each subtask whose instruction does not say on what it works, or what it returns."""
    known = _substance(goal)
    for place, subtask in enumerate(plan.subtasks):
        where = f"subtasks[{place}] {subtask.id!r}: instruction: not concrete"
        if not (subtask.inputs or subtask.depends_on or _names_something(subtask, known)):
            yield f"{where}; name what it works on, as the goal calls it"
        elif not _says_form(subtask):
            yield f"{where}; say what to return and in what form"


def needless_edges(plan: Plan) -> Iterator[str]:
    """Yield each pair of which the later one waits for what its instruction never mentions."""
    by_id = {each.id: each for each in plan.subtasks}
    for subtask in plan.subtasks:
        said = f"{subtask.instruction} {subtask.acceptance_criteria}"
        if _REFERS.search(said):
            continue
        for edge in subtask.depends_on:
            needed = by_id.get(edge)
            if needed is None or re.search(rf"\b{re.escape(edge)}\b", said):
                continue
            if not _substance(said) & (_substance(needed.title) - _substance(plan.goal)):
                yield (
                    f"depends_on: {subtask.id!r} waits for {edge!r}, and its instruction does not"
                    " mention what that finds; name it there, or let both run at once"
                )


def _names_something(subtask: Subtask, known: frozenset[str]) -> bool:
    """True if an instruction has a word of the goal, words enough of its own, a name, a figure or
    something quoted.
    """
    first, _, rest = subtask.instruction.partition(" ")
    proper = re.search(r"\b[A-ZÄÖÜ][^\W\d_]+|[\"'«“`]\S|\d", rest)
    own = _substance(subtask.instruction)
    return bool(proper or re.search(r"\d", first) or own & known or len(own) >= FEWEST_WORDS)


def _says_form(subtask: Subtask) -> bool:
    if subtask.acceptance_criteria or subtask.checks:
        return True
    text = subtask.instruction
    return len(text.split()) >= SHORT or _FORM.search(text) is not None


def _substance(text: str) -> frozenset[str]:
    return frozenset(each.casefold() for each in _WORD.findall(text)) - _GENERIC
