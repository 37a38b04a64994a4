"""
The pods that the workloads in files will make.

They have names that a person can tell and say: a number instead of random characters, for a
DaemonSet the node. Of a Job they are those that run at once. Where files have pods of a workload
already, as those of a dump have, only the others are made; what belongs to another workload in the
files, as the ReplicaSet of a Deployment does, makes none of its own.
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
    pinned,
    pod_of,
)
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.selectors import SelectorError
from dryrack.kinds.shape import Path, described, render

_Key = tuple[str, str, str]

# A cluster has no more; who writes a larger number has slipped.
PODS_MAX = 150_000
_DEFAULT_NAMESPACE = "default"
_OVER = ("Complete", "Failed")
_ENDED = ("Succeeded", "Failed")

# What controls the pods of a workload that the scheduler spreads by its selector.
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
    """The pods of a workload, each in the place of its template, and a word about them."""

    pods: tuple[Document, ...]
    note: str
    # Whether there are none because they are in the files already.
    are_present: bool = False


class WorkloadPods:
    """Makes the pods of the workloads among some documents, for a fleet of nodes."""

    def __init__(self, documents: Iterable[Document], nodes: Sequence[Raw]) -> None:
        self._nodes = nodes
        self._known: dict[_Key, Document] = {_key(each): each for each in documents}
        self._present: dict[_Key, list[Document]] = defaultdict(list)
        self._taken = {key[1:] for key in self._known if key[0] == "Pod"}
        for each in self._known.values():
            if each.kind == "Pod" and _at(each.raw, ("status", "phase")) not in _ENDED:
                self._present[_key(self._head(each))].append(each)

    def of(self, workload: Document) -> Made | tuple[Problem, ...]:
        """The pods that are not in the files yet, or what is wrong with the workload."""
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
            # Which template a pod is from is known to its controller alone.
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
            # Whoever reads the pod will say what is wrong with it.
            yield _pod(workload, _base(workload))
            return
        for node in self._nodes:
            name = node["metadata"]["name"]
            if name not in there and _is_for(spec, node):
                affinity = pinned(get(spec, "affinity", {}), name)
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
        """The workload in the files that an object is of in the end; itself if there is none."""
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


def named(pod: Document) -> Document:
    """The pod, with a name if it has only the beginning of one, as a server gives it."""
    metadata = _part(pod.raw, ("metadata",))
    begun = metadata.get("generateName")
    if pod.name or not isinstance(begun, str) or not begun:
        return pod
    return replace(pod, raw=pod.raw | {"metadata": metadata | {"name": f"{begun}0"}})


def _problems(workload: Document) -> Iterator[Problem]:
    """What keeps anybody from making pods of it."""
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
    """How many pods it has, those of a Job while none of them has ended."""
    if workload.kind == "PodTemplate":
        return 1
    if workload.kind in ("Job", "CronJob"):
        running, completions = _job(workload)
        return running if completions is None else min(running, completions)
    replicas = _at(workload.raw, _REPLICAS)
    return 1 if replicas is None else int(replicas)


def _job(workload: Document) -> tuple[int, int | None]:
    """How many pods run at once, and how many are to succeed, less those that have."""
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
        # The pod will be told so when it is tried.
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
    """A pod whose parts stand where those of the template stand."""
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
    """What the names of its pods begin with."""
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
