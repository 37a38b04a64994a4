"""What the level `restricted` asks for besides: that nothing is more than it has to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.strategies.security.baseline import SECCOMP
from dryrack.apiserver.strategies.security.baseline import seccomp as seccomp_set
from dryrack.apiserver.strategies.security.findings import (
    Finding,
    containers,
    context,
    counted,
    plural,
    quoted,
    setters,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[dict[str, Any], dict[str, Any]], Finding | None]

Raw = dict[str, Any]

_VOLUMES = frozenset(
    (
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
        *("persistentVolumeClaim", "projected", "secret"),
    )
)


def unless_windows(check: Check) -> Check:
    """Pods for windows have none of it."""

    def exempting(meta: Raw, spec: Raw) -> Finding | None:
        is_windows = (spec.get("os") or {}).get("name") == "windows"
        return None if is_windows else check(meta, spec)

    return exempting


def unless_own_users(check: Check) -> Check:
    """Who is root among users of its own is nobody elsewhere."""

    def exempting(meta: Raw, spec: Raw) -> Finding | None:
        return None if spec.get("hostUsers") is False else check(meta, spec)

    return exempting


def escalation(meta: Raw, spec: Raw) -> Finding | None:
    key = "allowPrivilegeEscalation"
    names = [name for name, _, given in containers(spec) if given.get(key) is not False]
    if not names:
        return None
    detail = f"{counted('container', names)} must set securityContext.{key}=false"
    return Finding(f"{key} != false", detail)


def capabilities(meta: Raw, spec: Raw) -> Finding | None:
    given = {name: each.get("capabilities") or {} for name, _, each in containers(spec)}
    keeping = [name for name, each in given.items() if "ALL" not in (each.get("drop") or ())]
    added = {
        name: [cap for cap in each.get("add") or () if cap != "NET_BIND_SERVICE"]
        for name, each in given.items()
    }
    adding = [name for name, caps in added.items() if caps]
    details = []
    if keeping:
        who = counted("container", keeping)
        details.append(f'{who} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        caps = quoted(sorted({cap for each in added.values() for cap in each}))
        who = counted("container", adding)
        details.append(f"{who} must not include {caps} in securityContext.capabilities.add")
    return Finding("unrestricted capabilities", "; ".join(details)) if details else None


def volumes(meta: Raw, spec: Raw) -> Finding | None:
    bad = [each for each in spec.get("volumes") or () if _VOLUMES.isdisjoint(each)]
    if not bad:
        return None
    names = [each.get("name") or "" for each in bad]
    kinds = sorted({next((key for key in each if key != "name"), "unknown") for each in bad})
    use = plural("uses", names, "use")
    detail = f"{use} {counted('restricted volume type', kinds)}"
    return Finding("restricted volume types", f"{counted('volume', names)} {detail}")


def non_root(meta: Raw, spec: Raw) -> Finding | None:
    whole = context(spec).get("runAsNonRoot")
    said = [(name, given.get("runAsNonRoot")) for name, _, given in containers(spec)]
    who = setters([name for name, value in said if value is False], pod=whole is False)
    reason, field = "runAsNonRoot != true", "securityContext.runAsNonRoot"
    if who:
        return Finding(reason, f"{who} must not set {field}=false")
    silent = [name for name, value in said if value is None and not whole]
    if not silent:
        return None
    return Finding(reason, f"pod or {counted('container', silent)} must set {field}=true")


def user_zero(meta: Raw, spec: Raw) -> Finding | None:
    names = [name for name, _, given in containers(spec) if given.get("runAsUser") == 0]
    who = setters(names, pod=context(spec).get("runAsUser") == 0)
    return Finding("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp(meta: Raw, spec: Raw) -> Finding | None:
    """A profile that is there, for everybody."""
    found = seccomp_set(meta, spec)
    if found is not None or context(spec).get("seccompProfile"):
        return found
    silent = [name for name, _, given in containers(spec) if not given.get("seccompProfile")]
    if not silent:
        return None
    values = " or ".join(f'"{each}"' for each in reversed(SECCOMP))
    who = f"pod or {counted('container', silent)}"
    return Finding(
        "seccompProfile", f"{who} must set securityContext.seccompProfile.type to {values}"
    )
