"""
Validation of the spec of pods and templates.

The checks are those that people run into, in the server's order and words. What only few pods use
(windows, volumes of single vendors) is taken as it comes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get
from dryrack.kinds.rules import checks
from dryrack.kinds.rules.pods import network, placement, security
from dryrack.kinds.rules.pods import resource_amounts as amounts
from dryrack.kinds.rules.pods.containers import (
    PodContext,
    containers,
    ephemeral_containers,
    init_containers,
)
from dryrack.kinds.rules.pods.volumes import volumes
from dryrack.kinds.validation.names import checked, label, label_value, subdomain
from dryrack.kinds.validation.pods import pod_claims
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Token,
    invalid,
    not_supported,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_LISTS = ("initContainers", "containers")
_NAMES = (
    ("serviceAccountName", subdomain),
    ("nodeName", subdomain),
)
_OTHER_NAMES = (("hostname", label), ("subdomain", label))


def spec_problems(at: str, spec: Raw, annotations: Raw | None = None) -> Iterator[FieldProblem]:
    """Yield all problems of a spec at a path."""
    # Only the spec of a pod is at the top; all others are templates.
    volume_problems, known = volumes(f"{at}.volumes", get(spec, "volumes", ()), of_pod=at == "spec")
    yield from volume_problems
    claims = _claims(at, spec, annotations or {})
    prefix = f"{at}.resourceClaims"
    yield from (each for each in claims if not each.field or each.field.startswith(prefix))
    context = PodContext(spec, known, _by_container(claims))
    yield from containers(f"{at}.containers", context)
    yield from init_containers(f"{at}.initContainers", context)
    yield from ephemeral_containers(f"{at}.ephemeralContainers", context)
    yield from amounts.of_pod(f"{at}.resources", spec)
    yield from (each for each in claims if each.field.startswith(f"{at}.resources."))
    yield from network.host_network(at, spec)
    policy = spec.get("restartPolicy") or ""
    yield from checks.one_of(f"{at}.restartPolicy", policy, _RESTART_POLICIES)
    yield from checks.one_of(f"{at}.dnsPolicy", spec.get("dnsPolicy") or "", _DNS_POLICIES)
    yield from checks.labels_of(f"{at}.nodeSelector", spec.get("nodeSelector"))
    yield from security.of_pod(f"{at}.securityContext", get(spec, "securityContext", {}), spec)
    yield from placement.affinity(f"{at}.affinity", get(spec, "affinity", {}))
    yield from network.dns(f"{at}.dnsConfig", spec.get("dnsConfig"), spec.get("dnsPolicy") or "")
    for position, gate in enumerate(get(spec, "readinessGates", ())):
        path = f"{at}.readinessGates[{position}].conditionType"
        yield from checks.qualified_name(path, gate.get("conditionType") or "")
    yield from placement.gates(f"{at}.schedulingGates", get(spec, "schedulingGates", ()))
    constraints = get(spec, "topologySpreadConstraints", ())
    yield from placement.spread(f"{at}.topologySpreadConstraints", constraints)
    yield from network.host_users(at, spec)
    yield from _identity(at, spec)


def _claims(at: str, spec: Raw, annotations: Raw) -> list[FieldProblem]:
    """Return the problems of the claims of a pod, with paths below `at`."""
    users = [spec, *(each for key in _LISTS for each in spec.get(key) or ())]
    used = any("claims" in get(each, "resources", {}) for each in users)
    if not spec.get("resourceClaims") and not used:
        return []
    wanted = {key: spec[key] for key in ("resourceClaims", "resources", *_LISTS) if key in spec}
    pod = decode({"metadata": {"annotations": annotations}, "spec": wanted}, Pod)
    problems = []
    for problem in pod_claims(pod):
        path = f"{at}{problem.field.removeprefix('spec')}" if problem.field else ""
        problems.append(replace(problem, field=path))
    return problems


def _by_container(claims: Sequence[FieldProblem]) -> dict[str, list[FieldProblem]]:
    found: dict[str, list[FieldProblem]] = {}
    for problem in claims:
        container, separator, _ = problem.field.partition(".resources.claims")
        if separator:
            found.setdefault(container, []).append(problem)
    return found


def _identity(at: str, spec: Raw) -> Iterator[FieldProblem]:
    for key, checker in _NAMES:
        if spec.get(key):
            yield from checked(f"{at}.{key}", spec[key], checker)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None:
        yield from checks.in_range(f"{at}.activeDeadlineSeconds", deadline, 1, checks.INT32_MAX)
    for key, checker in _OTHER_NAMES:
        if spec.get(key):
            yield from checked(f"{at}.{key}", spec[key], checker)
    yield from tolerations(f"{at}.tolerations", get(spec, "tolerations", ()))
    yield from network.aliases(f"{at}.hostAliases", get(spec, "hostAliases", ()))
    yield from _classes(at, spec)


def _classes(at: str, spec: Raw) -> Iterator[FieldProblem]:
    for key in ("priorityClassName", "runtimeClassName"):
        if spec.get(key):
            yield from checked(f"{at}.{key}", spec[key], subdomain)
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        known = ("PreemptLowerPriority", "Never")
        yield from checks.one_of(f"{at}.preemptionPolicy", policy, known)
    system = spec.get("os")
    if system is not None and not system.get("name"):
        yield required(f"{at}.os.name")
    elif system is not None and system["name"] not in ("linux", "windows"):
        yield not_supported(f"{at}.os", system["name"], ("linux", "windows"))


def tolerations(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    for position, toleration in enumerate(given):
        yield from _toleration(f"{at}[{position}]", toleration)


def _toleration(at: str, given: Raw) -> Iterator[FieldProblem]:
    key = given.get("key") or ""
    operator = given.get("operator") or ""
    effect = given.get("effect") or ""
    if key:
        yield from checks.qualified_name(f"{at}.key", key)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and '
        yield invalid(f"{at}.operator", Token(operator), f'{detail}all keys"')
    if given.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{at}.effect", Token(effect), detail)
    yield from _toleration_value(at, operator, given.get("value") or "")
    if effect:
        yield from checks.taint_effect(f"{at}.effect", effect, may_be_empty=True)


def _toleration_value(at: str, operator: str, value: str) -> Iterator[FieldProblem]:
    if operator in ("Equal", ""):
        complaints = label_value(value)
        if complaints:
            yield invalid(f"{at}.operator", value, ";".join(complaints))
    elif operator == "Exists":
        if value:
            detail = "value must be empty when `operator` is 'Exists'"
            yield invalid(f"{at}.operator", value, detail)
    elif operator in ("Lt", "Gt"):
        # The gate of the comparing operators is off by default in every release.
        yield not_supported(f"{at}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))
    else:
        yield not_supported(f"{at}.operator", operator, ("Equal", "Exists"))
