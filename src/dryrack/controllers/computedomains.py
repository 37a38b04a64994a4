"""
The controller of ComputeDomains.

It creates the ResourceClaimTemplate that a ComputeDomain names, and reports the nodes on which
claims of the domain have a channel. A domain is ready when at least `numNodes` nodes have joined.
The daemons of a real domain have no counterpart: a virtual node joins as soon as a claim on it is
allocated. The template is owned by the domain and goes with it.
"""

from collections.abc import Mapping, Sequence

from dryrack.client.endpoints import CLAIMS, COMPUTE_DOMAINS, NODES, TEMPLATES
from dryrack.client.informer import Name, name_of
from dryrack.client.optional_kind import OptionalKind
from dryrack.controllers.objects import (
    controller_reference,
    is_deleted,
    labels_of,
    spec_of,
    status_of,
    uid_of,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Create, EngineContext, Patch, Plan, Write
from dryrack.kinds.expansion.compute_domains import (
    DRIVER,
    domain_of_claim,
    template_name,
    workload_template,
)
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

# NVIDIA's device plugin labels nodes with the NVLink domain and partition that they are in.
_CLIQUE_LABEL = "nvidia.com/gpu.clique"


def plan(
    domain: Raw, template: Raw | None, claims: Sequence[Raw], nodes: Mapping[Name, Raw]
) -> Plan:
    """Return what a domain needs now; `claims` are those that ask for one of its channels."""
    name = template_name(domain)
    if is_deleted(domain) or not name:
        return NOTHING
    writes: list[Write] = []
    if template is None:
        made = workload_template(domain)
        owner = controller_reference(domain, COMPUTE_DOMAINS)
        made["metadata"]["ownerReferences"] = [owner]
        writes.append(Create(TEMPLATES, made))
    status = _status(domain, claims, nodes)
    if status != status_of(domain):
        patch = {"metadata": {"uid": uid_of(domain)}, "status": status}
        writes.append(Patch(COMPUTE_DOMAINS, name_of(domain), patch, subresource="status"))
    return Plan(tuple(writes))


def _status(domain: Raw, claims: Sequence[Raw], nodes: Mapping[Name, Raw]) -> Raw:
    joined = sorted({node for claim in claims for node in _nodes_of(claim)})
    wanted = spec_of(domain).get("numNodes") or 0
    is_ready = len(joined) >= wanted
    found: Raw = {"status": "Ready" if is_ready else "NotReady"}
    if joined:
        found["nodes"] = [
            _node(name, index, nodes.get(Name("", name)) or {}) for index, name in enumerate(joined)
        ]
    return found


def _nodes_of(claim: Raw) -> Sequence[str]:
    """Return the nodes on which a claim has a channel; the pool of the driver is the node's."""
    allocation = get(claim, "status.allocation", {})
    results = get(allocation, "devices.results", ())
    return [each["pool"] for each in results if each["driver"] == DRIVER]


def _node(name: str, index: int, node: Raw) -> Raw:
    addresses = get(node, "status.addresses", ())
    internal = [each["address"] for each in addresses if each.get("type") == "InternalIP"]
    return {
        "name": name,
        "ipAddress": internal[0] if internal else "",
        "cliqueID": labels_of(node).get(_CLIQUE_LABEL, "") if node else "",
        "index": index,
        "status": "Ready",
    }


class ComputeDomainController(Reconciler[Name]):
    """Keeps the templates and the status of ComputeDomains, if they are served."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "compute-domain-controller")
        self._nodes = self.watch(NODES)
        self._domains = OptionalKind(
            context.client,
            COMPUTE_DOMAINS,
            clock=context.clock,
            informers=context.informers,
            on_object=self._on_domain,
            on_known=lambda: None,
        )
        context.informers.add_cache(self._domains)
        self._claims = self.watch(CLAIMS, self._on_claim)
        self._by_domain = self._claims.index("compute domain", _domain_keys)
        self._templates = self.watch(TEMPLATES, self._on_template)

    def _on_domain(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.queue.add(name_of(new))

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        uid = domain_of_claim(new or old or {})
        if uid:
            for each in self._domains.all():
                if uid_of(each) == uid:
                    self.queue.add(name_of(each))

    def _on_template(self, old: Raw | None, new: Raw | None) -> None:
        if new is None and old is not None:
            for each in self._domains.all():
                if Name(name_of(each).namespace, template_name(each)) == name_of(old):
                    self.queue.add(name_of(each))

    async def decide(self, name: Name) -> Plan:
        domain = self._domains.get(name.name, name.namespace)
        if domain is None:
            return NOTHING
        template = self._templates.objects.get(Name(name.namespace, template_name(domain)))
        return plan(domain, template, self._by_domain.get(uid_of(domain)), self._nodes.objects)


def _domain_keys(claim: Raw) -> Sequence[str]:
    uid = domain_of_claim(claim)
    return (uid,) if uid else ()
