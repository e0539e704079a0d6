"""Measure the plan library; see the package."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.instruments.deployment import Deployment, deployed
from bench.instruments.tables import head, row
from bench.templates import COLUMNS
from holdfast.activities.library.matching import Asked, Index, Pattern, key_of, match
from holdfast.activities.library.shelves import Shelf, Shelves
from holdfast.activities.library.template import FORM, Template, write_template
from holdfast.client.templates import save_template
from holdfast.contracts import Goal, Limits, Plan, Report, Subtask
from holdfast.intake.connection import Connection

FOLDER = Path(__file__).parent
SETS = ("tuned", "untuned")
MANY = 10_000
TRIED = 2_000
AT_ONCE = 5
SCRIPT = {"latency": [0.4, 0.8], "tokens_per_second": 80, "subtasks": 3, "plan": "parallel"}
"""About what an endpoint takes for a call."""


def read(name: str) -> Iterator[dict[str, Any]]:
    """The lines of a file of this folder."""
    yield from map(json.loads, (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines())


def template_of(fields: Mapping[str, Any]) -> Template:
    """A template that tells one agent all values."""
    told = " ".join(f"{{{name}}}" for name in fields["parameters"])
    instruction = f"Do what is asked for and state the result {told}"
    work = Subtask(id="t1", title="All", instruction=instruction, role="analyst")
    known = {name: fields[name] for name in ("goal", "parameters", "inputs")}
    plan = Plan(goal=fields["goal"], subtasks=(work,))
    return Template.model_validate({"form": FORM, "roles": {}, "plan": plan, **known})


TEMPLATES = {each["name"]: template_of(each) for each in read("templates")}


def asked(pair: Mapping[str, Any]) -> Asked:
    return Asked.of(pair["goal"], TEMPLATES[pair["template"]].inputs)


def judged(name: str) -> tuple[str, Counter[tuple[bool, str]]]:
    """One row of a set of pairs, and its counts."""
    counts: Counter[tuple[bool, str]] = Counter()
    for pair in read(name):
        found = match(Pattern.of(TEMPLATES[pair["template"]]), asked(pair))
        says = "no" if found is None else "yes" if found[1] else "asks"
        counts[pair["fits"], says] += 1
    fit = sum(count for (fits, _), count in counts.items() if fits)
    yes = counts[True, "yes"] + counts[False, "yes"]
    precision, recall = counts[True, "yes"] / yes, counts[True, "yes"] / fit
    asks = counts[True, "asks"] + counts[False, "asks"]
    shares = f"{precision:.3f}", f"{recall:.2f}"
    cells = f"{counts.total()} {name}", fit, yes, counts[False, "yes"], *shares, asks
    return row((*cells, counts[True, "asks"])), counts


def chosen() -> str:
    """Whether a goal finds its own template among all, and others none."""
    index: Index[str] = Index()
    for name, template in TEMPLATES.items():
        index.add(Pattern.of(template), name)
    pairs = [pair for name in SETS for pair in read(name)]
    wrong = 0
    for pair in pairs:
        kinds = TEMPLATES[pair["template"]].inputs.values()
        found = index.find(key_of("", "", kinds), asked(pair))
        own = pair["template"] if pair["fits"] else ""
        wrong += bool(found and found.sure and found.entry != own)
    return row((len(pairs), len(TEMPLATES), wrong))


def many(chance: random.Random) -> Iterator[tuple[str, Template]]:
    """Templates that differ in a word or two, as those of a large library do."""
    starts, ends = (
        "sal cost risk pric lead term mark plan",
        "es ing ed er ion ment age ist ful ables",
    )
    words = [f"{start}{end}" for start in starts.split() for end in ends.split()]
    every = [*TEMPLATES.values()]
    for number in range(MANY):
        template = every[number % len(every)]
        more = " ".join(chance.sample(words, 2))
        goal = f"{template.goal.rstrip('.?')} by {more}."
        yield f"t{number}", template.model_copy(update={"goal": goal})


def fast(folder: Path) -> str:
    """How fast a library of many is read and searched."""
    chance = random.Random(5)
    goals = [pair for name in SETS for pair in read(name)]
    folder.mkdir()
    texts = {name: write_template(each) for name, each in many(chance)}
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    shelves = Shelves((Shelf(folder),))
    began = time.perf_counter()
    index = shelves.index()
    loaded = time.perf_counter() - began
    index.find(key_of("", "", ()), asked(goals[0]))
    began = time.perf_counter()
    for _ in range(TRIED):
        pair = chance.choice(goals)
        kinds = TEMPLATES[pair["template"]].inputs.values()
        index.find(key_of("", "", kinds), asked(pair))
    per_second = TRIED / (time.perf_counter() - began)
    return row((f"{MANY:,}", f"{loaded:.0f}", f"{per_second:,.0f}"))


# ---------------------------------------------------------------- runs


@dataclass(frozen=True)
class Sort:
    """Goals of one kind: with values for its places."""

    goal: str
    given: Mapping[str, tuple[str, ...]]

    def goals(self, count: int) -> list[tuple[str, dict[str, str]]]:
        """So many goals, each with its values."""
        found = []
        for number in range(count):
            values = {name: each[number % len(each)] for name, each in self.given.items()}
            found.append((self.goal.format(**values), values))
        return found


CITIES = ("Lisbon", "Oslo", "Riga", "Porto", "Ghent", "Turin", "Malmö")
FIRMS = ("Acme", "Initech", "Hooli", "Umbrella", "Stark Industries", "Wayne Enterprises")
RIVALS = ("Globex", "Soylent", "Tyrell", "Cyberdyne", "Aperture")
YEARS = ("2026", "2025", "2024", "2027")
SORTS = (
    Sort("Compare {one} and {other} on price and support in {year}.",
         {"one": FIRMS, "other": RIVALS, "year": YEARS}),
    Sort("List the three main competitors of {company} in {city} and what each charges.",
         {"company": FIRMS, "city": CITIES}),
    Sort("Write a blog post of {length} words about {topic}.",
         {"length": ("800", "900", "1200", "650"), "topic": ("heat pumps", "sourdough bread",
          "wind turbines", "electric bikes", "green roofs")}),
    Sort("What would it take to move {service} from {one} to {other}?",
         {"service": ("billing", "payroll", "search"), "one": ("Oracle", "Solr", "Excel", "MySQL"),
          "other": ("Odoo", "PostgreSQL", "BigQuery", "Workday", "Snowflake")}),
    Sort("Plan a trip of {days} days to {city} for under {budget}.",
         {"days": ("5", "7", "10", "14"), "city": CITIES, "budget": ("$1,500", "$900", "$3,000")}),
)  # fmt: skip


def goal(text: str) -> Goal:
    return Goal(text=text, use_models=True, templates=True, limits=Limits(concurrency=3))


async def one(deployment: Deployment, text: str) -> tuple[str, Report, float]:
    """A run's id, its report, and its seconds."""
    began = time.monotonic()
    handle = await deployment.start(goal(text))
    report = await deployment.result(handle)
    return handle.id, report, time.monotonic() - began


