"""
Record a cluster as a scenario: its nodes are the fleet, and its pods are created in their order.

Only fields that a scheduler reads are recorded: no Secrets, no environment, commands, images,
volumes, annotations or parameters of drivers, and nothing that the cluster wrote itself. Pods are
recorded without their nodes and devices: the replay chooses them. The scenario lists the nodes and
devices of the recording, so that a run can report differences.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import ContentError
from dryrack.kinds.catalog import Unknown, model_of
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.expansion.pod_claims import DUMP
from dryrack.kinds.paths import get, metadata_of, status_of
from dryrack.placement import MINIMUM_LABELS, GangKey, Membership, definitions, membership
from dryrack.scenario.model import API_VERSION, KIND
from dryrack.scenario.replay.placements import devices_by_claim, placement_of
from dryrack.scenario.replay.timeline import (
    MIRROR,
    is_ready,
    moments_of,
    node_of,
    nodes_closed_late,
    own_taints,
    rules_added_late,
    slices_without_late_taints,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.scenario.replay.timeline import Moment


# When all pods have come, the scheduler has this long to try again those that wait.
_REST_SECONDS = 120
_LIMIT_SECONDS = 600
_OWN_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_DONE = ("Succeeded", "Failed")
_ENFORCED = "pod-security.kubernetes.io/"
_POD_FIELDS = (
    *("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "schedulerName"),
    *("priorityClassName", "preemptionPolicy", "overhead", "schedulingGates", "resources"),
    *("hostNetwork", "schedulingGroup", "workloadRef"),
)
_CLUSTER_KINDS = ("DeviceClass", "ResourceSlice", "DeviceTaintRule")
# The tolerations that the API server adds to every pod.
_DEFAULT_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
    for key in ("not-ready", "unreachable")
]
_DEFAULT_TOLERATION_SECONDS = 300
_GROUP_KINDS = ("PodGroup", "Workload")
# The definition of a custom kind that comes with dryrack.
_COSCHEDULING = "scheduling.x-k8s.io/"
_COSCHEDULING_FILE = "podgroups.yaml"
# What every pod has that says nothing else.
_USUAL = {"schedulerName": "default-scheduler", "preemptionPolicy": "PreemptLowerPriority"}


@dataclass(frozen=True, slots=True)
class Recording:
    """The scenario file as plain data, and notes about what could not be recorded."""

    scenario: Raw
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Objects:
    """The objects of a cluster by kind, each object once."""

    by_kind: dict[str, dict[tuple[str, str], Raw]] = field(default_factory=dict)

    def add(self, obj: Raw) -> None:
        meta = metadata_of(obj)
        key = (str(meta.get("namespace", "")), str(meta.get("name", "")))
        self.by_kind.setdefault(str(obj.get("kind", "")), {}).setdefault(key, obj)

    def all(self, kind: str) -> list[Raw]:
        """Return the objects of a kind, by namespace and name."""
        return [obj for _, obj in sorted(self.by_kind.get(kind, {}).items())]


def record(objects: Iterable[Raw], title: str = "A recorded cluster") -> Recording:
    """Return the scenario of a cluster's objects; raise `ContentError` if nothing can run."""
    found = _Objects()
    for obj in objects:
        found.add(obj)
    nodes = found.all("Node")
    pods = [each for each in found.all("Pod") if _is_alive(each)]
    if not nodes or not pods:
        lacking = "Nodes" if not nodes else "Pods"
        raise ContentError(f"nothing to record: no {lacking}; dump with: {DUMP}")
    closed_late = nodes_closed_late(nodes, pods)
    rules_late = rules_added_late(found.all("DeviceTaintRule"), pods)
    untainted = slices_without_late_taints(found.all("ResourceSlice"), found.all("ResourceClaim"))
    tainted_late = [found.by_kind["ResourceSlice"]["", _name(each)] for each in untainted]
    found.by_kind.setdefault("ResourceSlice", {}).update(
        (("", _name(each)), each) for each in untainted
    )
    minimums = GangMinimums(pods, [each for kind in _GROUP_KINDS for each in found.all(kind)])
    claims = _Claims(found, frozenset(_unready(nodes)) & closed_late, minimums)
    moments = moments_of(pods, closed_late, rules=rules_late, slices_tainted_late=tainted_late)
    steps = [step for moment in moments for step in _steps(moment, claims, found)]
    steps.append({"title": "until nothing changes", "wait": f"{_REST_SECONDS}s"})
    scenario: Raw = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "title": title,
        "limit": f"{int(moments[-1].at) + _REST_SECONDS + _LIMIT_SECONDS}s",
        "fleet": {"nodes": [_node(each, closed_late) for each in nodes]},
        "objects": [
            *(_own_objects(found, pods, closed_late, rules_late, minimums)),
            *claims.objects(),
        ],
        "steps": steps,
        "recorded": _placements(pods, found.all("ResourceClaim")),
    }
    unready = [name for name in _unready(nodes) if name not in closed_late]
    if unready:
        scenario["faults"] = [f"node {name} ready=false" for name in unready]
    return Recording(scenario, (*_notes(found, pods), *minimums.notes))


