"""A map: one instruction over many items. What its workflow is given and reports, and what its
activities work from and bring.

Items and what came of them stay in the store, a blob a chunk, as lines of JSON; histories carry
digests and counts alone. An item is a line of an items blob (`Item`), and what came of it a line of
an outcome blob (`Outcome`); blobs are never changed, a later outcome of an item counts.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from decimal import Decimal
from typing import Literal

from pydantic import Field, JsonValue

from holdfast.calls.turn import Slice
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import (
    Bill,
    Call,
    Capabilities,
    Contract,
    MadeFile,
    ModelCard,
    Money,
    PinnedInput,
    ProjectName,
    RoleCard,
    Tier,
    Unreached,
)
from holdfast.contracts.orders import RowsWhich
from holdfast.contracts.plans import Lane

RowStatus = Literal["complete", "failed", "skipped", "supplied", "open"]
"""`open`: its answer was no result, and it was not asked again yet."""
EMPTY = "empty"
"""How counts of values name that there is none."""
Caching = Literal["", "5m", "1h"]
"""How long the endpoint is to keep what all rows begin with; empty: it need not."""


class Item(Contract):
    """One line of an items blob."""

    n: int
    """Place among all items, from 0: its name between activities."""
    id: str
    place: str
    """Where it stands, for people: `line 17`, `row 4 of sheet Q3`, `page 12`, a path."""
    fields: dict[str, JsonValue] = Field(default_factory=dict)
    """The fields that its model is shown; a file's or page's only one is `text`."""
    beside: dict[str, JsonValue] = Field(default_factory=dict)
    """Its short other fields, which stand in the table of its rows alone."""
    long: tuple[str, ...] = ()
    """Its other fields that are not short."""
    broken: str = ""
    """Why it cannot be asked: such an item fails by itself, and costs nothing."""
    same_as: int | None = None
    """The earlier item with equal fields, whose outcome is its own too."""


class Outcome(Contract):
    """One line of an outcome blob: what became of one item."""

    n: int
    id: str
    status: RowStatus
    result: JsonValue = None
    """The result in the form of the subtask; a string where it has none; null: there is none."""
    why: str = ""
    """Why there is no result, or who supplied or skipped it and why."""
    raw: str = ""
    """The answer as it came, where it is to be mended."""
    checked: bool = False
    """True if the answer had its form and a check failed it: the item may be what is wrong."""
    tier: Tier = "haiku"
    tries: int = 1
    """Answers so far, this one included."""
    dollars: Money | None = Decimal(0)
    """Of these answers."""
    tokens: int = 0
    void: bool = False
    """True: it takes back the one before: the item is open, or has that of the one it repeats."""


class Chunk(Contract):
    """Items that are asked together."""

    digest: str
    """Blob of its items, a JSON line each, sorted by place."""
    first: int
    """The place of its first item."""
    items: int
    asked: int
    """Items that cost a call: without broken ones and repetitions."""
    bytes: int
    """UTF-8 bytes of all that its asked items show a model, together."""
    longest: int
    """Bytes of the longest of them."""


class Items(Contract):
    """What `open_map` found in the input."""

    chunks: tuple[Chunk, ...]
    fields: tuple[str, ...]
    count: int
    broken: int = 0
    """Items that cannot be asked, and have no result from an earlier run."""
    repeated: int = 0
    """Items equal to an earlier one, which are not asked again."""
    samples: tuple[str, ...] = ()
    """The first few broken items, each with its place and why."""
    reused: int = 0
    """Items whose outcome was taken over from an earlier run."""
    outcomes: tuple[str, ...] = ()
    """Outcome blobs taken over from an earlier run."""
    kept: tuple[int, ...] = ()
    """Places of the items whose outcome was taken over: they are not asked."""
    text: str = ""
    """The only text that is left, where texts are merged; empty: there are several, or none."""
    unmerged: str = ""
    """Texts of groups that nobody merged, under their ids."""
    unused: str = ""
    """Why nothing of an earlier run was taken over; empty: something was, or nothing was to be."""


class OpenMaterial(Contract):
    """Material of `open_map`, which costs nothing."""

    work: WorkMaterial
    """`work.subtask.map` says what to read; `work.inputs` has the input."""
    chunk_items: int
    chunk_bytes: int
    reuse: str = ""
    """Blob of the `MapTable` of an earlier map, whose complete rows over equal items are kept."""
    merging: tuple[str, ...] = ()
    """Outcome blobs whose texts are to be merged, oldest first: each item is a group of them in the
    order of their places, at most `policies.MERGED_TOKENS` together, as its only field `text`, each
    under the id of its item or the first and the last of several. One text alone comes back as
    `Items.text`. Empty: the input is read.
    """
    named: tuple[Chunk, ...] = ()
    """The items of these texts, whose short fields stand beside their ids as far as models are
    shown them; empty: not any more.
    """
    groups: tuple[Chunk, ...] = ()
    """The groups of the level before, whose outcomes these are; empty: there is none."""
    unmerged_bytes: int = 0
    """Bytes of the texts of groups that nobody merged that are kept as they were."""

    @property
    def of_texts(self) -> bool:
        """True if texts are grouped, and no input is read."""
        return bool(self.merging or self.groups)


ASKED_OTHERWISE = (
    "the earlier run asked something else: its instruction, schema, role, tier, checks or other"
    " inputs differ"
)
NONE_EQUAL = "no item is equal to one of the earlier run that was complete"
"""Why nothing of an earlier run is taken over."""


def asked_of(work: WorkMaterial) -> str:
    """Return the fingerprint of what a map asks of each item."""
    subtask, spec = work.subtask, work.subtask.map
    assert spec is not None, "only maps have one"
    said = {
        "instruction": subtask.instruction,
        "criteria": subtask.acceptance_criteria,
        "checks": [each.model_dump() for each in subtask.checks],
        "tier": subtask.tier,
        "role": [subtask.role, work.prompt, work.composed],
        "form": spec.result or work.form,
        "inputs": sorted(
            (each.name, each.digest) for each in work.inputs if each.name != spec.over
        ),
        "found": [(each.subtask_id, each.content) for each in work.dependencies],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class Merging(Contract):
    """What is said of all texts that are merged."""

    items: int
    without: int
    """Items that have no text, because they failed or were skipped."""


class RowsMaterial(Contract):
    """Material of `ask_rows`, `submit_rows` and `collect_rows`: some items of one chunk, one answer
    each. What all rows begin with is made of `work` alone, so that it is the same for each.
    """

    call: Call
    """Tier, model, room of one answer. `ceiling` is the reservation of the whole activity."""
    work: WorkMaterial
    role: RoleCard
    chunks: tuple[Chunk, ...]
    rows: tuple[int, ...] = ()
    """Places of the items to ask, in order; empty: all of its chunks. Items that cannot be asked,
    broken or repeated ones, are passed over in silence either way.
    """
    before: tuple[str, ...] = ()
    """Outcome blobs with the answers that are to be mended, newest last; empty: first answers."""
    step: int = 0
    """Same as in `Portion`."""
    declined: bool = False
    """Same as in `Portion`."""
    mending: bool = False
    """True: the conversation goes on from the last answer; False: it is asked anew."""
    merging: Merging | None = None
    """None: items are asked, and no groups of their texts."""
    at_once: int = 1
    """Calls that may be in flight together."""
    caching: Caching = ""
    run: str = ""
    """First execution of the run above: the name of its calls in the journal."""


class RowsBeat(Contract):
    """What `ask_rows` tells with each heartbeat: watchers read the first three, its next attempt
    the others.
    """

    done: int = 0
    """Rows with an answer."""
    failed: int = 0
    """The part of them whose answer is no result."""
    dollars: Money = Decimal(0)
    machine: int = 0
    """Where it ran, by `senders.this_machine`."""
    process: int = 0
    journal: int = 0
    """Where it marked what it sent: the `place` of its journal."""
    sent: str = ""
    """A bit for each of its rows in order that may have been sent, as a hexadecimal number, for a
    worker with another journal.
    """


class RowsDone(Contract):
    """What came of some rows. Every row of the material that can be asked is in exactly one of the
    groups.
    """

    outcomes: str = ""
    """Blob of the outcomes of all rows with an answer; empty: there is none."""
    complete: int = 0
    failed: tuple[int, ...] = ()
    """Rows with an answer that is no result, and that another answer may cure."""
    declined: tuple[int, ...] = ()
    """Rows whose model said that it cannot: a stronger one may be asked, once."""
    hopeless: int = 0
    """Rows with an answer that no other one cures: they have failed. So has one whose model says,
    of a check that failed, that the item is so.
    """
    lost: tuple[int, ...] = ()
    """Rows that were sent and whose answer never came: each counts at its own reservation."""
    left: tuple[int, ...] = ()
    """Rows that were not asked, or that surely cost nothing."""
    bill: Bill = Bill()
    """The bills of all its rows together; `calls` is their number."""
    cached: int = 0
    """Tokens that the endpoint read from its cache."""
    why: str = ""
    """Why rows are left or lost."""
    unreached: Unreached | None = None
    stopping: Literal["", "endpoint", "allowance"] = ""
    """Why every further call would fail, too."""
    finished: datetime | None = None


class Submitted(Contract):
    """A batch that the endpoint has."""

    batch: str
    """Its id at the endpoint; empty: none was made, and `why` says why."""
    suspects: tuple[str, ...] = ()
    """Batches of which one may be ours, from a worker that died before it had recorded its own:
    known only once they have ended. Nothing new was made.
    """
    rows: int = 0
    found: bool = False
    """True if an earlier attempt had made it."""
    why: str = ""
    unreached: Unreached | None = None
    stopping: Literal["", "endpoint", "allowance"] = ""
    finished: datetime | None = None


class BatchLook(Contract):
    """How one batch stands."""

    batch: str
    ended: bool = False
    lost: bool = False
    """True if the endpoint knows no such batch."""


class BatchesMaterial(Contract):
    """Material of `look_at_batches` and `cancel_batches`."""

    call: Call
    batches: tuple[str, ...]


class BatchesLooked(Contract):
    looks: tuple[BatchLook, ...] = ()
    unreached: Unreached | None = None
    finished: datetime | None = None


class CollectMaterial(Contract):
    """Material of `collect_rows`: the results of one batch that has ended."""

    rows: RowsMaterial
    batch: str
    suspects: tuple[str, ...] = ()
    """Where `batch` is empty: the batch whose results carry the ids of these rows is ours."""


class RowCounts(Contract):
    """How the rows of a map stand."""

    items: int = 0
    complete: int = 0
    failed: int = 0
    """Failed for good, broken items included."""
    broken: int = 0
    """Those of them that cannot be asked."""
    skipped: int = 0
    supplied: int = 0
    repeated: int = 0
    """Not asked, because an earlier item is equal; they count in the groups above as well."""
    reused: int = 0
    asked: int = 0
    """Calls made so far."""


class RowOrder(Contract):
    """What a person decided about rows of a map."""

    kind: Literal["retry", "supply", "skip"]
    ids: tuple[str, ...] = ()
    """Item ids; empty for `retry` and `skip`: all that stand so, by `which`."""
    which: RowsWhich = "failed"
    value: JsonValue = None
    """The result that is supplied."""
    number: int = 0
    """Number of the order in the run."""
    tier: Tier | None = None
    by: str = ""
    why: str = ""


class RowsOrdered(Contract):
    """What came of an order about rows."""

    number: int
    rows: int = 0
    """Items that it changed; 0: none, and `why` says why."""
    why: str = ""
    """What of it could not be done."""


class Unanswered(Contract):
    """Rows that have failed because no answer of theirs ever came: no outcome blob has them."""

    rows: tuple[int, ...]
    """Places of the items; broken and repeated ones among them are passed over."""
    why: str


class CloseMaterial(Contract):
    """Material of `close_map`: it puts together what stands of all rows. It costs nothing."""

    work: WorkMaterial
    items: tuple[Chunk, ...]
    outcomes: tuple[str, ...]
    """All outcome blobs, oldest first."""
    unanswered: tuple[Unanswered, ...] = ()
    """Rows that are given an outcome now, before any order is carried out."""
    waiting: tuple[int, ...] = ()
    """Places of rows whose last answer was no result, and that are still to be asked again."""
    orders: tuple[RowOrder, ...] = ()
    """Carried out now, in order, on what stands."""


class MapTable(Contract):
    """What stands of a map's rows: blobs, and what people and dependents are told of them."""

    counts: RowCounts = RowCounts()
    table: PinnedInput | None = None
    """JSON lines, an item each in its order: id, place, status, result's fields, why_failed,
    same_as, tier, tries, dollars, short fields of its own. Tools of dependents read it as an
    input of this name.
    """
    columns: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    """Those of them that are fields of the items."""
    values: dict[str, dict[str, int]] = Field(default_factory=dict)
    """How often each value stands in results, by field, for fields with few values."""
    failures: tuple[str, ...] = ()
    """Up to 20 failed rows, each with id, place and why."""
    retry: tuple[int, ...] = ()
    """Places of the items that the orders carried out now want asked again."""
    settled: tuple[int, ...] = ()
    """Places of the items that these orders have supplied or skipped."""
    had_failed: tuple[int, ...] = ()
    """Those of both that had failed before."""
    had_result: tuple[int, ...] = ()
    """Those of both that had a result before."""
    told: tuple[RowsOrdered, ...] = ()
    """What came of each of these orders."""
    items: tuple[Chunk, ...] = ()
    outcomes: tuple[str, ...] = ()
    files: tuple[MadeFile, ...] = ()
    """The table as JSON lines and as CSV, for people."""
    asked: str = ""
    """Fingerprint of what is asked of each item: rows of a map with another one are not reused."""


