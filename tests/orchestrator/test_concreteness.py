"""What code can tell of a planner's instructions before anything is paid for them."""

from __future__ import annotations

import pytest

from driving import subtask
from holdfast.contracts import Plan
from holdfast.plans.concreteness import needless_edges, problems

GOAL = "Which of the offices Harbour and Mill is cheaper over five years?"


def planned(*instructions: str, **fields: object) -> Plan:
    made = (
        subtask(f"t{place}").model_copy(update={"instruction": text, **fields})
        for place, text in enumerate(instructions, 1)
    )
    return Plan(goal=GOAL, subtasks=tuple(made))


@pytest.mark.parametrize(
    "vague",
    [
        "Analyse the data.",
        "Research the topic.",
        "Analyse all of the data thoroughly and completely.",
        "Look at everything that is about the subject",
        "Analysiere alle Daten zu dem Thema gründlich",
    ],
)
def test_the_bad_examples_of_the_planners_prompt_are_refused(vague: str) -> None:
    assert [*problems(planned(vague), GOAL)]


@pytest.mark.parametrize(
    "concrete",
    [
        "Return the lease of Harbour over five years, in euro.",
        "Compare the growth of the three largest providers, and rank them in at most 250 words.",
        "Nenne die Laufzeit des Mietvertrags für Mill in Jahren",
        "List three reasons why moving offices is risky",
        "Write a paragraph on what a tenant of an office should check before signing the lease.",
    ],
)
def test_an_instruction_that_names_its_matter_and_its_form_is_taken(concrete: str) -> None:
    assert not [*problems(planned(concrete), GOAL)]


def test_an_input_names_the_matter_and_a_check_or_criterion_the_form() -> None:
    vague = "Summarise what it says on this"
    assert [*problems(planned(vague), GOAL)]
    assert not [*problems(planned(vague, inputs=("lease",), acceptance_criteria="Short"), GOAL)]


def chained(instruction: str) -> Plan:
    first = subtask("t1").model_copy(
        update={"title": "Costs of Harbour", "instruction": "List the costs of Harbour in euro"}
    )
    second = subtask("t2", "t1").model_copy(update={"instruction": instruction})
    return Plan(goal="Compare two offices", subtasks=(first, second))


@pytest.mark.parametrize(
    "needs",
    [
        "Rank the costs from t1, the highest first",
        "Rank what the findings say, the highest first",
        "Say which of the costs of Harbour can be lowered",
    ],
)
def test_a_subtask_that_mentions_what_it_waits_for_waits_with_reason(needs: str) -> None:
    assert not [*needless_edges(chained(needs))]


def test_a_chain_of_what_could_run_at_once_is_told_with_its_pair() -> None:
    [said] = needless_edges(chained("List the train lines that stop near Mill"))
    assert said.startswith("depends_on: 't2' waits for 't1', and its instruction does not mention")
