"""
The offers of NodePools: the nodes that a pool could create, by instance type and labels.

Most labels of a node follow from its instance type and from the template of the pool. Where the
pool leaves a choice, as for the zone, the offers have those values that pending pods ask for, or
else one value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING

from dryrack.controllers.provisioning.machines import ZONE
from dryrack.controllers.provisioning.requirements import Allowed, combine, first_mismatch
from dryrack.kinds.provisioning import CAPACITY_TYPE, NODE_POOL

if TYPE_CHECKING:
    from dryrack.controllers.provisioning.machines import Machine
    from dryrack.kinds.core import Pod
    from dryrack.kinds.provisioning import LabelRequirement, NodePool

# The choices of labels for one instance type.
_CHOICES_MAX = 64
Choices = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class Offer:
    """A node that a pool could create."""

    pool: NodePool
    machine: Machine
    labels: Mapping[str, str]


def offers_of(pool: NodePool, machines: Iterable[Machine], choices: Choices) -> Iterator[Offer]:
    """Yield the offers of a pool; `choices` are the values that pending pods name, by label."""
    template = pool.spec.template
    allowed = combine(template.spec.requirements)
    fixed = {**template.metadata.labels, NODE_POOL: pool.metadata.name}
    for machine in machines:
        for labels in islice(_labels(machine, allowed, fixed, choices), _CHOICES_MAX):
            yield Offer(pool, machine, labels)


def choose(
    requirements: Sequence[LabelRequirement],
    labels: Mapping[str, str],
    machines: Sequence[Machine],
) -> tuple[Machine, Mapping[str, str]] | None:
    """Return the cheapest machine for a NodeClaim with these labels, and the labels of its node."""
    allowed = combine(requirements)
    fitting = (
        (machine, found)
        for machine in machines
        if all(labels.get(key, value) == value for key, value in machine.labels.items())
        for found in islice(_labels(machine, allowed, labels, {}), 1)
    )
    return min(fitting, key=lambda each: _by_price(each[0]), default=None)


def _by_price(machine: Machine) -> tuple[bool, float, str]:
    return machine.price is None, machine.price or 0.0, machine.name


def _labels(
    machine: Machine, allowed: Mapping[str, Allowed], fixed: Mapping[str, str], choices: Choices
) -> Iterator[dict[str, str]]:
    """Yield the labels that a node of the machine can have."""
    known = {**machine.labels, **fixed}
    decided = {key: each for key, each in allowed.items() if key in known}
    if first_mismatch(decided, known) is not None:
        return
    own = {ZONE: machine.zones, CAPACITY_TYPE: machine.capacity_types}
    values: list[Sequence[str | None]] = []
    keys = [key for key in dict.fromkeys((*allowed, *own)) if key not in known]
    for key in keys:
        limits = allowed.get(key, Allowed())
        named = [each for each in sorted(choices.get(key, ())) if limits.admits(each)]
        # A pool can list zones of its own, but no capacity types.
        if key == CAPACITY_TYPE or (key == ZONE and limits.values is None):
            offered = [each for each in own[key] if limits.admits(each)]
            values.append([each for each in offered if each in named] or offered[:1])
        else:
            values.append(named or _usual_values(limits))
    for chosen in product(*values):
        pairs = zip(keys, chosen, strict=True)
        yield {**known, **{key: value for key, value in pairs if value is not None}}


def _usual_values(limits: Allowed) -> Sequence[str | None]:
    """Return one value for a label that no pod asks for; None leaves the label out."""
    listed = limits.list_values()
    if listed:
        return listed[:1]
    if limits.may_be_absent:
        return (None,)
    bound = limits.low if limits.low is not None else limits.high
    return (str(bound),) if bound is not None and limits.admits(str(bound)) else ()


def choices_of(pods: Iterable[Pod], zones: Collection[str]) -> dict[str, set[str]]:
    """Return the labels that pods ask for, with values; all zones if they spread over zones."""
    found: dict[str, set[str]] = {}
    for pod in pods:
        spec = pod.spec
        for key, value in spec.node_selector.items():
            found.setdefault(key, set()).add(value)
        affinity = spec.affinity
        if affinity is not None and affinity.node_affinity is not None:
            required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
            for term in required.node_selector_terms if required is not None else ():
                for each in term.match_expressions:
                    values = each.values if each.operator == "In" else ()
                    found.setdefault(each.key, set()).update(values)
        looks_around = affinity is not None and (
            affinity.pod_affinity or affinity.pod_anti_affinity
        )
        if looks_around or any(e.topology_key == ZONE for e in spec.topology_spread_constraints):
            found.setdefault(ZONE, set()).update(zones)
    return found
