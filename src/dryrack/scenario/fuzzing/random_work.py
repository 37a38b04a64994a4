"""
The work of a random world: small workloads, and changes to them.

Pods, gangs of four dialects, Jobs, Deployments with budgets, StatefulSets, DaemonSets and claims
that several pods share, of devices and of storage; they are scaled, updated, evicted and deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.kinds.scheduling import CoschedulingPodGroup

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.scenario.fuzzing.random_fleets import RandomFleet

    Changes = list[tuple[float, Raw]]

# The version of native PodGroups in the default release.
NATIVE_GROUPS = next(
    each.api_version for each in builtin_kinds(DEFAULT_RELEASE) if each.kind == "PodGroup"
)
_LABELS = ("pod-group.scheduling.kubenexus.io", "pod-group.scheduling.sigs.k8s.io")
# What a pod asks for: mostly one device.
_TEMPLATES = ("one", "one", "one", "two", "special", "all", "either", "pair", "same", "greedy")
_MEMBER_TEMPLATES = ("one", "one", "any", "special", "pair")
# A DaemonSet mostly looks at devices, or has none.
_DAEMON_TEMPLATES = ("", "admin", "admin", "one")
_BUDGETS: tuple[Raw, ...] = (
    {"minAvailable": 1},
    {"minAvailable": "50%"},
    {"maxUnavailable": 1},
    {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
)
# How much later something comes than what it belongs to.
_LATE_SECONDS = 5.0
# How many pods have a volume of their own.
_EPHEMERAL_SHARE = 0.1
# How many pods name an object more than once: public manifests do.
_REPEAT_SHARE = 0.25
SETTINGS = "settings"
# How soon what was made may be changed, so that it is there by then.
_MADE_SECONDS = 1.0


class RandomWork:
    """Draws what is applied, scaled and deleted; times are those of its steps."""

    def __init__(self, chance: random.Random, fleet: RandomFleet, nodes: Sequence[str]) -> None:
        self._chance = chance
        self._nodes = nodes
        # Pods of a DaemonSet that ask so find what they want.
        self._modest = ("", fleet.daemon_template)
        self._claim_specs = fleet.claim_specs()
        self._made = 0
        self._workloads: dict[str, tuple[float, Raw]] = {}
        self._removable: dict[str, float] = {}
        self._everywhere: set[str] = set()

    @property
    def daemon_sets(self) -> tuple[str, ...]:
        """Return the DaemonSets that have a pod on every node when no fault is in force."""
        return tuple(sorted(self._everywhere))

    def draw(self, at: float) -> Changes:
        """Draw one action at a time."""
        kinds: Sequence[tuple[int, Callable[[float], Changes]]] = (
            (4, self._pod),
            (1, self._draw_pinned),
            (3, self._labelled_gang),
            (2, self._pod_group),
            (2, self._draw_coscheduled),
            (2, self._sharers),
            (1, self._draw_stored),
            (2, self._job),
            (2, self._workload),
            (1, self._daemon_set),
            (2, self._scale),
            (2, self._update),
            (2, self._evict),
            (2, self._remove),
        )
        [do] = self._chance.choices([do for _, do in kinds], [weight for weight, _ in kinds])
        return do(at)

    def _name(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._made}"

    def _apply(self, at: float, *objects: Raw) -> Changes:
        for each in objects:
            kind = each["kind"]
            group = each["apiVersion"].rpartition("/")[0]
            # The one kind that two groups have.
            found = f"{kind}.{group}" if kind == "PodGroup" else kind
            self._removable[f"{found}/{each['metadata']['name']}"] = at + _MADE_SECONDS
        return [(at, {"apply": list(objects)})]

    def _pod(self, at: float) -> Changes:
        return self._apply(at, self._one_pod(self._name("pod"), self._chance.choice(_TEMPLATES)))

    def _draw_pinned(self, at: float) -> Changes:
        """Draw a pod that is bound by hand and deleted; its claim is never created."""
        pod = self._one_pod(self._name("pinned"), "", claim="never")
        pod["spec"]["nodeName"] = self._chance.choice(self._nodes)
        deleted = at + self._chance.choice((1.0, 10.0, 30.0))
        return [*self._apply(at, pod), (deleted, {"delete": [f"Pod/{pod['metadata']['name']}"]})]

    def _labelled_gang(self, at: float) -> Changes:
        size = self._chance.randint(2, 3)
        name = self._name("gang")
        prefix = self._chance.choice(_LABELS)
        labels = {f"{prefix}/name": name, f"{prefix}/min-available": str(size)}
        return self._apply(at, *self._members(name, size, labels=labels))

    def _pod_group(self, at: float) -> Changes:
        """Draw pods of a native PodGroup; they may share its claim, and one may come later."""
        size = self._chance.randint(2, 3)
        name = self._name("group")
        spec: Raw = {"schedulingPolicy": {"gang": {"minCount": size}}}
        template = ""
        if self._chance.random() < 0.5:
            template = "one"
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
        metadata = {"name": name}
        group = {"apiVersion": NATIVE_GROUPS, "kind": "PodGroup"}
        late = self._chance.choice((0, 0, 1))
        pods = self._members(name, size + late, template=template)
        for pod in pods:
            pod["spec"]["schedulingGroup"] = {"podGroupName": name}
        made = self._apply(at, group | {"metadata": metadata, "spec": spec}, *pods[:size])
        return [*made, *(self._apply(at + _LATE_SECONDS, *pods[size:]) if late else ())]

    def _draw_coscheduled(self, at: float) -> Changes:
        """Draw pods of a coscheduling PodGroup, which may be created after them."""
        size = self._chance.randint(2, 3)
        name = self._name("coscheduled")
        group: Raw = {"apiVersion": CoschedulingPodGroup.API_VERSION, "kind": "PodGroup"}
        group |= {"metadata": {"name": name}, "spec": {"minMember": size}}
        labels = {CoschedulingPodGroup.POD_LABEL: name}
        # More than are needed, sometimes.
        pods = self._members(name, size + self._chance.choice((0, 0, 1)), labels=labels)
        late = self._chance.choice((0.0, 0.0, _LATE_SECONDS))
        return [*self._apply(at + late, group), *self._apply(at, *pods)]

    def _members(
        self, name: str, size: int, *, template: str = "", labels: Raw | None = None
    ) -> list[Raw]:
        seconds = self._life()
        return [
            self._one_pod(
                f"{name}-{number}",
                template or self._chance.choice(_MEMBER_TEMPLATES),
                labels=labels,
                seconds=seconds,
            )
            for number in range(size)
        ]

    def _sharers(self, at: float) -> Changes:
        """Draw two pods that share a claim, alone or as a gang."""
        name = self._name("shared")
        claim: Raw = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
        claim |= {"metadata": {"name": name}, "spec": self._claim_specs["one"]}
        labels: Raw = {}
        if self._chance.random() < 0.5:
            labels = {f"{_LABELS[0]}/name": name, f"{_LABELS[0]}/min-available": "2"}
        # One may run on when the other has ended.
        lives = (self._life(), self._chance.choice((self._life(), self._life(), None)))
        pods = [
            self._one_pod(f"{name}-{n}", "", claim=name, labels=labels, seconds=seconds)
            for n, seconds in enumerate(lives)
        ]
        if self._chance.random() < 0.3:
            own = {"name": "own", "resourceClaimTemplateName": "one"}
            pods[1]["spec"]["resourceClaims"].append(own)
        return self._apply(at, claim, *pods)

    def _draw_stored(self, at: float) -> Changes:
        """Draw two pods with devices of their own and one volume claim, which may come later."""
        name = self._name("stored")
        pods = [self._one_pod(f"{name}-{number}", "one") for number in range(2)]
        for pod in pods:
            source = {"persistentVolumeClaim": {"claimName": name}}
            mount(pod, *[source] * self._chance.choice((1, 1, 2)))
        claim = volume_claim(name, random_volume_claim_spec(self._chance))
        late = self._chance.choice((0.0, 0.0, _LATE_SECONDS))
        return [*self._apply(at + late, claim), *self._apply(at, *pods)]

    def _job(self, at: float) -> Changes:
        name = self._name("job")
        parallelism = self._chance.randint(1, 2)
        pod = self._one_pod(name, "one", seconds=self._life())
        if self._chance.random() < 0.5:
            prefix = self._chance.choice(_LABELS)
            pod["metadata"]["labels"] = {
                f"{prefix}/name": name,
                f"{prefix}/min-available": str(parallelism),
            }
        spec = {
            "parallelism": parallelism,
            "completions": self._chance.randint(parallelism, 3),
            "backoffLimit": self._chance.choice((0, 6)),
            "template": _pod_template(pod),
        }
        made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
        return self._apply(at, made)

    def _workload(self, at: float) -> Changes:
        """Draw a Deployment or a StatefulSet, some with a budget."""
        kind = self._chance.choice(("Deployment", "Deployment", "StatefulSet"))
        name = self._name(kind.lower())
        pod = self._one_pod(name, "one", labels={"app": name}, seconds=None)
        selector = {"matchLabels": {"app": name}}
        replicas = self._chance.randint(1, 2)
        spec: Raw = {"replicas": replicas, "selector": selector, "template": _pod_template(pod)}
        if kind == "StatefulSet":
            spec["serviceName"] = name
            spec |= self._stateful_storage()
        made = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        self._workloads[name] = (at + _MADE_SECONDS, made)
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {**self._chance.choice(_BUDGETS), "selector": selector},
        }
        return self._apply(at, made, *([budget] if self._chance.random() < 0.5 else ()))

    def _stateful_storage(self) -> Raw:
        if self._chance.random() < 0.5:
            return {}
        data = volume_claim("data", random_volume_claim_spec(self._chance))
        kept = {
            when: self._chance.choice(("Retain", "Delete"))
            for when in ("whenDeleted", "whenScaled")
        }
        return {
            "volumeClaimTemplates": [data],
            "persistentVolumeClaimRetentionPolicy": kept,
        }

    def _daemon_set(self, at: float) -> Changes:
        name = self._name("daemon")
        template = self._chance.choice(_DAEMON_TEMPLATES)
        labels = {"app": name}
        if template in self._modest:
            self._everywhere.add(name)
        pod = self._one_pod(name, template, labels=labels, seconds=None)
        if self._chance.random() < 0.5:
            pod["spec"]["tolerations"] = [{"operator": "Exists"}]
        spec = {"selector": {"matchLabels": labels}, "template": _pod_template(pod)}
        made = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}}
        made["spec"] = spec
        self._workloads[name] = (at + _MADE_SECONDS, made)
        return self._apply(at, made)

    def _scale(self, at: float) -> Changes:
        scalable = [
            name for name, (_, made) in self._workloads.items() if made["kind"] != "DaemonSet"
        ]
        if not scalable:
            return self._workload(at)
        name = self._chance.choice(scalable)
        soonest, made = self._workloads[name]
        replicas = self._chance.choice((0, 0, 1, 2))
        scale = {"object": f"{made['kind']}/{name}", "replicas": replicas}
        return [(max(at, soonest), {"scale": scale})]

    def _update(self, at: float) -> Changes:
        """Change a template, so that pods are replaced step by step."""
        if not self._workloads:
            return self._workload(at)
        name = self._chance.choice(list(self._workloads))
        soonest, made = self._workloads[name]
        templates = self._modest if name in self._everywhere else ("one", "special")
        template = self._chance.choice(templates)
        pod = self._one_pod(name, template, labels={"app": name}, seconds=None)
        pod["metadata"]["annotations"] = {"example.com/update": str(self._made)}
        self._made += 1
        changed = made | {"spec": made["spec"] | {"template": _pod_template(pod)}}
        self._workloads[name] = (soonest, changed)
        return [(max(at, soonest), {"apply": [changed]})]

    def _remove(self, at: float) -> Changes:
        """Delete an object, unless it is gone by then."""
        if not self._removable:
            return self._pod(at)
        found = self._chance.choice(list(self._removable))
        soonest = self._removable.pop(found)
        name = found.partition("/")[2]
        if name in self._workloads and found.startswith(self._workloads[name][1]["kind"]):
            del self._workloads[name]
            self._everywhere.discard(name)
        return [(max(at, soonest), {"delete": [found]})]

    def _evict(self, at: float) -> Changes:
        """Evict the pods of a workload, one pod, or sometimes all."""
        names = [*self._workloads, *(each for each in self._removable if each.startswith("Pod/"))]
        found = self._chance.choice(("*", *names, *self._workloads))
        pods = f"Pod/{found}-*" if found in self._workloads else f"Pod/{found.removeprefix('Pod/')}"
        return [(at, {"evict": [pods]})]

    def _life(self) -> int:
        return self._chance.choice((3, 20, 60, 200))

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
        annotations = {} if seconds is None else {"dryrack.dev/run-seconds": str(seconds)}
        # Some push others aside.
        urgent = {"priorityClassName": "urgent"} if self._chance.random() < 0.1 else {}
        container: Raw = {"name": "main", "image": "example.com/trainer"}
        spec: dict[str, Any] = {
            "restartPolicy": "Always" if seconds is None else "Never",
            "terminationGracePeriodSeconds": self._chance.choice((0, 5, 30)),
            **urgent,
            "containers": [container],
        }
        if claim or template:
            container["resources"] = {"claims": [{"name": "gpu"}]}
            source = "resourceClaimName" if claim else "resourceClaimTemplateName"
            spec["resourceClaims"] = [{"name": "gpu", source: claim or template}]
        metadata = {"name": name, "labels": labels or {}, "annotations": annotations}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        if self._chance.random() < _EPHEMERAL_SHARE:
            classes = PROVISIONED if name in self._everywhere else ANY_CLASS
            asked = {"spec": random_volume_claim_spec(self._chance, classes)}
            mount(pod, {"ephemeral": {"volumeClaimTemplate": asked}})
        if name not in self._everywhere and self._chance.random() < _REPEAT_SHARE:
            _repeat_references(pod, self._chance.choice(("claims", "configuration")))
        return pod


def _repeat_references(pod: Raw, kind: str) -> None:
    """Name the pod's claims, or a ConfigMap and a Secret, a second time."""
    spec = pod["spec"]
    if kind == "claims":
        claims = spec.get("resourceClaims", [])
        again = [{**each, "name": f"{each['name']}-again"} for each in claims]
        if again:
            claims += again
            names = [{"name": each["name"]} for each in again]
            sidecar = {"name": "sidecar", "image": "example.com/logger"}
            spec["containers"].append(sidecar | {"resources": {"claims": names}})
        return
    for _ in range(2):
        mount(pod, {"configMap": {"name": SETTINGS}}, {"secret": {"secretName": SETTINGS}})
    sources = [{"configMapRef": {"name": SETTINGS}}, {"secretRef": {"name": SETTINGS}}]
    spec["containers"][0]["envFrom"] = sources * 2


