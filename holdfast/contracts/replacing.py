"""A copy of a frozen object with some of its fields changed.

As `dataclasses.replace`, which the type checker takes it for, but without handing every field
through the constructor: each event changes a run's state of forty fields a dozen times over. So it
is for classes whose constructor does nothing else than keep its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["replace"]

if TYPE_CHECKING:
    from dataclasses import replace
else:

    def replace(whole: Any, /, **changes: Any) -> Any:
        """The same object but for these fields."""
        changed = object.__new__(whole.__class__)
        fields = changed.__dict__
        fields.update(whole.__dict__)
        fields.update(changes)
        return changed
