"""Files that a person names on the command line: read whole, within a bound, never waited for."""

from __future__ import annotations

from pathlib import Path

from cli.exits import Stop
from deployment.folders import NotRegular, TooLarge, read_regular

TEXT_BYTES = 4 * 1024 * 1024


def read_text(path: Path, what: str, limit: int = TEXT_BYTES) -> str:
    """The text of a regular file. Stop says, beginning with `what`, why it is not read."""
    shown = repr(str(path))
    try:
        # A link that a person names is meant.
        content = read_regular(path.expanduser().resolve(strict=True), limit)
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError as error:
        raise Stop(f"{what}: there is no file {shown}") from error
    except NotRegular as error:
        raise Stop(f"{what}: {shown} is no file to read: {error.strerror}") from error
    except TooLarge as error:
        raise Stop(f"{what}: {shown} is {error.strerror}; give a smaller one") from error
    except UnicodeDecodeError as error:
        raise Stop(f"{what}: {shown} is no UTF-8 text; convert it first") from error
    except OSError as error:
        raise Stop(f"{what}: {shown} cannot be read: {error.strerror}") from error
    except (ValueError, RuntimeError) as error:
        # A NUL in the name, or a link that leads to itself.
        raise Stop(f"{what}: {shown} names no file") from error
