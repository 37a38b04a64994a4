"""
Random scenarios for simulation testing: a fleet, what people run on it, and faults, from a seed.

Whatever happens in one, invariants hold at every write, and at rest once all is well again. The
scenario is a plain document: what it shows can be run again from a file.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.scenario.model import API_VERSION, KIND

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.kinds.raw import Raw

CLASS = "gpu.example.com"
_GANG = "pod-group.scheduling.kubenexus.io"
# What every node has: whole devices, some that share counters, and some that share capacity.
_DEVICES = ("gpu:2", "gpu:4", "gpu:2,partitions=2", "gpu:2,shared=true")
# The time from one fault to the next, and how long each lasts.
_STEP_SECONDS = 6.0
_FAULT_SECONDS = (2, 5, 15, 40)
_ENGINES = ("scheduler", "controllers", "plugin")


def random_scenario(seed: int, faults: int) -> Raw:
    """The document of a scenario with so many faults."""
    return _Generator(random.Random(seed), faults).document(seed)


@dataclass(slots=True)
class _Generator:
    """Draws one scenario."""

    chance: random.Random
    faults: int
    steps: list[Raw] = field(default_factory=list)
    made: int = 0
    deployments: dict[str, float] = field(default_factory=dict)
    back_at: dict[str, float] = field(default_factory=dict)
    nodes: int = 0
    devices: str = ""

    def document(self, seed: int) -> Raw:
        self.nodes = self.chance.randint(2, 4)
        self.devices = self.chance.choice(_DEVICES)
        at = 5.0
        for _ in range(self.faults):
            at += self.chance.expovariate(1 / _STEP_SECONDS)
            self._step(at, fail=[self._fault()])
            if self.chance.random() < 0.6:
                self._work(at + self.chance.random() * _STEP_SECONDS)
        at += max(_FAULT_SECONDS) + 10
        self._step(at, heal=["all"])
        self._step(at + 1, wait="1s")
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "title": f"The random world of seed {seed}",
            "limit": "24h",
            "fleet": {
                "devices": [self.devices],
                "nodes": [{"name": "worker", "count": self.nodes}],
            },
            "objects": [
                _template("one", 1, self._shared),
                _template("two", 2, self._shared),
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": "urgent"},
                    "value": 1000,
                },
            ],
            "steps": sorted(self.steps, key=lambda step: float(step["at"].rstrip("s"))),
        }

    @property
    def _shared(self) -> bool:
        return "shared" in self.devices

    def _step(self, at: float, **action: Any) -> None:
        self.steps.append({"at": f"{at:.3f}s", **action})

    def _node(self) -> str:
        return f"worker-{self.chance.randint(1, self.nodes)}"

    def _fault(self) -> str:
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
        return make()

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
            words.append(f"engine={self.chance.choice(_ENGINES)}")
        return f"api {' '.join(words)} {self._for()}"

    def _watches(self) -> str:
        return f"watches {self.chance.choice(('broken', 'expired'))}"

    def _crash(self) -> str:
        point = self.chance.choice(("crash", "crash=before", "crash=after"))
        write = "" if point == "crash" else f" write={self.chance.randint(0, 12)}"
        return f"engine {self.chance.choice(_ENGINES)} {point}{write} {self._for()}"

    def _node_fault(self) -> str:
        fault = self.chance.choice(
            ("ready=false", "prepare=fail", "prepare=slow=3s", "prepare=hang", "driver=gone")
        )
        return f"node {self._node()} {fault} {self._for()}"

    def _device_fault(self) -> str:
        fault = self.chance.choice(("unhealthy", "lost", "taint=a:NoSchedule", "taint=a:NoExecute"))
        node = self.chance.choice((self._node(), "*"))
        return f"device {node}/* {fault} share={self.chance.choice((0.1, 0.5, 1))} {self._for()}"

    def _work(self, at: float) -> None:
        kinds: list[tuple[int, Callable[[float], None]]] = [
            (4, self._pod),
            (4, self._gang),
            (2, self._sharers),
            (2, self._deployment),
            (3, self._scale),
            (1, self._bounce),
        ]
        weights = [weight for weight, _ in kinds]
        [do] = self.chance.choices([do for _, do in kinds], weights)
        do(at)

    def _number(self) -> int:
        self.made += 1
        return self.made

    def _pod(self, at: float) -> None:
        template = self.chance.choice(("one", "one", "two"))
        self._step(at, apply=[self._one_pod(f"pod-{self._number()}", template)])

    def _gang(self, at: float) -> None:
        size, name = self.chance.randint(2, 4), f"gang-{self._number()}"
        labels = {f"{_GANG}/name": name, f"{_GANG}/min-available": str(size)}
        seconds = self._life()
        pods = [
            self._one_pod(f"{name}-{number}", "one", labels=labels, seconds=seconds)
            for number in range(size)
        ]
        self._step(at, apply=pods)

    def _sharers(self, at: float) -> None:
        """Two pods that use one claim."""
        name = f"shared-{self._number()}"
        claim = {**_claim(name, 1, self._shared), "metadata": {"name": name}}
        pods = [self._one_pod(f"{name}-{n}", "", claim=name) for n in range(2)]
        self._step(at, apply=[claim, *pods])

    def _deployment(self, at: float) -> None:
        name = f"deployment-{self._number()}"
        self.deployments[name] = at
        pod = self._one_pod(name, "one", seconds=None)
        template = {"metadata": {"labels": {"app": name}}, "spec": pod["spec"]}
        spec = {
            "replicas": self.chance.randint(1, 2),
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        }
        made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}}
        self._step(at, apply=[made | {"spec": spec}])

    def _scale(self, at: float) -> None:
        if self.deployments:
            name = self.chance.choice(list(self.deployments))
            replicas = self.chance.choice((0, 0, 1, 2))
            at = max(at, self.deployments[name] + 1)
            self._step(at, scale={"object": f"Deployment/{name}", "replicas": replicas})

    def _bounce(self, at: float) -> None:
        """A node leaves and comes back under its name."""
        name = self._node()
        if self.back_at.get(name, 0.0) > at:
            return
        self.back_at[name] = back = at + self.chance.uniform(0.1, 20)
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        }
        self._step(at, delete=[f"Node/{name}"])
        self._step(back, apply=[node])

    def _life(self) -> int | None:
        return self.chance.choice((3, 20, 60, 200))

    def _one_pod(
        self,
        name: str,
        template: str,
        *,
        claim: str = "",
        labels: Raw | None = None,
        seconds: int | None = -1,
    ) -> Raw:
        seconds = self._life() if seconds == -1 else seconds
        source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
        annotations = {} if seconds is None else {"dryrack.dev/run-seconds": str(seconds)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {}, "annotations": annotations},
            "spec": {
                "restartPolicy": "Always" if seconds is None else "Never",
                "terminationGracePeriodSeconds": self.chance.choice((0, 5, 30)),
                # Some push others aside.
                **({"priorityClassName": "urgent"} if self.chance.random() < 0.1 else {}),
                "containers": [
                    {
                        "name": "main",
                        "image": "example.com/trainer",
                        "resources": {"claims": [{"name": "gpu"}]},
                    }
                ],
                "resourceClaims": [{"name": "gpu", **source}],
            },
        }


def _claim(name: str, count: int, shared: bool) -> Raw:
    exactly: Raw = {"deviceClassName": CLASS, "count": count}
    if shared:
        exactly["capacity"] = {"requests": {"memory": "30Gi", "compute": "30"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def _template(name: str, count: int, shared: bool) -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": _claim(name, count, shared)["spec"]},
    }
