"""
Usage of pods and nodes that do not run: made up from what their containers request.

A container of a running pod uses half of the CPU and memory that it requests, and a little if it
requests nothing; a node uses what its pods use, and a little for itself. The same objects always
give the same figures, so that a test can count on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.raw import Raw

API_VERSION = "metrics.k8s.io/v1beta1"
_WINDOW = "15s"
_MEBIBYTE = 1024 * 1024
# What a container that requests nothing uses, and a node without pods: millicores and bytes.
_IDLE_CONTAINER = (1, 8 * _MEBIBYTE)
_IDLE_NODE = (100, 512 * _MEBIBYTE)


def is_measured(pod: Raw) -> bool:
    """Return whether a container of a pod runs."""
    return get(pod, "status.phase", "") == "Running"


def pod_metrics(pod: Raw, now: str) -> Raw:
    containers = [
        {"name": each["name"], "usage": _usage(*_container_usage(each))}
        for each in get(pod, "spec.containers", ())
    ]
    return _usage_of("PodMetrics", pod, now) | {"containers": containers}


def node_metrics(node: Raw, pods: Iterable[Raw], now: str) -> Raw:
    """`pods` are those on the node."""
    millicores, amount = _IDLE_NODE
    for pod in pods:
        for container in get(pod, "spec.containers", ()):
            used = _container_usage(container)
            millicores = millicores + used[0]
            amount = amount + used[1]
    return _usage_of("NodeMetrics", node, now) | {"usage": _usage(millicores, amount)}


def _usage_of(kind: str, obj: Raw, now: str) -> Raw:
    kept = ("name", "namespace", "labels")
    meta = {key: obj["metadata"][key] for key in kept if key in obj["metadata"]}
    return {
        "kind": kind,
        "apiVersion": API_VERSION,
        "metadata": {**meta, "creationTimestamp": now},
        "timestamp": now,
        "window": _WINDOW,
    }


def _container_usage(container: Raw) -> tuple[int, int]:
    """Millicores and bytes."""
    requests = get(container, "resources.requests", {})
    cpu = _amount(requests.get("cpu"))
    memory = _amount(requests.get("memory"))
    millicores = _IDLE_CONTAINER[0] if cpu is None else max(1, cpu.milli_value() // 2)
    return millicores, _IDLE_CONTAINER[1] if memory is None else memory.value() // 2


def _amount(text: Any) -> Quantity | None:
    try:
        return None if text is None else Quantity.from_json(text)
    except QuantityError:
        return None


def _usage(millicores: int, amount: int) -> Raw:
    return {"cpu": f"{millicores}m", "memory": f"{amount // 1024}Ki"}
