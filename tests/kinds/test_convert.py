"""
Old versions become v1 and back, with the defaults that the API server sets.

`conversions.json` was written by the API server's own scheme (Kubernetes v1.36.4): each input
decoded with its defaults and encoded in every version that has the kind.
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dryrack.kinds.catalog import Unknown, model_of
from dryrack.kinds.convert import V1, V1BETA1, from_v1, misplaced, to_v1
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.defaults import with_defaults
from dryrack.kinds.resource import ResourceSlice

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "conversions.json").read_text())


def ids(row: dict[str, Any]) -> str:
    raw = row["input"]
    return f"{raw['apiVersion']} {raw['kind']}"


def pruned(value: Any) -> Any:
    """Return the value without nulls and empty objects and lists, which Go may leave out."""
    if isinstance(value, dict):
        inner = {key: pruned(each) for key, each in value.items()}
        return {key: each for key, each in inner.items() if each not in (None, {}, [])}
    return [pruned(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("row", [row for row in ROWS if "v1" in row], ids=ids)
def test_an_object_reads_in_v1_as_the_api_server_has_it(row: dict[str, Any]) -> None:
    """Defaults and conversion together give the server's object, and leave the input alone."""
    raw = copy.deepcopy(row["input"])
    model = model_of(V1, raw["kind"])
    assert not isinstance(model, Unknown)
    ours = to_v1(with_defaults(raw))

    assert decode(ours, model) == decode(row["v1"], model)
    assert raw == row["input"]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize("row", [row for row in ROWS if "v1beta1" in row], ids=ids)
def test_v1_is_written_in_old_versions_as_the_api_server_does(
    row: dict[str, Any], version: str
) -> None:
    """The way back: flat requests and `basic` devices for v1beta1."""
    ours = from_v1(row["v1"], f"resource.k8s.io/{version}")

    assert pruned(ours) == pruned(row[version])


def test_a_taint_rule_keeps_its_shape() -> None:
    """v1alpha3 and v1beta2 rules are v1 rules under another name."""
    for row in ROWS:
        if row["input"]["kind"] == "DeviceTaintRule":
            assert to_v1(row["input"]) == {**row["input"], "apiVersion": V1}


def test_a_taint_was_added_now() -> None:
    """The time comes from the caller; a taint that has one keeps it."""
    taints = [{"key": "a"}, {"key": "b", "timeAdded": "2026-01-01T00:00:00Z"}]
    raw = {
        "apiVersion": V1,
        "kind": "ResourceSlice",
        "spec": {"devices": [{"name": "d", "taints": taints}]},
    }
    now = "2026-11-15T08:00:00Z"
    rule = {"apiVersion": V1, "kind": "DeviceTaintRule", "spec": {"taint": {"key": "a"}}}

    assert with_defaults(raw)["spec"] == raw["spec"]
    dated = with_defaults(raw, now=now)["spec"]["devices"][0]["taints"]
    assert [taint["timeAdded"] for taint in dated] == [now, "2026-01-01T00:00:00Z"]
    assert with_defaults(rule, now=now)["spec"]["taint"]["timeAdded"] == now


def test_unmodelled_fields_travel_along() -> None:
    """Conversion moves what it must and keeps what it does not know."""
    raw = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceSlice",
        "x": 1,
        "spec": {"y": 2, "devices": [{"name": "a", "z": 3, "basic": {"w": 4}}]},
    }
    converted = to_v1(raw)

    assert converted["x"] == 1
    assert converted["spec"] == {"y": 2, "devices": [{"name": "a", "z": 3, "w": 4}]}


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"])
@pytest.mark.parametrize(
    "spec",
    [
        None,
        5,
        [],
        {},
        {"devices": 5},
        {"devices": {"requests": 5}},
        {"devices": [5]},
        {"spec": 5},
        {"spec": {"devices": {"requests": [5, None]}}},
        {"allNodes": {}},
        {"devices": [{"basic": 5, "taints": 5, "nodeAllocatableResourceMappings": {"a": 5}}]},
    ],
)
def test_nonsense_is_left_for_decoding_to_refuse(kind: str, spec: Any) -> None:
    """Neither conversion nor defaults raise on a document of the wrong types."""
    raw = {"apiVersion": "resource.k8s.io/v1beta1", "kind": kind, "spec": spec}
    v1 = to_v1(with_defaults(raw, now="t"))

    assert v1["apiVersion"] == V1
    assert with_defaults(v1)["kind"] == kind
    assert from_v1(v1, "resource.k8s.io/v1beta1")["kind"] == kind


def test_other_groups_are_left_alone() -> None:
    """Only resource.k8s.io is converted."""
    raw = {"apiVersion": "v1", "kind": "Pod"}

    assert to_v1(raw) is raw
    assert with_defaults(raw) is raw


@pytest.mark.parametrize("basic", ["text", 5, [], True])
def test_a_device_of_the_wrong_type_does_not_get_lost(basic: Any) -> None:
    """v1 has no `basic`; what v1beta1 would refuse to read under that key is refused here too."""
    raw = {
        "apiVersion": V1BETA1,
        "kind": "ResourceSlice",
        "spec": {"devices": [{"name": "a", "basic": basic}]},
    }
    with pytest.raises(DecodeError, match=r"spec.devices\[0\]: expected an object"):
        decode(to_v1(raw), ResourceSlice)


def test_fields_of_v1_are_none_in_v1beta1() -> None:
    """Fields in a place that only v1 has are ignored, as by the server, and listed."""
    raw = {
        "apiVersion": V1BETA1,
        "kind": "ResourceSlice",
        "spec": {
            "devices": [
                {"name": "a", "attributes": {"x": {"int": 1}}},
                {"name": "b", "taints": [], "basic": {"name": "c", "allNodes": True}},
            ]
        },
    }
    claim = {
        "apiVersion": V1BETA1,
        "kind": "ResourceClaim",
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
    }

    assert to_v1(raw)["spec"]["devices"] == [{"name": "a"}, {"name": "b", "allNodes": True}]
    assert to_v1(claim)["spec"]["devices"]["requests"] == [{"name": "r"}]
    assert list(misplaced(raw)) == [
        ("spec", "devices", 0, "attributes"),
        ("spec", "devices", 1, "taints"),
    ]
    assert list(misplaced(claim)) == [("spec", "devices", "requests", 0, "exactly")]
    assert list(misplaced({**claim, "apiVersion": V1})) == []
