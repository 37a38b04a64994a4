"""Create the default service account of each namespace, and its certificates."""

from dryrack.client.endpoints import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from dryrack.client.informer import Name, name_of
from dryrack.controllers.objects import is_deleted
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Create, EngineContext, Plan, Update, Write
from dryrack.kinds.raw import Raw

ACCOUNT = "default"
AUTHORITY = "kube-root-ca.crt"
_ABOUT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


def plan(namespace: Raw, account: Raw | None, config_map: Raw | None, *, authority: str) -> Plan:
    """Create what a namespace lacks; without an authority there are no certificates."""
    if is_deleted(namespace):
        return NOTHING
    name = namespace["metadata"]["name"]
    writes: list[Write] = []
    if account is None:
        metadata = {"name": ACCOUNT, "namespace": name}
        writes.append(Create(SERVICE_ACCOUNTS, {"metadata": metadata}))
    data = {"ca.crt": authority}
    if authority and config_map is None:
        metadata = {"name": AUTHORITY, "namespace": name}
        described = metadata | {"annotations": {"kubernetes.io/description": _ABOUT}}
        writes.append(Create(CONFIG_MAPS, {"metadata": described, "data": data}))
    elif authority and config_map is not None and config_map.get("data") != data:
        writes.append(Update(CONFIG_MAPS, config_map | {"data": data}))
    return Plan(tuple(writes))


class ServiceAccountController(Reconciler[str]):
    """Keeps the default account and the certificates of namespaces."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "service-account-controller")
        self._authority = context.authority
        self._namespaces = self.watch(NAMESPACES, self._on_namespace)
        self._accounts = self.watch(SERVICE_ACCOUNTS, self._on_part)
        self._config_maps = self.watch(CONFIG_MAPS, self._on_part)

    def _on_namespace(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.queue.add(name_of(new).name)

    def _on_part(self, old: Raw | None, new: Raw | None) -> None:
        part = new if new is not None else old
        name = name_of(part) if part is not None else Name("", "")
        if name.name in (ACCOUNT, AUTHORITY) and old is not None:
            self.queue.add(name.namespace)

    async def decide(self, name: str) -> Plan:
        namespace = self._namespaces.get("", name)
        if namespace is None:
            return NOTHING
        return plan(
            namespace,
            self._accounts.get(name, ACCOUNT),
            self._config_maps.get(name, AUTHORITY),
            authority=self._authority,
        )
