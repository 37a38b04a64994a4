"""The specs of ResourceClaims and ResourceClaimTemplates."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from dryrack.kinds.resource import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from dryrack.kinds.validation.derived_attributes import DerivedAttributes
from dryrack.kinds.validation.meta import (
    SUBDOMAIN,
    metadata,
    metadata_change,
    template_metadata,
    unchanged,
)
from dryrack.kinds.validation.names import (
    checked,
    device_label,
    fully_qualified_name,
    label,
    subdomain,
)
from dryrack.kinds.validation.parts import (
    Expressions,
    Judging,
    configuration,
    device_selectors,
    distinct,
    items,
    toleration,
)
from dryrack.kinds.validation.problems import (
    FieldProblem,
    forbidden,
    invalid,
    not_supported,
    required,
)

REQUESTS_MAX = 32
CONSTRAINTS_MAX = 32
CONFIG_MAX = 32
SUBREQUESTS_MAX = 8
ADMIN_ACCESS_LABEL = "resource.kubernetes.io/admin-access"

_ALLOCATION_MODES = ("All", "ExactCount")
_ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"
_REFERENCE = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
NamespaceLabels: TypeAlias = Mapping[str, str] | None


class RequestNames:
    """The names that constraints, configuration and results may refer to."""

    def __init__(self, claim: DeviceClaim) -> None:
        # Of requests with one name, which is a mistake of its own, the last one counts.
        self._subrequests = {
            request.name: {each.name for each in request.first_available}
            for request in claim.requests
        }

    def problems(self, field: str, name: str) -> Iterator[FieldProblem]:
        parts = name.split("/")
        if len(parts) > 2:
            yield invalid(field, name, _REFERENCE)
            return
        for part in parts:
            yield from checked(field, part, label)
        if not self._has(*parts):
            yield invalid(field, name, _REFERENCE, fix=self._advice())

    def _has(self, request: str, subrequest: str | None = None) -> bool:
        known = self._subrequests.get(request)
        return known is not None and (subrequest is None or subrequest in known)

    def _advice(self) -> str:
        names = ", ".join(sorted(self._subrequests))
        return f"use one of {names}" if names else ""


def created(obj: ResourceClaim, judging: Judging) -> Iterator[FieldProblem]:
    yield from _admin_access(obj.spec, judging.namespace_labels)
    yield from metadata(obj.metadata, SUBDOMAIN, namespaced=True, behaviour=judging.behaviour)
    yield from _spec("spec", obj.spec, judging.expressions)


def updated(obj: ResourceClaim, old: ResourceClaim, judging: Judging) -> Iterator[FieldProblem]:
    """Check an update of a claim, whose spec cannot change and is not validated again."""
    yield from metadata(obj.metadata, SUBDOMAIN, namespaced=True, behaviour=judging.behaviour)
    yield from metadata_change(obj.metadata, old.metadata, judging.behaviour)
    yield from unchanged("spec", obj.spec, old.spec)


def template_created(obj: ResourceClaimTemplate, judging: Judging) -> Iterator[FieldProblem]:
    yield from _admin_access(obj.spec.spec, judging.namespace_labels)
    yield from _template(obj, judging)


def template_updated(
    obj: ResourceClaimTemplate, old: ResourceClaimTemplate, judging: Judging
) -> Iterator[FieldProblem]:
    yield from _template(obj, judging)
    yield from metadata_change(obj.metadata, old.metadata, judging.behaviour)
    yield from unchanged("spec", obj.spec, old.spec)


def _template(obj: ResourceClaimTemplate, judging: Judging) -> Iterator[FieldProblem]:
    yield from metadata(obj.metadata, SUBDOMAIN, namespaced=True, behaviour=judging.behaviour)
    yield from template_metadata("spec.metadata", obj.spec.metadata)
    yield from _spec("spec.spec", obj.spec.spec, judging.expressions)


def _admin_access(
    spec: ResourceClaimSpec, namespace_labels: NamespaceLabels
) -> Iterator[FieldProblem]:
    for position, request in enumerate(spec.devices.requests):
        if request.exactly is not None and request.exactly.admin_access:
            field = f"spec.devices.requests[{position}].adminAccess"
            yield from admin_access_granted(field, namespace_labels)
            return


def admin_access_granted(field: str, namespace_labels: NamespaceLabels) -> Iterator[FieldProblem]:
    """A problem unless the namespace allows it; nothing if the namespace is not known."""
    if namespace_labels is not None and namespace_labels.get(ADMIN_ACCESS_LABEL) != "true":
        yield forbidden(
            field,
            f"admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the "
            "containing namespace",
            fix=f"label the namespace: {ADMIN_ACCESS_LABEL}=true",
        )


def _spec(field: str, spec: ResourceClaimSpec, expressions: Expressions) -> Iterator[FieldProblem]:
    claim = spec.devices
    at = f"{field}.devices"
    names = RequestNames(claim)
    derived = DerivedAttributes(claim.constraints, expressions)

    def request(where: str, given: DeviceRequest) -> Iterator[FieldProblem]:
        return _request(where, given, expressions, derived)

    def constraint(where: str, given: DeviceConstraint) -> Iterator[FieldProblem]:
        return _constraint(where, given, names)

    def config(where: str, given: DeviceClaimConfiguration) -> Iterator[FieldProblem]:
        yield from references(f"{where}.requests", given.requests, names)
        yield from configuration(where, given.opaque, stored=False)

    yield from distinct(
        f"{at}.requests",
        claim.requests,
        request,
        key=lambda each: each.name,
        count_max=REQUESTS_MAX,
    )
    yield from items(f"{at}.constraints", claim.constraints, constraint, count_max=CONSTRAINTS_MAX)
    yield from items(f"{at}.config", claim.config, config, count_max=CONFIG_MAX)
    yield from derived.cost_problems(at)


def references(
    field: str, requests: tuple[str, ...], names: RequestNames
) -> Iterator[FieldProblem]:
    """A list of requests that something applies to."""
    return distinct(field, requests, names.problems, key=str, count_max=REQUESTS_MAX)


def _request(
    field: str, request: DeviceRequest, expressions: Expressions, derived: DerivedAttributes
) -> Iterator[FieldProblem]:
    yield from device_label(f"{field}.name", request.name)
    if request.exactly is not None and request.first_available:
        yield invalid(field, None, f"{_ONE_OF}, but multiple fields are set")
    elif request.exactly is not None:
        at = f"{field}.exactly"
        yield from _request_fields(at, request.exactly, expressions)
        yield from derived.problems(at, request.exactly.derived_attributes, request.name)
    elif request.first_available:
        yield from _alternatives(f"{field}.firstAvailable", request, expressions, derived)
    else:
        yield required(field, _ONE_OF)


def _alternatives(
    field: str, request: DeviceRequest, expressions: Expressions, derived: DerivedAttributes
) -> Iterator[FieldProblem]:
    def check(at: str, given: DeviceSubRequest) -> Iterator[FieldProblem]:
        yield from device_label(f"{at}.name", given.name)
        yield from _request_fields(at, given, expressions)
        name = f"{request.name}/{given.name}"
        yield from derived.problems(at, given.derived_attributes, name)

    return distinct(
        field,
        request.first_available,
        check,
        key=lambda each: each.name,
        count_max=SUBREQUESTS_MAX,
    )


def _request_fields(
    field: str, given: ExactDeviceRequest | DeviceSubRequest, expressions: Expressions
) -> Iterator[FieldProblem]:
    if not given.device_class_name:
        yield required(f"{field}.deviceClassName")
    else:
        yield from checked(f"{field}.deviceClassName", given.device_class_name, subdomain)
    yield from device_selectors(f"{field}.selectors", given.selectors, expressions)
    mode = given.allocation_mode or "ExactCount"
    count = given.count
    if mode == "All" and count:
        detail = "must not be specified when allocationMode is 'All'"
        yield invalid(f"{field}.count", count, detail, fix="leave the count out")
    # No count at all means one.
    elif mode == "ExactCount" and count < 0:
        yield invalid(f"{field}.count", count, "must be greater than zero")
    elif mode not in _ALLOCATION_MODES:
        yield not_supported(f"{field}.allocationMode", mode, _ALLOCATION_MODES)
    yield from items(f"{field}.tolerations", given.tolerations, toleration)


def _constraint(
    field: str, constraint: DeviceConstraint, names: RequestNames
) -> Iterator[FieldProblem]:
    yield from references(f"{field}.requests", constraint.requests, names)
    # With both, the server looks at the first only.
    if constraint.match_attribute is not None:
        yield from fully_qualified_name(f"{field}.matchAttribute", constraint.match_attribute)
    elif constraint.distinct_attribute is not None:
        yield from fully_qualified_name(f"{field}.distinctAttribute", constraint.distinct_attribute)
    else:
        detail = (
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple '
            "fields are set"
        )
        yield required(field, detail)
