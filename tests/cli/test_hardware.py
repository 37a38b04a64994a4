"""`dryrack hardware`: the catalogue as people look things up in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack

from dryrack.kinds.decode import decode
from dryrack.kinds.resource import ResourceSlice
from dryrack.kinds.validation.device_rules import validate

if TYPE_CHECKING:
    from pathlib import Path

OWN = """\
apiVersion: dryrack.dev/v1alpha1
kind: Catalogue
instanceTypes:
- names: [rack]
  devices:
  - {model: l40s, each: {pci: ["0000:01:00.0", "0000:02:00.0"]}}
"""


def test_machines_with_a_model_are_listed() -> None:
    """One line for each, with all that it has."""
    done = dryrack("hardware", "list", "--model", "h200-141gb")
    lines = done.stdout.splitlines()

    assert done.returncode == 0
    assert lines[0].split() == ["NAME", "KIND", "VENDOR", "DEVICES"]
    assert lines[1] == (
        "p5e.48xlarge               type   AWS      8 × h200-141gb, 32 × efa, 2 × cpu-numa-node"
    )
    assert [line.split()[0] for line in lines[2:]] == [
        "p5en.48xlarge",
        "Standard_ND96isr_H200_v5",
        "a3-ultragpu-8g",
    ]


def test_a_vendor_is_a_maker_or_a_cloud() -> None:
    """The case of the letters does not matter."""
    maker = dryrack("hardware", "list", "--vendor", "amd", "-o", "name").stdout.split()
    cloud = dryrack("hardware", "list", "--vendor", "OCI", "-o", "name").stdout.split()

    assert {"type/f1.2xlarge", "type/Standard_ND96isr_MI300X_v5", "model/mi300x"} <= set(maker)
    assert cloud == ["type/BM.GPU.GB200-v3.4", "type/BM.GPU.H100.8"]


def test_the_list_is_data_for_programs() -> None:
    """JSON and YAML say the same, and name the sources."""
    words = ("hardware", "list", "--kind", "type", "--vendor", "Intel", "-o")
    as_json = json.loads(dryrack(*words, "json").stdout)
    as_yaml = yaml.safe_load(dryrack(*words, "yaml").stdout)

    assert as_json == as_yaml
    assert [each["name"] for each in as_json["instanceTypes"]] == ["dl1.24xlarge"]
    assert as_json["instanceTypes"][0]["devices"] == [
        {"model": "gaudi-hl-205", "driver": "gaudi.intel.com", "count": 8},
        {"model": "efa", "driver": "dra.net", "count": 4},
    ]
    assert as_json["instanceTypes"][0]["sources"]
    assert as_json["models"] == []


def test_a_wide_list_tells_drivers_and_notes() -> None:
    """The wide list shows assumptions in notes."""
    done = dryrack("hardware", "list", "--model", "v100-sxm2-32gb", "-o", "wide")

    assert "DRIVERS" in done.stdout
    assert "PCI addresses are assumed" in done.stdout


def test_a_machine_is_shown_with_all_that_its_devices_tell() -> None:
    """Attributes with their types, capacity, and sources."""
    shown = dryrack("hardware", "show", "g6.xlarge").stdout

    assert "g6.xlarge (AWS): 1 × l4" in shown
    assert "source: " in shown
    assert "gpu.nvidia.com: 1 device, gpu-0" in shown
    assert "cudaComputeCapability             version    8.9.0" in shown
    assert "memory                            capacity   23034Mi" in shown


@pytest.mark.parametrize("name", ["p4d.24xlarge", "p5.48xlarge", "a2-highgpu-8g"])
def test_partitions_are_shown_on_eighty_columns(name: str) -> None:
    """All but the sources, which are sentences."""
    lines = dryrack("hardware", "show", name, "--mig").stdout.splitlines()

    assert [line for line in lines if len(line) > 80 and not line.startswith("source: ")] == []


def test_classes_are_printed_for_kubectl() -> None:
    """As the drivers' charts install them."""
    found = yaml.safe_load(dryrack("hardware", "classes").stdout)
    by_name = {each["metadata"]["name"]: each for each in found["items"]}

    assert {each["kind"] for each in found["items"]} == {"DeviceClass"}
    assert by_name["gpu.nvidia.com"]["spec"]["extendedResourceName"] == "nvidia.com/gpu"
    assert "mig.nvidia.com" in dryrack("hardware", "classes", "-o", "table").stdout


