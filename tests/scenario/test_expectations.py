"""Expectations held against a cluster that stands still: what is lacking, in words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import pytest

from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, SLICES
from dryrack.scenario.expectations import describe, find_failures
from dryrack.scenario.model import Expectation
from dryrack.scenario.references import Reference, fit_all, values_at
from dryrack.scenario.world import ClusterReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw


def slice_of(node: str, *devices: str, **where: Any) -> Raw:
    spec: Raw = {
        "driver": "gpu.example.com",
        "pool": {"name": node or "shared", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name} for name in devices],
        **(where or {"nodeName": node}),
    }
    return {"kind": "ResourceSlice", "metadata": {"name": f"{node}-slice"}, "spec": spec}


def pod(name: str, node: str = "") -> Raw:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"example.com/app": "x"}},
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        "status": {
            "phase": "Running" if node else "Pending",
            "conditions": [{"type": "Ready", "status": "True" if node else "False"}],
        },
    }


def claim(user: str, *devices: str) -> Raw:
    results = [
        dict(zip(("driver", "pool", "device"), device.split("/"), strict=True))
        for device in devices
    ]
    return {
        "metadata": {"name": f"{user}-claim", "namespace": "default"},
        "status": {
            "reservedFor": [{"resource": "pods", "name": user}],
            "allocation": {"devices": {"results": results}},
        },
    }


class FixedCluster(ClusterReader):
    """A cluster with these objects."""

    def __init__(self) -> None:
        pass

    lists: ClassVar[dict[Endpoint, Sequence[Raw]]] = {
        NODES: [{"kind": "Node", "metadata": {"name": name}} for name in ("n1", "n2")],
        SLICES: [slice_of("n1", "gpu-0", "gpu-1"), slice_of("", "disk-0", allNodes=True)],
        CLAIMS: [claim("a", "gpu.example.com/n1/gpu-0")],
        PODS: [pod("a", "n1"), pod("b")],
        EVENTS: [
            {
                "involvedObject": {"kind": "Pod", "name": "b", "namespace": "default"},
                "reason": "FailedScheduling",
                "message": "0/2 nodes are available",
            }
        ],
    }

    async def endpoint(self, reference: Reference) -> Endpoint | None:
        return next((each for each in self.lists if reference.names_kind(each)), None)

    async def list(self, endpoint: Endpoint) -> Sequence[Raw]:
        return self.lists[endpoint]

    async def log(self, pod: Raw, container: str) -> str:
        return f"env: NAME={pod['metadata']['name']}\nenv: CONTAINER={container}\n"


def told(raw: Raw) -> list[str]:
    return asyncio.run(find_failures(msgspec.convert(raw, Expectation), FixedCluster()))


@pytest.mark.parametrize(
    "so",
    [
        {"object": "Pod/a", "fields": {"status.phase": "Running", "spec.nodeName": "n*"}},
        {"object": "Pod/default/*", "count": 2},
        {"object": "Pod/*", "count": 1, "fields": {"status.phase": "Pending"}},
        {"object": "Pod/a", "fields": {"status.conditions[type=Ready].status": "True"}},
        {"object": "Pod/a", "fields": {'metadata.labels["example.com/app"]': "x"}},
        {"object": "Pod/a", "fields": {"metadata.deletionTimestamp": None}},
        {"object": "Node/n1"},
        {"object": "Pod/none", "count": 0},
        {"devices": {"Pod/a": ["gpu.example.com/*/gpu-0"], "Pod/b": []}},
        {"published": {"n1": {"gpu.example.com": 2}, "n2": {}}},
        {"published": {"n1": ["*/gpu-1", "*/gpu-0"], "all nodes": ["*/disk-0"]}},
        {"log": {"of": "Pod/a", "container": "main", "has": ["NAME=a", "CONTAINER=m*"]}},
        {"event": {"of": "Pod/b", "reason": "Failed*", "says": "0/2 nodes"}},
        {"gone": "Pod/none"},
    ],
    ids=lambda raw: next(iter(raw)),
)
def test_what_is_so_lacks_nothing(so: Raw) -> None:
    """Names and values may be patterns; what is not mentioned does not matter."""
    assert told(so) == []


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (
            {"object": "Pod/b", "fields": {"status.phase": "Running"}},
            "Pod/default/b: status.phase is Pending, not Running",
        ),
        (
            {"object": "Pod/*", "fields": {"spec.nodeName": None}},
            "Pod/default/a: spec.nodeName is n1, not absent",
        ),
        (
            {"object": "Pod/a", "fields": {"spec.priority": 3}},
            "Pod/default/a: spec.priority is absent, not 3",
        ),
        ({"object": "Pod/c"}, "Pod/c: not found"),
        ({"object": "Wurst/c"}, "Wurst/c: not found"),
        ({"object": "Pod/*", "count": 3}, "Pod/*: 2, not 3"),
        ({"devices": {"Pod/a": []}}, "Pod/default/a has gpu.example.com/n1/gpu-0, not nothing"),
        ({"devices": {"Pod/c": []}}, "Pod/c: not found"),
        ({"devices": {"Pod/b": ["*"]}}, "Pod/default/b has nothing, not *"),
        (
            {"published": {"n1": {"gpu.example.com": 3}}},
            "n1 has 2 of gpu.example.com, not 3 of gpu.example.com",
        ),
        ({"published": {"n2": ["x/y/z"]}}, "n2 has nothing, not x/y/z"),
        (
            {"published": {"all nodes": []}},
            "all nodes has gpu.example.com/shared/disk-0, not nothing",
        ),
        (
            {"log": {"of": "Pod/a", "has": ["NAME=b"]}},
            "log of Pod/default/a main: no line has 'NAME=b'",
        ),
        (
            {"event": {"of": "Pod/b", "says": "right"}},
            ("Pod/b: no event * 'right'; found: FailedScheduling: 0/2 nodes are available"),
        ),
        ({"event": {"of": "Pod/a"}}, "Pod/a: no event *; found: none"),
        ({"gone": "Pod/a"}, "Pod/default/a exists"),
    ],
)
def test_what_is_not_so_is_told(wrong: Raw, complaint: str) -> None:
    """Each thing that differs, with what is there and what must be."""
    assert told(wrong)[0] == complaint


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ({"gone": "Pod/*"}, 3),
        ({"object": "Pod/*", "count": 9, "fields": {"spec.nodeName": "x"}}, 4),
    ],
)
def test_what_is_left_out_is_counted(
    monkeypatch: pytest.MonkeyPatch, wrong: Raw, shown: int
) -> None:
    """The first few differences are shown, and the number of the others."""
    pods = [pod(f"p{number}", "n1") for number in range(5)]
    monkeypatch.setitem(FixedCluster.lists, PODS, pods)
    assert told(wrong)[shown:] == ["and 2 more"]


def test_events_that_are_left_out_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message shows the first few other events, and the number of the rest."""
    [first] = FixedCluster.lists[EVENTS]
    events = [{**first, "message": str(number)} for number in range(5)]
    monkeypatch.setitem(FixedCluster.lists, EVENTS, events)
    assert told({"event": {"of": "Pod/b", "says": "right"}})[0].endswith("; and 2 more")


