"""The page of a run: what stands in it, in which order, and that what others wrote stays text."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import html5lib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn import START
from holdfast.calls import KINDS
from holdfast.calls.prove import ProveMaterial
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Draft, PinnedInput, Remark, ReviewData, Subtask
from holdfast.rendering.blocks import Paragraph
from holdfast.rendering.html import exchanges
from holdfast.rendering.html.layout import HEIGHT, WIDTH, layout
from holdfast.rendering.html.page import as_html, policy
from holdfast.rendering.html.pictured import Pictured
from holdfast.rendering.html.plan import folded, footed
from holdfast.rendering.html.prose import cited, prose
from holdfast.rendering.html.style import STYLE
from holdfast.rendering.html.turns import turns
from holdfast.rendering.report import CHAPTERS
from holdfast.rendering.verdict import judge
from holdfast.tracing.steps import TraceStep
from paged import HARM, HISTORIES, WORD, recorded, reviewed, shown, subtasks

pytestmark = pytest.mark.anyio
TAG = re.compile(r"<[a-z][^>]*>", re.IGNORECASE)
LIVE = re.compile(r"""(?i)<(script|img|iframe|object|embed|base|form)\b|\son\w+\s*=\s*["']""")
HREF = re.compile(r'href="([^"]*)"')
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def valid(page: str) -> str:
    """The page, if it is HTML to the letter; ParseError where it is not."""
    html5lib.HTMLParser(strict=True).parse(page)
    return page


def test_a_verification_is_shown_as_its_history_has_it_without_the_code() -> None:
    remark = Remark(severity="critical", file="a.py", line=3, message="A shell", confidence=90)
    pinned = PinnedInput(name="repo", kind="repository", size=1, digest="0")
    proving = exchanges._turn(KINDS["prove"], ProveMaterial(repository=pinned, remark=remark))
    assert remark.message in proving
    subtask = Subtask(id="verify-1", title="", role="verifier", instruction="Verify.")
    told = exchanges._turn(KINDS["work"], WorkMaterial(subtask=subtask, remarks=(remark,)))
    assert "A shell" in told and "a.py line 3" in told


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_every_recorded_run_has_a_valid_page_with_all_its_steps(path: Path) -> None:
    run = await recorded(path)
    page = valid(as_html(run))
    asked = [each for each in run.steps if each.kind not in ("prepare", "reach")]
    assert asked
    for step in asked:
        assert step.id in page, f"{step.id} is not on the page"
    for finding in run.report.findings:
        assert f'id="{run.anchors[finding.subtask_id]}"' in page


def test_of_agents_that_did_very_much_the_page_shows_the_beginning_and_says_so() -> None:
    def used(number: int) -> TraceStep:
        return TraceStep(
            session="r",
            id=f"{number}",
            kind="tool",
            name=f"tool-1-{number}",
            run="r.t1.1",
            tool=HARM,
            arguments=HARM,
            why=HARM,
            by=HARM,
            status="error",
            started=START,
        )

    busy = tuple(used(number) for number in range(1_000))
    run = replace(shown(2), turns={f"run-1.t1.{number}": busy for number in range(100)})
    page = str(turns(run, "run-1.t1.0"))
    assert page.count('<li class="tool">') == 20
    assert "980 more; all of them: " in page and "trace run-1" in page
    assert LIVE.findall(" ".join(TAG.findall(page))) == []
    assert len(page) < 20 * 3_000


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_the_steps_of_a_run_cost_together_what_the_run_cost(path: Path) -> None:
    run = await recorded(path)
    assert run.view is not None and run.report.dollars is not None
    assert sum((each.spent or Decimal(0) for each in run.steps), Decimal(0)) == run.report.dollars
    assert sum(each.calls for each in run.steps) == run.report.model_calls


async def test_what_was_not_accepted_is_shown_with_what_was_told_and_why() -> None:
    (path,) = (each for each in HISTORIES if each.stem == "a-run-with-every-repair")
    page = as_html(await recorded(path))
    assert "Not accepted: malformed: " in page
    assert "Not accepted: no data" in page
    assert "why the previous try was not accepted" in page
    assert "haiku → sonnet → opus" in page


def test_the_answer_stands_before_everything_that_led_to_it() -> None:
    page = valid(as_html(shown()))
    places = [page.index(f'id="{each}"') for each in ("answer", "missing", "plan", "money")]
    assert places == sorted(places)
    for anchor in re.findall(r'href="#([^"]+)"', page):
        assert f'id="{anchor}"' in page, f"#{anchor} leads nowhere"


def test_the_page_says_why_each_subtask_and_its_role_were_chosen() -> None:
    page = as_html(shown(3))
    for number in (1, 2, 3):
        assert page.count(f"Part {number} is asked for.") == 2, "in the plan, and by itself"


