"""
Ways to spoil a document, as a table.

Every mutator changes one place that a pattern names. A pattern is a path in which `*` is any entry
of a list or map; a place that is not there is made, if all but its last step is. What it changes
to comes from a pool of values at, below and above the limits of the API.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from tests.kinds.validation.documents import Document

    Mutate = Callable[[Random, Any, Any], None]


class _Nothing:
    """Stands for a field that is not there."""


NOTHING = _Nothing()

LABELS = (
    *("", "a", "0", "A", "a.b", "a_b", "-a", "a-", "a--b", "a b", "a/b", "ü", "a\n", 'q"q'),
    *("a" * 63, "a" * 64, "a" * 253, "a" * 254, "-" * 70, "\u0130", "<a&b>", "a\x00b", "\u2028"),
)
SUBDOMAINS = (
    *LABELS,
    "a.b.c",
    "a..b",
    ".a",
    "a.",
    "A.b",
    f"{'a' * 63}.{'b' * 63}",
    "a" * 62 + ".b",
)
DRIVERS = (*SUBDOMAINS, "Gpu.Example.COM", "karpenter.sh/dra-kwok-driver", "\u212a.com")
POOLS = (*SUBDOMAINS, "a/b", "a//b", "/a", "a/", "a/b/c/d", "/".join(["a" * 100] * 3), "a/B")
KEYS = (
    *LABELS,
    *("a/b", "a/b/c", "/a", "a/", "A/b", "example.com/A_b.c", "x_", f"{'a' * 253}/b"),
    *(f"{'a' * 254}/b", f"a/{'b' * 63}", f"a/{'b' * 64}", "Example.com/x", "é/x"),
)
LABEL_VALUES = ("", "a", "A_b.c", "-a", "a-", "a" * 63, "a" * 64, "ü", "a b", "a/b")
QUALIFIED = (
    *("a", "a_b", "_", "1a", "compute-capability", "", "a.b", "A" * 32, "A" * 33, "ü" * 16),
    *("d.com/a", "d/a", "D.com/a", "/a", "d/", "/", "a/b/c", f"{'d' * 63}/{'a' * 32}"),
    *(f"{'d' * 64}/a", f"d/{'a' * 33}", "d_d/a", f"{'d' * 80}/{'a' * 80}", "d/a-b", "d/1"),
)
QUANTITIES = (
    *("0", "1", "2", "3", "4", "5Gi", "10Gi", "15Gi", "40Gi", "41Gi", "80Gi", "81Gi", "1k", "-1"),
    *("100m", "1500m", "0.5", "1e3", "9E", "1n", "8Ei", "7", "2.0", "1024Mi"),
)
COUNTS = (-(2**63), -1, 0, 1, 2, 2**31, 2**63 - 1)
FLAGS = (True, False, NOTHING)
TEXTS_64 = ("", "x", "x" * 64, "x" * 65, "é" * 32, "é" * 33)
VERSIONS = (
    *("1.2.3", "1.2", "v1.2.3", "01.2.3", "1.2.3-01", "1.2.3-0a", "1.2.3+", "", "1.2.3+é"),
    *("1.0.0-" + "a" * 58, "1.0.0-" + "a" * 59, "1.2.3-a..b", "1.2.3 ", "1.2.3\n", "\u0661.2.3"),
)
EFFECTS = ("NoSchedule", "NoExecute", "None", "", "noschedule", "PreferNoSchedule", "<&>")
OPERATORS = ("Exists", "Equal", "", "exists", "In")
NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "", "in", "Equal")
NODE_VALUES: tuple[list[str], ...] = ([], ["a"], ["a", "b"], ["-"], ["a" * 64], ["1", "ü"], ["A"])
MODES = ("", "All", "ExactCount", "all", "Exactly")
REFERENCES = (
    *("one", "either", "either/big", "either/none", "one/x", "none", "a/b/c", "", "/", "One"),
    *("either/", "/big", "a" * 64),
)
GOOD_EXPRESSION = "device.driver == 'd'"
BAD_EXPRESSIONS = ("", "true +", "device.nothing", "1", "'a'")
COSTLY_EXPRESSIONS = (
    (
        "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c,"
        " [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f,"
        " [1,2,3,4,5,6,7,8,9,10].all(g, a+b+c+d+e+f+g > 0)))))))"
    ),
)
LONG_EXPRESSIONS = ("true" + " " * (10 * 1024 - 4), "true" + " " * (10 * 1024 - 3))
EXPRESSIONS = (GOOD_EXPRESSION, "true", *BAD_EXPRESSIONS, *COSTLY_EXPRESSIONS, *LONG_EXPRESSIONS)
PARAMETERS: tuple[Any, ...] = (
    *(NOTHING, None, {}, {"a": None}, [], [1], "text", 3, True, {"a": "x" * (10 * 1024 - 8)}),
    *({"a": "x" * (10 * 1024 - 7)}, "x" * (10 * 1024 - 1), {"ü": "ü" * 2000}),
)
UIDS = (
    *("0b6bd9d4-0e3c-44c4-a3c4-0e8a3c0a6c55", "0B6BD9D4-0e3c-44c4-a3c4-0e8a3c0a6c55", "", "x"),
    *("urn:uuid:0b6bd9d4-0e3c-44c4-a3c4-0e8a3c0a6c55", "{0b6bd9d4-0e3c-44c4-a3c4-0e8a3c0a6c55}"),
    *("0b6bd9d40e3c44c4a3c40e8a3c0a6c55", "0b6bd9d40e3c44c4a3c40e8a3c0a6cXX", "x" * 36, "x" * 45),
    *("x" * 38, "0b6bd9d4-0e3c-44c4-a3c4-0e8a3c0a6c5g", "0b6bd9d4-0e3c44c4--a3c4-0e8a3c0a6c55"),
)
ADDRESSES = (
    *("10.9.8.7/24", "10.9.8.7", "010.9.8.7/24", "10.9.8.7/33", "10.9.8.7/024", "2001:db8::1/64"),
    *("2001:DB8::1/64", "2001:0db8::1/64", "::ffff:1.2.3.4/120", "::ffff:1.2.3.4/24", "::/0"),
    *("::1/129", "fe80::1%eth0/64", "", "/24", "10.9.8.7/", "10.9.8.7/-1", "1.2.3/8", "x/8"),
    *("1:2:3:4:5:6:7:8/1", "1:0:0:2:0:0:0:3/8", "::00001/8", "::1.2.3.04/128", "1::2::3/8"),
)
STATUSES = ("True", "False", "Unknown", "", "true")
REASONS = ("A", "a_b", "A:B,C", "", "1a", "a:", "é", "a" * 1024, "a" * 1025)
BAD_TIMES = (
    *("yesterday", "", 5, "2026-02-30T00:00:00Z", "2026-01-02", "2026-01-02T03:04:05"),
    *("2026-01-02 03:04:05Z", "2026-01-02T24:00:00Z"),
)
GOOD_TIMES = (
    *("2026-01-02T03:04:05.5+01:00", "2024-02-29T3:04:05Z", "0000-02-29T00:00:00Z"),
    *("2026-01-02T03:04:05,123456789-24:59", "0001-01-01T00:00:00Z"),
)
TIMES = ("2026-01-02T03:04:05Z", NOTHING, None, "0001-01-01T00:00:00Z", *BAD_TIMES)
GENERATE_NAMES = ("a-", "a", "A-", "-", "a" * 58, "a" * 70, "a.-", "a" * 260, "a/b", "a%b", "ü-")
NAMESPACES = ("default", "", "a" * 63, "a" * 64, "A", "a.b", NOTHING)
FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes", "x", "a/b", "a/b/c", "", "-", "a" * 64)
WRONG_TYPES: tuple[Any, ...] = (5, "text", True, [], {}, 1.5, "1", None)


@dataclass(frozen=True)
class Mutator:
    """One way to spoil documents of one kind."""

    name: str
    kind: str
    pattern: tuple[str, ...]
    mutate: Mutate

    def apply(self, chance: Random, document: Document) -> bool:
        """Change one place at random; whether there was one."""
        places = list(_places(document, self.pattern))
        if not places:
            return False
        self.mutate(chance, *chance.choice(places))
        return True


def _places(value: Any, pattern: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
    """Containers and keys that the pattern leads to."""
    head = pattern[0]
    rest = pattern[1:]
    keys: list[Any]
    if isinstance(value, dict):
        keys = list(value) if head == "*" else [head]
    elif isinstance(value, list):
        keys = list(range(len(value))) if head == "*" else []
    else:
        return
    for key in keys:
        if not rest:
            yield value, key
        elif isinstance(value, list) or key in value:
            yield from _places(value[key], rest)


def _set(pool: tuple[Any, ...]) -> Mutate:
    def mutate(chance: Random, container: Any, key: Any) -> None:
        value = copy.deepcopy(chance.choice(pool))
        if isinstance(value, _Nothing):
            if isinstance(container, list) or key in container:
                del container[key]
        else:
            container[key] = value

    return mutate


def rename(pool: tuple[str, ...], value: Any) -> Mutate:
    """A new key in a map, for what another key had or for a value."""

    def mutate(chance: Random, container: Any, key: Any) -> None:
        entries = container.setdefault(key, {})
        if isinstance(entries, dict):
            had = entries.pop(chance.choice(sorted(entries)), value) if entries else value
            entries[chance.choice(pool)] = copy.deepcopy(had)

    return mutate


def _count(counts: tuple[int, ...], sample: Any) -> Mutate:
    """A list of so many entries, alike but for what must differ."""

    def mutate(chance: Random, container: Any, key: Any) -> None:
        given = container.get(key)
        entries = given if isinstance(given, list) and given else [sample]
        container[key] = [_numbered(entries[0], i) for i in range(chance.choice(counts))]

    return mutate


def _numbered(entry: Any, number: int) -> Any:
    if isinstance(entry, str):
        return f"{entry[:50]}{number}"
    numbered = copy.deepcopy(entry)
    for name in ("name", "uid", "counterSet", "type"):
        if isinstance(numbered, dict) and isinstance(numbered.get(name), str):
            numbered[name] = f"{numbered[name][:50]}{number}"
    return numbered


def fill(counts: tuple[int, ...], value: Any) -> Mutate:
    """A map of so many entries."""

    def mutate(chance: Random, container: Any, key: Any) -> None:
        container[key] = {f"k{i}": copy.deepcopy(value) for i in range(chance.choice(counts))}

    return mutate


def _twice(chance: Random, container: Any, key: Any) -> None:
    """One entry of a list again."""
    entries = container.get(key)
    if isinstance(entries, list) and entries:
        entries.append(copy.deepcopy(chance.choice(entries)))


def _reversed(chance: Random, container: Any, key: Any) -> None:
    if isinstance(container.get(key), list):
        container[key].reverse()


def mutator(kind: str, path: str, how: str, mutate: Mutate) -> Mutator:
    return Mutator(f"{kind}:{path}:{how}", kind, tuple(path.split(".")), mutate)


def sets(kind: str, pools: dict[str, tuple[Any, ...]]) -> Iterator[Mutator]:
    for path, pool in pools.items():
        yield mutator(kind, path, "set", _set(pool))


def lists(kind: str, limits: dict[str, tuple[int, Any]]) -> Iterator[Mutator]:
    for path, (limit, sample) in limits.items():
        counts = (0, 1, limit - 1, limit, limit + 1)
        yield mutator(kind, path, "count", _count(counts, sample))
        yield mutator(kind, path, "twice", _twice)


def _requirements(prefix: str) -> dict[str, tuple[Any, ...]]:
    terms = f"{prefix}.nodeSelectorTerms"
    return {
        prefix: (NOTHING, {}, {"nodeSelectorTerms": []}, {"nodeSelectorTerms": [{}]}),
        terms: ([], [{}], [{}, {}], NOTHING),
        f"{terms}.*.matchExpressions.*.key": KEYS,
        f"{terms}.*.matchExpressions.*.operator": NODE_OPERATORS,
        f"{terms}.*.matchExpressions.*.values": NODE_VALUES,
        f"{terms}.*.matchFields.*.key": ("metadata.name", "metadata.namespace", ""),
        f"{terms}.*.matchFields.*.operator": NODE_OPERATORS,
        f"{terms}.*.matchFields.*.values": (*NODE_VALUES, ["a.b"], ["a" * 254]),
    }


def _metadata(kind: str) -> Iterator[Mutator]:
    yield from sets(
        kind,
        {
            "metadata.name": (*SUBDOMAINS, NOTHING, ".", "..", "a%b"),
            "metadata.generateName": GENERATE_NAMES,
            "metadata.namespace": NAMESPACES,
            "metadata.generation": (-1, 0, 5),
            "metadata.uid": ("x", NOTHING),
            "metadata.creationTimestamp": ("2020-01-01T00:00:00Z", NOTHING),
            "metadata.deletionTimestamp": ("2026-01-01T00:00:00Z", NOTHING),
            "metadata.deletionGracePeriodSeconds": (0, 30, NOTHING),
            "metadata.labels.app": LABEL_VALUES,
            "metadata.finalizers.*": FINALIZERS,
            "metadata.annotations.big": ("x" * (256 * 1024 - 30), "x" * (256 * 1024 + 1)),
            "metadata.ownerReferences.*.apiVersion": ("v1", "", "apps/v1", "a/b/c", "apps/", "/"),
            "metadata.ownerReferences.*.kind": ("", "Event"),
            "metadata.ownerReferences.*.name": ("",),
            "metadata.ownerReferences.*.uid": ("",),
        },
    )
    yield from lists(kind, {"metadata.finalizers": (2, "a/b"), "metadata.ownerReferences": (2, {})})
    yield mutator(kind, "metadata.labels", "key", rename(KEYS, "x"))
    yield mutator(kind, "metadata.annotations", "key", rename(KEYS, "x"))
    yield mutator(kind, "metadata.finalizers", "both", _set((["orphan", "foregroundDeletion"],)))


def _device_pools(device: str, policy: str) -> dict[str, tuple[Any, ...]]:
    return {
        f"{device}.name": LABELS,
        f"{device}.nodeName": (*SUBDOMAINS, NOTHING),
        f"{device}.allNodes": FLAGS,
        f"{device}.allowMultipleAllocations": FLAGS,
        f"{device}.attributes.*": (
            *({}, {"int": 1, "bool": True}, {"ints": [1]}, {"strings": []}, {"bool": False}),
            *({"versions": ["1.0.0"], "int": 1}, {"string": "x", "version": "x"}),
        ),
        f"{device}.attributes.*.string": TEXTS_64,
        f"{device}.attributes.*.version": VERSIONS,
        f"{device}.nodeAllocatableResourceMappings": ({"cpu": {}}, {"a/b": {}}),
        f"{device}.bindingConditions": (NOTHING, ["a"], ["example.com/failed"]),
        f"{device}.bindingFailureConditions": (NOTHING, ["a"], ["a", "b", "a"]),
        f"{device}.bindingConditions.*": KEYS,
        f"{device}.taints.*.key": KEYS,
        f"{device}.taints.*.value": LABEL_VALUES,
        f"{device}.taints.*.effect": EFFECTS,
        f"{device}.taints.*.timeAdded": (*GOOD_TIMES, *BAD_TIMES),
        f"{device}.consumesCounters.*.counterSet": LABELS,
        f"{device}.consumesCounters.*.counters": (NOTHING, {}),
        "spec.sharedCounters.*.name": LABELS,
        "spec.sharedCounters.*.counters": (NOTHING, {}),
        f"{device}.capacity.*.value": QUANTITIES,
        policy: (NOTHING, {}, {"default": "1"}, {"validValues": ["1"]}, {"validRange": {}}),
        f"{policy}.default": (*QUANTITIES, NOTHING),
        f"{policy}.validValues": (["1", "2"], ["2", "1"], ["1", "1"], ["900m", "1"], []),
        f"{policy}.validValues.*": QUANTITIES,
        f"{policy}.validRange": (NOTHING, {"min": "1"}, {"max": "1"}),
        f"{policy}.validRange.min": (*QUANTITIES, NOTHING),
        f"{policy}.validRange.max": (*QUANTITIES, NOTHING),
        f"{policy}.validRange.step": (*QUANTITIES, NOTHING),
    }


def _slices() -> Iterator[Mutator]:
    kind = "ResourceSlice"
    device = "spec.devices.*"
    policy = f"{device}.capacity.*.requestPolicy"
    yield from _metadata(kind)
    yield from sets(
        kind,
        {
            "spec.driver": DRIVERS,
            "spec.pool": (NOTHING, {}),
            "spec.pool.name": POOLS,
            "spec.pool.generation": COUNTS,
            "spec.pool.resourceSliceCount": COUNTS,
            "spec.nodeName": (*SUBDOMAINS, NOTHING),
            "spec.allNodes": FLAGS,
            "spec.perDeviceNodeSelection": FLAGS,
            "spec.devices": (NOTHING, [{"name": "a"}], [{}], []),
            "spec.sharedCounters": (NOTHING, []),
            **_requirements("spec.nodeSelector"),
            **_requirements(f"{device}.nodeSelector"),
            **_device_pools(device, policy),
        },
    )
    yield from lists(
        kind,
        {
            "spec.devices": (64, {"name": "d"}),
            f"{device}.taints": (16, {"key": "a", "effect": "None"}),
            f"{device}.bindingConditions": (4, "a"),
            f"{device}.bindingFailureConditions": (4, "a"),
            f"{device}.consumesCounters": (2, {"counterSet": "c"}),
            "spec.sharedCounters": (8, {"name": "c", "counters": {"x": {"value": "1"}}}),
            f"{policy}.validValues": (10, "1"),
        },
    )
    plain = (127, 128, 129)
    yield mutator(kind, "spec.devices", "plain", _count_of(plain, {"name": "d"}))
    counters = (31, 32, 33)
    for path in (f"{device}.consumesCounters.*.counters", "spec.sharedCounters.*.counters"):
        yield mutator(kind, path, "fill", fill(counters, {"value": "1"}))
        yield mutator(kind, path, "key", rename(LABELS, {"value": "1"}))
    for path, value in (("attributes", {"int": 1}), ("capacity", {"value": "1"})):
        some = fill((27, 28, 29, 30, 31, 32, 33, 49), value)
        yield mutator(kind, f"{device}.{path}", "fill", some)
        yield mutator(kind, f"{device}.{path}", "key", rename(QUALIFIED, value))
    yield mutator(kind, f"{policy}.validValues", "reversed", _reversed)


def _count_of(counts: tuple[int, ...], sample: Any) -> Mutate:
    def mutate(chance: Random, container: Any, key: Any) -> None:
        container[key] = [_numbered(sample, i) for i in range(chance.choice(counts))]

    return mutate


def _claim_spec(kind: str, spec: str) -> Iterator[Mutator]:
    claim = f"{spec}.devices"
    request = f"{claim}.requests.*"
    sub = f"{claim}.requests.*.firstAvailable.*"
    asked: dict[str, tuple[Any, ...]] = {}
    for where in (f"{request}.exactly", sub):
        asked |= {
            f"{where}.deviceClassName": (*SUBDOMAINS, NOTHING),
            f"{where}.selectors.*": ({}, {"cel": {}}, {"cel": None}),
            f"{where}.selectors.*.cel.expression": EXPRESSIONS,
            f"{where}.allocationMode": (*MODES, NOTHING),
            f"{where}.count": (*COUNTS, NOTHING),
            f"{where}.tolerations.*.key": KEYS,
            f"{where}.tolerations.*.operator": OPERATORS,
            f"{where}.tolerations.*.value": LABEL_VALUES,
            f"{where}.tolerations.*.effect": EFFECTS,
        }
    yield from sets(
        kind,
        {
            **asked,
            f"{request}.exactly.adminAccess": FLAGS,
            f"{request}.name": LABELS,
            f"{request}.exactly": (NOTHING, {}, {"deviceClassName": "x"}),
            f"{request}.firstAvailable": (NOTHING, [], [{}], [{"name": "a"}]),
            f"{sub}.name": LABELS,
            f"{claim}.constraints.*.requests": ([], NOTHING, ["one", "one"]),
            f"{claim}.constraints.*.requests.*": REFERENCES,
            f"{claim}.constraints.*.matchAttribute": (*QUALIFIED, NOTHING),
            f"{claim}.constraints.*.distinctAttribute": (*QUALIFIED, NOTHING),
            f"{claim}.config.*.requests.*": REFERENCES,
            f"{claim}.config.*.opaque": (NOTHING, {}),
            f"{claim}.config.*.opaque.driver": DRIVERS,
            f"{claim}.config.*.opaque.parameters": PARAMETERS,
        },
    )
    selector = {"cel": {"expression": "true"}}
    yield from lists(
        kind,
        {
            f"{claim}.requests": (32, {"name": "r", "exactly": {"deviceClassName": "c"}}),
            f"{claim}.constraints": (32, {"matchAttribute": "a/b"}),
            f"{claim}.constraints.*.requests": (32, "one"),
            f"{claim}.config": (32, {"opaque": {"driver": "d", "parameters": {}}}),
            f"{claim}.config.*.requests": (32, "one"),
            f"{request}.firstAvailable": (8, {"name": "s", "deviceClassName": "c"}),
            f"{request}.exactly.selectors": (32, selector),
            f"{sub}.selectors": (32, selector),
            f"{request}.exactly.tolerations": (16, {"operator": "Exists"}),
        },
    )


def _claim_status() -> Iterator[Mutator]:
    kind = "ResourceClaim/status"
    results = "status.allocation.devices.results"
    result = f"{results}.*"
    config = "status.allocation.devices.config.*"
    device = "status.devices.*"
    condition = "status.devices.*.conditions.*"
    named = {
        f"{where}.{field}": pool
        for where in (result, device)
        for field, pool in (
            ("driver", DRIVERS),
            ("pool", POOLS),
            ("device", LABELS),
            ("shareID", (*UIDS, NOTHING)),
        )
    }
    yield from sets(
        kind,
        {
            **named,
            **_requirements("status.allocation.nodeSelector"),
            "status.allocation": (NOTHING, {}),
            "status.allocation.allocationTimestamp": (*GOOD_TIMES, *BAD_TIMES),
            f"{result}.request": REFERENCES,
            f"{result}.adminAccess": FLAGS,
            f"{result}.bindingConditions": (NOTHING, [], ["a"]),
            f"{result}.bindingConditions.*": KEYS,
            f"{result}.bindingFailureConditions": (NOTHING, ["example.com/ready"]),
            f"{config}.source": ("FromClass", "FromClaim", "", "fromclass", NOTHING),
            f"{config}.requests.*": REFERENCES,
            f"{config}.opaque": (NOTHING, {}),
            f"{config}.opaque.driver": DRIVERS,
            f"{config}.opaque.parameters": PARAMETERS,
            "status.reservedFor": (NOTHING, []),
            "status.reservedFor.*.resource": ("", "pods"),
            "status.reservedFor.*.name": ("", "x"),
            "status.reservedFor.*.uid": ("", "u1", "new"),
            f"{device}.data": PARAMETERS,
            f"{device}.networkData.interfaceName": ("", "x" * 256, "x" * 257, "é" * 129),
            f"{device}.networkData.hardwareAddress": ("", "x" * 128, "x" * 129),
            f"{device}.networkData.ips.*": ADDRESSES,
            **_condition(condition),
        },
    )
    address = "10.0.0.1/8"
    yield from lists(
        kind,
        {
            results: (32, {}),
            "status.allocation.devices.config": (64, {"source": "FromClaim"}),
            "status.reservedFor": (256, {"resource": "pods", "name": "p", "uid": "u"}),
            "status.devices": (2, {}),
            f"{device}.conditions": (8, {"type": "t"}),
            f"{device}.networkData.ips": (16, address),
            f"{result}.bindingConditions": (4, "a"),
            f"{result}.bindingFailureConditions": (4, "a"),
            f"{config}.requests": (32, "one"),
        },
    )


def _condition(path: str) -> dict[str, tuple[Any, ...]]:
    return {
        f"{path}.type": KEYS,
        f"{path}.status": STATUSES,
        f"{path}.observedGeneration": (-1, 0, 1),
        f"{path}.lastTransitionTime": TIMES,
        f"{path}.reason": REASONS,
        f"{path}.message": ("", "x" * 32 * 1024, "x" * (32 * 1024 + 1)),
    }


def _others() -> Iterator[Mutator]:
    yield from _metadata("ResourceClaim/status")
    yield from _metadata("DeviceTaintRule/status")
    yield from sets("DeviceTaintRule/status", _condition("status.conditions.*"))
    yield from lists("DeviceTaintRule/status", {"status.conditions": (8, {"type": "t"})})
    yield from _metadata("DeviceClass")
    yield from sets(
        "DeviceClass",
        {
            "spec.selectors.*": ({}, {"cel": {}}, {"cel": None}),
            "spec.selectors.*.cel.expression": EXPRESSIONS,
            "spec.config.*.opaque": (NOTHING, {}),
            "spec.config.*.opaque.driver": DRIVERS,
            "spec.config.*.opaque.parameters": PARAMETERS,
            "spec.extendedResourceName": (
                *(
                    NOTHING,
                    "",
                    "gpu",
                    "example.com/gpu",
                    "kubernetes.io/x",
                    "requests.a/b",
                    "a/b/c",
                ),
                *("sub.kubernetes.io/x", f"a/{'b' * 63}", f"a/{'b' * 64}", f"{'a' * 244}/b"),
                *(f"{'a' * 245}/b", "A/b", "a/-"),
            ),
        },
    )
    config = {"opaque": {"driver": "d", "parameters": {}}}
    selector = {"cel": {"expression": "true"}}
    yield from lists("DeviceClass", {"spec.selectors": (32, selector), "spec.config": (32, config)})
    yield from _metadata("DeviceTaintRule")
    yield from sets(
        "DeviceTaintRule",
        {
            "spec.deviceSelector": (NOTHING, {}, {"driver": ""}),
            "spec.deviceSelector.driver": (*DRIVERS, NOTHING),
            "spec.deviceSelector.pool": (*POOLS, NOTHING),
            "spec.deviceSelector.device": (*LABELS, NOTHING),
            "spec.taint": (NOTHING, {}),
            "spec.taint.key": KEYS,
            "spec.taint.value": LABEL_VALUES,
            "spec.taint.effect": EFFECTS,
        },
    )


def _templates() -> Iterator[Mutator]:
    kind = "ResourceClaimTemplate"
    yield from _metadata(kind)
    yield from _claim_spec(kind, "spec.spec")
    yield from sets(
        kind,
        {
            "spec.metadata.name": ("x", ""),
            "spec.metadata.namespace": ("x",),
            "spec.metadata.generateName": ("x",),
            "spec.metadata.uid": ("x",),
            "spec.metadata.resourceVersion": ("1",),
            "spec.metadata.generation": (1, 0, -1),
            "spec.metadata.creationTimestamp": ("2026-01-01T00:00:00Z", None),
            "spec.metadata.deletionTimestamp": ("2026-01-01T00:00:00Z",),
            "spec.metadata.deletionGracePeriodSeconds": (0, 1),
            "spec.metadata.finalizers": (["a/b"], []),
            "spec.metadata.ownerReferences": ([{"name": "x"}], []),
            "spec.metadata.labels.x": LABEL_VALUES,
        },
    )
    yield mutator(kind, "spec.metadata.labels", "key", rename(KEYS, "x"))
    yield mutator(kind, "spec.metadata.annotations", "key", rename(KEYS, "x"))


def _pods() -> Iterator[Mutator]:
    used = "spec.containers.*.resources.claims"
    yield from sets(
        "Pod",
        {
            "spec.resourceClaims.*.name": (*LABELS, "gpu", "nic"),
            "spec.resourceClaims.*.resourceClaimName": (*SUBDOMAINS, NOTHING),
            "spec.resourceClaims.*.resourceClaimTemplateName": (*SUBDOMAINS, NOTHING),
            "spec.resourceClaims": (NOTHING, []),
            f"{used}.*.name": ("gpu", "nic", "", "none", "A"),
            f"{used}.*.request": ("one", "two", "", "A", NOTHING, "a" * 64),
            "spec.initContainers.*.resources.claims.*.name": ("gpu", "", "none"),
        },
    )
    yield from lists("Pod", {"spec.resourceClaims": (2, {}), used: (3, {"name": "gpu"})})


# Values of a wrong type are no validation error: the request is refused before.
def _types() -> Iterator[Mutator]:
    for kind, paths in {
        "ResourceSlice": (
            "spec.driver",
            "spec.pool",
            "spec.pool.generation",
            "spec.devices",
            "spec.devices.*.attributes.*.int",
            "spec.devices.*.attributes.*.string",
            "spec.devices.*.capacity.*.value",
            "spec.allNodes",
        ),
        "ResourceClaim": (
            "spec.devices.requests.*.exactly.count",
            "spec.devices.requests.*.exactly.tolerations.*.tolerationSeconds",
            "spec.devices.constraints.*.matchAttribute",
            "metadata.labels.app",
        ),
    }.items():
        for path in paths:
            yield mutator(kind, path, "type", _set(WRONG_TYPES))


MUTATORS: tuple[Mutator, ...] = (
    *_slices(),
    *_metadata("ResourceClaim"),
    *_claim_spec("ResourceClaim", "spec"),
    *_claim_status(),
    *_templates(),
    *_others(),
    *_pods(),
    *_types(),
)
