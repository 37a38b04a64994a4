"""
Random hardware: pools of slices with devices.

Everything is drawn from small vocabularies, so that devices often agree in what constraints
and selectors look at, pools are often nearly complete, and counters are often nearly spent:
a search has something to do there. A little of everything that the API server would refuse
is mixed in, because the allocator has an answer to that too.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from random import Random

Json: TypeAlias = "dict[str, Any]"

GPU = "gpu.example.com"
NIC = "nic.example.com"
NODE = "node-1"
OTHER_NODE = "node-2"
NODE_LABELS = {"zone": "a", "rack": "r1", "generation": "5"}
POOL_NAMES = ("alpha", "beta", "gamma")
TAINT_KEYS = ("unhealthy", "maintenance")
COUNTERS = ("memory", "slices")
MEMORY = ("20Gi", "40Gi", "80Gi")


@dataclass(frozen=True, slots=True)
class Traits:
    """The subjects of a case; each switches on parts that other cases do not have."""

    counters: bool
    sharing: bool
    taints: bool
    binding: bool
    lists: bool
    blemishes: bool
    # A long search over few pools that are all in reach.
    dense: bool
    # Counter sets that are the same but for their names, as of several cards of one kind.
    cards: bool = False
    # So many devices that the limit of 32 results comes into play.
    crowd: bool = False


@dataclass(slots=True)
class Maker:
    """Draws hardware from one source of chance, and remembers the devices it made."""

    chance: Random
    traits: Traits
    devices: list[tuple[str, str, Json]] = field(default_factory=list)

    def often(self, probability: float) -> bool:
        return self.chance.random() < probability

    def blemish(self, probability: float) -> bool:
        return self.traits.blemishes and self.often(probability)

    def slices(self) -> list[Json]:
        """The slices of one to three pools, in no particular order."""
        names = self.chance.sample(POOL_NAMES, self.chance.choice((1, 1, 2, 2, 3)))
        made = [one for name in names for one in self._pool(name)]
        self.chance.shuffle(made)
        for number, one in enumerate(made):
            # Slices are tried in the order of their names, not of their arrival.
            one["metadata"] = {"name": f"{self.chance.choice('abc')}-{number}"}
        return made

    def _pool(self, name: str) -> list[Json]:
        driver = GPU if self.often(0.85) else NIC
        generation = self.chance.randint(1, 2)
        sets = self._counter_sets() if self.traits.counters and self.often(0.8) else []
        bodies = [{"devices": made} for made in self._devices(sets)]
        if self.traits.cards:
            sets, bodies = self._cards()
        if sets:
            bodies += self._counter_bodies(sets)
        place = self._place()
        count = len(bodies) + (self.chance.choice((-1, 1)) if self.blemish(0.12) else 0)
        pool = {"name": name, "generation": generation, "resourceSliceCount": count}
        slices = [self._slice(driver, pool, body, place) for body in bodies]
        self._remember(driver, name, slices)
        if self.blemish(0.15):
            slices.append(self._straggler(driver, pool))
        return slices

    def _slice(self, driver: str, pool: Json, body: Json, place: Json) -> Json:
        where = self._place() if self.often(0.15) else place
        spec = {"driver": driver, "pool": pool, **copy.deepcopy(where), **body}
        if where.get("perDeviceNodeSelection"):
            for device in body.get("devices", ()):
                device.update(self._device_place())
        return {"spec": spec}

    def _straggler(self, driver: str, pool: Json) -> Json:
        """A slice of another generation of the pool."""
        generation = pool["generation"] + self.chance.choice((-1, -1, 1))
        other = {**pool, "generation": generation}
        return self._slice(driver, other, {"devices": [self._device(0, [])]}, self._place())

    def _remember(self, driver: str, pool: str, slices: list[Json]) -> None:
        for one in slices:
            for device in one["spec"].get("devices", ()):
                self.devices.append((driver, pool, device))

    # Where a slice or a device is.

    def _place(self) -> Json:
        kind = self.chance.random() * (0.76 if self.traits.dense else 1.0)
        if kind < 0.5:
            return {"nodeName": NODE}
        if kind < 0.76:
            return {"allNodes": True}
        if kind < 0.88:
            return {"nodeSelector": self._node_selector()}
        if kind < 0.97:
            return {"perDeviceNodeSelection": True}
        return {"nodeName": OTHER_NODE} if not self.blemish(0.3) else {}

    def _device_place(self) -> Json:
        kind = self.chance.random()
        if kind < 0.35:
            return {"nodeName": NODE}
        if kind < 0.65:
            return {"allNodes": True}
        if kind < 0.85:
            return {"nodeSelector": self._node_selector()}
        return {"nodeName": OTHER_NODE} if not self.blemish(0.2) else {}

    def _node_selector(self) -> Json:
        if self.blemish(0.04):
            return {"nodeSelectorTerms": [self._term(), self._term()]}
        if self.blemish(0.02):
            return {"nodeSelectorTerms": []}
        return {"nodeSelectorTerms": [self._term()]}

    def _term(self) -> Json:
        if self.often(0.15):
            name = {"key": "metadata.name", "operator": "In", "values": [NODE]}
            return {"matchFields": [name]}
        return {"matchExpressions": [self._requirement() for _ in range(self._few(1, 2))]}

    def _requirement(self) -> Json:
        if self.blemish(0.03):
            return {"key": "zone", "operator": self.chance.choice(("In", "Gt", "Near"))}
        key, operator, values = self.chance.choice(
            (
                ("zone", "In", ["a"]),
                ("zone", "In", ["a"]),
                ("zone", "In", ["b", "a"]),
                ("zone", "In", ["a", "b"]),
                ("zone", "NotIn", ["b"]),
                ("zone", "In", ["b"]),
                ("rack", "Exists", None),
                ("cabinet", "DoesNotExist", None),
                ("cabinet", "NotIn", ["c"]),
                ("generation", "Gt", ["3"]),
                ("generation", "Lt", ["9"]),
                ("generation", "Lt", ["3"]),
            )
        )
        requirement: Json = {"key": key, "operator": operator}
        return {**requirement, "values": values} if values else requirement

    # Counters.

    def _counter_sets(self) -> list[Json]:
        return [
            {
                "name": f"set-{number}",
                "counters": self._counters(("2", "3", "4", "7", "2500m", "1Gi")),
            }
            for number in range(self._few(1, 2))
        ]

    def _counters(self, values: tuple[str, ...]) -> Json:
        names = self.chance.sample(COUNTERS, self._few(1, 2))
        return {name: {"value": self.chance.choice(values)} for name in names}

    def _counter_bodies(self, sets: list[Json]) -> list[Json]:
        if self.blemish(0.06):
            return [{"sharedCounters": sets}, {"sharedCounters": sets[:1]}]
        if len(sets) > 1 and self.often(0.4):
            return [{"sharedCounters": sets[:1]}, {"sharedCounters": sets[1:]}]
        return [{"sharedCounters": sets}]

    def _consumption(self, sets: list[Json]) -> list[Json]:
        if self.blemish(0.02):
            unknown = {"name": "set-9", "counters": {"memory": {"value": "1"}}}
            sets = [*sets, self.chance.choice((unknown, {**sets[0], "counters": {"odd": {}}}))]
        return [
            {
                "counterSet": one["name"],
                "counters": {
                    name: {"value": self.chance.choice(("0", "1", "1", "1500m", "2", "3"))}
                    for name in one["counters"]
                },
            }
            for one in self.chance.sample(sets, self._few(1, min(2, len(sets))))
        ]

    # Devices.

    def _cards(self) -> tuple[list[Json], list[Json]]:
        """Two to four cards with the same partitions, nearly all alike."""
        [model] = self._counter_sets()[:1]
        models = [self._device(0, [model]) for _ in range(self._few(1, 3))]
        sets: list[Json] = []
        devices: list[Json] = []
        for number in range(self._few(2, 4)):
            sets.append({**copy.deepcopy(model), "name": f"card-{number}"})
            for partition in copy.deepcopy(models):
                for consumed in partition.get("consumesCounters", ()):
                    consumed["counterSet"] = f"card-{number}"
                devices.append({**partition, "name": f"dev-{len(devices)}"})
        if self.often(0.3):
            self.chance.shuffle(devices)
        return sets, [{"devices": devices}]

    def _devices(self, sets: list[Json]) -> list[list[Json]]:
        """Devices of one to three slices; many are alike, as in a real machine."""
        models = [self._device(0, sets) for _ in range(self._few(1, 3))]
        slices: list[list[Json]] = []
        number = 0
        for _ in range(self._few(1, 3)):
            made = []
            usual = (8, 10, 14) if self.traits.crowd else (0, 1, 2, 3, 3, 4, 5, 6)
            for _ in range(self.chance.choice(usual)):
                alike = self.often(0.8)
                device = copy.deepcopy(self.chance.choice(models)) if alike else {}
                made.append({**(device or self._device(0, sets)), "name": f"dev-{number}"})
                number += 0 if self.blemish(0.015) else 1
            slices.append(made)
        return slices

    def _device(self, number: int, sets: list[Json]) -> Json:
        device: Json = {"name": f"dev-{number}", "attributes": self._attributes()}
        if self.traits.sharing and self.often(0.5):
            device["allowMultipleAllocations"] = self.often(0.9)
        if self.traits.sharing or self.often(0.3):
            device["capacity"] = self._capacity(device.get("allowMultipleAllocations", False))
        if sets and self.often(0.8):
            device["consumesCounters"] = self._consumption(sets)
        if self.traits.taints and self.often(0.3):
            device["taints"] = [self._taint() for _ in range(self._few(1, 2))]
        if self.traits.binding and self.often(0.3):
            device["bindingConditions"] = ["dryrack.dev/attached"]
            device["bindingFailureConditions"] = ["dryrack.dev/lost"]
            device["bindsToNode"] = self.often(0.5)
        return device

    def _attributes(self) -> Json:
        drawn: Json = {
            "model": {"string": self.chance.choice(("h100", "h100", "a100", "l4"))},
            "numa": {"int": self.chance.randint(0, 2)},
            "ecc": {"bool": self.often(0.6)},
            "firmware": {"version": self.chance.choice(("1.2.3", "1.10.0", "2.0.0-rc.1"))},
            "topology.example.com/root": {"string": self.chance.choice(("r1", "r2"))},
            f"{GPU}/slot": {"int": self.chance.randint(0, 3)},
        }
        if self.traits.lists and self.often(0.7):
            drawn["links"] = self._list()
        if self.blemish(0.01):
            drawn["numa"] = {}
        kept = 1.0 if self.traits.dense else self.chance.choice((0.7, 1.0, 1.0))
        return {name: value for name, value in drawn.items() if self.often(kept)}

    def _list(self) -> Json:
        return self.chance.choice(
            (
                {"ints": self.chance.sample((1, 2, 3, 4), self._few(1, 3))},
                {"strings": self.chance.sample(("r1", "r2", "r3"), self._few(1, 2))},
                {"bools": self.chance.sample((True, False), self._few(1, 2))},
                {"versions": self.chance.sample(("1.2.3", "1.10.0"), self._few(1, 2))},
                {"int": 1},
            )
        )

    def _capacity(self, shared: bool) -> Json:
        memory: Json = {"value": self.chance.choice(MEMORY)}
        bandwidth: Json = {"value": self.chance.choice(("10", "100", "2500m"))}
        if shared or self.often(0.1):
            memory.update(self._memory_policy())
            bandwidth.update(self._bandwidth_policy())
        drawn = {"memory": memory, "bandwidth": bandwidth}
        return {name: value for name, value in drawn.items() if self.often(0.9)}

    def _memory_policy(self) -> Json:
        return self.chance.choice(
            (
                {},
                {"requestPolicy": {"default": "10Gi"}},
                {"requestPolicy": {"default": "5Gi", "validValues": ["5Gi", "10Gi", "40Gi"]}},
                {
                    "requestPolicy": {
                        "default": "4Gi",
                        "validRange": {"min": "2Gi", "max": "40Gi", "step": "2Gi"},
                    }
                },
                {"requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "max": "10Gi"}}},
                {"requestPolicy": {"default": "3Gi", "validRange": {"min": "1Gi"}}},
            )
        )

    def _bandwidth_policy(self) -> Json:
        return self.chance.choice(
            (
                {},
                {"requestPolicy": {"default": "1"}},
                {"requestPolicy": {"default": "2", "validRange": {"min": "2", "step": "3"}}},
                {"requestPolicy": {"default": "1", "validValues": ["1", "2500m", "10"]}},
            )
        )

    def _taint(self) -> Json:
        effects = ("NoSchedule", "NoSchedule", "NoExecute", "None", "Future")
        taint = {"key": self.chance.choice(TAINT_KEYS), "effect": self.chance.choice(effects)}
        return {**taint, "value": "yes"} if self.often(0.5) else taint

    def _few(self, low: int, high: int) -> int:
        return self.chance.randint(low, high)