def test_a_citation_leads_to_its_footnote_and_what_is_none_does_not() -> None:
    page = as_html(shown())
    answer = page.partition('id="answer"')[2].partition("</section>")[0]
    assert '[<a class="cite" href="#source-1">t1</a>]' in answer
    assert 'href="#source-3">T3</a>]' in answer
    assert "[t99]" in answer
    note = page.partition('<li id="source-1">')[2].partition("</ul>")[0]
    assert 'href="#subtask-1">t1</a>' in note and "<li>notes.md</li>" in note
    assert 'href="https://example.org/a"' in note and 'href="#answer"' in note


@pytest.mark.parametrize("make", [shown, reviewed], ids=["a run", "a review"])
def test_what_others_wrote_is_text_wherever_it_stands(make: object) -> None:
    run = shown(6, HARM) if make is shown else reviewed(HARM)
    page = valid(as_html(run))
    body = page.replace(STYLE, "")
    assert not LIVE.search(" ".join(TAG.findall(body)))
    assert not UNSEEN.search(page)
    assert page.count("</style>") == 1 and page.count("<title>") == 1 + len(run.subtasks)
    for address in HREF.findall(body):
        assert re.match(r"#|https?://|mailto:", address), address


ENDS = "".join(
    chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)
)
NO_LETTERS = re.compile(f"[\\x00-\\x1f\\x7f-\\x9f\\ufdd0-\\ufdef{ENDS}]")
"""What a strict parser wants nowhere, and no reader sees."""


@given(st.text(max_size=300))
def test_no_text_makes_a_page_that_is_no_html_or_that_runs(text: str) -> None:
    answer = str(prose(text, {"t1": "subtask-1"}))
    html5lib.HTMLParser(strict=True).parseFragment(NO_LETTERS.sub(" ", answer))
    assert not LIVE.search(" ".join(TAG.findall(answer)))


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc",
     "//evil.example/x", "\tjavascript:alert(1)", "java\nscript:x", "&#106;avascript:alert(1)"],
)  # fmt: skip
def test_a_link_leads_to_the_web_or_nowhere(address: str) -> None:
    assert "href" not in prose(f"[a]({address}) <{address}>", {})


def test_the_id_of_a_finding_is_nobodys_link() -> None:
    said = prose("See [t1] and [t1][t1].\n\n[t1]: https://evil.example/\n", {"t1": "subtask-1"})
    assert "evil.example/&" not in said and 'href="https://evil' not in said
    assert said.count('href="#subtask-1"') == 4


def test_a_link_of_an_answer_may_lead_to_the_web() -> None:
    assert 'href="https://example.org/"' in prose("[a](https://example.org/)", {})
    assert 'href="mailto:a@example.org"' in prose("<a@example.org>", {})


def test_a_word_of_a_million_letters_costs_little() -> None:
    page = as_html(shown(2, WORD, answer=WORD))
    assert len(page) < 3_000_000


def test_the_policy_allows_our_style_and_nothing_else() -> None:
    assert STYLE.isascii(), "what is escaped for the page would not be the style that was hashed"
    assert policy() in as_html(shown()).replace("&#39;", "'")
    rules = dict(each.split(" ", 1) for each in policy().split("; "))
    assert rules["default-src"] == "'none'" and "unsafe" not in policy()
    assert "<script" not in as_html(shown()) and " style=" not in as_html(shown())


def test_each_chapter_that_is_there_can_be_jumped_to() -> None:
    page = as_html(shown())
    there = set(re.findall(r'<section class="card[^"]*" id="(\w+)"', page))
    assert {"answer", "missing", "plan", "money", "findings"} <= there <= set(CHAPTERS)
    jumps = page.partition("<nav")[2].partition("</nav>")[0]
    assert set(re.findall(r'href="#(\w+)"', jumps)) == there


def test_a_remark_stands_with_the_code_around_it_and_its_own_line_marked() -> None:
    page = as_html(reviewed())
    assert '<span class="here">▸    5  os.system(x)</span>' in page
    assert "     4  import os</span>" in page and "Others read it." in page


def test_a_review_begins_with_what_was_reviewed_and_what_to_do_first() -> None:
    data = {**reviewed().report.data, "scope": "what differs from main"}
    page = as_html(reviewed(data=data))
    top = page.partition('id="answer"')[2].partition('class="review"')[0]
    assert "Reviewed: what differs from main." in top
    assert "<strong>If you do one thing</strong>, look at <code>app.py:5:9</code>" in top


def test_the_page_of_a_review_counts_as_the_gate_does_and_in_the_plural() -> None:
    given = {"severity": "warning", "file": "a.py", "message": "m", "rule": "R", "confidence": 90}
    refuted = {"verdict": "refuted", "why": "no"}
    told = [
        given,
        {**given, **refuted},
        {**given, **refuted, "by_agent": True},
        {**given, "kind": "tests"},
    ]
    data = {**reviewed().report.data, "remarks": told}
    page = as_html(reviewed(data=data, status="complete"))
    top, _, rest = page.partition("<nav")
    said = "! 2 warnings in 1 file, 1 of them refuted by a model"
    assert f'<span class="chip s-warning verdict">{said}</span>' in top
    assert "Not counted: 1 outside production code, 1 refuted." in rest
    assert "warning (2 and 2 not counted)" in rest
    assert rest.count("not counted: in tests") == rest.count("not counted: refuted by a model") == 1
    assert rest.count("It counts all the same, as an analyser found it.") == 1
    assert "Complete · " in top and "chip s-complete" not in top, "the run's status is a fact below"