class Portion(Contract):
    """Rows that are still to be asked, for the same time."""

    chunks: tuple[int, ...]
    """Places of their chunks in `MapResume.chunks`."""
    rows: tuple[int, ...] = ()
    """Places of their items; empty: all of these chunks."""
    step: int = 0
    """Answers so far: the first is asked of the first model, the second mends it, the third is
    asked anew of the next stronger one, and so on.
    """
    before: tuple[str, ...] = ()
    """Outcome blobs with their last answers, newest last."""
    declined: bool = False
    """True if their model said that it cannot, and a stronger one is asked instead."""
    losses: int = 0
    """How often they were sent and no answer came."""
    idle: int = 0
    """How often in a row they came back without having been asked."""


class MapResume(Contract):
    """Where a map stands between two segments: nothing before it is asked again."""

    opened: bool = False
    chunks: tuple[Chunk, ...] = ()
    items: int = 0
    broken: int = 0
    repeated: int = 0
    reused: int = 0
    portions: tuple[Portion, ...] = ()
    """What is still to be asked, in order."""
    outcomes: tuple[str, ...] = ()
    """All outcome blobs so far, oldest first."""
    unanswered: tuple[Unanswered, ...] = ()
    """Failed rows that are in none of them yet."""
    warmed: bool = False
    complete: int = 0
    """Items with a result that were asked, supplied or skipped."""
    failed: int = 0
    """Failed for good, broken items included."""
    answers: int = 0
    """Answers so far, of whatever kind."""
    lanes: dict[str, int] = Field(default_factory=dict)
    """The same by lane."""
    tiers: dict[str, int] = Field(default_factory=dict)
    """The same by the tier that was asked."""
    cached: int = 0
    level: int = 0
    """How often its texts were merged; 0: its items themselves are asked."""
    texts: tuple[Chunk, ...] = ()
    """Groups of texts that are merged now; then `portions` are of these."""
    merges: tuple[str, ...] = ()
    """Outcome blobs of these."""
    unmerged: str = ""
    """Texts of groups that nobody merged, on all levels."""
    table: MapTable | None = None
    """Made before its texts are merged."""

    @property
    def current(self) -> tuple[Chunk, ...]:
        """The chunks of what is asked now: of its items, or of texts to merge."""
        return self.texts if self.level else self.chunks


