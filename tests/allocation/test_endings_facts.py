"""Remembering how searches ended changes no answer: all that decides is among the facts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.allocation.builders import (
    all_devices,
    allocator,
    claim,
    counters,
    device,
    devices,
    drawing,
    node,
    pool,
    request,
)
from tests.allocation.generate import cases
from tests.oracle.differential import KEPT
from tests.oracle.shrink import reduced
from tests.oracle.verdicts import our_verdict

from dryrack.allocation import (
    Allocated,
    Features,
    Unsatisfiable,
)
from dryrack.allocation.proof.search_memo import SearchMemo
from dryrack.allocation.proof.search_proof import SearchProof
from dryrack.allocation.search import allocator as allocator_module
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import AllocationResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.allocation import Outcome
    from dryrack.kinds.resource import ResourceClaim, ResourceSlice

FAMILIES = 300
FAMILY = 8
LISTS = Features.from_gates({"DRAListTypeAttributes": True})


@pytest.fixture(autouse=True)
def all_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every search a long one."""
    monkeypatch.setattr(allocator_module, "_DEAD_ENDS_MAX", -1)
    monkeypatch.setattr(SearchProof, "is_refuted", lambda proof: False)


class Kept(SearchMemo):
    """Counts what it is asked, what it knows and what it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def get(self, facts: Any) -> Any:
        ending = super().get(facts)
        self.count.update(asked=1, known=ending is not None)
        return ending

    def keep(self, facts: Any, ending: Any) -> None:
        super().keep(facts, ending)
        self.count.update(kept=1)


@dataclass(frozen=True, slots=True)
class Scene:
    """A claim on a node."""

    slices: Sequence[ResourceSlice]
    claim: ResourceClaim
    used: Sequence[Any] = field(default=())

    def outcome(self, memo: SearchMemo) -> Outcome:
        results = [{"request": "r", "driver": "gpu.example.com", **each} for each in self.used]
        taken = decode({"devices": {"results": results}}, AllocationResult)
        asked = allocator(self.slices, held={"other": taken}, features=LISTS, memo=memo)
        return asked.allocate(node(), [self.claim])


def drawing_scene(limit: int, *draws: int, used: Sequence[Any] = ()) -> Scene:
    """Two devices that draw on a counter."""
    offered = [drawing(f"part-{n}", memory=amount) for n, amount in enumerate(draws)]
    return Scene(pool(offered, sets=[counters(memory=limit)]), claim(request("r", 2)), used)


def valued_scene(constraint: str, *values: Any) -> Scene:
    """Two devices with values under a constraint."""
    offered = [
        device(f"gpu-{n}", more={"attributes": {"value": value}}) for n, value in enumerate(values)
    ]
    under = [{constraint: "gpu.example.com/value"}]
    return Scene(pool(offered), claim(request("r", 2), constraints=under))


def all_big_scene(*, big: bool) -> Scene:
    """All devices that are big; the second, which may be, is in use."""
    offered = [device("gpu-0", big=True), device("gpu-1", big=big)]
    wanted = all_devices("r")
    expression = "device.attributes['gpu.example.com'].big"
    wanted["exactly"]["selectors"] = [{"cel": {"expression": expression}}]
    return Scene(pool(offered), claim(wanted), [{"pool": "pool", "device": "gpu-1"}])


def shared_scene(memory: str, *wants: str, used: str = "", policy: Any = None) -> Scene:
    """Shares of a device of which there may be one already."""
    capacity = {"memory": {"value": memory, "requestPolicy": policy}}
    offered = [device("gpu", more={"capacity": capacity, "allowMultipleAllocations": True})]
    before = {"pool": "pool", "device": "gpu", "shareID": "0b0e1f3a-5a49-4d53-9b1c-2a7d6b0a0001"}
    wanted = claim(
        *(request(f"r{n}", capacity={"requests": {"memory": want}}) for n, want in enumerate(wants))
    )
    taken = [{**before, "consumedCapacity": {"memory": used}}] if used else []
    return Scene(pool(offered), wanted, taken)


STEPS = {"default": "4", "validRange": {"min": "4", "step": "4"}}
IN_USE = {"pool": "pool", "device": "gpu-0"}

# Each time what does not fit, and what differs from it in one part, and fits.
PAIRS = {
    "number": (
        Scene(pool(devices(2)), claim(request("r", 3))),
        Scene(pool(devices(2)), claim(request("r", 2))),
    ),
    "devices": (
        Scene(pool(devices(1)), claim(request("r", 2))),
        Scene(pool(devices(2)), claim(request("r", 2))),
    ),
    "selector": (
        Scene(pool(devices(2)), claim(request("r", 2, select="false"))),
        Scene(pool(devices(2)), claim(request("r", 2, select="true"))),
    ),
    "attribute": (
        Scene(
            pool([device("gpu-0", big=False)]),
            claim(request("r", select="device.attributes['gpu.example.com'].big")),
        ),
        Scene(
            pool([device("gpu-0", big=True)]),
            claim(request("r", select="device.attributes['gpu.example.com'].big")),
        ),
    ),
    "use": (
        Scene(pool(devices(2)), claim(request("r", 2)), [IN_USE]),
        Scene(pool(devices(2)), claim(request("r", 2))),
    ),
    "use of all": (
        Scene(pool(devices(2)), claim(all_devices("r")), [IN_USE]),
        Scene(pool(devices(2)), claim(all_devices("r"))),
    ),
    "counter": (drawing_scene(3, 2, 2), drawing_scene(4, 2, 2)),
    "draw": (drawing_scene(4, 2, 3), drawing_scene(4, 2, 2)),
    "counter in use": (
        drawing_scene(5, 2, 2, 2, used=[{"pool": "pool", "device": "part-2"}]),
        drawing_scene(6, 2, 2, 2, used=[{"pool": "pool", "device": "part-2"}]),
    ),
    "equal values": (
        valued_scene("matchAttribute", {"int": 1}, {"int": 2}),
        valued_scene("matchAttribute", {"int": 1}, {"int": 1}),
    ),
    "different values": (
        valued_scene("distinctAttribute", {"int": 1}, {"int": 1}),
        valued_scene("distinctAttribute", {"int": 1}, {"int": 2}),
    ),
    "kind of constraint": (
        valued_scene("matchAttribute", {"int": 1}, {"int": 2}),
        valued_scene("distinctAttribute", {"int": 1}, {"int": 2}),
    ),
    "common members": (
        valued_scene("matchAttribute", {"ints": [1, 3]}, {"ints": [2]}),
        valued_scene("matchAttribute", {"ints": [1, 2]}, {"ints": [2]}),
    ),
    "all of what": (all_big_scene(big=True), all_big_scene(big=False)),
    "capacity": (shared_scene("8", "5", "5"), shared_scene("10", "5", "5")),
    "capacity in use": (
        shared_scene("12", "5", "5", used="4"),
        shared_scene("12", "5", "5", used="2"),
    ),
    "capacity wanted": (shared_scene("8", "5", "5"), shared_scene("8", "4", "4")),
    "capacity by policy": (shared_scene("8", "5", "3", policy=STEPS), shared_scene("8", "5", "3")),
}


@pytest.mark.parametrize("what", PAIRS)
def test_whatever_decides_is_told_apart(what: str) -> None:
    """The result of each search is remembered once, and independent of the other."""
    memory = Kept()
    refused, given = PAIRS[what]

    assert isinstance(refused.outcome(memory), Unsatisfiable)
    assert memory.count["kept"] == 1
    assert isinstance(given.outcome(memory), Allocated)
    assert isinstance(refused.outcome(memory), Unsatisfiable)
    assert isinstance(given.outcome(memory), Allocated)
    assert memory.count["kept"] == 2


def renamed(part: Any, *, inside: str = "") -> Any:
    """The case with other names for slices, pools and devices, in the same order."""
    if isinstance(part, list):
        return [renamed(each, inside=inside) for each in part]
    if not isinstance(part, dict):
        return part
    made = {key: renamed(each, inside=key) for key, each in part.items()}
    if inside in ("devices", "pool", "metadata") and "name" in part:
        made["name"] = f"z-{part['name']}"
    for key in ("pool", "device"):
        if isinstance(part.get(key), str):
            made[key] = f"z-{part[key]}"
    return made


def with_other_names(case: dict[str, Any]) -> dict[str, Any]:
    used = ("slices", "allocatedDevices", "allocatedSharedDevices", "allocatedCapacity")
    return {key: renamed(part) if key in used else part for key, part in case.items()}


def family(case: dict[str, Any], chance: Random) -> list[dict[str, Any]]:
    """The case, and cases that differ from it in one part; all of the same features."""
    question = {key: part for key, part in case.items() if key != "name"}
    parts = [
        each
        for each in islice(reduced(question, KEPT), 2000)
        if each.get("features") == question.get("features")
    ]
    return [question, *chance.sample(parts, min(FAMILY, len(parts)))]


@pytest.mark.parametrize("start", range(0, FAMILIES, 100))
def test_remembering_changes_no_verdict(start: int) -> None:
    """Cases that differ in one part, and in names, have the same verdicts together and alone."""
    count: Counter[str] = Counter()
    for case in cases(3, 100, start=start):
        memory = Kept()
        for each in family(case, Random(case["name"])):
            verdict = our_verdict(each)
            assert our_verdict(each, memory) == verdict, case["name"]
            kept = memory.count["kept"]
            other = with_other_names(each)
            assert our_verdict(other, memory) == our_verdict(other), case["name"]
            # Only an error is one of certain names.
            assert verdict.error or memory.count["kept"] == kept, case["name"]
        count.update(memory.count)

    assert count["kept"] > 100
    assert count["known"] >= count["kept"]
