"""
Apply LimitRanges to pods and PersistentVolumeClaims.

`add_defaults` adds the defaults of a range to a pod. `broken_by_pod` and `broken_by_volume` return
the limits that a pod or a PersistentVolumeClaim exceeds, in the words of the LimitRanger plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.quota_usage.amounts import Amounts, parse_amounts
from dryrack.kinds.quota_usage.pods import totals
from dryrack.kinds.rules.json_edit import with_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.kinds.quantity import Quantity
    from dryrack.kinds.raw import Raw

_ANNOTATION = "kubernetes.io/limit-ranger"
_LISTS = (("containers", "container"), ("initContainers", "init container"))


def add_defaults(pod: Raw, ranges: Iterable[Raw]) -> Raw:
    """Return the pod with the default requests and limits of these ranges."""
    for limit_range in ranges:
        defaults: dict[str, Raw] = {"limits": {}, "requests": {}}
        for limit in _limits(limit_range, "Container"):
            defaults["limits"] |= get(limit, "default", {})
            defaults["requests"] |= get(limit, "defaultRequest", {})
        if any(defaults.values()):
            pod = _with_defaults(pod, defaults)
    return pod


def _with_defaults(pod: Raw, defaults: dict[str, Raw]) -> Raw:
    spec = dict(spec_of(pod))
    notes = []
    for key, called in _LISTS:
        made = []
        for container in spec.get(key) or ():
            completed_one, added = _container(container, defaults)
            made.append(completed_one)
            name = container.get("name") or ""
            notes += [f"{', '.join(names)} {what} for {called} {name}" for what, names in added]
        if made:
            spec[key] = made
    if not notes:
        return pod
    annotations = dict(get(pod["metadata"], "annotations", {}))
    annotations[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"
    return with_metadata({**pod, "spec": spec}, "annotations", annotations)


def _container(container: Raw, defaults: dict[str, Raw]) -> tuple[Raw, list[tuple[str, list[str]]]]:
    """The container with what it lacks, and what that is."""
    resources = dict(get(container, "resources", {}))
    added = []
    for part, what in (("requests", "request"), ("limits", "limit")):
        given = resources.get(part) or {}
        new = {name: amount for name, amount in defaults[part].items() if name not in given}
        if new:
            resources[part] = dict(sorted({**given, **new}.items()))
            added.append((what, sorted(new)))
    return ({**container, "resources": resources} if added else container), added


def broken_by_pod(limit_range: Raw, spec: Raw) -> tuple[str, ...]:
    """Return which limits of a range the spec of a pod does not keep, each once."""
    return tuple(dict.fromkeys(_broken_by_pod(limit_range, spec)))


def broken_by_volume(limit_range: Raw, claim: Raw) -> tuple[str, ...]:
    """Return which limits of a range a PersistentVolumeClaim does not keep, each once."""
    resources = get(claim, "spec.resources", {})
    requests = parse_amounts(resources.get("requests"))
    broken: list[str] = []
    for limit in _limits(limit_range, "PersistentVolumeClaim"):
        broken += _below("PersistentVolumeClaim", limit, requests, {})
        broken += _volume_above(limit, requests)
    return tuple(dict.fromkeys(broken))


def format_broken(broken: tuple[str, ...]) -> str:
    """Return broken limits as the detail of a refusal."""
    return broken[0] if len(broken) == 1 else f"[{', '.join(broken)}]"


def _limits(limit_range: Raw, kind: str) -> Iterator[Raw]:
    for limit in get(limit_range, "spec.limits", ()):
        if limit.get("type") == kind:
            yield limit


def _broken_by_pod(limit_range: Raw, spec: Raw) -> Iterator[str]:
    for limit in get(limit_range, "spec.limits", ()):
        if limit.get("type") == "Container":
            for key, _ in _LISTS:
                for container in spec.get(key) or ():
                    resources = get(container, "resources", {})
                    asked = parse_amounts(resources.get("requests"))
                    capped = parse_amounts(resources.get("limits"))
                    yield from _broken("Container", limit, asked, capped)
        elif limit.get("type") == "Pod":
            yield from _broken("Pod", limit, totals(spec, "requests"), totals(spec, "limits"))


def _broken(kind: str, limit: Raw, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _below(kind, limit, requests, limits)
    yield from _above(kind, limit, requests, limits)
    for name, ratio in sorted(parse_amounts(limit.get("maxLimitRequestRatio")).items()):
        yield from _ratio(
            f"{name} max limit to request ratio per {kind} is {ratio}",
            ratio,
            requests.get(name),
            limits.get(name),
        )


def _below(kind: str, limit: Raw, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in sorted(parse_amounts(limit.get("min")).items()):
        told = f"minimum {name} usage per {kind} is {least}"
        request = requests.get(name)
        capped = limits.get(name)
        if request is None:
            yield f"{told}.  No request is specified"
        elif request < least:
            yield f"{told}, but request is {request}"
        elif capped is not None and capped < least:
            yield f"{told}, but limit is {capped}"


def _above(kind: str, limit: Raw, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, most in sorted(parse_amounts(limit.get("max")).items()):
        told = f"maximum {name} usage per {kind} is {most}"
        request = requests.get(name)
        capped = limits.get(name)
        if capped is None:
            yield f"{told}.  No limit is specified"
        elif capped > most:
            yield f"{told}, but limit is {capped}"
        elif request is not None and request > most:
            yield f"{told}, but request is {request}"


def _volume_above(limit: Raw, requests: Amounts) -> Iterator[str]:
    for name, most in sorted(parse_amounts(limit.get("max")).items()):
        told = f"maximum {name} usage per PersistentVolumeClaim is {most}"
        request = requests.get(name)
        if request is None:
            yield f"{told}.  No request is specified"
        elif request > most:
            yield f"{told}, but request is {request}"


def _ratio(
    told: str, most: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    if request is None or not request.sign:
        yield f"{told}, but no request is specified or request is 0"
    elif limit is None or not limit.sign:
        yield f"{told}, but no limit is specified or limit is 0"
    else:
        found = limit.milli_value() / request.milli_value()
        if found * 1000 > most.milli_value():
            yield f"{told}, but provided ratio is {found:f}"
