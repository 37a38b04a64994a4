"""A change to a typed object changes its document there and nowhere else."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kinds.shapes import documents

from dryrack.kinds import shape
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import KubernetesObject, Model, ObjectMeta
from dryrack.kinds.resource import (
    AllocationResult,
    CounterSet,
    Device,
    DeviceClaim,
    DeviceTaint,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
)
from dryrack.kinds.text.document_patch import changed

MODELS: list[type[KubernetesObject]] = [ResourceSlice, ResourceClaim, Pod]
# Parts as well as wholes: in a whole object chance seldom reaches the depths.
PARTS: list[type[Model]] = [*MODELS, Device, ResourceClaimStatus, DeviceClaim]
slow = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("model", PARTS)
@slow
@given(data=st.data())
def test_no_change_changes_nothing(model: type[Model], data: st.DataObject) -> None:
    """The document comes back byte for byte, nulls and spellings included."""
    raw = data.draw(documents(shape.of(model)))
    before = decode(raw, model)

    assert changed(raw, before, before) == raw


@pytest.mark.parametrize("model", PARTS)
@slow
@given(data=st.data())
def test_the_changed_document_reads_as_asked(model: type[Model], data: st.DataObject) -> None:
    """Whatever the change, the result decodes to the wanted object, and the input is intact."""
    raw = data.draw(documents(shape.of(model)))
    kept = copy.deepcopy(raw)
    after = decode(data.draw(documents(shape.of(model))), model)

    assert decode(changed(raw, decode(raw, model), after), model) == after
    assert raw == kept


@pytest.mark.parametrize("model", MODELS)
@slow
@given(data=st.data())
def test_a_change_of_one_part_leaves_the_others(
    model: type[KubernetesObject], data: st.DataObject
) -> None:
    """After a change of metadata, everything but metadata is what it was."""
    raw = data.draw(documents(shape.of(model)))
    before = decode(raw, model)
    after = msgspec.structs.replace(before, metadata=ObjectMeta(name="other"))
    result = changed(raw, before, after)

    assert {**result, "metadata": None} == {**raw, "metadata": None}
    assert result["metadata"].get("unmodelled") == (raw.get("metadata") or {}).get("unmodelled")


SLICE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s", "managedFields": [{"manager": "kubectl"}], "selfLink": "/x"},
    "spec": {
        "driver": "d",
        "future": {"field": 1},
        "devices": [
            {"name": "gpu-0", "serial": 10},
            {"name": "gpu-1", "serial": 11, "capacity": {"memory": {"value": "1024Ki"}}},
            {"name": "gpu-2", "serial": 12, "taints": None},
        ],
    },
}


def test_unknown_fields_stay_with_their_element() -> None:
    """Elements of a list are paired by name, so removing one does not mix up the others."""
    before = decode(SLICE, ResourceSlice)
    _, second, third = before.spec.devices
    tainted = msgspec.structs.replace(third, taints=(DeviceTaint(key="k", effect="NoSchedule"),))
    spec = msgspec.structs.replace(before.spec, devices=(tainted, second))
    result = changed(SLICE, before, msgspec.structs.replace(before, spec=spec))

    assert result["spec"]["devices"] == [
        {"name": "gpu-2", "serial": 12, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        {"name": "gpu-1", "serial": 11, "capacity": {"memory": {"value": "1024Ki"}}},
    ]
    assert result["spec"]["future"] == {"field": 1}
    assert result["metadata"] == SLICE["metadata"]


def test_what_is_unset_is_removed() -> None:
    """A claim whose allocation is taken away has none left, but keeps what is not modelled."""
    raw = {"status": {"allocation": {"devices": {}, "x": 1}, "observed": True}}
    before = decode(raw, ResourceClaim)
    after = msgspec.structs.replace(before, status=ResourceClaimStatus())

    assert changed(raw, before, after) == {"status": {"observed": True}}


def test_an_entry_of_a_map_is_removed_whole() -> None:
    """A counter that is taken out of a set is gone, unknown fields and all."""
    raw = {"name": "c", "counters": {"a": {"value": "1", "x": 1}, "b": {"value": "2", "y": 1}}}
    before = decode(raw, CounterSet)
    after = msgspec.structs.replace(before, counters={"b": before.counters["b"]})

    assert changed(raw, before, after) == {"name": "c", "counters": {"b": {"value": "2", "y": 1}}}


def test_what_is_new_is_added() -> None:
    """An allocation is written into a claim that had no status at all."""
    before = decode({"kind": "ResourceClaim"}, ResourceClaim)
    status = ResourceClaimStatus(allocation=AllocationResult(allocation_timestamp="t"))
    result = changed(
        {"kind": "ResourceClaim"}, before, ResourceClaim(kind=before.kind, status=status)
    )

    assert result == {
        "kind": "ResourceClaim",
        "status": {"allocation": {"allocationTimestamp": "t"}},
    }
