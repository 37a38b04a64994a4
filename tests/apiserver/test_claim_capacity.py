"""What a claim's status says of devices: names and texts that others build upon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.apiserver.whole_plane import WholePlane

from dryrack.store import Key

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SHARE = "11111111-2222-3333-4444-555555555555"
DEVICE = {"driver": "d.example.com", "pool": "p", "device": "gpu-0"}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def written(result: Raw, device: Raw | None = None) -> tuple[int, str]:
    """The answer to a status with one result, and with one device if there is one to tell of."""
    plane = WholePlane()
    request = {"name": "r", "exactly": {"deviceClassName": "c"}}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    made = plane.create(CLAIMS, claim).body
    made["status"] = {
        "allocation": {"devices": {"results": [{"request": "r", **DEVICE, **result}]}}
    }
    if device is not None:
        made["status"]["devices"] = [DEVICE | device]
    answer = plane.ask("PUT", f"{CLAIMS}/c/status", made)
    return answer.status, answer.body.get("message", "")


@pytest.mark.parametrize(
    "name", ["a\nb", "a=b", "", "a b", "a/b/c\n=d", "d.example.com/a=b", "\x1b[31m", "m" * 33]
)
def test_a_name_of_consumed_capacity_is_one_of_a_capacity(name: str) -> None:
    """Drivers make variables of these names; nothing in one may set another variable."""
    status, message = written({"shareID": SHARE, "consumedCapacity": {name: "1"}})

    assert status == 422
    assert "status.allocation.devices.results[0].consumedCapacity: " in message


@pytest.mark.parametrize("name", ["memory", "d.example.com/memory", "m" * 32])
def test_other_names_of_consumed_capacity_are_taken(name: str) -> None:
    """With or without a domain."""
    assert written({"shareID": SHARE, "consumedCapacity": {name: "1Gi"}})[0] == 200


@pytest.mark.parametrize(
    ("result", "device", "field"),
    [
        ({"shareID": "a\nb"}, None, "results[0].shareID"),
        ({"shareID": ""}, None, "results[0].shareID"),
        ({"shareID": SHARE.replace("1", "A")}, None, "results[0].shareID"),
        ({"shareID": "{" + SHARE + "}"}, None, "results[0].shareID"),
        ({"pool": "P\n="}, None, "results[0].pool"),
        ({"device": "d\n"}, None, "results[0].device"),
        ({"bindingConditions": ["a\nb"], "bindingFailureConditions": ["b"]}, None, "bindingCond"),
        ({}, {"shareID": "x\ny"}, "devices[0].shareID"),
        ({}, {"conditions": [CONDITION | {"type": "a\nb"}]}, "conditions[0].type"),
        ({}, {"conditions": [CONDITION | {"reason": "r r\n"}]}, "conditions[0].reason"),
        ({}, {"conditions": [CONDITION | {"status": "Yes"}]}, "conditions[0].status"),
        ({}, {"conditions": [CONDITION | {"message": "m" * 32769}]}, "conditions[0].message"),
        ({}, {"conditions": [CONDITION, CONDITION]}, "conditions[1]"),
        ({}, {"networkData": {"interfaceName": "e" * 257}}, "networkData.interfaceName"),
        ({}, {"networkData": {"hardwareAddress": "x" * 129}}, "networkData.hardwareAddress"),
        ({}, {"networkData": {"ips": ["1.2.3.4"]}}, "networkData.ips[0]"),
        ({}, {"networkData": {"ips": ["1.2.3.4/24"] * 2}}, "networkData.ips[1]"),
        ({}, {"data": "x"}, "devices[0].data"),
        ({}, {"data": [1]}, "devices[0].data"),
        ({}, {"data": {"a": "x" * 11_000}}, "devices[0].data"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_other_texts_are_refused_as_by_a_real_server(
    result: Raw, device: Raw | None, field: str
) -> None:
    """A kube-apiserver refuses each of them for this field."""
    status, message = written(result, device)

    assert status == 422
    assert field in message


def test_an_allocation_that_stays_is_not_judged_again() -> None:
    """Other parts of the status can be written, whatever was taken before."""
    plane = WholePlane()
    request = {"name": "r", "exactly": {"deviceClassName": "c"}}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    made = plane.create(CLAIMS, claim).body
    result = {"request": "r", **DEVICE, "shareID": SHARE, "consumedCapacity": {"m": "1"}}
    made["status"] = {"allocation": {"devices": {"results": [result]}}}
    result["consumedCapacity"] = {"a=b": "1"}
    key = Key("resourceclaims.resource.k8s.io", "default", "c")
    plane.plane.store.put(key, made, expected=None)
    stored = plane.ask("GET", f"{CLAIMS}/c").body
    stored["status"]["devices"] = [DEVICE | {"shareID": SHARE, "data": {"a": 1}}]

    assert plane.ask("PUT", f"{CLAIMS}/c/status", stored).status == 200
