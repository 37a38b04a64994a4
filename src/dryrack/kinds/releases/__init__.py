"""
Facts about the releases of Kubernetes that dryrack follows, one table per concern.

A new release is one more member of `Release`, one more column in the table of `gates`, and one
more entry in each table of behaviours. Other code asks these tables and compares no releases.
"""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports
from dryrack.kinds.releases.release import (
    DEFAULT_RELEASE,
    NEWEST,
    OLDEST,
    RELEASES,
    Release,
    ReleaseError,
    nearest_release,
)

if TYPE_CHECKING:
    from dryrack.kinds.releases.behaviours import (
        ALLOCATION,
        CEL,
        PATCHES,
        SCHEDULING,
        SLICE_FIELD_SELECTORS,
        VALIDATION,
        AllocationBehaviour,
        CelBehaviour,
        GroupTexts,
        PatchBehaviour,
        SchedulingBehaviour,
        ValidationBehaviour,
    )
    from dryrack.kinds.releases.controllers import CONTROLLERS, ControllerBehaviour
    from dryrack.kinds.releases.declared_types import DECLARED_TYPES, UNDECLARED_GROUPS
    from dryrack.kinds.releases.fields import (
        GATED_FIELDS,
        GatedField,
        find_dropped,
        find_gated,
        without_gates,
    )
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
else:
    # The help of a command names the releases; only other commands need the tables.
    __getattr__ = exports(
        __name__,
        {
            "behaviours": "ALLOCATION CEL PATCHES SCHEDULING SLICE_FIELD_SELECTORS VALIDATION "
            "AllocationBehaviour CelBehaviour GroupTexts PatchBehaviour SchedulingBehaviour "
            "ValidationBehaviour",
            "controllers": "CONTROLLERS ControllerBehaviour",
            "declared_types": "DECLARED_TYPES UNDECLARED_GROUPS",
            "fields": "GATED_FIELDS GatedField find_dropped find_gated without_gates",
            "gates": "FIELD_GATES FeatureSet Gate GateError gates_of gates_with_needs parse_gates "
            "resolve_gates",
        },
    )

__all__ = [
    "ALLOCATION",
    "CEL",
    "CONTROLLERS",
    "DECLARED_TYPES",
    "DEFAULT_RELEASE",
    "FIELD_GATES",
    "GATED_FIELDS",
    "NEWEST",
    "OLDEST",
    "PATCHES",
    "RELEASES",
    "SCHEDULING",
    "SLICE_FIELD_SELECTORS",
    "UNDECLARED_GROUPS",
    "VALIDATION",
    "AllocationBehaviour",
    "CelBehaviour",
    "ControllerBehaviour",
    "FeatureSet",
    "Gate",
    "GateError",
    "GatedField",
    "GroupTexts",
    "PatchBehaviour",
    "Release",
    "ReleaseError",
    "SchedulingBehaviour",
    "ValidationBehaviour",
    "find_dropped",
    "find_gated",
    "gates_of",
    "gates_with_needs",
    "nearest_release",
    "parse_gates",
    "resolve_gates",
    "without_gates",
]
