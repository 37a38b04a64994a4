"""
Random cases for the allocator, each the same for the same seed.

A case is what the oracle and the conformance files use: features, classes, slices, claims, a
node, and what is in use. `generate` draws one; `cases` draws a numbered stream of them, in
which any case can be made again from the seed of the stream and its number alone.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from tests.allocation.generate_slices import (
    GPU,
    NIC,
    NODE,
    NODE_LABELS,
    TAINT_KEYS,
    Json,
    Maker,
    Traits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

FEATURES = (
    "AdminAccess",
    "ConsumableCapacity",
    "DeviceBindingAndStatus",
    "DeviceTaints",
    "PartitionableDevices",
    "PrioritizedList",
)

# The real allocator searches exponentially; larger cases show nothing new.
TIMEOUT_SECONDS = 0.3

SAFE_SELECTORS = (
    f'device.driver == "{GPU}"',
    f'device.driver == "{GPU}" || device.driver == "{NIC}"',
    f'"model" in device.attributes["{GPU}"] && device.attributes["{GPU}"].model == "h100"',
    f'device.attributes["{GPU}"].?numa.orValue(0) >= 1',
    f'cel.bind(a, device.attributes["{GPU}"], !("ecc" in a) || a.ecc == true)',
    f'device.attributes["{GPU}"].exists(name, name == "slot")',
    f'device.capacity["{GPU}"].all(c, device.capacity["{GPU}"][c].isGreaterThan(quantity("5")))',
    'device.attributes["topology.example.com"].?root.orValue("r1").matches("r[12]")',
    "true",
)
RISKY_SELECTORS = (
    f'device.attributes["{GPU}"].model == "h100"',
    f'device.attributes["{GPU}"].numa < 2',
    f'device.attributes["{GPU}"].numa == 1 || device.driver == "{NIC}"',
    f'device.attributes["{GPU}"].ecc',
    f'device.attributes["{GPU}"].firmware.isLessThan(semver("1.5.0"))',
    f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
    'device.attributes["topology.example.com"].root.startsWith("r")',
    "device.allowMultipleAllocations",
    f'device.attributes["{GPU}"].links.includes(1)',
    f'device.attributes["{GPU}"].links.exists(l, l == "r1")',
    "false",
)
BROKEN_SELECTORS = ("device.drive", "device.driver ==", "1 + 1")

CONSTRAINED = (
    f"{GPU}/model",
    f"{GPU}/numa",
    f"{GPU}/slot",
    f"{GPU}/ecc",
    f"{GPU}/firmware",
    "topology.example.com/root",
)


def cases(seed: int, count: int, *, start: int = 0) -> Iterator[Json]:
    """Cases `start` to `start + count` of the stream that the seed names."""
    for number in range(start, start + count):
        yield {"name": f"{seed}:{number}", **generate(Random(f"{seed}:{number}"))}


def generate(chance: Random) -> Json:
    """One case, decided by `chance` alone."""
    features = _features(chance)
    traits = _traits(chance, lists="ListTypeAttributes" in features)
    if chance.random() < 0.25:
        # Nothing decides early here, so that the search itself is what is compared.
        features = [*FEATURES, *(["ListTypeAttributes"] if traits.lists else [])]
        traits = replace(traits, dense=True, blemishes=False, binding=False)
        traits = replace(traits, cards=chance.random() < 0.25, crowd=chance.random() < 0.06)
    maker = Maker(chance, traits)
    slices = maker.slices()
    claims = _Claims(maker, features)
    case: Json = {
        "features": features,
        "classes": claims.classes(),
        "slices": slices,
        "claims": claims.claims(),
        "node": {"metadata": {"name": NODE, "labels": NODE_LABELS}},
        **_in_use(maker),
        "timeoutSeconds": TIMEOUT_SECONDS,
    }
    return {name: part for name, part in case.items() if part != []}


def _features(chance: Random) -> list[str]:
    if chance.random() < 0.6:
        enabled = list(FEATURES)
    else:
        enabled = [name for name in FEATURES if chance.random() < 0.7]
    return [*enabled, "ListTypeAttributes"] if chance.random() < 0.15 else enabled


def _traits(chance: Random, *, lists: bool) -> Traits:
    return Traits(
        counters=chance.random() < 0.35,
        sharing=chance.random() < 0.35,
        taints=chance.random() < 0.25,
        binding=chance.random() < 0.2,
        lists=chance.random() < (0.8 if lists else 0.03),
        blemishes=chance.random() < 0.25,
        dense=False,
    )


def _in_use(maker: Maker) -> Json:
    """Return the use by others: whole devices, shares of devices, and capacity of shared ones."""
    chance = maker.chance
    exclusive: list[Json] = []
    shares: list[Json] = []
    capacity: list[Json] = []
    taken = chance.choice((0.0, 0.1, 0.3))
    for driver, pool, device in maker.devices:
        identity: Json = {"driver": driver, "pool": pool, "device": device["name"]}
        if chance.random() >= taken:
            continue
        if not device.get("allowMultipleAllocations") or maker.blemish(0.1):
            exclusive.append(identity)
            continue
        shares.append({**identity, "shareID": f"00000000-0000-4000-8000-{len(shares):012}"})
        if device.get("capacity") and not maker.blemish(0.1):
            capacity.append({**identity, "consumed": _consumed(chance, device["capacity"])})
    if maker.blemish(0.3):
        exclusive.append({"driver": GPU, "pool": "alpha", "device": "gone"})
    return {
        "allocatedDevices": exclusive,
        "allocatedSharedDevices": shares,
        "allocatedCapacity": capacity,
    }


def _consumed(chance: Random, capacity: Json) -> Json:
    amounts = {"memory": ("5Gi", "30Gi", "40Gi"), "bandwidth": ("1", "2500m", "9")}
    return {name: chance.choice(amounts[name]) for name in capacity}


class _Claims:
    """Draws classes and claims for the hardware that a maker has made."""

    def __init__(self, maker: Maker, features: list[str]) -> None:
        self._maker = maker
        self._chance = maker.chance
        self._dense = maker.traits.dense
        # To ask for what is switched off ends a case at once, so few do.
        self._asks = {name for name in FEATURES if name in features or self._often(0.15)}
        self._counts: tuple[int, ...] = self._chance.choice(
            ((1,), (1, 1, 1, 2), (1, 1, 2, 2, 3, 4))
        )
        # Selectors that can fail are kept apart: one of them decides the whole case.
        self._risk = self._chance.choice((0.0, 0.0, 0.0, 0.3, 0.6))
        if maker.traits.dense:
            self._risk = self._chance.choice((0.0, 0.0, 0.1))
            self._counts = (2, 6, 8, 12, 16) if maker.traits.crowd else (1, 1, 2, 2, 3)

    def classes(self) -> list[Json]:
        made: list[Json] = [
            {"metadata": {"name": "any"}},
            {
                "metadata": {"name": "gpu"},
                "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}]},
            },
            {"metadata": {"name": "picky"}, "spec": {"selectors": [self._selector()]}},
        ]
        for one in made:
            if self._often(0.3):
                drawn = [self._config(one["metadata"]["name"]) for _ in range(self._few(1, 2))]
                one.setdefault("spec", {})["config"] = drawn
        return made

    def claims(self) -> list[Json]:
        count = self._chance.choice((1, 2) if self._dense else (1, 1, 1, 1, 2, 2, 3))
        return [self._claim(number) for number in range(count)]

    def _claim(self, number: int) -> Json:
        count = self._chance.choice((2, 3) if self._dense else (1, 1, 2, 2, 3))
        requests = [self._request(n) for n in range(count)]
        if self._maker.blemish(0.02):
            requests = []
        names = [request["name"] for request in requests]
        names += [
            f"{request['name']}/{sub['name']}"
            for request in requests
            for sub in request.get("firstAvailable", ())
        ]
        devices: Json = {
            "requests": requests,
            "constraints": self._constraints(names),
            "config": self._claim_configs(names),
        }
        kept = {name: part for name, part in devices.items() if part}
        metadata = {"name": f"claim-{number}"}
        if self._often(0.3):
            metadata["namespace"] = "team"
        return {"metadata": metadata, "spec": {"devices": kept}}

    def _request(self, number: int) -> Json:
        if "PrioritizedList" in self._asks and self._often(0.25):
            subs = [self._exact(sub=True) for _ in range(self._few(1, 3))]
            named = [{"name": f"sub-{n}", **sub} for n, sub in enumerate(subs)]
            return {"name": f"req-{number}", "firstAvailable": named}
        return {"name": f"req-{number}", "exactly": self._exact(sub=False)}

    def _exact(self, *, sub: bool) -> Json:
        request: Json = {"deviceClassName": self._class_name(), **self._amount()}
        selectors = [self._selector() for _ in range(self._chance.choice((0, 0, 1, 1, 2)))]
        if self._maker.blemish(0.01):
            selectors.append({})
        if selectors:
            request["selectors"] = selectors
        if not sub and "AdminAccess" in self._asks and self._often(0.1):
            request["adminAccess"] = self._often(0.8)
        if self._maker.traits.taints and self._often(0.6):
            request["tolerations"] = [self._toleration() for _ in range(self._few(1, 2))]
        shares = self._maker.traits.sharing and "ConsumableCapacity" in self._asks
        if shares and self._often(0.6):
            request["capacity"] = {"requests": self._capacity_requests()}
        return request

    def _class_name(self) -> str:
        if self._maker.blemish(0.02):
            return self._chance.choice(("", "missing"))
        return self._chance.choice(("any", "any", "gpu", "gpu", "picky"))

    def _amount(self) -> Json:
        if not self._dense and self._often(0.12):
            return {"allocationMode": "All"}
        if self._maker.blemish(0.02):
            return {"allocationMode": "Half"}
        count = self._chance.choice(self._counts)
        if self._maker.blemish(0.04):
            count = self._chance.choice((0, 16, 31, 32, 33))
        return {"allocationMode": "ExactCount", "count": count}

    def _selector(self) -> Json:
        expressions: tuple[str, ...] = SAFE_SELECTORS
        if self._often(self._risk):
            expressions = BROKEN_SELECTORS if self._maker.blemish(0.05) else RISKY_SELECTORS
        return {"cel": {"expression": self._chance.choice(expressions)}}

    def _toleration(self) -> Json:
        drawn: Json = {
            "key": self._chance.choice((*TAINT_KEYS, "")),
            "operator": self._chance.choice(("Exists", "Exists", "Equal", "", "Near")),
            "value": self._chance.choice(("yes", "no", "")),
            "effect": self._chance.choice(("", "", "NoSchedule", "NoExecute")),
            "tolerationSeconds": 60 if self._often(0.1) else "",
        }
        return {name: value for name, value in drawn.items() if value != ""}

    def _capacity_requests(self) -> Json:
        drawn = {
            "memory": self._chance.choice(("1Gi", "5Gi", "7Gi", "7516192769", "20Gi", "30Gi")),
            "bandwidth": self._chance.choice(("1", "2", "4", "2500m", "20")),
            "tiles": "1",
        }
        if self._maker.blemish(0.1):
            drawn["memory"] = self._chance.choice(("16Ei", "1e3", "5368709120500m", "-1Gi", "0"))
        likely = {"memory": 0.6, "bandwidth": 0.4, "tiles": 0.04}
        return {name: value for name, value in drawn.items() if self._often(likely[name])}

    def _constraints(self, names: list[str]) -> list[Json]:
        count = self._chance.choice((1, 1, 2, 3) if self._dense else (0, 0, 1, 1, 2))
        return [self._constraint(names) for _ in range(count)]

    def _constraint(self, names: list[str]) -> Json:
        if self._maker.blemish(0.02):
            return {}
        attributes: tuple[str, ...] = CONSTRAINED
        if self._maker.traits.lists:
            attributes = (*CONSTRAINED, f"{GPU}/links", f"{GPU}/links", f"{GPU}/links")
        attribute = "model" if self._maker.blemish(0.03) else self._chance.choice(attributes)
        kind = "matchAttribute" if self._often(0.6) else "distinctAttribute"
        constraint: Json = {kind: attribute}
        if self._maker.blemish(0.05):
            constraint = {"matchAttribute": attribute, "distinctAttribute": attribute}
        return {**constraint, **self._some(names, 0.5)}

    def _claim_configs(self, names: list[str]) -> list[Json]:
        count = self._chance.choice((0, 0, 0, 1, 2))
        return [{**self._config("claim"), **self._some(names, 0.6)} for _ in range(count)]

    def _some(self, names: list[str], probability: float) -> Json:
        """Maybe the names of some requests."""
        if not names or not self._often(probability):
            return {}
        return {"requests": self._chance.sample(names, self._few(1, len(names)))}

    def _config(self, owner: str) -> Json:
        parameters = {"owner": owner, "mode": self._chance.choice(("fast", "safe"))}
        return {"opaque": {"driver": GPU, "parameters": parameters}}

    def _often(self, probability: float) -> bool:
        return self._chance.random() < probability

    def _few(self, low: int, high: int) -> int:
        return self._chance.randint(low, high)
