"""
Quota admission: refuse writes that exceed a quota, and charge the others to it.

Admission only raises status.used; a controller recomputes it. Refused writes and dry runs do not
change it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import forbidden
from dryrack.apiserver.verbs.writing import Order, Proposal
from dryrack.client.timekeeping import seconds_of
from dryrack.client.transport import User
from dryrack.kinds.paths import get
from dryrack.kinds.quota_usage import quotas
from dryrack.kinds.quota_usage.amounts import Amounts, amounts_to_json, compute_increase
from dryrack.kinds.quota_usage.claims import (
    CLAIMS,
    NO_CONTEXT,
    ClaimContext,
    extended_resources,
)
from dryrack.kinds.quota_usage.pods import is_over
from dryrack.kinds.quota_usage.scopes import is_terminating

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.apiserver.answer.status import StatusError
    from dryrack.apiserver.registry import Registry, Resource
    from dryrack.apiserver.strategy import Write
    from dryrack.apiserver.verbs.writing import Writer
    from dryrack.kinds.raw import Raw

_SERVER = User("system:apiserver", groups=("system:masters",))
_CHANGING = (CLAIMS, quotas.SERVICES, quotas.VOLUME_CLAIMS)


@dataclass(frozen=True, slots=True)
class QuotaAdmission:
    """Checks writes against the quotas of their namespace."""

    registry: Registry

    def __call__(
        self, resource: Resource, new: Raw, *, old: Raw | None, write: Write
    ) -> Callable[[Writer], None] | None:
        """Refuse the write, or return a function that charges it to the quotas."""
        if not resource.namespaced or resource.storage in quotas.IGNORED:
            return None
        found = write.lookup.list("resourcequotas", write.namespace)
        if not found or not _is_counted(resource.storage, new, old, write.subresource):
            return None
        request = _Request(
            resource,
            resource.strategy.to_storage(new),
            None if old is None else resource.strategy.to_storage(old),
            _context(resource.storage, write),
        )
        charges = request.charges(found)
        return (lambda writer: self._charge(writer, charges)) if charges else None

    def _charge(self, writer: Writer, charges: Sequence[tuple[Raw, Raw]]) -> None:
        resource = self.registry.recognised("", "v1", "resourcequotas")
        assert resource is not None, "quotas are built in"
        for quota, used in charges:
            _charge(writer, resource, {**quota, "status": {**quota["status"], "used": used}})


def _charge(writer: Writer, resource: Resource, quota: Raw) -> None:
    meta = quota["metadata"]
    order = Order(
        resource,
        meta["namespace"],
        meta["name"],
        _SERVER,
        subresource="status",
        manager="kube-apiserver",
    )
    writer.update(order, lambda _: Proposal(quota))


def _context(storage: str, write: Write) -> ClaimContext:
    """Return what the usage of a claim depends on; other kinds are counted by themselves."""
    if storage != CLAIMS:
        return NO_CONTEXT
    lookup = write.lookup
    now = seconds_of(write.now)
    return ClaimContext(
        classes=extended_resources(lookup.list("deviceclasses.resource.k8s.io", None)),
        pod=lambda namespace, name: lookup.get(quotas.PODS, namespace, name),
        claims=lambda namespace: lookup.list(CLAIMS, namespace),
        is_over=lambda pod: is_over(pod, now),
    )


def _is_counted(storage: str, new: Raw, old: Raw | None, subresource: str) -> bool:
    """Return whether such a write can change what a quota counts."""
    if storage == quotas.PODS:
        if subresource or old is None:
            return subresource == "resize" or not subresource
        return is_terminating(new) != is_terminating(old)
    return not subresource and (old is None or storage in _CHANGING)


@dataclass(frozen=True, slots=True)
class _Request:
    """One write that is checked against quotas."""

    resource: Resource
    new: Raw
    old: Raw | None
    context: ClaimContext

    def charges(self, found: Sequence[Raw]) -> list[tuple[Raw, Raw]]:
        """Return the quotas that the write changes, each with its new usage."""
        relevant = [quota for quota in found if self._concerns(quota)]
        if not relevant:
            return []
        used = quotas.usage_of(self.resource.storage, self.new, context=self.context)
        made = []
        for quota in relevant:
            after = quotas.charge(quota, self._more(quota, used))
            if isinstance(after, str):
                raise self._refusal(after)
            if after is not None:
                made.append((quota, amounts_to_json(after)))
        return made

    def _concerns(self, quota: Raw) -> bool:
        storage = self.resource.storage
        hard = quotas.hard_of(quota)
        if not quotas.matches(quota, storage, self.new, self.context):
            return False
        name = quota["metadata"]["name"]
        names = quotas.names_of(storage, list(hard), self.context)
        complaint = quotas.complaint(storage, names, self.new)
        if complaint:
            raise self._refusal(f"failed quota: {name}: {complaint}")
        used = get(quota, "status.used", {})
        if any(each not in used for each in names):
            shown_names = ",".join(sorted(names))
            raise self._refusal(f"status unknown for quota: {name}, resources: {shown_names}")
        return True

    def _more(self, quota: Raw, used: Amounts) -> Amounts:
        """Return what the write adds to the usage of the quota."""
        storage = self.resource.storage
        context = self.context
        if self.old is not None and quotas.matches(quota, storage, self.old, context):
            used = compute_increase(used, quotas.usage_of(storage, self.old, context=context))
        return used

    def _refusal(self, detail: str) -> StatusError:
        name = self.new["metadata"].get("name") or ""
        return forbidden(self.resource.as_resource, name, detail)
