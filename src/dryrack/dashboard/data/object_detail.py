"""Any object of the cluster as YAML, with the kubectl commands that print it."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    EVENTS,
    NODES,
    PODS,
    SLICES,
    TAINT_RULES,
)
from dryrack.cluster import GROUP_KINDS
from dryrack.kinds.paths import get
from dryrack.kinds.text.yaml_printing import print_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw

# The kinds by their name in the path. A gang can be an object of several kinds.
KINDS: Mapping[str, tuple[Endpoint, ...]] = {
    "pod": (PODS,),
    "claim": (CLAIMS,),
    "slice": (SLICES,),
    "class": (CLASSES,),
    "node": (NODES,),
    "event": (EVENTS,),
    "taint-rule": (TAINT_RULES,),
    "gang": GROUP_KINDS,
}
HIDDEN = "(hidden by the dashboard)"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def object_document(endpoint: Endpoint, raw: Raw) -> dict[str, Any]:
    """
    Return an object as YAML, with commands.

    Values of environment variables, which may be secrets, are hidden. As in kubectl, managed fields
    are left out.
    """
    metadata = raw["metadata"]
    namespace = metadata.get("namespace", "")
    # kubectl finds a kind of the core and of the built-in groups by its singular.
    kind = endpoint.kind.lower()
    if endpoint in GROUP_KINDS:
        kind = f"{kind}.{endpoint.version}.{endpoint.group}"
    where = [*(("-n", quote(namespace)) if namespace else ())]
    name = quote(metadata["name"])
    shown = {"apiVersion": endpoint.api_version, "kind": endpoint.kind, **_without_secrets(raw)}
    return {
        "kind": endpoint.kind,
        "yaml": print_block(shown),
        "commands": [
            " ".join(["kubectl", "get", kind, name, *where, "-o", "yaml"]),
            " ".join(["kubectl", "describe", kind, name, *where]),
        ],
    }


def _without_secrets(raw: Raw) -> Raw:
    metadata = {key: each for key, each in raw["metadata"].items() if key != "managedFields"}
    if _LAST_APPLIED in metadata.get("annotations", {}):
        annotations = metadata["annotations"]
        metadata["annotations"] = {
            key: HIDDEN if key == _LAST_APPLIED else each for key, each in annotations.items()
        }
    shown = {**raw, "metadata": metadata}
    if any(get(raw, f"spec.{each}", ()) for each in _CONTAINERS):
        shown["spec"] = {
            key: list(map(_without_values, each)) if key in _CONTAINERS and each else each
            for key, each in raw["spec"].items()
        }
    return shown


def _without_values(container: Raw) -> Raw:
    if not container.get("env"):
        return container
    env = [each | ({"value": HIDDEN} if each.get("value") else {}) for each in container["env"]]
    return {**container, "env": env}
