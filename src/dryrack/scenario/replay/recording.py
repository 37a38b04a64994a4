"""
A cluster as a scenario: its nodes are the fleet, and its pods come again in their order.

Only what a scheduler looks at is recorded, field by field from a list: no Secrets, no environment,
commands, images, volumes, annotations or parameters of drivers, and nothing that the cluster wrote
itself. Pods come as
they were created, with the time between them cut short, and without their nodes and devices: where
they go is for the replay to decide.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import ContentError
from dryrack.client.timekeeping import seconds_of
from dryrack.kinds.expansion.pod_claims import DUMP
from dryrack.scenario.model import API_VERSION, KIND

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw

# The first pods come when nodes are ready; between two batches no more time than this passes.
_FIRST_SECONDS = 10.0
GAP_SECONDS_MAX = 10.0
# When all have come, what still waits has time to be tried again.
_REST_SECONDS = 120
_LIMIT_SECONDS = 600
# Steps that nobody could look through are made fewer.
_BATCHES_MAX = 5000
_OWN_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_MIRROR = "kubernetes.io/config.mirror"
_DONE = ("Succeeded", "Failed")
# What a cluster says of a node's state, and not its owner.
_STATE_TAINTS = "node.kubernetes.io/"
_ENFORCED = "pod-security.kubernetes.io/"
_POD_FIELDS = (
    *("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "schedulerName"),
    *("priorityClassName", "preemptionPolicy", "overhead", "schedulingGates", "resources"),
    *("hostNetwork", "schedulingGroup", "workloadRef"),
)
_CLUSTER_KINDS = ("DeviceClass", "ResourceSlice", "DeviceTaintRule")
_GROUP_KINDS = ("PodGroup", "Workload")
# The definition of a custom kind that comes with dryrack.
_COSCHEDULING, _COSCHEDULING_FILE = "scheduling.x-k8s.io/", "podgroups.yaml"
# What every pod has that says nothing else.
_USUAL = {"schedulerName": "default-scheduler", "preemptionPolicy": "PreemptLowerPriority"}


@dataclass(frozen=True, slots=True)
class Recording:
    """The scenario file as plain data, and what could not be recorded as it is."""

    scenario: Raw
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Objects:
    """The objects of a cluster by kind, each object once."""

    by_kind: dict[str, dict[tuple[str, str], Raw]] = field(default_factory=dict)

    def add(self, obj: Raw) -> None:
        meta = obj.get("metadata") or {}
        key = (str(meta.get("namespace", "")), str(meta.get("name", "")))
        self.by_kind.setdefault(str(obj.get("kind", "")), {}).setdefault(key, obj)

    def all(self, kind: str) -> list[Raw]:
        """By namespace and name."""
        return [obj for _, obj in sorted(self.by_kind.get(kind, {}).items())]

    def has(self, kind: str, namespace: str, name: str) -> bool:
        return (namespace, name) in self.by_kind.get(kind, {})


def record(objects: Iterable[Raw], title: str = "A recorded cluster") -> Recording:
    """What a cluster's objects come to; `ContentError` if there is nothing to run."""
    found = _Objects()
    for obj in objects:
        found.add(obj)
    nodes, pods = found.all("Node"), [each for each in found.all("Pod") if _is_alive(each)]
    if not nodes or not pods:
        lacking = "Nodes" if not nodes else "Pods"
        raise ContentError(f"nothing to record: no {lacking}; dump with: {DUMP}")
    claims = _Claims(found)
    batches = _batches(pods)
    steps = [
        {
            "title": _pods(len(batch)),
            "at": f"{at:g}s",
            "apply": [claims.recorded(pod) for pod in batch],
        }
        for at, batch in batches
    ]
    last = batches[-1][0]
    steps.append({"title": "until nothing changes", "wait": f"{_REST_SECONDS}s"})
    scenario: Raw = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "title": title,
        "limit": f"{int(last) + _REST_SECONDS + _LIMIT_SECONDS}s",
        "fleet": {"nodes": [_node(each) for each in nodes]},
        "objects": [*_own_objects(found, pods), *claims.objects()],
        "steps": steps,
    }
    unready = [each["metadata"]["name"] for each in nodes if not _is_ready(each)]
    if unready:
        scenario["faults"] = [f"node {name} ready=false" for name in unready]
    return Recording(scenario, tuple(_notes(found, pods)))


