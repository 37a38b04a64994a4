"""Questions about fields that need a feature gate, for a server on which all the gates are on."""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING, Any

from tests.kinds.validation import documents
from tests.kinds.validation.mutators import (
    EXPRESSIONS,
    LABELS,
    NOTHING,
    QUALIFIED,
    QUANTITIES,
    fill,
    lists,
    mutator,
    rename,
    sets,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.kinds.validation.documents import Document
    from tests.kinds.validation.mutators import Mutator

GATES = {
    "DRADerivedAttributes": True,
    "DRADeviceCompatibilityGroups": True,
    "DRAFractionalCapacityRange": True,
    "DRAListTypeAttributes": True,
    "DRANodeAllocatableResources": True,
    "DRAOptionalNodeOperations": True,
    "DRAPartitionableDevicesType": True,
    "DRAResourcePoolStatus": True,
}
MUTATIONS_MAX = 3

_PARTITION = "gpu.example.com/partition"
_CORES = {
    "mapping": {"capacityKey": "memory", "capacityMultiplier": "2"},
    "overhead": {"perPod": "1", "perContainer": "100m"},
}


def _slice() -> Document:
    made = copy.deepcopy(documents.SLICES[0])
    spec = made["spec"]
    spec["partitionTypeAttribute"] = _PARTITION
    spec["skipNodeOperations"] = ["NodePrepareResources", "NodeUnprepareResources"]
    gpu = spec["devices"][0]
    gpu["attributes"] |= {
        "partition": {"string": "large"},
        "models": {"strings": ["a", "b"]},
        "sizes": {"ints": [1, 2]},
    }
    gpu["consumesCounters"][0]["compatibilityGroups"] = ["small", "large"]
    gpu["nodeAllocatableResources"] = {
        "cpu": copy.deepcopy(_CORES),
        "memory": {"mapping": {"deviceMultiplier": "1Gi"}},
    }
    return made


def _spec() -> Document:
    spec: Document = copy.deepcopy(documents.CLAIM_SPEC)
    derived = [{"name": "gpu.example.com/numa", "expression": "1"}]
    requests = spec["devices"]["requests"]
    requests[0]["exactly"]["derivedAttributes"] = copy.deepcopy(derived)
    requests[1]["firstAvailable"][0]["derivedAttributes"] = copy.deepcopy(derived)
    return spec


_SLICE = _slice()
_CLAIM = {**copy.deepcopy(documents.CLAIMS[0]), "spec": _spec()}
_TEMPLATE = copy.deepcopy(documents.TEMPLATES[0])
_TEMPLATE["spec"]["spec"] = _spec()
_RESULTS = "status.allocation.devices.results"
_OPERATIONS: tuple[Any, ...] = (
    *(NOTHING, [], ["*"], ["NodePrepareResources"], ["NodeUnprepareResources"], [""], ["all"]),
    *(["NodePrepareResources", "*"], ["*", "*"], ["NodeUnprepareResources", "None"]),
)


def _of_slices() -> Iterator[Mutator]:
    kind = "ResourceSlice"
    device = "spec.devices.*"
    resources = f"{device}.nodeAllocatableResources"
    groups = f"{device}.consumesCounters.*.compatibilityGroups"
    policy = f"{device}.capacity.*.requestPolicy"
    amounts = (*QUANTITIES, "1500u", "100.5", "0.25", "9223372036854775807", "18446744073709551616")
    lists_of = {"bools": True, "ints": 1, "strings": "a" * 65, "versions": "1.0"}
    yield from sets(
        kind,
        {
            "spec.partitionTypeAttribute": (*QUALIFIED, NOTHING, "gpu.example.com/model"),
            "spec.skipNodeOperations": _OPERATIONS,
            f"{device}.attributes.partition": ({"int": 1}, NOTHING, {"string": ""}),
            f"{device}.consumesCounters": (NOTHING, []),
            f"{groups}.*": LABELS,
            groups: (NOTHING, [], ["a", "a"], ["A", "A", "b"]),
            resources: (NOTHING, {}, {"cpu": {}}, {"example.com/a": {"overhead": {}}}),
            f"{resources}.*": ({}, {"mapping": {}}, {"overhead": {}}),
            f"{resources}.*.mapping.capacityKey": ("", "memory", "none", NOTHING, "a" * 80),
            f"{resources}.*.mapping.capacityMultiplier": (*QUANTITIES, NOTHING),
            f"{resources}.*.mapping.deviceMultiplier": (*QUANTITIES, NOTHING),
            f"{resources}.*.overhead.perPod": (*QUANTITIES, NOTHING),
            f"{resources}.*.overhead.perContainer": (*QUANTITIES, NOTHING),
            f"{device}.attributes.*": tuple({name: [each]} for name, each in lists_of.items()),
            f"{device}.allowMultipleAllocations": (True, False, NOTHING),
            f"{device}.capacity.*.value": amounts,
            f"{policy}.default": amounts,
            f"{policy}.validValues": (["1", "1.5"], ["900m", "1"], ["500m", "0.5"], NOTHING),
            f"{policy}.validRange.min": amounts,
            f"{policy}.validRange.max": (*amounts, NOTHING),
            f"{policy}.validRange.step": (*amounts, NOTHING),
        },
    )
    yield from lists(kind, {groups: (2, "a"), f"{device}.attributes.models.strings": (48, "a")})
    names = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "hugepages-", "a/b", "pods", "")
    yield mutator(kind, resources, "key", rename(names, _CORES))
    yield mutator(kind, f"{device}.attributes", "fill", fill((30, 33), {"ints": [1, 2]}))


