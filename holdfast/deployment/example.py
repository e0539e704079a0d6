"""`.env.example`, printed from the settings, so that a new one need be written down once.

python -m holdfast.deployment.example >.env.example
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

from holdfast.deployment.settings import Settings, as_text

COLUMN = 100
HEAD = (
    "Copy to `.env` in your project's folder, or beside worker.py if you have no project. Variables"
    " of the environment come first, then these, then holdfast.toml. Relative paths start at the"
    " project's folder, else at the current one. Without a model nothing need be set. Printed by"
    " `python -m holdfast.deployment.example`."
)
TEMPORAL = (
    "A server of your own, by Temporal's variables. They are read from the environment, never from"
    " `.env`."
)
SERVER = (
    "TEMPORAL_ADDRESS=localhost:7233",
    "TEMPORAL_NAMESPACE=default",
    "TEMPORAL_API_KEY=",
    "TEMPORAL_PROFILE=",
)

SLACK = "For `holdfast slack`. They are read from the environment, never from `.env`."
OF_SLACK = ("SLACK_BOT_TOKEN=", "SLACK_APP_TOKEN=", "SLACK_SIGNING_SECRET=")


def example() -> str:
    """Return `.env.example`: every setting that an operator may set, commented out."""
    return "\n\n".join(_parts()) + "\n"


def _parts() -> Iterator[str]:
    yield _comment(HEAD)
    for name, field in Settings.model_fields.items():
        given = field.examples[0] if field.examples else _default(name)
        yield _comment(field.description or "", f"{Settings.variable(name)}={given}")
    yield _comment(TEMPORAL, *SERVER)
    yield _comment(SLACK, *OF_SLACK)


def _default(name: str) -> str:
    """Return a default as a variable has it; empty if it depends on the machine."""
    field = Settings.model_fields[name]
    return "" if field.default_factory else as_text(field.default)


def _comment(text: str, *variables: str) -> str:
    lines = (*textwrap.wrap(text, COLUMN - 2), *variables)
    return "\n".join(f"# {line}" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(example())