def _own_objects(found: _Objects, pods: Sequence[Raw]) -> Iterator[Raw | str]:
    """What there is before the pods come; a text is the name of a file."""
    if any(each["apiVersion"].startswith(_COSCHEDULING) for each in found.all("PodGroup")):
        yield _COSCHEDULING_FILE
    namespaces = {_namespace(each) for each in (*pods, *found.all("ResourceClaim"))}
    for name in sorted(namespaces - set(_OWN_NAMESPACES)):
        known = found.by_kind.get("Namespace", {}).get(("", name), {"metadata": {"name": name}})
        labels = {
            key: value
            for key, value in _labels(known).items()
            if not key.startswith(_ENFORCED) and value != name
        }
        yield _object("v1", "Namespace", {"name": name}, labels)
    for node in found.all("Node"):
        if (node.get("spec") or {}).get("unschedulable"):
            cordoned = _object("v1", "Node", {"name": _name(node)}, {})
            yield {**cordoned, "spec": {"unschedulable": True}}
    used = {each["spec"].get("priorityClassName") for each in pods}
    for each in found.all("PriorityClass"):
        if each["metadata"]["name"] in used and not each["metadata"]["name"].startswith("system-"):
            yield _plain(each, ("value", "globalDefault", "preemptionPolicy"))
    for kind in (*_CLUSTER_KINDS, "ResourceClaimTemplate", *_GROUP_KINDS):
        yield from (_plain(each, ("spec",)) for each in found.all(kind))


class _Claims:
    """Claims as pods ask for them: by template, or one that is recorded."""

    def __init__(self, found: _Objects) -> None:
        self._found = found
        # Made for one pod; it makes them again where its template is known.
        self._made = {
            (_namespace(each), each["metadata"]["name"])
            for each in found.all("ResourceClaim")
            if any(owner.get("kind") == "Pod" for owner in _owners(each))
        }
        self._kept: set[tuple[str, str]] = set()

    def recorded(self, pod: Raw) -> Raw:
        """The pod as it came, before anybody decided anything about it."""
        entries = [self._entry(pod, each) for each in pod["spec"].get("resourceClaims") or ()]
        spec: Raw = {"containers": [_container(each) for each in pod["spec"]["containers"]]}
        initial = [_container(each) for each in pod["spec"].get("initContainers") or ()]
        if initial:
            spec["initContainers"] = initial
        said = {**pod["spec"], "tolerations": _own_tolerations(pod)}
        spec |= {
            name: said[name]
            for name in _POD_FIELDS
            if said.get(name) and said[name] != _USUAL.get(name)
        }
        if entries:
            spec["resourceClaims"] = entries
        if _MIRROR in (pod["metadata"].get("annotations") or {}):
            spec["nodeName"] = pod["spec"].get("nodeName", "")
        meta = {"name": pod["metadata"]["name"], "namespace": _namespace(pod)}
        return {**_object("v1", "Pod", meta, _labels(pod)), "spec": spec}

    def objects(self) -> Iterator[Raw]:
        """Claims that people made, and those whose template is not known."""
        for each in self._found.all("ResourceClaim"):
            key = (_namespace(each), each["metadata"]["name"])
            if key not in self._made or key in self._kept:
                yield _plain(each, ("spec",))

    def _entry(self, pod: Raw, entry: Raw) -> Raw:
        template, namespace = entry.get("resourceClaimTemplateName"), _namespace(pod)
        if not template or self._found.has("ResourceClaimTemplate", namespace, template):
            return dict(entry)
        statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
        made = {each.get("name"): each.get("resourceClaimName") for each in statuses}
        claim = made.get(entry["name"])
        if not claim:
            return dict(entry)
        self._kept.add((namespace, claim))
        return {"name": entry["name"], "resourceClaimName": claim}


def _batches(pods: Sequence[Raw]) -> list[tuple[float, list[Raw]]]:
    """Pods that came in the same second, by when they come in the scenario."""
    ordered = sorted(pods, key=_coming)
    batches: list[tuple[float, list[Raw]]] = []
    at, before = _FIRST_SECONDS, 0.0
    for pod in ordered:
        created = _created(pod)
        if batches and (created - before < 1.0 or len(batches) >= _BATCHES_MAX):
            batches[-1][1].append(pod)
        else:
            at += min(created - before, GAP_SECONDS_MAX) if batches else 0.0
            batches.append((at, [pod]))
        before = created
    return batches


