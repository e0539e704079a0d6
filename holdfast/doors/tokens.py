"""Who may do what at a door that is open to programs: tokens with names, in the state directory.

Only the SHA-256 of a token is kept. That is enough here, and no slow hash is needed: a token is 256
random bits, which nobody guesses, where a password is a word that many have tried.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir, private
from holdfast.errors import BadSettings, Refused
from holdfast.intake.login import login
from holdfast.text.mistakes import mistakes

PREFIX = "hf_"
"""By which people and scanners of secrets know a token."""
FILE_BYTES = 1024 * 1024
MOST = 1_000
MOST_DOLLARS = 10_000
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


class Scopes(BaseModel):
    """What its bearer may do. All may read runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    decide: bool = False
    """Give orders to runs."""
    schedule: bool = False
    """Add, change and delete schedules, whose runs are held to `dollars`, too."""
    dollars: Decimal | None = Field(None, ge=0, le=MOST_DOLLARS, allow_inf_nan=False)
    """Start runs whose cap is at most this; None: none."""

    def __str__(self) -> str:
        start = () if self.dollars is None else (f"start:{self.dollars}",)
        more = (name for name in ("schedule", "decide") if getattr(self, name))
        return ", ".join(("read", *start, *more))


ALL = Scopes(decide=True, schedule=True, dollars=Decimal(MOST_DOLLARS))


class Token(BaseModel):
    """A token as it is kept: without its secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=_NAME)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    scopes: Scopes = Scopes()
    made: datetime


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tokens: tuple[Token, ...] = Field((), max_length=MOST)


@dataclass(frozen=True)
class Caller:
    """Who stands at the door. The name is who decides, as the history keeps it."""

    name: str
    scopes: Scopes


@dataclass
class Tokens:
    """The tokens of a state directory. A change by a command counts from the next request on."""

    settings: Settings
    _known: tuple[Token, ...] = ()
    _mark: tuple[int, int, int] | None = field(default=None)

    @property
    def path(self) -> Path:
        return StateDir.of(self.settings).path / "tokens.json"

    def all(self) -> tuple[Token, ...]:
        """Return all there are. BadSettings if their file cannot be read: nobody is let in then."""
        try:
            found = self.path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            self._known, self._mark = (), None
            return ()
        mark = (found.st_mtime_ns, found.st_ino, found.st_size)
        if mark != self._mark:
            self._known, self._mark = self._read(), mark
        return self._known

    def caller_of(self, secret: str) -> Caller | None:
        """Return whose token this is; None if it is nobody's. It takes as long for any."""
        return self.caller_of_hash(hash_of(secret))

    def caller_of_hash(self, given: str) -> Caller | None:
        """Return whose token has this hash; None if it is nobody's."""
        found = None
        for each in self.all():
            if hmac.compare_digest(each.sha256, given):
                found = Caller(each.name, each.scopes)
        return found

    def add(self, name: str, scopes: Scopes) -> str:
        """Make a token; return its secret, which is kept nowhere. Refused if the name is taken."""
        secret = new_secret()
        try:
            made = Token(name=name, sha256=hash_of(secret), scopes=scopes, made=datetime.now(UTC))
        except ValidationError:
            raise Refused(
                f"{name!r:.80} cannot be a token's name: use up to 64 letters, digits, '.', '_'"
                " and '-', the first a letter or digit"
            ) from None
        with self._locked():
            known = self._read()
            if any(each.name == name for each in known):
                raise Refused(
                    f"there is a token {name!r} already; revoke it first, or choose another"
                )
            if len(known) >= MOST:
                raise Refused(f"there are {MOST} tokens already; revoke some")
            self._write((*known, made))
        return secret

    def revoke(self, name: str) -> Token:
        """Take a token back, from the next request on, and return what it was. Refused if there is
        none of that name.
        """
        with self._locked():
            known = self._read()
            left = tuple(each for each in known if each.name != name)
            if len(left) == len(known):
                names = ", ".join(each.name for each in known) or "none"
                raise Refused(f"there is no token {name!r:.80}; there are: {names}")
            self._write(left)
        return next(each for each in known if each.name == name)

    def _read(self) -> tuple[Token, ...]:
        try:
            return _Kept.model_validate_json(private.read(self.path, FILE_BYTES)).tokens
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise BadSettings(f"{self.path} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            wrong = mistakes(error, "JSON")[0][:200]
            raise BadSettings(
                f"{self.path} is damaged ({wrong}); move it away and make new tokens"
            ) from None

    def _write(self, tokens: tuple[Token, ...]) -> None:
        private.write(self.path, _Kept(tokens=tokens).model_dump_json(indent=1))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        StateDir.of(self.settings).create()
        handle = private.open_file(self.path.with_name("tokens.lock"))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def new_secret() -> str:
    """Return 256 random bits as text."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def scopes_of(given: list[str]) -> Scopes:
    """Return what `--scope` words allow. Refused if one is none."""
    named, dollars = set(), None
    for word in given:
        what, _, amount = word.partition(":")
        if word in ("decide", "schedule"):
            named.add(word)
        elif what == "start" and amount:
            dollars = _dollars(word, amount)
        elif word != "read":
            raise Refused(
                f"--scope {word!r:.60}: give read, decide, schedule, or start:DOLLARS such as"
                " start:2.50"
            )
    if "schedule" in named and dollars is None:
        raise Refused("--scope schedule: say what each run of a schedule may cost: start:DOLLARS")
    return Scopes(decide="decide" in named, schedule="schedule" in named, dollars=dollars)


def _dollars(word: str, amount: str) -> Decimal:
    plain = amount.isascii() and amount.replace(".", "", 1).isdigit() and len(amount) < 20
    if not plain or Decimal(amount) > MOST_DOLLARS:
        raise Refused(f"--scope {word!r:.60}: dollars are a number from 0 to {MOST_DOLLARS}")
    return Decimal(amount)


def owner() -> Caller:
    """Return who started the door, for those who hold no token of a name."""
    return Caller(login() or "owner", ALL)
