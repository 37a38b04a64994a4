"""
Faults of devices whose slices dryrack does not manage, as DeviceTaintRules.

The publishers of dryrack apply the fault annotations of a Node to their own slices. For slices of
other drivers on a virtual node this controller creates a DeviceTaintRule for each taint of a fault.
The rules follow the annotations, and they are owned by the Node: none stays when the fault ends or
when the Node is deleted. A device that is lost has a taint instead, because only its driver can
remove it. A fault of its health alone has no rule.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from dryrack.client.endpoints import (
    NODES,
    SLICES,
    TAINT_RULE_VERSIONS,
    TAINT_RULES_V1,
    Endpoint,
)
from dryrack.client.informer import Informer, Name, name_of
from dryrack.controllers.objects import is_deleted, labels_of, uid_of
from dryrack.controllers.pods.virtual import is_virtual
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Create, Delete, EngineContext, Plan, Write
from dryrack.hardware import (
    DEVICE_FAULT,
    FAULT_LABEL,
    FAULT_NODE,
    LOST_TAINT,
    NO_FAULTS,
    UNHEALTHY_TAINT,
    DeviceFault,
    Health,
    NodeFaults,
    faults_of,
    is_managed_slice,
    node_owner,
)
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.resource import DeviceTaint


def plan(
    node: Raw | None,
    slices: Iterable[Raw],
    rules: Iterable[Raw],
    now: float,
    endpoint: Endpoint = TAINT_RULES_V1,
) -> Plan:
    """Return the writes after which the rules of a node are those of its faults."""
    faults = NO_FAULTS
    wanted: Mapping[str, Raw] = {}
    if node is not None and not is_deleted(node) and is_virtual(node):
        faults = faults_of(get(node["metadata"], "annotations", {}), now)
        wanted = {each["metadata"]["name"]: each for each in _rules_of(node, slices, faults)}
    existing = {each["metadata"]["name"]: each for each in rules}
    writes: list[Write] = [
        Delete(endpoint, name_of(rule), uid_of(rule))
        for name, rule in sorted(existing.items())
        if name not in wanted and not is_deleted(rule)
    ]
    writes += [
        Create(endpoint, rule) for name, rule in sorted(wanted.items()) if name not in existing
    ]
    again = None if faults.next_expiry is None else max(0.0, faults.next_expiry - now)
    return Plan(tuple(writes), again)


def _rules_of(node: Raw, slices: Iterable[Raw], faults: NodeFaults) -> Iterator[Raw]:
    for each in slices:
        spec = each["spec"]
        for device in () if is_managed_slice(each) else get(spec, "devices", ()):
            for taint in _taints_of(faults.devices.get(device["name"], ())):
                selector = {
                    "driver": spec["driver"],
                    "pool": spec["pool"]["name"],
                    "device": device["name"],
                }
                yield _rule(node, selector, taint)


def _taints_of(faults: Sequence[DeviceFault]) -> Iterator[DeviceTaint]:
    for fault in faults:
        if fault.is_lost:
            yield LOST_TAINT
        elif fault.health is Health.UNHEALTHY:
            yield UNHEALTHY_TAINT
        elif fault.taint is not None:
            yield fault.taint


def _rule(node: Raw, selector: Mapping[str, str], taint: DeviceTaint) -> Raw:
    name = node["metadata"]["name"]
    content = (uid_of(node), *selector.values(), taint.key, taint.value, taint.effect)
    owner = to_builtins(node_owner(name, uid_of(node)))
    return {
        "metadata": {
            # One name for one content: a rule is created and deleted, and never changed.
            "name": f"dryrack-fault-{sha256(repr(content).encode()).hexdigest()[:16]}",
            "labels": {FAULT_LABEL: "device"},
            "annotations": {FAULT_NODE: name},
            "ownerReferences": [owner],
        },
        "spec": {
            "deviceSelector": dict(selector),
            "taint": {
                key: value
                for key, value in (
                    ("key", taint.key),
                    ("value", taint.value),
                    ("effect", taint.effect),
                )
                if value
            },
        },
    }


class DeviceFaults(Reconciler[str]):
    """Keeps the DeviceTaintRules of device faults, node by node."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "device-faults")
        self._rules: Informer | None = None
        self._nodes = self.watch(NODES, self._on_node)
        self._slices = self.watch(SLICES, self._on_slice)
        self._by_node = self._slices.index("node", _node_of_slice)

    async def run(self) -> None:
        self._rules = await self.watch_if_served(TAINT_RULE_VERSIONS, self._on_rule)
        if self._rules is not None:
            self._rules_by_node = self._rules.index("node of fault", _node_of_rule)
        await super().run()

    async def decide(self, name: str) -> Plan:
        if self._rules is None:
            return NOTHING
        node = self._nodes.objects.get(Name("", name))
        rules = self._rules_by_node.get(name)
        slices = self._by_node.get(name)
        return plan(node, slices, rules, self._clock.now(), self._rules.endpoint)

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if _faults(old) != _faults(new):
            self.queue.add(name_of(new or old or {}).name)

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        each = new or old
        if each is None or is_managed_slice(each):
            return
        for name in _node_of_slice(each):
            if _faults(self._nodes.objects.get(Name("", name))):
                self.queue.add(name)

    def _on_rule(self, old: Raw | None, new: Raw | None) -> None:
        for name in _node_of_rule(new or old or {}):
            if old is None or new is None:
                self.queue.add(name)


def _faults(node: Raw | None) -> Mapping[str, str]:
    """Return the annotations with faults of devices."""
    annotations = get(node["metadata"], "annotations", {}) if node is not None else {}
    return {key: value for key, value in annotations.items() if key.startswith(DEVICE_FAULT)}


def _node_of_slice(each: Raw) -> tuple[str, ...]:
    name = each["spec"].get("nodeName")
    return (name,) if name else ()


def _node_of_rule(rule: Raw) -> tuple[str, ...]:
    if labels_of(rule).get(FAULT_LABEL) != "device":
        return ()
    name = get(rule["metadata"], "annotations", {}).get(FAULT_NODE)
    return (name,) if name else ()
