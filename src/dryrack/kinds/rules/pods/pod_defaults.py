"""
Defaults of pods.

`spec` sets the defaults of pods and of templates; `pod` adds those that only pods have.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.quota_usage.pods import PAGES, SHARED, sum_requests
from dryrack.kinds.rules.json_edit import map_items, null_if_empty, set_defaults, update_at

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_HTTP = {"path": "/", "scheme": "HTTP"}
_MODE = {"defaultMode": 0o644}
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("lifecycle.postStart.httpGet", "lifecycle.preStop.httpGet")
# The syntax of image names, as far as the API server parses them.
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_IMAGE = re.compile(
    rf"(?:{_HOST}(?:\.{_HOST})*(?::[0-9]+)?/)?(?P<path>{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][\w+.-]*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
# A name without a host is in the implicit folder library.
_PATH_CHARS_MAX = 255 - len("library/")


def pod(obj: Raw) -> Raw:
    """Return a pod with its defaults, and with its addresses in both fields."""
    made = update_at(obj, "spec", lambda inner: _only_of_pods(spec(inner)))
    return update_at(made, "status", _sync_pod_ips)


def _sync_pod_ips(status: Raw) -> Raw:
    """Return the status with equal podIP and podIPs; the old field wins and has one address."""
    first = status.get("podIP") or ""
    every = get(status, "podIPs", [])
    known = every[0].get("ip") or "" if every else ""
    if first == known:
        return status
    return {**status, "podIPs": [{"ip": first}]} if first else {**status, "podIP": known}


def spec(given: Raw) -> Raw:
    """Return the spec of a pod or of a template with its defaults."""
    made = _sync_service_account(set_defaults(given, _SPEC))
    made = map_items(made, "volumes", _volume)
    for key in _CONTAINERS:
        made = map_items(made, key, _container)
    return made


def _sync_service_account(given: Raw) -> Raw:
    """Return the spec with the service account in its old field and its new one."""
    name = given.get("serviceAccountName") or given.get("serviceAccount")
    if not name:
        return given
    return {**given, "serviceAccountName": name, "serviceAccount": name}


def _only_of_pods(given: Raw) -> Raw:
    made = set_defaults(given, {"enableServiceLinks": True})
    for key in ("containers", "initContainers"):
        if given.get("hostNetwork"):
            made = map_items(made, key, lambda container: map_items(container, "ports", _on_host))
    for key in ("containers", "initContainers"):
        made = map_items(made, key, _set_requests)
    return made


def with_requests(given: Raw) -> Raw:
    """Return the spec of a pod with a request wherever it has a limit and no request."""
    made = given
    for key in ("containers", "initContainers"):
        made = map_items(made, key, _set_requests)
    return with_requests_of_pod(made)


def with_requests_of_pod(made: Raw) -> Raw:
    """Return the spec with a request of the pod wherever the pod has a limit and no request."""
    resources = get(made, "resources", {})
    limits = resources.get("limits")
    if not limits:
        return made
    requests = dict(get(resources, "requests", {}))
    for name in SHARED:
        total = sum_requests(made, name)
        if name not in requests and total is not None:
            requests[name] = str(total)
    for name, amount in limits.items():
        if name in SHARED or name.startswith(PAGES):
            requests.setdefault(name, amount)
    return {**made, "resources": {**resources, "requests": dict(sorted(requests.items()))}}


def _set_requests(container: Raw) -> Raw:
    """Return the container with a request equal to each limit without a request."""
    resources = get(container, "resources", {})
    limits = resources.get("limits")
    if not limits or limits.keys() <= get(resources, "requests", {}).keys():
        return container
    return update_at(
        container,
        "resources",
        lambda given: {**given, "requests": {**limits, **get(given, "requests", {})}},
    )


def _on_host(port: Raw) -> Raw:
    return {**port, "hostPort": port.get("hostPort") or port.get("containerPort")}


def _container(given: Raw) -> Raw:
    made = set_defaults(
        given,
        {
            "imagePullPolicy": pull_policy(given.get("image") or ""),
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        },
    )
    made = map_items(made, "ports", lambda port: set_defaults(port, {"protocol": "TCP"}))
    made = map_items(made, "env", lambda env: update_at(env, "valueFrom.fieldRef", _field))
    for key in _PROBES:
        made = update_at(made, key, _probe)
    for path in _HOOKS:
        made = update_at(made, path, _http)
    return made


def _probe(given: Raw) -> Raw:
    made = update_at(set_defaults(given, _PROBE), "httpGet", _http)
    return update_at(made, "grpc", lambda inner: set_defaults(inner, {"service": ""}))


def _http(given: Raw) -> Raw:
    return set_defaults(given, _HTTP)


def _field(given: Raw) -> Raw:
    return set_defaults(given, {"apiVersion": "v1"})


def _fields(given: Raw) -> Raw:
    return map_items(given, "items", lambda item: update_at(item, "fieldRef", _field))


def _volume(given: Raw) -> Raw:
    if not any(key != "name" for key in given):
        return {**given, "emptyDir": {}}
    volume = update_at(given, "hostPath", lambda inner: set_defaults(inner, {"type": ""}))
    for key in ("secret", "configMap"):
        volume = update_at(volume, key, _with_mode)
    volume = update_at(volume, "downwardAPI", lambda inner: _fields(_with_mode(inner)))

    def source(given: Raw) -> Raw:
        token = {"expirationSeconds": 3600}
        given = update_at(given, "downwardAPI", _fields)
        return update_at(given, "serviceAccountToken", lambda inner: set_defaults(inner, token))

    def projected(given: Raw) -> Raw:
        return null_if_empty(map_items(_with_mode(given), "sources", source), "sources")

    def image(given: Raw) -> Raw:
        return set_defaults(given, {"pullPolicy": pull_policy(given.get("reference") or "")})

    def claim(given: Raw) -> Raw:
        return set_defaults(given, {"volumeMode": "Filesystem"})

    volume = update_at(update_at(volume, "projected", projected), "image", image)
    return update_at(volume, "ephemeral.volumeClaimTemplate.spec", claim)


def _with_mode(given: Raw) -> Raw:
    return set_defaults(given, _MODE)


def pull_policy(image: str) -> str:
    """Return Always for the tag latest, which is also the default, else IfNotPresent."""
    found = _IMAGE.fullmatch(image)
    if found is None or len(found["path"]) > _PATH_CHARS_MAX:
        return "IfNotPresent"
    tag = found["tag"] or ("" if found["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"
