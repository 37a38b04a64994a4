"""
Give Services of the type LoadBalancer an address, as the controller of a cloud does.

The addresses are those that RFC 5737 reserves for documentation, so that no program reaches another
machine by them. The API server removes the address when the type of a Service changes.
"""

from collections.abc import Iterable
from ipaddress import ip_network

from dryrack.client.endpoints import SERVICES
from dryrack.client.informer import Name, name_of
from dryrack.controllers.objects import is_deleted, spec_of, status_of
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, EngineContext, Plan, Report, Update
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

ADDRESSES = tuple(str(each) for each in ip_network("203.0.113.0/24").hosts())
_NONE_FREE = (
    f"Error syncing load balancer: failed to ensure load balancer: all {len(ADDRESSES)} addresses "
    "are in use"
)


def plan(service: Raw, address: str) -> Plan:
    """Give a Service an address, or report that none is free."""
    if not address:
        reason = "SyncLoadBalancerFailed"
        return Plan((Report(service, "Warning", reason, _NONE_FREE, _NONE_FREE),))
    ingress = [{"ip": address, "ipMode": "VIP"}]
    status = status_of(service) | {"loadBalancer": {"ingress": ingress}}
    return Plan(
        (
            Report(service, "Normal", "EnsuringLoadBalancer", "Ensuring load balancer"),
            Update(SERVICES, service | {"status": status}, "status"),
            Report(service, "Normal", "EnsuredLoadBalancer", "Ensured load balancer"),
        )
    )


class LoadBalancerController(Reconciler[Name]):
    """Keeps the addresses of Services that name no other load balancer by their class."""

    def __init__(self, context: EngineContext) -> None:
        # One worker: two Services would get the same address.
        super().__init__(context, "service-controller", workers=1)
        self._services = self.watch(SERVICES)
        self._users = self._services.index("load balancer address", _addresses)
        self._waiting = self._services.index("waits for an address", _if_waiting)
        self._services.listen(self._on_service)

    def _on_service(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and any(_if_waiting(new)):
            self.queue.add(name_of(new))
        if old is not None and set(_addresses(old)) - set(_addresses(new or {})):
            for service in self._waiting.get("waiting"):
                self.queue.add(name_of(service))

    async def decide(self, name: Name) -> Plan:
        service = self._services.objects.get(name)
        if service is None or not any(_if_waiting(service)):
            return NOTHING
        wanted = spec_of(service).get("loadBalancerIP")
        free = (each for each in ADDRESSES if not self._users.count(each))
        return plan(service, wanted or next(free, ""))


def _addresses(service: Raw) -> Iterable[str]:
    return [each["ip"] for each in get(service, "status.loadBalancer.ingress", ()) if "ip" in each]


def _if_waiting(service: Raw) -> Iterable[str]:
    spec = spec_of(service)
    is_ours = spec.get("type") == "LoadBalancer" and not spec.get("loadBalancerClass")
    has_address = bool(get(service, "status.loadBalancer.ingress", ()))
    return ("waiting",) if is_ours and not has_address and not is_deleted(service) else ()
