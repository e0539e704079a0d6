"""The questions that are asked of a plan's graph."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driving import ROLES, longest_chains, subtask
from holdfast.contracts import HARD_SUBTASK_LIMIT, Plan, Subtask
from holdfast.plans import validity
from holdfast.state import graph

EXAMPLES = settings(max_examples=50, deadline=None, database=None)


def plan(*subtasks: Subtask) -> Plan:
    return Plan(goal="Compare", subtasks=subtasks)


def problems(*subtasks: Subtask, limit: int = 6, inputs: tuple[str, ...] = ()) -> tuple[str, ...]:
    return validity.problems(plan(*subtasks), ROLES, inputs, limit)


@st.composite
def graphs(draw: st.DrawFn, largest: int = 5) -> tuple[Subtask, ...]:
    """Without a cycle, in any order."""
    made: list[Subtask] = []
    for place in range(draw(st.integers(1, largest))):
        earlier = [each.id for each in made]
        edges = draw(st.lists(st.sampled_from(earlier), unique=True)) if earlier else []
        made.append(subtask(f"t{place}", *edges))
    return tuple(draw(st.permutations(made)))


def chains(subtasks: tuple[Subtask, ...]) -> list[tuple[str, ...]]:
    """Every sequence of subtasks of which each depends on the one before: by brute force."""
    edges = {(edge, each.id) for each in subtasks for edge in each.depends_on}
    ids = [each.id for each in subtasks]
    return [
        order
        for size in range(1, len(ids) + 1)
        for order in permutations(ids, size)
        if all(pair in edges for pair in pairwise(order))
    ]


def test_a_valid_plan_has_no_problems() -> None:
    assert problems(subtask("a"), subtask("b", "a"), subtask("c", "a", "b")) == ()


def test_a_thousand_subtasks_are_the_most_that_a_plan_can_ever_have() -> None:
    many = tuple(
        subtask(f"t{n}", *([f"t{n - 1}"] if n % 3 else [])).model_copy(
            update={"instruction": f"Find out everything about number {n}"}
        )
        for n in range(HARD_SUBTASK_LIMIT)
    )
    assert validity.problems(plan(*many), ROLES, (), HARD_SUBTASK_LIMIT) == ()
    one_more = (*many, subtask("more"))
    assert validity.problems(plan(*one_more), ROLES, (), HARD_SUBTASK_LIMIT) == (
        "subtasks: 1001 are planned, the limit is 1000",
    )


def test_an_empty_plan_is_a_problem() -> None:
    assert problems() == ("subtasks: the plan is empty; plan at least one subtask",)


def test_a_cycle_is_named_from_its_first_subtask_back_to_it() -> None:
    (problem,) = problems(
        subtask("a", "d"), subtask("b", "a", "d"), subtask("c", "b"), subtask("d", "c")
    )
    assert problem in (
        "depends_on: there is a cycle: a -> d -> c -> b -> a",
        "depends_on: there is a cycle: d -> c -> b -> d",
    )


def test_a_subtask_that_depends_on_itself_is_a_cycle() -> None:
    assert problems(subtask("a", "a")) == ("depends_on: there is a cycle: a -> a",)


def test_everything_that_is_wrong_is_said_at_once_with_its_place() -> None:
    bad = Subtask(
        id="Not An Id",
        title="",
        instruction="Analyse the data",
        inputs=("report",),
        role="wizard",
        tier="opus",
        depends_on=("nobody",),
    )
    found = problems(subtask("a"), bad, subtask("a"), limit=2, inputs=("table",))
    said = "\n".join(found)
    for expected in (
        "subtasks: 3 are planned, the limit is 2",
        "subtasks[1] 'Not An Id': an id is 1 to 32 of a-z",
        "subtasks[1] 'Not An Id': unknown role 'wizard'; known: analyst, expert",
        "subtasks[1] 'Not An Id': instruction: not concrete",
        "subtasks[1] 'Not An Id': unknown input 'report'; the goal's inputs: table",
        "subtasks[1] 'Not An Id': depends_on: unknown subtask 'nobody'",
        "subtasks[2] 'a': this id is used twice",
    ):
        assert expected in said


def test_a_misspelt_role_or_input_is_told_with_the_one_that_was_meant() -> None:
    odd = subtask("a").model_copy(update={"role": "analist", "inputs": ("tabel",)})
    second = subtask("b").model_copy(update={"secondary": "exprt"})
    said = "\n".join(problems(odd, second, inputs=("table",)))
    assert "unknown role 'analist' (did you mean 'analyst'?); known: analyst, expert" in said
    assert "unknown input 'tabel' (did you mean 'table'?); the goal's inputs: table" in said
    assert "secondary: unknown role 'exprt' (did you mean 'expert'?)" in said
    far = subtask("a").model_copy(update={"role": "analyst" * 50})
    assert "did you mean" not in "\n".join(problems(far))


@pytest.mark.parametrize("id", ["", "A", "a b", "ä", "a.b", "a/b", "x" * 33, "a\n"])
def test_an_id_that_could_not_name_an_activity_is_a_problem(id: str) -> None:
    assert any("an id is 1 to 32" in each for each in problems(subtask(id)))


@EXAMPLES
@given(graphs())
def test_no_cycle_is_seen_where_there_is_none(subtasks: tuple[Subtask, ...]) -> None:
    assert graph.find_cycle(subtasks) == ()


@EXAMPLES
@given(graphs(), st.data())
def test_a_cycle_that_was_added_is_found_and_is_one(
    subtasks: tuple[Subtask, ...], data: st.DataObject
) -> None:
    chain = data.draw(st.sampled_from(chains(subtasks)))
    closed = tuple(
        each.model_copy(update={"depends_on": (*each.depends_on, chain[-1])})
        if each.id == chain[0]
        else each
        for each in subtasks
    )
    cycle = graph.find_cycle(closed)
    depends_on = {each.id: each.depends_on for each in closed}
    assert len(cycle) > 1 and cycle[0] == cycle[-1]
    assert all(after in depends_on[each] for each, after in pairwise(cycle))


@EXAMPLES
@given(graphs())
def test_dependents_are_what_some_chain_reaches(subtasks: tuple[Subtask, ...]) -> None:
    every = chains(subtasks)
    for each in subtasks:
        reached = {chain[-1] for chain in every if chain[0] == each.id} - {each.id}
        assert set(graph.dependents(subtasks, each.id)) == reached


@EXAMPLES
@given(graphs(), st.data())
def test_the_critical_path_is_the_longest_of_all_chains(
    subtasks: tuple[Subtask, ...], data: st.DataObject
) -> None:
    seconds = {each.id: float(data.draw(st.integers(0, 50))) for each in subtasks}
    longest = max(sum(seconds[each] for each in chain) for chain in chains(subtasks))
    assert graph.critical_path(subtasks, seconds) == longest
    chain = graph.longest_chain(subtasks, seconds)
    assert sum(seconds[each] for each in chain) == longest
    assert chain in {tuple(each) for each in chains(subtasks)}


@EXAMPLES
@given(graphs())
def test_what_ends_first_stands_before_what_needs_it(subtasks: tuple[Subtask, ...]) -> None:
    order = [*graph.finishes(subtasks, {})]
    assert sorted(order) == sorted(each.id for each in subtasks)
    for each in subtasks:
        assert all(order.index(edge) < order.index(each.id) for edge in each.depends_on)


@EXAMPLES
@given(graphs())
def test_the_chain_below_counts_the_subtasks_of_the_longest_chain(
    subtasks: tuple[Subtask, ...],
) -> None:
    assert graph.chain_below(subtasks) == longest_chains(plan(*subtasks))
    every = chains(subtasks)
    for each in subtasks:
        longest = max(len(chain) for chain in every if chain[0] == each.id)
        assert graph.chain_below(subtasks)[each.id] == longest


def test_a_subtask_without_a_duration_counts_nothing() -> None:
    assert graph.critical_path((subtask("a"), subtask("b", "a")), {"b": 2.0}) == 2.0
    assert graph.critical_path((), {}) == 0.0


def test_the_chains_of_a_cycle_are_not_followed_for_ever() -> None:
    with pytest.raises(ValueError, match="cycle"):
        graph.chain_below((subtask("a", "b"), subtask("b", "a")))
    ring = (subtask("a", "b"), subtask("b", "a"), subtask("c"))
    assert graph.finishes(ring, {"c": 1.0}) == {"c": 1.0}
