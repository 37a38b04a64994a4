"""
The ConfigMap controller of Karpenter's driver: what its tests check, under the names they have.

`configmap_test.go` (GetConfig, Constructor) and `configmap_integration_test.go`; the documents are
those of its README.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.controllers.slices.reading import CONFIG_MAP, NAMESPACE, Stage, config, play
from tests.controllers.slices.whole import Cluster, played
from tests.hardware.dialects.examples import seed_text

from dryrack.client.endpoints import CONFIG_MAPS
from dryrack.controllers.slices import PublisherSettings
from dryrack.controllers.slices.current_inventory import CurrentInventory
from dryrack.hardware.inventory import Inventory

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

GPU = seed_text("config-gpu.yaml")


def config_map(text: str) -> Raw:
    return {
        "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE},
        "data": {"config.yaml": text},
    }


def test_should_return_nil_when_no_configuration_is_loaded() -> None:
    """An inventory that was never set is unknown, and not empty."""
    assert CurrentInventory().inventory is None


def test_should_return_current_configuration_after_setting() -> None:
    """A set inventory is returned, and all listeners are called."""
    current = CurrentInventory()
    heard = list[Inventory | None]()
    current.listen(lambda: heard.append(current.inventory))
    for inventory in (Inventory(), Inventory(instance_types={})):
        current.replace(inventory)
        assert current.inventory is inventory

    assert heard == [Inventory(), Inventory(instance_types={})]
    assert current.known.is_set()


def test_should_create_controller_with_correct_parameters() -> None:
    """By default Karpenter's ConfigMap in Karpenter's namespace is read."""
    options = PublisherSettings()
    assert (options.namespace, options.config_map, options.key) == (
        "karpenter",
        "dra-kwok-configmap",
        "config.yaml",
    )

    async def scene(stage: Stage) -> None:
        assert dict(stage.sources.statuses) == {}
        assert stage.devices == []
        await stage.put(config())
        assert [source.name for source in stage.sources.statuses] == ["dra-kwok-configmap"]

    play(scene)


def test_should_create_and_read_config_map_successfully() -> None:
    """The document as it is written is taken, and its device is on the node that matches."""

    async def scene(cluster: Cluster) -> None:
        await cluster.at.client.create(CONFIG_MAPS, config_map(GPU))
        stored = await cluster.at.client.get(CONFIG_MAPS, CONFIG_MAP, NAMESPACE)
        assert stored["data"]["config.yaml"] == GPU
        (only,) = await cluster.slices()
        assert only["spec"]["driver"] == "karpenter.sh.dra-kwok-driver"
        assert only["spec"]["nodeName"] == "node-a"
        (device,) = only["spec"]["devices"]
        assert device["name"] == "nvidia-t4-0"
        assert device["attributes"]["type"] == {"string": "nvidia-tesla-t4"}

    played(scene)


def test_should_update_config_map_configuration() -> None:
    """A change is published without waiting for any clock; a bad one changes nothing."""

    async def scene(cluster: Cluster) -> None:
        created = await cluster.at.client.create(CONFIG_MAPS, config_map(GPU))
        began = cluster.at.clock.now()
        assert await cluster.devices() == ["nvidia-t4-0"]
        changed = GPU.replace("nvidia-t4-0", "nvidia-t4-1").replace("2560", "2561")
        data = {"config.yaml": changed}
        updated = await cluster.at.client.update(CONFIG_MAPS, created | {"data": data})
        assert await cluster.devices() == ["nvidia-t4-1"]
        data = {"config.yaml": changed.replace("operator: In", "operator: Inn")}
        await cluster.at.client.update(CONFIG_MAPS, updated | {"data": data})
        assert await cluster.devices() == ["nvidia-t4-1"]
        assert cluster.at.clock.now() == began

    played(scene)


def test_should_handle_config_map_deletion() -> None:
    """Slices of a deleted ConfigMap are deleted."""

    async def scene(cluster: Cluster) -> None:
        await cluster.at.client.create(CONFIG_MAPS, config_map(GPU))
        assert await cluster.devices() == ["nvidia-t4-0"]
        await cluster.at.client.delete(CONFIG_MAPS, CONFIG_MAP, namespace=NAMESPACE)
        assert await cluster.slices() == []

    played(scene)
