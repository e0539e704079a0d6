"""What pydantic finds wrong with a value, in words for the person who wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from pydantic import ValidationError

LONGEST_NAME = 100
"""Letters of what may be a misspelt name; to compare more takes time that a stranger would choose.
"""


def mistakes(error: ValidationError, whole: str = "") -> tuple[str, ...]:
    """Each mistake as `place.within: what is wrong`; `whole` names the value where a mistake is of
    all of it. What was given is not repeated: it may be a secret.
    """
    return tuple(
        f"{'.'.join(map(str, mistake['loc'])) or whole}: {mistake['msg']}"
        for mistake in error.errors(include_url=False, include_input=False)
    )


def as_rest(message: str) -> str:
    """A message of pydantic's as the rest of a sentence."""
    return message[:1].lower() + message[1:]


def suggest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant, as the rest of a sentence; empty: none is alike."""
    if len(name) > LONGEST_NAME:
        return ""
    alike = get_close_matches(name, [*known], n=1)
    return f" (did you mean {alike[0]!r}?)" if alike else ""


def refuse_choice(choices: Sequence[str], value: str) -> str:
    """Why a value is none of those that there are, as the rest of a sentence; empty: it is one, or
    there is no choice.
    """
    if not choices or value in choices:
        return ""
    return f"{value[:80]!r} is none of {', '.join(choices)}; give one of these"
