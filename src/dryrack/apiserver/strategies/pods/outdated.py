"""What people still write about pods although it means little or nothing by now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.validation.names import label_value

if TYPE_CHECKING:
    from collections.abc import Iterator

Raw = dict[str, Any]

_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_SYSCTLS = 'non-functional in v1.11+; use the "sysctls" field instead'
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": _SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _SYSCTLS,
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF = "container.seccomp.security.alpha.kubernetes.io/"
_NO_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'


def node_labels(at: str, spec: Raw) -> Iterator[str]:
    """Labels by which a pod finds its nodes."""
    for key in sorted(spec.get("nodeSelector") or {}):
        if key in _LABELS:
            yield f"{at}.nodeSelector[{key}]: {_LABELS[key]}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    path = f"{at}.affinity.nodeAffinity"
    needed = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = (affinity.get(needed) or {}).get("nodeSelectorTerms") or ()
    for position, term in enumerate(terms):
        yield from _term(f"{path}.{needed}.nodeSelectorTerms[{position}]", term)
    wished = "preferredDuringSchedulingIgnoredDuringExecution"
    for position, wish in enumerate(affinity.get(wished) or ()):
        where, term = f"{path}.{wished}[{position}].preference", wish.get("preference") or {}
        yield from _term(where, term)
        yield from _impossible(where, term)


def topology_key(at: str, key: str) -> Iterator[str]:
    if key in _LABELS:
        yield f"{at}: {key} is {_LABELS[key]}"


def _term(at: str, term: Raw) -> Iterator[str]:
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key") or ""
        yield from topology_key(f"{at}.matchExpressions[{position}].key", key)


def _impossible(at: str, term: Raw) -> Iterator[str]:
    """Values that no label has; a wish for them is granted to nobody, and not refused."""
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        for index, value in enumerate(expression.get("values") or ()):
            for complaint in label_value(value):
                path = f"{at}.matchExpressions[{position}].values[{index}]"
                yield f"{path}: {value} is invalid, {complaint}"


def old_annotations(at: str, given: Raw) -> Iterator[str]:
    for key, told in _ANNOTATIONS.items():
        if key in given:
            yield f"{at}[{key}]: {told}"


def old_volumes(at: str, volume: Raw) -> Iterator[str]:
    for kind, told in _VOLUMES.items():
        if volume.get(kind) is not None:
            yield f"{at}.{kind}: {told}"


def profile(at: str, given: Raw, holder: Raw, *, container: str | None = None) -> Iterator[str]:
    """A seccomp profile by annotation, of a pod or of a container, and not by its field."""
    key = _SECCOMP if container is None else f"{_SECCOMP_OF}{container}"
    if key in given and (holder.get("securityContext") or {}).get("seccompProfile") is None:
        yield f"{at}[{key}]: {_NO_SECCOMP}"
