"""Run the program of a pod as a local process: `dryrack run`."""

from dryrack.cluster.operators.local_pod import AGENT, OperatorRequest, run_operator
from dryrack.cluster.operators.sandbox import Machine
from dryrack.cluster.operators.workloads import KINDS, OperatorError, Workload, kind_named

__all__ = [
    "AGENT",
    "KINDS",
    "Machine",
    "OperatorError",
    "OperatorRequest",
    "Workload",
    "kind_named",
    "run_operator",
]
