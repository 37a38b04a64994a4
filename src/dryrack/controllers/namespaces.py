"""
Delete the contents of a namespace: first its pods, then all other objects, then the namespace.

Nothing that a pod relies on (network policies, secrets, accounts) is deleted while a pod runs.
Every namespaced kind is listed from the server, not from a cache. The namespace is released only
when all lists are empty.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dryrack.client.client import Selection
from dryrack.client.discovery import Served, discover
from dryrack.client.endpoints import NAMESPACES, PODS, Endpoint
from dryrack.client.timekeeping import timestamp
from dryrack.controllers.objects import (
    finalizers_of,
    is_deleted,
    spec_of,
    status_of,
    with_condition,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, DeleteAll, EngineContext, Plan, Update, Write
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

FINALIZER = "kubernetes"
_ALL_REMOVED = (
    "NamespaceContentRemaining",
    "False",
    "ContentRemoved",
    "All content successfully removed",
)
_NO_FINALIZERS = (
    "NamespaceFinalizersRemaining",
    "False",
    "ContentHasNoFinalizers",
    "All content-preserving finalizers finished",
)
# Objects are deleted with a grace period of seconds; listing more often would only add load.
# Objects with finalizers may stay forever: in the end they are listed as by a real controller.
LOOK_SECONDS = 0.25
LOOK_SECONDS_MAX = 8.0


def plan(namespace: Raw, content: Mapping[Endpoint, Sequence[Raw]], now: float) -> Plan:
    """
    Return the deletions, or the release of the namespace.

    `content` has all objects in it; while there are pods, only the pods.
    """
    finalizers = get(namespace, "spec.finalizers", ())
    if not is_deleted(namespace) or FINALIZER not in finalizers:
        return NOTHING
    name = namespace["metadata"]["name"]
    if not any(content.values()):
        left = [each for each in finalizers if each != FINALIZER]
        freed = namespace | {"spec": spec_of(namespace) | {"finalizers": left}}
        return Plan((Update(NAMESPACES, freed, "finalize"),))
    pods = content.get(PODS)
    due = {PODS: pods} if pods else content
    writes: list[Write] = [
        DeleteAll(endpoint, name)
        for endpoint, objects in due.items()
        if any(not is_deleted(each) for each in objects)
    ]
    conditions: list[Raw] = list(get(namespace, "status.conditions", ()))
    for kind, condition_status, reason, message in _judgements(content):
        condition = {"type": kind, "status": condition_status, "lastTransitionTime": timestamp(now)}
        conditions = with_condition(conditions, condition | {"reason": reason, "message": message})
    status = status_of(namespace) | {"conditions": conditions}
    if status != status_of(namespace):
        writes.append(Update(NAMESPACES, namespace | {"status": status}, "status"))
    return Plan(tuple(writes))


def _judgements(content: Mapping[Endpoint, Sequence[Raw]]) -> list[tuple[str, str, str, str]]:
    good = [
        (
            "NamespaceDeletionDiscoveryFailure",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
    ]
    judgements = [(kind, "False", reason, message) for kind, reason, message in good]
    if content.get(PODS):
        # As in the real controller, the remaining objects are counted when no pod is left.
        return [*judgements, _ALL_REMOVED, _NO_FINALIZERS]
    remaining = [
        f"{endpoint.plural}.{endpoint.group} has {len(objects)} resource instances"
        for endpoint, objects in sorted(content.items(), key=lambda each: each[0].resource)
        if objects
    ]
    message = f"Some resources are remaining: {', '.join(remaining)}"
    judgements.append(("NamespaceContentRemaining", "True", "SomeResourcesRemain", message))
    counted: dict[str, int] = {}
    for objects in content.values():
        for finalizer in (f for each in objects for f in finalizers_of(each)):
            counted[finalizer] = counted.get(finalizer, 0) + 1
    if counted:
        texts = [f"{each} in {counted[each]} resource instances" for each in sorted(counted)]
        message = f"Some content in the namespace has finalizers remaining: {', '.join(texts)}"
        judgements.append(("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", message))
    else:
        judgements.append(_NO_FINALIZERS)
    return judgements


class NamespaceController(Reconciler[str]):
    """Deletes the contents of namespaces."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "namespace-controller")
        # By namespace: the number of objects that remained, and the pause after that look.
        self._left: dict[str, tuple[int, float]] = {}
        self._namespaces = self.watch(NAMESPACES, self._on_namespace)

    def _on_namespace(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and is_deleted(new):
            self.queue.add(new["metadata"]["name"])
        elif old is not None:
            self._left.pop(old["metadata"]["name"], None)

    async def decide(self, name: str) -> Plan:
        namespace = self._namespaces.get("", name)
        if namespace is None or not is_deleted(namespace):
            return NOTHING
        content = await self._content(name)
        answer = plan(namespace, content, self._context.clock.now())
        count = sum(len(objects) for objects in content.values())
        if not count:
            return answer
        # The pause doubles each time that the number of objects stays the same.
        before, pause = self._left.get(name, (0, 0.0))
        pause = min(pause * 2, LOOK_SECONDS_MAX) if count == before else LOOK_SECONDS
        self._left[name] = (count, pause)
        return replace(answer, again_seconds=pause)

    async def _content(self, namespace: str) -> Mapping[Endpoint, Sequence[Raw]]:
        """Return the pods, or all other objects if there are none."""
        pods = await self._objects(PODS, namespace)
        if pods:
            return {PODS: pods}
        served = [each for each in await discover(self._context.client) if _is_content(each)]
        return {each.endpoint: await self._objects(each.endpoint, namespace) for each in served}

    async def _objects(self, endpoint: Endpoint, namespace: str) -> Sequence[Raw]:
        listing = await self._context.client.list(endpoint, Selection(namespace=namespace))
        return listing.items


def _is_content(served: Served) -> bool:
    return served.endpoint.is_namespaced and served.allows("list", "delete", "deletecollection")
