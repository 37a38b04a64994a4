"""
Facts about the releases of Kubernetes that dryrack follows, one table per concern.

A new release is one more member of `Release`, one more column in the table of `gates`, and one
more entry in each table of behaviours. Other code asks these tables and compares no releases.
"""

from dryrack.kinds.releases.behaviours import (
    ALLOCATION,
    CEL,
    AllocationBehaviour,
    CelBehaviour,
)
from dryrack.kinds.releases.controllers import CONTROLLERS, ControllerBehaviour
from dryrack.kinds.releases.gates import (
    FIELD_GATES,
    FeatureSet,
    Gate,
    GateError,
    gates_of,
    gates_with_needs,
    parse_gates,
    resolve_gates,
)
from dryrack.kinds.releases.release import (
    DEFAULT_RELEASE,
    NEWEST,
    OLDEST,
    RELEASES,
    Release,
    ReleaseError,
)

__all__ = [
    "ALLOCATION",
    "CEL",
    "CONTROLLERS",
    "DEFAULT_RELEASE",
    "FIELD_GATES",
    "NEWEST",
    "OLDEST",
    "RELEASES",
    "AllocationBehaviour",
    "CelBehaviour",
    "ControllerBehaviour",
    "FeatureSet",
    "Gate",
    "GateError",
    "Release",
    "ReleaseError",
    "gates_of",
    "gates_with_needs",
    "parse_gates",
    "resolve_gates",
]
