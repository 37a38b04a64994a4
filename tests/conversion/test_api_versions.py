"""Objects of older versions become objects of v1, and back."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conversion.converting import TO_V1, convert, layouts, notes, objects

from dryrack.conversion import convert_manifests, convert_versions
from dryrack.kinds.convert import V1, V1BETA1, from_v1
from dryrack.linter import Severity, lint

CLASSIC = """\
apiVersion: fake.resource.3-shake.com/v1alpha1
kind: FakeClaimParameters
metadata: {name: four}
spec: {count: 4, split: 2, selector: {model: ULTRA_10}}
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClass
metadata: {name: fake.3-shake.com}
driverName: fake.resource.3-shake.com  # the driver
---
# what the pod gets
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaimTemplate
metadata:
  name: fakes # the name
spec:
  spec:
    resourceClassName: fake.3-shake.com
    parametersRef: {apiGroup: fake.resource.3-shake.com, kind: FakeClaimParameters, name: four}
---
apiVersion: v1
kind: Pod
metadata: {name: pod0}
spec:
  containers:
  - {name: a, image: b, resources: {claims: [{name: fakes}]}}
  resourceClaims:
  - name: fakes
    source: # of the pod
      resourceClaimTemplateName: fakes
"""
CURRENT = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: fake.3-shake.com}
spec:
  selectors:
  - cel:
      expression: device.driver == "fake.resource.3-shake.com"
---
# what the pod gets
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: fakes # the name
spec:
  spec:
    devices:
      requests:
      - name: devices
        exactly:
          deviceClassName: fake.3-shake.com
          selectors:
          - cel:
              expression: device.attributes["fake.resource.3-shake.com"].model == "ULTRA_10"
          count: 4
      config:
      - opaque:
          driver: fake.resource.3-shake.com
          parameters:
            apiVersion: fake.resource.3-shake.com/v1alpha1
            kind: FakeClaimParameters
            count: 4
            split: 2
            selector:
              model: ULTRA_10
---
apiVersion: v1
kind: Pod
metadata: {name: pod0}
spec:
  containers:
  - {name: a, image: b, resources: {claims: [{name: fakes}]}}
  resourceClaims:
  - name: fakes
    # of the pod
    resourceClaimTemplateName: fakes
"""

_names = st.sampled_from(("a", "gpu", "gpu-0", "b.c"))
_selectors = st.lists(
    st.just({"cel": {"expression": 'device.driver == "d"'}}), min_size=1, max_size=2
)
_exact = st.fixed_dictionaries(
    {"deviceClassName": _names},
    optional={
        "selectors": _selectors,
        "count": st.integers(1, 4),
        "allocationMode": st.just("ExactCount"),
        "tolerations": st.just([{"operator": "Exists"}]),
    },
)
_requests = st.lists(
    st.fixed_dictionaries({"name": _names, "exactly": _exact})
    | st.fixed_dictionaries({"name": _names, "firstAvailable": st.just([{"name": "x"}])}),
    min_size=1,
    max_size=3,
)
_devices = st.lists(
    st.fixed_dictionaries(
        {"name": _names, "attributes": st.just({"model": {"string": "m"}})},
        optional={"capacity": st.just({"memory": {"value": "80Gi"}})},
    ),
    min_size=1,
    max_size=3,
)


def _claim(requests: Any) -> dict[str, Any]:
    return _object("ResourceClaim", {"devices": {"requests": requests}})


def _template(requests: Any) -> dict[str, Any]:
    return _object("ResourceClaimTemplate", {"spec": {"devices": {"requests": requests}}})


def _slice(devices: Any) -> dict[str, Any]:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": devices}
    return _object("ResourceSlice", spec)


