"""
The objects of the cluster that the provisioner reads, typed, and the pods of DaemonSets.

Objects are decoded when they are first needed and again when they have changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    COSCHEDULING_POD_GROUPS,
    DAEMON_SETS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    POD_GROUPS_V1BETA1,
    PODS,
    SLICES,
    STORAGE_CLASSES,
    TAINT_RULES,
    TAINT_RULES_V1,
    TEMPLATES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dryrack.client.optional_kind import OptionalKind
from dryrack.controllers.objects import is_deleted, spec_of
from dryrack.controllers.provisioning.future_nodes import Daemon
from dryrack.kinds.core import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from dryrack.kinds.decode import DecodeError, decode, to_builtins
from dryrack.kinds.expansion.workloads import is_daemon_node, pod_of
from dryrack.kinds.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dryrack.kinds.scheduling import CoschedulingPodGroup, PodGroup, PodGroupV1Beta1
from dryrack.placement import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.client.informer import Informer
    from dryrack.controllers.writes import EngineContext
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw

MODELS: Mapping[Endpoint, type[KubernetesObject]] = {
    PODS: Pod,
    NODES: Node,
    SLICES: ResourceSlice,
    CLAIMS: ResourceClaim,
    TEMPLATES: ResourceClaimTemplate,
    CLASSES: DeviceClass,
    NAMESPACES: Namespace,
    VOLUME_CLAIMS: PersistentVolumeClaim,
    VOLUMES: PersistentVolume,
    STORAGE_CLASSES: StorageClass,
}
OPTIONAL: Mapping[Endpoint, type[KubernetesObject]] = {
    TAINT_RULES: DeviceTaintRule,
    TAINT_RULES_V1: DeviceTaintRule,
    POD_GROUPS: PodGroup,
    POD_GROUPS_V1BETA1: PodGroupV1Beta1,
    COSCHEDULING_POD_GROUPS: CoschedulingPodGroup,
}


class Observed:
    """The typed objects of a cluster, from shared caches."""

    def __init__(self, context: EngineContext, on_change: Callable[[], None]) -> None:
        """Call `on_change` when an object changes that decides whether pods fit on new nodes."""

        def call_listener(old: Raw | None, new: Raw | None) -> None:
            on_change()

        self.informers: list[Informer] = []
        self._by_kind: dict[Endpoint, Callable[[], Iterable[Raw]]] = {}
        for endpoint in MODELS:
            informer = context.informers.of(endpoint)
            self.informers.append(informer)
            self._by_kind[endpoint] = informer.all
            if endpoint in (TEMPLATES, CLASSES):
                informer.listen(call_listener)
        for endpoint in OPTIONAL:
            kind = OptionalKind(
                context.client,
                endpoint,
                clock=context.clock,
                informers=context.informers,
                on_object=call_listener,
                on_known=lambda: None,
                is_builtin=endpoint is not COSCHEDULING_POD_GROUPS,
            )
            context.informers.add_cache(kind)
            self._by_kind[endpoint] = kind.all
        self._daemon_sets = context.informers.of(DAEMON_SETS)
        self.informers.append(self._daemon_sets)
        self._typed: dict[str, tuple[Raw, KubernetesObject]] = {}

    def objects(
        self, replaced: Mapping[str, KubernetesObject | None]
    ) -> Iterator[KubernetesObject]:
        """Yield all typed objects; some are left out, or replaced, by their UID."""
        before = self._typed
        self._typed = {}
        for endpoint, model in {**MODELS, **OPTIONAL}.items():
            for raw in self._by_kind[endpoint]():
                uid = raw["metadata"]["uid"]
                known = before.get(uid)
                if known is None or known[0] is not raw:
                    try:
                        known = (raw, decode(raw, model))
                    except DecodeError:
                        # The API server accepted it, so a newer release has another shape.
                        continue
                self._typed[uid] = known
                chosen = replaced.get(uid, known[1])
                if chosen is not None:
                    yield chosen

    def daemons(self) -> Sequence[Daemon]:
        """Return the pods that DaemonSets have on new nodes."""
        return [_daemon(each) for each in self._daemon_sets.all() if not is_deleted(each)]


def _daemon(daemon_set: Raw) -> Daemon:
    template = spec_of(daemon_set)["template"]
    metadata = daemon_set["metadata"]
    named: Raw = {"name": f"{metadata['name']}-daemon", "namespace": metadata["namespace"]}
    spec: Any = spec_of(template)

    def runs_on(node: Node) -> bool:
        return is_daemon_node(spec, to_builtins(node))

    return Daemon(Member(decode(pod_of(template, named), Pod)), runs_on)
