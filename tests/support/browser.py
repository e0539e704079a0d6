"""A headless Chromium, spoken to by its own protocol: what a page really looks like and does."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
WITHOUT = "there is no chromium on PATH: what a browser makes of a page is not tested here"
_ADDRESS = re.compile(rb"DevTools listening on ws://([^/\s]+)")


@dataclass
class Tab:
    """One open page."""

    socket: aiohttp.ClientWebSocketResponse
    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """What the page's policy kept from happening."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def call(self, method: str, **given: object) -> dict[str, Any]:
        """Ask, and wait for the answer; what happens meanwhile is noted."""
        number = next(self._numbers)
        await self.socket.send_json({"id": number, "method": method, "params": given})
        while True:
            said = json.loads((await self.socket.receive(timeout=60)).data)
            self._note(said)
            if said.get("id") == number:
                assert "error" not in said, said
                return dict(said["result"])

    def _note(self, said: dict[str, Any]) -> None:
        given = said.get("params", {})
        match said.get("method"):
            case "Page.javascriptDialogOpening":
                self.dialogs.append(given["message"])
            case "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"])
            case "Log.entryAdded" if "Content Security Policy" in given["entry"]["text"]:
                self.refused.append(given["entry"]["text"])

    async def open(self, address: str, *, width: int = 1280, dark: bool = False) -> None:
        """Show a page, at this width, until it has loaded."""
        for domain in ("Page", "Network", "Log", "Runtime"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
        await self.call("Page.navigate", url=address)
        await self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    async def until(self, condition: str) -> None:
        """Wait until something is so, on whatever page the tab has come to."""
        async with asyncio.timeout(60):
            while True:
                # While a page goes and another comes, there is nobody to ask.
                with contextlib.suppress(AssertionError):
                    if await self.value(f"Boolean({condition})"):
                        return
                await asyncio.sleep(0.05)

    async def value(self, expression: str) -> Any:
        """What an expression is in the page."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def picture(self, path: Path) -> None:
        """What is seen, as a file."""
        shot = await self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))


def _started(options: Sequence[str], profile: Path) -> subprocess.Popen[bytes]:
    assert CHROMIUM is not None, WITHOUT
    return subprocess.Popen(
        [CHROMIUM, *options, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@asynccontextmanager
async def tab(profile: Path) -> AsyncIterator[Tab]:
    """A tab in a browser of its own."""
    with browsing(profile) as host:
        async with tab_of(host) as opened:
            yield opened


@asynccontextmanager
async def tab_of(host: str) -> AsyncIterator[Tab]:
    """A new tab of a browser that is there, closed at the end."""
    async with aiohttp.ClientSession() as session:
        async with session.put(f"http://{host}/json/new?about:blank") as made:
            target = await made.json()
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            yield Tab(socket)
        async with session.get(f"http://{host}/json/close/{target['id']}") as closed:
            await closed.read()


@contextlib.contextmanager
def browsing(profile: Path) -> Iterator[str]:
    """A browser; where it is spoken to."""
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")
    process = _started(options, profile)
    assert process.stderr is not None
    try:
        found = next(m for line in process.stderr if (m := _ADDRESS.search(line)))
        yield found[1].decode()
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()