async def ran(runs: int, *, kept: bool) -> str:
    """So many runs of the five kinds; with `kept`, the first of each becomes a template."""
    count = runs // len(SORTS)
    reports: list[tuple[Report, float]] = []
    with tempfile.TemporaryDirectory() as place:
        async with deployed(Path(place), SCRIPT) as deployment:
            connection = Connection(deployment.settings, deployment.target, deployment.client)
            rest: list[str] = []
            for number, sort in enumerate(SORTS):
                (text, values), *more = sort.goals(count)
                run_id, report, seconds = await one(deployment, text)
                reports.append((report, seconds))
                rest += [each for each, _ in more]
                if kept:
                    await save_template(connection, run_id, f"kind-{number}", values)
            free = asyncio.Semaphore(AT_ONCE)

            async def paced(text: str) -> None:
                async with free:
                    _, report, seconds = await one(deployment, text)
                    reports.append((report, seconds))

            await asyncio.gather(*map(paced, rest))
    planned = sum(any(share.kind == "plan" for share in report.shares) for report, _ in reports)
    assert all(report.status == "complete" for report, _ in reports)
    dollars = sum(report.dollars or 0 for report, _ in reports)
    mean = statistics.mean(seconds for _, seconds in reports)
    what = "with templates" if kept else "without"
    return row((f"{len(reports)} {what}", planned, f"${dollars}", f"{mean:.1f}"))


def main(runs: int) -> None:
    sys.stdout.write(head(COLUMNS[0]))
    for name in SETS:
        sys.stdout.write(judged(name)[0])
    sys.stdout.write("\n" + head(COLUMNS[1]) + chosen())
    with tempfile.TemporaryDirectory() as place:
        sys.stdout.write("\n" + head(COLUMNS[2]) + fast(Path(place) / "many"))
    if runs:
        sys.stdout.write("\n" + head(COLUMNS[3]))
        for kept in (False, True):
            sys.stdout.write(asyncio.run(ran(runs, kept=kept)))
            sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 0)
