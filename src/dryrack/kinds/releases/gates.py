"""
Feature gates of Kubernetes: stage, default, lock and dependencies, by release.

The table has the gates of dynamic resource allocation, of the scheduler, and of controllers. The
defaults are those of a cluster without compatibility flags: its minimum compatibility version is
one release older than its binaries, so a gate that a release switches on only for its own version
is off.

Errors have the words of kube-scheduler, which refuses to start with such gates.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.kinds.releases.release import DEFAULT_RELEASE, Release

_TABLE = """
Gate                                         1.36       1.37       Needs
DynamicResourceAllocation                    GA locked  GA locked
DRAAdminAccess                               GA locked  GA locked
DRAPrioritizedList                           GA on      GA locked
DRAResourceClaimDeviceStatus                 beta on    GA locked
DRAExtendedResource                          beta on    GA locked
DRADeviceTaints                              beta on    GA on
DRADeviceTaintRules                          beta off   GA on      DRADeviceTaints
DRAPartitionableDevices                      beta on    beta on
DRAConsumableCapacity                        beta on    beta on
DRADeviceBindingConditions                   beta on    beta on    DRAResourceClaimDeviceStatus
DRASchedulerFilterTimeout                    beta on    beta on
DRAResourceClaimGranularStatusAuthorization  beta on    beta on    DRAResourceClaimDeviceStatus
ResourceHealthStatus                         beta on    beta on
ResourceHealthStatusMessage                  beta on    beta on    ResourceHealthStatus
KubeletPodResourcesDynamicResources          GA locked  GA locked
NodeDeclaredFeatures                         beta on    GA locked
DRAFractionalCapacityRange                   -          beta off   DRAConsumableCapacity
DRAListTypeAttributes                        alpha off  alpha off
DRANodeAllocatableResources                  alpha off  alpha off
DRAResourcePoolStatus                        alpha off  alpha off
DRAWorkloadResourceClaims                    alpha off  beta off   GenericWorkload
DRADerivedAttributes                         -          alpha off
DRADeviceCompatibilityGroups                 -          alpha off  DRAPartitionableDevices
DRAOptionalNodeOperations                    -          alpha off  NodeDeclaredFeatures
DRAPartitionableDevicesType                  -          alpha off  DRAPartitionableDevices, \
DRAResourcePoolStatus
GenericWorkload                              alpha off  beta off
GangScheduling                               alpha off  -          GenericWorkload
WorkloadAwarePreemption                      alpha off  -          GangScheduling
TopologyAwareWorkloadScheduling              alpha off  alpha off  GenericWorkload
WorkloadWithJob                              alpha off  alpha off  GenericWorkload
CompositePodGroup                            -          alpha off  GenericWorkload, \
TopologyAwareWorkloadScheduling
PodGroupPreemptionPolicy                     -          alpha off  GenericWorkload
MaxUnavailableStatefulSet                    beta off   beta on
PersistentVolumeClaimUnusedSinceTime         alpha off  beta on
OpportunisticBatching                        beta on    beta on
SchedulerAsyncPreemption                     beta on    beta on
SchedulerPopFromBackoffQ                     beta on    beta on
SchedulerQueueingHints                       GA locked  -
SchedulerPreQueueingHints                    -          alpha off
"""

# Each switches all gates of a stage that are not named themselves.
_ALL = {"AllAlpha": "alpha", "AllBeta": "beta"}

# Fields that not every release has, and only with a feature gate.
FIELD_GATES: Mapping[str, str] = MappingProxyType(
    {
        "compatibilityGroups": "DRADeviceCompatibilityGroups",
        "derivedAttributes": "DRADerivedAttributes",
        "skipNodeOperations": "DRAOptionalNodeOperations",
    }
)

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


class GateError(DryrackError):
    """The gates are not those of the release, or contradict each other."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate in one release."""

    # "alpha", "beta" or "GA"
    stage: str
    is_on: bool
    is_locked: bool
    needs: tuple[str, ...]


@cache
def gates_of(release: Release) -> Mapping[str, Gate]:
    """Return the gates of a release by name."""
    head, *lines = _TABLE.strip().splitlines()
    starts = {name: head.index(name) for name in (*(each.value for each in Release), "Needs")}
    after = dict(zip(starts, [*list(starts.values())[1:], None], strict=True))
    gates: dict[str, Gate] = {}
    for line in lines:
        stage, _, state = line[starts[release.value] : after[release.value]].strip().partition(" ")
        needs = line[starts["Needs"] :].replace(",", " ").split()
        if state:
            gates[line.split()[0]] = Gate(stage, state != "off", state == "locked", tuple(needs))
    return gates


def parse_gates(text: str) -> dict[str, bool]:
    """Return the gates of a text such as "A=true,B=false", as kube-scheduler reads it."""
    gates: dict[str, bool] = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            raise GateError(f"missing bool value for {name}; use {name}=true or {name}=false")
        if value not in _TRUE | _FALSE:
            raise GateError(
                f'invalid value of {name}={value}, err: strconv.ParseBool: parsing "{value}": '
                f"invalid syntax; use {name}=true or {name}=false"
            )
        gates[name] = value in _TRUE
    return gates


def resolve_gates(changes: Mapping[str, bool], release: Release) -> dict[str, bool]:
    """Return all gates of the release after these changes; raise `GateError` as it does."""
    known = gates_of(release)
    for name in sorted(changes):
        if name not in known and name not in _ALL:
            raise GateError(f"unrecognized feature gate: {name}; {hint(name, sorted(known))}")
    locked = [
        f"cannot set feature gate {name} to {str(value).lower()}, "
        f"feature is locked to {str(known[name].is_on).lower()}"
        for name, value in sorted(changes.items())
        if name in known and known[name].is_locked and known[name].is_on != value
    ]
    _raise_for(locked)
    state = {name: gate.is_on for name, gate in known.items()}
    for name, stage in _ALL.items():
        if name in changes:
            state |= {each: changes[name] for each, gate in known.items() if gate.stage == stage}
    state |= {name: value for name, value in changes.items() if name in known}
    lacking = {
        name: [each for each in gate.needs if not state[each]]
        for name, gate in known.items()
        if state[name]
    }
    _raise_for(
        f"{name} is enabled, but depends on features that are disabled: [{' '.join(needs)}]"
        for name, needs in lacking.items()
        if needs
    )
    return state


def gates_with_needs(names: Iterable[str], release: Release) -> dict[str, bool]:
    """Return the changes that switch on these gates and all gates that they depend on."""
    known = gates_of(release)
    changes: dict[str, bool] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in changes and not known[name].is_on:
            changes[name] = True
            waiting += known[name].needs
    return dict(sorted(changes.items()))


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """A release, and the feature gates that are not at their default."""

    release: Release = DEFAULT_RELEASE
    changes: Mapping[str, bool] = field(default_factory=dict)
    _state: dict[str, bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_state", resolve_gates(self.changes, self.release))

    def is_on(self, gate: str) -> bool:
        """Return whether a gate is on; a gate that the release does not have is off."""
        return self._state.get(gate, False)


def _raise_for(problems: Iterable[str]) -> None:
    """Raise one error for all problems, joined as Kubernetes joins them."""
    found = list(problems)
    if found:
        raise GateError(found[0] if len(found) == 1 else f"[{', '.join(found)}]")
