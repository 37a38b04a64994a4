"""
What is wrong with the spec of a pod, or of a template.

The checks are those that people run into, in the server's order and words. What only few pods use
(windows, volumes of single vendors, security contexts) is taken as it comes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.strategies import checks
from dryrack.apiserver.strategies.pods import placement
from dryrack.apiserver.strategies.pods.containers import (
    Surroundings,
    containers,
    identities,
    init_containers,
)
from dryrack.apiserver.strategies.pods.volumes import volumes
from dryrack.kinds.core import Pod, PodResourceClaim
from dryrack.kinds.decode import decode
from dryrack.kinds.validation.names import checked, label, label_value, subdomain
from dryrack.kinds.validation.pods import pod_claims
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Token,
    invalid,
    not_supported,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Raw = dict[str, Any]

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_LISTS = ("initContainers", "containers")
_NAMES = (
    ("serviceAccountName", subdomain),
    ("nodeName", subdomain),
)
_OTHER_NAMES = (("hostname", label), ("subdomain", label))


def spec_problems(at: str, spec: Raw, annotations: Raw | None = None) -> Iterator[FieldProblem]:
    """Everything about a spec under a path."""
    found, names = volumes(f"{at}.volumes", spec.get("volumes") or ())
    yield from found
    claims = _claims(at, spec, annotations or {})
    prefix = f"{at}.resourceClaims"
    yield from (each for each in claims if not each.field or each.field.startswith(prefix))
    regular = spec.get("containers") or ()
    around = Surroundings(names, _by_container(claims))
    yield from containers(f"{at}.containers", regular, around)
    yield from init_containers(
        f"{at}.initContainers", spec.get("initContainers") or (), regular, around
    )
    yield from _policies(at, spec)
    yield from _placement(at, spec)
    yield from _identity(at, spec)


def _claims(at: str, spec: Raw, annotations: Raw) -> list[FieldProblem]:
    """What the spec says about claims, judged as everywhere, under the path it has here."""
    used = (each.get("resources") or {} for key in _LISTS for each in spec.get(key) or ())
    if not spec.get("resourceClaims") and not any("claims" in each for each in used):
        return []
    wanted = {key: spec[key] for key in ("resourceClaims", *_LISTS) if key in spec}
    pod = decode({"metadata": {"annotations": annotations}, "spec": wanted}, Pod)
    return [_moved(each, at) for each in pod_claims(pod)]


def _moved(problem: FieldProblem, at: str) -> FieldProblem:
    path, value = problem.field, problem.value
    if isinstance(value, PodResourceClaim):
        # The server shows the names of its own structs.
        value = {
            "Name": value.name,
            "ResourceClaimName": value.resource_claim_name,
            "ResourceClaimTemplateName": value.resource_claim_template_name,
        }
    return replace(problem, field=f"{at}{path.removeprefix('spec')}" if path else "", value=value)


def _by_container(claims: Sequence[FieldProblem]) -> dict[str, list[FieldProblem]]:
    found: dict[str, list[FieldProblem]] = {}
    for problem in claims:
        container, separator, _ = problem.field.partition(".resources.claims")
        if separator:
            found.setdefault(container, []).append(problem)
    return found


def _policies(at: str, spec: Raw) -> Iterator[FieldProblem]:
    if spec.get("hostNetwork"):
        yield from _host_network(at, spec)
    policy = spec.get("restartPolicy") or ""
    yield from checks.one_of(f"{at}.restartPolicy", policy, _RESTART_POLICIES)
    yield from checks.one_of(f"{at}.dnsPolicy", spec.get("dnsPolicy") or "", _DNS_POLICIES)
    yield from checks.labels_of(f"{at}.nodeSelector", spec.get("nodeSelector"))
    yield from identities(f"{at}.securityContext", spec.get("securityContext") or {})


def _host_network(at: str, spec: Raw) -> Iterator[FieldProblem]:
    for index, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if host and host != port.get("containerPort"):
                path = f"{at}.containers[{index}].ports[{position}].hostPort"
                yield invalid(path, host, "must match `containerPort` when `hostNetwork` is true")


def _placement(at: str, spec: Raw) -> Iterator[FieldProblem]:
    yield from placement.affinity(f"{at}.affinity", spec.get("affinity") or {})
    for position, gate in enumerate(spec.get("readinessGates") or ()):
        path = f"{at}.readinessGates[{position}].conditionType"
        yield from checks.qualified(path, gate.get("conditionType") or "")
    yield from placement.gates(f"{at}.schedulingGates", spec.get("schedulingGates") or ())
    constraints = spec.get("topologySpreadConstraints") or ()
    yield from placement.spread(f"{at}.topologySpreadConstraints", constraints)


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
    yield from tolerations(f"{at}.tolerations", spec.get("tolerations") or ())
    if spec.get("priorityClassName"):
        yield from checked(f"{at}.priorityClassName", spec["priorityClassName"], subdomain)
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        known = ("PreemptLowerPriority", "Never")
        yield from checks.one_of(f"{at}.preemptionPolicy", policy, known)


def tolerations(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    for position, toleration in enumerate(given):
        yield from _toleration(f"{at}[{position}]", toleration)


def _toleration(at: str, given: Raw) -> Iterator[FieldProblem]:
    key, operator = given.get("key") or "", given.get("operator") or ""
    effect = given.get("effect") or ""
    if key:
        yield from checks.qualified(f"{at}.key", key)
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
        # The gate of the comparing operators is off in the reference release.
        yield not_supported(f"{at}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))
    else:
        yield not_supported(f"{at}.operator", operator, ("Equal", "Exists"))
