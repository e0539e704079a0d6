"""Everything that touches the world. An activity is a method of a class with its collaborators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def activities_of(holder: object) -> list[Callable[..., Any]]:
    """Return the methods of an object that are activities, so that a new one needs no second
    entry.
    """
    members = (getattr(holder, name) for name in dir(type(holder)))
    return [each for each in members if hasattr(each, "__temporal_activity_definition")]