def _node(node: Raw) -> Raw:
    status = node.get("status") or {}
    taints = [
        {key: value for key, value in each.items() if key != "timeAdded"}
        for each in (node.get("spec") or {}).get("taints") or ()
        if not each["key"].startswith(_STATE_TAINTS)
    ]
    size = status.get("allocatable") or status.get("capacity") or {}
    found: Raw = {"name": node["metadata"]["name"], "labels": _labels(node), "taints": taints}
    found["capacity"] = {resource: str(amount) for resource, amount in size.items()}
    return {key: value for key, value in found.items() if value}


def _container(container: Raw) -> Raw:
    """What of it a scheduler counts."""
    found: Raw = {"name": container["name"], "image": "recorded"}
    resources = container.get("resources") or {}
    if resources:
        found["resources"] = resources
    ports = [each for each in container.get("ports") or () if each.get("hostPort")]
    if ports:
        found["ports"] = ports
    if container.get("restartPolicy"):
        found["restartPolicy"] = container["restartPolicy"]
    return found


def _own_tolerations(pod: Raw) -> list[Raw]:
    """Without those that every pod is given."""
    added = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    tolerations = pod["spec"].get("tolerations") or ()
    return [each for each in tolerations if each.get("key") not in added]


def _without_config(value: Any) -> Any:
    """Parameters are for drivers, and may be anything."""
    if not isinstance(value, dict):
        return value
    return {key: _without_config(each) for key, each in value.items() if key != "config"}


def _plain(obj: Raw, fields: Sequence[str]) -> Raw:
    """An object as somebody would write it."""
    meta = {key: obj["metadata"][key] for key in ("name", "namespace") if obj["metadata"].get(key)}
    made = _object(obj["apiVersion"], obj["kind"], meta, _labels(obj))
    return made | {name: _without_config(obj[name]) for name in fields if obj.get(name) is not None}


def _object(api_version: str, kind: str, meta: Raw, labels: Mapping[str, str]) -> Raw:
    metadata = {**meta, "labels": dict(labels)} if labels else dict(meta)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _notes(found: _Objects, pods: Sequence[Raw]) -> Iterator[str]:
    ended = len(found.all("Pod")) - len(pods)
    if ended:
        yield f"{_pods(ended)} left out: ended, or ending"
    with_volumes = sum(
        any("persistentVolumeClaim" in each for each in pod["spec"].get("volumes") or ())
        for pod in pods
    )
    if with_volumes:
        yield f"{_pods(with_volumes)} with volumes that tie them to nodes: recorded without"


def _pods(number: int) -> str:
    return f"{number} pod{'' if number == 1 else 's'}"


def _is_alive(pod: Raw) -> bool:
    is_done = (pod.get("status") or {}).get("phase") in _DONE
    return not is_done and not pod["metadata"].get("deletionTimestamp")


def _is_ready(node: Raw) -> bool:
    """A node of which nothing is said counts as ready, as in files."""
    conditions: Sequence[Mapping[str, Any]] = (node.get("status") or {}).get("conditions") or ()
    told = [each for each in conditions if each.get("type") == "Ready"]
    return not told or told[0].get("status") == "True"


def _coming(pod: Raw) -> tuple[float, bool, str, str, str]:
    """Of pods that came in one second, those that were given a node before the others."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    told: Raw = next((each for each in conditions if each.get("type") == "PodScheduled"), {})
    is_waiting = not pod["spec"].get("nodeName")
    since = str(told.get("lastTransitionTime") or "")
    return _created(pod), is_waiting, since, _namespace(pod), _name(pod)


def _created(pod: Raw) -> float:
    text = pod["metadata"].get("creationTimestamp")
    return seconds_of(str(text)) if text else 0.0


def _labels(obj: Raw) -> dict[str, str]:
    return dict((obj.get("metadata") or {}).get("labels") or {})


def _owners(obj: Raw) -> Sequence[Raw]:
    return obj["metadata"].get("ownerReferences") or ()


def _name(obj: Raw) -> str:
    return str(obj["metadata"].get("name", ""))


def _namespace(obj: Raw) -> str:
    return str(obj["metadata"].get("namespace") or "default")
