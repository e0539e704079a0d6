"""The live page that is served to several people, each under their own name."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from conftest import Runs
from doors import Door, served
from holdfast.doors.tokens import Scopes
from holdfast.intake.connection import Connection
from steered import report_of, script, waiting

pytestmark = pytest.mark.anyio
WORD = re.compile(r'name="token" value="([^"]+)"')


@pytest.fixture
async def door(connection: Connection) -> AsyncIterator[Door]:
    async with served(connection) as made:
        yield made


async def visitor(door: Door, secret: str, page: str) -> httpx2.AsyncClient:
    """Return a browser in which somebody has logged in."""
    browser = door.bearing("").client
    led = await browser.get(page)
    assert (led.status_code, led.headers["location"]) == (303, f"/login?next={page}")
    form = await browser.get(led.headers["location"])
    assert form.status_code == 200 and f'value="{page}"' in form.text
    own = {"Origin": door.address}
    given = {"token": secret, "next": page}
    done = await browser.post("/login", data=given, headers=own)
    assert (done.status_code, done.headers["location"]) == (303, page), done.text
    cookie = done.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and secret not in cookie
    return browser


async def test_two_people_see_a_run_and_who_decided_stands_in_its_history(
    runs: Runs, connection: Connection, door: Door
) -> None:
    page, own = "/runs/page-of-two/live/", {"Origin": door.address}
    async with runs.worker(script()):
        await waiting(runs, connection, "page-of-two")
        decide, reads = Scopes(decide=True), Scopes()
        ann = await visitor(door, door.tokens.add("ann", decide), page)
        ben = await visitor(door, door.tokens.add("ben", reads), page)
        shown = await ann.get(page)
        assert "The plan waits for approval" in shown.text
        assert "script-src 'nonce-" in shown.headers["content-security-policy"]
        order = {"command": "approve", "token": WORD.findall(shown.text)[0]}
        refused = await ben.post(f"{page}order", data=order, headers=own)
        assert refused.status_code == 303
        assert "lacks the scope decide" in (await ben.get(page)).text
        assert "lacks the scope decide" not in (await ann.get(page)).text
        for headers, sent in (
            ({}, order),
            ({"Origin": "https://evil.example"}, order),
            (own, order | {"token": "x"}),
        ):
            answer = await ann.post(f"{page}order", data=sent, headers=headers)
            assert answer.status_code in (401, 403), headers
        assert (await ann.get("/runs")).status_code == 401, "a session is for pages alone"
        done = await ann.post(f"{page}order", data=order, headers=own)
        assert (done.status_code, done.headers["location"]) == (303, page)
        report = await report_of(connection, "page-of-two")
        door.tokens.revoke("ann")
        assert (await ann.get(page)).status_code == 303, "revoked: logged out"
        over = await ben.get(page)
    assert [(each.command, each.order.by) for each in report.orders] == [("approve", "ann")]
    assert over.status_code == 200 and "Both" in over.text


async def test_a_login_lets_in_bearers_alone_and_leads_to_no_other_place(door: Door) -> None:
    browser, own = door.bearing("").client, {"Origin": door.address}
    wrong = await browser.post("/login", data={"token": "hf_x"}, headers=own)
    assert wrong.status_code == 401 and "no token of this server" in wrong.text
    foreign = await browser.post(
        "/login", data={"token": door.own}, headers={"Origin": "https://evil.example"}
    )
    assert foreign.status_code == 403
    for place in ("https://evil.example", "//evil.example", "/runs//evil.example", "/runs/\\evil"):
        form = await browser.get("/login", params={"next": place})
        assert "evil" not in form.text
        done = await browser.post("/login", data={"token": door.own, "next": place}, headers=own)
        assert (done.status_code, done.headers["location"]) == (303, "/login")
    gone = await browser.get("/runs/none/live/")
    assert gone.status_code == 404
    assert "There is nothing to show" in gone.text and "hf_" not in gone.text