def test_partitions_are_shown_by_profile() -> None:
    """The table has the number of partitions by size, the smallest first."""
    lines = dryrack("hardware", "show", "h200-141gb", "--mig").stdout.splitlines()
    [header] = [number for number, line in enumerate(lines) if line.startswith("PROFILE")]

    assert [line.split()[:2] for line in lines[header + 1 :]] == [
        ["1g.18gb", "7"],
        ["1g.18gb+me", "7"],
        ["1g.35gb", "4"],
        ["2g.35gb", "3"],
        ["3g.71gb", "2"],
        ["4g.71gb", "1"],
        ["7g.141gb", "1"],
    ]


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_slices_are_printed_as_a_publisher_writes_them(form: str) -> None:
    """Valid, complete, and of the node that was named."""
    done = dryrack("hardware", "show", "p5.48xlarge", "--mig", "--node", "rack-7", "-o", form)
    document = yaml.safe_load(done.stdout)
    slices = [decode(item, ResourceSlice) for item in document["items"]]
    gpus = [each for each in slices if each.spec.driver == "gpu.nvidia.com"]

    assert document["kind"] == "List"
    assert [problem for each in slices for problem in validate(each)] == []
    assert {each.spec.node_name for each in slices} == {"rack-7"}
    assert {each.spec.pool.resource_slice_count for each in gpus} == {len(gpus)}
    assert sum(len(each.spec.devices) for each in gpus) == 8 * 26
    assert sum(len(each.spec.shared_counters) for each in gpus) == 8


def test_slices_can_be_allocated_from_at_once(tmp_path: Path) -> None:
    """allocate reads the output of show."""
    (tmp_path / "node.yaml").write_text(
        dryrack("hardware", "show", "g5.12xlarge", "-o", "yaml").stdout
    )
    (tmp_path / "claim.yaml").write_text(
        """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  selectors:
  - cel:
      expression: >-
        device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: four, namespace: default}
spec:
  devices:
    requests:
    - name: gpus
      exactly: {deviceClassName: gpu.nvidia.com, count: 4}
"""
    )
    done = dryrack("allocate", "-f", "node.yaml", "-f", "claim.yaml", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "gpu.nvidia.com/node-1/gpu-3" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("show", "p5.48xlarg"),
            "'p5.48xlarg': not in the hardware catalog; did you mean 'p5.48xlarge'",
        ),
        (("show", "h100"), "did you mean 'h100-nvl-94gb' or 'h100-sxm5-80gb'?"),
        (("show", "model/p5.48xlarge"), "'model/p5.48xlarge': not in the hardware catalog"),
        (("show", "t4", "--mig"), "--mig: the catalog has no MIG profiles for t4; leave out --mig"),
        (("list", "--model", "h300"), "model 'h300': not in the hardware catalog; did you mean"),
        (
            ("list", "--vendor", "acme"),
            "--vendor 'acme': the catalog has no matching entry; use one of: AMD, AWS",
        ),
        (("list", "--catalogue-file", "no.yaml"), "no.yaml: no such file; check the path"),
    ],
)
def test_mistakes_are_answered_with_what_would_be_right(words: tuple[str, ...], said: str) -> None:
    """One line, and the exit code of a wrong call."""
    done = dryrack("hardware", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dryrack: ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_files_of_ones_own_are_looked_up_as_well(tmp_path: Path) -> None:
    """A rack that no cloud rents out is a machine like any other."""
    (tmp_path / "own.yaml").write_text(OWN)
    done = dryrack("hardware", "show", "rack", "--catalogue-file", "own.yaml", cwd=tmp_path)

    assert "2 × l40s" in done.stdout


def test_a_wrong_file_is_told_with_its_line(tmp_path: Path) -> None:
    """And the exit code of wrong content."""
    (tmp_path / "own.yaml").write_text(OWN.replace("l40s", "l40"))
    done = dryrack("hardware", "list", "--catalogue-file", "own.yaml", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr == (
        "dryrack: own.yaml:6: instance type rack: unknown model 'l40'; did you mean 'l40s'?\n"
    )
