"""Rows computed for each change equal the rows computed from all objects at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dashboard.small_world import DRIVER, GANG, allocation, claim, device, node, pod

from dryrack.client.endpoints import CLAIMS, NODES, PODS, SLICES, TAINT_RULES, Endpoint
from dryrack.dashboard.data.tracked import Tracked
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from dryrack.placement import claims_of, devices_of, gangs_of, summary_of

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

Action = tuple[str, int, int]
KINDS = {"slice": SLICES, "claim": CLAIMS, "pod": PODS, "node": NODES, "rule": TAINT_RULES}
POOLS = ("rack-0", "rack-1", "")
COUNTERS = [{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]


def slice_of(which: int, how: int) -> Raw:
    """Return a slice: complete or not, of an older generation, of partitions, or shared."""
    consumed = [{"counterSet": "card", "counters": {"memory": {"value": "50Gi"}}}]
    ways: list[Raw] = [{}, {"consumesCounters": consumed}, {"allowMultipleAllocations": True}]
    more = ways[how % 3]
    pool = {"name": POOLS[which % 2], "generation": how % 2, "resourceSliceCount": 1 + how // 3 % 2}
    spec = {
        "driver": DRIVER,
        "pool": pool,
        **({"allNodes": True} if how == 13 else {"nodeName": POOLS[which % 2]}),
        "devices": [device(f"gpu-{n}", **more) for n in range(3)],
        "sharedCounters": COUNTERS,
    }
    return {"metadata": {"name": f"slice-{which}"}, "spec": spec}


def claim_of(which: int, how: int) -> Raw:
    made = claim(f"claim-{which}")
    if how % 4:
        given = allocation(POOLS[how % 2], f"gpu-{how % 3}", f"gpu-{how % 5}")
        users = [{"resource": "pods", "name": f"pod-{which}", "uid": "u"}]
        made["status"] = {"allocation": given, "reservedFor": users}
    return made


def pod_of(which: int, how: int) -> Raw:
    made = pod(f"pod-{which}", f"claim-{how % 3}" if how % 2 else "", "pair" if how % 3 else "")
    made["spec"]["nodeName"] = POOLS[how % 3]
    made["status"] = {"phase": ("Pending", "Running", "Succeeded")[how % 3]}
    if how == 7:
        made["metadata"]["labels"][f"{GANG}/min-available"] = "3"
    return made


def rule_of(which: int, how: int) -> Raw:
    taint = {"key": "example.com/a", "effect": ("NoSchedule", "NoExecute")[how % 2]}
    spec = {"deviceSelector": {"pool": POOLS[how % 2]}, "taint": taint}
    return {"metadata": {"name": f"rule-{which}"}, "spec": spec}


def node_of(which: int, how: int) -> Raw:
    made = node(POOLS[which % 2], f"zone-{how % 2}", unschedulable=bool(how % 3))
    if how == 6:
        made["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return made


MAKE = {"slice": slice_of, "claim": claim_of, "pod": pod_of, "rule": rule_of, "node": node_of}


@dataclass
class Both:
    """The rows, and all objects that they are rows of."""

    tracked: Tracked = field(default_factory=lambda: Tracked({}))
    objects: dict[Endpoint, dict[str, Raw]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS.values()}
    )

    def act(self, action: Action) -> None:
        """The object comes or changes; or it goes, one time of five."""
        what, which, how = action
        kind = KINDS[what]
        made = MAKE[what](which, how)
        name = made["metadata"]["name"]
        old = self.objects[kind].get(name)
        if how % 5 == 4:
            if old is not None:
                self.tracked.change(kind, self.objects[kind].pop(name), None)
            return
        self.objects[kind][name] = made
        self.tracked.change(kind, old, made)

    def settle(self) -> None:
        while self.tracked.is_marked:
            self.tracked.take()


one = st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 2), st.integers(0, 14))
# Slices first, so that later changes have an effect; then a few changes at a time.
beginnings = st.lists(st.tuples(st.just("slice"), st.integers(0, 2), st.integers(0, 3)), min_size=2)
scripts = st.tuples(beginnings, st.lists(one, min_size=2), *[st.lists(one, max_size=2)] * 4)


@given(scripts)
@settings(max_examples=200)
def test_rows_follow_every_change(rounds: tuple[list[Action], ...]) -> None:
    """Devices, summaries, claims and gangs, after any changes in any order."""
    both = Both()
    for script in rounds:
        for action in script:
            both.act(action)
        both.settle()
        _compare(both)


def _compare(both: Both) -> None:
    slices = [decode(each, ResourceSlice) for _, each in sorted(both.objects[SLICES].items())]
    claims = [decode(each, ResourceClaim) for _, each in sorted(both.objects[CLAIMS].items())]
    rules = [decode(each, DeviceTaintRule) for each in both.objects[TAINT_RULES].values()]
    pods = [decode(each, Pod) for each in both.objects[PODS].values()]
    nodes = [decode(each, Node) for each in both.objects[NODES].values()]
    views = devices_of(slices, claims, rules, nodes)
    tracked = both.tracked
    rows = [each for key in tracked.fleet.pools.current for each in tracked.fleet.views_of(key)]

    assert sorted(rows, key=lambda each: each.name) == sorted(views, key=lambda each: each.name)
    shown = {
        (row.driver, row.name, each.name): each.state
        for row in tracked.fleet.pools.current.values()
        for each in row.devices
    }
    assert shown == {
        (each.driver, each.pool, each.device): tracked.fleet.state_of(each) for each in views
    }
    told = [
        _without(each, "states", "fragmentation") for each in tracked.fleet.summaries.documents()
    ]
    # On the map, an unhealthy device is not free.
    if not rules:
        assert told == [each.document() for each in summary_of(views)]
    known = tracked.claims.current
    assert [known[each] for each in sorted(known)] == [
        each.document() for each in claims_of(claims, pods)
    ]
    gangs = [each for rows in tracked.gangs.current.values() for each in rows]
    assert gangs == [each.document() for each in gangs_of(pods)]
    assert set(tracked.nodes.current) == set(both.objects[NODES])
    assert len(tracked.pods.current) == len(pods)


def _without(document: Raw, *keys: str) -> Raw:
    return {key: value for key, value in document.items() if key not in keys}
