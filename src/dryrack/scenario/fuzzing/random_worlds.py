"""
Random scenarios for simulation testing: a fleet, workloads and faults, from a seed.

Invariants hold at every write, and at rest once no fault is in force. The scenario is plain data,
so a failing one can be written to a file and run again.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from dryrack.scenario.fuzzing.random_fleets import FLEETS, claim_template
from dryrack.scenario.fuzzing.random_work import SETTINGS, RandomWork, storage
from dryrack.scenario.fuzzing.refill import WELL_SECONDS, Emptied, everywhere, fabric, refill
from dryrack.scenario.model import API_VERSION, KIND

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.kinds.raw import Raw

# The time from one fault to the next, and how long each lasts.
_STEP_SECONDS = 6.0
_FAULT_SECONDS = (2, 5, 15, 40)
# Drivers and nodes sometimes stay away for longer; all are well again at the end.
_LONG_FAULT = "for 300s"
_REFILLED_SHARE = 0.5
# Claims that only look are for namespaces that may.
_NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default", "labels": {"resource.kubernetes.io/admin-access": "true"}},
}


def random_scenario(seed: int, faults: int) -> Raw:
    """Return the document of a scenario with so many faults."""
    return _Generator(random.Random(seed), faults).document(seed)


class _Generator:
    """Draws one scenario."""

    def __init__(self, chance: random.Random, faults: int) -> None:
        self.chance = chance
        self.faults = faults
        self.nodes = chance.randint(2, 4)
        self.fleet = chance.choice(FLEETS)
        self.claim_specs = self.fleet.claim_specs()
        names = [f"worker-{number}" for number in range(1, self.nodes + 1)]
        self.work = RandomWork(chance, self.fleet, names)
        self.steps: list[Raw] = []
        self.back_at: dict[str, float] = {}

    def document(self, seed: int) -> Raw:
        at = 5.0
        for _ in range(self.faults):
            at += self.chance.expovariate(1 / _STEP_SECONDS)
            self._step(at, fail=self._faults())
            if self.chance.random() < 0.6:
                self._work(at + self.chance.random() * _STEP_SECONDS)
        at += max(_FAULT_SECONDS) + 10
        self._step(at, heal=["all"])
        self._step(at + 1, wait="1s")
        # What is there at the end is looked at in the others.
        if self.chance.random() < _REFILLED_SHARE:
            places = self.nodes * self.fleet.places
            specials = self.nodes * self.fleet.specials or 1
            emptied = Emptied(
                nodes=self.nodes,
                places=places,
                specials=specials,
                daemon_template=self.fleet.daemon_template,
                spec=self.claim_specs["one"],
                has_counters=self.fleet.has_counters,
            )
            for when, action in refill(at, emptied):
                self._step(when, **action)
        else:
            for name in self.work.daemon_sets:
                self._step(at + WELL_SECONDS, expect=[everywhere(name, self.nodes)])
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "title": f"The random scenario of seed {seed}",
            "limit": "24h",
            "fleet": self.fleet.description(self.nodes),
            "objects": [
                _NAMESPACE,
                "podgroups.yaml",
                *fabric(),
                *storage(),
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SETTINGS}},
                {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SETTINGS}},
                *(claim_template(name, spec) for name, spec in self.claim_specs.items()),
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": "urgent"},
                    "value": 1000,
                },
            ],
            "steps": sorted(self.steps, key=lambda step: float(step["at"].rstrip("s"))),
        }

    def _step(self, at: float, **action: Any) -> None:
        self.steps.append({"at": f"{at:.3f}s", **action})

    def _node(self) -> str:
        return f"worker-{self.chance.randint(1, self.nodes)}"

    def _faults(self) -> list[str]:
        kinds: list[tuple[int, Callable[[], str]]] = [
            (6, self._api),
            (3, self._watches),
            (6, self._crash),
            (3, self._node_fault),
            (4, self._device_fault),
            (1, lambda: f"node {self._node()} reboot"),
            (1, lambda: f"pool {self._node()} half"),
        ]
        # No leaked claims: who writes allocations beside a scheduler can take what it is giving.
        weights = [weight for weight, _ in kinds]
        [make] = self.chance.choices([make for _, make in kinds], weights)
        fault = make()
        if not fault.startswith("pool ") or self.chance.random() < 0.5:
            return [fault]
        # A driver that dies while it publishes does not go on at once.
        return [fault, f"node {fault.split()[1]} driver=gone {_LONG_FAULT}"]

    def _for(self) -> str:
        return f"for {self.chance.choice(_FAULT_SECONDS)}s"

    def _api(self) -> str:
        words = [
            f"{name}={self.chance.choice((0.05, 0.2, 0.5))}"
            for name in ("conflicts", "too-many", "errors", "lost-answers")
            if self.chance.random() < 0.4
        ]
        if self.chance.random() < 0.5 or not words:
            words.append(f"latency={self.chance.choice(('5ms', '100ms', '2s'))}")
        if self.chance.random() < 0.3:
            words.append(f"watch-latency={self.chance.choice(('50ms', '1s', '5s'))}")
        if self.chance.random() < 0.5:
            words.append(f"engine={self.chance.choice(self.fleet.engines)}")
        return f"api {' '.join(words)} {self._for()}"

    def _watches(self) -> str:
        return f"watches {self.chance.choice(('broken', 'expired'))}"

    def _crash(self) -> str:
        point = self.chance.choice(("crash", "crash=before", "crash=after"))
        write = "" if point == "crash" else f" write={self.chance.randint(0, 12)}"
        return f"engine {self.chance.choice(self.fleet.engines)} {point}{write} {self._for()}"

    def _node_fault(self) -> str:
        fault = self.chance.choice(
            ("ready=false", "prepare=fail", "prepare=slow=3s", "prepare=hang", "driver=gone")
        )
        seconds = _LONG_FAULT if self.chance.random() < 0.2 else self._for()
        return f"node {self._node()} {fault} {seconds}"

    def _device_fault(self) -> str:
        fault = self.chance.choice(("unhealthy", "lost", "taint=a:NoSchedule", "taint=a:NoExecute"))
        node = self.chance.choice((self._node(), "*"))
        return f"device {node}/* {fault} share={self.chance.choice((0.1, 0.5, 1))} {self._for()}"

    def _work(self, at: float) -> None:
        drawn = self.chance.random()
        if drawn < 0.1:
            self._bounce(at) if drawn < 0.06 else self._drain(at)
            return
        for when, action in self.work.draw(at):
            self._step(when, **action)

    def _bounce(self, at: float) -> None:
        """Delete a node, and create it again under its name."""
        name = self._node()
        back = self._absence(name, at)
        if back:
            self._step(at, delete=[f"Node/{name}"])
            self._step(back, apply=[self.fleet.node(name)])

    def _drain(self, at: float) -> None:
        """Cordon a node for a while, and evict pods."""
        name = self._node()
        back = self._absence(name, at)
        if back:
            self._step(at, apply=[self.fleet.node(name) | {"spec": {"unschedulable": True}}])
            self._step(at + 0.1, evict=["Pod/*"])
            self._step(back, apply=[self.fleet.node(name)])

    def _absence(self, name: str, at: float) -> float:
        """Return until when a node is out of use from then on; 0 if it is already."""
        if self.back_at.get(name, 0.0) > at:
            return 0.0
        self.back_at[name] = at + self.chance.uniform(0.1, 20)
        return self.back_at[name]