def test_an_expectation_is_described_in_words() -> None:
    """As reports and JUnit show it."""
    raw = {"object": "Pod/*", "count": 2, "fields": {"status.phase": "Running"}, "lasting": "10s"}

    assert describe(msgspec.convert(raw, Expectation)) == "2 × Pod/*: status.phase Running, for 10s"


@pytest.mark.parametrize(
    ("found", "wanted", "fits"),
    [
        (["a-1", "a-2"], ["a-*", "a-1"], True),
        (["a-1", "b-2"], ["*", "a-*"], True),
        (["a-1", "a-2"], ["a-1", "a-1"], False),
        (["a-1"], [], False),
    ],
)
def test_each_device_has_a_pattern_of_its_own(
    found: list[str], wanted: list[str], fits: bool
) -> None:
    """Whatever the order: a pattern that fits two is given to the one that needs it."""
    assert fit_all(found, wanted) is fits


def test_a_path_leads_through_lists() -> None:
    """By number, by a field of the item, or to all of them."""
    obj = {"a": [{"type": "x", "n": 1}, {"type": "y", "n": 2}]}

    assert values_at(obj, "a[1].n") == [2]
    assert values_at(obj, "a[type=x].n") == [1]
    assert values_at(obj, "a[*].n") == [1, 2]
    assert values_at(obj, "a[7].n") == []
