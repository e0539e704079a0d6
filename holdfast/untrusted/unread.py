"""What somebody wrote into a file that nothing would read: contracts ignore fields that they do not
know, so that old histories decode, but a person who wrote one must be told. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel


def find_unread(model: type[BaseModel], given: object, where: str = "") -> tuple[str, ...]:
    """Return the places of all fields that this model does not have, nested ones included, as
    `subtasks[2].depend_on`. A wrong shape is left to the model's own validation.
    """
    return tuple(_find(model, given, where))


def _find(model: type[BaseModel], given: object, where: str) -> Iterator[str]:
    if not isinstance(given, Mapping):
        return
    for name, value in given.items():
        place = f"{where}.{name}" if where else str(name)
        field = model.model_fields.get(str(name))
        if field is None:
            yield place
            continue
        for nested in _models(field.annotation):
            if isinstance(value, list):
                for number, each in enumerate(value):
                    yield from _find(nested, each, f"{place}[{number}]")
            elif not _is_mapping_of(field.annotation, nested):
                yield from _find(nested, value, place)


def _is_mapping_of(annotation: Any, nested: type[BaseModel]) -> bool:
    """True if the names below a field are the writer's own, as those of a playbook's inputs."""
    return getattr(annotation, "__origin__", None) is dict and nested in get_args(annotation)


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a field's annotation names, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for each in get_args(annotation) for model in _models(each)]
