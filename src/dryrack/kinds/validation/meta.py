"""
Metadata: names, labels, owners, finalizers.

Managed fields are not checked: the server rewrites them before it validates.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dryrack.kinds.meta import Condition, ObjectMeta, OwnerReference
from dryrack.kinds.releases import DEFAULT_RELEASE, VALIDATION, ValidationBehaviour
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.names import (
    Checker,
    checked,
    condition_reason,
    label,
    label_key,
    label_value,
    long_name,
    lowered,
    path_segment,
    path_segment_prefix,
    repeated,
    subdomain,
    subdomain_prefix,
)
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    Token,
    byte_length,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)

DEFAULT_NAMESPACE = "default"
DEFAULT = VALIDATION[DEFAULT_RELEASE]
ANNOTATIONS_BYTES_MAX = 256 * 1024
IMMUTABLE = "field is immutable"

_ORPHAN = "orphan"
_FOREGROUND = "foregroundDeletion"
_STANDARD_FINALIZERS = ("kubernetes", _ORPHAN, _FOREGROUND)
_REASON_BYTES_MAX = 1024
_REPEATED_CONTROLLERS_MAX = 10
_MESSAGE_BYTES_MAX = 32 * 1024
_CONDITION_STATUSES = ("False", "True", "Unknown")
_ZERO_TIME = "0001-01-01T00:00:00Z"

# In the order and the spelling of the server: `uID` is how it writes the field of that name.
_ONLY_ON_OBJECTS = (
    ("name", "name"),
    ("generate_name", "generateName"),
    ("namespace", "namespace"),
    ("uid", "uID"),
    ("resource_version", "resourceVersion"),
    ("generation", "generation"),
    ("creation_timestamp", "creationTimestamp"),
    ("deletion_timestamp", "deletionTimestamp"),
    ("deletion_grace_period_seconds", "deletionGracePeriodSeconds"),
    ("owner_references", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managed_fields", "managedFields"),
)
_UNSET = ObjectMeta()


class Naming(NamedTuple):
    """The syntax of an object's name and generateName."""

    name: Checker
    generate_name: Checker | None


SUBDOMAIN = Naming(subdomain, subdomain_prefix)
# A newer way of the server's: only the name that came out is judged.
LONG_NAME_AS_MADE = Naming(long_name, None)
_ANY = Naming(path_segment, path_segment_prefix)


def metadata(
    meta: ObjectMeta,
    naming: Naming,
    *,
    namespaced: bool,
    behaviour: ValidationBehaviour = DEFAULT,
) -> Iterator[FieldProblem]:
    """Yield the problems of an object's metadata."""
    yield from _common(meta, naming, namespaced=namespaced, behaviour=behaviour)
    yield from _finalizer_domains(meta.finalizers)


def _finalizer_domains(finalizers: tuple[str, ...]) -> Iterator[FieldProblem]:
    for position, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{position}]", finalizer, detail)


def metadata_change(
    meta: ObjectMeta, old: ObjectMeta, behaviour: ValidationBehaviour = DEFAULT
) -> Iterator[FieldProblem]:
    """Yield the problems of a change of an object's metadata."""
    yield from _change(meta, old, behaviour)
    yield from _finalizer_domains(meta.finalizers)


def custom_metadata(
    meta: ObjectMeta, *, namespaced: bool, behaviour: ValidationBehaviour = DEFAULT
) -> Iterator[FieldProblem]:
    """Yield the problems of the metadata of a custom resource, whose finalizers need no domain."""
    return _common(meta, SUBDOMAIN, namespaced=namespaced, behaviour=behaviour)


def custom_metadata_change(
    meta: ObjectMeta, old: ObjectMeta, behaviour: ValidationBehaviour = DEFAULT
) -> Iterator[FieldProblem]:
    """Yield the problems of a change of the metadata of a custom resource."""
    return _change(meta, old, behaviour)


def common_metadata(
    meta: ObjectMeta, *, namespaced: bool, behaviour: ValidationBehaviour = DEFAULT
) -> Iterator[FieldProblem]:
    """Yield the problems that a new object of any kind can have, after those of its kind."""
    return _common(meta, _ANY, namespaced=namespaced, behaviour=behaviour)


