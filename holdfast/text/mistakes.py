"""Validation errors of pydantic, in words for the person who wrote the value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from pydantic import ValidationError

LONGEST_NAME = 100
"""Characters of a name that may be misspelt: comparing longer ones would be slow."""


def mistakes(error: ValidationError, whole: str = "") -> tuple[str, ...]:
    """Return each mistake as `place.within: what is wrong`; `whole` names the value where a mistake
    concerns all of it. The given value is not repeated: it may be a secret.
    """
    return tuple(
        f"{'.'.join(map(str, mistake['loc'])) or whole}: {mistake['msg']}"
        for mistake in error.errors(include_url=False, include_input=False)
    )


def as_rest(message: str) -> str:
    return message[:1].lower() + message[1:]


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the known name that was probably meant, as the rest of a sentence, if any."""
    if len(name) > LONGEST_NAME:
        return ""
    alike = get_close_matches(name, [*known], n=1)
    return f" (did you mean {alike[0]!r}?)" if alike else ""


def refuse_other(mentions: Sequence[str], text: str) -> str:
    """Return why a text is not what it is taken for: it has none of these words, in any case."""
    if not mentions or any(each.casefold() in text.casefold() for each in mentions):
        return ""
    return f"has none of the words {', '.join(mentions)}; give the file that was meant"


def refuse_choice(choices: Sequence[str], value: str) -> str:
    """Return why a value is not one of the choices, if there are any and it is not."""
    if not choices or value in choices:
        return ""
    if len(choices) == 1:
        return f"{value[:80]!r} is not {choices[0]!r}, which is all that it can be"
    return f"{value[:80]!r} is none of {', '.join(choices)}; give one of these"
