"""
Requests that are a little too large: with less CPU or memory, one more pod fits on a node.

Each candidate lowers the requests of all pods of a kind to the largest amount with which a node of
the plan takes one more of them. Whether that makes the plan cheaper is for a new plan to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.kinds.quantity import Format, Quantity
from dryrack.planning.model import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.placement import Member, NodeState

_FORMS = {"cpu": Format.DECIMAL_SI, "memory": Format.BINARY_SI}
# Amounts are rounded down to these: a thousandth of a CPU, and a mebibyte.
_STEPS = {"cpu": 10**6, "memory": 2**20 * 10**9}
# A pod that would need less than that of its request is another pod.
_PART_MIN = 0.5


@dataclass(frozen=True, slots=True)
class Lowering:
    """A workload in which the pods of one kind request less, and the words for it."""

    workload: Workload
    text: str


def lowerings(
    workload: Workload, kind: Sequence[Member], amounts: dict[str, int], states: Sequence[NodeState]
) -> Iterator[Lowering]:
    """Yield the workload with lower requests of the pods of a kind, for each node of the plan."""
    names = {member.name for member in kind}
    seen: set[tuple[str, int]] = set()
    for state in states:
        for resource, form in _FORMS.items():
            wanted = amounts.get(resource, 0)
            room = state.allocatable.get(resource, 0) - state.used.get(resource, 0)
            if not wanted or room < wanted:
                continue
            step = _STEPS[resource]
            lower = room // (room // wanted + 1) // step * step
            if lower < wanted * _PART_MIN or (resource, lower) in seen:
                continue
            seen.add((resource, lower))
            members = tuple(
                _with_less(each, resource, wanted - lower, form) if each.name in names else each
                for each in workload.members
            )
            first = kind[0].name
            now, before = Quantity.of(lower, form), Quantity.of(wanted, form)
            text = f"each pod like {first} requests {now} of {resource} instead of {before}"
            by_name = {each.name: each for each in members}
            gangs = tuple(
                (gang, tuple(by_name[each.name] for each in own)) for gang, own in workload.gangs
            )
            yield Lowering(Workload(members, gangs), text)


def _with_less(member: Member, resource: str, less: int, form: Format) -> Member:
    """Return the pod with less of a resource in the container that requests most of it."""
    spec = member.pod.spec
    requests = [each.resources.requests.get(resource) for each in spec.containers]
    sizes = [0 if each is None else each.nanos for each in requests]
    largest = sizes.index(max(sizes))
    container = spec.containers[largest]
    own = {**container.resources.requests, resource: Quantity.of(sizes[largest] - less, form)}
    lowered = changed(container, resources=changed(container.resources, requests=own))
    containers = (*spec.containers[:largest], lowered, *spec.containers[largest + 1 :])
    pod = changed(member.pod, spec=changed(spec, containers=containers))
    return type(member)(pod, member.wanted, member.allocated, member.extended)
