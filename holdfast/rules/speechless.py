"""Endpoints that answer but may not be able to produce JSON: a run soon stops paying. Pure."""

from __future__ import annotations

from holdfast.contracts import Problem, Report, policies
from holdfast.contracts.replacing import replace
from holdfast.state.edits import stop_for
from holdfast.state.run import State

NOT_READ = ("refusal", "truncated")
"""Problems of answers that say nothing about what the endpoint can do."""
WHERE = "docs/models.md, When no answer is JSON"
MAY_NOT = f"may not be able to answer in JSON: see {WHERE}"


def judge_answer(state: State, problem: Problem | None, answers: int = 1) -> State:
    """Take in an answer of a model. The run stops where no answer ever held JSON and this is one
    too many without. `answers`: how many of them this problem stands for.
    """
    if state.heard_json or (problem and problem.kind in NOT_READ):
        return state
    if problem is None or not problem.no_json:
        return replace(state, heard_json=True)
    state = replace(state, no_json=state.no_json + answers)
    if state.no_json < policies.NO_JSON:
        return state
    who = state.brief.endpoint or "the endpoint"
    return stop_for(
        state, "no json", f"{problem.why}; no answer of {who} held any, so it {MAY_NOT}"
    )


def judge_team(state: State, report: Report) -> State:
    """Stop for what stopped a team, unless an answer to this run has held JSON."""
    if report.stopped != "no json" or state.heard_json:
        return state
    who = state.brief.endpoint or "the endpoint"
    return stop_for(
        state, "no json", f"no answer of {who} to run {report.run_id} held JSON, so it {MAY_NOT}"
    )


def answers_left(state: State) -> int:
    """Return after how many answers without JSON an agent is not asked again."""
    most = policies.REPAIRS + 1
    return most if state.heard_json else max(1, policies.NO_JSON - state.no_json)
