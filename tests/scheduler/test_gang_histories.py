"""
For any order of events, no device is allocated twice, nothing leaks, and no gang stays unfinished.

Histories are drawn by chance: gangs and pods come and go, nodes are lost, writes fail, schedulers
die and start again, or two of them work at a time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.controllers import scenes
from tests.scheduler.gang_scenes import PREFIX, Faulty, GangStage, claimless, lone, member

from dryrack.client.endpoints import CLAIMS, NODES, PODS, SLICES
from dryrack.client.errors import ApiError
from dryrack.client.timekeeping import run_virtual

if TYPE_CHECKING:
    from dryrack.store import Event


NAME = f"{PREFIX}/name"
WORDS = (
    *("gang", "gang", "claimless", "late", "lone", "delete", "delete gang"),
    *("delete waiting", "delete waiting"),
    *("vip", "touch", "lose node", "new node", "fail", "die", "restart", "second", "wait"),
)


@dataclass(frozen=True, slots=True)
class Deed:
    """The next event; the number is its object, its size, or its write."""

    word: str
    number: int
    seconds: int


deeds = st.builds(
    Deed, st.sampled_from(WORDS), st.integers(0, 12), st.sampled_from([0, 0, 1, 2, 70])
)


@dataclass(slots=True)
class Witness:
    """The states that occurred at any moment."""

    minimums: dict[str, int] = field(default_factory=dict)
    was_whole: set[str] = field(default_factory=set)
    # The test has deleted members of these gangs; the scheduler deletes none of a complete gang.
    bereft: set[str] = field(default_factory=set)
    twice: list[str] = field(default_factory=list)
    _gangs: dict[str, dict[str, bool]] = field(default_factory=lambda: defaultdict(dict))
    _devices: dict[str, list[str]] = field(default_factory=dict)

    def pod(self, event: Event) -> None:
        pod = event.stored.object
        gang = (pod["metadata"].get("labels") or {}).get(NAME)
        if gang is None:
            return
        is_bound = bool(pod["spec"].get("nodeName")) and event.type.value != "DELETED"
        members = self._gangs[gang]
        members[pod["metadata"]["uid"]] = is_bound
        if sum(members.values()) >= self.minimums[gang]:
            self.was_whole.add(gang)

    def claim(self, event: Event) -> None:
        claim = event.stored.object
        allocation = claim.get("status", {}).get("allocation") or {}
        results = allocation.get("devices", {}).get("results", [])
        is_gone = event.type.value == "DELETED"
        names = [] if is_gone else [f"{each['pool']}/{each['device']}" for each in results]
        self._devices[claim["metadata"]["uid"]] = names
        counts = Counter(name for each in self._devices.values() for name in each)
        self.twice += [name for name, count in counts.items() if count > 1]


@dataclass(slots=True)
class Player:
    """Does what a history says."""

    stage: GangStage
    witness: Witness
    made: int = 0
    nodes: int = 2

    async def run(self, history: list[Deed]) -> None:
        self.stage.start()
        for deed in history:
            with suppress(ApiError):
                await self._do(deed)
            await self.stage.rest(deed.seconds)

    async def _do(self, deed: Deed) -> None:
        match deed.word:
            case "gang" | "claimless":
                await self._gang(2 + deed.number % 3, deed)
            case "late":
                await self._late(deed.number)
            case "lone" | "vip":
                self.made += 1
                important = {"priorityClassName": "system-node-critical"}
                spec = important if deed.word == "vip" else {}
                await self.stage.create_pods(lone(f"{deed.word}-{self.made}", **spec))
            case "touch":
                for claim in (await self.stage.client.list(CLAIMS)).items:
                    patch = {"metadata": {"annotations": {"touched": str(deed.number)}}}
                    name = claim["metadata"]["name"]
                    await self.stage.client.patch(CLAIMS, name, patch, namespace="default")
            case "delete" | "delete gang" | "delete waiting":
                await self._delete(deed)
            case "lose node" | "new node":
                await self._node(deed)
            case "fail" | "die" | "restart" | "second":
                await self._scheduler(deed)

    async def _gang(self, minimum: int, deed: Deed) -> None:
        self.made += 1
        name = f"gang-{self.made}"
        self.witness.minimums[name] = minimum
        make = member if deed.word == "gang" else claimless
        size = minimum + deed.number // 5 - 1
        await self.stage.create_pods(*(make(f"{name}-{n}", name, minimum) for n in range(size)))

    async def _late(self, number: int) -> None:
        names = sorted(self.witness.minimums)
        if names:
            self.made += 1
            name = names[number % len(names)]
            minimum = self.witness.minimums[name]
            await self.stage.create_pods(member(f"{name}-late-{self.made}", name, minimum))

    async def _delete(self, deed: Deed) -> None:
        pods = sorted((await self.stage.pods()).items())
        if deed.word == "delete waiting":
            pods = [(name, pod) for name, pod in pods if not pod["spec"].get("nodeName")]
        if not pods:
            return
        name, pod = pods[deed.number % len(pods)]
        gang = (pod["metadata"].get("labels") or {}).get(NAME, "")
        chosen = [name]
        if deed.word == "delete gang":
            chosen = [each for each, _ in pods if gang and each.startswith(f"{gang}-")]
        self.witness.bereft.add(gang)
        for each in chosen:
            grace = deed.number % 2
            await self.stage.client.delete(PODS, each, namespace="default", grace_seconds=grace)

    async def _node(self, deed: Deed) -> None:
        if deed.word == "new node":
            await scenes.make_node(self.stage.client, f"node-{self.nodes}", devices=2)
            self.nodes += 1
            return
        name = f"node-{deed.number % self.nodes}"
        for pod in (await self.stage.pods()).values():
            if pod["spec"].get("nodeName") == name:
                self.witness.bereft.add((pod["metadata"].get("labels") or {}).get(NAME, ""))
        await self.stage.client.delete(NODES, name)
        await self.stage.client.delete(SLICES, f"{name}-gpus")

    async def _scheduler(self, deed: Deed) -> None:
        if deed.word != "second":
            await self.stage.stop()
        transport = Faulty(self.stage.transport, after=bool(deed.number % 2))
        if deed.word == "fail":
            transport.fails_at = deed.number
        if deed.word == "die":
            transport.dies_at = deed.number
        self.stage.start(transport)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(deeds, min_size=3, max_size=14))
def test_at_rest_every_gang_is_whole_or_nowhere(history: list[Deed]) -> None:
    """A gang that runs below its minimum was complete once, and its other members were deleted."""

    async def story() -> None:
        async with GangStage() as stage:
            witness = Witness()
            store = stage.control_plane.store
            store.subscribe(PODS.resource, witness.pod)
            store.subscribe(CLAIMS.resource, witness.claim)
            await Player(stage, witness).run(history)
            await stage.stop()
            stage.start()
            await stage.rest(400)
            assert witness.twice == []
            half = witness.minimums.keys() - (witness.was_whole & witness.bereft)
            await stage.check({gang: witness.minimums[gang] for gang in half})
            fits = {name for name in await stage.pods() if name.startswith(("lone-", "vip-"))}
            free = 2 * len((await stage.client.list(NODES)).items) - len(
                await stage.allocated_devices()
            )
            assert free == 0 or fits <= set(await stage.bound()), "a pod waits beside a free device"

    run_virtual(story())
