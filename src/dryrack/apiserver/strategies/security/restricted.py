"""The rules that the level `restricted` adds to `baseline`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.security import baseline
from dryrack.apiserver.strategies.security.pod import Finding, name_items, plural, setters
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.apiserver.strategies.security.pod import Check, Pod
    from dryrack.kinds.raw import Raw

_CAPABILITIES = ("NET_BIND_SERVICE",)
_VOLUMES = frozenset(
    (
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
        *("persistentVolumeClaim", "projected", "secret"),
    )
)


def unless_windows(check: Check) -> Check:
    """Return a check that exempts pods for Windows."""

    def exempting(pod: Pod) -> Finding | None:
        is_windows = get(pod.spec, "os.name") == "windows"
        return None if is_windows else check(pod)

    return exempting


def unless_own_users(check: Check) -> Check:
    """Return a check that exempts pods with a user namespace: root has no rights outside of it."""

    def exempting(pod: Pod) -> Finding | None:
        return None if pod.spec.get("hostUsers") is False else check(pod)

    return exempting


def escalation(pod: Pod) -> Finding | None:
    key = "allowPrivilegeEscalation"
    who = setters(pod.containers_where(lambda given: given.get(key) is not False))
    detail = f"{who} must set securityContext.{key}=false"
    return Finding(f"{key} != false", detail) if who else None


def capabilities(pod: Pod) -> Finding | None:
    keeping = setters(pod.containers_where(_keeps_some))
    dropping = 'must set securityContext.capabilities.drop=["ALL"]'
    details = [f"{keeping} {dropping}"] if keeping else []
    adding = baseline.added_capabilities(pod, _CAPABILITIES)
    details += [adding] if adding else []
    return Finding("unrestricted capabilities", "; ".join(details)) if details else None


def _keeps_some(given: Raw) -> bool:
    return "ALL" not in get(given, "capabilities.drop", ())


def volumes(pod: Pod) -> Finding | None:
    bad = [each for each in get(pod.spec, "volumes", ()) if _VOLUMES.isdisjoint(each)]
    if not bad:
        return None
    names = [each.get("name") or "" for each in bad]
    kinds = sorted({next((key for key in each if key != "name"), "unknown") for each in bad})
    use = plural("uses", names, "use")
    detail = f"{use} {name_items('restricted volume type', kinds)}"
    return Finding("restricted volume types", f"{name_items('volume', names)} {detail}")


def non_root(pod: Pod) -> Finding | None:
    whole = pod.context.get("runAsNonRoot")
    key = "runAsNonRoot"
    who = setters(pod.containers_where(lambda given: given.get(key) is False), pod=whole is False)
    reason = f"{key} != true"
    field = f"securityContext.{key}"
    if who:
        return Finding(reason, f"{who} must not set {field}=false")
    silent = setters(pod.containers_where(lambda given: given.get(key) is None and not whole))
    return Finding(reason, f"pod or {silent} must set {field}=true") if silent else None


def user_zero(pod: Pod) -> Finding | None:
    names = pod.containers_where(lambda given: given.get("runAsUser") == 0)
    who = setters(names, pod=pod.context.get("runAsUser") == 0)
    return Finding("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def seccomp(pod: Pod) -> Finding | None:
    """Report containers without a seccomp profile of an allowed type."""
    found = baseline.seccomp(pod)
    if found is not None or pod.context.get("seccompProfile"):
        return found
    silent = setters(pod.containers_where(lambda given: not given.get("seccompProfile")))
    values = " or ".join(f'"{each}"' for each in reversed(baseline.SECCOMP))
    detail = f"pod or {silent} must set securityContext.seccompProfile.type to {values}"
    return Finding("seccompProfile", detail) if silent else None
