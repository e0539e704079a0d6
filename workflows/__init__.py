"""The workflows of a deployment: deterministic, no I/O, no SDK of a model in their imports."""

from workflows.agent import AgentWorkflow
from workflows.supervisor import SupervisorWorkflow

WORKFLOWS = [SupervisorWorkflow, AgentWorkflow]
