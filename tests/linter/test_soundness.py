"""
A warning that a claim cannot be served is never wrong.

Lint reasons about supply without searching; the allocator searches. On random worlds, a claim
for which the allocator finds devices must not be called hopeless, and no device may come from
a pool that lint calls unusable.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.allocation.generate import cases

from dryrack.allocation import AllocationError, Features
from dryrack.cluster.ports import SeededChance
from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.documents import read
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.linter import lint
from dryrack.placement import Settings, World, what_if

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.linter import Finding
    from dryrack.placement import ClaimAllocation

HOPELESS = frozenset({"DR402", "DR502", "DR503", "DR504", "DR508", "DR509", "DR511"})
UNUSABLE = frozenset({"DR201", "DR202", "DR206", "DR221", "DR222"})
KINDS = (("classes", "DeviceClass"), ("slices", "ResourceSlice"))


def worlds(case: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The objects of a case, once with each of its claims."""
    shared = [
        {"apiVersion": "resource.k8s.io/v1", "kind": kind, **each}
        for key, kind in KINDS
        for each in case[key]
    ]
    node = [{"apiVersion": "v1", "kind": "Node", **case["node"]}] if case.get("node") else []
    for claim in case["claims"]:
        wanted = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **claim}
        yield [*shared, *node, wanted]


def allocated(text: str) -> tuple[ClaimAllocation, ...]:
    """Return the allocation of the claim, or None."""
    found = [typed(document) for document in read(text, "case.json").documents]
    world = World.of(each.object for each in found if isinstance(each, Typed))
    settings = Settings(
        chance=SeededChance(),
        release=DEFAULT_RELEASE,
        features=Features.defaults(),
        node=None,
    )
    try:
        return what_if(world, settings).given
    except AllocationError:
        return ()


def unusable_pools(objects: list[dict[str, Any]], found: tuple[Finding, ...]) -> set[str]:
    named = {finding.object for finding in found if finding.code in UNUSABLE}
    return {
        f"{each['spec']['driver']}/{each['spec']['pool']['name']}"
        for each in objects
        if f"{each['kind']} {each['metadata']['name']}" in named
    }


def test_what_lint_calls_hopeless_the_allocator_cannot_serve() -> None:
    """On random worlds the two never contradict each other, and both have something to say."""
    seen: Counter[str] = Counter()
    for case in cases(seed=36, count=30):
        for objects in worlds(case):
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
            found = lint([("case.json", text.encode())])
            given = allocated(text)
            is_hopeless = any(finding.code in HOPELESS for finding in found)
            pools = {
                f"{result.driver}/{result.pool}"
                for each in given
                for result in each.allocation.devices.results
            }
            seen.update(hopeless=is_hopeless, served=bool(given))

            assert not (is_hopeless and given), case["name"]
            assert not pools & unusable_pools(objects, found), case["name"]
    assert seen["hopeless"] > 2
    assert seen["served"] > 2
