"""lint says nothing about manifests that work, and one clear thing about those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack
from tests.linter.examples import CLAIM, CLASS, POD, SLICE, TEMPLATE, join

from dryrack.cluster.catalogue import load_catalogue
from dryrack.hardware.names import suggestion
from dryrack.kinds.decode import to_builtins
from dryrack.linter import Finding, lint
from dryrack.linter.known_classes import KNOWN_CLASSES

if TYPE_CHECKING:
    from pathlib import Path


def findings(text: str) -> list[Finding]:
    return list(lint([("a.yaml", text.encode())]))


def codes(text: str) -> list[str]:
    return [each.code for each in findings(text)]


def with_expression(claim: str, expression: str) -> str:
    """Return the claim with another selector."""
    parts = claim.partition("expression: ")
    return f"{parts[0]}{parts[1]}'{expression}'\n"


def test_the_classes_of_the_catalogue_are_known() -> None:
    """A class that dryrack itself installs is no reason for a warning."""
    assert set(load_catalogue().device_classes) <= KNOWN_CLASSES


@pytest.mark.parametrize("name", ["gpu.nvidia.com", "tpu.google.com", "dra.net", "gpu.amd.com"])
def test_a_class_that_a_driver_installs_need_not_be_in_the_files(name: str) -> None:
    """Not even beside other classes and slices."""
    claim = CLAIM.replace("deviceClassName: gpu", f"deviceClassName: {name}")
    assert "DR501" not in codes(claim)
    assert "DR501" not in codes(join(SLICE, CLASS, claim))


def test_files_without_classes_and_slices_are_for_a_cluster_that_has_them() -> None:
    """A name that is close to a well-known class is reported."""
    assert codes(CLAIM.replace("deviceClassName: gpu", "deviceClassName: our-own")) == []
    (finding,) = findings(CLAIM.replace("deviceClassName: gpu", "deviceClassName: gpu.nvida.com"))
    assert (finding.code, finding.fix) == ("DR501", "did you mean 'gpu.nvidia.com'?")


def test_too_many_devices_of_an_unknown_class_are_not_counted() -> None:
    """A missing class is reported, and its devices are not guessed."""
    claim = CLAIM.replace("deviceClassName: gpu", "deviceClassName: gpus")
    world = join(SLICE, CLASS, claim.replace("count: 2", "count: 9"))
    assert codes(world) == ["DR501"]


def test_the_capacities_of_an_unknown_class_are_not_compared() -> None:
    """The files have no devices of the class, so devices of other drivers say nothing about it."""
    claim = CLAIM.replace("deviceClassName: gpu", "deviceClassName: gpu.nvidia.com")
    capacity = "count: 2\n        capacity: {requests: {cores: 4, memory: 400Gi}}"
    assert codes(join(SLICE, CLASS, claim.replace("count: 2", capacity))) == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.driver == "gpu.nvidia.com"', []),
        ('device.driver == "gpu.example.com" && device.driver == "net.example.com"', []),
        ('device.attributes["gpu.example.com"].model == "h200"', ["DR402"]),
    ],
)
def test_a_selector_of_an_unknown_class_is_tried_on_drivers_in_the_files(
    expression: str, expected: list[str]
) -> None:
    """A driver that is not in the files may have devices that match."""
    claim = CLAIM.replace("deviceClassName: gpu", "deviceClassName: gpu.nvidia.com")
    found = findings(join(SLICE, CLASS, with_expression(claim, expression)))
    assert [each.code for each in found] == expected
    assert all("of the 2 devices in the files" in each.what for each in found)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.driver in ["gpu.example.com", "gpu.example.com/h100"]', "gpu.example.com/h100"),
        ('device.driver != "gpu.example.com/h100"', "gpu.example.com/h100"),
    ],
)
def test_each_test_of_an_impossible_driver_is_reported(expression: str, expected: str) -> None:
    """The test can be true for other drivers, so only the name is reported."""
    device_class = CLASS.replace('device.driver == "gpu.example.com"', expression)
    assert device_class != CLASS
    (finding,) = findings(join(SLICE, device_class))
    assert finding.code == "DR408"
    assert finding.what == f"{expected!r} is not a valid driver name, so no device matches it"


def test_a_claim_of_too_many_devices_has_one_fix() -> None:
    """The fix for a claim of more than 32 devices is not to request as many as a node has."""
    assert codes(join(SLICE, CLASS, CLAIM.replace("count: 2", "count: 40"))) == ["DR503"]


@pytest.mark.parametrize(
    ("expression", "fix"),
    [
        ('device.attributes["x/y"].model == "h100"', "write 'x.y'"),
        (
            'device.attributes["gpu.example.com"].memory > "8Gi"',
            'the devices have it in capacity; use device.capacity["gpu.example.com"].memory',
        ),
        (
            'device.attributes["gpu.example.com"].model < "9Gi"',
            'publish it as capacity and use .compareTo(quantity("9Gi")) >= 0',
        ),
    ],
)
def test_the_findings_about_an_expression_have_one_fix(expression: str, fix: str) -> None:
    """A second fix for the same expression would contradict the first."""
    found = findings(join(SLICE, CLASS, with_expression(CLAIM, expression)))
    selecting = "correct the expression, or add a device that it matches"
    assert {each.fix for each in found} - {selecting} == {fix}


def test_a_network_need_not_be_named_by_a_container() -> None:
    """The kubelet prepares every claim of a pod, and such drivers configure the pod."""
    pod = POD.replace("    resources:\n      claims:\n      - name: gpu\n", "")
    for name, expected in (("dranet", []), ("our-own", []), ("gpu.nvidia.com", ["DR601"])):
        template = TEMPLATE.replace("deviceClassName: gpu", f"deviceClassName: {name}")
        assert codes(join(template, pod)) == expected


def test_a_capacity_of_zero_is_a_statement() -> None:
    """Slices of the catalogue with MIG profiles have engines of which a profile has none."""
    assert codes(SLICE.replace("memory: {value: 80Gi}", "memory: {value: 0}")) == []


def test_classes_of_the_catalogue_may_wait_for_their_devices() -> None:
    """A fleet of one vendor has no devices for the classes of the others."""
    classes = [to_builtins(each) for each in load_catalogue().device_classes.values()]
    text = join(SLICE, yaml.safe_dump_all(classes))
    assert "DR401" not in codes(text)


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("gpu.nvidia.com", ["gpu.amd.com", "gpu.intel.com"], ""),
        ("gpu.nvida.com", ["gpu.amd.com", "gpu.nvidia.com"], "did you mean 'gpu.nvidia.com'?"),
        ("gpu.nvidia.com/memory", ["gpu.amd.com/memory"], ""),
        ("gpu.example.com/memory", ["memory", "cores"], "did you mean 'memory'?"),
        ("Memory", ["memory"], "did you mean 'memory'?"),
        ("h100-gpu", ["gpu-h100", "gpu-a100"], "did you mean 'gpu-h100'?"),
        ("gpu", ["gpu.example.com", "nic.example.com"], "did you mean 'gpu.example.com'?"),
    ],
)
def test_a_suggestion_is_similar_and_of_the_same_vendor(
    name: str, known: list[str], meant: str
) -> None:
    """Order, case and domain of a name may differ; the vendor may not."""
    assert suggestion(name, known) == meant


def test_a_driver_name_that_cannot_exist_is_told_once() -> None:
    """The finding names the intended name, and the line has one fix only."""
    text = CLASS.replace('device.driver == "gpu.example.com"', 'device.driver == "example.com/gpu"')
    (finding,) = findings(join(SLICE, text))
    assert (finding.code, finding.fix) == ("DR408", "did you mean 'gpu.example.com'?")
    (alone,) = findings(text)
    assert (alone.code, alone.fix) == ("DR408", "write 'example.com.gpu'")


@pytest.mark.parametrize(
    ("old", "new", "fixes"),
    [
        (
            "- cel:\n            expression: device",
            "- expression: device",
            {"move it under `cel`", "move `expression` under `cel`"},
        ),
        ("        count: 2\n", "        constraints: []\n", {"move it up, next to `requests`"}),
    ],
)
def test_a_field_in_the_wrong_place_is_sent_to_its_place(
    old: str, new: str, fixes: set[str]
) -> None:
    """One level down or up; and what is missing there is not asked for a second time."""
    assert old in CLAIM
    assert {each.fix for each in findings(join(CLASS, CLAIM.replace(old, new)))} == fixes


def test_a_field_with_its_name_in_go_is_renamed() -> None:
    """The attribute is not incomplete as well."""
    found = findings(SLICE.replace("numa: {int: 0}", "numa: {intValue: 0}"))
    assert [each.fix for each in found] == [
        "did you mean 'int'?",
        "rename `intValue`; did you mean 'int'?",
    ]


@pytest.mark.parametrize(
    ("api_version", "spec", "converted"),
    [
        (
            "v1beta1",
            "{devices: {requests: [{name: a, deviceClassName: gpu, count: 2}]}}",
            "{devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 2}}]}}",
        ),
        (
            "v1beta2",
            "{devices: {requests: [{name: a, exactly: {deviceClassName: gpu}}]}}",
            "{devices: {requests: [{name: a, exactly: {deviceClassName: gpu}}]}}",
        ),
        (
            "v1alpha3",
            "{controller: x, devices: {requests: [{name: a, deviceClassName: gpu}]}}",
            "{devices: {requests: [{name: a, exactly: {deviceClassName: gpu}}]}}",
        ),
        (
            "v1alpha2",
            "{resourceClassName: gpu}",
            "{devices: {requests: [{name: devices, exactly: {deviceClassName: gpu}}]}}",
        ),
    ],
)
def test_an_old_version_gets_its_whole_conversion(
    api_version: str, spec: str, converted: str
) -> None:
    """The fix is the command and the converted object, which has no findings."""
    text = (
        f"apiVersion: resource.k8s.io/{api_version}\nkind: ResourceClaim\n"
        f"metadata: {{name: c}}\nspec: {spec}\n"
    )
    (finding,) = findings(text)
    fixed = (
        "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: "
        f"{converted}}}"
    )
    assert finding.fix == f"run: dryrack convert -i {finding.file}; or write {fixed}"
    assert findings(fixed) == []


def test_a_slice_of_v1beta1_is_told_about_basic() -> None:
    """The devices of v1 have no `basic`."""
    slice_ = yaml.safe_load(SLICE)
    slice_["apiVersion"] = "resource.k8s.io/v1beta1"
    for device in slice_["spec"]["devices"]:
        device["basic"] = {
            "attributes": device.pop("attributes"),
            "capacity": device.pop("capacity"),
        }
    (finding,) = findings(yaml.safe_dump(slice_))
    assert finding.fix.startswith(f"run: dryrack convert -i {finding.file}")
    assert "basic" not in finding.fix


def test_advice_about_a_refused_field_is_left_out() -> None:
    """One line gets one fix: what the API refuses comes first."""
    (finding,) = findings(SLICE.replace("resourceSliceCount: 1", "resourceSliceCount: 0"))
    assert finding.code == "DR102"


def test_an_empty_file_in_a_directory_is_passed_over(tmp_path: Path) -> None:
    """As kubectl does it; a file that is named must have something in it."""
    (tmp_path / "a.yaml").write_text(CLASS)
    (tmp_path / "b.yaml").write_text("# nothing here yet\n---\n")
    done = dryrack("lint", str(tmp_path))
    assert (done.returncode, done.stderr.strip()) == (0, "no findings in 1 file")

    assert dryrack("lint", str(tmp_path / "b.yaml")).returncode == 1
    (tmp_path / "a.yaml").unlink()
    assert "files in the directory are empty" in dryrack("lint", str(tmp_path)).stderr


def test_objects_that_are_identical_are_not_reported() -> None:
    """The files of a folder with examples often have the same Namespace or DeviceClass."""
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
    reordered = "kind: Namespace\napiVersion: v1\nmetadata:\n  name: team\n"
    labelled = namespace.replace("name: team", "name: team, labels: {a: b}")

    assert codes(join(namespace, reordered)) == []
    assert codes(join(namespace, labelled)) == ["DR006"]


def test_an_attribute_without_a_value_is_one_mistake() -> None:
    """No cluster has the device, so an error of an expression on it says nothing."""
    listed = SLICE.replace("model: {string: h100}", "model: {strings: [h100, h200]}")
    assert listed != SLICE
    found = findings(join(listed, CLASS))

    assert {each.code for each in found} == {"DR102", "DR121"}
    assert found[-1].what == (
        "the API server drops the field: its feature gate DRAListTypeAttributes is off by default"
    )


def test_the_gate_of_a_mapping_to_resources_of_the_node_is_named() -> None:
    """It is another gate than that of lists in attributes."""
    mapped = SLICE.replace(
        "  - name: gpu-1\n",
        "  - name: gpu-1\n    nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: 1}}}\n",
    )
    assert mapped != SLICE
    (finding,) = [each for each in findings(mapped) if each.code == "DR121"]
    assert finding.fix == "leave the field out, or enable DRANodeAllocatableResources"
