"""What a browser makes of the page: it shows it, at every width, and does nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from browser import CHROMIUM, WITHOUT, Tab, browsing, tab_of
from holdfast.contracts import Plan
from holdfast.rendering.html.page import as_html
from holdfast.rendering.html.pictured import Pictured
from paged import HARM, WORD, reviewed, shown, subtasks

pytestmark = [
    pytest.mark.long,
    pytest.mark.anyio,
    pytest.mark.skipif(CHROMIUM is None, reason=WITHOUT),
]
RUNS = {
    "6 subtasks": shown(6),
    "30 subtasks": shown(30),
    "a review": reviewed(),
    "hostile text": shown(6, HARM),
    "a hostile review": reviewed(HARM),
    "a word without end": shown(2, WORD, answer=WORD),
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with browsing(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
async def browser(host: str) -> AsyncIterator[Tab]:
    async with tab_of(host) as opened:
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


def chains(columns: int) -> Pictured:
    """A run of 30 subtasks, in so many columns."""
    run, last = shown(30), 30 // columns
    planned = tuple(
        each.model_copy(update={"depends_on": (f"t{n - last}",) if n > last else ()})
        for n, each in enumerate(subtasks(30), 1)
    )
    plan = Plan(goal="g", subtasks=planned)
    return replace(run, report=run.report.model_copy(update={"plan": plan}))


@pytest.mark.parametrize("width", [390, 1024, 1280, 1600])
@pytest.mark.parametrize("columns", [1, 3, 5, 6, 30])
async def test_a_graph_takes_the_window_and_says_where_it_is_wider(
    columns: int, width: int, browser: Tab, tmp_path: Path
) -> None:
    await browser.open(written(chains(columns), tmp_path), width=width)
    graph = "document.querySelector('.graph')"
    wider = await browser.value(f"{graph}.scrollWidth > {graph}.clientWidth")
    said = await browser.value("document.querySelector('.too-wide').offsetParent !== null")
    assert said is wider
    beside = await browser.value(f"innerWidth - {graph}.clientWidth")
    assert not wider or beside < 90, f"{beside} pixels are empty beside a graph that is cut"
    assert wider or columns < 6 or width > 1280
    assert not wider or columns > 5 or width < 1280


async def test_no_text_of_a_plan_stands_out_of_its_box(browser: Tab, tmp_path: Path) -> None:
    titles = (
        "Compare termination clauses across all vendors",
        "Rechtsschutzversicherungsgesellschaften",
        "Check the totals",
    )
    run = shown(9)
    planned = tuple(
        each.model_copy(update={"title": titles[n % 3], "role": "document-reader"})
        for n, each in enumerate(subtasks(9))
    )
    plan = Plan(goal="g", subtasks=planned)
    run = replace(run, report=run.report.model_copy(update={"plan": plan}))
    await browser.open(written(run, tmp_path))
    found = await browser.value("""[...document.querySelectorAll('svg.plan a')].map(each => {
      const box = each.querySelector('rect').getBoundingClientRect();
      return [...each.querySelectorAll('text')].filter(text => {
        const { right, bottom } = text.getBoundingClientRect();
        return right > box.right || bottom > box.bottom;
      }).map(text => text.textContent);
    }).flat()""")
    assert found == []


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
    await browser.value("document.querySelector(':target .cite').click()")
    assert await browser.value("document.querySelector(':target h3 code').textContent") == "t1"


async def test_an_injected_script_would_be_refused(browser: Tab, tmp_path: Path) -> None:
    """The policy holds by itself, were the escaping ever to fail."""
    page = tmp_path / "page.html"
    bad = "<script>document.title = 'owned'</script><img src=http://127.0.0.1:9/x.png></main>"
    page.write_text(as_html(RUNS["6 subtasks"]).replace("</main>", bad), encoding="utf-8")
    await browser.open(page.as_uri())
    assert await browser.value("document.title") != "owned"
    assert len(browser.refused) >= 2
