"""The plan library: what a template is made of, which goals it fits, and what spoils one."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.templates.__main__ import SETS, TEMPLATES, judged
from holdfast.activities.library import shelves
from holdfast.activities.library.digests import find_stale
from holdfast.activities.library.drafting import Drafted, Ran, draft, name_for
from holdfast.activities.library.library import _with_inputs
from holdfast.activities.library.matching import Asked, Pattern, match
from holdfast.activities.library.shelves import Shelf, Shelves
from holdfast.activities.library.template import (
    FORM,
    BadTemplate,
    Parameter,
    Template,
    read_template,
    write_template,
)
from holdfast.contracts import Briefing, Goal, PinnedInput, Plan, Subtask
from holdfast.errors import Refused
from shipped import shipped_catalogue

CATALOGUE = shipped_catalogue()
GOAL = "Compare 'Acme' with 3 rivals in 2026 by list_1, for 3 months"
INSTRUCTION = "Find what Acme and its 3 rivals charge in 2026, from list_1, in 3 sentences"


def ran(goal: str = GOAL, instruction: str = INSTRUCTION, preview: str = "") -> Ran:
    inputs = ({"name": "list_1", "kind": "file", "value": "a.md"},)
    work = {"id": "t1", "title": "All", "role": "analyst", "instruction": instruction}
    plan = Plan.model_validate({"goal": goal, "subtasks": ({**work, "inputs": ("list_1",)},)})
    pinned = PinnedInput(name="list_1", kind="file", size=1, preview=preview)
    cards = CATALOGUE.roles_for("")
    brief = Briefing(roles=cards, inputs=(pinned,))
    return Ran("r1", Goal.model_validate({"text": goal, "inputs": inputs}), brief, plan)


def drafted(of: Ran | None = None, **given: str) -> Drafted:
    return draft(of or ran(), CATALOGUE, given)


@pytest.mark.parametrize("name", SETS)
def test_a_template_is_matched_to_its_goals_and_to_no_others(name: str) -> None:
    _, counts = judged(name)
    right, wrong = counts[True, "yes"], counts[False, "yes"]
    fit = sum(count for (fits, _), count in counts.items() if fits)
    assert counts.total() == 150 and fit <= 75
    assert right / (right + wrong) >= 0.97 and right / fit >= 0.55


@pytest.mark.parametrize(
    ("goal", "other"),
    [
        ("Which customers owe > {number} euros?", "Which customers owe < 500 euros?"),
        (
            "By how much did it fall, by {number} percent?",
            "By how much did it fall, by -5 percent?",
        ),
        ("Which customers owe {number}?", "Which customers owe ¥500?"),
        ("Compare the speed of C and Java", "Compare the speed of C++ and Java"),
        ("Which bonds are rated A+?", "Which bonds are rated A-?"),
        ("List the files that end in *.py", "List the files that end in .py"),
        ("List rows with status = open", "List rows with status != open"),
        ("Is a rate of 5% high?", "Is a rate of .5% high?"),
        ('Is a pipe of 6" enough', "Is a pipe of 6' enough"),
        ("What is (2+3)*4?", "What is 2+(3*4)?"),
        ("What do futures cost?", "What do future cost?"),
        ("Who needs vitamin a?", "Who needs vitamin?"),
        ("Did the price go ↑?", "Did the price go ↓?"),
        ("What are the risks of hepatitis?", "What are the risks of hepatitis A?"),
        ("What are the import rules?", "What are the import rules for US?"),
        ("Find taxes in", "Find taxes in HI"),
        ("Which IT rules apply?", "Which it rules apply?"),
        ("Find the key of the database", "Find the main of the database"),
        ("What do farms produce?", "What do farms write?"),
        ("Which companies give discounts?", "Which companies show discounts?"),
        ("Compare client libraries", "Compare customer libraries"),
        ("List customs rules", "List custom rules"),
        ("Which Windows versions fail?", "Which window version fails?"),
        ("What is the goods price?", "What is the good price?"),
        ("Translate it into Polish", "Translate it into polish"),
    ],
)
def test_a_sign_a_name_or_another_sense_makes_another_goal(goal: str, other: str) -> None:
    work = Subtask(id="t1", title="All", instruction="Do it", role="analyst")
    known = {"number": Parameter(kind="number", example="400")} if "{number}" in goal else {}
    plan = Plan(goal=goal, subtasks=(work,))
    template = Template(form=FORM, goal=goal, parameters=known, roles={}, plan=plan)
    for text in (other, goal.replace("{number}", "500")):
        found = match(Pattern.of(template), Asked.of(text, ()))
        assert (found is not None and found[1]) is (text != other)


@pytest.mark.parametrize(
    ("instruction", "kept"),
    [
        ("Say what Acme charges; leave out ACME's pumps", "Acme"),
        ("Say what Acme charges, and see acme.com", "Acme"),
        ("State for Acme in 2026 what FY26 was", "2026"),
        ("State of Acme the 3 rivals, exactly three", "3"),
        ("State of Acme the 3 rivals: the largest, the second and the last", "3"),
    ],
)
def test_a_value_that_the_plan_also_has_in_another_form_stays_as_it_is(
    instruction: str, kept: str
) -> None:
    base = ran("Compare 'Acme' with 3 rivals in 2026 by list_1", instruction)
    made = drafted(base)
    assert any(each.startswith(f"'{kept}' stays") for each in made.kept), made.kept
    assert kept in made.template.goal
    with pytest.raises(Refused, match="which would stay as it is for another value"):
        drafted(base, it=kept)


@pytest.mark.parametrize(
    "said",
    [
        "password hunter2secret",
        "Passwort: geheim123",
        "api key is 8f14e45fceea167a",
        "client_secret=abcdef",
        "password for the portal: sesame",
    ],
)
def test_what_is_called_a_secret_is_kept_in_no_template(said: str) -> None:
    with pytest.raises(Refused, match="holds what looks like a secret"):
        drafted(ran(f"Send it to Acme with the {said}"))


def test_one_agent_with_the_whole_goal_is_no_plan_to_keep() -> None:
    with pytest.raises(Refused, match="which --single does without a planner"):
        drafted(ran(GOAL, GOAL))


def test_a_plan_that_its_inputs_chose_is_no_template() -> None:
    base = ran()
    [work] = base.plan.subtasks
    routed = work.model_copy(update={"role": "troubleshooter"})
    plan = base.plan.model_copy(update={"subtasks": (routed,)})
    support = base.goal.model_copy(update={"playbook": "tech-support"})
    cards = Briefing(roles=CATALOGUE.roles_for("tech-support"), inputs=base.brief.inputs)
    with pytest.raises(Refused, match="another case needs another plan"):
        drafted(Ran("r1", support, cards, plan))
    words = CATALOGUE.playbooks["competitive-intelligence"].words
    own = base.goal.model_copy(update={"playbook": "competitive-intelligence", "text": words})
    with pytest.raises(Refused, match="its goal is the playbook's own"):
        drafted(Ran("r1", own, base.brief, base.plan))


def test_values_of_a_goal_become_parameters_where_an_instruction_has_them() -> None:
    made = drafted()
    assert made.template.goal == (
        "Compare '{text}' with 3 rivals in {year} by {list_1}, for 3 months"
    )
    kinds = {name: each.kind for name, each in made.template.parameters.items()}
    assert kinds == {"text": "text", "year": "date", "list_1": "input"}
    assert "'3' stays as it is: the plan has the same number of other things" in made.kept
    [work] = made.template.plan.subtasks
    assert work.inputs == ("{list_1}",)
    # In one pass: braces of a value are text.
    values = {"text": "{year}", "year": "2030", "list_1": "list_2"}
    [filled] = made.template.fill(values).subtasks
    assert (
        filled.instruction
        == "Find what {year} and its 3 rivals charge in 2030, from list_2, in 3 sentences"
    )
    assert filled.inputs == ("list_2",)


def test_what_may_hang_on_a_date_keeps_it_where_it_is() -> None:
    made = drafted(ran(instruction=f"{INSTRUCTION}, against those of 2025"))
    assert "year" not in made.template.parameters
    assert "'2026' stays as it is: the plan also has '2025', which may hang on it" in made.kept


@pytest.mark.parametrize(
    ("of", "given", "why"),
    [
        (ran(), {"who": "Globex"}, "--param who: 'Globex' does not stand in the goal of run r1"),
        (ran(), {"what": "Compare"}, "'Compare' stands in no instruction of the plan"),
        (ran(), {"Who": "Acme"}, "--param Who: a name is a to z"),
        (ran(instruction=f"{INSTRUCTION}, as {{this}}"), {}, "has {this}, which in a template"),
        (ran(goal=f"{GOAL} {'word ' * 900}"), {}, "a goal of more than 4,000 letters has no like"),
        (ran(goal=f"{GOAL} password='hunter2hunter2'"), {}, "looks like a secret"),
        (ran(instruction=f"{INSTRUCTION} and Globex", preview="a,Globex"), {},
         "names 'Globex', which stands in the input list_1 and not in the goal"),
    ],
)  # fmt: skip
def test_no_template_is_made_of_a_run_that_would_mislead(
    of: Ran, given: Mapping[str, str], why: str
) -> None:
    with pytest.raises(Refused) as refused:
        drafted(of, **given)
    assert why in str(refused.value) and "\n" not in str(refused.value)


def test_a_role_that_changed_makes_a_template_stale(tmp_path: Path) -> None:
    template = drafted().template
    assert find_stale(template, CATALOGUE) == ""
    other = template.model_copy(update={"roles": {"analyst": "before"}})
    assert find_stale(other, CATALOGUE) == "role analyst changed"
    gone = template.model_copy(update={"playbook": "gone"})
    assert find_stale(gone, CATALOGUE) == "there is no playbook gone any more"


BAD: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "an older form": ({"form": 0}, "form 0 is of an older holdfast; save it again from its run"),
    "a newer form": ({"form": 2}, "form 2 is of a newer holdfast; this one reads form 1"),
    "no form": ({"form": None}, "form None is of an older holdfast"),
    "a missing parameter": (
        {"goal": "Compare {texd} in {year} by {list_1}"}, "{texd} is no parameter",
    ),
    "one too many": ({"goal": "Compare '{text}' by {list_1}"}, "parameter year: not in the goal"),
    "another kind": (
        {"parameters": {"year": {"kind": "number", "example": "soon"}}},
        "parameter year: its example 'soon' is no number",
    ),
    "an unknown kind": ({"parameters": {"year": {"kind": "money", "example": "1"}}}, "kind"),
    "side by side": (
        {"goal": "Compare {text} {year} by {list_1}"}, "two parameters stand side by side",
    ),
    "a field too many": ({"runz": 1}, "runz"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "why"), BAD.values(), ids=[*BAD])
def test_a_bad_template_is_refused_in_a_line(
    tmp_path: Path, change: Mapping[str, Any], why: str
) -> None:
    fields = yaml.safe_load(write_template(drafted().template))
    parameters = {**fields["parameters"], **change.get("parameters", {})}
    text = yaml.safe_dump({**fields, **change, "parameters": parameters})
    with pytest.raises(BadTemplate) as refused:
        read_template(text)
    assert why in str(refused.value) and "\n" not in str(refused.value)
    # Others are used all the same.
    shelf = Shelf(tmp_path)
    (tmp_path / "bad.yaml").write_text(text)
    shelves.save(shelf, "good", drafted().template)
    bad, good = Shelves((shelf,)).kept()
    assert why in bad.flaw and good.template is not None


def test_of_two_who_save_at_once_both_templates_are_kept_or_one_is_told(tmp_path: Path) -> None:
    shelf, template = Shelf(tmp_path / "templates"), drafted().template

    def save(name: str) -> str:
        try:
            return shelves.save(shelf, name, template).name
        except Refused as refused:
            return str(refused)

    with ThreadPoolExecutor(8) as pool:
        said = [*pool.map(save, ["same"] * 8), *pool.map(save, [f"own-{n}" for n in range(8)])]
    assert said[:8].count("same.yaml") == 1
    assert {*said[:8]} - {"same.yaml"} <= {
        "there is a template same already; give this one another --name"
    }
    assert len(Shelves((shelf,)).kept()) == 9
    assert {path.stat().st_mode & 0o777 for path in shelf.folder.iterdir()} == {0o600}


def test_a_shelf_that_is_full_takes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelves, "MOST", 2)
    shelf, template = Shelf(tmp_path), drafted().template
    for name in ("a", "b"):
        shelves.save(shelf, name, template)
    with pytest.raises(Refused, match="has 2 templates, and no more are read; delete some"):
        shelves.save(shelf, "c", template)


def test_what_is_retired_is_kept_and_used_no_more(tmp_path: Path) -> None:
    library = Shelves((Shelf(tmp_path),))
    for _ in range(2):
        shelves.save(library.shelves[0], "prices", drafted().template)
        [kept] = library.kept()
        place = shelves.retire(kept)
        assert not library.kept() and place.exists()
    assert len([*place.parent.iterdir()]) == 2
    with pytest.raises(Refused, match="template prices is gone: somebody else"):
        shelves.delete(kept)


def test_an_input_of_another_name_is_taken_where_it_is_the_only_one_of_its_kind() -> None:
    template = TEMPLATES["risks"]
    subtasks = (template.plan.subtasks[0].model_copy(update={"inputs": ("list",)}),)
    plan = template.plan.model_copy(update={"subtasks": subtasks})

    def inputs(**given: str) -> tuple[str, ...] | None:
        named = [{"name": name, "kind": kind, "value": "x"} for name, kind in given.items()]
        goal = Goal.model_validate({"text": "x", "inputs": named})
        found = _with_inputs(template, plan, goal)
        return found.subtasks[0].inputs if found else None

    assert inputs(list="file") == ("list",)
    assert inputs(firms="file") == ("firms",)
    assert inputs(firms="file", others="file") is None
    told = plan.subtasks[0].model_copy(update={"instruction": "Read the list and rank all of it"})
    plan = plan.model_copy(update={"subtasks": (told,)})
    assert inputs(firms="file") is None


def test_a_goal_is_no_other_by_a_value_of_another_sort() -> None:
    pattern = Pattern.of(TEMPLATES["trip"])
    goal = "Plan a trip of 5 days to {} in {} for under {}."

    def fits(*values: str) -> bool:
        found = match(pattern, Asked.of(goal.format(*values), ()))
        return found is not None and found[1]

    assert fits("Oslo", "June 2027", "$900")
    assert not fits("Oslo", "2027", "$900") and not fits("Oslo", "June 2027", "€900")
    assert not fits("Oslo and Bergen", "June 2027", "$900")


def test_a_name_is_made_of_the_goal_and_never_taken_twice() -> None:
    assert name_for("Compare the prices of Acme!", ()) == "compare-price-acme"
    assert (
        name_for("Compare the prices of Acme!", ("compare-price-acme",)) == "compare-price-acme-2"
    )
    assert name_for("比べる", ()) == "template"
