"""
PodDisruptionBudgets: compute how many pods may be evicted now.

The server admits evictions by this status; a budget without a status allows none. An evicted pod
counts as missing at once, before its deletion is seen, and counts again if it is not deleted.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from dryrack.client.discovery import discover
from dryrack.client.endpoints import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Endpoint,
)
from dryrack.client.errors import NotFoundError
from dryrack.client.informer import Index, Name, name_of
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.objects import (
    controller_of,
    is_deleted,
    is_ready,
    labels_of,
    namespaces,
    spec_of,
    status_of,
    uid_of,
    with_condition,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.workloads import owner_key, pace, replicas_of, status_update
from dryrack.controllers.writes import NOTHING, EngineContext, Plan, Report, Write
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.rules.int_or_percent import desired_healthy
from dryrack.kinds.selectors import matches_labels

Scale = tuple[str, int]
"""The UID of a controller of pods, and its wanted number of replicas."""

# An admitted eviction that is not carried out by then never will be.
DELETION_SECONDS_MAX = 120.0
_UNMANAGED = (
    "Pods selected by this budget have no controller, so that a percentage or maxUnavailable "
    "does not count them; set minAvailable to a number"
)


def covers(budget: Raw, pod: Raw) -> bool:
    """Return True if a budget covers a pod; a budget without a selector covers none."""
    selector = spec_of(budget).get("selector")
    return selector is not None and matches_labels(decode(selector, LabelSelector), labels_of(pod))


def plan(
    budget: Raw, pods: Sequence[Raw], scale_of: Callable[[Raw], Scale | None], now: float
) -> Plan:
    """
    Return the status of a budget for the pods that it covers.

    `scale_of` returns the scale of a pod's controller; None if it is unknown.
    """
    managed = [pod for pod in pods if controller_of(pod) is not None]
    scales = [scale_of(pod) for pod in managed] if _needs_scale(budget) else []
    if None in scales:
        lost = managed[scales.index(None)]["metadata"]["name"]
        return Plan(tuple(_fail(budget, f'found no controllers for pod "{lost}"', now)))
    scale = sum(dict(each for each in scales if each is not None).values())
    expected = scale if _needs_scale(budget) else len(pods)
    # The evicted pods whose deletion is not seen yet, with the time of their eviction.
    waiting = {pod["metadata"]["name"] for pod in pods if not is_deleted(pod)}
    disrupted: dict[str, str] = {
        name: when
        for name, when in get(budget, "status.disruptedPods", {}).items()
        if name in waiting and seconds_of(when) + DELETION_SECONDS_MAX >= now
    }
    healthy = sum(
        is_ready(pod) and not is_deleted(pod) and pod["metadata"]["name"] not in disrupted
        for pod in pods
    )
    status = _status(budget, expected, healthy, disrupted)
    is_allowed = status["disruptionsAllowed"] > 0
    status["conditions"] = _with_allowed(
        budget,
        now,
        status="True" if is_allowed else "False",
        reason="SufficientPods" if is_allowed else "InsufficientPods",
    )
    writes: list[Write] = status_update(POD_DISRUPTION_BUDGETS, budget, status)
    if _needs_scale(budget) and len(managed) < len(pods):
        writes.append(Report(budget, "Warning", "UnmanagedPods", _UNMANAGED, once=_once(budget)))
    # A moment after its time is over, an eviction no longer counts.
    ends = [seconds_of(when) + DELETION_SECONDS_MAX - now for when in disrupted.values()]
    return Plan(tuple(writes), min(ends) + 1.0 if ends else None)


def _needs_scale(budget: Raw) -> bool:
    """Return True if a budget counts the wanted pods, and not the existing ones."""
    return not isinstance(spec_of(budget).get("minAvailable"), int)


def _once(budget: Raw) -> str:
    return str(budget["metadata"].get("generation", 0))


def _status(budget: Raw, expected: int, healthy: int, disrupted: Mapping[str, str]) -> Raw:
    spec = spec_of(budget)
    desired = desired_healthy(spec.get("maxUnavailable"), spec.get("minAvailable"), expected)
    # Without pods, no eviction is allowed: new pods may exist before they are counted.
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status: Raw = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "expectedPods": expected,
        "observedGeneration": budget["metadata"].get("generation", 0),
    }
    return status | ({"disruptedPods": dict(disrupted)} if disrupted else {})


def _with_allowed(budget: Raw, now: float, **values: str) -> list[Raw]:
    condition = {"type": "DisruptionAllowed", "message": "", **values}
    condition["lastTransitionTime"] = timestamp(now)
    generation = {"observedGeneration": budget["metadata"].get("generation", 0)}
    return with_condition(get(budget, "status.conditions", ()), condition | generation)


def _fail(budget: Raw, message: str, now: float) -> list[Write]:
    """Report that the pods cannot be counted; the budget allows no eviction."""
    conditions = _with_allowed(budget, now, status="False", reason="SyncFailed", message=message)
    counts = {"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    status = counts | status_of(budget) | {"disruptionsAllowed": 0, "conditions": conditions}
    status["observedGeneration"] = budget["metadata"].get("generation", 0)
    reason = "CalculateExpectedPodCountFailed"
    text = f"Failed to calculate the number of expected pods: {message}"
    return [
        *status_update(POD_DISRUPTION_BUDGETS, budget, status),
        Report(budget, "Warning", reason, text, once=f"{_once(budget)} {message}"),
    ]


class DisruptionController(Reconciler[Name]):
    """Keeps the status of PodDisruptionBudgets."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "disruption-controller")
        self._budgets = self.watch(POD_DISRUPTION_BUDGETS, self._on_budget)
        self._by_namespace = self._budgets.index("namespace", namespaces)
        self._pods = self.watch(PODS, self._on_pod)
        self._owners = {
            each: self.watch(each) for each in (REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS)
        }

    def _on_budget(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.queue.add(name_of(new))

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        for pod in filter(None, (old, new)):
            namespace = pod["metadata"]["namespace"]
            for budget in self._by_namespace.get(namespace):
                if covers(budget, pod):
                    wait = pace(self._pods_by_namespace.count(namespace))
                    self.queue.add_after(name_of(budget), wait)

    @property
    def _pods_by_namespace(self) -> Index:
        # The index is created when the first budget needs it.
        return self._pods.index("namespace", namespaces)

    async def decide(self, name: Name) -> Plan:
        budget = self._budgets.objects.get(name)
        if budget is None or is_deleted(budget):
            return NOTHING
        pods = [pod for pod in self._pods_by_namespace.get(name.namespace) if covers(budget, pod)]
        scales = await self._scales(pods) if _needs_scale(budget) else {}
        return plan(budget, pods, lambda pod: scales.get(_controller_uid(pod)), self._clock.now())

    async def _scales(self, pods: Iterable[Raw]) -> Mapping[str, Scale | None]:
        scales: dict[str, Scale | None] = {}
        for pod in pods:
            uid = _controller_uid(pod)
            if uid and uid not in scales:
                scales[uid] = self._known_scale(pod) or await self._served_scale(pod)
        return scales

    def _known_scale(self, pod: Raw) -> Scale | None:
        """Return the scale of a set, or of the deployment that controls it."""
        for endpoint in (REPLICA_SETS, STATEFUL_SETS):
            owner = self._owner(pod, endpoint)
            if owner is not None:
                above = self._owner(owner, DEPLOYMENTS)
                scaled = owner if above is None else above
                return uid_of(scaled), replicas_of(scaled)
        return None

    def _owner(self, obj: Raw, endpoint: Endpoint) -> Raw | None:
        key = owner_key(obj, endpoint)
        found = self._owners[endpoint].objects.get(key) if key else None
        return found if found is not None and uid_of(found) == _controller_uid(obj) else None

    async def _served_scale(self, pod: Raw) -> Scale | None:
        """Return the scale of a controller of another kind."""
        owner = controller_of(pod)
        assert owner is not None, "only pods with a controller are asked about"
        for each in await discover(self._client):
            endpoint = each.endpoint
            group = owner["apiVersion"].rpartition("/")[0]
            if (endpoint.kind, endpoint.group) != (owner["kind"], group):
                continue
            path = endpoint.path(pod["metadata"]["namespace"], owner["name"], "scale")
            try:
                scale = await self._client.get_path(path)
            except NotFoundError:
                return None
            return owner["uid"], replicas_of(scale)
        return None


def _controller_uid(pod: Raw) -> str:
    owner = controller_of(pod)
    return owner["uid"] if owner else ""
