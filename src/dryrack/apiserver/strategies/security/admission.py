"""
Pods at the door, held against what the labels of their namespace ask.

What is enforced refuses a pod; of what makes pods it is only warned, for it may never make one.
Who makes a namespace stricter is warned of the pods that are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import forbidden, invalid
from dryrack.apiserver.strategies.security.pod import describe_findings
from dryrack.apiserver.strategies.security.policies import PREFIX, label_problems, policy_of
from dryrack.apiserver.strategies.security.rules import findings
from dryrack.kinds.paths import get, metadata_of, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.registry import Resource
    from dryrack.apiserver.strategies.security.policies import Policy, Standard
    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw

_JUDGED_PARTS = ("", "ephemeralcontainers", "resize")
_PODS_MAX = 3000


def check_pod_security(resource: Resource, new: Raw, *, old: Raw | None, write: Write) -> None:
    """Refuses, or warns of, what is written."""
    if resource.storage == "namespaces":
        if not write.subresource:
            _namespace(resource, new, old, write)
        return
    namespace = write.lookup.get("namespaces", "", write.namespace) or {}
    labels = get(namespace, "metadata.labels", {})
    if not any(key.startswith(PREFIX) for key in labels):
        return
    policy = policy_of(labels)
    if resource.storage == "pods":
        is_judged = write.subresource in _JUDGED_PARTS and _is_other(new, old)
        if is_judged:
            meta = new["metadata"]
            spec = spec_of(new)
            found = findings(policy.enforce, meta, spec)
            if found:
                detail = f'violates PodSecurity "{policy.enforce}": {describe_findings(found)}'
                raise forbidden(resource.as_resource, meta["name"], detail)
            _warn(policy.warn, meta, spec, write)
    elif not write.subresource:
        _template(new, policy, write)


def _is_other(pod: Raw, old: Raw | None) -> bool:
    """Return whether the images of the pod differ from the stored ones."""
    return old is None or _images(pod) != _images(old)


def _images(pod: Raw) -> list[tuple[str, str, str]]:
    spec = spec_of(pod)
    return [
        (key, each.get("name") or "", each.get("image") or "")
        for key in ("containers", "initContainers", "ephemeralContainers")
        for each in spec.get(key) or ()
    ]


def _warn(standard: Standard, meta: Raw, spec: Raw, write: Write) -> None:
    found = findings(standard, meta, spec)
    if found:
        write.warn(f'would violate PodSecurity "{standard}": {describe_findings(found)}')


def _template(obj: Raw, policy: Policy, write: Write) -> None:
    spec = spec_of(obj)
    holder = get(spec, "jobTemplate.spec") or spec
    template = holder.get("template") or obj.get("template")
    if template:
        _warn(policy.warn, metadata_of(template), spec_of(template), write)


def _namespace(resource: Resource, new: Raw, old: Raw | None, write: Write) -> None:
    labels = _labels(new)
    before = _labels(old)
    problems = list(label_problems(labels))
    if problems and (old is None or problems != list(label_problems(before))):
        raise invalid(resource.as_kind, new["metadata"]["name"], problems)
    asked = policy_of(labels).enforce
    known = policy_of(before).enforce
    if old is None or asked == known or asked.level == "privileged":
        return
    if asked.minor != known.minor or asked.is_stricter(known):
        name = new["metadata"]["name"]
        for warning in _violations(name, asked, write.lookup.list("pods", name)):
            write.warn(warning)


def _labels(namespace: Raw | None) -> Raw:
    found: Raw = get(namespace or {}, "metadata.labels", {})
    return found


def _violations(namespace: str, standard: Standard, pods: Sequence[Raw]) -> Iterator[str]:
    """Pods that would not be let in any more, those alike together."""
    alike: dict[str, list[str]] = {}
    for pod in pods[:_PODS_MAX]:
        found = findings(standard, pod["metadata"], spec_of(pod))
        if found:
            reasons = ", ".join(each.reason for each in found)
            alike.setdefault(reasons, []).append(pod["metadata"]["name"])
    if len(pods) > _PODS_MAX:
        told_of = f"only checked against the first {_PODS_MAX} of {len(pods)} existing pods"
        yield f"new PodSecurity enforce level {told_of}"
    if alike:
        which = f'namespace "{namespace}" violate the new PodSecurity enforce level "{standard}"'
        yield f"existing pods in {which}"
    yield from sorted(f"{_describe_pods(names)}: {reasons}" for reasons, names in alike.items())


def _describe_pods(names: list[str]) -> str:
    first = min(names)
    others = len(names) - 1
    if not others:
        return first
    return f"{first} (and {others} other pod{'s' if others > 1 else ''})"
