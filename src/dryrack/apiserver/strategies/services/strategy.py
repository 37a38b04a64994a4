"""Services as the server stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.services.allocation import Allocation, Cursor
from dryrack.apiserver.strategies.services.changes import (
    changes,
    release_allocations,
    restore_allocations,
)
from dryrack.apiserver.strategy import Strategy, keep_status
from dryrack.kinds.paths import status_of
from dryrack.kinds.rules.services import needs
from dryrack.kinds.rules.services.service_problems import problems
from dryrack.kinds.rules.services.service_rules import ServiceRules, in_step, with_families

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


class ServiceStrategy(Strategy):
    """Defaults, addresses, ports and validation of services."""

    creates_on_update = True
    selectable_fields = ("spec.clusterIP", "spec.type")
    field_refusal = "field label not supported: {label}"

    def __init__(self) -> None:
        super().__init__(ServiceRules())
        self._cursor = Cursor()

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        made = super().prepare_create(obj, write)
        name = obj["metadata"].get("name") or ""
        spec = with_families(in_step(made["spec"]))
        allocation = self._allocation(name, write)
        spec = allocation.with_ports(allocation.with_addresses(spec))
        if needs.has_health_check_port(spec):
            spec = allocation.with_health_port(spec)
        return {**made, "spec": spec}

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        if write.subresource == "status":
            return super().prepare_update(obj, old, write)
        made = keep_status(obj, old)
        before = old["spec"]
        spec = in_step(restore_allocations(made["spec"], before), before)
        spec = self._reallocate(with_families(spec), old, write)
        made = {**made, "spec": release_allocations(spec, before)}
        if spec.get("type") != "LoadBalancer":
            made["status"] = {**status_of(made), "loadBalancer": {}}
        return made

    def _allocation(self, name: str, write: Write) -> Allocation:
        every = write.lookup.list("services", None)
        return Allocation(every, name, cursor=self._cursor, is_dry=write.dry_run)

    def _reallocate(self, spec: Raw, old: Raw, write: Write) -> Raw:
        before = old["spec"]
        allocation = self._allocation(old["metadata"]["name"], write)
        if needs.has_cluster_ip(spec) and not needs.has_cluster_ip(before):
            spec = allocation.with_addresses(spec)
        spec = allocation.with_ports(spec, before)
        if needs.has_health_check_port(spec) and not needs.has_health_check_port(before):
            spec = allocation.with_health_port(spec)
        return spec

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return ()
        return [*changes(obj["spec"], old["spec"]), *problems(obj)]