def _pod_template(pod: Raw) -> Raw:
    metadata = {key: value for key, value in pod["metadata"].items() if key != "name"}
    return {"metadata": metadata, "spec": pod["spec"]}


FIRST_CONSUMER = "first-consumer"
_CLASSES = {
    "immediate": {"volumeBindingMode": "Immediate"},
    FIRST_CONSUMER: {"volumeBindingMode": "WaitForFirstConsumer"},
    "retained": {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Retain"},
    "present": {"volumeBindingMode": "Immediate", "provisioner": "kubernetes.io/no-provisioner"},
}
# For as many as there are pods.
PROVISIONED = ("immediate", "immediate", FIRST_CONSUMER, FIRST_CONSUMER, "retained")
ANY_CLASS = (*PROVISIONED, "present")
_PRESENT = 3


def storage() -> tuple[Raw, ...]:
    """
    Return the storage classes and the existing volumes.

    Volumes are created at once or for the first consumer, and are deleted with their claims or
    kept; some exist from the start, but fewer than claims need.
    """
    classes = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": "disk.example.com",
            **fields,
        }
        for name, fields in _CLASSES.items()
    ]
    return *classes, *(_volume(f"present-{number}") for number in range(_PRESENT))


def volume_claim_spec(storage_class: str) -> Raw:
    requests = {"storage": "1Gi"}
    spec: Raw = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": requests}}
    return spec | {"storageClassName": storage_class}


def random_volume_claim_spec(chance: random.Random, classes: tuple[str, ...] = ANY_CLASS) -> Raw:
    return volume_claim_spec(chance.choice(classes))


def volume_claim(name: str, spec: Raw) -> Raw:
    metadata = {"name": name}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return claim | {"metadata": metadata, "spec": spec}


def mount(pod: Raw, *sources: Raw) -> None:
    """Add a volume to the pod for each source, and mount it in the first container."""
    volumes = pod["spec"].setdefault("volumes", [])
    mounts = pod["spec"]["containers"][0].setdefault("volumeMounts", [])
    for source in sources:
        name = f"data-{len(volumes)}"
        volumes.append({"name": name, **source})
        mounts.append({"name": name, "mountPath": f"/{name}"})


def _volume(name: str) -> Raw:
    spec: Raw = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    spec |= {"storageClassName": "present", "persistentVolumeReclaimPolicy": "Retain"}
    spec["csi"] = {"driver": "disk.example.com", "volumeHandle": name}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume"}
    return volume | {"metadata": {"name": name}, "spec": spec}
