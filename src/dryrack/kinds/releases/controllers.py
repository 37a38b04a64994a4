"""
Differences between the controllers of releases, as one value per release.

Each value is that of the release before with what changed, so a new release is one `replace` and
one entry in `CONTROLLERS`. What a feature gate switches is not here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from dryrack.kinds.releases.release import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerBehaviour:
    """The behaviour of kube-controller-manager in a release."""

    # The status of a StatefulSet keeps the conditions that other clients set.
    stateful_sets_keep_conditions: bool
    # `currentRevision` becomes `updateRevision` with the strategy `OnDelete`, too.
    on_delete_completes: bool
    # `resourceClaimStatuses` keeps entries that exist, and is sorted by name.
    claim_statuses_are_merged: bool
    # A pod with `schedulingGroup` gets no claims if the cluster has no PodGroups.
    groups_are_required: bool


_CONTROLLERS_1_36 = ControllerBehaviour(
    stateful_sets_keep_conditions=False,
    on_delete_completes=False,
    claim_statuses_are_merged=False,
    groups_are_required=False,
)
_CONTROLLERS_1_37 = replace(
    _CONTROLLERS_1_36,
    stateful_sets_keep_conditions=True,
    on_delete_completes=True,
    claim_statuses_are_merged=True,
    groups_are_required=True,
)

CONTROLLERS: Mapping[Release, ControllerBehaviour] = MappingProxyType(
    {Release.V1_36: _CONTROLLERS_1_36, Release.V1_37: _CONTROLLERS_1_37}
)
