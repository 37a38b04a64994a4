"""Validation of security contexts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules import checks
from dryrack.kinds.rules.checks import relative_path
from dryrack.kinds.validation.problems import duplicate, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_OF_THE_HOST = {
    "hostNetwork": ("net.",),
    "hostIPC": ("fs.mqueue.", "kernel.msg", "kernel.sem", "kernel.shm"),
}
_SYSCTL_CHARS_MAX = 253
_SYSCTL_PART = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SYSCTL_PART}[\./])*{_SYSCTL_PART}$"


def of_pod(at: str, given: Raw, spec: Raw) -> Iterator[FieldProblem]:
    """Check the security context of a pod."""
    yield from _identities(at, given, ("fsGroup", "runAsUser", "runAsGroup"))
    for position, group in enumerate(get(given, "supplementalGroups", ())):
        path = f"{at}.supplementalGroups[{position}]"
        yield from checks.in_range(path, group, 0, checks.INT32_MAX)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{at}.shareProcessNamespace", True, detail)
    yield from _sysctls(f"{at}.sysctls", get(given, "sysctls", ()), spec)
    yield from _one_of(at, given, "fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    yield from _seccomp(f"{at}.seccompProfile", given.get("seccompProfile"))
    yield from _app_armor(f"{at}.appArmorProfile", given.get("appArmorProfile"))
    yield from _one_of(at, given, "supplementalGroupsPolicy", ("Merge", "Strict"))
    yield from _one_of(at, given, "seLinuxChangePolicy", ("MountOption", "Recursive"))


def of_container(at: str, given: Raw, *, shares_users: bool) -> Iterator[FieldProblem]:
    """Check the security context of a container."""
    yield from _identities(at, given, ("runAsUser", "runAsGroup"))
    yield from _one_of(at, given, "procMount", ("Default", "Unmasked"))
    if shares_users and given.get("procMount") == "Unmasked":
        detail = "`hostUsers` must be false to use `Unmasked`"
        yield invalid(f"{at}.procMount", "Unmasked", detail)
    yield from _seccomp(f"{at}.seccompProfile", given.get("seccompProfile"))
    if given.get("allowPrivilegeEscalation") is False:
        what = "cannot set `allowPrivilegeEscalation` to false and"
        if given.get("privileged"):
            yield invalid(at, given, f"{what} `privileged` to true")
        if "CAP_SYS_ADMIN" in get(given, "capabilities.add", ()):
            yield invalid(at, given, f"{what} `capabilities.Add` CAP_SYS_ADMIN")
    yield from _app_armor(f"{at}.appArmorProfile", given.get("appArmorProfile"))


def _identities(at: str, given: Raw, keys: Sequence[str]) -> Iterator[FieldProblem]:
    for key in keys:
        if given.get(key) is not None:
            yield from checks.in_range(f"{at}.{key}", given[key], 0, checks.INT32_MAX)


def _one_of(at: str, given: Raw, key: str, known: Sequence[str]) -> Iterator[FieldProblem]:
    value = given.get(key)
    if value is not None and value not in known:
        yield not_supported(f"{at}.{key}", value, known)


def _sysctls(at: str, given: Sequence[Raw], spec: Raw) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for position, setting in enumerate(given):
        path = f"{at}[{position}].name"
        name = setting.get("name") or ""
        if not name:
            yield required(path)
        elif len(name) > _SYSCTL_CHARS_MAX or not re.match(_SYSCTL, name):
            detail = f"must have at most {_SYSCTL_CHARS_MAX} characters and match regex {_SYSCTL}"
            yield invalid(path, name, detail)
        elif name in seen:
            yield duplicate(path, name)
        seen.add(name)
        slash, dot = (name.find(each) % (len(name) + 1) for each in "/.")
        plain = name.replace("/", ".") if slash < dot else name
        for key, beginnings in _OF_THE_HOST.items():
            if spec.get(key) and plain.startswith(beginnings):
                yield invalid(path, name, f"may not be specified when '{key}' is true")


def _seccomp(at: str, given: Raw | None) -> Iterator[FieldProblem]:
    if given is None:
        return
    kind = given.get("type") or ""
    profile = given.get("localhostProfile")
    yield from _profile_type(f"{at}.type", kind, "seccompProfile")
    if kind != "Localhost" and profile is not None:
        detail = "can only be set when seccomp type is Localhost"
        yield invalid(f"{at}.localhostProfile", profile, detail)
    elif kind == "Localhost" and profile is None:
        detail = "must be set when seccomp type is Localhost"
        yield required(f"{at}.localhostProfile", detail)
    elif kind == "Localhost":
        yield from relative_path(f"{at}.localhostProfile", str(profile))


def _profile_type(at: str, kind: str, field: str) -> Iterator[FieldProblem]:
    if not kind:
        yield required(at, f"type is required when {field} is set")
    elif kind not in _PROFILES:
        yield not_supported(at, kind, _PROFILES)


def _app_armor(at: str, given: Raw | None) -> Iterator[FieldProblem]:
    if given is None:
        return
    kind = given.get("type") or ""
    profile = given.get("localhostProfile")
    yield from _profile_type(f"{at}.type", kind, "appArmorProfile")
    if kind == "Localhost":
        yield from _local_profile(f"{at}.localhostProfile", profile or "")
    elif kind in _PROFILES and profile is not None:
        detail = "can only be set when AppArmor type is Localhost"
        yield invalid(f"{at}.localhostProfile", profile, detail)


def _local_profile(at: str, profile: str) -> Iterator[FieldProblem]:
    if not profile:
        yield required(at, "must be set when AppArmor type is Localhost")
    elif profile.strip() != profile:
        yield invalid(at, profile, "must not be padded with whitespace")
