"""
Pod templates inside kinds that dryrack does not know.

Operators keep pod templates in objects of their own: a JobSet in `replicatedJobs[].template.spec`,
an MPIJob in `mpiReplicaSpecs`, a LeaderWorkerSet in `leaderWorkerTemplate`. There are too many of
them to list, so a template is recognized by its form: an object with `containers` that have a name
and an image, or with `resourceClaims` that name claims or templates. The number of pods is the
product of the counts that stand next to the template and around it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dryrack.kinds.documents import Document
from dryrack.kinds.other_kinds import Standing, standing
from dryrack.kinds.raw import Raw
from dryrack.kinds.shape import Path

# Scenarios contain manifests, which are created when the scenario runs.
_OWN_GROUP = "dryrack.dev/"
# Deeper than any manifest; a cycle of YAML aliases must not make the search endless.
_DEPTH_MAX = 24
# The fields of a pod spec that affect scheduling, for incomplete pod specs.
_PLACING = (
    *("affinity", "hostNetwork", "nodeName", "nodeSelector", "overhead", "preemptionPolicy"),
    *("priority", "priorityClassName", "resourceClaims", "resources", "runtimeClassName"),
    *("schedulerName", "schedulingGates", "schedulingGroup", "tolerations"),
    "topologySpreadConstraints",
)
# An operator fills in the image of a container that has none.
_NO_IMAGE = "unknown"
# Words of a path that say nothing about what a template is for.
_GENERIC = frozenset(
    {"extraPodSpec", "jobTemplate", "podSpec", "podTemplate", "spec", "template", "templates"}
)
# Counts that hold only where no `replicas` stands next to the template.
_FALLBACKS = (
    *("count", "workerReplicas", "numNodes", "nodeCount", "instances", "minReplicas"),
    "minAvailable",
)
_NAME_KEYS = ("name", "groupName")


@dataclass(frozen=True, slots=True)
class EmbeddedTemplate:
    """A pod template, where it stands, and how many pods are made from it."""

    path: Path
    template: Raw
    count: int
    # The suffix of the names of its pods, after the name of the object; unique in the object.
    label: str
    # The path of the pod spec.
    spec_path: Path


def is_custom_workload(document: Document) -> bool:
    """Return whether an object of a kind that dryrack does not know has a pod template."""
    if standing(document) is not Standing.CUSTOM or document.api_version.startswith(_OWN_GROUP):
        return False
    return next(_search(document.raw, (), (document.raw,)), None) is not None


def embedded_templates(document: Document) -> tuple[EmbeddedTemplate, ...]:
    """Return the pod templates in an object, in its order."""
    found = tuple(_search(document.raw, (), (document.raw,)))
    if len(found) == 1:
        return (replace(found[0], label=""),)
    taken: set[str] = set()
    unique = []
    for number, each in enumerate(found):
        label = each.label if each.label and each.label not in taken else f"template-{number}"
        taken.add(label)
        unique.append(replace(each, label=label))
    return tuple(unique)


def _search(value: Any, path: Path, around: tuple[Any, ...]) -> Iterator[EmbeddedTemplate]:
    """Yield the templates at and below a value; `around` has the values on the path to it."""
    if len(path) > _DEPTH_MAX or path[:1] in (("metadata",), ("status",)):
        return
    if isinstance(value, dict):
        if _is_pod_spec(value, path):
            yield _template(path, around)
            return
        for key, inner in value.items():
            yield from _search(inner, (*path, str(key)), (*around, inner))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _search(inner, (*path, index), (*around, inner))


def _is_pod_spec(value: Raw, path: Path) -> bool:
    if _names_claims(value.get("resourceClaims")):
        return True
    # Some kinds list containers in their own spec only to change those of other pods.
    return len(path) > 1 and _has_containers(value.get("containers"))


def _names_claims(entries: Any) -> bool:
    return isinstance(entries, list) and any(
        isinstance(each, dict)
        and (each.get("resourceClaimName") or each.get("resourceClaimTemplateName"))
        for each in entries
    )


def _has_containers(containers: Any) -> bool:
    return (
        isinstance(containers, list)
        and bool(containers)
        and all(isinstance(each, dict) and each.get("name") for each in containers)
        and any(each.get("image") for each in containers)
    )


def _template(path: Path, around: tuple[Any, ...]) -> EmbeddedTemplate:
    spec = around[-1]
    # A PodTemplateSpec has metadata beside its spec; others have the spec alone.
    is_whole = path[-1:] == ("spec",) and len(path) > 1
    place = path[:-1] if is_whole else path
    metadata = around[-2].get("metadata") if is_whole and isinstance(around[-2], dict) else None
    template = {"metadata": _metadata(metadata), "spec": _pod_spec(spec, around)}
    count = _count(path, around) * _scaling_groups(path, around)
    return EmbeddedTemplate(place, template, count, _label(path, around), path)


def _metadata(given: Any) -> Raw:
    """Return the labels and annotations of a template, which are all that its pods take over."""
    known = given if isinstance(given, dict) else {}
    return {
        key: known[key] for key in ("labels", "annotations") if isinstance(known.get(key), dict)
    }


def _pod_spec(spec: Raw, around: Sequence[Any]) -> Raw:
    """Return a pod spec that an API server takes as far as its own fields are right."""
    containers: Any = spec.get("containers")
    if _has_containers(containers):
        return {**spec, "containers": [{"image": _NO_IMAGE, **each} for each in containers]}
    placing = {key: spec[key] for key in _PLACING if key in spec}
    main = spec.get("mainContainer")
    # Dynamo states resources next to the spec; KubeVirt has no containers at all.
    beside = around[-2].get("resources") if len(around) > 1 and isinstance(around[-2], dict) else {}
    # All claims of a pod are prepared for it, so its one container may as well name them.
    claims = [{"name": each["name"]} for each in _entries(placing) if each.get("name")]
    stated = _requirements(main.get("resources")) if isinstance(main, dict) else {}
    resources = {**(stated or _requirements(beside)), "claims": claims}
    return {
        **placing,
        "containers": [{"name": "main", "image": _NO_IMAGE, "resources": resources}],
    }


def _entries(spec: Raw) -> list[Raw]:
    given = spec.get("resourceClaims")
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def _requirements(resources: Any) -> Raw:
    """Return what of a stanza `resources` is in the form of a container's."""
    known = resources if isinstance(resources, dict) else {}
    # Dynamo writes the number of GPUs as `gpu`, which is no resource of Kubernetes.
    return {
        part: {name: amount for name, amount in known[part].items() if name != "gpu"}
        for part in ("requests", "limits")
        if isinstance(known.get(part), dict)
    }


