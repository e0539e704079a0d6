"""Copying a frozen object with some fields changed.

Like `dataclasses.replace`, which it is to the type checker, but without the constructor: each event
changes a state of forty fields a dozen times over. Only for classes whose constructor just keeps
its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["replace"]

if TYPE_CHECKING:
    from dataclasses import replace
else:

    def replace(whole: Any, /, **changes: Any) -> Any:
        changed = object.__new__(whole.__class__)
        fields = changed.__dict__
        fields.update(whole.__dict__)
        fields.update(changes)
        return changed
