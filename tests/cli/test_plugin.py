"""`dryrack plugin`, as far as it goes without a kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "--devices is missing; name the devices of this node, for example fake:8"),
        (
            ("--devices", "tpu:8"),
            "--devices tpu: unknown device kind; use one of: catalogue, cpu, fake, file, gpu, net",
        ),
        (("--devices", "fake:8", "--node", "Node_1"), "--node 'Node_1': "),
        (("--print-rbac", "--nas-namespace", "a.b"), "--nas-namespace 'a.b': "),
        (("--devices", "fake:8", "--kubeconfig", "/nowhere"), 'kubeconfig "/nowhere" not found'),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_done(
    arguments: tuple[str, ...], complaint: str
) -> None:
    """The mistake and its remedy, and exit code 2 or 1; no traceback."""
    done = dryrack("plugin", *arguments)

    assert complaint in done.stderr
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr


def test_the_classes_of_a_machine_are_those_of_its_drivers() -> None:
    """A machine's cards, partitions and NICs are asked for as with the vendors' charts."""
    words = ("plugin", "--devices", "catalogue:p5.48xlarge", "--devices", "gpu", "--print-classes")
    names = {each["metadata"]["name"] for each in yaml.safe_load(dryrack(*words).stdout)["items"]}

    assert {"gpu.nvidia.com", "mig.nvidia.com", "rdma", "dra.cpu", "gpu.example.com"} <= names
    assert "gpu.amd.com" not in names


def test_classes_and_rights_can_be_applied_as_they_are_printed() -> None:
    """Both are manifests; the classes select the driver's devices."""
    classes = yaml.safe_load(dryrack("plugin", "--devices", "fake", "--print-classes").stdout)
    rights = list(yaml.safe_load_all(dryrack("plugin", "--print-rbac").stdout))
    selectors = [each["spec"]["selectors"][0]["cel"]["expression"] for each in classes["items"]]

    assert [each["metadata"]["name"] for each in classes["items"]] == ["fake.3-shake.com"]
    assert selectors == ["device.driver == 'fake.resource.3-shake.com'"]
    assert [each["kind"] for each in rights] == [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        *("Role", "RoleBinding"),
        *("Role", "RoleBinding"),
    ]


def test_the_definition_and_the_rights_of_allocation_states_are_printed() -> None:
    """The rights are in the namespace that was named, which is made, and nowhere else."""
    definition = yaml.safe_load(dryrack("plugin", "--print-crds").stdout)
    printed = dryrack("plugin", "--print-rbac", "--nas-namespace", "elsewhere").stdout
    rights = {each["kind"]: each["metadata"] for each in yaml.safe_load_all(printed)}

    assert definition["spec"]["names"]["shortNames"] == ["nas"]
    assert rights["Namespace"]["name"] == "elsewhere"
    assert rights["Role"]["namespace"] == rights["RoleBinding"]["namespace"] == "elsewhere"
    assert "fake-system" not in printed


def described(tmp_path: Path, devices: str) -> str:
    """A file with these devices."""
    file = tmp_path / "devices.yaml"
    file.write_text(f"apiVersion: dryrack.dev/v1alpha1\nkind: NodeDevices\ndevices:\n{devices}")
    return str(file)


def test_a_file_says_the_same_as_the_option(tmp_path: Path) -> None:
    """Kinds, counts, names and options; beside what `--devices` says."""
    text = (
        "- kind: gpu\n  count: 2\n  options: {partitions: 4, shared: true}\n"
        "- kind: catalogue\n  name: g4dn.xlarge\n"
    )
    file = described(tmp_path, text)
    by_file = dryrack("plugin", "--config", file, "--devices", "file", "--print-classes")
    words = ("--devices=gpu:2,partitions=4,shared=true", "--devices=catalogue:g4dn.xlarge")
    by_options = dryrack("plugin", "--devices", "file", *words, "--print-classes")

    assert by_file.stdout == by_options.stdout != ""


@pytest.mark.parametrize(
    ("devices", "complaint"),
    [
        ("- kind: fake\n  cuont: 8\n", ":5: devices[0].cuont: unknown field"),
        ("- kind: fake\n  count: 0\n", ":5: devices[0].count: 0 is less than 1"),
        ("- kind: fake\n  count: many\n", ":5: devices[0].count: expected "),
        ("- count: 8\n", ":4: devices[0]: kind is missing"),
        (
            "- kind: fake\n- kind: tpu\n",
            ":5: devices[1]: unknown device kind; use one of: catalogue",
        ),
        ("- kind: fake\n  options:\n    modle: x\n", ":6: devices[0].options.modle: no option"),
        (
            "- kind: fake\n  options:\n    split: no\n",
            ":6: devices[0].options.split: split='false'",
        ),
        (
            "- kind: fake\n- kind: fake\n",
            ":4: devices[0] already provides driver fake.resource.3-shake.com",
        ),
        ("- kind: catalogue\n", ":4: devices[0]: name an instance type"),
        ("---\nkind: Pod\napiVersion: v1\n", ":5: Pod is not NodeDevices"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_line_and_field(
    tmp_path: Path, devices: str, complaint: str
) -> None:
    """The error has the line, the field and the reason; nothing is done."""
    done = dryrack("plugin", "--config", described(tmp_path, devices), "--print-classes")

    assert f"devices.yaml{complaint}" in done.stderr
    assert done.stdout == ""
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
