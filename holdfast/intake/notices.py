"""Who is to be told of a run by web hooks, checked before anything starts."""

from __future__ import annotations

from typing import cast, get_args

from holdfast.contracts.notices import Notify, Occasion
from holdfast.deployment.extras import lacking
from holdfast.deployment.hooks import SECRET, refusal_of
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.text.mistakes import suggest

MOST_URLS = 5
ALL = get_args(Occasion)


def notify_of(
    urls: tuple[str, ...], on: tuple[str, ...], settings: Settings, *, embedded: bool
) -> Notify | None:
    """Return who is told of what; None: nobody. Refused names what is wrong, no address.

    `embedded`: the worker will have these settings, so that what cannot be sent is known here.
    """
    if not urls:
        if on:
            raise Refused("--on: it says of what a web hook tells; give --notify URL with it")
        return None
    if len(urls) > MOST_URLS:
        raise Refused(f"--notify: at most {MOST_URLS} addresses")
    private = settings.webhook_private or not embedded
    for number, url in enumerate(urls, 1):
        if why := refusal_of(url, private=private):
            raise Refused(f"--notify: the {_nth(number, urls)} {why}")
    if embedded and settings.webhook_secret is None:
        raise Refused(
            f"--notify: {SECRET} is not set, and no web hook goes unsigned; set it to whsec_ and"
            " 32 random bytes as base64"
        )
    if embedded and (why := lacking("serve")):
        raise Refused(f"--notify: it {why}")
    return Notify(urls=tuple(dict.fromkeys(urls)), on=_occasions(on))


def _nth(number: int, urls: tuple[str, ...]) -> str:
    return "address" if len(urls) == 1 else f"address {number}"


def _occasions(on: tuple[str, ...]) -> tuple[Occasion, ...]:
    named = [part.strip() for each in on for part in each.split(",") if part.strip()]
    for name in named:
        if name not in ALL:
            raise Refused(f"--on {name!r:.60}{suggest(name, ALL)}; known: {', '.join(ALL)}")
    return cast(tuple[Occasion, ...], tuple(dict.fromkeys(named))) or ALL
