"""
Nodes on which a search may end in an error.

kube-scheduler gives up a pod if the allocator reports an error on any node that it looks at, even
if the pod fits on others. The common error is a selector that fails at run time, and it can be
found without a search, because verdicts of selectors are remembered. So are derived attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dryrack.allocation.demand.requests import asks_of
from dryrack.allocation.model.errors import AllocationError
from dryrack.cel.selectors import SelectorFailure
from dryrack.kinds.resource import DeviceAttribute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dryrack.allocation.model.features import Features
    from dryrack.allocation.supply.pools import Pool, PooledDevice
    from dryrack.cel import DerivedTable
    from dryrack.cel.selectors import SelectorTable
    from dryrack.kinds.core import Node
    from dryrack.kinds.releases import AllocationBehaviour
    from dryrack.kinds.resource import DeviceClass, ResourceClaim

# The selectors of a class, those of a request, the expressions of its derived attributes, and
# whether the request is for all devices.
_Chain: TypeAlias = "tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], bool]"
_Key: TypeAlias = "frozenset[_Chain]"
# Claims come from few templates at a time.
_KEYS_MAX = 64


class Doubts:
    """The nodes on which a search may end in an error, for the latest claims."""

    def __init__(
        self,
        selectors: SelectorTable,
        derived: DerivedTable,
        pools: Callable[[Node], Sequence[Pool]],
    ) -> None:
        self._selectors = selectors
        self._derived = derived
        self._pools = pools
        # With the pools of that time: a change of the node's devices makes new pools.
        self._known: dict[_Key, dict[str, tuple[Sequence[Pool], bool]]] = {}
        self._answers: dict[_Key, tuple[object, tuple[Node, ...]]] = {}

    def doubtful_nodes(
        self,
        key: _Key,
        nodes: Callable[[], Iterable[Node]],
        *,
        enough: int,
        version: object,
    ) -> tuple[Node, ...]:
        """
        Return the nodes on which a search may end in an error.

        It is empty if there are `enough` others. The answer is the same for an equal `version`.
        """
        answer = self._answers.get(key)
        if answer is not None and answer[0] == version:
            return answer[1]
        known = self._known.setdefault(key, {})
        doubtful: list[Node] = []
        for node in nodes():
            pools = self._pools(node)
            before = known.get(node.metadata.name)
            if before is None or before[0] is not pools:
                before = known[node.metadata.name] = (pools, self._may_fail(key, pools))
            if before[1]:
                doubtful.append(node)
                continue
            enough -= 1
            if not enough:
                doubtful.clear()
                break
        if len(self._answers) >= _KEYS_MAX and key not in self._answers:
            oldest = next(iter(self._answers))
            del self._answers[oldest]
            self._known.pop(oldest, None)
        self._answers[key] = (version, tuple(doubtful))
        return tuple(doubtful)

    def _may_fail(self, key: _Key, pools: Sequence[Pool]) -> bool:
        for chain in key:
            for pool in pools:
                if chain[3] and (pool.incomplete or pool.invalid):
                    return True
                if any(self._fails(chain, device) for device in pool.devices):
                    return True
        return False

    def _fails(self, chain: _Chain, device: PooledDevice) -> bool:
        shape = device.shape
        for selectors in chain[:2]:
            if not selectors:
                continue
            verdict = self._selectors.verdicts(selectors).get(shape)
            if verdict is None:
                verdict = self._selectors.judge(selectors, shape)
            if isinstance(verdict, SelectorFailure):
                return True
            if not verdict:
                return False
        return any(
            not isinstance(self._derived.attribute(each, shape), DeviceAttribute)
            for each in chain[2]
        )


def chains_of(
    claims: Sequence[ResourceClaim],
    classes: Mapping[str, DeviceClass],
    features: Features,
    behaviour: AllocationBehaviour,
) -> _Key:
    """Return the selectors that decide; nothing for claims that fail on every node alike."""
    chains: set[_Chain] = set()
    try:
        for claim in claims:
            for request in claim.spec.devices.requests:
                for draft in asks_of(claim, request, classes):
                    ask = draft.check(features, behaviour)
                    derived = tuple(ask.derived.values())
                    chains.add((ask.class_selectors, ask.selectors, derived, ask.takes_all))
    except AllocationError:
        # The search on the first node reports it.
        return frozenset()
    return frozenset(chains)