def _steps(moment: Moment, claims: _Claims, found: _Objects) -> Iterator[Raw]:
    """Return the steps of a moment; a node that closes may need two, one for each action."""
    at = f"{moment.at:g}s"
    if moment.pods:
        pods = [claims.recorded(pod) for pod in moment.pods]
        yield {"title": _pods(len(pods)), "at": at, "apply": pods}
    if moment.tainting is not None:
        title = f"taints by {moment.tainting['kind']} {_name(moment.tainting)}"
        yield {"title": title, "at": at, "apply": [_strip_status(moment.tainting)]}
    if moment.closed_node:
        node = found.by_kind["Node"]["", moment.closed_node]
        title = f"node {_name(node)} takes no further pods"
        # The Node as its owner cordoned or tainted it.
        spec: Raw = {"taints": own_taints(node)} if own_taints(node) else {}
        if get(node, "spec.unschedulable"):
            spec["unschedulable"] = True
        closed = (
            {**_object("v1", "Node", {"name": _name(node)}, {}), "spec": spec} if spec else None
        )
        if closed:
            yield {"title": title, "at": at, "apply": [closed]}
        if not is_ready(node):
            yield {"title": title, "at": at, "fail": [f"node {_name(node)} ready=false"]}


def _placements(pods: Sequence[Raw], claims: Sequence[Raw]) -> list[Raw]:
    """Return where each pod is, in the form of the field `recorded` of a scenario."""
    held = devices_by_claim(claims)
    placements = []
    for pod in pods:
        name = f"{_namespace(pod)}/{_name(pod)}"
        placement = placement_of(pod, name, held)
        entry: Raw = {"pod": name}
        if placement.node:
            entry |= {"node": placement.node, "devices": len(placement.devices)}
        placements.append(entry)
    return placements


def _own_objects(
    found: _Objects,
    pods: Sequence[Raw],
    closed_late: frozenset[str],
    rules_late: Sequence[Raw],
    minimums: GangMinimums,
) -> Iterator[Raw | str]:
    """Return the objects that exist before the pods come; a text is the name of a file."""
    if any(each["apiVersion"].startswith(_COSCHEDULING) for each in found.all("PodGroup")):
        yield _COSCHEDULING_FILE
    namespaced = ("ResourceClaim", "ResourceClaimTemplate", *_GROUP_KINDS)
    others = [each for kind in namespaced for each in found.all(kind)]
    namespaces = {_namespace(each) for each in (*pods, *others)}
    for name in sorted(namespaces):
        known = found.by_kind.get("Namespace", {}).get(("", name), {"metadata": {"name": name}})
        labels = {
            key: value
            for key, value in _labels(known).items()
            if not key.startswith(_ENFORCED) and value != name
        }
        if labels or name not in _OWN_NAMESPACES:
            yield _object("v1", "Namespace", {"name": name}, labels)
    for node in found.all("Node"):
        if get(node, "spec.unschedulable") and _name(node) not in closed_late:
            cordoned = _object("v1", "Node", {"name": _name(node)}, {})
            yield {**cordoned, "spec": {"unschedulable": True}}
    yield from _classes_of_pods(found, pods)
    for kind in (*_CLUSTER_KINDS, "ResourceClaimTemplate", *_GROUP_KINDS):
        for each in found.all(kind):
            if each in rules_late:
                continue
            yield _strip_status(minimums.group(each))


def _strip_status(obj: Raw) -> Raw:
    """Return an object without its status and the fields that the cluster sets."""
    plain = _plain(obj, ("spec",))
    if obj["kind"] == "ResourceSlice":
        # A publisher deletes slices that have its labels and that it does not publish.
        plain["metadata"].pop("labels", None)
    return plain


def _classes_of_pods(found: _Objects, pods: Sequence[Raw]) -> Iterator[Raw]:
    """
    Return the PriorityClasses and RuntimeClasses that pods need to be admitted again.

    A dump may lack them; a pod has the values that they gave it.
    """
    known = {_name(each): each for each in found.all("PriorityClass")}
    named = {each["spec"].get("priorityClassName"): each["spec"] for each in pods}
    for name in sorted(filter(None, named)):
        if name.startswith("system-"):
            continue
        spec = named[name]
        from_pod = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": spec.get("priority") or 0,
            "preemptionPolicy": spec.get("preemptionPolicy") or _USUAL["preemptionPolicy"],
        }
        yield _plain(known.get(name, from_pod), ("value", "globalDefault", "preemptionPolicy"))
    overheads = {
        _runtime_class(each): each["spec"]["overhead"] for each in pods if _runtime_class(each)
    }
    for name, overhead in sorted(overheads.items()):
        runtime_class = _object("node.k8s.io/v1", "RuntimeClass", {"name": name}, {})
        yield {**runtime_class, "handler": "recorded", "overhead": {"podFixed": overhead}}