def test_a_review_without_remarks_is_green_only_where_it_is_whole() -> None:
    code = {"name": "SQL", "kind": "code", "files": 1, "percent": 9}
    looked = {"remarks": [], "looked_at": {"bugs": 4, "secrets": 7}}
    page = as_html(reviewed(data=looked, status="complete"))
    said = "No remarks in what 2 lenses looked at</span>"
    assert f'<span class="chip s-complete verdict">✓ {said}' in page
    python = {**code, "name": "Python", "lenses": ["bugs"]}
    data = {**looked, "languages": [python, code]}
    page = as_html(reviewed(data=data, status="complete"))
    assert f'<span class="chip s-escalated verdict">? {said}' in page
    assert "Nobody looked for defects in SQL (9 %)." in page.partition("<nav")[0]


def test_a_review_of_nothing_is_green_only_where_nothing_differs() -> None:
    page = as_html(reviewed(data={"remarks": []}, status="complete"))
    said = "Nothing was looked at, so nothing is known</span>"
    assert f'<span class="chip s-escalated verdict">? {said}' in page
    page = as_html(reviewed(data={"remarks": [], "nothing_differs": True}, status="complete"))
    said = "Nothing to review: no text differs from the base, line ends apart</span>"
    assert f'<span class="chip s-complete verdict">✓ {said}' in page


def test_a_remark_has_its_place_to_copy_and_its_code_as_code() -> None:
    page = as_html(reviewed())
    assert '<code class="place">app.py:5:9</code>' in page
    assert "What to do: do not <code>sleep()</code>" in page


def test_a_run_that_goes_on_says_so_and_offers_no_fork() -> None:
    run = shown()
    page = valid(as_html(Pictured(run.report, run.to_type, over=False)))
    assert "under way" in page and "fork" not in page


def test_of_time_only_what_was_measured_is_said() -> None:
    page = as_html(shown())
    assert "1 min 05 s from start to end" in page
    assert "was not measured" in page
    assert "faster" not in page and "speed" not in page


@pytest.mark.parametrize(
    ("title", "lines"),
    [
        ("Rates", ["Rates"]),
        ("Read the fee schedule of every contract", ["Read the fee schedule", "of every contract"]),
        ("Check the totals against the ledger of March",
         ["Check the totals", "against the ledger of …"]),
        ("Rechtsschutzversicherungsgesellschaften",
         ["Rechtsschutzversicherun", "gsgesellschaften"]),
        ("", []),
    ],
)  # fmt: skip
def test_a_title_takes_two_lines_of_its_box_before_it_is_cut(title: str, lines: list[str]) -> None:
    assert folded(title) == lines


@pytest.mark.parametrize(
    ("role", "below", "line"),
    [
        ("analyst", "", "analyst"),
        ("troubleshooter", "sonnet · 1.6 s", "troublesh… · sonnet · 1.6 s"),
        ("researcher", "haiku → sonnet · 5.0 s", "resea… · haiku → sonnet · …"),
    ],
)
def test_a_long_role_makes_room_for_tier_and_time(role: str, below: str, line: str) -> None:
    assert footed(role, below) == line


@pytest.mark.parametrize("count", [1, 6, 30, 200])
def test_no_two_boxes_of_a_plan_touch_and_every_arrow_goes_right(count: int) -> None:
    placed = layout(subtasks(count))
    assert len(placed.boxes) == count
    corners = list(placed.boxes.values())
    for number, (x, y) in enumerate(corners):
        assert 0 <= x <= placed.width - WIDTH and 0 <= y <= placed.height - HEIGHT
        for left, top in corners[:number]:
            assert abs(left - x) >= WIDTH or abs(top - y) >= HEIGHT
    for points in placed.arrows.values():
        assert all(one[0] <= other[0] for one, other in pairwise(points))


def test_a_line_of_ours_cites_too() -> None:
    assert cited("needs [t1], <b>", {"t1": "subtask-1"}) == (
        'needs [<a class="cite" href="#subtask-1">t1</a>], &lt;b&gt;'
    )


@pytest.mark.parametrize(
    ("sure", "said"), [(85, "complete, confidence 85 of 100"), (None, "complete")]
)
def test_the_page_says_how_sure_an_agent_is_only_where_it_said_so(
    sure: int | None, said: str
) -> None:
    (first, *_) = exchanges._value(Draft(content="It is 42.", confidence=sure))
    assert first == Paragraph(said)


def test_a_review_whose_remarks_a_baseline_all_hides_says_so_in_its_verdict() -> None:
    review = ReviewData(looked_at={"bugs": 7}, hidden={"known": 5})
    assert judge(review).said.endswith(", 5 known by a baseline")
