"""Sends a notice to one address of the web, with the headers and signature of Standard Webhooks."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.activities.toolset.tool import ToolError
from holdfast.activities.toolset.web import check_url, connector, leads_inside
from holdfast.contracts.errors import NoticeNotTaken, NoticeRefused
from holdfast.contracts.notices import Notice
from holdfast.deployment.extras import lacking
from holdfast.deployment.hooks import SECRET, refusal_of

if TYPE_CHECKING:
    # Loaded once something is sent.
    from yarl import URL

SECONDS = 15.0
GONE = 410


@dataclass(frozen=True)
class Sender:
    """Sends as the settings of this deployment allow."""

    secret: str
    """Empty: none is sent."""
    private: bool = False
    """True if addresses that are not public may be told, and without TLS."""

    async def send(self, notice: Notice, address: str) -> None:
        """Tell an address. Raise NoticeNotTaken, or NoticeRefused where no retry can help."""
        if not self.secret:
            raise NoticeRefused(f"{SECRET} is not set for the worker, and nothing goes unsigned")
        if why := lacking("serve"):
            raise NoticeRefused(f"it {why}")
        if why := refusal_of(address, private=self.private):
            raise NoticeRefused(why)
        try:
            url = check_url(address)
        except ToolError as error:
            raise NoticeRefused(str(error)) from None
        status = await self._post(url, notice)
        if status == GONE:
            raise NoticeRefused(f"{url.host} answered {GONE}: it wants no more")
        if not 200 <= status < 300:
            raise NoticeNotTaken(f"{url.host} answered {status}")

    async def _post(self, url: URL, notice: Notice) -> int:
        """Return the status of the answer, of which nothing else is read."""
        import aiohttp

        try:
            async with (
                asyncio.timeout(SECONDS),
                aiohttp.ClientSession(
                    connector=None if self.private else connector(),
                    trust_env=False,
                    cookie_jar=aiohttp.DummyCookieJar(),
                ) as session,
                session.post(
                    url,
                    data=body_of(notice),
                    headers=self._headers(notice),
                    allow_redirects=False,
                ) as response,
            ):
                return response.status
        except TimeoutError:
            raise NoticeNotTaken(f"{url.host} did not answer within {SECONDS:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if leads_inside(error):
                raise NoticeRefused(f"{url.host} is not an address of the public web") from None
            raise NoticeNotTaken(f"{url.host}: {type(error).__name__}") from None

    def _headers(self, notice: Notice) -> dict[str, str]:
        """Return the headers of this attempt: the id stays, the moment is that of sending."""
        from standardwebhooks import Webhook

        now = datetime.now(UTC)
        return {
            "Content-Type": "application/json",
            "User-Agent": f"holdfast/{__version__}",
            "webhook-id": notice.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(self.secret).sign(notice.id, now, body_of(notice)),
        }


def body_of(notice: Notice) -> str:
    """Return what is sent: what has happened, and where to read the rest."""
    told = {
        "type": notice.type,
        "timestamp": notice.at.isoformat(),
        "data": {"id": notice.run_id, "event": notice.number},
    }
    return json.dumps(told)
