"""`allocate` and `explain` on nodes of the catalogue, without ResourceSlices in the files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml
from tests.cli.command import dryrack

import dryrack as library

if TYPE_CHECKING:
    from pathlib import Path

INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def claim(name: str, count: int = 8, device_class: str = "gpu.nvidia.com") -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class, "count": count}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }


def node(name: str, type_: str, **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": {INSTANCE_TYPE: type_}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def written(folder: Path, *objects: dict[str, Any]) -> Path:
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return file


def test_instance_type_adds_nodes_with_devices_and_classes(tmp_path: Path) -> None:
    """A file with claims alone is tried on as many machines of the type as are wanted."""
    file = written(tmp_path, *(claim(f"c{number}") for number in range(3)))
    done = dryrack(
        "allocate", "-f", file, "--instance-type", "p5.48xlarge", "--nodes", "2", "-o", "json"
    )
    answer = json.loads(done.stdout)

    assert [(each["claim"], each["node"]) for each in answer["allocations"]] == [
        ("default/c0", "node-1"),
        ("default/c1", "node-2"),
    ]
    assert [each["claim"] for each in answer["unsatisfied"]] == ["default/c2"]
    assert done.returncode == 1


def test_added_nodes_take_names_that_are_free(tmp_path: Path) -> None:
    """A Node of the files keeps its name and is no machine of the type."""
    other = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
    file = written(tmp_path, other, claim("c"))
    done = dryrack("allocate", "-f", file, "--instance-type", "p5.48xlarge", "-o", "json")

    assert [each["node"] for each in json.loads(done.stdout)["allocations"]] == ["node-2"]


def test_nodes_with_an_instance_type_get_the_devices_of_the_catalogue(tmp_path: Path) -> None:
    """If the files have no slices, the label is enough, and a note says so."""
    file = written(tmp_path, node("a", "g6.xlarge"), claim("c", count=1))
    done = dryrack("allocate", "-f", file)

    assert "default/c   a      gpu       gpu.nvidia.com/a/gpu-0" in done.stdout
    assert (
        "no ResourceSlices found; nodes of instance type g6.xlarge get the devices of the hardware "
        "catalog: a" in done.stderr
    )
    assert done.returncode == 0


def test_slices_of_the_files_say_which_devices_there_are(tmp_path: Path) -> None:
    """A dump with slices is taken as it is; nodes of it get nothing from the catalogue."""
    slices = yaml.safe_load(
        dryrack("hardware", "show", "g6.xlarge", "--node", "b", "-o", "yaml").stdout
    )
    classes = yaml.safe_load(dryrack("hardware", "classes").stdout)
    both = (node("a", "g6.xlarge"), node("b", "g6.xlarge"))
    file = written(tmp_path, *both, slices, classes, claim("c", count=1), claim("d", count=1))
    answer = json.loads(dryrack("allocate", "-f", file, "-o", "json").stdout)

    assert [each["node"] for each in answer["allocations"]] == ["b"]
    assert len(answer["unsatisfied"]) == 1


def test_a_node_with_a_device_plugin_gets_no_devices_of_the_catalogue(tmp_path: Path) -> None:
    """GPUs that a device plugin offers are not offered a second time as devices."""
    file = written(
        tmp_path,
        node("a", "g6.xlarge", allocatable={"nvidia.com/gpu": "1"}),
        claim("c", count=1),
    )
    done = dryrack("allocate", "-f", file)

    assert done.returncode == 1
    assert (
        "nodes with nvidia.com/gpu of a device plugin get no devices of the hardware catalog: a"
        in done.stderr
    )


def test_explain_takes_the_same_options(tmp_path: Path) -> None:
    """explain gives the same result as allocate, for the same nodes."""
    file = written(tmp_path, claim("fits"), claim("large", count=9))
    words = ("-f", file, "--instance-type", "p5.48xlarge", "--nodes", "3")
    fits = dryrack("explain", "claim", "fits", *words)
    large = dryrack("explain", "claim", "large", *words)

    assert (fits.returncode, large.returncode) == (0, 1)
    assert "default/fits fits on node node-1" in fits.stdout
    assert "lower the count of request gpu from 9 to 8" in large.stdout


def test_wrong_options_say_what_to_write(tmp_path: Path) -> None:
    """Each mistake in the options is one line and exit code 2."""
    file = written(tmp_path, claim("c"))
    tried = {
        ("allocate", "-f", str(file), "--nodes", "3"): "needs --instance-type",
        ("allocate", "-f", str(file), "--instance-type", "p5.48xlrge"): "'p5.48xlarge'",
        ("allocate", "-f", str(file), "--instance-type", "h100"): "a device model, not an",
        ("allocate", "-f", str(file), "--instance-type", "p5.48xlarge", "--nodes", "0"): "from 1",
        ("explain", "claim", "c", "--instance-type", "p5.48xlarge"): "with -f FILE",
    }
    for words, expected in tried.items():
        done = dryrack(*words)
        assert (done.returncode, expected in done.stderr) == (2, True), (words, done.stderr)


def test_types_of_your_own_work_as_those_of_the_catalogue(tmp_path: Path) -> None:
    """--catalogue-file adds types for --instance-type and for Nodes."""
    own = tmp_path / "own.yaml"
    entry = {
        "names": ["rack.large"],
        "devices": [{"model": "l4", "each": {"pci": ["0000:01:00.0"]}}],
    }
    own.write_text(
        yaml.safe_dump(
            {"apiVersion": "dryrack.dev/v1alpha1", "kind": "Catalogue", "instanceTypes": [entry]}
        )
    )
    file = written(tmp_path, node("a", "rack.large"), claim("c", 1), claim("d", 1))
    words = ("allocate", "-f", file, "--catalogue-file", own)

    assert dryrack(*words).returncode == 1
    assert dryrack(*words, "--instance-type", "rack.large").returncode == 0


def test_the_library_gives_nodes_their_devices_too() -> None:
    """Files and the library give one answer."""
    answer = library.allocate([node("a", "g6.xlarge"), claim("c", count=1)])

    assert [(each.claim, each.node) for each in answer.given] == [("default/c", "a")]


def test_four_hundred_machines_are_a_matter_of_seconds(tmp_path: Path) -> None:
    """A fleet takes time in proportion to its size: the command ends within its usual limit."""
    file = written(tmp_path, *(claim(f"c{number}") for number in range(400)))
    done = dryrack(
        "allocate", "-f", file, "--instance-type", "p5.48xlarge", "--nodes", "400", "-o", "name"
    )

    assert (done.returncode, len(done.stdout.splitlines())) == (0, 400)
