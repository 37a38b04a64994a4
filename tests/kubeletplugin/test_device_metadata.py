"""Files in containers that list their devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kubeletplugin.nodes import NODE, bench, metadata_objects

from dryrack.kubeletplugin.kinds.fake import DRIVER, uuid_of

if TYPE_CHECKING:
    from tests.kubeletplugin.nodes import Bench

    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import ClaimReference, NodePlugin

INSIDE = "/var/run/kubernetes.io/dra-device-attributes"


def described(directory: Path) -> tuple[Bench, NodePlugin]:
    """A node whose plugin writes such files."""
    world = bench(directory)
    world.writes_metadata = True
    plugin = world.plugin()
    plugin.recover()
    return world, plugin


def mount_of(world: Bench, claim: ClaimReference) -> Raw:
    spec = json.loads((world.cdi / f"{DRIVER}_metadata_{claim.uid}_req.json").read_text())
    [device] = spec["devices"]
    assert (spec["kind"], device["name"]) == (f"{DRIVER}/metadata", f"{claim.uid}_req")
    [mount] = device["containerEdits"]["mounts"]
    found: Raw = mount
    return found


async def test_a_container_can_read_which_devices_a_request_was_given(tmp_path: Path) -> None:
    """The file has names and attributes; its CDI device comes with the first device alone."""
    world, plugin = described(tmp_path)
    claim = await world.claim("mine", ["fake-0", "fake-1"])
    answer = (await plugin.prepare([claim]))[claim.uid]
    assert isinstance(answer, tuple)
    mount = mount_of(world, claim)
    document, older = metadata_objects(Path(mount["hostPath"]))
    [request] = document["requests"]

    assert [len(device.cdi_ids) for device in answer] == [2, 1]
    assert answer[0].cdi_ids[1] == f"{DRIVER}/metadata={claim.uid}_req"
    assert mount["hostPath"] == str(
        world.plugin_directory / "dra-device-metadata/default_mine/req/metadata.json"
    )
    assert mount["containerPath"] == f"{INSIDE}/resourceclaims/mine/req/{DRIVER}-metadata.json"
    assert mount["options"] == ["ro", "bind"]
    assert (document["apiVersion"], document["kind"]) == (
        "metadata.resource.k8s.io/v1beta1",
        "DeviceMetadata",
    )
    assert older == document | {"apiVersion": "metadata.resource.k8s.io/v1alpha1"}
    assert document["metadata"]["uid"] == claim.uid
    assert request["name"] == "req"
    assert [(each["pool"], each["name"]) for each in request["devices"]] == [
        (NODE, "fake-0"),
        (NODE, "fake-1"),
    ]
    assert request["devices"][0]["attributes"]["uuid"] == {"string": uuid_of(NODE, "fake-0")}


async def test_a_claim_from_a_template_is_found_by_its_name_in_the_pod(tmp_path: Path) -> None:
    """An annotation with an invalid name does not change the path."""
    world, plugin = described(tmp_path)
    key = "resource.kubernetes.io/pod-claim-name"
    of_pod = await world.claim("pod0-one-x7c2", ["fake-0"], annotations={key: "one"})
    hostile = await world.claim("two", ["fake-1"], annotations={key: "../../../../etc"})
    await plugin.prepare([of_pod, hostile])

    assert mount_of(world, of_pod)["containerPath"] == (
        f"{INSIDE}/resourceclaimtemplates/one/req/{DRIVER}-metadata.json"
    )
    assert mount_of(world, hostile)["containerPath"] == (
        f"{INSIDE}/resourceclaims/two/req/{DRIVER}-metadata.json"
    )


async def test_without_the_option_there_are_no_such_files(tmp_path: Path) -> None:
    """And those of an earlier process that had it stay until their claims end."""
    world, plugin = described(tmp_path)
    old = await world.claim("old", ["fake-0"])
    new = await world.claim("new", ["fake-1"])
    await plugin.prepare([old])
    world.writes_metadata = False
    again = world.plugin()
    again.recover()
    await again.prepare([old, new])
    names = {path.name for path in world.cdi.iterdir()}
    await again.unprepare([old, new])

    assert f"{DRIVER}_metadata_{old.uid}_req.json" in names
    assert f"{DRIVER}_metadata_{new.uid}_req.json" not in names
    assert list(world.cdi.iterdir()) == []
    assert list((world.plugin_directory / "dra-device-metadata").iterdir()) == []
