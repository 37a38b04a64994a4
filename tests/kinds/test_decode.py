"""Documents become typed objects, or all their mismatches are reported."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kinds.shapes import documents

from dryrack.kinds import shape
from dryrack.kinds.core import ConfigMap, Pod
from dryrack.kinds.decode import DecodeError, decode, to_builtins, unknown_fields
from dryrack.kinds.quantity import FORMAT_WRONG, Quantity
from dryrack.kinds.resource import Device, DeviceAttribute, ResourceClaim, ResourceSlice
from dryrack.kinds.scheduling import CoschedulingPodGroup

ONE_GI = f'the string "1 Gi" ({FORMAT_WRONG})'
SLICE: dict[str, Any] = {
    "metadata": {"name": "s", "creationTimestamp": None},
    "spec": {
        "pool": {"name": "p", "generation": 1.0, "resourceSliceCount": 1},
        "sharedCounters": None,
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {"a.b/c": {"int": 3}, "v": {"version": "1.2.3"}},
                "capacity": {"memory": {"value": "1024Ki"}, "cores": {"value": 8}},
                "bindingConditions": None,
            }
        ],
    },
}


def test_a_document_is_read_with_its_nulls_and_whole_floats() -> None:
    """A null is a field that is not set, and 1.0 is an integer, as for the API server."""
    spec = decode(SLICE, ResourceSlice).spec

    assert spec.pool.generation == 1
    assert spec.shared_counters == ()
    assert spec.devices[0].binding_conditions == ()
    assert spec.devices[0].attributes["a.b/c"] == DeviceAttribute(int_value=3)
    assert spec.devices[0].capacity["cores"].value == Quantity.parse("8")


def test_all_mistakes_are_told_with_their_paths() -> None:
    """Expected, got and path of each, in the order of the document."""
    raw = {
        "metadata": {"labels": {"a": 1}},
        "spec": {
            "pool": {"generation": 2**63, "name": True},
            "devices": [{}, {"attributes": {"x/y": {"int": "3", "bool": 1}}, "taints": {}}],
            "sharedCounters": [{"counters": {"c": {"value": "1 Gi"}}}, 7],
            "nodeName": ["a" * 100],
        },
    }
    with pytest.raises(DecodeError) as raised:
        decode(raw, ResourceSlice)

    assert [str(mismatch) for mismatch in raised.value.mismatches] == [
        "metadata.labels.a: expected a string, got the number 1",
        "spec.pool.generation: expected a 64-bit integer, got the number 9223372036854775808",
        "spec.pool.name: expected a string, got true",
        'spec.devices[1].attributes["x/y"].int: expected a 64-bit integer, got the string "3"',
        'spec.devices[1].attributes["x/y"].bool: expected true or false, got the number 1',
        "spec.devices[1].taints: expected a list, got an object",
        f"spec.sharedCounters[0].counters.c.value: expected a quantity, got {ONE_GI}",
        "spec.sharedCounters[1]: expected an object, got the number 7",
        "spec.nodeName: expected a string, got a list",
    ]
    assert raised.value.path == "metadata.labels.a"
    assert (raised.value.expected, raised.value.got) == ("a string", "the number 1")


@pytest.mark.parametrize("raw", [None, [], "x", 5, True])
def test_a_document_must_be_an_object(raw: Any) -> None:
    """Anything else is one mistake without a path."""
    with pytest.raises(DecodeError, match="document: expected an object, got "):
        decode(raw, ResourceClaim)


def test_names_are_not_validated_on_reading() -> None:
    """Decoding accepts values that validation refuses."""
    raw = {"spec": {"devices": {"requests": [{"name": "subReq-0"}]}}}

    assert decode(raw, ResourceClaim).spec.devices.requests[0].name == "subReq-0"


def test_what_is_made_here_has_its_kind() -> None:
    """An object made here says what it is; one that was read says what it was read as."""
    assert to_builtins(ConfigMap(data={"a": "b"})) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"a": "b"},
    }
    assert to_builtins(CoschedulingPodGroup())["kind"] == "PodGroup"
    assert to_builtins(decode({"apiVersion": "x/v9"}, Pod))["apiVersion"] == "x/v9"


def test_required_zeros_are_written() -> None:
    """A counter of zero is not a counter without a value."""
    device = decode({"capacity": {"memory": {"value": "0"}}}, Device)

    assert to_builtins(device) == {"capacity": {"memory": {"value": "0"}}}
    assert to_builtins(ResourceSlice())["apiVersion"] == "resource.k8s.io/v1"


def test_unknown_fields_are_listed_with_their_paths() -> None:
    """For strict checking; inside what belongs to a driver nothing is unknown."""
    raw = {
        "spec": {
            "devices": {
                "requests": [{"name": "r", "exactly": {"deviceclassname": "x"}}],
                "config": [{"opaque": {"parameters": {"any": "thing"}}}],
            },
            "extra": None,
        },
        "Status": {},
    }

    assert unknown_fields(raw, ResourceClaim) == (
        "spec.devices.requests[0].exactly.deviceclassname",
        "spec.extra",
        "Status",
    )


def test_fields_that_are_legal_but_not_modelled_are_not_unknown() -> None:
    """A pod may have volumes and probes, though nothing here reads them."""
    container = {"name": "c", "volumeMounts": [], "resource": {}}
    raw = {
        "metadata": {"selfLink": "/x"},
        "spec": {"volumes": [{"name": "v"}], "containers": [container], "Volumes": []},
    }

    assert unknown_fields(raw, Pod) == ("spec.containers[0].resource", "spec.Volumes")


@pytest.mark.parametrize("model", [ResourceSlice, ResourceClaim, Pod])
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_writing_and_reading_again_gives_the_same_object(
    model: type[ResourceSlice], data: st.DataObject
) -> None:
    """Typed objects survive encoding."""
    value = decode(data.draw(documents(shape.of(model))), model)
    again = decode(to_builtins(value), model)

    assert msgspec.structs.replace(again, api_version="", kind="") == msgspec.structs.replace(
        value, api_version="", kind=""
    )
    assert again.api_version == (value.api_version or model.API_VERSION)
