"""What CONTRIBUTING says one may add, one of each: which files get which lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Addition:
    """One of a kind. `row` is what its row in CONTRIBUTING says one adds."""

    row: str
    shown_by: str
    """The function of `added.py` that shows that it works."""
    places: int
    """How many places are written by hand: a file, or a playbook's folder."""
    new: Mapping[str, str] = field(default_factory=dict)
    """File -> its text."""
    more: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """File -> pairs of a text that stands in it once, and what comes before that."""
    printed: str = ""
    """The file that a command prints."""


ROLE = Addition(
    "a role",
    "test_a_role_can_be_planned",
    1,
    new={
        "roles/clerk.md": """\
---
name: clerk
description: Sorts papers.
model: haiku
---
You sort papers by their dates.
"""
    },
)
PLAYBOOK = Addition(
    "a playbook",
    "test_a_playbook_plans_its_role_over_its_input",
    1,
    new={
        "playbooks/tender/playbook.yaml": """\
name: tender
description: Reads an offer.
inputs:
  offer: {kind: text, required: true}
plan:
  goal: Say what the offer costs
  subtasks:
    - id: price
      title: Price
      instruction: Name the price in the input offer, and its currency
      role: buyer
      inputs: [offer]
""",
        "playbooks/tender/roles/buyer.md": """\
---
name: buyer
description: Reads offers.
model: haiku
---
You read offers.
""",
    },
)
ANALYSER = Addition(
    "an analyser",
    "test_an_analyser_is_a_lens_of_the_review_and_finds",
    2,
    new={
        "activities/review/analysers/promises.py": """\
from functools import partial

from holdfast.activities.review.analysing import ruff
from holdfast.activities.review.analysing.lens import Analyser, Grade

GRADES = {"FIX002": Grade("info", 85)}
ANALYSER = Analyser(
    name="promises",
    looks_for="Python files",
    grades=GRADES,
    languages=("Python",),
    command=ruff.command(GRADES),
    parse=partial(ruff.parse, syntax=False),
    marker=ruff.MARKER,
)
""",
        "playbooks/code-review/roles/promises.md": """\
---
name: promises
description: What was left to do.
model: none
tools: [promises]
title: Find what was left to do
---

Looks for comments that put something off.
""",
    },
)
CHECK = Addition(
    "a check that a plan may ask for",
    "test_a_check_is_offered_accepted_and_judged",
    2,
    more={
        "holdfast/contracts/base.py": (('    "number_between", ', '    "begins_with",\n'),),
        "holdfast/plans/checks.py": (
            (
                "@dataclass(frozen=True)\nclass _Kind:",
                "def _begins_with(argument: str, draft: Draft) -> str:\n"
                "    found = draft.content.startswith(argument)\n"
                '    return "" if found else f"it does not begin with {argument!r}"\n\n\n',
            ),
            (
                '    "number_between": _Kind(',
                '    "begins_with": _Kind(_begins_with, "text"),\n',
            ),
        ),
    },
    printed="tests/prompts/plan.txt",
)
CALL = Addition(
    "a model call",
    "test_a_call_is_known_asked_for_and_taken",
    5,
    new={
        "prompts/admirer.md": "You say in `praise` what is good about an answer.\n",
        "holdfast/calls/praise.py": """\
from holdfast.calls.kind import Answer, ModelKind
from holdfast.contracts import Contract, Problem, Reply
from holdfast.calls.envelopes import envelope
from holdfast.contracts.policies import model_policy


class PraiseAnswer(Answer):
    praise: str


class Praise(Contract):
    text: str


class PraiseMaterial(Contract):
    answer: str
    broken: Problem | None = None


def praise_prompt(material: PraiseMaterial) -> str:
    return envelope("the answer", material.answer)


PRAISE: ModelKind[PraiseMaterial, PraiseAnswer, Praise] = ModelKind(
    name="praise",
    reply=Reply[Praise],
    policy=model_policy("haiku", 2_000, "low"),
    answer=PraiseAnswer,
    value=lambda answer, _: Praise(text=answer.praise),
    prompt="admirer",
    turn=praise_prompt,
    words="what is good about the answer",
)
""",
    },
    more={
        "holdfast/calls/__init__.py": (
            (
                "from holdfast.calls.reach import",
                "from holdfast.calls.praise import PRAISE\n",
            ),
            ("    GRADE,\n)", "    PRAISE,\n"),
        ),
        "activities/agents.py": (
            (
                "from holdfast.calls.reach import",
                "from holdfast.calls.praise import PRAISE, Praise, PraiseMaterial\n",
            ),
            (
                "    @activity.defn\n    async def reach(",
                "    @activity.defn\n"
                "    async def praise("
                "self, call: Call, material: PraiseMaterial) -> Reply[Praise]:\n"
                "        return await self._ask(call, material, PRAISE)\n\n",
            ),
        ),
        "holdfast/calling/finishing.py": (
            (
                "from holdfast.calls.synthesize import",
                "from holdfast.calls.praise import PRAISE, Praise, PraiseMaterial\n",
            ),
            (
                "READINGS: Mapping[str, Reading] = {",
                "def _to_praise(state: State, broken: Problem | None) -> PraiseMaterial:\n"
                "    written = state.finishing.synthesis\n"
                "    answer = written.answer if written else ''\n"
                "    return PraiseMaterial(answer=answer, broken=broken)\n\n\n"
                "def _praised(state: State, praise: Praise) -> State:\n"
                "    return replace(state, notes=(*state.notes, praise.text))\n\n\n",
            ),
            (
                '        Reading(CRITIQUE, "a critic',
                '        Reading(PRAISE, "somebody admires the answer", _to_praise, _praised),\n',
            ),
        ),
    },
)
ORDER = Addition(
    "a steering order",
    "test_an_order_is_refused_and_followed_and_has_its_command",
    2,
    more={
        "holdfast/rules/steering.py": (
            (
                "COMMANDS: Mapping[str, Command] = {",
                "def _empty(_: State, order: Order) -> str:\n"
                '    return "" if order.text else "the remark is empty"\n\n\n'
                "def _remark(state: State, order: Order) -> State:\n"
                "    return replace(state, notes=(*state.notes, order.text))\n\n\n",
            ),
            (
                '    "raise_cap": Command(',
                '    "remark": Command(_empty, _remark, "it is noted", "remarked"),\n',
            ),
        ),
        "holdfast/cli/commands/steering/rows.py": (
            (
                "FILE_BYTES = 1024",
                "def remark(\n"
                '    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to note.")],\n'
                ") -> Order:\n"
                '    """Note something in the report of a run."""\n'
                "    return Order(text=text)\n\n\n",
            ),
            ("    approve, decline, reject, answer,", "    remark,\n"),
        ),
    },
)
SETTING = Addition(
    "a setting",
    "test_a_setting_is_read_and_reaches_the_worker",
    1,
    more={
        "holdfast/deployment/settings.py": (
            (
                "    build_id: str =",
                '    motto: str = Field("", description="What is said first.")\n',
            ),
            # Whatever reads it: what nobody reads is refused by a test.
            (
                "def as_text(value: object)",
                "def motto_of(settings: Settings) -> str:\n    return settings.motto\n\n\n",
            ),
        ),
    },
    printed=".env.example",
)
TOOL = Addition(
    "a tool of agents",
    "test_a_tool_is_on_the_shelf_and_a_role_may_name_it",
    1,
    new={
        "activities/tools/count_letters.py": """\
\"\"\"Counting letters, which models cannot.\"\"\"

from __future__ import annotations

from holdfast.activities.toolset.tool import Here, tool


@tool(seconds=5)
async def count_letters(here: Here, name: str) -> str:
    \"\"\"Count the letters of a text input. Give the input's name.\"\"\"
    return f"{len((await here.content(name)).decode())} letters"
"""
    },
)
ADDITIONS = (ROLE, PLAYBOOK, ANALYSER, CHECK, CALL, ORDER, SETTING, TOOL)