def _count(path: Path, around: Sequence[Any]) -> int:
    """Return the product of the counts around a template."""
    total = 1
    # The object that holds the template, or what is within that.
    holder = len(path) - (2 if path[-1] == "spec" else 1)
    for at, value in enumerate(around):
        if not isinstance(value, dict):
            continue
        below = path[at] if at < len(path) else ""
        replicas = _integer(value.get("replicas"))
        if replicas is not None:
            total *= replicas
        elif at >= holder:
            total *= next(
                (n for key in _FALLBACKS if (n := _integer(value.get(key))) is not None), 1
            )
        total *= _of_job(value) if below == "template" else 1
        total *= _of_group(value, below)
    return total


def _of_job(spec: Mapping[str, Any]) -> int:
    """Return how many pods of a Job's spec run at once."""
    parallelism = _integer(spec.get("parallelism"))
    completions = _integer(spec.get("completions"))
    running = 1 if parallelism is None else parallelism
    return running if completions is None else min(running, completions)


def _of_group(value: Mapping[str, Any], below: str | int) -> int:
    """Return how many pods of a template belong to one replica of the object around it."""
    size = _integer(value.get("size"))
    if size is not None and below == "workerTemplate":
        # One pod of a LeaderWorkerSet's group is the leader, which may have its own template.
        return max(0, size - 1) if value.get("leaderTemplate") else size
    hosts = _integer(value.get("numOfHosts"))
    multinode = value.get("multinode")
    nodes = _integer(multinode.get("nodeCount")) if isinstance(multinode, dict) else None
    return (1 if hosts is None else hosts) * (1 if nodes is None else nodes)


def _scaling_groups(path: Path, around: Sequence[Any]) -> int:
    """Return how often a PodCliqueSet repeats a clique by its scaling groups."""
    at = path.index("cliques") if "cliques" in path[:-1] else -1
    clique = around[at + 2] if at >= 0 else None
    groups = around[at].get("podCliqueScalingGroups") if isinstance(clique, dict) else None
    total = 1
    for group in groups if isinstance(groups, list) else ():
        names = group.get("cliqueNames") if isinstance(group, dict) else None
        if isinstance(names, list) and clique is not None and clique.get("name") in names:
            replicas = _integer(group.get("replicas"))
            total *= 1 if replicas is None else replicas
    return total


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _label(path: Path, around: Sequence[Any]) -> str:
    """Return a part of a name that is unique among the templates of an object."""
    for at in range(len(path) - 1, -1, -1):
        step = path[at]
        value = around[at + 1]
        if isinstance(step, int):
            named = value if isinstance(value, dict) else {}
            word = next((str(named[key]) for key in _NAME_KEYS if named.get(key)), "")
        else:
            word = "" if step in _GENERIC else step
        if word:
            return _dns_label(word)
    return ""


def _dns_label(text: str) -> str:
    """Return a text in the letters of a name, `workerTemplate` as `worker-template`."""
    split = "".join(f"-{each}" if each.isupper() else each for each in text).lower()
    kept = "".join(each if each.isascii() and each.isalnum() else "-" for each in split)
    return "-".join(filter(None, kept.split("-")))[:40]
