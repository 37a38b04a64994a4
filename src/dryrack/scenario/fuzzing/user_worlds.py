"""
Random scenarios around the manifests of a user: their objects, in a random order, with faults.

Workloads and claims are created, scaled, deleted and created again at random times. All other
objects, such as slices and classes, exist from the start. At the end all objects exist.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get, metadata_of, spec_of, status_of
from dryrack.scenario.model import API_VERSION, KIND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dryrack.kinds.raw import Raw

_STEP_SECONDS = 6.0
_FAULT_SECONDS = (2, 5, 15, 40)
_ABSENT_SECONDS_MAX = 20.0
# How soon an object may be changed after it was created.
_CREATED_SECONDS = 1.0
_CHANGE_SHARE = 0.6
_SCALABLE = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
_WORKLOADS = (*_SCALABLE, "Pod", "DaemonSet", "Job", "CronJob")
# Kinds that a person creates together with workloads, in any order.
_MOVABLE = (
    *_WORKLOADS,
    "ResourceClaim",
    "PersistentVolumeClaim",
    "PodGroup",
    "Workload",
    "PodDisruptionBudget",
)
# The API server and controllers write these fields of metadata.
_SYSTEM_FIELDS = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"),
    *("ownerReferences", "selfLink"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserWorld:
    """The manifests of a user, and the nodes that are added to theirs."""

    objects: tuple[Raw, ...]
    nodes: int = 3
    """The number of added nodes, if the manifests have no Node."""
    devices: tuple[str, ...] = ()
    """The devices of every node, as for `--devices` of `dryrack up`."""
    instance_type: str = ""

    def scenario(self, seed: int, faults: int) -> Raw:
        """Return the document of a scenario with so many faults."""
        return _Generator(random.Random(seed), self).document(seed, faults)


class _Generator:
    """Draws one scenario."""

    def __init__(self, chance: random.Random, world: UserWorld) -> None:
        self.chance = chance
        self.world = world
        own = [_as_written(each) for each in world.objects if not _has_controller(each)]
        self.groups = [_node_group(each) for each in own if each["kind"] == "Node"]
        if not self.groups:
            profile = {"profile": world.instance_type} if world.instance_type else {}
            self.groups = [
                {"name": f"worker-{number}", **profile} for number in range(1, world.nodes + 1)
            ]
        self.nodes = [str(each["name"]) for each in self.groups]
        self.fixed = [each for each in own if each["kind"] not in (*_MOVABLE, "Node")]
        self.movable = [each for each in own if each["kind"] in _MOVABLE]
        has_slices = any(each["kind"] == "ResourceSlice" for each in own)
        self.publishes = bool(world.devices or world.instance_type)
        self.has_devices = self.publishes or has_slices
        self.steps: list[Raw] = []
        # When each object of the manifests exists, by its place among the movable ones.
        self.exists_at: dict[int, float] = {}

    def document(self, seed: int, faults: int) -> Raw:
        at = 5.0
        waiting = list(range(len(self.movable)))
        self.chance.shuffle(waiting)
        for number in range(faults):
            at += self.chance.expovariate(1 / _STEP_SECONDS)
            self._step(at, fail=[self._fault()])
            # All objects are created before the last faults begin.
            share = len(waiting) / max(1, faults - number)
            while waiting and (self.chance.random() < share or share >= 1):
                self._create(waiting.pop(), at + self.chance.random() * _STEP_SECONDS)
                share -= 1
            if self.chance.random() < _CHANGE_SHARE:
                self._change(at + self.chance.random() * _STEP_SECONDS)
        at += max(_FAULT_SECONDS) + _ABSENT_SECONDS_MAX + 10
        self._step(at, heal=["all"])
        if self.movable:
            self._step(at + 1, apply=self.movable)
        self._step(at + 2, wait="1s")
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "title": f"The manifests with the random faults of seed {seed}",
            "limit": "24h",
            "fleet": {"devices": list(self.world.devices), "nodes": self.groups},
            "objects": [*self._namespaces(), *self.fixed],
            "steps": sorted(self.steps, key=lambda step: float(step["at"].rstrip("s"))),
        }

    def _namespaces(self) -> list[Raw]:
        """Return the namespaces that the manifests use and do not have."""
        present = {metadata_of(it)["name"] for it in self.fixed if it["kind"] == "Namespace"}
        objects = (*self.fixed, *self.movable)
        used = {metadata_of(each).get("namespace", "default") for each in objects}
        return [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            for name in sorted(used - present - {"default"})
        ]

    def _step(self, at: float, **action: Any) -> None:
        self.steps.append({"at": f"{at:.3f}s", **action})

    def _create(self, place: int, at: float) -> None:
        self._step(at, apply=[self.movable[place]])
        self.exists_at[place] = at + _CREATED_SECONDS

    def _change(self, at: float) -> None:
        """Delete an object for a while, scale it, evict its pods, or cordon a node."""
        present = [place for place, since in sorted(self.exists_at.items()) if since <= at]
        if not present or self.chance.random() < 0.2:
            self._cordon(at)
            return
        place = self.chance.choice(present)
        each = self.movable[place]
        namespace = metadata_of(each).get("namespace", "default")
        group = each["apiVersion"].rpartition("/")[0]
        kind = f"{each['kind']}.{group}" if each["kind"] == "PodGroup" else each["kind"]
        reference = f"{kind}/{namespace}/{metadata_of(each)['name']}"
        drawn = self.chance.random()
        if each["kind"] in _SCALABLE and drawn < 0.5:
            replicas = self.chance.randint(0, spec_of(each).get("replicas", 1) + 1)
            self._step(at, scale={"object": reference, "replicas": replicas})
        elif each["kind"] == "Pod" and drawn < 0.3:
            self._step(at, evict=[reference])
            self._create(place, at + self.chance.uniform(1, _ABSENT_SECONDS_MAX))
        else:
            self._step(at, delete=[reference])
            self._create(place, at + self.chance.uniform(1, _ABSENT_SECONDS_MAX))

    def _cordon(self, at: float) -> None:
        name = self.chance.choice(self.nodes)
        back = at + self.chance.uniform(1, _ABSENT_SECONDS_MAX)
        for when, value in ((at, True), (back, None)):
            patch = {"spec": {"unschedulable": value}}
            self._step(when, patch={"object": f"Node/{name}", "patch": patch})

    def _fault(self) -> str:
        kinds: list[tuple[int, Callable[[], str]]] = [
            (6, self._api),
            (3, lambda: f"watches {self.chance.choice(('broken', 'expired'))}"),
            (6, self._crash),
            (3, self._node_fault),
            (1, lambda: f"node {self.chance.choice(self.nodes)} reboot"),
        ]
        if self.has_devices:
            kinds.append((4, self._device_fault))
        [make] = self.chance.choices([make for _, make in kinds], [weight for weight, _ in kinds])
        return make()

    def _for(self) -> str:
        return f"for {self.chance.choice(_FAULT_SECONDS)}s"

    def _engine(self) -> str:
        engines = ("scheduler", "controllers", *(("plugin",) if self.world.devices else ()))
        return str(self.chance.choice(engines))

    def _api(self) -> str:
        name = self.chance.choice(("conflicts", "too-many", "errors", "lost-answers"))
        share = self.chance.choice((0.05, 0.2, 0.5))
        latency = self.chance.choice(("5ms", "100ms", "2s"))
        return f"api {name}={share} latency={latency} engine={self._engine()} {self._for()}"

    def _crash(self) -> str:
        point = self.chance.choice(("crash", "crash=before", "crash=after"))
        write = "" if point == "crash" else f" write={self.chance.randint(0, 12)}"
        return f"engine {self._engine()} {point}{write} {self._for()}"

    def _node_fault(self) -> str:
        faults = ["ready=false"]
        if self.world.devices:
            faults += ["prepare=fail", "prepare=slow=3s", "prepare=hang", "driver=gone"]
        fault = self.chance.choice(faults)
        return f"node {self.chance.choice(self.nodes)} {fault} {self._for()}"

    def _device_fault(self) -> str:
        fault = self.chance.choice(("unhealthy", "lost", "taint=a:NoSchedule", "taint=a:NoExecute"))
        return f"device */* {fault} share={self.chance.choice((0.1, 0.5, 1))} {self._for()}"


def _has_controller(each: Raw) -> bool:
    """Return whether a controller creates the object again."""
    return any(it.get("controller") for it in get(metadata_of(each), "ownerReferences", ()))


def _as_written(each: Raw) -> Raw:
    """Return the object without fields of the server, as a person would write it."""
    metadata = {key: value for key, value in metadata_of(each).items() if key not in _SYSTEM_FIELDS}
    kept = each if each["kind"] == "Node" else {k: v for k, v in each.items() if k != "status"}
    return {**kept, "metadata": metadata}


def _node_group(node: Raw) -> Raw:
    """Return a virtual node with the labels, taints and capacity of a Node."""
    metadata = metadata_of(node)
    capacity = status_of(node).get("allocatable") or status_of(node).get("capacity") or {}
    group = {
        "name": metadata["name"],
        "labels": get(metadata, "labels", {}),
        "annotations": get(metadata, "annotations", {}),
        "taints": list(_own_taints(get(node, "spec.taints", ()))),
        "capacity": {name: str(value) for name, value in capacity.items()},
    }
    return {key: value for key, value in group.items() if value}


def _own_taints(taints: Iterable[Raw]) -> Iterable[Raw]:
    """Yield the taints that no controller sets."""
    return (each for each in taints if not each["key"].startswith("node.kubernetes.io/"))
