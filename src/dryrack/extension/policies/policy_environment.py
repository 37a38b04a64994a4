"""
The environment for the expressions of an admission policy.

`object`, `oldObject` and `params` are of no known type, because a policy may be about several
kinds; `request`, `namespaceObject` and the policy's own `variables` are, so that a misspelt field
of theirs is found when the policy is written. `authorizer` asks what its user may do.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from dryrack.cel.checking import types as t
from dryrack.cel.patch_types import FUNCTIONS, fields_of_patch_type, is_patch_type
from dryrack.extension.definitions.rule_types import RuleEnvironment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.cel.patch_types import Overload

_NAMES = t.list_of(t.STRING)
_TEXTS = t.map_of(t.STRING, t.STRING)
_KIND = t.struct("kubernetes.GroupVersionKind")
_RESOURCE = t.struct("kubernetes.GroupVersionResource")
_REQUEST = t.struct("kubernetes.AdmissionRequest")
_NAMESPACE = t.struct("kubernetes.Namespace")
_VARIABLES = t.struct("kubernetes.variables")
_AUTHORIZER = t.struct("kubernetes.authorization.Authorizer")
_RESOURCE_CHECK = t.struct("kubernetes.authorization.ResourceCheck")
AUTHORIZER = "authorizer"
REQUEST_RESOURCE = "authorizer.requestResource"

_MESSAGES: Mapping[str, Mapping[str, t.Type]] = MappingProxyType(
    {
        _KIND.name: {"group": t.STRING, "version": t.STRING, "kind": t.STRING},
        _RESOURCE.name: {"group": t.STRING, "version": t.STRING, "resource": t.STRING},
        "kubernetes.UserInfo": {
            "username": t.STRING,
            "uid": t.STRING,
            "groups": _NAMES,
            "extra": t.map_of(t.STRING, _NAMES),
        },
        _REQUEST.name: {
            "kind": _KIND,
            "resource": _RESOURCE,
            "subResource": t.STRING,
            "requestKind": _KIND,
            "requestResource": _RESOURCE,
            "requestSubResource": t.STRING,
            "name": t.STRING,
            "namespace": t.STRING,
            "operation": t.STRING,
            "userInfo": t.struct("kubernetes.UserInfo"),
            "dryRun": t.BOOL,
            "options": t.DYN,
        },
        "kubernetes.NamespaceSpec": {"finalizers": _NAMES},
        "kubernetes.NamespaceCondition": {
            "status": t.STRING,
            "type": t.STRING,
            "lastTransitionTime": t.TIMESTAMP,
            "message": t.STRING,
            "reason": t.STRING,
        },
        "kubernetes.NamespaceStatus": {
            "conditions": t.list_of(t.struct("kubernetes.NamespaceCondition")),
            "phase": t.STRING,
        },
        "kubernetes.NamespaceMetadata": {
            "name": t.STRING,
            "generateName": t.STRING,
            "namespace": t.STRING,
            "labels": _TEXTS,
            "annotations": _TEXTS,
            "UID": t.STRING,
            "creationTimestamp": t.TIMESTAMP,
            "deletionGracePeriodSeconds": t.INT,
            "deletionTimestamp": t.TIMESTAMP,
            "generation": t.INT,
            "resourceVersion": t.STRING,
            "finalizers": _NAMES,
        },
        _NAMESPACE.name: {
            "metadata": t.struct("kubernetes.NamespaceMetadata"),
            "spec": t.struct("kubernetes.NamespaceSpec"),
            "status": t.struct("kubernetes.NamespaceStatus"),
        },
    }
)
_SCALARS = frozenset(
    (
        *(t.ANY, t.BOOL, t.BYTES, t.DOUBLE, t.DURATION, t.INT, t.NULL, t.STRING),
        *(t.TIMESTAMP, t.UINT),
    )
)


def environment(
    *,
    has_params: bool,
    variables: Mapping[str, t.Type] | None = None,
    has_authorizer: bool = True,
) -> RuleEnvironment:
    """For expressions that may name these variables; None if `variables` is no name there."""
    known = {
        "object": t.DYN,
        "oldObject": t.DYN,
        "request": _REQUEST,
        "namespaceObject": _NAMESPACE,
    }
    messages = dict(_MESSAGES)
    if has_authorizer:
        known |= {AUTHORIZER: _AUTHORIZER, REQUEST_RESOURCE: _RESOURCE_CHECK}
    if has_params:
        known["params"] = t.DYN
    if variables is not None:
        known["variables"] = _VARIABLES
        messages[_VARIABLES.name] = variables
    return RuleEnvironment(
        consumable_capacity=True,
        list_type_attributes=True,
        new_expressions=False,
        variables=known,
        messages=messages,
    )


@dataclass(frozen=True, kw_only=True)
class MutationEnvironment(RuleEnvironment):
    """Return the environment of a mutation, which has types and functions for patches, too."""

    @property
    def functions(self) -> Mapping[str, tuple[Overload, ...]]:
        return {**super().functions, **FUNCTIONS}

    def message_type(self, name: str) -> t.Type | None:
        return t.type_of(t.struct(name)) if is_patch_type(name) else None

    def fields_of(self, message: str) -> Mapping[str, t.Type] | None:
        if is_patch_type(message):
            return fields_of_patch_type(message)
        return super().fields_of(message)


def with_patch_types(env: RuleEnvironment) -> MutationEnvironment:
    """Return an environment in which expressions can also make patches."""
    return MutationEnvironment(
        consumable_capacity=env.consumable_capacity,
        list_type_attributes=env.list_type_attributes,
        new_expressions=env.new_expressions,
        variables=env.variables,
        messages=env.messages,
    )


def variable_type(found: t.Type) -> t.Type:
    """The type by which other expressions know a variable: what it holds may be forgotten."""
    if found in _SCALARS:
        return found
    if found.kind is t.Kind.LIST:
        return t.list_of(variable_type(found.parameters[0]))
    if found.kind is t.Kind.MAP:
        key, value = found.parameters
        return t.map_of(variable_type(key), variable_type(value))
    return t.DYN
