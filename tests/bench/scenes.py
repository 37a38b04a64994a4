"""
The cases that are timed: what clusters do all day, and what brings a search to its knees.

Typical scenes have 500 devices and selectors as people write them. Adversarial ones are small
and look harmless, but an exhaustive search needs more steps than there are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Json: TypeAlias = "dict[str, Any]"

GPU = "gpu.example.com"
NIC = "nic.example.com"
ATTRIBUTES = f'device.attributes["{GPU}"]'
CAPACITY = f'device.capacity["{GPU}"]'
ROOT = "topology.example.com/root"

FEATURES = [
    "AdminAccess",
    "ConsumableCapacity",
    "DeviceBindingAndStatus",
    "DeviceTaints",
    "PartitionableDevices",
    "PrioritizedList",
]

# The API server takes no more in one slice; half as many when devices draw on counters.
SLICE_DEVICES_MAX = 128


@dataclass(frozen=True, slots=True)
class Scene:
    """A case with a name."""

    name: str
    case: Json


def typical() -> Iterator[Scene]:
    """500 devices, and one claim as people write it."""
    yield from _by_attributes()
    yield from _by_features()


def _by_attributes() -> Iterator[Scene]:
    full = f'{ATTRIBUTES}.model == "h100" && {CAPACITY}.memory.compareTo(quantity("80Gi")) >= 0'
    late = [_gpu(n, model="h100" if n > 450 else "a100") for n in range(500)]
    yield Scene("one of 500, by model and memory", _case(late, [_request(1, full)]))
    spread = [_gpu(n, root=n % 60) for n in range(500)]
    match = {"constraints": [{"matchAttribute": ROOT}]}
    yield Scene("8 of 500 under one root", _case(spread, [_request(8, full)], **match))
    newer = f'{ATTRIBUTES}.firmware.isGreaterThan(semver("1.4.0"))'
    versions = [_gpu(n, firmware=f"1.{n % 8}.0") for n in range(500)]
    busy = [_identity(f"gpu-{n}") for n in range(450)]
    yield Scene(
        "4 of 500 by firmware, 450 in use",
        {**_case(versions, [_request(4, newer)]), "allocatedDevices": busy},
    )
    nics = [_nic(n, root=200 + n) for n in range(250)]
    gpus = [_gpu(n, root=n) for n in range(250)]
    pair = [_request(1, name="gpu"), _request(1, name="nic", device_class="nic")]
    both = _case(gpus, pair, **match)
    both["slices"] += _slices(nics, NIC)
    yield Scene("a GPU and a NIC under one root", both)


def _by_features() -> Iterator[Scene]:
    devices = [_gpu(n, model="l4") for n in range(500)]
    choice = {
        "name": "gpu",
        "firstAvailable": [
            {"name": model, **_exactly(2, f'{ATTRIBUTES}.model == "{model}"')}
            for model in ("h200", "h100", "l4")
        ],
    }
    yield Scene("third choice of three", _case(devices, [choice]))
    shared = [{**_gpu(n), "allowMultipleAllocations": True} for n in range(500)]
    taken = [{**_identity(f"gpu-{n}"), "consumed": {"memory": "60Gi"}} for n in range(480)]
    wants = _request(1, capacity={"requests": {"memory": "40Gi"}})
    yield Scene(
        "a share of 40Gi, most devices taken",
        {**_case(shared, [wants]), "allocatedCapacity": taken},
    )
    parts = [_part(n, {"memory": "10Gi"}, counter_set=f"card-{n // 7 % 8}") for n in range(500)]
    sets = {f"card-{n}": {"memory": "80Gi"} for n in range(8)}
    yield Scene("4 partitions of 500", _counted(parts, sets, [_request(4)]))
    tainted = [
        {**_gpu(n), "taints": [{"key": "hot", "effect": "NoSchedule"}] if n < 490 else []}
        for n in range(500)
    ]
    yield Scene("2 of 500, 490 tainted", _case(tainted, [_request(2)]))


def adversarial() -> Iterator[Scene]:
    """Small cases for which an exhaustive search has no end."""
    yield Scene("32 of 31", _case(_gpus(31), [_request(32)]))
    yield Scene("16 and 16 of 31", _case(_gpus(31), [_request(16, name=n) for n in "ab"]))
    yield from _overflowing()
    yield from _counters()
    yield from _distinct()
    groups = [_gpu(n, root=n % 2) for n in range(46)]
    match = {"constraints": [{"matchAttribute": ROOT}]}
    yield Scene("24 under one root of 23", _case(groups, [_request(24)], **match))
    claims = _case(_gpus(11), [_request(1)])
    [claim] = claims["claims"]
    claims["claims"] = [{**claim, "metadata": {"name": f"claim-{n}"}} for n in range(12)]
    yield Scene("12 claims, 11 devices", claims)


def _overflowing() -> Iterator[Scene]:
    """Prioritized lists whose alternatives do not fit into a claim, or into the pool."""

    def lists(*choices: tuple[int, ...]) -> list[Json]:
        return [
            {
                "name": f"r{n}",
                "firstAvailable": [
                    {"name": f"take-{count}", **_exactly(count)} for count in counts
                ],
            }
            for n, counts in enumerate(choices)
        ]

    yield Scene("lists that overflow 32", _case(_gpus(40), lists(*[(8, 6, 4)] * 8)))
    yield Scene("lists that overflow the pool", _case(_gpus(23), lists(*[(4, 3)] * 8)))
    yield Scene("lists, then one too many", _case(_gpus(16), [*lists(*[(4, 2)] * 4), _request(9)]))


def _counters() -> Iterator[Scene]:
    """Counter sets where only one combination of partitions works, or none does."""
    weights = [7] * 18 + [3] * 6
    parts = [_part(n, {"memory": str(w)}) for n, w in enumerate(weights)]
    yield Scene(
        "one combination of partitions", _counted(parts, {"card": {"memory": "24"}}, [_request(6)])
    )
    yield Scene(
        "no combination of partitions", _counted(parts, {"card": {"memory": "24"}}, [_request(7)])
    )
    # The two counters pull in opposite directions; only the balanced choice fits.
    pulls = [(n % 6 + 1, 6 - n % 6) for n in range(24)]
    parts = [_part(n, {"memory": str(a), "slices": str(b)}) for n, (a, b) in enumerate(pulls)]
    both = {"card": {"memory": "34", "slices": "35"}}
    yield Scene("two counters against each other", _counted(parts, both, [_request(10)]))


def _distinct() -> Iterator[Scene]:
    """Requests that must all differ, where there is one value too few, or just enough."""
    requests = [_request(1, name=f"r{n}") for n in range(8)]
    distinct = {"constraints": [{"distinctAttribute": ROOT}]}
    seven = [_gpu(n, root=n % 7) for n in range(28)]
    yield Scene("8 distinct of 7 values", _case(seven, requests, **distinct))
    two = [_gpu(n, root=n % 2) for n in range(60)]
    several = [_request(6, name="six"), _request(12, name="twelve")]
    yield Scene("6 and 12 distinct of 2 values", _case(two, several, **distinct))
    hidden = [_gpu(n, root=0 if n < 20 else n - 19) for n in range(27)]
    yield Scene("8 distinct, just enough", _case(hidden, requests, **distinct))


# How a case is put together.


def _case(devices: list[Json], requests: list[Json], **claim: Any) -> Json:
    return {
        "features": FEATURES,
        "classes": [_class("gpu", GPU), _class("nic", NIC)],
        "slices": _slices(devices, GPU),
        "claims": [
            {"metadata": {"name": "claim"}, "spec": {"devices": {"requests": requests, **claim}}}
        ],
        "node": {"metadata": {"name": "node-1"}},
    }


def _counted(devices: list[Json], sets: dict[str, dict[str, str]], requests: list[Json]) -> Json:
    case = _case(devices, requests)
    slices = _slices(devices, GPU, size=64, extra=1)
    counters = _slice("counters", GPU, len(slices) + 1)
    counters["spec"]["sharedCounters"] = [
        {"name": name, "counters": _values(counters)} for name, counters in sets.items()
    ]
    return {**case, "slices": [counters, *slices]}


def _slices(
    devices: list[Json], driver: str, *, size: int = SLICE_DEVICES_MAX, extra: int = 0
) -> list[Json]:
    chunks = [devices[start : start + size] for start in range(0, len(devices), size)]
    made = []
    for number, chunk in enumerate(chunks):
        one = _slice(f"slice-{number}", driver, len(chunks) + extra)
        one["spec"]["devices"] = chunk
        made.append(one)
    return made


def _slice(name: str, driver: str, count: int) -> Json:
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": count}
    return {
        "metadata": {"name": name},
        "spec": {"driver": driver, "pool": pool, "nodeName": "node-1"},
    }


def _class(name: str, driver: str) -> Json:
    expression = f'device.driver == "{driver}"'
    return {
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def _request(
    count: int, *selectors: str, name: str = "gpu", device_class: str = "gpu", **more: Any
) -> Json:
    exactly = {**_exactly(count, *selectors), "deviceClassName": device_class, **more}
    return {"name": name, "exactly": exactly}


def _exactly(count: int, *selectors: str) -> Json:
    request: Json = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    if selectors:
        request["selectors"] = [{"cel": {"expression": selector}} for selector in selectors]
    return request


def _gpus(count: int) -> list[Json]:
    return [_gpu(n) for n in range(count)]


def _gpu(number: int, *, model: str = "h100", root: int = 0, firmware: str = "1.5.0") -> Json:
    return {
        "name": f"gpu-{number}",
        "attributes": {
            "model": {"string": model},
            "index": {"int": number},
            "ecc": {"bool": True},
            "firmware": {"version": firmware},
            ROOT: {"string": f"pci{root:04}"},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }


def _nic(number: int, *, root: int) -> Json:
    attributes = {"speed": {"int": 400}, ROOT: {"string": f"pci{root:04}"}}
    return {"name": f"nic-{number}", "attributes": attributes}


def _part(number: int, counters: dict[str, str], *, counter_set: str = "card") -> Json:
    consumed = [{"counterSet": counter_set, "counters": _values(counters)}]
    return {**_gpu(number), "consumesCounters": consumed}


def _values(counters: dict[str, str]) -> Json:
    return {name: {"value": value} for name, value in counters.items()}


def _identity(device: str) -> Json:
    return {"driver": GPU, "pool": "node-1", "device": device}
