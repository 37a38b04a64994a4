"""
DR7xx: objects that rule over other people's devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.hardware.names import suggestion
from dryrack.kinds.convert import GROUP
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.registry import Registry
from dryrack.linter.world import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kinds.documents import Document
    from dryrack.kinds.resource import DeviceTaintSelector
    from dryrack.linter.finding import Path
    from dryrack.linter.world import PlacedDevice, World

RULES = Registry()

_ADMIN_LABEL = "resource.kubernetes.io/admin-access"


def _is_empty(selector: DeviceTaintSelector) -> bool:
    return not (selector.driver or selector.pool or selector.device)


@RULES.rule(
    "DR701",
    "taints-everything",
    Severity.WARNING,
    summary="A taint rule selects every device in the cluster.",
)
def taints_everything(world: World) -> Iterator[Problem]:
    """
    An empty selector selects all devices. With the effect NoExecute, the rule evicts every pod in
    the cluster that uses a device of any driver.
    """
    for entry in world.taint_rules:
        selector = entry.value.spec.device_selector
        if selector is not None and _is_empty(selector):
            evicts = entry.value.spec.taint.effect == "NoExecute"
            yield Problem(
                entry,
                ("spec", "deviceSelector"),
                "the empty selector taints every device of every driver in the cluster"
                + (", and evicts every pod that uses one" if evicts else ""),
                "select a driver, pool or device",
            )


@RULES.rule(
    "DR702",
    "taints-nothing",
    Severity.WARNING,
    summary="A taint rule without a selector has no effect.",
)
def taints_nothing(world: World) -> Iterator[Problem]:
    """A rule selects no device if it has no `deviceSelector`."""
    for entry in world.taint_rules:
        if entry.value.spec.device_selector is None:
            yield Problem(
                entry,
                ("spec",),
                "without deviceSelector the rule taints no device",
                "add deviceSelector with a driver, pool or device",
            )


def _selects(selector: DeviceTaintSelector, placed: PlacedDevice) -> bool:
    spec = placed.entry.value.spec
    return (
        selector.driver in (None, spec.driver)
        and selector.pool in (None, spec.pool.name)
        and selector.device in (None, placed.device.name)
    )


@RULES.rule(
    "DR703",
    "taints-no-device",
    Severity.WARNING,
    summary="A taint rule selects no device in the files.",
)
def taints_no_device(world: World) -> Iterator[Problem]:
    """The rule also applies to devices that appear later, but never with a misspelled name."""
    for entry in world.taint_rules:
        selector = entry.value.spec.device_selector
        if selector is None or _is_empty(selector) or not world.devices:
            continue
        if not any(_selects(selector, placed) for placed in world.devices):
            yield Problem(
                entry,
                ("spec", "deviceSelector"),
                "the rule selects no device in the files",
                _near(selector, world) or "correct the driver, pool or device",
            )


def _near(selector: DeviceTaintSelector, world: World) -> str:
    """A hint for the first part of the selector that nothing has."""
    devices = world.devices
    parts = (
        (selector.driver, {placed.entry.value.spec.driver for placed in devices}),
        (selector.pool, {placed.entry.value.spec.pool.name for placed in devices}),
        (selector.device, {placed.device.name for placed in devices}),
    )
    for name, known in parts:
        if name is not None and name not in known:
            return suggestion(name, known)
    return ""


@RULES.rule(
    "DR704",
    "admin-label-value",
    Severity.WARNING,
    summary='The admin access label of a namespace has a value other than "true".',
)
def admin_label_value(world: World) -> Iterator[Problem]:
    """The API server allows admin access only if the value is exactly "true"."""
    for entry in world.namespaces:
        value = entry.value.metadata.labels.get(_ADMIN_LABEL, "true")
        if value != "true":
            yield Problem(
                entry,
                ("metadata", "labels", _ADMIN_LABEL),
                f"the value {value!r} does not allow admin access",
                'set it to "true", or remove the label',
            )


@RULES.rule(
    "DR706",
    "admin-namespace-unknown",
    Severity.WARNING,
    summary="A claim requests admin access in a namespace that is not in the files.",
)
def admin_namespace_unknown(world: World) -> Iterator[Problem]:
    """
    The API server rejects the claim unless the namespace has the admin access label. Add the
    Namespace to the files, so that the rule can check the label. The rule does not report claims
    of a dump, because their cluster has accepted them.
    """
    for ask in world.asks:
        claim = ask.claim
        is_known = claim.namespace in world.namespace_of or bool(claim.entry.document.uid)
        if ask.is_admin and not is_known:
            yield Problem(
                claim.entry,
                (*ask.path, "adminAccess"),
                f"namespace {claim.namespace!r} is not in the files; without the label"
                f" {_ADMIN_LABEL} the API server rejects admin access in it",
                f'add the Namespace with the label {_ADMIN_LABEL}: "true"',
            )


_STATUS = "resourceclaims/status"
# The part of the status that each right permits, in addition to the right to write the status.
_PARTS = ("resourceclaims/binding", "resourceclaims/driver")
_WRITING = frozenset({"update", "patch", "*"})


@RULES.rule(
    "DR705",
    "status-not-enough",
    Severity.WARNING,
    summary="A role allows writing the status of claims, but no part of the status.",
)
def status_not_enough(world: World) -> Iterator[Problem]:
    """
    Since Kubernetes 1.36, a scheduler that writes allocations needs `resourceclaims/binding` in
    addition to `resourceclaims/status`. A driver that writes the status of devices needs
    `resourceclaims/driver`. Otherwise the API server forbids the write.
    """
    for document in world.documents:
        if document.kind not in ("ClusterRole", "Role"):
            continue
        grants = list(_grants(document))
        granted = {resource for _, resource in grants}
        for path, resource in grants:
            if resource == _STATUS and not granted.intersection((*_PARTS, "*", "resourceclaims/*")):
                yield Problem(
                    Entry(document, None),
                    path,
                    "the role allows writing the status of claims, but neither the allocation nor"
                    " the status of devices",
                    f"add {_PARTS[0]} for a scheduler, or {_PARTS[1]} for a driver",
                )


def _grants(document: Document) -> Iterator[tuple[Path, str]]:
    """Yield the resources and subresources of the group that a role allows to write."""
    rules = document.raw.get("rules")
    for index, rule in enumerate(rules if isinstance(rules, list) else ()):
        if not isinstance(rule, dict) or not {GROUP, "*"}.intersection(_texts(rule, "apiGroups")):
            continue
        resources = _texts(rule, "resources")
        is_writing = _WRITING.intersection(_texts(rule, "verbs"))
        for resource in resources:
            if is_writing or resource in _PARTS:
                yield ("rules", index, "resources"), resource


def _texts(rule: Mapping[str, Any], field: str) -> list[str]:
    values = rule.get(field)
    return [each for each in values if isinstance(each, str)] if isinstance(values, list) else []
