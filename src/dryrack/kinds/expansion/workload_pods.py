"""
Create the pods of the workloads in files.

Their names are readable: they end with a number instead of random characters, or with the node for
a DaemonSet. A Job gets the pods that run at once. If the files already have pods of a workload, as
a dump does, only the missing ones are created. An object that belongs to another workload in the
files, such as the ReplicaSet of a Deployment, gets no pods of its own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from typing import Any

from dryrack.kinds.core import PodSpec
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.documents import Document, Problem
from dryrack.kinds.expansion.embedded_templates import EmbeddedTemplate, embedded_templates
from dryrack.kinds.expansion.workloads import (
    TEMPLATES,
    daemon_tolerations,
    is_daemon_node,
    pin_to_node,
    pod_of,
)
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.selectors import SelectorError
from dryrack.kinds.shape import Path, described, render

_Key = tuple[str, str, str]

# The limit of Kubernetes; a larger number is probably a mistake.
PODS_MAX = 150_000
_DEFAULT_NAMESPACE = "default"
_OVER = ("Complete", "Failed")
_ENDED = ("Succeeded", "Failed")

# The controllers whose pods the scheduler spreads by their selector.
CONTROLLING = {
    "Deployment": "ReplicaSet",
    "ReplicaSet": "ReplicaSet",
    "StatefulSet": "StatefulSet",
    "ReplicationController": "ReplicationController",
}
# Kinds whose pods name an owner.
_OWNING = (*CONTROLLING, "Job", "DaemonSet")

_REPLICAS: Path = ("spec", "replicas")
_JOB: Path = ("spec",)
_CRON_JOB: Path = ("spec", "jobTemplate", "spec")


@dataclass(frozen=True, slots=True)
class Made:
    """The pods of a workload, with the places of its template, and a note about them."""

    pods: tuple[Document, ...]
    note: str
    # True if the files already have all the pods.
    are_present: bool = False


class WorkloadPods:
    """Creates the pods of the workloads among some documents, for a fleet of nodes."""

    def __init__(self, documents: Iterable[Document], nodes: Sequence[Raw]) -> None:
        self._nodes = nodes
        self._known: dict[_Key, Document] = {_key(each): each for each in documents}
        self._present: dict[_Key, list[Document]] = defaultdict(list)
        self._taken = {key[1:] for key in self._known if key[0] == "Pod"}
        for each in self._known.values():
            if each.kind == "Pod" and _at(each.raw, ("status", "phase")) not in _ENDED:
                self._present[_key(self._head(each))].append(each)

    def of(self, workload: Document) -> Made | tuple[Problem, ...]:
        """Return the pods that are not in the files yet, or the problems of the workload."""
        problems = tuple(_problems(workload))
        if problems:
            return problems
        head = self._head(workload)
        if head is not workload:
            note = f"its pods are those of {head.kind} {head.name}"
            return Made((), note, are_present=True)
        present = self._present[_key(workload)]
        if workload.kind == "DaemonSet":
            pods = tuple(self._on_nodes(workload, present))
        else:
            missing = max(0, _at_once(workload) - len(present))
            names = islice(self._free_names(workload), missing)
            pods = tuple(_pod(workload, name) for name in names)
        note = _note(workload, pods, len(present))
        return Made(pods, note, are_present=bool(present) and not pods)

    def of_custom(self, workload: Document) -> tuple[Made, ...] | tuple[Problem, ...]:
        """Return the pods of each template of an object whose kind is not known."""
        templates = embedded_templates(workload)
        total = sum(each.count for each in templates)
        if total > PODS_MAX:
            message = f"its templates are for {total} pods, and {PODS_MAX} is the most"
            return (workload.problem("", message, "write how many pods there are to be"),)
        head = self._head(workload)
        title = f"{workload.kind}/{_base(workload)}"
        if head is not workload:
            note = f"{title}: its pods are those of {head.kind}/{head.name}"
            return (Made((), note, are_present=True),)
        present = len(self._present[_key(workload)])
        if present:
            # Only the controller knows the template of a pod.
            note = f"{title}: {present} of {total} pods are in the files; no others are tried"
            return (Made((), note, are_present=True),)
        return tuple(self._of_template(workload, each, title) for each in templates)

    def _of_template(self, workload: Document, each: EmbeddedTemplate, title: str) -> Made:
        base = "-".join(filter(None, (_base(workload), each.label)))
        namespace = workload.namespace or _DEFAULT_NAMESPACE
        free = (f"{base}-{number}" for number in count())
        names = list(
            islice((name for name in free if (namespace, name) not in self._taken), each.count)
        )
        self._taken.update((namespace, name) for name in names)
        pods = tuple(_embedded_pod(workload, each, name) for name in names)
        said = f"{len(pods)} pod{'s' if len(pods) != 1 else ''}"
        shown = f", {_first_and_last(names)}" if names else ""
        return Made(pods, f"{title}, {render(each.path)}: {said}{shown}")

    def _on_nodes(self, workload: Document, present: Sequence[Document]) -> Iterator[Document]:
        spec = _part(_part(workload.raw, TEMPLATES[workload.kind]), ("spec",))
        there = {_at(each.raw, ("spec", "nodeName")) for each in present}
        try:
            decode(spec, PodSpec)
        except DecodeError:
            # Reading the pod will report the problem.
            yield _pod(workload, _base(workload))
            return
        for node in self._nodes:
            name = node["metadata"]["name"]
            if name not in there and _is_for(spec, node):
                affinity = pin_to_node(get(spec, "affinity", {}), name)
                placed = {"affinity": affinity, "tolerations": daemon_tolerations(spec)}
                yield _pod(workload, f"{_base(workload)}-{name}", placed)

    def _free_names(self, workload: Document) -> Iterator[str]:
        base = _base(workload)
        namespace = workload.namespace or _DEFAULT_NAMESPACE
        start = _at(workload.raw, ("spec", "ordinals", "start")) or 0
        numbered = (f"{base}-{number}" for number in count(start))
        for name in chain((base,) if workload.kind == "PodTemplate" else (), numbered):
            if (namespace, name) not in self._taken:
                self._taken.add((namespace, name))
                yield name

    def _head(self, document: Document) -> Document:
        """Return the workload in the files at the top of the owners of an object, or the object."""
        found = document
        seen = {id(document)}
        while (above := self._owner(found)) is not None and id(above) not in seen:
            seen.add(id(above))
            found = above
        return found

    def _owner(self, document: Document) -> Document | None:
        owners = _at(document.raw, ("metadata", "ownerReferences"))
        for owner in owners if isinstance(owners, list) else ():
            if isinstance(owner, dict) and owner.get("controller"):
                namespace = document.namespace or _DEFAULT_NAMESPACE
                return self._known.get((str(owner.get("kind")), namespace, str(owner.get("name"))))
        return None


def with_name(pod: Document) -> Document:
    """Return the pod with a name generated from `generateName`, as a server does."""
    metadata = _part(pod.raw, ("metadata",))
    begun = metadata.get("generateName")
    if pod.name or not isinstance(begun, str) or not begun:
        return pod
    return replace(pod, raw=pod.raw | {"metadata": metadata | {"name": f"{begun}0"}})


def _problems(workload: Document) -> Iterator[Problem]:
    """Yield the problems that prevent creating pods of the workload."""
    path = TEMPLATES[workload.kind]
    for place in (path, (*path, "metadata"), (*path, "spec")):
        value = _at(workload.raw, place)
        if not isinstance(value, dict | None):
            yield _mismatch(workload, place, "an object", value)
    job = _CRON_JOB if workload.kind == "CronJob" else _JOB
    numbers = [(*job, "parallelism"), (*job, "completions"), _REPLICAS]
    for place in (*numbers, ("spec", "ordinals", "start")):
        value = _at(workload.raw, place)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            yield _mismatch(workload, place, "a 32-bit integer", value)
        elif value is not None and not 0 <= value <= PODS_MAX:
            message = f"{render(place)}: {value} is not between 0 and {PODS_MAX}"
            yield workload.problem(place, message, "write how many pods there are to be")


def _mismatch(workload: Document, path: Path, expected: str, value: Any) -> Problem:
    message = f"{render(path)}: expected {expected}, got {described(value)}"
    return workload.problem(path, message)


def _at_once(workload: Document) -> int:
    """Return the number of pods; for a Job, before one of them has ended."""
    if workload.kind == "PodTemplate":
        return 1
    if workload.kind in ("Job", "CronJob"):
        running, completions = _job(workload)
        return running if completions is None else min(running, completions)
    replicas = _at(workload.raw, _REPLICAS)
    return 1 if replicas is None else int(replicas)


def _job(workload: Document) -> tuple[int, int | None]:
    """Return how many pods run at once, and how many still have to succeed."""
    spec = _part(workload.raw, _CRON_JOB if workload.kind == "CronJob" else _JOB)
    parallelism = spec.get("parallelism")
    completions = spec.get("completions")
    running = 1 if parallelism is None else int(parallelism)
    status = _part(workload.raw, ("status",)) if workload.kind == "Job" else {}
    conditions = status.get("conditions")
    if isinstance(conditions, list) and any(map(_is_over, conditions)):
        return running, 0
    succeeded = status.get("succeeded")
    done = succeeded if isinstance(succeeded, int) else 0
    return running, None if completions is None else max(0, int(completions) - done)


def _is_over(condition: Any) -> bool:
    return _at(condition, ("type",)) in _OVER and _at(condition, ("status",)) == "True"


def _is_for(spec: Raw, node: Raw) -> bool:
    try:
        return is_daemon_node(spec, node)
    except SelectorError:
        # Scheduling the pod will report the problem.
        return True


def _note(workload: Document, pods: Sequence[Document], present: int) -> str:
    """Return how many pods the workload creates, and the reason for an unusual number."""
    names = [each.name for each in pods]
    said = f"tried as {len(names)} pod{'s' if len(names) > 1 else ''}, {_first_and_last(names)}"
    if not names:
        match workload.kind:
            case _ if present:
                why = "the files contain its pods"
            case "DaemonSet":
                why = "no node matches"
            case "Job":
                why = "it is complete, or asks for no pods"
            case _:
                why = "it asks for no pods"
        said = f"creates no pods; {why}"
    if workload.kind in ("Job", "CronJob"):
        running, completions = _job(workload)
        if completions is not None and completions > running:
            said += f"; {running} of {completions} run at once"
        if _at(workload.raw, ("spec", "suspend")) is True:
            said += "; it is suspended; dryrack tries it as if it ran"
    return said


def _first_and_last(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{names[0]} to {names[-1]}"


def _embedded_pod(workload: Document, each: EmbeddedTemplate, name: str) -> Document:
    """Return a pod of a template in an object whose kind is not known."""
    metadata: Raw = {"name": name}
    if workload.namespace:
        metadata["namespace"] = workload.namespace
    raw = {"apiVersion": "v1", "kind": "Pod", **pod_of(each.template, metadata)}
    return replace(workload, raw=raw, within=(*workload.within, *each.path))


def _pod(workload: Document, name: str, placed: Raw | None = None) -> Document:
    """Return a pod whose parts have the places of the template."""
    path = TEMPLATES[workload.kind]
    metadata: Raw = {"name": name}
    if workload.namespace:
        metadata["namespace"] = workload.namespace
    if workload.kind in _OWNING and workload.name:
        kind = CONTROLLING.get(workload.kind, workload.kind)
        version = workload.api_version
        owner = {"apiVersion": version, "kind": kind, "name": workload.name, "controller": True}
        metadata["ownerReferences"] = [owner]
    pod = pod_of(_part(workload.raw, path), metadata)
    raw = {"apiVersion": "v1", "kind": "Pod", **pod, "spec": pod["spec"] | (placed or {})}
    return replace(workload, raw=raw, within=(*workload.within, *path))


def _base(workload: Document) -> str:
    """Return the prefix of the names of the pods."""
    begun = _at(workload.raw, ("metadata", "generateName"))
    return workload.name or str(begun or workload.kind.lower()).rstrip("-")


def _key(document: Document) -> _Key:
    return document.kind, document.namespace or _DEFAULT_NAMESPACE, document.name


def _at(raw: Any, path: Path) -> Any:
    for step in path:
        raw = raw.get(step) if isinstance(raw, dict) else None
    return raw


def _part(raw: Any, path: Path) -> Raw:
    found = _at(raw, path)
    return found if isinstance(found, dict) else {}