def _of_claims(kind: str, spec: str) -> Iterator[Mutator]:
    requests = f"{spec}.devices.requests.*"
    for where in (f"{requests}.exactly", f"{requests}.firstAvailable.*"):
        derived = f"{where}.derivedAttributes"
        one = {"name": "gpu.example.com/index", "expression": "device.driver"}
        yield from sets(
            kind,
            {
                derived: (NOTHING, [], [{}], [one], [one, one]),
                f"{derived}.*.name": (*QUALIFIED, "gpu.example.com/index"),
                f"{derived}.*.expression": (*EXPRESSIONS, "device.attributes", "[1]", "1.5"),
            },
        )
        yield from lists(kind, {derived: (32, one)})
    constraints = f"{spec}.devices.constraints"
    yield from sets(
        kind,
        {
            constraints: (NOTHING, [{"matchAttribute": "gpu.example.com/numa"}]),
            f"{constraints}.*.requests": (NOTHING, ["one"], ["either"], ["either/big"]),
            f"{constraints}.*.matchAttribute": (NOTHING, "gpu.example.com/numa", "a", ""),
            f"{constraints}.*.distinctAttribute": (NOTHING, "gpu.example.com/index", "a", ""),
        },
    )


MUTATORS = {
    "ResourceSlice": tuple(_of_slices()),
    "ResourceClaim": tuple(_of_claims("ResourceClaim", "spec")),
    "ResourceClaimTemplate": tuple(_of_claims("ResourceClaimTemplate", "spec.spec")),
    "status": tuple(
        sets("ResourceClaim/status", {f"{_RESULTS}.*.skipNodeOperations": _OPERATIONS})
    ),
}


def questions(count: int, *, seed: int) -> Iterator[dict[str, Any]]:
    """Yield so many questions; the same seed asks the same ones."""
    chance = Random(seed)
    for _ in range(count):
        yield _question(chance)


def _question(chance: Random) -> dict[str, Any]:
    if chance.random() < 0.1:
        old = documents.stored(_CLAIM)
        new = {**copy.deepcopy(old), "status": copy.deepcopy(documents.STATUS)}
        return {"object": _spoiled(chance, new, "status"), "old": old, "subresource": "status"}
    base = chance.choice((_SLICE, _SLICE, _CLAIM, _TEMPLATE))
    if chance.random() < 0.6:
        return {"object": _spoiled(chance, copy.deepcopy(base), base["kind"])}
    old = documents.stored(base)
    if chance.random() < 0.5:
        _spoiled(chance, old, base["kind"])
    return {"object": _spoiled(chance, copy.deepcopy(old), base["kind"]), "old": old}


def _spoiled(chance: Random, document: Document, kind: str) -> Document:
    for _ in range(chance.randint(0, MUTATIONS_MAX)):
        chance.choice(MUTATORS[kind]).apply(chance, document)
    return document
