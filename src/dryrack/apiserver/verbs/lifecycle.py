"""
What begins and what may not end.

Nothing is created in a namespace that is not there or that is on its way out. The namespaces and
the priorities that the system stands on cannot be deleted.
"""

from dryrack.apiserver.answer.status import (
    Cause,
    Status,
    StatusError,
    Subject,
    forbidden,
    not_found,
)
from dryrack.apiserver.registry import Resource
from dryrack.kinds.paths import get
from dryrack.store import Key, Store

IMMORTAL = ("default", "kube-system", "kube-public")
_PRIORITIES = "priorityclasses.scheduling.k8s.io"
_SYSTEM_PRIORITIES = ("system-cluster-critical", "system-node-critical")
_NAMESPACES = Subject("", "namespaces")


def check_namespace(store: Store, resource: Resource, namespace: str, name: str) -> None:
    """Raises if nothing may be created in a namespace."""
    stored = store.get(Key("namespaces", "", namespace))
    if stored is None:
        raise not_found(_NAMESPACES, namespace)
    if get(stored.object, "status.phase") == "Terminating":
        raise _terminating(resource, namespace, name)


def _terminating(resource: Resource, namespace: str, name: str) -> StatusError:
    detail = f"unable to create new content in namespace {namespace} because it is being terminated"
    status = forbidden(resource.as_resource, name, detail).status
    cause = Cause(
        "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
    )
    details = {**(status.details or {}), "causes": [cause.to_raw()]}
    return StatusError(Status(status.code, status.reason, status.message, details))


def check_deletion(resource: Resource, name: str) -> None:
    if resource.storage == "namespaces" and name in IMMORTAL:
        raise forbidden(_NAMESPACES, name, "this namespace may not be deleted")
    if resource.storage == _PRIORITIES and name in _SYSTEM_PRIORITIES:
        detail = "this is a system priority class and cannot be deleted"
        raise forbidden(resource.as_resource, name, detail)
