"""An environment as a wheel makes it that is installed without extras, without the network: a copy
of ours, and links to the files of the core's packages as they are installed here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from holdfast.deployment.settings import HOME


def core() -> dict[str, Distribution]:
    """The packages of an installation without extras, with all that they need, by their names."""
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    found: dict[str, Distribution] = {}
    wanted = [Requirement(each) for each in project["dependencies"]]
    taken = set[tuple[str, frozenset[str]]]()
    while wanted:
        each = wanted.pop()
        name, extras = canonicalize_name(each.name), frozenset(each.extras)
        if (name, extras) in taken or not _applies(each, [""]):
            continue
        taken.add((name, extras))
        found[name] = distribution(name)
        needs = map(Requirement, found[name].requires or ())
        wanted += [need for need in needs if _applies(need, ["", *extras])]
    return found


def _applies(each: Requirement, extras: list[str]) -> bool:
    return each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)


def megabytes(packages: dict[str, Distribution]) -> float:
    """What the packages take on disk, compiled files left out."""
    return sum(path.stat().st_size for _, path in _files(packages)) / 1e6


def made(folder: Path) -> Path:
    """Make the environment in this folder; its Python."""
    make = (sys.executable, "-m", "venv", "--without-pip", str(folder))
    subprocess.run(make, check=True, timeout=60)
    [site] = folder.glob("lib/python*/site-packages")
    packages, owners = core(), packages_distributions()
    for within, path in _files(packages):
        whose = {canonicalize_name(each) for each in owners.get(within.parts[0], ())}
        if whose and whose <= packages.keys() and len(within.parts) > 1:
            # A folder that is of the core alone is linked whole, with what is compiled of it.
            within, path = Path(within.parts[0]), path.parents[len(within.parts) - 2]
        place = site / within
        if not place.is_symlink():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path)
    # As a wheel has it: real folders, and within the package what stands beside it here.
    shutil.copytree(HOME / "holdfast", site / "holdfast")
    for name in ("evals", "examples", "playbooks", "prompts", "roles"):
        shutil.copytree(HOME / name, site / "holdfast" / name, dirs_exist_ok=True)
    return folder / "bin" / "python"


def _files(packages: dict[str, Distribution]) -> Iterator[tuple[Path, Path]]:
    """Each file below `site-packages`: its path there, and where it is."""
    for each in packages.values():
        for file in each.files or ():
            path = Path(str(each.locate_file(file)))
            inside = ".." not in file.parts and "__pycache__" not in file.parts
            if inside and path.is_file():
                yield Path(*file.parts), path.resolve()