def common_metadata_change(
    meta: ObjectMeta,
    old: ObjectMeta,
    *,
    namespaced: bool,
    behaviour: ValidationBehaviour = DEFAULT,
) -> Iterator[FieldProblem]:
    """Yield the problems that an update of any kind can have, before those of its kind."""
    yield from _common(meta, _ANY, namespaced=namespaced, behaviour=behaviour)
    yield from _change(meta, old, behaviour)


def _common(
    meta: ObjectMeta, naming: Naming, *, namespaced: bool, behaviour: ValidationBehaviour
) -> Iterator[FieldProblem]:
    if meta.generate_name and naming.generate_name:
        yield from checked("metadata.generateName", meta.generate_name, naming.generate_name)
    elif meta.generate_name and not meta.name:
        detail = f"generateName was specified ({quoted(meta.generate_name)}), "
        yield FieldProblem(
            Reason.INTERNAL, "metadata.name", "", f"{detail}but no name was generated"
        )
    if not meta.name:
        yield required("metadata.name", "name or generateName is required")
    else:
        yield from checked("metadata.name", meta.name, naming.name)
    yield from _namespace(meta.namespace, namespaced=namespaced)
    if meta.generation < 0:
        yield invalid("metadata.generation", meta.generation, "must be greater than or equal to 0")
    yield from labels("metadata.labels", meta.labels)
    yield from annotations("metadata.annotations", meta.annotations)
    yield from _owners("metadata.ownerReferences", meta.owner_references, behaviour)
    yield from _finalizers("metadata.finalizers", meta.finalizers)


def _namespace(namespace: str, *, namespaced: bool) -> Iterator[FieldProblem]:
    if not namespaced:
        return
    yield from checked("metadata.namespace", namespace, label)


def labels(field: str, values: Mapping[str, str]) -> Iterator[FieldProblem]:
    for key in sorted(values):
        yield from checked(field, key, label_key)
        yield from checked(field, values[key], label_value)


def annotations(field: str, values: Mapping[str, str]) -> Iterator[FieldProblem]:
    for key in sorted(values):
        yield from (invalid(field, key, complaint) for complaint in label_key(lowered(key)))
    if sum(byte_length(key) + byte_length(values[key]) for key in values) > ANNOTATIONS_BYTES_MAX:
        yield too_long(field, ANNOTATIONS_BYTES_MAX)


def _owners(
    field: str, owners: tuple[OwnerReference, ...], behaviour: ValidationBehaviour
) -> Iterator[FieldProblem]:
    controller = ""
    repeats = 0
    for position, owner in enumerate(owners):
        if behaviour.owners_have_positions:
            yield from _owner(f"{field}[{position}]", owner)
        else:
            yield from _owner_without_position(field, owner)
        named = f"{owner.kind}/{owner.name}"
        if owner.controller and controller:
            repeats += 1
            # Each of these shows all owners: thousands of them would be gigabytes.
            if repeats > _REPEATED_CONTROLLERS_MAX:
                continue
            detail = (
                'Only one reference can have Controller set to true. Found "true" in references '
                f"for {controller} and {named}"
            )
            yield invalid(field, owners, detail)
        elif owner.controller:
            controller = named


def _owner(field: str, owner: OwnerReference) -> Iterator[FieldProblem]:
    if owner.api_version and not _version(owner.api_version):
        detail = "must be <group>/<version> or <version>"
        yield invalid(f"{field}.apiVersion", owner.api_version, detail)
    given = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
    for name, value in given.items():
        if not value:
            yield required(f"{field}.{name}", "must not be empty")
    yield from _event_as_owner(field, owner)


def _owner_without_position(field: str, owner: OwnerReference) -> Iterator[FieldProblem]:
    if not _version(owner.api_version):
        yield invalid(f"{field}.apiVersion", owner.api_version, "version must not be empty")
    if not owner.kind:
        yield invalid(f"{field}.kind", "", "must not be empty")
    if not owner.name:
        yield invalid(f"{field}.name", "", "must not be empty")
    if not owner.uid:
        yield invalid(f"{field}.uid", Token(), "must not be empty")
    yield from _event_as_owner(field, owner)


def _event_as_owner(field: str, owner: OwnerReference) -> Iterator[FieldProblem]:
    """Yield a problem if an Event is an owner: it expires, and would take its dependents along."""
    if owner.api_version in ("v1", "/v1") and owner.kind == "Event":
        yield invalid(field, owner, "/v1, Kind=Event is disallowed from being an owner")


