"""
NodeMetrics and PodMetrics, read-only, as metrics-server serves them.

Nothing is stored: each answer is computed from the stored nodes and pods. Lists have selectors,
tables and metadata alone, but no pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.registry import Resource
from dryrack.base.lazy import late

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.apiserver.extension_points import Answer, Call
    from dryrack.apiserver.strategy import Strategy
    from dryrack.kinds.raw import Raw
    from dryrack.store import Stored

_TEXT = {"type": "string"}
_QUANTITIES = {
    "type": "object",
    "additionalProperties": {
        "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"
    },
}
_CONTAINER = {
    "type": "object",
    "properties": {"name": _TEXT, "usage": _QUANTITIES},
    "required": ["name", "usage"],
}


def metrics_resources() -> tuple[Resource, ...]:
    """Both kinds, ready to be served."""
    containers = {"type": "array", "items": _CONTAINER}
    return (
        _resource("NodeMetrics", "nodes", {"usage": _QUANTITIES}),
        _resource("PodMetrics", "pods", {"containers": containers}),
    )


def _resource(kind: str, plural: str, measured: Raw) -> Resource:
    times = {"timestamp": {"type": "string", "format": "date-time"}, "window": _TEXT}
    return Resource(
        group="metrics.k8s.io",
        version="v1beta1",
        kind=kind,
        plural=plural,
        namespaced=plural == "pods",
        strategy=late(lambda: _strategy(namespaced=plural == "pods")),
        verbs=("get", "list"),
        handlers={"get": _get, "list": _list},
        schema={"type": "object", "properties": {**times, **measured}},
    )


def _strategy(*, namespaced: bool) -> Strategy:
    from dryrack.apiserver.strategy import Strategy
    from dryrack.kinds.rules.kind_rules import KindRules

    return Strategy(KindRules(namespaced=namespaced))


async def _get(call: Call) -> Answer:
    from dryrack.apiserver.answer.rendering import Renderer, form_of
    from dryrack.apiserver.answer.status import not_found
    from dryrack.apiserver.http import media

    target = call.target
    found = [each for each in _metrics_of(call) if each.key.name == target.name]
    if not found:
        raise not_found(target.resource.as_resource, target.name)
    form = form_of(media.wanted(call.request.headers), call.parameters, ())
    return Renderer(call.server.extensions.tables, call.server.clock).stored(
        target.resource, found[0], form
    )


async def _list(call: Call) -> Answer:
    from dryrack.apiserver.answer.rendering import Renderer, form_of
    from dryrack.apiserver.http import media
    from dryrack.apiserver.http.queries import list_options
    from dryrack.apiserver.verbs.lists import Page
    from dryrack.apiserver.verbs.selection import selection_of

    resource = call.target.resource
    selection = selection_of(resource, list_options(call.parameters))
    found = tuple(each for each in _metrics_of(call) if selection.matches(each))
    form = form_of(media.wanted(call.request.headers), call.parameters, ())
    renderer = Renderer(call.server.extensions.tables, call.server.clock)
    return renderer.page(resource, Page(found, call.server.store.revision), form)


def _metrics_of(call: Call) -> Iterator[Stored]:
    """Return the metrics of the pods of a namespace, or of the nodes."""
    from dryrack.apiserver.metadata import timestamp
    from dryrack.apiserver.resource_metrics.usage import is_measured, node_metrics, pod_metrics
    from dryrack.store import Key, Stored

    resource = call.target.resource
    now = timestamp(call.server.clock.now())
    revision = call.server.store.revision
    namespace = call.target.namespace or None
    pods = [each for each in call.server.lookup.list("pods", namespace) if is_measured(each)]
    if resource.plural == "pods":
        measured = [pod_metrics(each, now) for each in pods]
    else:
        by_node: dict[str, list[Raw]] = {}
        for pod in pods:
            by_node.setdefault(pod["spec"].get("nodeName") or "", []).append(pod)
        nodes = call.server.lookup.list("nodes", None)
        measured = [
            node_metrics(each, by_node.get(each["metadata"]["name"], ()), now) for each in nodes
        ]
    for obj in measured:
        meta = obj["metadata"]
        yield Stored(Key(resource.storage, meta.get("namespace", ""), meta["name"]), revision, obj)
