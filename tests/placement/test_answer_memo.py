"""Answers that are remembered change nothing but the time it takes."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.allocation.builders import Counting

from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.documents import Document
from dryrack.kinds.text.source_positions import Tree, spot
from dryrack.placement import Settings, World, explain_claim, what_if
from dryrack.placement.whatif import answer_memo as module
from dryrack.placement.whatif.answer_memo import Memory, RememberedRefusal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dryrack.placement.whatif.answer_memo import Key

V1 = "resource.k8s.io/v1"
NODES = 6
WORLDS = 120


class Forgetful(Memory):
    """Is asked, and never knows; to it everything is new."""

    def __init__(self) -> None:
        super().__init__()
        self._next = count()

    def answer(self, key: Key) -> RememberedRefusal | None:
        return None

    def number(self, value: Hashable) -> int:
        return next(self._next)


def typed_object(raw: dict[str, Any]) -> Any:
    found = typed(Document("f", raw, Tree(spot(1, 1))))
    assert isinstance(found, Typed), found
    return found.object


def device(chance: Random, name: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": name,
        "attributes": {
            "numa": {"int": chance.randrange(2)},
            "big": {"bool": chance.random() < 0.5},
        },
        "capacity": {"memory": {"value": f"{chance.choice((10, 20))}Gi"}},
    }
    if chance.random() < 0.3:
        made["allowMultipleAllocations"] = True
    if chance.random() < 0.1:
        made["taints"] = [{"key": "sick", "effect": "NoSchedule"}]
    if chance.random() < 0.05:
        del made["attributes"]["big"]
    return made


def slices(chance: Random) -> list[dict[str, Any]]:
    places: list[dict[str, Any]] = [{"nodeName": f"n{n}"} for n in range(NODES)]
    places += [{"allNodes": True}] if chance.random() < 0.3 else []
    return [
        {
            "apiVersion": V1,
            "kind": "ResourceSlice",
            "metadata": {"name": f"s{number}"},
            "spec": {
                "driver": "d",
                "pool": {
                    # A pool that several nodes share, now and then.
                    "name": "shared" if chance.random() < 0.1 else f"p{number}",
                    "generation": 1,
                    "resourceSliceCount": 2 if chance.random() < 0.1 else 1,
                },
                **place,
                "devices": [device(chance, f"d{number}-{n}") for n in range(chance.randint(0, 4))],
            },
        }
        for number, place in enumerate(places)
    ]


def spec(chance: Random) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": "c", "count": chance.randint(1, 3)}
    if chance.random() < 0.2:
        exactly = {"deviceClassName": "c", "allocationMode": "All"}
    if chance.random() < 0.4:
        exactly["selectors"] = [{"cel": {"expression": "device.attributes['d'].big"}}]
    if chance.random() < 0.3:
        exactly["capacity"] = {"requests": {"memory": "6Gi"}}
    devices: dict[str, Any] = {"requests": [{"name": "r", "exactly": exactly}]}
    if chance.random() < 0.3:
        devices["constraints"] = [{"matchAttribute": "d/numa"}]
    return {"devices": devices}


def pod(chance: Random, number: int, templates: int) -> dict[str, Any]:
    names = [f"t{chance.randrange(templates)}" for _ in range(chance.randint(1, 2))]
    made: dict[str, Any] = {
        "resourceClaims": [
            {"name": f"c{n}", "resourceClaimTemplateName": name} for n, name in enumerate(names)
        ],
        "containers": [{"name": "c", "image": "i"}],
    }
    if chance.random() < 0.3:
        made["nodeSelector"] = {"odd": "true"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod{number}"}, "spec": made}


def world(seed: int) -> World:
    """A few templates, and many who ask for the same."""
    chance = Random(seed)
    templates = [spec(chance) for _ in range(chance.randint(1, 3))]
    raw: list[dict[str, Any]] = [
        {"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
        *slices(chance),
    ]
    for n in range(NODES):
        labels = {"odd": "true"} if n % 2 else {}
        metadata = {"name": f"n{n}", "labels": labels}
        raw.append({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    for n, each in enumerate(templates):
        metadata = {"name": f"t{n}"}
        kind = {"apiVersion": V1, "kind": "ResourceClaimTemplate"}
        raw.append({**kind, "metadata": metadata, "spec": {"spec": each}})
    for n in range(12):
        if chance.random() < 0.5:
            raw.append(pod(chance, n, len(templates)))
        else:
            metadata = {"name": f"loose{n}"}
            kind = {"apiVersion": V1, "kind": "ResourceClaim"}
            raw.append({**kind, "metadata": metadata, "spec": chance.choice(templates)})
    return World.of(typed_object(each) for each in raw)


def without_shares(document: Any) -> Any:
    """The document without the names of shares, which are drawn by lot."""
    if isinstance(document, dict):
        return {key: without_shares(each) for key, each in document.items() if key != "shareID"}
    return [without_shares(each) for each in document] if isinstance(document, list) else document


def document(seed: int, memory: Memory | None) -> Any:
    settings = Settings(chance=Counting(), memory=memory)
    return without_shares(what_if(world(seed), settings).document())


@pytest.mark.parametrize("seed", range(WORLDS))
def test_remembering_changes_no_answer(seed: int) -> None:
    """Devices, refusals and reasons are those of asking every node anew."""
    assert document(seed, None) == document(seed, Forgetful())


def test_the_worlds_have_something_to_remember() -> None:
    """In the worlds above there are those who get devices, and many who are refused alike."""
    refused = [each for seed in range(20) for each in document(seed, None)["unsatisfied"]]
    given = [each for seed in range(20) for each in document(seed, None)["allocations"]]

    assert len(refused) > 40
    assert len(given) > 40


@pytest.mark.parametrize("seed", range(0, WORLDS, 12))
def test_explaining_one_claim_tells_what_everybody_is_told(seed: int) -> None:
    """A claim that is explained alone has the reasons that it has among all."""
    whole = what_if(world(seed), Settings(chance=Counting()))
    for refused in whole.refused[:3]:
        story = explain_claim(world(seed), refused.claim, Settings(chance=Counting()))
        nodes = {name for each in story.nodes for name in (each.node, *each.alike)}

        assert nodes == {refusal.node for refusal in refused.nodes}


def test_reasons_are_those_of_the_claim_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that is refused like another has the reasons under its own name."""
    refused = what_if(world(0), Settings(chance=Counting())).refused

    assert all(
        reason.claim == each.claim
        for each in refused
        for node in each.nodes
        for reason in node.reasons
    )

    monkeypatch.setattr(module, "ANSWERS_MAX", 2)
    assert document(0, None) == document(0, Forgetful())
