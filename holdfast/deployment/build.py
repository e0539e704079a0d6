"""The build of a worker: which code it is, the same on every machine that has the same code."""

from __future__ import annotations

import hashlib
from functools import cache

from holdfast import __version__
from holdfast.deployment.settings import PACKAGE, Settings

LINKED = ("activities", "workflows")
"""Links in a checkout, which a walk does not follow."""


def build_of(settings: Settings) -> str:
    """Return the build id of this installation. Runs that are pinned to a build need its very code;
    prompts, roles and playbooks reach a run otherwise, and are no part of it.
    """
    if settings.build_id or not settings.pin_runs:
        return settings.build_id or __version__
    return f"{__version__}-{_digest_code()}"


@cache
def _digest_code() -> str:
    digest = hashlib.sha256()
    files = {
        path.relative_to(PACKAGE).as_posix(): path
        for folder in (PACKAGE, *map(PACKAGE.joinpath, LINKED))
        for path in folder.rglob("*.py")
    }
    for name in sorted(files):
        content = files[name].read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]