def _version(api_version: str) -> str:
    return "" if api_version.count("/") > 1 else api_version.rpartition("/")[2]


def _finalizers(field: str, finalizers: tuple[str, ...]) -> Iterator[FieldProblem]:
    for finalizer in finalizers:
        yield from checked(field, finalizer, label_key)
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        detail = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        yield invalid(field, finalizers, detail)


def _change(
    meta: ObjectMeta, old: ObjectMeta, behaviour: ValidationBehaviour
) -> Iterator[FieldProblem]:
    added = sorted(set(meta.finalizers) - set(old.finalizers))
    if old.deletion_timestamp and added:
        found = ", ".join(map(quoted, added))
        detail = (
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{found}}}"
        )
        yield forbidden("metadata.finalizers", detail)
    if not meta.resource_version:
        yield invalid("metadata.resourceVersion", "", "must be specified for an update")
    yield from unchanged("metadata.name", meta.name, old.name)
    yield from unchanged("metadata.namespace", meta.namespace, old.namespace)
    yield from unchanged("metadata.uid", Token(meta.uid), Token(old.uid))
    yield from unchanged(
        "metadata.creationTimestamp", meta.creation_timestamp, old.creation_timestamp
    )
    yield from unchanged(
        "metadata.deletionTimestamp", meta.deletion_timestamp, old.deletion_timestamp
    )
    yield from unchanged(
        "metadata.deletionGracePeriodSeconds",
        meta.deletion_grace_period_seconds,
        old.deletion_grace_period_seconds,
    )
    yield from labels("metadata.labels", meta.labels)
    yield from annotations("metadata.annotations", meta.annotations)
    yield from _owners("metadata.ownerReferences", meta.owner_references, behaviour)


def unchanged(field: str, value: object, old: object) -> Iterator[FieldProblem]:
    """A problem if a field that never changes has changed."""
    if value != old:
        yield invalid(field, value, IMMUTABLE, fix="delete the object and create it again")


def template_metadata(field: str, meta: ObjectMeta) -> Iterator[FieldProblem]:
    """Check the metadata in a template, which can have labels and annotations only."""
    yield from annotations(f"{field}.annotations", meta.annotations)
    yield from labels(f"{field}.labels", meta.labels)
    for name, shown in _ONLY_ON_OBJECTS:
        if getattr(meta, name) != getattr(_UNSET, name):
            yield not_in_template(f"{field}.{shown}")


def not_in_template(field: str) -> FieldProblem:
    return forbidden(field, "cannot be set", fix="leave it out")


def conditions(
    field: str, given: tuple[Condition, ...], behaviour: ValidationBehaviour
) -> Iterator[FieldProblem]:
    """Conditions in a status."""
    again = set(repeated(condition.type for condition in given))
    for position, condition in enumerate(given):
        at = f"{field}[{position}]"
        if position in again:
            named = at if behaviour.conditions_are_required else f"{at}.type"
            yield duplicate(named, condition.type)
        yield from _condition(at, condition, behaviour)


def _condition(
    field: str, condition: Condition, behaviour: ValidationBehaviour
) -> Iterator[FieldProblem]:
    if not condition.type and behaviour.conditions_are_required:
        yield required(f"{field}.type", "is required")
    else:
        yield from checked(f"{field}.type", condition.type, label_key)
    if not condition.status and behaviour.conditions_are_required:
        yield required(f"{field}.status")
    elif condition.status not in _CONDITION_STATUSES:
        yield not_supported(f"{field}.status", condition.status, _CONDITION_STATUSES)
    if condition.observed_generation < 0:
        detail = "must be greater than or equal to zero"
        yield invalid(f"{field}.observedGeneration", condition.observed_generation, detail)
    if condition.last_transition_time in (None, "", _ZERO_TIME):
        yield required(f"{field}.lastTransitionTime")
    yield from _condition_reason(f"{field}.reason", condition.reason)
    if byte_length(condition.message) > _MESSAGE_BYTES_MAX:
        yield too_long(f"{field}.message", _MESSAGE_BYTES_MAX)


def _condition_reason(field: str, reason: str) -> Iterator[FieldProblem]:
    if not reason:
        yield required(field)
        return
    yield from checked(field, reason, condition_reason)
    if byte_length(reason) > _REASON_BYTES_MAX:
        yield too_long(field, _REASON_BYTES_MAX)
