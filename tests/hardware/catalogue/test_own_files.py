"""Files of one's own: what they add, and what is said when they are wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hardware.catalogue.packaged import catalogue, slices_on

from dryrack.hardware.catalogue import Cards, CatalogueError, parse

if TYPE_CHECKING:
    from dryrack.kinds.documents import Problem

DOCS = Path(__file__).parents[3] / "docs"
HEADER = "apiVersion: dryrack.dev/v1alpha1\nkind: Catalogue\n"
MODEL = """\
models:
- name: mine
  vendor: Me
  driver: gpu.example.com
  device: gpu-{index}
  attributes:
    type: {string: gpu}
    numaNode: {int: "{numa}"}
  capacity:
    memory: {value: 8Gi}
"""
MACHINE = """\
instanceTypes:
- names: [mine.large]
  devices:
  - model: mine
    each:
      numa: [0, 1]
"""


PROFILE = """\
  mig:
    wholeDevice: kept
    profiles: [{{name: a, starts: {starts}, slices: {slices}, capacity: {{a: 1}}}}]
  capacity:
"""


def problems(text: str) -> list[str]:
    with pytest.raises(CatalogueError) as caught:
        parse({"mine.yaml": text.encode()}, catalogue())
    return [str(problem) for problem in caught.value.problems]


def test_a_machine_of_ones_own_is_added() -> None:
    """All that is packaged stays, and the new type publishes its devices."""
    added = parse({"mine.yaml": (HEADER + MODEL + MACHINE).encode()}, catalogue())
    [slice_] = slices_on(added.instance_types["mine.large"], Cards.WHOLE)

    assert set(added.instance_types) == {*catalogue().instance_types, "mine.large"}
    assert [device.name for device in slice_.spec.devices] == ["gpu-0", "gpu-1"]
    assert [device.attributes["numaNode"].int_value for device in slice_.spec.devices] == [0, 1]


def test_a_machine_of_ones_own_may_have_packaged_models() -> None:
    """An instance type with devices of the packaged catalog needs no model."""
    text = (
        "instanceTypes:\n- {names: [rack], devices: [{model: t4, each: {pci: ['0000:01:00.0']}}]}\n"
    )
    added = parse({"mine.yaml": (HEADER + text).encode()}, catalogue())

    assert added.instance_types["rack"].fittings[0].model is catalogue().models["t4"]


def test_sizes_are_of_types_that_there_are() -> None:
    """Own and packaged models are found; any other is a problem with its line."""
    text = HEADER + MODEL + MACHINE + "sizes:\n  mine.large: {cpu: 8}\n  t: {memory: 4Gi}\n"
    sized = parse({"mine.yaml": text.replace("  t:", "  g6.xlarge:").encode()}, catalogue())

    assert sized.instance_types["mine.large"].size == {"cpu": "8"}
    assert sized.instance_types["g6.xlarge"].size == {"memory": "4Gi"}
    assert problems(text)[0].startswith("mine.yaml:21: size of 't': unknown instance type")


def test_a_class_of_ones_own_is_added_and_judged() -> None:
    """It is added to the packaged ones; one that the API refuses is a problem with its line."""
    text = "deviceClasses:\n- name: mine\n  expression: device.driver == 'gpu.example.com'\n"
    added = parse({"mine.yaml": (HEADER + text).encode()}, catalogue())

    assert set(added.device_classes) == {*catalogue().device_classes, "mine"}
    for good, bad, told in (
        ("name: mine", "name: Mine", "mine.yaml:4: class 'Mine'"),
        ("device.driver", "device.drive", "mine.yaml:5: class 'mine'"),
        ("expression", "expresion", "mine.yaml:5: deviceClasses[0].expresion: unknown field"),
    ):
        assert problems(HEADER + text.replace(good, bad))[0].startswith(told)


def test_a_card_of_ones_own_may_be_of_a_packaged_family() -> None:
    """A model inherits the common values of its family."""
    text = """\
models:
- name: a2
  family: nvidia-gpu
  attributes:
    productName: {string: NVIDIA A2}
    driverVersion: {version: 595.58.3}
