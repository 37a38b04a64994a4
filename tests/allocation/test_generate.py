"""The generator makes the same case for the same seed, and reaches everything there is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.allocation.generate import FEATURES, cases

if TYPE_CHECKING:
    from collections.abc import Iterator

# Every part of a case that the allocator looks at, by the name it has in the API.
PARTS = frozenset(
    [
        "adminAccess",
        "allNodes",
        "allocatedCapacity",
        "allocatedDevices",
        "allocatedSharedDevices",
        "allocationMode",
        "allowMultipleAllocations",
        "attributes",
        "bindingConditions",
        "bindingFailureConditions",
        "bindsToNode",
        "bool",
        "bools",
        "capacity",
        "config",
        "constraints",
        "consumed",
        "consumesCounters",
        "count",
        "default",
        "distinctAttribute",
        "exactly",
        "firstAvailable",
        "int",
        "ints",
        "matchAttribute",
        "matchExpressions",
        "matchFields",
        "max",
        "min",
        "nodeName",
        "nodeSelector",
        "opaque",
        "perDeviceNodeSelection",
        "requests",
        "selectors",
        "sharedCounters",
        "step",
        "string",
        "strings",
        "taints",
        "tolerationSeconds",
        "tolerations",
        "validRange",
        "validValues",
        "version",
        "versions",
    ]
)


def names(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for name, inner in part.items():
            yield name
            yield from names(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from names(inner)


def test_a_seed_and_a_number_make_a_case() -> None:
    """A case can be made again alone, without those before it."""
    stream = list(cases(7, 20))
    [alone] = cases(7, 1, start=13)

    assert alone == stream[13]
    assert len({json.dumps(case) for case in stream}) == 20


def test_everything_is_reached() -> None:
    """Every field and every feature, on and off, occurs in a few hundred cases."""
    drawn = list(cases(1, 400))
    seen = {name for case in drawn for name in names(case)}
    features = [set(case.get("features", ())) for case in drawn]

    assert seen >= PARTS
    assert set.union(*features) == {*FEATURES, "ListTypeAttributes"}
    assert set.intersection(*features) == set()
