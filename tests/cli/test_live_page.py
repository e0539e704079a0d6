"""The live page: what it shows, and what it takes from whoever has its address and nobody else."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path

import aiohttp
import pytest

from browser import CHROMIUM, WITHOUT, tab
from conftest import Handle, Runs, seen
from drawn import drawn, row, view
from holdfast.cli.live.guard import COOKIE, Guard
from holdfast.cli.live.server import LivePage, live
from holdfast.cli.screen.tables import preview as plan_preview
from holdfast.client.live.forms import order_of
from holdfast.client.reading import Reader
from holdfast.contracts import Goal, Limits
from holdfast.errors import Refused
from holdfast.intake.connection import Connection
from holdfast.ledger.ranges import format_price
from holdfast.rendering.html.page import as_html
from holdfast.rendering.html.pictured import Pictured
from holdfast.rendering.html.steering import Live
from holdfast.rendering.preview import plan_table, totals
from paged import shown
from scripted import ScriptedModel, plans, ready, subtask, synthesizes, works

pytestmark = [pytest.mark.long, pytest.mark.anyio]
TOKEN = re.compile(r'name="token" value="([^"]+)"')
NONCE = re.compile(r"'nonce-([^']+)'")


@dataclass
class Visitor:
    """A browser that has the page open."""

    session: aiohttp.ClientSession
    address: str
    token: str = ""

    @property
    def origin(self) -> str:
        return "/".join(self.address.split("/")[:3])

    async def page(self) -> str:
        async with self.session.get(self.address) as answer:
            assert answer.status == 200
            text = await answer.text()
        self.token = (TOKEN.findall(text) or [self.token])[0]
        return text

    async def order(self, headers: Mapping[str, str], **given: str) -> tuple[int, str]:
        async with self.session.post(f"{self.address}order", data=given, headers=headers) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def visiting(connection: Connection, run_id: str) -> AsyncIterator[Visitor]:
    jar = aiohttp.CookieJar(unsafe=True)
    async with (
        live(connection, run_id) as address,
        aiohttp.ClientSession(cookie_jar=jar) as session,
    ):
        yield Visitor(session, address)


def approved() -> ScriptedModel:
    return ScriptedModel(
        {
            "plan": [plans(subtask("t1"), subtask("t2"))],
            "t1": [works("found")],
            "t2": [works("found, too")],
            "synthesize": [synthesizes("So it is [t1].")],
        }
    )


def goal() -> Goal:
    given = {"text": "Compare engines", "use_models": True, "approval": {"when": "always"}}
    return Goal.model_validate(given)


@asynccontextmanager
async def waiting(runs: Runs) -> AsyncIterator[Handle]:
    """A run whose plan waits for approval."""
    async with runs.worker(approved()):
        handle = await runs.start(goal(), skipping=False)
        await seen(handle, lambda each: each.phase == "approval")
        yield handle


async def test_a_plan_is_approved_from_the_page_and_its_answer_appears_there(
    runs: Runs, connection: Connection
) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        page = await visitor.page()
        assert "The plan waits for approval" in page
        own = {"Origin": visitor.origin}
        status, page = await visitor.order(own, command="approve", token=visitor.token)
        assert status == 200 and "approved" in page
        await handle.result()
        while "under way" in page:
            page = await visitor.page()
        assert 'href="#subtask-1">t1</a>' in page and "The plan waits for approval" not in page


async def test_what_becomes_of_a_subtask_is_decided_from_the_page(
    runs: Runs, connection: Connection
) -> None:
    fails = works("", status="failed", why="the source is gone")
    lines = {"t1": [fails, fails, works("found")], "synthesize": [synthesizes("[t1]")]}
    plan = ready(subtask("t1", role="researcher"))
    limits = Limits(tries_per_subtask=1)
    asks = Goal(text="Find it", use_models=True, ask_people=True, plan=plan, limits=limits)
    async with runs.worker(ScriptedModel(lines)):
        handle = await runs.start(asks, skipping=False)
        await seen(handle, lambda each: each.waiting)
        async with visiting(connection, handle.id) as visitor:
            page = await visitor.page()
            assert "T1 failed: the source is gone" in page
            for button in ("Try again", "Try again so", "Supply", "Hand over", "Go on without"):
                assert f">{button}</button>" in page
            assert '<option value="coder">coder</option>' in page
            given = {"command": "hand", "subtask": "t1", "role": "coder"}
            own = {"Origin": visitor.origin}
            status, page = await visitor.order(own, token=visitor.token, **given)
            assert status == 200 and "t1 is handed over" in page
            report = await handle.result()
    assert [each.role for each in report.findings[0].tries] == ["", "analyst", "coder"]


async def test_what_came_of_an_order_is_not_shown_for_ever(
    runs: Runs, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        await visitor.page()
        own = {"Origin": visitor.origin}
        _, page = await visitor.order(own, command="eject", token=visitor.token)
        assert '<p class="not-done" role="alert"><strong>Not done: </strong>' in page
        assert "is not an order of this page" in page
        assert "is not an order of this page" in await visitor.page(), "a page asks each second"
        monkeypatch.setattr("holdfast.cli.live.server.SAID_SECONDS", 0.0)
        assert "is not an order of this page" not in await visitor.page()


@pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT)
async def test_a_browser_approves_by_a_click_and_is_brought_up_to_date_by_itself(
    runs: Runs, connection: Connection, tmp_path: Path
) -> None:
    async with (
        waiting(runs) as handle,
        live(connection, handle.id) as address,
        tab(tmp_path / "profile") as browser,
    ):
        await browser.open(address)
        await browser.value("document.querySelector('[value=approve] ~ button').click()")
        await browser.until("document.querySelector('[role=status]')")
        assert "approved" in await browser.value("document.body.innerText")
        await handle.result()
        await browser.until("document.querySelector('#answer .cite')")
        assert browser.refused == [] and browser.dialogs == []


async def test_what_a_run_has_reserved_is_not_said_to_be_spent(
    runs: Runs, connection: Connection
) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        page = await visitor.page()
        assert "≤" not in page.partition("</header>")[0]


async def test_nobody_else_gives_an_order_or_sees_the_page(
    runs: Runs, connection: Connection
) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        await visitor.page()
        own, given = {"Origin": visitor.origin}, {"command": "approve"}
        for headers in (
            {},
            {"Origin": "null"},
            {"Origin": "http://evil.example"},
            {"Origin": visitor.origin.replace("127.0.0.1", "localhost")},
            {**own, "Sec-Fetch-Site": "cross-site"},
            {**own, "Sec-Fetch-Site": "same-site"},
        ):
            status, said = await visitor.order(headers, **given, token=visitor.token)
            assert (status, said) == (403, "orders come from the page itself")
        for token in ("", "guessed", visitor.token[:-1]):
            assert (await visitor.order(own, **given, token=token))[0] == 403
        rebound = {**own, "Host": "evil.example"}
        assert (await visitor.order(rebound, **given, token=visitor.token))[0] == 404
        async with aiohttp.ClientSession() as stranger:
            alone = Visitor(stranger, visitor.address)
            assert (await alone.order(own, **given, token=visitor.token))[0] == 403
            for address in (f"{visitor.origin}/", f"{visitor.origin}/guessed/"):
                async with stranger.get(address) as answer:
                    assert answer.status == 404
            async with stranger.get(visitor.address, headers={"Host": "evil.example"}) as answer:
                assert answer.status == 404 and "Compare" not in await answer.text()
            async with stranger.get(f"{visitor.address}order?command=approve") as answer:
                assert answer.status == 405
        assert "The plan waits for approval" in await visitor.page()


async def test_the_page_runs_its_own_script_alone_and_stands_in_no_frame(
    runs: Runs, connection: Connection
) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        nonces = set()
        for _ in range(2):
            async with visitor.session.get(visitor.address) as answer:
                policy = answer.headers["Content-Security-Policy"]
                page = await answer.text()
                cookie = answer.headers["Set-Cookie"]
            (nonce,) = NONCE.findall(policy)
            nonces.add(nonce)
            assert page.count("<script") == page.count(f'<script nonce="{nonce}">') == 1
            assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
            assert cookie.startswith(f"{COOKIE}=")
            assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert len(nonces) == 2


async def sent(visitor: Visitor, request: bytes) -> int:
    """The status that bytes on a connection of their own are answered with."""
    host, port = visitor.origin.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request.replace(b"HOST", f"{host}:{port}".encode()))
    status = (await reader.readline()).split()[1]
    writer.close()
    return int(status)


async def test_what_is_no_request_leaves_the_terminal_as_it_is_and_our_mistakes_are_told(
    connection: Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = b" HTTP/1.1\r\nHost: HOST\r\n"
    async with visiting(connection, "no-run") as visitor:
        for request in (
            b"GET /" + b"a" * 9000 + end,
            b"GET *" + end,
            b"GET /a\x01b/" + end,
            b"GET /k/" + end + b"Content-Encoding: br\r\nContent-Length: 3\r\n",
        ):
            assert await sent(visitor, request + b"\r\nabc") == 400
        told = [each for each in caplog.records if each.levelno >= logging.WARNING]
        assert told == []

        async def mistaken(self: LivePage) -> None:
            raise RuntimeError("a mistake of ours")

        monkeypatch.setattr(LivePage, "look", mistaken)
        async with visitor.session.get(visitor.address) as answer:
            assert answer.status == 500
        assert "a mistake of ours" in caplog.text


FORM = "application/x-www-form-urlencoded"


async def test_a_body_that_is_no_form_is_refused_in_a_sentence(
    connection: Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_parts = b"--x\r\nContent-Disposition: form-data\r\n\r\nabc\r\n--x--\r\n"
    monkeypatch.setattr("holdfast.cli.live.guard.Guard.foreign", lambda *_: "")
    async with visiting(connection, "no-run") as visitor:
        own = {"Origin": visitor.origin}
        for kind, body, more in (
            ("multipart/form-data", b"abc", {}),
            ("multipart/form-data; boundary=x", b"abc", {}),
            ("multipart/form-data; boundary=x", in_parts, {}),
            (f"{FORM}; charset=nope", b"a=b", {}),
            (f"{FORM}; charset=rot13", b"a=b", {}),
            (FORM, b"a=\xff", {}),
            (FORM, b"rubbish", {"Content-Encoding": "gzip"}),
        ):
            headers = {**own, "Content-Type": kind, **more}
            async with visitor.session.post(
                f"{visitor.address}order", data=body, headers=headers
            ) as answer:
                said = (answer.status, await answer.text())
            assert said == (400, "this is not a form; send it from the page itself"), kind
        assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_no_two_servers_have_a_secret_in_common() -> None:
    one, other = Guard(1), Guard(1)
    secrets = [one.key, one.token, one.cookie, other.key, other.token, other.cookie]
    assert len(set(secrets)) == 6 and min(map(len, secrets)) >= 32


@pytest.mark.parametrize(
    ("command", "given", "said"),
    [
        ("eject", {}, "is not an order of this page"),
        ("edit", {}, "is not an order of this page"),
        ("approve", {"call": "-1"}, "is not a number of a call"),
        ("approve", {"call": "١"}, "is not a number of a call"),
        ("answer", {"subtask": "t1", "text": " "}, "the answer is empty"),
        ("supply", {"subtask": "t1", "text": " "}, "the finding is empty"),
        ("retry", {"subtask": "t1", "rows": " "}, "no row is named; write the ids of items"),
        ("supply", {"subtask": "t1", "rows": "a", "value": "x"}, 'write JSON, a text as "text"'),
        ("raise_cap", {"dollars": "much"}, "is not an amount of dollars"),
        ("raise_cap", {"dollars": "NaN"}, "is not an amount of dollars"),
        ("raise_cap", {"dollars": "1e999"}, "is not an amount of dollars"),
        ("raise_cap", {"dollars": "1e3"}, "is not an amount of dollars"),
        ("raise_cap", {"dollars": "1_0"}, "is not an amount of dollars"),
        ("raise_cap", {"dollars": "٣"}, "is not an amount of dollars"),
        ("raise_cap", {"dollars": "1.2.3"}, "is not an amount of dollars"),
        ("raise_cap", {"dollars": "."}, "is not an amount of dollars"),
        ("raise_cap", {"dollars": "0"}, "is not an amount of dollars"),
        ("raise_cap", {"dollars": "-1"}, "is not an amount of dollars"),
        ("raise_cap", {"dollars": "1000001"}, "is not an amount of dollars"),
    ],
)
def test_what_is_no_order_is_refused_in_words(
    command: str, given: dict[str, str], said: str
) -> None:
    with pytest.raises(Refused, match=said):
        order_of(command, given, view())


def test_an_order_about_rows_names_them_as_they_stand_or_by_their_ids() -> None:
    failed = order_of("retry", {"subtask": "t1", "rows": "failed"}, view())
    assert (failed.rows, failed.which, failed.ids) == (True, "failed", ())
    some = order_of("skip", {"subtask": "t1", "rows": "a2, a4"}, view())
    assert (some.subtask_id, some.rows, some.ids) == ("t1", True, ("a2", "a4"))
    given = {"subtask": "t1", "rows": "a2", "value": '{"kind": "money"}'}
    one = order_of("supply", given, view())
    assert (one.rows, one.ids, one.value) == (True, ("a2",), {"kind": "money"})


@pytest.mark.parametrize("typed", ["2.5", " $2.50 ", "2.500000", "02.5"])
def test_an_amount_is_plain_digits_with_one_point(typed: str) -> None:
    limits = order_of("raise_cap", {"dollars": typed}, view()).limits
    assert limits is not None and str(limits.dollars) == "2.500000"


def test_a_raised_cap_leaves_the_other_caps_as_they_are() -> None:
    limits = order_of("raise_cap", {"dollars": "$5"}, view(tokens_cap=7)).limits
    assert limits is not None
    assert (str(limits.dollars), limits.model_calls, limits.tokens) == ("5.000000", 60, 7)


async def test_a_plan_that_waits_is_shown_with_its_price_and_what_the_person_is_asked_for(
    runs: Runs, connection: Connection
) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        page = await visitor.page()
        assert "? the plan waits for approval" in page.partition("</header>")[0]
        assert re.search(
            r"Expected: \$0\.\d+ \(\$[\d.]+ to (\$[\d.]+\), never above|the cap of) \$2\.00"
            r" · about [^<]+ of work",
            page,
        )
        assert "Sent to the models: the goal" in page


async def test_a_plan_that_waits_is_shown_as_a_terminal_shows_it(
    runs: Runs, connection: Connection
) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        page = await visitor.page()
        look = await Reader(connection, handle.id).look()
        assert look.view is not None and look.view.preview is not None
        preview = look.view.preview
        terminal = drawn(plan_preview(preview, look.view.dollars_cap, width=160), 160)
        text = unescape(re.sub(r"<[^>]+>", "\n", page.partition('id="plan"')[2]))
        told = {" ".join(each.split()) for each in text.splitlines()}
        for each in plan_table(preview, look.view.dollars_cap).lines:
            for cell in each.cells:
                assert cell in terminal and (not cell or cell in told), each
        for line in totals(preview, look.view.dollars_cap):
            assert line in told and line in terminal
        for amount in (preview.low, preview.expected, preview.high):
            assert format_price(amount) in told


async def test_nothing_but_what_is_asked_stands_before_the_plan_and_how_far_it_is(
    runs: Runs, connection: Connection
) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        page = await visitor.page()
        before = page.partition('id="plan"')[0]
        assert "There is no answer" not in page
        asked, _, other = before.partition("Tell the run: pause")
        assert re.findall(r'name="command"[^>]*value="(\w+)"', asked) == [
            "approve",
            "reject",
            "price",
            "edit",
        ]
        assert "<details" in asked.rpartition("<summary>")[0][-40:]
        assert re.findall(r'name="command"[^>]*value="(\w+)"', other) == [
            "pause",
            "skip",
            "raise_cap",
        ]


def working() -> Pictured:
    run = shown(6)
    rows = tuple(row(id, status="running") for id in run.subtasks)
    open_one = run.report.model_copy(update={"answer": "", "findings": ()})
    return replace(run, report=open_one, view=view(*rows), over=False)


def test_a_run_that_asks_nothing_shows_how_far_it_is_and_its_forms_behind_one_fold() -> None:
    page = as_html(working(), Live(token="t", nonce="n"))
    before, _, rest = page.partition('id="plan"')
    inside = before.partition('<section class="quiet" id="steering"')[2]
    assert re.fullmatch(
        r'[^>]*><details class="tell"><summary>Tell the run: [^<]+</summary>'
        r"(?:<form.*?</form>)+</details></section><section[^>]*",
        inside,
        re.DOTALL,
    )
    assert 'id="answer"' not in page and 'id="missing"' in rest and 'id="notes"' in rest


async def test_a_plan_is_changed_on_the_page_by_the_same_rules_as_in_a_terminal(
    runs: Runs, connection: Connection
) -> None:
    async with waiting(runs) as handle, visiting(connection, handle.id) as visitor:
        page = await visitor.page()
        own = {"Origin": visitor.origin}

        async def sent_as(command: str, plan: str) -> str:
            _, page = await visitor.order(own, command=command, token=visitor.token, plan=plan)
            return unescape(page)

        (area,) = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
        text = unescape(area)
        assert "the plan is unchanged; nothing was sent" in await sent_as("edit", text)
        wrong = text.replace("role: analyst", "role: nobody")
        page = await sent_as("edit", wrong)
        assert "Not done: </strong>the plan: " in page and "nobody" in page
        assert "role: nobody" in page, "what was typed is still there to be corrected"
        assert "Not done: " in await sent_as("edit", "[" * 500)
        assert "Not done: " in await sent_as("edit", "<textarea>")
        better = text.replace("tier: null", "tier: haiku", 1).replace("\n", "\r\n")
        page = await sent_as("price", better)
        assert "Not sent yet. Before the change: $" in page and "Expected: $" in page
        assert "The plan waits for approval" in page and "tier: haiku" in page
        assert "The plan waits for approval" not in await sent_as("edit", better)
        report = await handle.result()
        assert report.plan is not None
        assert [each.tier for each in report.plan.subtasks] == ["haiku", None]
        assert "no plan waits for approval" in await sent_as("edit", better)
