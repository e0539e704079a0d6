"""What plans of one kind of goal have in common. Pure."""

from __future__ import annotations

import hashlib
import json

from holdfast.contracts import Goal, Plan

LETTERS = 16


def shape_of(goal: Goal, plan: Plan) -> str:
    """Return a digest of who does what for whom in a plan, whatever it is about."""
    places = {each.id: place for place, each in enumerate(plan.subtasks)}
    graph = [
        [each.role, sorted(places.get(edge, -1) for edge in each.depends_on), len(each.inputs)]
        for each in plan.subtasks
    ]
    kinds = sorted(each.kind for each in goal.inputs)
    said = json.dumps([goal.playbook, goal.form.kind, kinds, plan.strategy, graph])
    return hashlib.sha256(said.encode()).hexdigest()[:LETTERS]
