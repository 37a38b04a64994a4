"""Every wrong configuration in turn, on a cluster where a right one is in force."""

from __future__ import annotations

from tests.controllers.slices.whole import Cluster, played
from tests.hardware.dialects.examples import BAD, seed_text

from dryrack.client.endpoints import CONFIG_MAPS, EVENTS
from dryrack.client.timekeeping import settle

# Those of other kinds of documents say so in their names.
TEXTS = {
    path.stem: path.read_text()
    for path in sorted(BAD.glob("*.yaml"))
    if path.stem.partition("-")[0] not in ("configmap", "draconfig", "overlay")
}


def test_the_old_slices_stay_whatever_is_wrong() -> None:
    """Invalid configurations change no slice, have an event each, and a valid one follows."""

    async def scene(cluster: Cluster) -> None:
        await cluster.put(seed_text("config-gpu.yaml"))
        before = await cluster.slices()
        assert len(before) == 1
        for name, text in TEXTS.items():
            await _configure(cluster, text)
            assert await cluster.slices() == before, name
        told = (await cluster.at.client.list(EVENTS)).items
        assert sum(each["reason"] == "InvalidConfig" for each in told) == len(TEXTS)
        await _configure(cluster, seed_text("config-gpu.yaml").replace("t4-0", "t4-1"))
        assert await cluster.devices() == ["nvidia-t4-1"]

    played(scene)


async def _configure(cluster: Cluster, text: str) -> None:
    patch = {"data": {"config.yaml": text}}
    await cluster.at.client.patch(CONFIG_MAPS, "dra-kwok-configmap", patch, namespace="karpenter")
    await settle(600)
