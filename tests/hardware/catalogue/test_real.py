"""Kubernetes itself on the catalogue: its API server, and its allocator."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.allocation.builders import node
from tests.hardware.catalogue.mixes import PROFILES, frontier, one_card, wanting
from tests.hardware.catalogue.packaged import NODE, catalogue, classes, slices_on
from tests.oracle.differential import compare, report

from dryrack.kinds.decode import to_builtins

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle.oracles import AllocatorAnswer, Oracle
    from tests.realcluster.controlplane import ControlPlane

    from dryrack.hardware.catalogue import InstanceType


@pytest.mark.real
@pytest.mark.timeout(600)
def test_a_real_server_takes_the_slices_of_every_machine(real_plane: ControlPlane) -> None:
    """All that nodes of all types publish, whole and partitioned, without a word against it."""
    every = {"apiVersion": "v1", "kind": "List", "items": list(_slices())}
    try:
        done = real_plane.kubectl("create", "-f", "-", stdin=json.dumps(every))

        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count(" created") == len(every["items"])
    finally:
        real_plane.kubectl("delete", "resourceslices", "--all", "--wait=false")


def _slices() -> Iterator[dict[str, Any]]:
    machines = {_furnishing(each): each for each in catalogue().instance_types.values()}
    for number, machine in enumerate(machines.values()):
        for cards in machine.cards:
            for each in slices_on(machine, cards, f"node-{number}-{cards.name.lower()}"):
                yield to_builtins(each)


def _furnishing(machine: InstanceType) -> str:
    """Return the devices of an instance type; types of one family may publish the same."""
    return repr(
        [
            (fitting.model.name, [{**slot, "type": ""} for slot in fitting.slots])
            for fitting in machine.fittings
        ]
    )


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.parametrize("model", PROFILES)
def test_kubernetes_allocates_the_same_mixes(
    real_allocator: Oracle[AllocatorAnswer], model: str
) -> None:
    """The result is the same for every maximal mix, with the same devices."""
    cases = [
        {
            "name": f"{model} {mix}",
            "features": ["PartitionableDevices"],
            "classes": [to_builtins(each) for each in classes()],
            "slices": [to_builtins(each) for each in one_card(model)],
            "claims": [to_builtins(wanting(model, mix))],
            "node": to_builtins(node(NODE)),
            "timeoutSeconds": 5.0,
        }
        for mix in frontier()
    ]
    tally = compare(real_allocator, cases)

    assert "\n".join(report(real_allocator, found) for found in tally.differences) == ""
    assert tally.compared > 0.8 * len(cases), str(tally)
    assert 0 < tally.allocated < tally.compared, str(tally)
