"""The definitions of NodeOverlay and DRAConfig that come with dryrack."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.client.planes import site
from tests.controllers.slices.definitions import definitions
from tests.controllers.slices.reading import dra_config, overlay
from tests.golang import go_command

from dryrack.client.endpoints import DEFINITIONS, DRA_CONFIGS, NODE_OVERLAYS
from dryrack.client.errors import InvalidError
from dryrack.client.timekeeping import settle

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

KARPENTER = "sigs.k8s.io/karpenter@v1.13.0"
THEIRS = {
    "nodeoverlays.karpenter.sh": "pkg/apis/crds/karpenter.sh_nodeoverlays.yaml",
    "draconfigs.test.karpenter.sh": (
        "dra-kwok-driver/pkg/apis/crds/test.karpenter.sh_draconfigs.yaml"
    ),
}
# The overlay of Karpenter's design document, with two of its eight devices.
H100 = overlay(
    "gpu-dra-config",
    weight=10,
    requirements=[
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.48xlarge"]}
    ],
    capacity={"karpenter.sh.dra-kwok-driver/device": "8"},
    resourceSlices=[
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "spec": {
                "driver": "karpenter.sh.dra-kwok-driver",
                "devices": [
                    {
                        "name": f"nvidia-h100-{number}",
                        "driver": "karpenter.sh.dra-kwok-driver",
                        "attributes": {"memory": "80Gi", "compute-capability": "9.0"},
                    }
                    for number in range(2)
                ],
            },
        }
    ],
)


def tried(*objects: tuple[Any, Raw]) -> list[Raw | str]:
    """Return what a server with our definitions stores or answers for some objects."""

    async def run() -> list[Raw | str]:
        at = site()
        for each in definitions():
            await at.client.create(DEFINITIONS, each)
        await settle()
        found: list[Raw | str] = []
        for endpoint, obj in objects:
            try:
                found.append(await at.client.create(endpoint, obj))
            except InvalidError as error:
                found.append(str(error))
        return found

    return asyncio.run(run())


def test_what_people_write_is_kept() -> None:
    """An overlay with slices as the document writes them, and a DRAConfig, lose nothing."""
    config = dra_config("a")
    kept, other = tried((NODE_OVERLAYS, H100), (DRA_CONFIGS, config))

    assert isinstance(kept, dict)
    assert isinstance(other, dict)
    assert kept["spec"] == H100["spec"]
    assert other["spec"] == config["spec"]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"weight": 0}, "spec.weight"),
        ({"price": "1", "priceAdjustment": "+1"}, "cannot set both"),
        ({"capacity": {"cpu": "8"}}, "invalid resource restricted"),
        ({"requirements": [{"key": "a", "operator": "In"}]}, "In"),
        ({"requirements": [{"key": "a", "operator": "Like"}]}, "Unsupported value"),
        ({"requirements": [{"key": "karpenter.sh/x", "operator": "Exists"}]}, "is restricted"),
    ],
)
def test_wrong_overlays_are_refused(spec: Raw, text: str) -> None:
    """Our definition refuses what Karpenter's definition refuses."""
    (refused,) = tried((NODE_OVERLAYS, overlay("a", **spec)))

    assert isinstance(refused, str)
    assert text in refused


@pytest.mark.parametrize(
    "change",
    [{"driver": "Not/A.Name"}, {"driver": None}, {"pools": []}, {"pools": [{"name": "x"}]}],
)
def test_wrong_configs_are_refused(change: Raw) -> None:
    """A driver that is no name, no pools, or a pool without nodes and slices."""
    config = dra_config("a")
    spec = {key: value for key, value in (config["spec"] | change).items() if value is not None}
    (refused,) = tried((DRA_CONFIGS, config | {"spec": spec}))

    assert isinstance(refused, str)


@pytest.mark.real
def test_definitions_mean_the_same_as_karpenters(tmp_path: Path) -> None:
    """Word for word but for descriptions, and the one field that Karpenter's does not have."""
    for ours in definitions():
        theirs = yaml.safe_load(
            (_karpenter(tmp_path) / THEIRS[ours["metadata"]["name"]]).read_text()
        )
        del theirs["metadata"]["annotations"]
        schema = ours["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["properties"].pop("resourceSlices", None)

        assert _plain(ours) == _plain(theirs)


def _karpenter(directory: Path) -> Path:
    go = go_command()
    assert go is not None, "Go is needed to fetch Karpenter's module"
    command = [go, "mod", "download", "-json", KARPENTER]
    done = subprocess.run(command, cwd=directory, capture_output=True, check=True, timeout=600)
    return Path(json.loads(done.stdout)["Dir"])


def _plain(value: Any) -> Any:
    """Return a definition without descriptions, with sets in a fixed order."""
    if isinstance(value, dict):
        kept = {
            key: _plain(each)
            for key, each in value.items()
            if not (key == "description" and isinstance(each, str))
        }
        sets = {
            key: sorted(kept[key])
            for key in ("required", "enum")
            if isinstance(kept.get(key), list)
        }
        return kept | sets
    return [_plain(each) for each in value] if isinstance(value, list) else value
