"""
From chosen devices to the allocation in a claim's status.

Configurations of classes come first, each class once, in the order of the requests; then those
of the claim that are for all requests or for one that was satisfied. The node selector says
where the allocation can be used: on this node only, if any device is tied to it, else wherever
all devices can be reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dryrack.allocation.model.errors import AllocationError
from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dryrack.kinds.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.allocation.search.problem import Problem, RequestRow
    from dryrack.base.ports import Chance
    from dryrack.kinds.releases import AllocationBehaviour
    from dryrack.kinds.resource import DeviceClass, DeviceToleration, ResourceClaim

Picks = list[tuple["RequestRow", int]]


def assemble(
    problem: Problem, picks: Picks, ways: Mapping[int, int], chance: Chance
) -> tuple[AllocationResult, ...]:
    """Return one result per claim, in their order."""
    of_claim: list[Picks] = [[] for _ in problem.claims]
    for row, device in picks:
        of_claim[row.claim].append((row, device))
    chosen: list[list[RequestRow]] = [[] for _ in problem.claims]
    for number, rows in enumerate(problem.requests):
        row = rows[ways.get(number, 0)]
        chosen[row.claim].append(row)
    results: list[AllocationResult] = []
    for index, claim in enumerate(problem.claims):
        devices = DeviceAllocationResult(
            results=tuple([_result(problem, claim, pick, chance) for pick in of_claim[index]]),
            config=_configs(claim, chosen[index], problem.context.behaviour),
        )
        selector = _node_selector(problem, claim, of_claim[index])
        results.append(AllocationResult(devices=devices, node_selector=selector))
    return tuple(results)


def _result(
    problem: Problem, claim: ResourceClaim, pick: tuple[RequestRow, int], chance: Chance
) -> DeviceRequestAllocationResult:
    row, device = pick
    pooled = problem.devices[device]
    shared = problem.shareable(device)
    binding = problem.context.features.device_binding_and_status
    return DeviceRequestAllocationResult(
        request=row.ask.label,
        driver=pooled.slice.spec.driver,
        pool=pooled.slice.spec.pool.name,
        device=pooled.device.name,
        admin_access=True if row.ask.admin else None,
        tolerations=_tolerations(claim, row),
        binding_conditions=pooled.device.binding_conditions if binding else (),
        binding_failure_conditions=pooled.device.binding_failure_conditions if binding else (),
        share_id=chance.uuid() if shared else None,
        consumed_capacity=problem.consumed(row, device) if shared else {},
        skip_node_operations=pooled.slice.spec.skip_node_operations
        if problem.context.features.optional_node_operations
        else (),
    )


def _tolerations(claim: ResourceClaim, row: RequestRow) -> tuple[DeviceToleration, ...]:
    """Return the request's tolerations by name; the first's if two requests have one name."""
    for request in claim.spec.devices.requests:
        if request.name != row.ask.base:
            continue
        if row.ask.parent is None:
            return request.exactly.tolerations if request.exactly else ()
        for subrequest in request.first_available:
            if subrequest.name == row.ask.name:
                return subrequest.tolerations
    return row.ask.tolerations


def _configs(
    claim: ResourceClaim, chosen: Sequence[RequestRow], behaviour: AllocationBehaviour
) -> tuple[DeviceAllocationConfiguration, ...]:
    classes: dict[str, DeviceClass] = {}
    labels: dict[str, list[str]] = {}
    for row in chosen:
        name = row.ask.device_class.metadata.name
        classes.setdefault(name, row.ask.device_class)
        labels.setdefault(name, []).append(row.ask.label)
    configs = [
        DeviceAllocationConfiguration(
            source="FromClass", requests=tuple(labels[name]), opaque=config.opaque
        )
        for name, device_class in classes.items()
        for config in device_class.spec.config
    ]
    for written in claim.spec.devices.config:
        times = sum(_concerns(written.requests, row) for row in chosen)
        if not written.requests:
            times = 1
        elif behaviour.configs_are_merged:
            # Otherwise a configuration is repeated for every request that it names.
            times = min(times, 1)
        from_claim = DeviceAllocationConfiguration(
            source="FromClaim", requests=written.requests, opaque=written.opaque
        )
        configs += [from_claim] * times
    if not behaviour.configs_are_merged:
        return tuple(configs)
    return tuple(
        # A configuration for all requests names none.
        msgspec.structs.replace(config, requests=())
        if config.requests and all(_concerns(config.requests, row) for row in chosen)
        else config
        for config in configs
    )


def _concerns(requests: Sequence[str], row: RequestRow) -> bool:
    return row.ask.base in requests or (row.ask.parent is not None and row.ask.label in requests)


def _node_selector(problem: Problem, claim: ResourceClaim, picks: Picks) -> NodeSelector | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for row, device in picks:
        pooled = problem.devices[device]
        selector = pooled.where.node_selector
        if pooled.is_tied:
            node = problem.sites[row.claim].nodes[0].metadata.name
            name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
        terms = selector.node_selector_terms if selector is not None else ()
        if len(terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim.metadata.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _add_new(there: list[NodeSelectorRequirement], more: Sequence[NodeSelectorRequirement]) -> None:
    """Add the requirements that are not there yet; the order of values does not matter."""
    for requirement in more:
        values = set(requirement.values)
        if not any(
            (each.key, each.operator) == (requirement.key, requirement.operator)
            and set(each.values) == values
            for each in there
        ):
            there.append(requirement)
