"""What a browser makes of the page: it shows it, at every width, and does nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from browser import CHROMIUM, WITHOUT, Tab, tab
from orchestrator.views.html.page import as_html
from orchestrator.views.html.pictured import Pictured
from paged import HARM, WORD, reviewed, shown

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT),
    pytest.mark.xdist_group("browser"),
]
RUNS = {
    "6 subtasks": shown(6),
    "30 subtasks": shown(30),
    "a review": reviewed(),
    "hostile text": shown(6, HARM),
    "a hostile review": reviewed(HARM),
    "a word without end": shown(2, WORD, answer=WORD),
}


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Tab]:
    async with tab(tmp_path / "profile") as opened:
        yield opened


def written(run: Pictured, folder: Path) -> str:
    page = folder / "page.html"
    page.write_text(as_html(run), encoding="utf-8")
    return page.as_uri()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", RUNS)
async def test_the_page_fits_and_runs_and_loads_nothing(
    name: str, width: int, browser: Tab, tmp_path: Path
) -> None:
    address = written(RUNS[name], tmp_path)
    await browser.open(address, width=width)
    wide = await browser.value("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{wide} pixels do not fit"
    assert await browser.value("document.querySelectorAll('script, img, iframe').length") == 0
    assert await browser.value("getComputedStyle(document.querySelector('.card')).borderRadius")
    assert browser.requests == [address]
    assert browser.dialogs == [] and browser.refused == []


async def test_the_page_is_light_or_dark_as_the_reader_likes_it(
    browser: Tab, tmp_path: Path
) -> None:
    address = written(RUNS["6 subtasks"], tmp_path)
    found = []
    for dark in (False, True):
        await browser.open(address, dark=dark)
        found.append(await browser.value("getComputedStyle(document.body).backgroundColor"))
    assert found == ["rgb(246, 247, 249)", "rgb(16, 19, 24)"]


async def test_remarks_are_filtered_without_a_script(browser: Tab, tmp_path: Path) -> None:
    await browser.open(written(RUNS["a review"], tmp_path))
    seen = "[...document.querySelectorAll('.remark')].filter(each => each.offsetParent).length"
    files = "[...document.querySelectorAll('.file')].filter(each => each.offsetParent).length"
    assert await browser.value(seen) == 3
    await browser.value("document.querySelector('label[for=k-info]').click()")
    assert (await browser.value(seen), await browser.value(files)) == (1, 1)
    await browser.value("document.querySelector('label[for=l-0]').click()")
    assert await browser.value(seen) == 0
    await browser.value("document.querySelector('label[for=k-info]').click()")
    assert await browser.value(seen) == 2


async def test_a_citation_leads_to_its_footnote_and_that_to_its_finding(
    browser: Tab, tmp_path: Path
) -> None:
    await browser.open(written(RUNS["6 subtasks"], tmp_path))
    await browser.value("document.querySelector('#answer .cite').click()")
    assert "notes.md" in await browser.value("document.querySelector(':target').textContent")
    await browser.value("document.querySelector(':target .ref').click()")
    assert await browser.value("document.querySelector(':target h3 code').textContent") == "t1"


async def test_an_injected_script_would_be_refused(browser: Tab, tmp_path: Path) -> None:
    """The policy holds by itself, were the escaping ever to fail."""
    page = tmp_path / "page.html"
    bad = "<script>document.title = 'owned'</script><img src=http://127.0.0.1:9/x.png></main>"
    page.write_text(as_html(RUNS["6 subtasks"]).replace("</main>", bad), encoding="utf-8")
    await browser.open(page.as_uri())
    assert await browser.value("document.title") != "owned"
    assert len(browser.refused) >= 2
