"""
Devices that are drawn: a share gets any device of its node with enough left, each equally likely.

The allocator takes the first device that fits. A Pod gets another one if its claim selects it: the
drawn device is one more selector of the claim, and the decider places the Pod on its node again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dryrack.allocation import WHOLE
from dryrack.base.draws import Draws
from dryrack.kinds.resource import CELDeviceSelector, DeviceSelector
from dryrack.placement import Placed, place_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.resource import Device, ResourceClaim
    from dryrack.placement import Cluster, NodeState, Profile
    from dryrack.simulation.policies.devices import DeviceSight
    from dryrack.simulation.workload import Shape


class DeviceDraw:
    """Draws the devices of Pods that request a share of one device."""

    def __init__(self, sight: DeviceSight, seed: int) -> None:
        self._sight = sight
        self._draws = Draws(seed, "devices")
        # By shape and expression: the claim that selects a device.
        self._claims: dict[tuple[Shape, str], ResourceClaim] = {}

    def place(self, shape: Shape, first: Placed, cluster: Cluster, profile: Profile) -> Placed:
        """Return the placement on the same node with a drawn device; `first` if none is drawn."""
        node = cluster.fleet.get(first.node)
        assert node is not None, "the decider chose an existing node"
        expression = self._draw(node, shape, first)
        if not expression:
            return first
        claim = self._claims.get((shape, expression))
        if claim is None:
            claim = self._claims[shape, expression] = _select_device(shape.claims[0], expression)
        drawn = place_on(node.name, shape.pod, (claim,), (), cluster, profile=profile)
        return drawn if isinstance(drawn, Placed) else first

    def _draw(self, node: NodeState, shape: Shape, first: Placed) -> str:
        """Return the selector of a device that is drawn; empty if there is no choice."""
        needs = self._sight.ask(node, shape.claims).needs
        if len(needs) != 1 or needs[0].number != 1:
            return ""
        left = self._sight.see(node).left
        # As published: whole devices are equal, so only shares are drawn.
        places = [at for at, milli in needs[0].milli if milli < WHOLE and left[at] >= milli]
        if len(places) < 2:
            return ""
        place = self._draws.choice(places)
        driver = first.allocations[0].devices.results[0].driver
        return _write_selector(self._sight.devices(node), place, driver)


def _write_selector(devices: Sequence[Device], place: int, driver: str) -> str:
    """Return an expression that only this device meets; empty if its attributes have none."""
    for name, attribute in devices[place].attributes.items():
        number = attribute.int_value
        if number is None or any(
            other.attributes.get(name) == attribute
            for at, other in enumerate(devices)
            if at != place
        ):
            continue
        domain, slash, identifier = name.rpartition("/")
        return f'device.attributes["{domain if slash else driver}"].{identifier} == {number}'
    return ""


def _select_device(claim: ResourceClaim, expression: str) -> ResourceClaim:
    """Return the claim whose only request also has this selector."""
    request = claim.spec.devices.requests[0]
    assert request.exactly is not None, "a claim of a trace has no alternatives"
    selectors = (
        *request.exactly.selectors,
        DeviceSelector(cel=CELDeviceSelector(expression=expression)),
    )
    request = replace(request, exactly=replace(request.exactly, selectors=selectors))
    devices = replace(claim.spec.devices, requests=(request,))
    return replace(claim, spec=replace(claim.spec, devices=devices))