def _runtime_class(pod: Raw) -> str:
    """Return the RuntimeClass that gave a pod its overhead; empty if the pod has none."""
    return str(pod["spec"].get("runtimeClassName") or "") if pod["spec"].get("overhead") else ""


class _Claims:
    """The claims of pods: from a template, or recorded themselves."""

    def __init__(self, found: _Objects, unready: frozenset[str], minimums: GangMinimums) -> None:
        self._found = found
        self._minimums = minimums
        # Nodes that were not ready while they had pods.
        self._unready = unready
        # A pod or a group gets these claims again from its template.
        self._made = {
            (_namespace(each), each["metadata"]["name"])
            for each in found.all("ResourceClaim")
            if any(
                owner.get("kind") in ("Pod", "PodGroup")
                for owner in get(each["metadata"], "ownerReferences", ())
            )
        }
        self._kept: set[tuple[str, str]] = set()

    def recorded(self, pod: Raw) -> Raw:
        """Return the pod as its owner created it, before the scheduler decided about it."""
        entries = [self._entry(pod, each) for each in get(pod["spec"], "resourceClaims", ())]
        spec: Raw = {"containers": [_container(each) for each in pod["spec"]["containers"]]}
        initial = [_container(each) for each in get(pod["spec"], "initContainers", ())]
        if initial:
            spec["initContainers"] = initial
        tolerations = _own_tolerations(pod)
        if node_of(pod) in self._unready:
            # It outlived its node's state, and the replay must not evict it.
            tolerations += _DEFAULT_TOLERATIONS
        said = {**pod["spec"], "tolerations": tolerations}
        spec |= {
            name: said[name]
            for name in _POD_FIELDS
            if said.get(name) and said[name] != _USUAL.get(name)
        }
        if entries:
            spec["resourceClaims"] = entries
        if _runtime_class(pod):
            spec["runtimeClassName"] = _runtime_class(pod)
        if MIRROR in get(pod["metadata"], "annotations", {}):
            spec["nodeName"] = pod["spec"].get("nodeName", "")
        meta = {"name": pod["metadata"]["name"], "namespace": _namespace(pod)}
        labels = self._minimums.labels(pod)
        return {**_object("v1", "Pod", meta, labels), "spec": spec}

    def objects(self) -> Iterator[Raw]:
        """Return the claims that users created, and those whose template is not known."""
        for each in self._found.all("ResourceClaim"):
            key = (_namespace(each), each["metadata"]["name"])
            if key not in self._made or key in self._kept:
                yield _plain(each, ("spec",))

    def _entry(self, pod: Raw, entry: Raw) -> Raw:
        template = entry.get("resourceClaimTemplateName")
        namespace = _namespace(pod)
        if not template:
            return dict(entry)
        statuses = get(pod, "status.resourceClaimStatuses", ())
        names = {each.get("name"): each.get("resourceClaimName") for each in statuses}
        claim = names.get(entry["name"])
        if not claim or self._gives(namespace, template, claim):
            return dict(entry)
        self._kept.add((namespace, claim))
        return {"name": entry["name"], "resourceClaimName": claim}

    def _gives(self, namespace: str, template: str, claim: str) -> bool:
        """Return whether the template still gives the claim; it may be unknown or changed."""
        templates = self._found.by_kind.get("ResourceClaimTemplate", {})
        known = templates.get((namespace, template))
        if known is None:
            return False
        made = self._found.by_kind.get("ResourceClaim", {}).get((namespace, claim))
        return made is None or made.get("spec") == get(known, "spec.spec")


def _node(node: Raw, closed_late: frozenset[str]) -> Raw:
    status = status_of(node)
    taints = [] if _name(node) in closed_late else own_taints(node)
    size = status.get("allocatable") or status.get("capacity") or {}
    found: Raw = {"name": node["metadata"]["name"], "labels": _labels(node), "taints": taints}
    found["capacity"] = {resource: str(amount) for resource, amount in size.items()}
    return {key: value for key, value in found.items() if value}


