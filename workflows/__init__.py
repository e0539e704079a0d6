"""The workflows of a deployment: deterministic, no I/O, no SDK of a model in their imports."""

from holdfast.workflows.agent import AgentWorkflow
from holdfast.workflows.evaluation import EvaluationWorkflow
from holdfast.workflows.map import MapWorkflow
from holdfast.workflows.notify import NotifyWorkflow
from holdfast.workflows.scheduled import ScheduledWorkflow
from holdfast.workflows.supervisor import SupervisorWorkflow
from holdfast.workflows.treasurer import TreasurerWorkflow
from holdfast.workflows.trial import TrialWorkflow

WORKFLOWS = [
    SupervisorWorkflow,
    AgentWorkflow,
    MapWorkflow,
    NotifyWorkflow,
    ScheduledWorkflow,
    EvaluationWorkflow,
    TrialWorkflow,
    TreasurerWorkflow,
]
