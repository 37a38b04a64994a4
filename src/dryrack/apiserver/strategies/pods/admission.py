"""
Admission plugins that complete a new pod.

These are the plugins that a real server runs by default and that change a pod: ServiceAccount,
DefaultTolerationSeconds, Priority, RuntimeClass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Subject, forbidden
from dryrack.apiserver.metadata import generate_name
from dryrack.apiserver.strategies.pods.runtime_classes import RuntimeClassError, in_class
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.json_edit import map_items

if TYPE_CHECKING:
    from dryrack.apiserver.answer.status import StatusError
    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw

MIRROR = "kubernetes.io/config.mirror"
PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
_DEFAULT_ACCOUNT = "default"
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_VOLUME = "kube-api-access-"
# One hour and seven seconds: the odd number identifies tokens that the plugin requested.
_TOKEN_SECONDS = 3607
_PODS = Subject("", "pods")
_LOST_NODE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_LOST_NODE_SECONDS = 300


def apply_admission_plugins(pod: Raw, write: Write) -> Raw:
    """Return a new pod as the plugins complete it; raise `StatusError` if one refuses it."""
    spec = spec_of(pod)
    if MIRROR not in get(pod["metadata"], "annotations", {}):
        name = spec.get("serviceAccountName") or _DEFAULT_ACCOUNT
        account = write.lookup.get("serviceaccounts", write.namespace, name)
        if account is None and name != _DEFAULT_ACCOUNT:
            detail = f"error looking up service account {write.namespace}/{name}: "
            raise pod_refusal(pod, f'{detail}serviceaccount "{name}" not found')
        # A real server waits a second for the default account, which a controller creates. Here a
        # pod can come first.
        made = {**spec, "serviceAccountName": name, "serviceAccount": name}
        if _mounts(account or {}, spec):
            made = _with_token(made, write)
        secrets = (account or {}).get("imagePullSecrets")
        if secrets and not spec.get("imagePullSecrets"):
            made["imagePullSecrets"] = secrets
        spec = made
    spec = _with_priority(pod, with_default_tolerations(spec), write)
    return {**pod, "spec": _with_class(pod, spec, write)}


def pod_refusal(pod: Raw, detail: str) -> StatusError:
    """Forbidden, by the name that the pod has or asks for."""
    meta = pod["metadata"]
    name = meta.get("name") or meta.get("generateName") or "Unknown"
    return forbidden(_PODS, name, detail)


def _mounts(account: Raw, spec: Raw) -> bool:
    """Return whether the token is mounted: the pod decides, then its account."""
    key = "automountServiceAccountToken"
    wish = spec.get(key)
    return bool(account.get(key, True) if wish is None else wish)


def _with_token(spec: Raw, write: Write) -> Raw:
    volumes = get(spec, "volumes", [])
    named = (volume.get("name") or "" for volume in volumes)
    found = next((name for name in named if name.startswith(_TOKEN_VOLUME)), None)
    name = found or generate_name(_TOKEN_VOLUME, write.chance)
    made = spec
    for key in ("initContainers", "containers"):
        made = map_items(made, key, lambda container: _with_token_mounts(container, name))
    if made is spec or found is not None:
        return made
    volume = {"name": name, "projected": _token_sources()}
    return {**made, "volumes": [*volumes, volume]}


def _with_token_mounts(container: Raw, volume: str) -> Raw:
    mounts = get(container, "volumeMounts", [])
    if any(mount.get("mountPath") == _TOKEN_PATH for mount in mounts):
        return container
    mount = {"name": volume, "readOnly": True, "mountPath": _TOKEN_PATH}
    return {**container, "volumeMounts": [*mounts, mount]}


def _token_sources() -> Raw:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    certificate = [{"key": "ca.crt", "path": "ca.crt"}]
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": certificate}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
        ],
        "defaultMode": 0o644,
    }


def with_default_tolerations(spec: Raw) -> Raw:
    """Return the spec with default tolerations of nodes that are not ready or unreachable."""
    tolerations = get(spec, "tolerations", [])
    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _LOST_NODE_SECONDS,
        }
        for key in _LOST_NODE
        if not any(_covers(key, toleration) for toleration in tolerations)
    ]
    return {**spec, "tolerations": [*tolerations, *added]} if added else spec


def _covers(key: str, toleration: Raw) -> bool:
    """Return whether a toleration applies to NoExecute taints of a key."""
    is_key = toleration.get("key", "") in (key, "")
    return is_key and toleration.get("effect", "") in ("NoExecute", "")


def _with_priority(pod: Raw, spec: Raw, write: Write) -> Raw:
    name = spec.get("priorityClassName") or ""
    chosen = priority_class(name, write)
    if chosen is None:
        raise pod_refusal(pod, f"no PriorityClass with name {name} was found")
    value = chosen.get("value", 0)
    policy = chosen.get("preemptionPolicy") or "PreemptLowerPriority"
    given = spec.get("priority")
    if given is not None and given != value:
        raise pod_refusal(
            pod,
            f"the integer value of priority ({given}) must not be provided in pod spec; priority "
            f"admission controller computed {value} from the given PriorityClass name",
        )
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        raise pod_refusal(
            pod,
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    made = {**spec, "priority": value, "preemptionPolicy": policy}
    return made | {"priorityClassName": chosen["metadata"]["name"]} if chosen else made


def _with_class(pod: Raw, spec: Raw, write: Write) -> Raw:
    try:
        return in_class(spec, write.lookup)
    except RuntimeClassError as refusal:
        raise pod_refusal(pod, str(refusal)) from refusal


def priority_class(name: str, write: Write) -> Raw | None:
    """Return the priority class of the name, or None; without a name the default class, or {}."""
    if not name:
        defaults = [
            found
            for found in write.lookup.list(PRIORITY_CLASSES, None)
            if found.get("globalDefault")
        ]
        return min(defaults, key=lambda found: found.get("value", 0), default={})
    return write.lookup.get(PRIORITY_CLASSES, "", name)