"""
    model = parse({"mine.yaml": (HEADER + text).encode()}, catalogue()).models["a2"]
    device = model.batch((model.sample_slot(),)).devices[0]

    assert device.attributes["brand"].string_value == "Nvidia"
    assert device.attributes["driverVersion"].version_value == "595.58.3"


def test_an_entry_of_ones_own_replaces_the_packaged_one() -> None:
    """A file replaces a packaged instance type."""
    text = MACHINE.replace("mine.large", "p5.48xlarge")
    added = parse({"mine.yaml": (HEADER + MODEL + text).encode()}, catalogue())

    assert added.instance_types["p5.48xlarge"].fittings[0].model.name == "mine"


def test_a_model_of_ones_own_replaces_the_packaged_one_wherever_it_is() -> None:
    """Machines that have a card have it as the file says."""
    text = "models:\n- {name: t4, family: nvidia-gpu, title: T4 of mine}\n"
    added = parse({"mine.yaml": (HEADER + text).encode()}, catalogue())

    assert added.instance_types["g4dn.xlarge"].fittings[0].model.title == "T4 of mine"
    assert added.instance_types["g5.xlarge"] is catalogue().instance_types["g5.xlarge"]


def test_the_example_of_the_reference_can_be_read() -> None:
    """The example works, and the guide states how many instance types the catalog has."""
    page = (DOCS / "reference" / "catalog-file.md").read_text()
    [text] = re.findall(r"^```yaml title=\"rack.yaml\"\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    added = parse({"rack.yaml": text.encode()}, catalogue())
    devices = [
        device.name
        for slice_ in slices_on(added.instance_types["rack.large"], Cards.WHOLE)
        for device in slice_.spec.devices
    ]

    assert devices == ["gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-0"]
    guide = (DOCS / "guides" / "hardware.md").read_text()
    assert f"catalog of {len(catalogue().instance_types)} instance types of" in guide


def change(old: str, new: str) -> str:
    text = HEADER + MODEL + MACHINE
    assert old in text
    return text.replace(old, new)


WRONG = {
    "not YAML": ("models: [", "mine.yaml:2: while parsing a flow node"),
    "another kind": (
        "apiVersion: v1\nkind: ConfigMap\n",
        "mine.yaml:2: expected apiVersion dryrack.dev/v1alpha1 and kind Catalogue, got 'v1' and",
    ),
    "an unknown field": (
        change("  driver:", "  drivr:"),
        "mine.yaml:6: models[0].drivr: unknown field; did you mean 'driver'?",
    ),
    "a field of the wrong type": (
        change("names: [mine.large]", "names: mine.large"),
        "mine.yaml:14: instanceTypes[0].names: expected a list",
    ),
    "an unknown model": (
        change("model: mine", "model: h200-140gb"),
        "mine.yaml:16: instance type mine.large: unknown model 'h200-140gb'; did",
    ),
    "an unknown family": (
        change("  vendor: Me", "  family: nvidia"),
        "mine.yaml:5: model 'mine': unknown family 'nvidia'; did you mean 'nvidia-gpu'?",
    ),
    "a model without a device": (
        change("  device: gpu-{index}\n", ""),
        "mine.yaml:4: model 'mine': has no device; add device with a name such as gpu-{index}",
    ),
    "an attribute of no type": (
        change("{string: gpu}", "{strng: gpu}"),
        "mine.yaml:9: model 'mine': attributes.type.strng: unknown field",
    ),
    "an attribute that is too long": (
        change("{string: gpu}", "{string: " + "x" * 65 + "}"),
        "mine.yaml:9: model 'mine': attributes[type].string: Too long",
    ),
    "a driver that the API forbids": (
        change("gpu.example.com", "example.com/gpu"),
        "mine.yaml:6: model 'mine': driver: Invalid value",
    ),
    "a bad quantity": (
        change("8Gi", "8GiB"),
        "mine.yaml:12: model 'mine': capacity.memory.value: expected a quantity",
    ),
    "a placeholder that nobody fills": (
        change("    each:\n      numa: [0, 1]\n", "    count: 2\n"),
        "instance type mine.large: model 'mine' needs numa, one for each device",
    ),
    "a value that no placeholder takes": (
        change("numa: [0, 1]", "numa: [0, 1]\n      pci: ['0000:01:00.0', '0000:02:00.0']"),
        "mine.yaml:19: instance type mine.large: model 'mine' has no placeholder {pci}",
    ),
    "a value of the wrong type": (
        change("[0, 1]", "[0, one]"),
        "instance type 'mine.large': attributes.numaNode.int: expected",
    ),
    "fewer values than devices": (
        change("    each:", "    count: 3\n    each:"),
        "mine.yaml:19: instance type mine.large: 2 values of numa for 3 devices",
    ),
    "a name twice": (
        change("names: [mine.large]", "names: [mine.large, mine.large]"),
        "mine.yaml:14: 'mine.large' is defined twice; remove one of the two",
    ),
    "two devices of one name": (
        change("device: gpu-{index}", "device: gpu"),
        "mine.yaml:15: instance type 'mine.large': 2 devices of gpu.example.com named gpu",
    ),
    "a name that no label can have": (
        change("mine.large", "mine/large"),
        "mine.yaml:14: instance type 'mine/large': ",
    ),
    "a profile without places": (
        change(
            "  capacity:\n",
            "  mig: {wholeDevice: kept, profiles: [{name: 1g, slices: 1}]}\n  capacity:\n",
        ),
        "mine.yaml:11: model 'mine': a profile needs a name, starts, slices and capacity",
    ),
    "a profile of no size": (
        change("  capacity:\n", PROFILE.format(starts="[0]", slices=0)),
        "mine.yaml:13: model 'mine': slices must be at least 1, and starts must be at least 0",
    ),
    "a profile beyond the card": (
        change("  capacity:\n", PROFILE.format(starts="[0]", slices=2_000_000_000)),
        "mine.yaml:13: model 'mine': a GPU has at most 24 memory slices",
    ),
    "cards neither kept nor hidden": (
        change("  capacity:\n", "  mig: {wholeDevice: maybe}\n  capacity:\n"),
        "mine.yaml:11: model 'mine': mig.wholeDevice: expected kept or hidden, got 'maybe'",
    ),
    "a family twice": (
        HEADER + "families: [{name: a}, {name: a}]\n",
        "mine.yaml:3: 'a' is defined twice; remove one of the two",
    ),
    "a model that packaged machines cannot have": (
        HEADER + "models: [{name: t4, family: nvidia-gpu, device: 'gpu-{index}-{socket}'}]\n",
        "mine.yaml:3: model 't4': instance type 'g4dn.xlarge' does not set socket; write {socket?}",
    ),
    "a model that makes packaged machines invalid": (
        HEADER + "models: [{name: t4, family: nvidia-gpu, device: gpu}]\n",
        "mine.yaml:3: instance type 'g4dn.12xlarge': 4 devices of gpu.nvidia.com named gpu",
    ),
    "a bad address": (
        HEADER + "instanceTypes:\n- {names: [rack], devices: [{model: t4, each: {pci: [1F]}}]}\n",
        "mine.yaml:4: instance type rack: '1F' is not a PCI address in lower case",
    ),
    "too many devices": (
        HEADER + "instanceTypes:\n- {names: [rack], devices: [{model: trainium, count: 1000}]}\n",
        "mine.yaml:4: instance type rack: 1000 devices; expected 1 to 128",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_with_file_and_line(wrong: str) -> None:
    """One sentence contains the place, the problem, and, if it is known, the fix."""
    text, expected = WRONG[wrong]

    assert [said for said in problems(text) if expected in said], problems(text)


def test_all_that_is_wrong_is_said_at_once() -> None:
    """All problems of a file are reported together."""
    text = change("model: mine", "model: other").replace("{string: gpu}", "{strng: gpu}")

    assert len(problems(text)) == 2


LINES = (HEADER + MODEL + MACHINE).splitlines(keepends=True)


@given(
    st.lists(st.integers(0, len(LINES) - 1), min_size=1, max_size=4),
    st.sampled_from(
        ["", "- {\n", "  each: [1]\n", "names: 7\n", "  mig: {profiles: [{}]}\n", "\0"]
    ),
)
def test_a_damaged_file_is_a_catalogue_or_told_to_be_none(at: list[int], put: str) -> None:
    """For any file, the result is a catalog or problems with their lines."""
    lines = [put if number in at else line for number, line in enumerate(LINES)]
    answer = _answer("".join(lines))

    assert answer is None or (answer and all(problem.line > 0 for problem in answer))


def _answer(text: str) -> tuple[Problem, ...] | None:
    try:
        parse({"mine.yaml": text.encode()})
    except CatalogueError as error:
        return error.problems
    return None