def _container(container: Raw) -> Raw:
    """Return the fields of a container that a scheduler reads."""
    found: Raw = {"name": container["name"], "image": "recorded"}
    resources = get(container, "resources", {})
    if resources:
        found["resources"] = resources
    ports = [each for each in get(container, "ports", ()) if each.get("hostPort")]
    if ports:
        found["ports"] = ports
    if container.get("restartPolicy"):
        found["restartPolicy"] = container["restartPolicy"]
    return found


def _own_tolerations(pod: Raw) -> list[Raw]:
    """Return the tolerations without the defaults, which the replay adds again."""
    defaults = [
        {**each, "tolerationSeconds": _DEFAULT_TOLERATION_SECONDS} for each in _DEFAULT_TOLERATIONS
    ]
    return [each for each in get(pod["spec"], "tolerations", ()) if each not in defaults]


def _without_config(value: Any) -> Any:
    """Return the spec of a claim without the parameters of drivers."""
    if not isinstance(value, dict):
        return value
    return {key: _without_config(each) for key, each in value.items() if key != "config"}


def _plain(obj: Raw, fields: Sequence[str]) -> Raw:
    """Return an object as its author would write it."""
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
        any("persistentVolumeClaim" in each for each in get(pod["spec"], "volumes", ()))
        for pod in pods
    )
    if with_volumes:
        yield f"{_pods(with_volumes)} with volumes that tie them to nodes: recorded without"


def _pods(number: int) -> str:
    return f"{number} pod{'' if number == 1 else 's'}"


def _is_alive(pod: Raw) -> bool:
    is_done = get(pod, "status.phase") in _DONE
    return not is_done and not pod["metadata"].get("deletionTimestamp")


def _unready(nodes: Iterable[Raw]) -> list[str]:
    return [_name(each) for each in nodes if not is_ready(each)]


def _labels(obj: Raw) -> dict[str, str]:
    return dict(get(obj, "metadata.labels", {}))


def _name(obj: Raw) -> str:
    return str(obj["metadata"].get("name", ""))


def _namespace(obj: Raw) -> str:
    return str(obj["metadata"].get("namespace") or "default")


class GangMinimums:
    """
    The gangs of a recording that have fewer members with a node than their minimum.

    A gang keeps running when a member ends or is evicted, but a gang that starts needs its minimum.
    A replay starts every gang, so a recording lowers the minimum to the number of members with a
    node.
    """

    def __init__(self, pods: Sequence[Raw], groups: Iterable[Raw]) -> None:
        placed: Counter[GangKey] = Counter()
        minimums: dict[GangKey, int] = {}
        for pod in pods:
            said = membership(decode(pod, Pod))
            if isinstance(said, Membership):
                placed[said.key] += bool(pod["spec"].get("nodeName"))
                minimums[said.key] = said.min_count or 0
        for group in groups:
            model = model_of(group["apiVersion"], group["kind"])
            defined = () if isinstance(model, Unknown) else definitions(decode(group, model))
            by_key = {each.key: each.min_count for each in defined}
            minimums |= {key: by_key[key.definition] for key in placed if key.definition in by_key}
        self._lowered = {
            key: count for key, count in placed.items() if 0 < count < minimums.get(key, 0)
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """Return one line for each gang whose minimum is another in the recording."""
        return tuple(
            f"{key} runs with {count} pods, fewer than its minimum: recorded with this minimum"
            if count > 1
            else f"{key} runs with 1 pod, fewer than its minimum: recorded with this minimum"
            for key, count in sorted(self._lowered.items(), key=lambda it: str(it[0]))
        )

    def labels(self, pod: Raw) -> dict[str, str]:
        """Return the labels of a pod, with the minimum that the recording needs."""
        labels = dict(get(pod["metadata"], "labels", {}))
        said = membership(decode(pod, Pod))
        if not isinstance(said, Membership) or said.key not in self._lowered:
            return labels
        names = [name for name in MINIMUM_LABELS if name in labels]
        return labels | dict.fromkeys(names, str(self._lowered[said.key]))

    def group(self, group: Raw) -> Raw:
        """Return a PodGroup or Workload, with the minimum that the recording needs."""
        name = (group["metadata"].get("namespace") or "default", group["metadata"]["name"])
        counts: dict[str, int] = {}
        for key, count in self._lowered.items():
            if (key.namespace, key.name) == name:
                # Replicas of one pod group share its minimum.
                counts[key.group] = min(count, counts.get(key.group, count))
        if not counts:
            return group
        changed = deepcopy(group)
        spec = changed["spec"]
        if "minMember" in spec:
            spec["minMember"] = counts[""]
        for each in (spec, *get(spec, "podGroups", ())):
            policy = each.get("schedulingPolicy") or each.get("policy") or {}
            if policy.get("gang") and each.get("name", "") in counts:
                policy["gang"]["minCount"] = counts[each.get("name", "")]
        return changed