def _object(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": V1, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


_current = _requests.map(_claim) | _requests.map(_template) | _devices.map(_slice)


@given(st.data())
def test_v1_survives_the_way_to_an_older_version_and_back(data: st.DataObject) -> None:
    """In any layout; nothing is printed again, and each comment stays."""
    current = data.draw(_current)
    # The server adds an empty class, which no person writes.
    before = json.loads(
        json.dumps(from_v1(current, V1BETA1)).replace(', "deviceClassName": ""', "")
    )
    old = data.draw(layouts(before)) + "\n"

    new = convert(old)

    assert objects(new) == [current]
    assert new.count("#") == old.count("#")
    assert notes(old) == []
    assert objects(convert(convert(new, partial(convert_versions, target="v1beta1")))) == [current]


@given(_current, st.sampled_from(("v1", "v1beta2", "v1beta1")))
def test_a_second_conversion_changes_nothing(current: dict[str, Any], target: str) -> None:
    """The text of the first conversion stays byte for byte."""
    step = partial(convert_versions, target=target)
    first = convert(json.dumps(current), step, name="a.json")

    assert convert(first, step, name="a.json") == first


def test_classic_claims_get_what_their_parameters_say() -> None:
    """The objects with parameters are gone; comments stay."""
    assert convert(CLASSIC) == CURRENT
    found = lint([("a.yaml", CURRENT.encode())], lambda *_: ())
    assert [each for each in found if each.severity is Severity.ERROR] == []


def test_parameters_may_be_in_another_file() -> None:
    """A claim gets them although it is read first."""
    claim, parameters = CLASSIC.split("---\n")[2], CLASSIC.split("---\n")[0]
    files = [("a.yaml", claim.encode()), ("b.yaml", parameters.encode())]
    result = convert_manifests(files, [TO_V1])

    assert "count: 4" in result.files[0].after
    assert result.files[1].after == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            (
                "apiVersion: resource.k8s.io/v1alpha3\nkind: ResourceClaim\nmetadata: {name: c}\n"
                "spec:\n  controller: x\n  devices: {requests: [{name: a, deviceClassName: b}]}\n"
            ),
            ["a.yaml:5: spec.controller is dropped: the scheduler allocates devices by itself"],
        ),
        (
            (
                "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\nmetadata: {name: c}\n"
                "spec:\n  resourceClassName: a\n  parametersRef: {apiGroup: g, kind: K, name: p}\n"
            ),
            [
                (
                    "a.yaml:6: parametersRef is dropped: K 'p' is not in the files; convert it"
                    " together with this object, or write its parameters by hand"
                )
            ],
        ),
        (
            (
                "apiVersion: resource.k8s.io/v1alpha2\nkind: PodSchedulingContext\n"
                "metadata: {name: c}\nspec: {}\n"
            ),
            [
                "a.yaml:1: no object is left in this file; delete it",
                (
                    "a.yaml:2: PodSchedulingContext is removed: the scheduler allocates devices by"
                    " itself"
                ),
            ],
        ),
        (
            (
                "apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceTaintRule\nmetadata: {name: c}\n"
                "spec:\n  deviceSelector:\n    deviceClassName: a\n"
                "  taint: {key: a.b/c, effect: NoSchedule}\n"
            ),
            [
                (
                    "a.yaml:6: spec.deviceSelector.deviceClassName does not exist in v1, so the"
                    " rule would taint more devices; name the devices by driver, pool and device"
                )
            ],
        ),
        (
            (
                "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: c}\n"
                "spec: {devices: {requests: [{name: a, exactly: {deviceClassName: b}}]}}\n"
            ),
            ["a.yaml:4: spec.devices.requests[0].exactly is of v1 already, and stays"],
        ),
    ],
)
def test_what_is_not_preserved_is_told_with_its_line(text: str, told: list[str]) -> None:
    """A field without a place in v1 is a note, or a problem if its loss changes the meaning."""
    assert notes(text) == told


def test_amounts_of_v1alpha3_become_objects() -> None:
    """The comment beside the amount stays."""
    text = (
        "apiVersion: resource.k8s.io/v1alpha3\nkind: ResourceSlice\nmetadata: {name: s}\nspec:\n"
        "  driver: d\n  nodeName: n\n  pool: {name: n, generation: 1, resourceSliceCount: 1}\n"
        "  devices:\n  - name: a\n    basic:\n      capacity:\n        memory: 80Gi # big\n"
    )
    assert convert(text).endswith("  - name: a\n    capacity:\n      memory: {value: 80Gi} # big\n")


def test_fields_of_v1beta1_in_an_object_of_v1_are_moved() -> None:
    """Whoever changes only the apiVersion gets the rest."""
    text = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec:\n"
        "  devices:\n    requests:\n    - name: a\n      deviceClassName: b # class\n"
    )
    assert convert(text).endswith(
        "    - name: a\n      exactly:\n        deviceClassName: b # class\n"
    )


@pytest.mark.parametrize(
    ("version", "release", "result"),
    [
        ("v1alpha3", "1.36", "v1beta2"),
        ("v1alpha3", "1.37", "v1"),
        ("v1beta2", "1.36", "v1beta2"),
        ("v1beta2", "1.37", "v1"),
        ("v1", "1.36", "v1"),
    ],
)
def test_taint_rules_get_the_version_of_the_release(
    version: str, release: str, result: str
) -> None:
    """Kubernetes 1.36 has no DeviceTaintRule in v1."""
    text = (
        "apiVersion: resource.k8s.io/{}\nkind: DeviceTaintRule\nmetadata: {{name: r}}\n"
        "spec: {{deviceSelector: {{driver: d}}, taint: {{key: a.b/c, effect: NoExecute}}}}\n"
    )
    step = partial(convert_versions, target="v1", release=release)

    assert convert(text.format(version), step) == text.format(result)


def test_a_list_and_json_keep_their_form() -> None:
    """Items of a List are converted in it; JSON stays JSON with its indentation."""
    item = from_v1(_claim([{"name": "a", "exactly": {"deviceClassName": "b"}}]), V1BETA1)
    listed = {"apiVersion": "v1", "kind": "List", "items": [item]}
    text = json.dumps(listed, indent=4) + "\n"
    new = convert(text, name="a.json")

    assert json.loads(new)["items"][0]["apiVersion"] == V1
    assert new == json.dumps(json.loads(new), indent=4) + "\n"


def test_line_ends_and_byte_order_mark_stay() -> None:
    """A file from Windows stays one."""
    text = "\ufeff" + CLASSIC.replace("\n", "\r\n")

    assert convert(text) == "\ufeff" + CURRENT.replace("\n", "\r\n")


def test_a_file_that_cannot_be_read_is_a_problem() -> None:
    """All problems of all files are reported, and nothing is converted."""
    result = convert_manifests([("a.yaml", b"a: [\n"), ("b.yaml", b"")], [TO_V1])

    assert result.files == ()
    assert [each.file for each in result.problems] == ["a.yaml", "b.yaml"]
