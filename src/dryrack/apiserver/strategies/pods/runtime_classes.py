"""Classes of runtimes: what a pod owes to the one that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from dryrack.apiserver.strategy import Lookup
    from dryrack.kinds.raw import Raw

_CLASSES = "runtimeclasses.node.k8s.io"


class RuntimeClassError(Exception):
    """A pod does not go with its class; says why, in the words of the admission plugin."""


def in_class(spec: Raw, lookup: Lookup) -> Raw:
    """The spec with what its class adds: overhead, a selector of nodes, tolerations."""
    found = _class_of(spec, lookup)
    overhead = get(found, "overhead.podFixed")
    if overhead is None and spec.get("overhead") is not None:
        told = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise RuntimeClassError(f"pod rejected: {told}")
    made = spec if overhead is None else _with_overhead(spec, overhead)
    scheduling = found.get("scheduling")
    return made if scheduling is None else _with_scheduling(made, scheduling)


def _class_of(spec: Raw, lookup: Lookup) -> Raw:
    name = spec.get("runtimeClassName")
    if name is None:
        return {}
    found = lookup.get(_CLASSES, "", name)
    if found is None:
        raise RuntimeClassError(f"pod rejected: RuntimeClass {quoted(name)} not found")
    return found


def _with_overhead(spec: Raw, overhead: Raw) -> Raw:
    if spec.get("overhead") and spec["overhead"] != overhead:
        told = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise RuntimeClassError(f"pod rejected: {told}")
    return {**spec, "overhead": overhead}


def _with_scheduling(spec: Raw, scheduling: Raw) -> Raw:
    wanted = get(scheduling, "nodeSelector", {})
    selector = get(spec, "nodeSelector", {})
    for key, value in sorted(wanted.items()):
        if selector.get(key, value) != value:
            path = f"scheduling.nodeSelector[{key}] = {value}"
            own = f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            raise RuntimeClassError(f"conflict: runtimeClass.{path}; {own}")
    made = {**spec, "nodeSelector": {**selector, **wanted}} if wanted else spec
    known = get(spec, "tolerations", [])
    # Both lists can have thousands of tolerations, which are objects without lists in them.
    have = {frozenset(each.items()) for each in known}
    tolerations = get(scheduling, "tolerations", ())
    added = [each for each in tolerations if frozenset(each.items()) not in have]
    return {**made, "tolerations": [*known, *added]} if added else made
