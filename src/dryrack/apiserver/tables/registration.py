"""Rows of the kinds that extend the server: webhooks, admission policies, API services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.tables.columns import (
    AGE,
    NAME,
    Column,
    Shape,
    age,
    integers,
    name_of,
    plain,
    selector_text,
    wide,
)
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.apiserver.tables.columns import JsonObject

_UNSET = "<unset>"


def _webhooks(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), len(get(obj, "webhooks", ())), age(obj, now)]


WEBHOOKS = Shape((NAME, *integers("Webhooks"), AGE), _webhooks)


def _parameter_kind(obj: JsonObject) -> str:
    kind = get(obj, "spec.paramKind", {})
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else _UNSET


def _validating_cells(obj: JsonObject, now: float) -> list[Any]:
    count = len(get(obj, "spec.validations", ()))
    return [name_of(obj), count, _parameter_kind(obj), age(obj, now)]


VALIDATING_POLICIES = Shape(
    (NAME, *integers("Validations"), *plain("ParamKind"), AGE), _validating_cells
)


def _mutating_cells(obj: JsonObject, now: float) -> list[Any]:
    count = len(get(obj, "spec.mutations", ()))
    return [name_of(obj), count, _parameter_kind(obj), age(obj, now)]


MUTATING_POLICIES = Shape((NAME, *integers("Mutations"), *plain("ParamKind"), AGE), _mutating_cells)


def _parameter(reference: JsonObject) -> str:
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    return selector_text(reference.get("selector")) or _UNSET


def _binding_cells(obj: JsonObject, now: float) -> list[Any]:
    policy = get(obj, "spec.policyName", "")
    return [
        name_of(obj),
        policy,
        _parameter(get(obj, "spec.paramRef", {})),
        age(obj, now),
    ]


POLICY_BINDINGS = Shape((NAME, *plain("PolicyName", "ParamRef"), AGE), _binding_cells)


def _availability(obj: JsonObject) -> str:
    conditions = get(obj, "status.conditions", ())
    found = next((each for each in conditions if each.get("type") == "Available"), None)
    if found is None:
        return "Unknown"
    status = found.get("status") or ""
    reason = found.get("reason")
    return f"{status} ({reason})" if reason and status != "True" else status


def _api_service(obj: JsonObject, now: float) -> list[Any]:
    service = get(obj, "spec.service")
    place = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    return [name_of(obj), place, _availability(obj), age(obj, now)]


API_SERVICES = Shape((NAME, *plain("Service", "Available"), AGE), _api_service)


def _definition(obj: JsonObject, now: float) -> list[Any]:
    versions = (each for each in get(obj, "spec.versions", ()) if each.get("served"))
    shown = (
        f"{each['name']}(storage)" if each.get("storage") else each["name"] for each in versions
    )
    conditions = {each["type"]: each.get("status") for each in get(obj, "status.conditions", ())}
    return [
        name_of(obj),
        get(obj, "spec.scope", ""),
        ",".join(sorted(shown)),
        get(obj, "metadata.creationTimestamp"),
        get(obj, "spec.group", ""),
        get(obj, "spec.names.kind", ""),
        ",".join(get(obj, "spec.names.shortNames", ())),
        conditions.get("Established") == "True",
    ]


DEFINITIONS = Shape(
    (
        NAME,
        *plain("Scope", "Versions"),
        Column("Created At", "date"),
        *wide("Group", "Kind", "ShortNames"),
        Column("Established", "boolean", priority=1),
    ),
    _definition,
)