class MapGoal(Contract):
    """The input of a map's workflow, for one segment."""

    work: WorkMaterial
    role: RoleCard
    models: tuple[ModelCard, ...]
    """By tier, the cheapest first: as far as its rows may climb, the first one is asked first."""
    slice: Slice
    lane: Lane
    """As decided above: `auto` goes by batches until `now_from`."""
    tries: int = 3
    at_once: int = 5
    seconds_left: float = 0.0
    """Working seconds of the run above that are left for it."""
    capabilities: Capabilities = Capabilities()
    first_run: str = ""
    project: ProjectName = ""
    resume: MapResume = MapResume()
    orders: tuple[RowOrder, ...] = ()
    tolerated: bool = False
    """True if a person lets it go on although more rows fail than it tolerates."""
    reuse: str = ""
    """Same as in `OpenMaterial`."""


class MapReport(Contract):
    """How a segment of a map ended."""

    outcome: Literal["done", "more", "intolerable", "unreachable", "stopped", "cut"]
    """`more`: it needs money, or the run above is paused. `intolerable`: too many rows failed."""
    why: str = ""
    table: MapTable = MapTable()
    resume: MapResume = MapResume()
    text: str = ""
    """What `reduce` merged; empty: nothing was to be merged."""
    needs: Slice | None = None
    bill: Bill = Bill()
    tokens: int = 0
    unpaid_calls: int = 0
    unreached: Unreached | None = None
    stopping: Literal["", "endpoint", "allowance"] = ""
    notes: tuple[str, ...] = ()
    cached: int = 0
    lanes: dict[str, int] = Field(default_factory=dict)
    """Rows answered, by lane."""
    finished: datetime | None = None
