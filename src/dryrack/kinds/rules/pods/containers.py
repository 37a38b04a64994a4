"""Validation of containers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules import checks
from dryrack.kinds.rules.pods import environment, mounts, security
from dryrack.kinds.rules.pods import resource_amounts as amounts
from dryrack.kinds.rules.pods.handlers import PROBES, hooks, probes
from dryrack.kinds.validation.names import checked, label
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_many,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_RESTART_RULES_MAX = 20
_EXIT_CODES_MAX = 255
_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_RESIZED = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")


@dataclass(frozen=True, slots=True)
class PodContext:
    """The parts of a pod to which its containers refer."""

    spec: Raw
    volumes: Mapping[str, Raw]
    claims: Mapping[str, Sequence[FieldProblem]]
    """Problems of the use of claims, by the field of the container."""

    @property
    def grace_seconds(self) -> int | None:
        return self.spec.get("terminationGracePeriodSeconds")


def containers(at: str, context: PodContext) -> Iterator[FieldProblem]:
    """Check the containers of a pod."""
    given = get(context.spec, "containers", ())
    if not given:
        yield required(at)
    seen: set[str] = set()
    for position, container in enumerate(given):
        path = f"{at}[{position}]"
        name = container.get("name") or ""
        yield from _common(path, container, context)
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        yield from hooks(path, container, context.grace_seconds)
        yield from probes(path, container)
        yield from _restarts(path, container)
    yield from _host_ports(at, given)


def init_containers(at: str, context: PodContext) -> Iterator[FieldProblem]:
    """Check the init containers of a pod."""
    seen = {container.get("name") or "" for container in get(context.spec, "containers", ())}
    for position, container in enumerate(get(context.spec, "initContainers", ())):
        path = f"{at}[{position}]"
        name = container.get("name") or ""
        yield from _common(path, container, context)
        yield from _restarts(path, container)
        if name in seen:
            yield duplicate(f"{path}.name", name)
        # Missing names are not duplicates.
        seen.update([name] if name else [])
        yield from _host_ports(at, [container])
        if container.get("restartPolicy") == "Always":
            yield from hooks(path, container, context.grace_seconds)
            yield from probes(path, container)
        else:
            yield from _not_for_init(path, container)


def ephemeral_containers(at: str, context: PodContext) -> Iterator[FieldProblem]:
    """Check the ephemeral containers of a pod."""
    if not context.spec.get("ephemeralContainers"):
        return
    others = {
        container.get("name") or ""
        for key in ("containers", "initContainers")
        for container in context.spec.get(key) or ()
    }
    seen = set(others)
    for position, container in enumerate(get(context.spec, "ephemeralContainers", ())):
        path = f"{at}[{position}]"
        name = container.get("name") or ""
        yield from _common(path, container, context)
        yield from image_spaces(path, container)
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        target = container.get("targetContainerName")
        if target and target not in others:
            yield FieldProblem(Reason.NOT_FOUND, f"{path}.targetContainerName", target)
        yield from _not_for_ephemeral(path, container)


def _not_for_ephemeral(at: str, container: Raw) -> Iterator[FieldProblem]:
    detail = "cannot be set for an Ephemeral Container"
    for key in _NOT_EPHEMERAL:
        if container.get(key):
            yield forbidden(f"{at}.{key}", detail)
    for position, mount in enumerate(get(container, "volumeMounts", ())):
        for key in ("subPath", "subPathExpr"):
            if mount.get(key):
                yield forbidden(f"{at}.volumeMounts[{position}].{key}", detail)


def image_spaces(at: str, container: Raw) -> Iterator[FieldProblem]:
    """Check the image for white space, which templates may have."""
    image = container.get("image") or ""
    if image.strip() != image:
        yield invalid(f"{at}.image", image, "must not have leading or trailing whitespace")


def _not_for_init(at: str, container: Raw) -> Iterator[FieldProblem]:
    detail = "may not be set for init containers without restartPolicy=Always"
    for key in ("lifecycle", *PROBES):
        if container.get(key) is not None:
            yield forbidden(f"{at}.{key}", detail)
    for position, policy in enumerate(get(container, "resizePolicy", ())):
        if policy.get("restartPolicy") == "RestartContainer":
            path = f"{at}.resizePolicy[{position}].restartPolicy"
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            yield invalid(path, "RestartContainer", detail)


def _common(at: str, given: Raw, context: PodContext) -> Iterator[FieldProblem]:
    name = given.get("name") or ""
    yield from checked(f"{at}.name", name, label) if name else (required(f"{at}.name"),)
    if not given.get("image"):
        yield required(f"{at}.image")
    policy = given.get("terminationMessagePolicy") or ""
    yield from checks.one_of(f"{at}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    yield from _ports(f"{at}.ports", get(given, "ports", ()))
    yield from environment.variables(f"{at}.env", get(given, "env", ()))
    yield from environment.sources(f"{at}.envFrom", get(given, "envFrom", ()))
    yield from mounts.mounts(f"{at}.volumeMounts", given, context.volumes)
    yield from mounts.devices(f"{at}.volumeDevices", given, context.volumes)
    yield from checks.one_of(
        f"{at}.imagePullPolicy", given.get("imagePullPolicy") or "", _PULL_POLICIES
    )
    yield from amounts.of_container(f"{at}.resources", get(given, "resources", {}))
    yield from context.claims.get(at, ())
    never = context.spec.get("restartPolicy") == "Never"
    yield from _resize_policies(f"{at}.resizePolicy", get(given, "resizePolicy", ()), never=never)
    yield from security.of_container(
        f"{at}.securityContext",
        get(given, "securityContext", {}),
        shares_users=context.spec.get("hostUsers") is not False,
    )


def _ports(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for position, port in enumerate(given):
        path = f"{at}[{position}]"
        name = port.get("name") or ""
        complaints = checks.port_name(name) if name else ()
        yield from (invalid(f"{path}.name", name, complaint) for complaint in complaints)
        if name and not complaints and name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        number = port.get("containerPort")
        if number:
            yield from checks.port_number(f"{path}.containerPort", number)
        else:
            yield required(f"{path}.containerPort")
        if port.get("hostPort"):
            yield from checks.port_number(f"{path}.hostPort", port["hostPort"])
        yield from checks.one_of(f"{path}.protocol", port.get("protocol") or "", _PROTOCOLS)


def _host_ports(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, container in enumerate(given):
        for position, port in enumerate(get(container, "ports", ())):
            if not port.get("hostPort"):
                continue
            known = f"{port.get('protocol')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if known in seen:
                yield duplicate(f"{at}[{index}].ports[{position}].hostPort", known)
            seen.add(known)


def _resize_policies(at: str, given: Sequence[Raw], *, never: bool) -> Iterator[FieldProblem]:
    """Check the resize policies; with `never`, no container may restart."""
    seen: set[str] = set()
    for position, policy in enumerate(given):
        name = policy.get("resourceName") or ""
        action = policy.get("restartPolicy") or ""
        if name in seen:
            yield duplicate(f"{at}[{position}]", name)
        seen.add(name)
        yield from checks.one_of(at, name, _RESIZED)
        yield from checks.one_of(at, action, _RESIZE_POLICIES)
        if never and action != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid(at, action, detail)


def _restarts(at: str, container: Raw) -> Iterator[FieldProblem]:
    """When a container by itself starts again."""
    policy = container.get("restartPolicy")
    rules = get(container, "restartPolicyRules", ())
    if policy is None and rules:
        detail = "must specify restartPolicy when restart rules are used"
        yield required(f"{at}.restartPolicy", detail)
    elif policy is not None and policy not in _RESTART_POLICIES:
        yield not_supported(f"{at}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > _RESTART_RULES_MAX:
        yield too_many(f"{at}.restartPolicyRules", len(rules), _RESTART_RULES_MAX)
    for position, rule in enumerate(rules):
        yield from _restart_rule(f"{at}.restartPolicyRules[{position}]", rule)


def _restart_rule(at: str, rule: Raw) -> Iterator[FieldProblem]:
    if rule.get("action") not in _RESTART_ACTIONS:
        yield not_supported(f"{at}.action", rule.get("action") or "", _RESTART_ACTIONS)
    codes = rule.get("exitCodes")
    if codes is None:
        yield required(f"{at}.exitCodes", "must be specified")
        return
    if codes.get("operator") not in ("In", "NotIn"):
        yield not_supported(
            f"{at}.exitCodes.operator", codes.get("operator") or "", ("In", "NotIn")
        )
    count = len(get(codes, "values", ()))
    if count > _EXIT_CODES_MAX:
        yield too_many(f"{at}.exitCodes.values", count, _EXIT_CODES_MAX)
