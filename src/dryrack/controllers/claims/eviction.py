"""
Evict pods from devices whose NoExecute taints their claims do not tolerate.

When a claim's time with a tainted device is over, all pods that use the claim are deleted: those
that it is reserved for, and those of a PodGroup that it is reserved for. The claim is then released
as usual. The status of DeviceTaintRules reports the evictions.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence

from dryrack.allocation import DeviceId
from dryrack.client.endpoints import CLAIMS, PODS, SLICES, TAINT_RULE_VERSIONS
from dryrack.client.informer import Name, name_of
from dryrack.controllers.claims.device_taints import (
    NO_EXECUTE,
    PERIOD_SECONDS,
    Counts,
    Eviction,
    NoExecuteTaint,
    Rule,
    Rules,
    TaintsOn,
    device_of,
    eviction_from,
    find_pending,
    plan_status,
    pool_of,
    published_devices,
    results_of,
    taints_of,
)
from dryrack.controllers.claims.references import claims_of_pod, is_reserved_for
from dryrack.controllers.nodes.eviction import evict
from dryrack.controllers.objects import is_deleted, is_terminal, spec_of, status_of
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Delete, EngineContext, Plan, Report
from dryrack.kinds.expansion.pod_claims import group_of, is_group
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

REASON = "DeletionByDeviceTaintManager"
MESSAGE = "Device Taint manager: deleting due to NoExecute taint"
NAME = "device-taint-eviction"


def plan(pod: Raw, eviction: Eviction | None, now: float) -> Plan:
    """Return the writes that evict a pod, or the time until then."""
    if eviction is None or is_deleted(pod) or is_terminal(pod) or not spec_of(pod).get("nodeName"):
        return NOTHING
    if eviction.when > now:
        return Plan(again_seconds=eviction.when - now)
    return Plan((_report(pod, "Marking for deletion"), *evict(pod, REASON, MESSAGE, now)))


def _report(pod: Raw, message: str) -> Report:
    return Report(pod, "Normal", "DeviceTaintManagerEviction", message)


class DeviceTaintEviction(Reconciler[Name]):
    """Evicts pods from tainted devices, and writes the status of DeviceTaintRules."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, NAME)
        self._rules = Rules()
        self._rule_status = _RuleStatus(context, self._plan_rule_status)
        # Pods that are to be deleted, now or later, and the rules that cause it.
        self._due: dict[Name, frozenset[str]] = {}
        self._pods = self.watch(PODS, self._on_pod)
        self._by_group = self._pods.index("pod group", _group_keys)
        self._claims = self.watch(CLAIMS, self._on_claim)
        self._by_device = self._claims.index("device", _device_keys)
        self._slices = self.watch(SLICES, self._on_slice)
        self._by_pool = self._slices.index("pool", _pool_keys)

    async def run(self) -> None:
        await self.watch_if_served(TAINT_RULE_VERSIONS, self._on_rule)
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run(), name=NAME)
            group.create_task(self._rule_status.run(), name=f"{NAME} of rules")

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        """Look at a pod that gets a node or a claim: the device may have been tainted before."""
        if new is None or not spec_of(new).get("nodeName"):
            return
        if (old is None or _uses(old) != _uses(new)) and any(claims_of_pod(new)):
            self.queue.add(name_of(new))

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        for claim in (old, new):
            if claim is not None and results_of(claim):
                self._add_consumers(claim)

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        before = taints_of([old]) if old else {}
        after = taints_of([new]) if new else {}
        for device in sorted(set(before) | set(after)):
            if before.get(device) != after.get(device):
                for claim in self._by_device.get(str(device)):
                    self._add_consumers(claim)

    def _on_rule(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and new is not None and spec_of(old) == spec_of(new):
            self._rules.change(name_of(new).name, old, new)
            return
        for raw in (old, new):
            if raw is not None:
                rule = Rule.of(raw)
                for claim in self._claims.all():
                    if any(rule.selects(device_of(each)) for each in results_of(claim)):
                        self._add_consumers(claim)
        name = name_of(new or old or {}).name
        self._rules.change(name, old, new)
        # The status is written at once, before any eviction.
        self._rule_status.queue.add(name)

    def _add_consumers(self, claim: Raw) -> None:
        for pod in self._consumers(claim):
            self.queue.add(name_of(pod))

    def _consumers(self, claim: Raw) -> Iterator[Raw]:
        """Yield the pods that a claim is reserved for, each or with their group."""
        namespace = claim["metadata"]["namespace"]
        for consumer in get(claim, "status.reservedFor", ()):
            if is_group(consumer):
                yield from self._by_group.get(f"{namespace}/{consumer['name']}")
            elif consumer.get("resource") == "pods":
                pod = self._pods.get(namespace, consumer["name"])
                if pod is not None:
                    yield pod

    async def decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        if pod is None or not spec_of(pod).get("nodeName"):
            self._due.pop(name, None)
            return NOTHING
        now = self._clock.now()
        named = [
            self._claims.get(name.namespace, each.claim)
            for each in claims_of_pod(pod)
            if each.claim
        ]
        claims = [each for each in named if each is not None and is_reserved_for(each, pod)]
        eviction = eviction_from(claims, self._taints_on(claims), now)
        answer = plan(pod, eviction, now)
        if answer is not NOTHING and eviction is not None:
            self._due[name] = eviction.rules
            for rule in self._rules.named(eviction.rules):
                self._rule_status.queue.add_after(rule, PERIOD_SECONDS)
        elif self._due.pop(name, None) is not None and not is_deleted(pod):
            return Plan((_report(pod, "Cancelling deletion"),))
        return answer

    def on_success(self, key: Name, plan: Plan, stored: Sequence[Raw | None]) -> None:
        if any(isinstance(write, Delete) for write in plan.writes):
            self._rules.count(self._due.pop(key, ()))

    def _taints_on(self, claims: Sequence[Raw]) -> TaintsOn:
        pools = {device_of(each)[:2] for claim in claims for each in results_of(claim)}
        slices = [each for pool in sorted(pools) for each in self._by_pool.get("/".join(pool))]
        published = taints_of(slices)

        def taints_on(device: DeviceId) -> Iterable[NoExecuteTaint]:
            yield from (NoExecuteTaint(taint) for taint in published.get(device, ()))
            yield from self._rules.on(device)

        return taints_on

    def _plan_rule_status(self, name: str) -> Plan:
        rule = self._rules.known.get(name)
        if rule is None:
            return NOTHING
        return plan_status(rule, lambda: self._counts(rule), self._clock.now())

    def _counts(self, rule: Rule) -> Counts:
        evicted = self._rules.evicted.get(rule.raw["metadata"].get("uid", ""), 0)
        if rule.effect not in (NO_EXECUTE, "None"):
            return Counts(evicted=evicted)
        pods = find_pending(rule, self._claims.all(), self._consumers)
        results = [result for claim in self._claims.all() for result in results_of(claim)]
        published = published_devices(self._slices.all()) if rule.effect == "None" else ()
        return Counts(
            pending=len(pods),
            namespaces=len({pod.namespace for pod in pods}),
            published=sum(rule.selects(device) for device, _ in published),
            allocated=sum(rule.selects(device_of(result)) for result in results),
            evicted=evicted,
        )


class _RuleStatus(Reconciler[str]):
    """Writes the status of DeviceTaintRules."""

    def __init__(self, context: EngineContext, plan_status: Callable[[str], Plan]) -> None:
        super().__init__(context, f"{NAME}-rules")
        self._plan_status = plan_status
        for endpoint in (PODS, CLAIMS, SLICES):
            self.watch(endpoint)

    async def decide(self, name: str) -> Plan:
        return self._plan_status(name)


def _pool_keys(resource_slice: Raw) -> Sequence[str]:
    return ("/".join(pool_of(resource_slice)[0]),)


def _group_keys(pod: Raw) -> Sequence[str]:
    group = group_of(pod)
    return (f"{pod['metadata']['namespace']}/{group}",) if group else ()


def _uses(pod: Raw) -> tuple[str | None, Raw | None, Raw | None]:
    """Return what decides which devices a pod uses, and whether it runs on them."""
    status = status_of(pod)
    return (
        spec_of(pod).get("nodeName"),
        status.get("resourceClaimStatuses"),
        status.get("extendedResourceClaimStatus"),
    )


def _device_keys(claim: Raw) -> Sequence[str]:
    return [str(device_of(each)) for each in results_of(claim)]
